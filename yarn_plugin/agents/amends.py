"""What is said to put right a switch that failed: workers that go back to what they did, until they say so. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from gandiva_core.messages.agents import Switched
from gandiva_core.model.units import JobId
from yarn_plugin.agents.orders import JobOrder
from yarn_plugin.bridge.register import Register

AMENDS = 0
"""The switch number of these orders, which no switch of the engine has."""

_MOOT = frozenset({"ENDED", "CANCELLED"})
"""Codes of a worker that need not go on any more."""


class Amends:
    """By container; the engine waits for none of them, so nobody else would miss one that got lost.

    Args:
        register: whose container is whose.
    """

    def __init__(self, register: Register) -> None:
        self._register = register
        self._of: dict[str, JobOrder] = {}

    def note(self, order: JobOrder) -> None:
        """Its workers are told this now, and nothing else any more."""
        for container in order.waiting:
            self.take_back(container)
            self._of[container] = order

    def take_back(self, container: str) -> None:
        """A worker is told something else."""
        self._end(container, is_start=None)

    def pending(self) -> list[JobOrder]:
        """What has not come true, oldest first; each with the workers that it waits for."""
        return list({id(order): order for order in self._of.values()}.values())

    def answered(self, report: Switched) -> Iterator[tuple[JobId, str]]:
        """Take an answer; jobs of which a worker did not go on, and why: half of such a gang stands still."""
        for container, _ in report.stopped:
            self._end(container, is_start=False)
        for container, _ in report.started:
            self._end(container, is_start=True)
        for failure in report.failed:
            order = self._end(failure.container_id, is_start=True)
            if order is not None and failure.code not in _MOOT:
                reason = f"{failure.code}: {failure.detail}".strip(": ")
                yield order.job_id, f"a worker did not go on: {reason}"

    def forget(self) -> None:
        """Drop what is kept of containers that are gone."""
        for container in self._of.keys() - self._register.job_of.keys():
            del self._of[container]

    def _end(self, container: str, is_start: bool | None) -> JobOrder | None:
        """It waits for a worker no longer; the order, where it was one to start or to stop, as asked."""
        order = self._of.get(container)
        if order is None or is_start not in (None, order.is_start):
            return None
        del self._of[container]
        order.waiting.discard(container)
        return order
