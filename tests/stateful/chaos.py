"""Pieces of the state machine: a policy that wishes at random, and an outside that answers late or twice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

import msgspec

from gandiva_core.messages.decisions import (
    Decision,
    Enqueue,
    Migrate,
    Place,
    Remember,
    Run,
    Switch,
    Wait,
    WakeAt,
)
from gandiva_core.messages.effects import (
    CarryOver,
    CloseMove,
    CommitGang,
    Effect,
    OpenMove,
    ReleaseGang,
    StartTimer,
    SwitchResidents,
)
from gandiva_core.messages.events import Event, JobFailed, JobFinished, JobKilled
from gandiva_core.messages.policy import Decisions
from gandiva_core.model.job import JobPhase
from gandiva_core.model.placement import Binding
from gandiva_core.model.units import JobId, ServerId
from gandiva_core.model.view import ClusterView, JobView

NOBODY = JobId("nobody")


class RandomPolicy:
    """Legal and illegal wishes by the dozen; the same event and view give the same ones, as the contract asks."""

    name = "random"
    mechanisms: tuple[str, ...] = ()

    def decide(self, event: Event, view: ClusterView) -> Decisions:
        draw = Random(f"{event!r} {view.now_s}")
        for _ in range(draw.randint(0, 6)):
            kind: Callable[[Random, ClusterView], Decision] = draw.choice(
                (_place, _place, _switch, _switch, _switch, _enqueue, _other, _migrate)
            )
            yield kind(draw, view)


def _some_job(draw: Random, view: ClusterView, *phases: JobPhase) -> JobId:
    fitting = [job.spec.job_id for job in view.jobs.values() if job.phase in phases]
    pool = fitting if fitting and draw.random() < 0.95 else [*view.jobs, NOBODY]
    return draw.choice(pool)


def _place(draw: Random, view: ClusterView) -> Decision:
    job_id = _some_job(draw, view, JobPhase.QUEUED, JobPhase.SUBMITTED)
    job = view.jobs.get(job_id)
    count = len(job.spec.workers) if job is not None else 1
    pool = [*view.servers] if draw.random() < 0.95 and view.servers else [ServerId("nowhere")]
    return Place(job_id, tuple(draw.choice(pool) for _ in range(count)), "random")


def _migrate(draw: Random, view: ClusterView) -> Decision:
    job_id = _some_job(draw, view, JobPhase.RUNNING)
    job = view.jobs.get(job_id)
    shares: dict[ServerId, int] = {}
    servers: list[ServerId] = []
    for worker in () if job is None else job.spec.workers:
        servers.append(draw.choice([*view.servers]) if view.servers else ServerId("nowhere"))
        shares[servers[-1]] = shares.get(servers[-1], 0) + worker.gpus
    bindings: list[Binding] = []
    for server_id, share in shares.items():
        server = view.servers.get(server_id)
        holders = () if server is None else server.holders
        free = [g for g, h in enumerate(holders) if h is None or draw.random() < 0.1]
        bindings.append(Binding(server_id, tuple(draw.sample(free, min(share, len(free))))))
    return Migrate(job_id, tuple(servers), tuple(bindings), "random")


def _enqueue(draw: Random, view: ClusterView) -> Decision:
    job_id = _some_job(draw, view, JobPhase.QUEUED, JobPhase.SUBMITTED)
    return Enqueue(job_id, Wait("random", "", ""))


def _other(draw: Random, view: ClusterView) -> Decision:
    key = f"key{draw.randint(0, 2)}"
    if draw.random() < 0.5:
        return WakeAt(key, view.now_s + draw.choice((-1.0, 0.0, 30.0, 60.0)))
    return Remember(key, {"a": draw.random()} if draw.random() < 0.7 else {})


def _switch(draw: Random, view: ClusterView) -> Decision:
    used = [server_id for server_id, each in view.servers.items() if each.residents]
    if not used:
        return Switch()
    domain = view.domain(draw.choice(used))
    residents = [
        view.jobs[job_id] for server_id in domain for job_id in view.servers[server_id].residents
    ]
    suspend = tuple(
        dict.fromkeys(
            job.spec.job_id
            for job in residents
            if job.phase is JobPhase.RUNNING and draw.random() < 0.5
        )
    )
    waiting = {
        job.spec.job_id: job
        for job in residents
        if job.phase in {JobPhase.STARTING, JobPhase.SUSPENDED} and draw.random() < 0.7
    }
    taken: set[tuple[ServerId, int]] = set()
    runs = [run for job in waiting.values() if (run := _bound(draw, view, job, suspend, taken))]
    if draw.random() < 0.1:
        suspend = (*suspend, _some_job(draw, view, JobPhase.SUSPENDED))
    return Switch(suspend, tuple(runs))


def _bound(
    draw: Random,
    view: ClusterView,
    job: JobView,
    suspend: Sequence[JobId],
    taken: set[tuple[ServerId, int]],
) -> Run | None:
    bindings: list[Binding] = []
    for server_id, share in job.shares.items():
        server = view.servers[server_id]
        free = [
            gpu
            for gpu, holder in enumerate(server.holders)
            if server.claims[gpu] is None
            and (holder is None or holder in suspend)
            and (server_id, gpu) not in taken
        ]
        if draw.random() < 0.05:
            free = list(range(server.server.gpus))
        if len(free) < share:
            return None
        gpus = tuple(draw.sample(free, share))
        taken |= {(server_id, gpu) for gpu in gpus}
        bindings.append(Binding(server_id, gpus))
    return Run(job.spec.job_id, tuple(bindings))


class Outside:
    """What was ordered and not yet answered, and which devices really compute; told of every effect and every end."""

    def __init__(self) -> None:
        self.orders: list[CommitGang] = []
        self.switches: list[SwitchResidents] = []
        self.moves: list[OpenMove | CarryOver] = []
        self.timers: dict[str, float] = {}
        self.running: dict[JobId, tuple[Binding, ...]] = {}

    def take(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, CommitGang):
                self.orders.append(effect)
            elif isinstance(effect, SwitchResidents):
                self.switches.append(effect)
            elif isinstance(effect, OpenMove | CarryOver):
                self.moves.append(effect)
            elif isinstance(effect, CloseMove):
                self.moves = [move for move in self.moves if move.move_id != effect.move_id]
            elif isinstance(effect, StartTimer):
                self.timers[effect.key] = effect.at_s
            elif isinstance(effect, ReleaseGang):
                self._leave(effect.job_id)

    def note(self, event: Event) -> None:
        if isinstance(event, JobFinished | JobFailed | JobKilled):
            self._leave(event.job_id)

    def _leave(self, job_id: JobId) -> None:
        """Its processes are gone; what was ordered of them is left out of the reports."""
        self.running.pop(job_id, None)
        self.switches = [
            msgspec.structs.replace(
                switch,
                suspend=tuple(each for each in switch.suspend if each != job_id),
                run=tuple(run for run in switch.run if run.job_id != job_id),
            )
            for switch in self.switches
        ]

    def carry_out(self, stop: Sequence[JobId], start: Sequence[Run]) -> None:
        """Jobs really stop, then others really start."""
        for job_id in stop:
            del self.running[job_id]
        for run in start:
            assert run.job_id not in self.running
            self.running[run.job_id] = run.bindings

    def carry_over(self, move: CarryOver) -> None:
        """A job computes elsewhere; who was told to make room there has stopped."""
        wanted = {(b.server_id, gpu) for b in move.bindings for gpu in b.gpus}
        for job_id, bindings in list(self.running.items()):
            if wanted & {(b.server_id, gpu) for b in bindings for gpu in b.gpus}:
                del self.running[job_id]
        self.running[move.job_id] = move.bindings

    def is_free(self, switch: SwitchResidents, run: Run) -> bool:
        """Whether nothing but what this switch stops computes on the devices of a start."""
        wanted = {(b.server_id, gpu) for b in run.bindings for gpu in b.gpus}
        held = {
            (b.server_id, gpu)
            for job_id, bindings in self.running.items()
            if job_id not in switch.suspend
            for b in bindings
            for gpu in b.gpus
        }
        return not wanted & held

    def oldest_order_of(self, number: int) -> CommitGang:
        """An order that may be answered next: the oldest of its job."""
        job_id = self.orders[number % len(self.orders)].job_id
        order = next(order for order in self.orders if order.job_id == job_id)
        self.orders.remove(order)
        return order

    def check_devices(self, view: ClusterView) -> None:
        """No device computes for two jobs, by the outside's own account (G-11 i), and the engine knows the same."""
        known = {
            job_id: job.bindings
            for job_id, job in view.jobs.items()
            if job.phase in {JobPhase.RUNNING, JobPhase.SUSPENDING, JobPhase.MIGRATING}
        }
        assert known == self.running
        users: dict[tuple[ServerId, int], JobId] = {}
        for job_id, bindings in self.running.items():
            for binding in bindings:
                for gpu in binding.gpus:
                    other = users.setdefault((binding.server_id, gpu), job_id)
                    assert other == job_id, f"{binding.server_id}/{gpu}: {other} and {job_id}"
