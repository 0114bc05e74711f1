"""Whose fault an aborted event was."""

from __future__ import annotations

from gandiva_core.model.errors import GandivaError


class PolicyError(GandivaError):
    """A policy broke its contract or raised; the event it was deciding on has been undone whole.

    Args:
        number: the event's number.
        policy: the policy's name.
        problem: what happened.
    """

    def __init__(self, number: int, policy: str, problem: str) -> None:
        super().__init__(f"event {number}: policy {policy}: {problem}; the event was undone")
        self.number = number
        self.policy = policy
        self.problem = problem
