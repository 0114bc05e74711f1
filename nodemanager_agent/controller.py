"""The agent's decisions: what core and time ask, in one thread, over `Ports`. No socket in here."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from gandiva_core.messages.agents import (
    AgentHello,
    Command,
    Device,
    EndMove,
    Expect,
    Measured,
    PrepareMove,
    RestoreState,
    RotationTable,
    SaveState,
    SwitchWorkers,
    Welcome,
    WorkerState,
)
from nodemanager_agent.answers import Answers, SwitchAnswer
from nodemanager_agent.binding import Binding
from nodemanager_agent.desk import LauncherDesk
from nodemanager_agent.devices import Devices
from nodemanager_agent.inventory import Inventory
from nodemanager_agent.lifecycle import Stimulus
from nodemanager_agent.migration import Moves
from nodemanager_agent.orders import Orders
from nodemanager_agent.ports import Ports
from nodemanager_agent.profiler import Sample
from nodemanager_agent.roster import Roster
from nodemanager_agent.rotation import Rotation
from nodemanager_agent.state import Known, StateFile, noted
from nodemanager_agent.strays import Holders, Strays
from nodemanager_agent.switching import Switching, nobody
from nodemanager_agent.workers import Worker

_LIMIT_S = 30.0


class Identity(msgspec.Struct, frozen=True):
    """What a hello says of the agent itself."""

    node: str
    session: str
    version: str
    host_memory_mib: int = 0


class Surroundings(msgspec.Struct, frozen=True):
    """What the controller knows of its machine.

    Attributes:
        is_alive: of a process by number and start.
        holders: processes left of a worker that ended.
        ram_folder: for states of moves.
        unhooked_after_s: a container whose process is there and has not registered for so long never will.
    """

    is_alive: Callable[[int, int | None], bool]
    holders: Holders
    ram_folder: Path
    unhooked_after_s: float = 30.0


class Controller:
    """The agent, but for its sockets.

    Args:
        devices: of this node; `measured` is their first measurement.
        state: what earlier agents noted, and where to note.

    Attributes:
        desk: whom launchers talk to.
    """

    def __init__(
        self,
        identity: Identity,
        devices: Devices,
        measured: tuple[Device, ...],
        surroundings: Surroundings,
        state: StateFile,
        ports: Ports,
    ) -> None:
        self._identity = identity
        self._surroundings = surroundings
        self._state = state
        self._ports = ports
        self.report_s = 1.0
        self._is_changed = False
        self._known: Known | None = None
        self.rotation = Rotation()
        self.answers = Answers(ports.report)
        self.roster = Roster(surroundings.is_alive)
        self.binding = Binding(
            {device.index: device.memory_mib for device in measured}, devices.context_mib
        )
        self._orders = Orders(ports, self._late)
        workers = self.roster.workers
        uuids = {device.index: device.uuid for device in measured}
        self.switching = Switching(
            workers,
            self.binding,
            self._orders,
            ports,
            devices=devices,
            uuids=uuids,
            changed=self._changed,
        )
        self._moves = Moves(
            workers,
            self.binding,
            self._orders,
            self.switching,
            ram_folder=surroundings.ram_folder,
            uid=os.getuid(),
            changed=self._changed,
        )
        self.inventory = Inventory(self.binding, ports, self._changed)
        self._strays = Strays(
            self.binding,
            surroundings.holders,
            self.inventory.quarantine,
            self.inventory.lift,
        )
        self.desk = LauncherDesk(
            self.roster,
            self.binding,
            self._orders,
            self.switching,
            moves=self._moves,
            strays=self._strays,
            ports=ports,
            changed=self._changed,
        )
        self._recall()
        self.inventory.measured(measured)

    # ------------------------------------------------------------------ the core

    def hello(self) -> AgentHello:
        """The first message of a stream: the truth as it is now."""
        return AgentHello(
            self._identity.node,
            self._identity.session,
            self._identity.version,
            self.inventory.devices(),
            can_suspend=True,
            workers=self._reports(),
            host_memory_mib=self._identity.host_memory_mib,
            epoch=self.answers.epoch,
            last_message_id=self.answers.last_message_id,
            ram_dir=str(self._surroundings.ram_folder),
        )

    def measured(self) -> Measured:
        """All as it is now."""
        return Measured(self._ports.wall(), self.inventory.devices(), self._reports())

    def core_said(self, command: Command) -> None:
        """Carry out a command, or begin to."""
        self.rotation.heard(self._ports.monotonic())
        if isinstance(command, Welcome):
            self._welcome(command)
        elif self.answers.is_new(command.epoch, command.message_id):
            self._obey(command)

    def _welcome(self, command: Welcome) -> None:
        self.report_s = command.report_s
        self.rotation.quantum_s = command.quantum_s
        self.rotation.silent_s = command.silent_s
        self._changed()

    def _obey(self, command: Command) -> None:
        match command:
            case Expect():
                self._expect(command)
            case SwitchWorkers():
                self._switch(command)
            case RotationTable():
                self.rotation.table = command
                self._changed()
            case PrepareMove():
                self._moves.prepare(command, lambda a: self.answers.answer(command.epoch, a))
            case SaveState():
                self._moves.save(command, lambda a: self.answers.answer(command.epoch, a))
            case RestoreState():
                self._moves.restore(command, lambda a: self.answers.answer(command.epoch, a))
            case EndMove():
                self._moves.end(command, lambda a: self.answers.answer(command.epoch, a))

    def _expect(self, command: Expect) -> None:
        for worker in self.roster.expect(command.workers):
            is_here = worker.is_connected or (
                worker.pid > 0 and self._surroundings.is_alive(worker.pid, worker.start_ticks)
            )
            if not is_here and not self._moves.is_moving_here(worker.container_id):
                self.desk.end(worker, None, "its container is gone")
        self._changed()

    def _late(self, worker: Worker, op: str) -> None:
        self.switching.late(worker, op)

    def _switch(self, command: SwitchWorkers) -> None:
        answer = SwitchAnswer(self.answers, command)
        for container_id in command.suspend:
            self.switching.suspend(container_id, command.limit_s, answer.stopped)
        for wanted in command.run:
            self.switching.run(wanted, command.limit_s * 2, answer.started)

    # ------------------------------------------------------------------ time

    def tick(self) -> None:
        """Often: limits, what waits for devices, the rotation, and notes."""
        now_s = self._ports.monotonic()
        for worker in list(self.roster.workers.values()):
            self._orders.advance(worker, now_s)
        self.switching.advance()
        turn = self.rotation.due(now_s, self._ports.wall())
        if turn is not None:
            self._turn({wanted.container_id: wanted for wanted in turn})
        self._save()

    def beat(self) -> None:
        """Once a report: processes that are gone, and what they left."""
        for worker in list(self.roster.workers.values()):
            if worker.is_connected or worker.pid <= 0 or worker.state is WorkerState.ENDED:
                continue
            if not self._surroundings.is_alive(worker.pid, worker.start_ticks):
                self.desk.end(worker, None, "its launcher is gone")
        if self._strays.beat():
            self.switching.advance()
        for container_id, worker in list(self.roster.workers.items()):
            is_over = worker.state is WorkerState.ENDED and worker.expected is None
            if is_over and container_id not in self._strays.watched:
                del self.roster.workers[container_id]
        self._changed()

    def _turn(self, wanted: dict[str, Any]) -> None:
        """The next quantum of the core's last table: nothing is ended, and who cannot stop stays."""
        self._ports.say("info", "the core is silent; residents turn", run=sorted(wanted))
        for worker in list(self.roster.workers.values()):
            if worker.state is WorkerState.RUNNING and worker.container_id not in wanted:
                self.switching.suspend(worker.container_id, _LIMIT_S, nobody)
        for each in wanted.values():
            self.switching.run(each, 2 * _LIMIT_S, nobody)

    # ------------------------------------------------------------------ devices and samples

    def sampled(self, sample: Sample) -> None:
        """What the profiler saw."""
        self.inventory.measured(sample.devices)
        now_s = self._ports.monotonic()
        for worker in self.roster.workers.values():
            seen = sample.workers.get(worker.container_id)
            if seen is not None:
                worker.host_memory_mib = seen.host_memory_mib
                worker.minibatch_s_seen = seen.minibatch_s
                worker.utilisation_ratio = self.inventory.utilisation_ratio(
                    self.binding.held_by(worker.container_id),
                    worker.progress.utilisation_ratio,
                    seen.cpu_ratio,
                )
            self._look_for_hook(worker, seen is not None, now_s)

    def _look_for_hook(self, worker: Worker, is_seen: bool, now_s: float) -> None:
        if worker.state is WorkerState.UNHOOKED and worker.seen_at_s is not None and not is_seen:
            self.desk.end(worker, None, "its processes are gone")
        if worker.state is WorkerState.UNHOOKED and is_seen:
            worker.seen_at_s = now_s
        if worker.state is not WorkerState.EXPECTED or worker.expected is None:
            return
        is_awaited = self.switching.is_awaited(worker.container_id)
        if worker.seen_at_s is None and (is_seen or is_awaited):
            worker.seen_at_s = now_s
        waited_s = 0.0 if worker.seen_at_s is None else now_s - worker.seen_at_s
        if waited_s >= self._surroundings.unhooked_after_s:
            worker.seen_at_s = worker.seen_at_s if is_seen else None
            worker.follow(Stimulus.NOT_REGISTERED)
            self.switching.unhooked(worker)
            self._changed()

    # ------------------------------------------------------------------ notes

    def _changed(self) -> None:
        self._is_changed = True

    def take_change(self) -> bool:
        """Whether something changed since the last call, so that a report is due at once."""
        changed, self._is_changed = self._is_changed, False
        return changed

    def _save(self) -> None:
        rest = Known(
            epoch=self.answers.epoch,
            message_id=self.answers.last_message_id,
            table=self.rotation.table,
            quantum_s=self.rotation.quantum_s,
            silent_s=self.rotation.silent_s,
        )
        known = noted(self.roster.workers.values(), self.binding.claims, rest)
        if known == self._known:
            return
        try:
            self._state.write(known)
            self._known = known
        except OSError as error:
            self._ports.say("error", "the state file cannot be written", problem=str(error))

    def _recall(self) -> None:
        known, problem = self._state.read()
        if problem:
            self._ports.say("error", "what an earlier agent noted is lost", problem=problem)
        self.answers.epoch, self.answers.last_message_id = known.epoch, known.message_id
        self.rotation.table = known.table
        self.rotation.quantum_s, self.rotation.silent_s = known.quantum_s, known.silent_s
        for claim in known.claims:
            self.binding.take(claim)
        for worker in self.roster.recall(known.workers):
            self.desk.end(worker, None, "it ended while the agent was away")
        for claim in known.claims:
            # Whose launcher had not come up holds it until the core says that nobody expects it.
            worker = self.roster.workers.setdefault(claim.container_id, Worker(claim.container_id))
            if worker.state is WorkerState.ENDED:
                self._strays.watch(worker)

    def _reports(self) -> tuple[Any, ...]:
        return tuple(
            worker.report(self.binding.held_by(worker.container_id))
            for worker in self.roster.workers.values()
        )
