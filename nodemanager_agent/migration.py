"""This node's legs of a move (G-69): warm up, save, restore, let go. What fails leaves the source running."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gandiva_core.messages.agents import (
    Answered,
    EndMove,
    PrepareMove,
    RestoreState,
    RunWorker,
    SaveState,
    WorkerState,
)
from nodemanager_agent.binding import Binding
from nodemanager_agent.lifecycle import Stimulus
from nodemanager_agent.orders import Orders
from nodemanager_agent.switching import RESUME_S, START_S, Switching
from nodemanager_agent.workers import Done, Outcome, Undone, Worker

SAVE_S = 60.0
MIB = 1024 * 1024
MARGIN = 1.1
"""What a saved state may be larger than its tensors."""

Answer = Callable[[Answered], None]


@dataclass(slots=True)
class _Warming:
    command: PrepareMove
    answer: Answer


class Moves:
    """Carries out the commands of moves.

    Args:
        ram_folder: where states are written, below it only.
        uid: of this process: folders of jobs of another user are made by the job.
    """

    def __init__(
        self,
        workers: dict[str, Worker],
        binding: Binding,
        orders: Orders,
        switching: Switching,
        *,
        ram_folder: Path,
        uid: int,
        changed: Callable[[], None],
    ) -> None:
        self._workers = workers
        self._binding = binding
        self._orders = orders
        self._switching = switching
        self._ram_folder = ram_folder
        self._uid = uid
        self._changed = changed
        self._warming: dict[str, _Warming] = {}
        self._saved: dict[str, Path] = {}

    def prepare(self, command: PrepareMove, answer: Answer) -> None:
        """Take devices, and warm up as soon as the container's launcher is there."""
        expected = command.worker
        worker = self._workers.setdefault(expected.container_id, Worker(expected.container_id))
        worker.expected = expected
        wanted = RunWorker(expected.container_id, command.gpus)
        claim = self._switching.claim(worker, wanted)
        obstacle = self._binding.obstacle(claim)
        if obstacle is not None:
            answer(Answered(command.message_id, obstacle.code, obstacle.detail))
            return
        self._binding.take(claim)
        self._warming[expected.container_id] = _Warming(command, answer)
        self._changed()
        self.registered(worker)

    def is_moving_here(self, container_id: str) -> bool:
        """Whether a container warms up for a move, and is not to be started plainly."""
        return container_id in self._warming

    def registered(self, worker: Worker) -> None:
        """A launcher has come up: if it is one that a move waits for, it warms up."""
        warming = self._warming.get(worker.container_id)
        if warming is None or worker.state is not WorkerState.WAITING or worker.ordered:
            return
        worker.follow(Stimulus.START_ORDERED)

        def warmed(outcome: Outcome) -> None:
            if isinstance(outcome, Undone):
                self._warming.pop(worker.container_id, None)
                if worker.may(Stimulus.NOT_STARTED):
                    worker.follow(Stimulus.NOT_STARTED)
                    self._binding.release(worker.container_id)
            warming.answer(_answered(warming.command.message_id, outcome))
            self._changed()

        grant = self._switching.grant(self._binding.held_by(worker.container_id))
        self._orders.give(worker, "warm", START_S, warmed, **grant)

    def save(self, command: SaveState, answer: Answer) -> None:
        """Stop at the boundary and write one replica's state; device memory and devices stay its own."""
        worker = self._workers.get(command.container_id)
        if worker is None or worker.state is not WorkerState.RUNNING or worker.ordered:
            answer(Answered(command.message_id, "NOT_RUNNING", "this worker does not run"))
            return
        if worker.forbids("migrate"):
            answer(Answered(command.message_id, "FORBIDDEN", "its owner or its queue forbids it"))
            return
        refusal = self._make_room(worker, Path(command.folder))
        if refusal is not None:
            answer(_answered(command.message_id, refusal))
            return
        self._saved[worker.container_id] = Path(command.folder)
        worker.follow(Stimulus.SUSPEND_ORDERED)

        def saved(outcome: Outcome) -> None:
            if isinstance(outcome, Done) and worker.may(Stimulus.STOPPED):
                worker.follow(Stimulus.STOPPED)
            elif isinstance(outcome, Undone) and worker.may(Stimulus.KEPT):
                worker.follow(Stimulus.KEPT)
                self._forget(worker.container_id)
            answer(_answered(command.message_id, outcome))
            self._changed()

        self._orders.give(worker, "save", SAVE_S, saved, folder=command.folder, limit_s=SAVE_S)

    def restore(self, command: RestoreState, answer: Answer) -> None:
        """Load and do the first mini-batch; only that confirms the move (G-13)."""
        worker = self._workers.get(command.container_id)
        if worker is None or worker.container_id not in self._warming or worker.ordered:
            answer(Answered(command.message_id, "NOT_WARM", "nothing warmed up for this move"))
            return

        def restored(outcome: Outcome) -> None:
            if isinstance(outcome, Done) and worker.may(Stimulus.STARTED):
                worker.follow(Stimulus.STARTED)
            answer(_answered(command.message_id, outcome))
            self._changed()

        grant = self._switching.grant(self._binding.held_by(worker.container_id))
        self._orders.give(worker, "restore", RESUME_S, restored, folder=command.folder, **grant)

    def end(self, command: EndMove, answer: Answer) -> None:
        """The source lets go, or goes on; a destination that is not wanted any more ends."""
        worker = self._workers.get(command.container_id)
        if worker is None or worker.state is WorkerState.ENDED:
            answer(Answered(command.message_id))
            return
        is_here = self._warming.pop(worker.container_id, None) is not None
        self._forget(worker.container_id)
        if is_here and command.is_done:
            answer(Answered(command.message_id))
        elif is_here or command.is_done:
            self._give(worker, "release", command.message_id, answer)
        elif worker.state is WorkerState.SUSPENDED:
            self._go_on(worker, command.message_id, answer)
        else:
            answer(Answered(command.message_id))

    def _give(self, worker: Worker, op: str, message_id: int, answer: Answer) -> None:
        if not worker.token:  # nothing of it came up
            self._binding.release(worker.container_id)
            answer(Answered(message_id))
            return
        self._orders.give(worker, op, SAVE_S, lambda done: answer(_answered(message_id, done)))

    def _go_on(self, worker: Worker, message_id: int, answer: Answer) -> None:
        self._switching.begin(worker, lambda _, outcome: answer(_answered(message_id, outcome)))

    def _make_room(self, worker: Worker, folder: Path) -> Undone | None:
        """A folder of the job's own, with room for its state; why not."""
        root = self._ram_folder.resolve()
        if not folder.is_absolute() or root not in folder.resolve().parents:
            return Undone("FOLDER", f"{folder} is not below {root}")
        try:
            if not root.is_dir():
                root.mkdir(parents=True)
                root.chmod(0o1777)
            if root.stat().st_uid not in (0, self._uid):
                return Undone("FOLDER", f"{root} belongs to user {root.stat().st_uid}")
            free_mib = shutil.disk_usage(root).free // MIB
            needed_mib = round((worker.progress.memory_mib or 0) * MARGIN)
            if needed_mib > free_mib:
                return Undone("NO_SPACE", f"no space on {root}: {needed_mib} MiB, {free_mib} free")
            if worker.uid == self._uid:
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            return Undone("NO_SPACE", f"{folder}: {error.strerror}")
        return None

    def _forget(self, container_id: str) -> None:
        """Remove what was saved here; what is the job's alone goes with the job."""
        folder = self._saved.pop(container_id, None)
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def _answered(message_id: int, outcome: Outcome) -> Answered:
    if isinstance(outcome, Undone):
        return Answered(message_id, outcome.code, outcome.detail)
    return Answered(message_id, figures=dict(outcome.figures))
