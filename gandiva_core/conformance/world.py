"""A tiny world that answers a scheduler's effects: containers at once, switches after given delays, jobs that end.

It knows no model, no locality and no memory, only seconds of running; `gandiva_core.sim` is the job model. Everything
happens in virtual time, and equal times keep the order in which they were scheduled.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterable, Sequence

import msgspec

from gandiva_core.messages import events as e
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
from gandiva_core.messages.policy import Outcome, Scheduler
from gandiva_core.model.cluster import Server
from gandiva_core.model.job import JobSpec
from gandiva_core.model.units import JobId, ServerId

Device = tuple[ServerId, int]
_OF_JOBS = (e.JobKilled, e.JobFailed, e.GangBroken, e.JobMoved)

Witness = Callable[[e.Event, Outcome], None]


class Work(msgspec.Struct, frozen=True):
    """A job of the tiny world: when it comes and how many seconds of running it needs.

    Attributes:
        servers: one a worker: it is there already when it comes, and nobody placed it (`JobAdopted`). Empty for a job
            that is submitted.
    """

    arrival_s: float
    spec: JobSpec
    run_s: float
    servers: tuple[ServerId, ...] = ()

    def arrival(self) -> e.JobSubmitted | e.JobAdopted:
        """How the scheduler hears of it."""
        if not self.servers:
            return e.JobSubmitted(self.arrival_s, self.spec)
        containers = containers_of(self.spec.job_id, len(self.servers))
        return e.JobAdopted(self.arrival_s, self.spec, containers, self.servers)


def containers_of(job_id: JobId, count: int) -> tuple[str, ...]:
    """Container ids of this world."""
    return tuple(f"{job_id}.{rank}" for rank in range(count))


class Delays(msgspec.Struct, frozen=True):
    """How long switching takes, in s. Functions of the job, so that one of them can be slow to stop.

    Attributes:
        stop_s: from the order to the stop.
        start_s: from the last device's release to the start.
        reports_each: one report a job as it happens, rather than one a switch at its end.
        move_s: from the new containers to the first mini-batch in them.
    """

    stop_s: Callable[[JobId], float] = lambda _: 0.0
    start_s: Callable[[JobId], float] = lambda _: 0.0
    reports_each: bool = False
    move_s: Callable[[JobId], float] = lambda _: 0.0


class _Course:
    """How far one job is."""

    __slots__ = ("devices", "left_s", "run_s", "since_s", "version")

    def __init__(self, run_s: float) -> None:
        self.run_s = run_s
        self.left_s = run_s
        self.since_s: float | None = None
        #: Start of the current run; may lie ahead while a switch is under way.
        self.devices: tuple[Device, ...] = ()
        self.version = 0
        #: What was scheduled for an older version happens no more.


class SmallWorld:
    """Drives a scheduler over a few jobs.

    Args:
        scheduler: usually an `Engine`.
        servers: join at time 0, in order.
        works: jobs, in any order of arrival.
        delays: of switches.
        refuse: asked for each `CommitGang`; a code makes it a `GangRefused`.
        facts: further events from outside (lost and joined servers, queues, kills of jobs that have arrived).
        witness: called after every event.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        servers: Sequence[Server],
        works: Iterable[Work],
        *,
        delays: Delays | None = None,
        refuse: Callable[[CommitGang, float], str | None] = lambda _commit, _now_s: None,
        facts: Iterable[e.Event] = (),
        witness: Witness | None = None,
    ) -> None:
        self._scheduler = scheduler
        self._delays = delays or Delays()
        self._refuse = refuse
        self._witness = witness
        self.now_s = 0.0
        self.journal: list[tuple[e.Event, Outcome]] = []
        self.finished_at_s: dict[JobId, float] = {}
        self.ran_s: dict[JobId, float] = {}
        #: Seconds of running by job, lost ones included.
        self._courses: dict[JobId, _Course] = {}
        self._free_at_s: dict[Device, float] = {}
        self._timers: dict[str, float] = {}
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self._pending: deque[e.Event] = deque()
        for server in servers:
            self._tell(0.0, e.ServerJoined(0.0, server))
        by_time = sorted(facts, key=lambda fact: fact.at_s)
        # At equal times who is there already comes first, a job after its cluster and before what happens to it.
        arrivals = sorted(works, key=lambda work: (not work.servers, work.arrival_s))
        for work in arrivals:
            self._courses[work.spec.job_id] = _Course(work.run_s)
            if work.servers:
                self._tell(work.arrival_s, work.arrival())
        for fact in by_time:
            if not isinstance(fact, _OF_JOBS):
                self._tell(fact.at_s, fact)
        for work in arrivals:
            if not work.servers:
                self._tell(work.arrival_s, work.arrival())
        for fact in by_time:
            if isinstance(fact, _OF_JOBS):
                self._tell(fact.at_s, fact)

    def run(self, until_s: float = float("inf"), *, events_max: int = 1_000_000) -> None:
        """Go on until nothing is left to happen, or up to and including `until_s`.

        Raises:
            AssertionError: after `events_max` events, which means that the scheduler goes round in circles.
        """
        while self._heap and self._heap[0][0] <= until_s:
            self.now_s, _, happen = heapq.heappop(self._heap)
            happen()
            while self._pending:
                self._handle(self._pending.popleft())
                if len(self.journal) > events_max:
                    raise AssertionError(f"no end after {events_max} events at {self.now_s} s")

    def tell(self, event: e.Event) -> None:
        """A further fact, at a time not before now; it becomes known as the world goes on."""
        self._tell(event.at_s, event)

    @property
    def unfinished(self) -> tuple[JobId, ...]:
        """Jobs that have neither finished nor been killed, in order of arrival."""
        return tuple(self._courses)

    def running_s(self, job_id: JobId) -> float:
        """Seconds a job has run by now, the current run included."""
        course = self._courses.get(job_id)
        done_s = self.ran_s.get(job_id, 0.0)
        if course is None or course.since_s is None:
            return done_s
        return done_s + max(0.0, self.now_s - course.since_s)

    # ------------------------------------------------------------------ the clockwork

    def _at(self, at_s: float, happen: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._heap, (at_s, self._count, happen))

    def _tell(self, at_s: float, event: e.Event) -> None:
        self._at(at_s, lambda: self._pending.append(event))

    def _handle(self, event: e.Event) -> None:
        if isinstance(event, e.JobKilled | e.JobFailed):
            self._leave(event.job_id)
        outcome = self._scheduler.handle(event)
        self.journal.append((event, outcome))
        if self._witness is not None:
            self._witness(event, outcome)
        for effect in outcome.effects:
            self._obey(effect)

    def _obey(self, effect: Effect) -> None:
        if isinstance(effect, CommitGang):
            self._commit(effect)
        elif isinstance(effect, ReleaseGang):
            self._break(effect.job_id)
        elif isinstance(effect, SwitchResidents):
            self._switch(effect)
        elif isinstance(effect, StartTimer):
            self._set_timer(effect)
        else:
            self._move(effect)

    def _set_timer(self, effect: StartTimer) -> None:
        self._timers[effect.key] = effect.at_s

        def fire() -> None:
            if self._timers.get(effect.key) == effect.at_s:
                del self._timers[effect.key]
                self._pending.append(e.TimerFired(self.now_s, effect.key))

        self._at(effect.at_s, fire)

    # ------------------------------------------------------------------ containers

    def _commit(self, effect: CommitGang) -> None:
        code = self._refuse(effect, self.now_s)
        if code is not None:
            self._pending.append(e.GangRefused(self.now_s, effect.job_id, code))
            return
        containers = containers_of(effect.job_id, len(effect.workers))
        self._pending.append(e.GangCommitted(self.now_s, effect.job_id, containers))

    def _break(self, job_id: JobId) -> None:
        """Everything since the first start is lost: this world has no checkpoints."""
        course = self._courses.get(job_id)
        if course is not None:
            self._stop(job_id, course, self.now_s)
            course.left_s = course.run_s
            course.version += 1

    def _leave(self, job_id: JobId) -> None:
        course = self._courses.pop(job_id, None)
        if course is not None:
            self._stop(job_id, course, self.now_s)
            course.version += 1

    # ------------------------------------------------------------------ moves

    def _move(self, effect: OpenMove | CarryOver | CloseMove) -> None:
        """New containers at once; the job computes on until it computes there, after the delay of a move."""
        if isinstance(effect, OpenMove):
            containers = containers_of(effect.job_id, len(effect.workers))
            self._pending.append(
                e.MoveCommitted(self.now_s, effect.move_id, effect.job_id, containers)
            )
        elif isinstance(effect, CarryOver):
            at_s = self.now_s + self._delays.move_s(effect.job_id)
            self._at(at_s, lambda: self._moved(effect))

    def _moved(self, effect: CarryOver) -> None:
        course = self._courses.get(effect.job_id)
        if course is None or course.since_s is None:
            return
        for device in course.devices:
            self._free_at_s[device] = self.now_s
        course.devices = tuple((b.server_id, gpu) for b in effect.bindings for gpu in b.gpus)
        self._pending.append(e.GangMoved(self.now_s, effect.move_id, effect.job_id, 0.0))

    # ------------------------------------------------------------------ running

    def _stop(self, job_id: JobId, course: _Course, at_s: float) -> None:
        """End the current run, or call off one that lies ahead."""
        if course.since_s is not None:
            ran_s = max(0.0, at_s - course.since_s)
            course.left_s -= ran_s
            self.ran_s[job_id] = self.ran_s.get(job_id, 0.0) + ran_s
        course.since_s = None
        for device in course.devices:
            self._free_at_s[device] = max(at_s, self.now_s)
        course.devices = ()

    def _switch(self, effect: SwitchResidents) -> None:
        stopped: list[tuple[JobId, float]] = []
        started: list[tuple[JobId, float]] = []
        for job_id in effect.suspend:
            at_s = self._suspend(job_id)
            if at_s is not None:
                stopped.append((job_id, at_s))
        for run in effect.run:
            devices = tuple((b.server_id, gpu) for b in run.bindings for gpu in b.gpus)
            at_s = self._start(run.job_id, devices)
            if at_s is not None:
                started.append((run.job_id, at_s))
        self._report(effect.switch_id, stopped, started)

    def _suspend(self, job_id: JobId) -> float | None:
        """When it stops; None where it ends first, or is gone."""
        course = self._courses.get(job_id)
        if course is None or course.since_s is None:
            return None
        at_s = self.now_s + self._delays.stop_s(job_id)
        if course.since_s + course.left_s <= at_s:
            for device in course.devices:
                self._free_at_s[device] = course.since_s + course.left_s
            return None
        course.version += 1
        self._stop(job_id, course, at_s)
        return at_s

    def _start(self, job_id: JobId, devices: tuple[Device, ...]) -> float | None:
        course = self._courses.get(job_id)
        if course is None:
            return None
        free_s = max(self._free_at_s.get(device, 0.0) for device in devices)
        at_s = max(self.now_s, free_s) + self._delays.start_s(job_id)
        course.version += 1
        course.since_s = at_s
        course.devices = devices
        version = course.version

        def finish() -> None:
            if course.version == version:
                self._leave(job_id)
                self.finished_at_s[job_id] = self.now_s
                self._pending.append(e.JobFinished(self.now_s, job_id))

        self._at(at_s + course.left_s, finish)
        return at_s

    def _report(
        self,
        switch_id: int,
        stopped: list[tuple[JobId, float]],
        started: list[tuple[JobId, float]],
    ) -> None:
        versions = {job_id: self._courses[job_id].version for job_id, _ in stopped + started}

        def report(
            stops: list[tuple[JobId, float]], starts: list[tuple[JobId, float]]
        ) -> Callable[[], None]:
            def is_so(item: tuple[JobId, float]) -> bool:
                course = self._courses.get(item[0])
                return course is not None and course.version == versions[item[0]]

            def tell() -> None:
                real_stops = tuple(filter(is_so, stops))
                real_starts = tuple(filter(is_so, starts))
                if real_stops or real_starts:
                    self._pending.append(
                        e.ResidentsSwitched(self.now_s, switch_id, real_stops, real_starts)
                    )

            return tell

        if self._delays.reports_each:
            for item in stopped:
                self._at(item[1], report([item], []))
            for item in started:
                self._at(item[1], report([], [item]))
        elif stopped or started:
            last_s = max(at_s for _, at_s in stopped + started)
            self._at(last_s, report(stopped, started))
