"""Why a job waits, in words for its user (USERS B7): what it needs, what there is. Pure."""

from __future__ import annotations

import re

from gandiva_core.messages.decisions import Wait
from yarn_plugin.bridge.gangs import Gang

TEXT_MAX = 1000
"""Characters that fit into an application's diagnostics (docs/BRIDGE.md)."""

_REFUSED = {
    "QUEUE_LIMIT": "its queue is at its maximum",
    "USER_LIMIT": "its user has the share of one user in this queue",
    "NO_ROOM": "the node that was chosen has too little left",
    "LABEL": "the node that was chosen is not in the partition asked for",
    "BLACKLISTED": "the application does not want the node that was chosen",
    "LOCALITY": "the application insists on other nodes",
    "NODE_STATE": "the node that was chosen is not running",
    "ASK_GONE": "its application master has not asked for all of its containers again",
    "NOT_READY": "the ResourceManager waits for nodes to report after its start",
    "ADOPTING": "containers that are there already are counted first",
    "STALE_EPOCH": "the connection to the ResourceManager was lost meanwhile",
}

_WORDS = {
    "partition": "needs {need}, 0 are there in {where} (no node with GPUs)",
    "too-large": "needs {need} at once, {number} are there in {where} (no server set is large enough)",
    "gpus": "needs {need} at once, {number} are free in {where} ({have})",
    "locality": "needs {need} on the hosts it insists on, {have}",
    "queue-limit": "needs {need}, its queue holds {have}",
    "guarantees": "needs {need}, there are {have}",
    "host-memory": "needs {need} of memory on one node, {have} are free",
    "vcores": "needs {need} on one node, {have} are free",
    "broken": "starts again: {have}",
}
"""What the core's codes mean; {number} is the first number of what there is."""


def sentence(gang: Gang, reason: Wait, partition: str) -> str:
    """One line without control characters."""
    workers = len(gang.members)
    who = "container waits" if workers == 1 else f"gang of {workers} waits"
    return one_line(f"{who}: {_words(reason, partition)}")


def one_line(text: str) -> str:
    """As the bridge takes it."""
    plain = re.sub(r"[\s\x00-\x1f\x7f-\x9f]+", " ", text).strip()
    return plain if len(plain) <= TEXT_MAX else plain[: TEXT_MAX - 1] + "…"


def _words(reason: Wait, partition: str) -> str:
    need, have = reason.need, reason.have
    if reason.code == "refused":
        words = _REFUSED.get(need, f"the ResourceManager answered {need}")
        return f"{words} ({have})" if have else words
    text = _WORDS.get(reason.code, f"{reason.code}: needs {{need}}, there is {{have}}")
    return text.format(
        need=need or "a decision",
        have=have or "nothing",
        number=_number(have),
        where=f"partition '{partition}'" if partition else "the default partition",
    )


def _number(text: str) -> str:
    found = re.match(r"\d+", text)
    return found.group() if found else text
