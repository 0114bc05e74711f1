"""In place of a core where there is none: the stock arm of an A/B, in which nobody orders.

A container gets devices when its launcher comes up, the first free ones in order and in order of coming, and keeps them
until it ends: as YARN's own GPU plug-in gives them, but by the same agent, devices and launchers as in the other arm.
What the other arm's core decides is decided here from the same reports, and carried out by the same commands.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from gandiva_core.messages.agents import (
    AgentHello,
    Command,
    Expect,
    Expected,
    Measured,
    Report,
    RotationTable,
    RunWorker,
    SwitchWorkers,
    Welcome,
    WorkerEnded,
    WorkerState,
)
from nodemanager_agent.ports import Admission, Refused, Registration
from nodemanager_agent.sockets import Desk

_REPORT_S = 1.0
_SILENT_S = 60.0
"""Never met: there is no table to turn by."""


class OwnCore:
    """Implements `nodemanager_agent.ports.CoreLine`.

    Args:
        hello: how the node is.
        told: called with each command.

    Attributes:
        gpus: that the node has.
    """

    def __init__(self, hello: Callable[[], AgentHello], told: Callable[[Command], None]) -> None:
        before = hello()
        self.gpus = len(before.devices)
        self._told = told
        self._epoch = before.epoch + 1
        self._message_id = 0
        self._expected: dict[str, Expected] = {}
        told(Welcome(self._epoch, _REPORT_S, _SILENT_S, _SILENT_S))
        told(RotationTable(self._epoch, self._next_id(), ()))  # none of an earlier core's counts

    async def run(self) -> None:
        """Until cancelled; all that happens is an answer to a report."""
        await asyncio.Event().wait()

    def introduce(self, registration: Registration) -> None:
        """A container whose launcher came up; nobody else tells of it."""
        container_id = registration.container_id
        if container_id not in self._expected and registration.asked is not None:
            self._expected[container_id] = Expected(
                container_id, container_id, registration.asked, user=str(registration.uid)
            )
            self._tell_expected()

    def send(self, report: Report) -> None:
        """Place who waits; forget who ended."""
        if isinstance(report, WorkerEnded) and report.container_id in self._expected:
            del self._expected[report.container_id]
            self._tell_expected()
        elif isinstance(report, Measured):
            run = placed(self._expected, report)
            if run:
                number = self._next_id()
                self._told(SwitchWorkers(self._epoch, number, number, run=run))

    def _tell_expected(self) -> None:
        self._told(Expect(self._epoch, self._next_id(), tuple(self._expected.values())))

    def _next_id(self) -> int:
        self._message_id += 1
        return self._message_id


def placed(expected: Mapping[str, Expected], seen: Measured) -> tuple[RunWorker, ...]:
    """Who waits, with the first devices that nobody holds; nobody passes one who came earlier."""
    held = {gpu for worker in seen.workers for gpu in worker.gpus}
    free = [each.index for each in seen.devices if each.healthy and each.index not in held]
    waiting = {
        each.container_id
        for each in seen.workers
        if each.state is WorkerState.WAITING and not each.gpus
    }
    run = []
    for container_id in [each for each in expected if each in waiting]:
        asked = expected[container_id].gpus
        if asked > len(free):
            break
        run.append(RunWorker(container_id, tuple(free[:asked])))
        del free[:asked]
    return tuple(run)


class DeskWithoutCore:
    """A desk to which no core has announced whom to expect: who proves to be a container of this node is let in.

    Args:
        desk: decides all else.
    """

    def __init__(self, desk: Desk, core: OwnCore) -> None:
        self._desk = desk
        self._core = core
        self.registered = desk.registered
        self.gone = desk.gone

    def admit(self, registration: Registration) -> Admission:
        """Whether a launcher is let in."""
        if registration.asked is None or not 0 <= registration.asked <= self._core.gpus:
            detail = f"GANDIVA_GPUS: {registration.asked}, of {self._core.gpus} devices here"
            return Refused("GPUS", detail)
        admission = self._desk.admit(registration)
        if isinstance(admission, Refused):
            return admission
        self._core.introduce(registration)
        return admission or self._desk.admit(registration)

    def launcher_said(self, container_id: str, message: dict[str, Any]) -> None:
        """A message of it; raises msgspec.ValidationError where a field is wrong."""
        self._desk.launcher_said(container_id, message)
