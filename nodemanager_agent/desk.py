"""What launchers say, and what it means for their workers: they come up, tell how far they are, and end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from gandiva_core.messages.agents import ContinuityChecked, RunWorker, WorkerEnded, WorkerState
from nodemanager_agent.binding import Binding
from nodemanager_agent.lifecycle import FOUND, Stimulus
from nodemanager_agent.migration import Moves
from nodemanager_agent.orders import Orders, found
from nodemanager_agent.ports import Admission, Ports, Registration
from nodemanager_agent.roster import Roster
from nodemanager_agent.strays import Strays
from nodemanager_agent.switching import Switching
from nodemanager_agent.workers import Progress, Worker

_HOLDING = frozenset(WorkerState) - {WorkerState.EXPECTED, WorkerState.WAITING, WorkerState.ENDED}
"""States in which a launcher's word for its devices counts: one that waits has none, and gets none by asking."""


class LauncherDesk:
    """Implements `nodemanager_agent.sockets.Desk`.

    Args:
        strays: told of workers that ended.
        changed: called after every change of a state or a binding.
    """

    def __init__(
        self,
        roster: Roster,
        binding: Binding,
        orders: Orders,
        switching: Switching,
        *,
        moves: Moves,
        strays: Strays,
        ports: Ports,
        changed: Callable[[], None],
    ) -> None:
        self._roster = roster
        self._binding = binding
        self._orders = orders
        self._switching = switching
        self._moves = moves
        self._strays = strays
        self._ports = ports
        self._changed = changed

    def admit(self, registration: Registration) -> Admission:
        """Whether a launcher is let in; after the line is open, call `registered`."""
        return self._roster.admit(registration)

    def registered(self, registration: Registration) -> None:
        """A launcher is there, and said in which state it is."""
        worker = self._roster.workers[registration.container_id]
        worker.is_connected = True
        if worker.may(Stimulus.REGISTERED):
            worker.follow(Stimulus.REGISTERED)
        self._believe(worker, registration.state, registration.gpus)
        self._orders.registered(worker, registration.state)
        if self._moves.is_moving_here(worker.container_id):
            self._moves.registered(worker)
        else:
            self._switching.registered(worker)
        self._changed()

    def _believe(self, worker: Worker, told: str, gpus: tuple[int, ...] = ()) -> None:
        """What the launcher says is so. Who stopped meanwhile holds nothing; who runs holds what it says it does."""
        state = found(told)
        if state is None or worker.ordered is not None:
            return  # what was ordered is still to come true, and is answered
        if worker.state is not state:
            worker.follow(FOUND[state])
            self._changed()
        if told == WorkerState.SUSPENDED:  # who was saved for a move keeps its devices
            self._binding.release(worker.container_id)
        elif gpus and state in _HOLDING and not self._binding.held_by(worker.container_id):
            self._note_found(worker, gpus)

    def _note_found(self, worker: Worker, gpus: tuple[int, ...]) -> None:
        """It has devices that are not in our notes: nobody else gets them, whoever gave them."""
        claim = self._switching.claim(worker, RunWorker(worker.container_id, gpus))
        obstacle = self._binding.obstacle(claim)
        if obstacle is not None and obstacle.code == "GPUS":
            name = worker.container_id
            self._ports.say("warning", "no such devices", container_id=name, detail=obstacle.detail)
        else:
            self._binding.take(claim)

    def gone(self, container_id: str) -> None:
        """A launcher's line is closed; its job may well run on."""
        worker = self._roster.workers.get(container_id)
        if worker is not None:
            worker.is_connected = False
            self._orders.lost(worker)

    def launcher_said(self, container_id: str, message: Mapping[str, Any]) -> None:
        """A message on the line of an admitted launcher.

        Raises:
            msgspec.ValidationError: a field is not of its kind.
        """
        worker = self._roster.workers.get(container_id)
        if worker is None or worker.state is WorkerState.ENDED:
            return
        match message["op"]:
            case "done" | "failed":
                self._orders.answered(worker, message)
                self._switching.advance()
            case "progress":
                self._note_progress(worker, msgspec.convert(message, Progress))
            case "continuity":
                self._ports.report(_continuity(container_id, message, self._ports.wall()))
            case "ended":
                code = message.get("exit_code")
                exit_code = code if isinstance(code, int) else None
                self.end(worker, exit_code, str(message.get("reason") or ""))

    def _note_progress(self, worker: Worker, told: Progress) -> None:
        before, worker.progress = worker.progress, told
        if told.memory_peak_mib is not None:
            self._binding.measured(worker.container_id, round(told.memory_peak_mib))
        if told.state is not None:
            self._orders.told_state(worker, told.state)
            if not self._moves.is_moving_here(worker.container_id):
                self._believe(worker, told.state)
        if worker.state is WorkerState.RUNNING:
            worker.pace.note(self._company(worker), told.minibatches, told.minibatch_s)
        if (before.method, before.can_pack, before.can_move, before.can_resize) != (
            told.method,
            told.can_pack,
            told.can_move,
            told.can_resize,
        ):
            self._changed()

    def _company(self, worker: Worker) -> frozenset[str]:
        """Who runs on its devices with it."""
        held = self._binding.held_by(worker.container_id)
        holders = {claim.container_id for gpu in held for claim in self._binding.holders(gpu)}
        others = holders - {worker.container_id}
        running = (self._roster.workers.get(each) for each in others)
        return frozenset(
            w.container_id for w in running if w is not None and w.state is WorkerState.RUNNING
        )

    def end(self, worker: Worker, exit_code: int | None, reason: str) -> None:
        """It ended; its devices are looked at before anybody has them."""
        if worker.state is WorkerState.ENDED:
            return
        worker.follow(Stimulus.ENDED)
        self._orders.ended(worker)
        self._switching.ended(worker.container_id)
        self._strays.watch(worker)
        self._ports.report(WorkerEnded(worker.container_id, self._ports.wall(), exit_code, reason))
        self._changed()


def _continuity(container_id: str, message: Mapping[str, Any], now_s: float) -> ContinuityChecked:
    return ContinuityChecked(
        container_id,
        now_s,
        str(message.get("after") or ""),
        message.get("is_same") is True,
        int(message.get("minibatches") or 0),
        str(message.get("detail") or ""),
    )
