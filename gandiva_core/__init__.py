"""Gandiva on YARN: the scheduler's core. docs/ARCHITECTURE.md walks through its layers."""

from __future__ import annotations

__version__ = "0.1.0"
