"""Stopping and starting workers: devices change hands only once their holder has stopped (G-12; FAULTS E11)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gandiva_core.messages.agents import RunWorker, WorkerState
from nodemanager_agent.binding import Binding, Claim
from nodemanager_agent.devices import Devices
from nodemanager_agent.lifecycle import Stimulus
from nodemanager_agent.orders import Orders
from nodemanager_agent.ports import Ports
from nodemanager_agent.workers import Done, Outcome, Undone, Worker

START_S = 900.0
"""A start may wait for the others of its gang to meet."""
RESUME_S = 150.0
"""A little more than a launcher gives its ranks."""

_UNPLACED = (WorkerState.EXPECTED, WorkerState.WAITING, WorkerState.SUSPENDED)
"""States in which a worker is given devices."""

Told = Callable[[str, Outcome], None]
"""Container id and outcome of stopping or starting it."""


def nobody(_container_id: str, _outcome: Outcome) -> None:
    """Nobody waits for this; the core hears of it by the next report."""


@dataclass(slots=True)
class _Wish:
    claim: Claim
    until_s: float
    then: Told


class Switching:
    """Carries out switches.

    Args:
        workers: all of this node, by container; shared with the controller.
        devices: for jobs' environments.
        uuids: of the devices, by index.
        changed: called after every change of a state or a binding.
    """

    def __init__(
        self,
        workers: dict[str, Worker],
        binding: Binding,
        orders: Orders,
        ports: Ports,
        *,
        devices: Devices,
        uuids: dict[int, str],
        changed: Callable[[], None],
    ) -> None:
        self._workers = workers
        self._binding = binding
        self._orders = orders
        self._devices = devices
        self._uuids = uuids
        self._ports = ports
        self._changed = changed
        self._wishes: dict[str, _Wish] = {}
        self._unregistered: dict[str, Told] = {}

    # ------------------------------------------------------------------ stopping

    def suspend(self, container_id: str, limit_s: float, then: Told) -> None:
        """Stop a worker, and take its devices back once it has stopped."""
        wish = self._wishes.pop(container_id, None)
        if wish is not None:
            wish.then(container_id, Undone("CANCELLED", "told to stop instead"))
        self._unregistered.pop(container_id, None)
        worker = self._workers.get(container_id)
        refusal = _not_suspendable(worker)
        if worker is None or refusal is not None:
            then(container_id, refusal or Undone("UNKNOWN"))
        elif worker.state in (WorkerState.EXPECTED, WorkerState.WAITING) and not worker.ordered:
            self._binding.release(container_id)  # nothing of it ran on them
            then(container_id, Done(self._ports.wall()))
            self._changed()
        elif worker.state is WorkerState.SUSPENDED and worker.ordered is None:
            then(container_id, Done(self._ports.wall()))
        else:
            self._stop(worker, limit_s, then)

    def _stop(self, worker: Worker, limit_s: float, then: Told) -> None:
        if worker.may(Stimulus.SUSPEND_ORDERED):
            worker.follow(Stimulus.SUSPEND_ORDERED)

        def stopped(outcome: Outcome) -> None:
            if isinstance(outcome, Done):
                self.note_stopped(worker)
            else:
                self._note_kept(worker, outcome)
            then(worker.container_id, outcome)
            self._changed()

        self._orders.give(worker, "suspend", limit_s, stopped, limit_s=limit_s)

    def note_stopped(self, worker: Worker) -> None:
        """It has stopped, and its devices are free."""
        worker.suspend_failures = 0
        if worker.state is not WorkerState.ENDED:
            worker.follow(Stimulus.FOUND_SUSPENDED)
            self._binding.release(worker.container_id)

    def _note_kept(self, worker: Worker, failure: Undone) -> None:
        if worker.may(Stimulus.KEPT):
            worker.follow(Stimulus.KEPT)
        if failure.code == "ENDED":
            return
        worker.suspend_failures += 1
        level = "error" if worker.is_alarming else "warning"
        self._ports.say(
            level,
            "a worker did not stop",
            container_id=worker.container_id,
            code=failure.code,
            detail=failure.detail,
            times=worker.suspend_failures,
        )

    # ------------------------------------------------------------------ starting

    def run(self, wanted: RunWorker, limit_s: float, then: Told) -> None:
        """Give a worker devices and start or continue it, as soon as those who hold them have stopped."""
        worker = self._workers.get(wanted.container_id)
        if worker is None or worker.expected is None:
            then(wanted.container_id, Undone("UNKNOWN", "nobody expects this container here"))
            return
        if worker.state is WorkerState.ENDED:
            then(wanted.container_id, Undone("ENDED", "it ended"))
            return
        claim = self.claim(worker, wanted)
        self._wishes[claim.container_id] = _Wish(claim, self._ports.monotonic() + limit_s, then)
        self.advance()

    def claim(self, worker: Worker, wanted: RunWorker) -> Claim:
        """A worker's claim on devices."""
        expected = worker.expected
        peak_mib = worker.progress.memory_peak_mib
        return Claim(
            wanted.container_id,
            tuple(wanted.gpus),
            len(wanted.gpus) if expected is None else expected.gpus,
            tuple(wanted.packed_with),
            "" if expected is None else expected.user,
            False if expected is None else expected.with_other_users,
            None if peak_mib is None else round(peak_mib),
            worker.uid,
            worker.forbids("pack"),
        )

    def advance(self) -> None:
        """Grant what can be granted now; refuse what no longer can."""
        now_s = self._ports.monotonic()
        for key, wish in list(self._wishes.items()):
            if self._wishes.get(key) is wish:
                self._look_at(wish, now_s)

    def _look_at(self, wish: _Wish, now_s: float) -> None:
        claim = wish.claim
        worker = self._workers.get(claim.container_id)
        if worker is None or worker.state is WorkerState.ENDED:
            self._refuse(wish, Undone("ENDED", "it ended"))
            return
        if worker.ordered is not None and worker.ordered.op in ("suspend", "save"):
            return  # it is on its way out; then it can come back
        if worker.state not in _UNPLACED:
            self._answer_running(wish, worker)
            return
        obstacle = self._binding.obstacle(claim)
        if obstacle is None:
            del self._wishes[claim.container_id]
            self._binding.take(claim)
            self._changed()
            if worker.is_connected or worker.state is not WorkerState.EXPECTED:
                self.begin(worker, wish.then)
            else:
                self._unregistered[claim.container_id] = wish.then
        elif now_s >= wish.until_s or not self._is_leaving(obstacle.holders):
            self._refuse(wish, Undone(obstacle.code, obstacle.detail))

    def _answer_running(self, wish: _Wish, worker: Worker) -> None:
        """It has devices already: told again, it is content; others it gets only after a stop."""
        has = self._binding.held_by(worker.container_id)
        if set(has) != set(wish.claim.gpus):
            self._refuse(wish, Undone("RUNNING_ELSEWHERE", f"it has devices {list(has)}"))
            return
        del self._wishes[worker.container_id]
        self._binding.take(wish.claim)
        if worker.ordered is None:
            wish.then(worker.container_id, Done(self._ports.wall()))
        else:
            self.begin(worker, wish.then)

    def _is_leaving(self, holders: frozenset[str]) -> bool:
        """Whether all of these are being stopped, so that waiting makes sense."""
        return bool(holders) and all(self._is_stopping(each) for each in holders)

    def _is_stopping(self, container_id: str) -> bool:
        worker = self._workers.get(container_id)
        if worker is None or worker.state is WorkerState.ENDED:
            return True  # its last processes are looked for
        orders = [worker.ordered, *worker.queued]
        return any(each is not None and each.op in ("suspend", "release") for each in orders)

    def _refuse(self, wish: _Wish, why: Undone) -> None:
        del self._wishes[wish.claim.container_id]
        wish.then(wish.claim.container_id, why)

    def begin(self, worker: Worker, then: Told) -> None:
        """Start or continue a worker on the devices that it has been given."""
        gpus = self._binding.held_by(worker.container_id)
        is_first = worker.state is WorkerState.WAITING
        stimulus = Stimulus.START_ORDERED if is_first else Stimulus.RESUME_ORDERED
        if worker.may(stimulus):
            worker.follow(stimulus)

        def begun(outcome: Outcome) -> None:
            self._note_begun(worker, outcome)
            then(worker.container_id, outcome)
            self._changed()

        op, limit_s = ("start", START_S) if is_first else ("resume", RESUME_S)
        self._orders.give(worker, op, limit_s, begun, **self.grant(gpus))

    def _note_begun(self, worker: Worker, outcome: Outcome) -> None:
        if worker.state is WorkerState.ENDED:
            return
        if isinstance(outcome, Done):
            worker.follow(Stimulus.FOUND_RUNNING)
        elif outcome.code not in ("NO_ANSWER", "RANK_LOST"):
            back = Stimulus.NOT_STARTED, Stimulus.NOT_RESUMED
            for stimulus in back:
                if worker.may(stimulus):
                    worker.follow(stimulus)
                    self._binding.release(worker.container_id)

    def grant(self, gpus: tuple[int, ...]) -> dict[str, object]:
        """What a launcher is told of its devices."""
        return {
            "gpus": list(gpus),
            "uuids": [self._uuids[gpu] for gpu in gpus],
            "environment": self._devices.environment(gpus),
        }

    def late(self, worker: Worker, op: str) -> None:
        """An order that was given up came true: the core was told otherwise, so it is undone."""
        if op == "suspend" and worker.state is WorkerState.RUNNING:
            self.begin(worker, self._undone)
        elif op in ("start", "resume") and worker.state is not WorkerState.ENDED:
            worker.follow(Stimulus.FOUND_RUNNING)
            self._changed()

    def _undone(self, container_id: str, outcome: Outcome) -> None:
        self._ports.say(
            "info", "a late stop is undone", container_id=container_id, outcome=str(outcome)
        )

    def registered(self, worker: Worker) -> None:
        """A launcher has come up; what was waiting for it begins."""
        then = self._unregistered.pop(worker.container_id, None)
        if worker.state is not WorkerState.WAITING or worker.ordered is not None:
            return
        if then is not None:
            self.begin(worker, then)
        elif self._binding.held_by(worker.container_id):
            self.begin(worker, nobody)  # it was taken for one that never registers

    def is_awaited(self, container_id: str) -> bool:
        """Whether devices are kept for a container of which nothing has registered."""
        return container_id in self._unregistered

    def unhooked(self, worker: Worker) -> None:
        """Nothing of it registers: it runs with its devices, as far as anybody can tell."""
        then = self._unregistered.pop(worker.container_id, None)
        if then is not None:
            then(worker.container_id, Done(self._ports.wall()))

    def ended(self, container_id: str) -> None:
        """Whoever waited for it hears so."""
        then = self._unregistered.pop(container_id, None)
        if then is not None:
            then(container_id, Undone("ENDED", "it ended"))


def _not_suspendable(worker: Worker | None) -> Undone | None:
    """Why a worker is not even asked to stop."""
    if worker is None:
        return Undone("UNKNOWN", "no such container here")
    if worker.state is WorkerState.ENDED:
        return Undone("ENDED", "it ended")
    if worker.state is WorkerState.UNHOOKED:
        return Undone("NOT_SUSPENDABLE", "nothing of it registered")
    if worker.forbids("suspend") and worker.state not in (
        WorkerState.EXPECTED,
        WorkerState.WAITING,
    ):
        return Undone("FORBIDDEN", "its owner or its queue forbids it")
    return None
