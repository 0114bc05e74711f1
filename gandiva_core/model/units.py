"""Identifiers that must not be mixed up, as types of their own."""

from __future__ import annotations

from typing import NewType

JobId = NewType("JobId", str)
"""A job; on YARN the application id, in a replay the trace's job id."""

ServerId = NewType("ServerId", str)
"""A server; on YARN the node's ``host:port``."""

QueueName = NewType("QueueName", str)
"""A queue's full path, ``root.default``."""

QueueKey = tuple[QueueName, str]
"""A queue in one partition: limits and use are counted by both (DESIGN §4)."""

AcceleratorType = NewType("AcceleratorType", str)
"""A class of GPU, ``P100``; every GPU of a server has the same (C-1)."""
