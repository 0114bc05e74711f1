"""The world: jobs that arrive, compute, stop, start and end; the same object whatever owns the containers (C-3, C-7).

It knows what the scheduler does not: how much work a job has and how its model behaves. Between orders a job's rate is
constant, so nothing is done mini-batch by mini-batch (GE-13).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gandiva_core.messages.decisions import Run
from gandiva_core.messages.effects import (
    CarryOver,
    CloseMove,
    ReleaseGang,
    StartTimer,
    SwitchResidents,
    WorldEffect,
)
from gandiva_core.messages.events import (
    Event,
    GangMoved,
    MinibatchesReached,
    ResidentsSwitched,
    ServerJoined,
    ServerLost,
    TimerFired,
)
from gandiva_core.model.cluster import Server
from gandiva_core.model.errors import InputError, InvariantError
from gandiva_core.model.job import JobSpec
from gandiva_core.model.placement import Binding
from gandiva_core.model.units import JobId, ServerId
from gandiva_core.model.workload import PlannedJob
from gandiva_core.runtime.ports import WorldStep
from gandiva_core.sim.devices import Devices
from gandiva_core.sim.faults import Fault, Lateness, WorldOptions
from gandiva_core.sim.moves import Moves
from gandiva_core.sim.network import Network
from gandiva_core.sim.performance import Performance, split_servers, suspend_resume_s
from gandiva_core.sim.progress import NEVER, JobRun
from gandiva_core.sim.queue import Agenda, Due
from gandiva_core.sim.reports import Report

_NO_SWITCH = -1
"""In place of a switch's number, for devices that a move gives."""


class _Step:
    """What one `advance` gathers."""

    __slots__ = ("arrivals", "completed", "events")

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.completed: list[JobId] = []
        self.arrivals: list[JobSpec] = []


class JobWorld:
    """The job model; implements `gandiva_core.runtime.ports.World`.

    Args:
        planned: the trace. Jobs of equal arrival come in the order given.
        servers: all servers that jobs may run on.
        seed: for the faults that `options` asks to draw; a plain world draws nothing.
        options: faults and costs.

    Raises:
        InputError: two jobs of one id, work or a rate that is not above 0, an arrival before 0.
    """

    def __init__(
        self,
        planned: Sequence[PlannedJob],
        servers: Iterable[Server],
        seed: int = 0,
        options: WorldOptions | None = None,
    ) -> None:
        self._options = options or WorldOptions()
        self._performance = Performance(servers)
        self._lateness = Lateness(self._options, seed)
        self._agenda = Agenda()
        self._network = Network()
        self._devices = Devices()
        self._moves = Moves(self._agenda, self._options.warm_s)
        self._reports: dict[int, Report] = {}
        self._switches = 0
        self._timers: dict[int, str] = {}
        self._timer_numbers: dict[str, int] = {}
        self._timers_started = 0
        self._runs: list[JobRun] = []
        self._by_id: dict[JobId, JobRun] = {}
        self._admit(planned)
        for number, fault in enumerate(self._options.faults):
            self._agenda.add(fault.at_s, Due.FAULT, number)

    def _admit(self, planned: Sequence[PlannedJob]) -> None:
        milestone = float(self._options.milestone_minibatches)
        for number, job in enumerate(sorted(planned, key=lambda job: job.arrival_s)):
            place = f"job {job.spec.job_id}"
            if job.spec.job_id in self._by_id:
                raise InputError(place, "a second job of that id", "ids that differ")
            if not 0.0 <= job.arrival_s < NEVER:
                raise InputError(f"{place}: arrival_s", repr(job.arrival_s), "a time from 0")
            if not 0.0 <= job.start_s < NEVER:
                raise InputError(f"{place}: start_s", repr(job.start_s), "seconds from 0")
            self._performance.check(job.profile, place)
            cost_s = self._options.suspend_resume_s
            measured_s = suspend_resume_s(job.profile) if cost_s is None else cost_s
            run = JobRun(number, job, measured_s, milestone)
            self._runs.append(run)
            self._by_id[job.spec.job_id] = run
            self._agenda.add(job.arrival_s, Due.ARRIVAL, number)

    def done(self, job_id: JobId, now_s: float) -> float:
        """Mini-batches that a job has done by `now_s`: for reports and tests, never for a scheduler."""
        return self._by_id[job_id].done_at(now_s)

    def rate_per_s(self, job_id: JobId) -> float:
        """The rate a job computes at; 0 while it does not."""
        return self._by_id[job_id].rate_per_s

    # ------------------------------------------------------------------------------ the port

    def next_at_s(self) -> float | None:
        """When something happens next; None when nothing ever will without a new effect."""
        agenda = self._agenda
        while (entry := agenda.peek()) is not None:
            at_s, due, number = entry
            if due is Due.JOB:
                run = self._runs[number]
                if at_s != run.due_s:
                    agenda.pop()
                    self._requeue(run, at_s)
                    continue
            elif due is Due.TIMER and number not in self._timers:
                agenda.pop()
                continue
            return at_s
        return None

    def advance(self, now_s: float) -> WorldStep:
        """Everything due at `now_s`: completions, then events, then arrivals."""
        step = _Step()
        agenda = self._agenda
        while (entry := agenda.peek()) is not None and entry[0] <= now_s:
            at_s, due, number = agenda.pop()
            if due is Due.JOB:
                self._job_due(step, self._runs[number], at_s)
            elif due is Due.SWITCHED:
                step.events.append(self._switched(number, at_s))
            elif due is Due.TIMER:
                self._timer_due(step, number, at_s)
            else:
                self._rarely_due(step, due, number, at_s)
        return WorldStep(tuple(step.events), tuple(step.completed), tuple(step.arrivals))

    def apply(self, now_s: float, effects: Sequence[WorldEffect]) -> None:
        """Take orders; their answers come from a later `advance`, which may be at the same time.

        Raises:
            InvariantError: a job was to start on a device that another one keeps, or is running already.
        """
        for effect in effects:
            if isinstance(effect, SwitchResidents):
                self._switch(now_s, effect)
            elif isinstance(effect, StartTimer):
                self._start_timer(now_s, effect)
            elif isinstance(effect, CarryOver):
                self._carry(now_s, effect)
            elif isinstance(effect, CloseMove):
                self._close_move(now_s, effect)
            else:
                self._release(now_s, effect)

    # ------------------------------------------------------------------------------ due

    def _job_due(self, step: _Step, run: JobRun, at_s: float) -> None:
        if at_s != run.due_s:
            self._requeue(run, at_s)
            return
        run.queued_at_s = NEVER
        job_id = run.job.spec.job_id
        if run.reached(at_s):
            step.completed.append(job_id)
            self._let_go(run, at_s)
        else:
            reached = self._options.milestone_minibatches
            step.events.append(MinibatchesReached(at_s, job_id, reached))
            self._schedule(run)

    def _requeue(self, run: JobRun, at_s: float) -> None:
        """An entry came up before its job was due: enter it again, if it is due at all."""
        if at_s == run.queued_at_s:
            run.queued_at_s = NEVER
            self._schedule(run)

    def _schedule(self, run: JobRun) -> None:
        """At most one entry a job, never too late: a suspended job's entry stays, and is looked at when it comes up."""
        if run.due_s < run.queued_at_s:
            run.queued_at_s = run.due_s
            self._agenda.add(run.due_s, Due.JOB, run.number)

    def _switched(self, number: int, at_s: float) -> ResidentsSwitched:
        report = self._reports.pop(number)
        self._devices.reported(number)
        for run, _, _ in report.stopped:
            if run.stop_at_s <= at_s:
                run.stopped()
        return report.event(at_s)

    def _timer_due(self, step: _Step, number: int, at_s: float) -> None:
        key = self._timers.pop(number, None)
        if key is not None:
            del self._timer_numbers[key]
            step.events.append(TimerFired(at_s, key))

    def _rarely_due(self, step: _Step, due: Due, number: int, at_s: float) -> None:
        if due is Due.ARRIVAL:
            step.arrivals.append(self._runs[number].job.spec)
        elif due is Due.FAULT:
            self._strike(step, self._options.faults[number])
        elif due is Due.MOVING:
            self._move_due(step, number, at_s)
        elif due is Due.START:
            run = self._runs[number]
            if run.start_at_s == at_s:
                self._network.join(run)
                run.start(at_s, self._network.rate_per_s(run))
                self._schedule(run)
                self._neighbours(run, at_s)
        else:
            run = self._runs[number]
            if run.stop_at_s == at_s:
                run.stopped()
                self._network.leave(run)
                self._neighbours(run, at_s)

    def _neighbours(self, run: JobRun, now_s: float) -> None:
        for other, rate_per_s in self._network.changed(run):
            other.change_rate(now_s, rate_per_s)
            self._schedule(other)

    def _strike(self, step: _Step, fault: Fault) -> None:
        step.events.append(fault)
        if isinstance(fault, ServerJoined):
            self._performance.add(fault.server)
        elif isinstance(fault, ServerLost):
            for run in self._runs:
                if any(binding.server_id == fault.server_id for binding in run.run):
                    self._crash(run, fault.at_s)
        elif (broken := self._by_id.get(fault.job_id)) is not None:
            self._crash(broken, fault.at_s)

    # ------------------------------------------------------------------------------ orders

    def _switch(self, now_s: float, effect: SwitchResidents) -> None:
        number = self._switches
        self._switches += 1
        report = Report(effect.switch_id, [], [])
        last_s = now_s
        for job_id in effect.suspend:
            last_s = max(last_s, self._stop(now_s, self._by_id[job_id], number, report))
        for order in effect.run:
            last_s = max(last_s, self._start(now_s, order, number, report))
        self._reports[number] = report
        self._devices.promise(number, last_s)
        self._agenda.add(last_s, Due.SWITCHED, number)

    def _stop(self, now_s: float, run: JobRun, number: int, report: Report) -> float:
        """Order a job to stop; returns when its devices are free, or `now_s` where it computes nothing anyway."""
        if run.start_at_s < NEVER and run.is_coming_up(now_s):
            return self._give_up_start(now_s, run, number, report)
        if run.rate_per_s == 0.0 or run.stop_at_s < NEVER:
            return now_s
        stop_at_s = run.stop_from(now_s, now_s + self._lateness.of(run.job.spec.job_id))
        self._schedule(run)
        if run.is_ending:
            self._devices.free(run.run, stop_at_s, number)
            return now_s
        if run.split:
            self._agenda.add(stop_at_s, Due.STOP, run.number)
        free_s = stop_at_s + 0.5 * run.suspend_s
        self._devices.free(run.run, free_s, number)
        report.stopped.append((run, free_s, run.life))
        return free_s

    def _give_up_start(self, now_s: float, run: JobRun, number: int, report: Report) -> float:
        """A split gang that still comes up stops at once, and comes up anew when it has devices again."""
        run.start_at_s = NEVER
        self._devices.free(run.run, now_s, number)
        report.stopped.append((run, now_s, run.life))
        return now_s

    def _start(self, now_s: float, order: Run, number: int, report: Report) -> float:
        """Give a job its devices as soon as the last one is free, all at once; returns when all of that is reported."""
        run = self._by_id[order.job_id]
        if run.ended:
            return now_s
        if run.rate_per_s > 0.0 or run.start_at_s < NEVER:
            raise InvariantError(f"job {order.job_id} was told to start while it runs")
        bindings = _joined(order.bindings)
        free_s, reported_s = self._devices.take(order.job_id, bindings, now_s, number)
        run.devices_from_s = free_s
        given_s = free_s + (0.5 * run.suspend_s if run.has_run else self._options.start_cost_s)
        self._compute_on(run, bindings, given_s + (0.0 if run.has_run else run.job.start_s))
        report.started.append((run, given_s, run.life))
        return max(given_s, reported_s)

    def _compute_on(self, run: JobRun, bindings: tuple[Binding, ...], start_s: float) -> None:
        run.run = bindings
        run.split = split_servers(bindings)
        run.base_per_s = self._performance.rate_per_s(run.job.spec, run.job.profile, bindings)
        if run.split:
            run.start_at_s = start_s
            self._agenda.add(start_s, Due.START, run.number)
        else:
            run.start(start_s, run.base_per_s)
            self._schedule(run)

    def _carry(self, now_s: float, effect: CarryOver) -> None:
        """The new process warms up on its devices; nothing changes for the job until it could take over."""
        run = self._by_id[effect.job_id]
        free_s, _ = self._devices.take(effect.job_id, _joined(effect.bindings), now_s, _NO_SWITCH)
        self._moves.begin(effect, run, now_s, free_s)

    def _move_due(self, step: _Step, move_id: int, at_s: float) -> None:
        course = self._moves.due(move_id)
        if course is None:
            return
        run, effect = course.run, course.effect
        if course.stopped_at_s is None:
            stop_at_s = run.stop_from(at_s, at_s)
            self._schedule(run)
            if not run.is_ending:  # else it ends where it is
                if run.split:
                    self._agenda.add(stop_at_s, Due.STOP, run.number)
                self._moves.freeze(course, stop_at_s)
            return
        if run.stop_at_s <= at_s:
            run.stopped()
        self._moves.end(course)
        bindings = run.run
        if not course.is_off:
            self._devices.give_back(effect.job_id, bindings, at_s)
            bindings = _joined(effect.bindings)
            frozen_s = at_s - course.stopped_at_s
            step.events.append(GangMoved(at_s, move_id, effect.job_id, frozen_s))
        self._compute_on(run, bindings, at_s)

    def _close_move(self, now_s: float, effect: CloseMove) -> None:
        course = None if effect.is_done else self._moves.call_off(effect.move_id)
        if course is not None:
            self._devices.give_back(effect.job_id, _joined(course.effect.bindings), now_s)

    def _start_timer(self, now_s: float, effect: StartTimer) -> None:
        old = self._timer_numbers.get(effect.key)
        if old is not None:
            del self._timers[old]
        number = self._timers_started
        self._timers_started += 1
        self._timers[number] = effect.key
        self._timer_numbers[effect.key] = number
        self._agenda.add(max(now_s, effect.at_s), Due.TIMER, number)

    def _release(self, now_s: float, effect: ReleaseGang) -> None:
        run = self._by_id.get(effect.job_id)
        if run is not None:
            self._crash(run, now_s)

    def _crash(self, run: JobRun, now_s: float) -> None:
        if not run.ended:
            self._let_go(run, now_s)
            run.crash(now_s)

    def _let_go(self, run: JobRun, now_s: float) -> None:
        """Its devices and its part of the network are free."""
        self._devices.give_back(run.job.spec.job_id, run.run, max(now_s, run.devices_from_s))
        if run.split:
            self._network.leave(run)
            self._neighbours(run, now_s)


def _joined(bindings: tuple[Binding, ...]) -> tuple[Binding, ...]:
    """One binding a server, in rank order of the first."""
    if len(bindings) < 2 or len({binding.server_id for binding in bindings}) == len(bindings):
        return bindings
    gpus: dict[ServerId, list[int]] = {}
    for binding in bindings:
        gpus.setdefault(binding.server_id, []).extend(binding.gpus)
    return tuple(Binding(server_id, tuple(indices)) for server_id, indices in gpus.items())
