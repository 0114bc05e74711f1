"""The engine against what can come from outside, in any order (G-10, G-11; §9: every job ends after a drain).

The engine checks every invariant from scratch after every event; the machine keeps its own account of what computes.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from gandiva_core.config.settings import Settings
from gandiva_core.engine.engine import Engine
from gandiva_core.engine.snapshot import EngineSnapshot
from gandiva_core.messages import events as e
from gandiva_core.messages.effects import OpenMove, SwitchResidents
from gandiva_core.messages.policy import Outcome, Policy
from gandiva_core.model.cluster import SLICING, QueueLimit, Server
from gandiva_core.model.job import JobPhase
from gandiva_core.model.units import JobId, QueueName, ServerId
from gandiva_core.policies.gandiva import create
from tests.builders import job, server
from tests.stateful.chaos import Outside, RandomPolicy

SERVERS = (server("a", 4), server("b", 4), server("c", 2), server("d", 4, can_suspend=False))
QUEUES = (
    QueueLimit(QueueName("root"), 14, 14),
    QueueLimit(QueueName("root.default"), 7, 14, "root"),
    QueueLimit(QueueName("root.small"), 2, 4, "root"),
    QueueLimit(QueueName("root.off"), 1, 5, "root", mechanisms_off=("slicing",)),
)
WAITING = (JobPhase.QUEUED, JobPhase.COMMITTING)
NUMBERS = st.integers(0, 1 << 16)


class EngineMachine(RuleBasedStateMachine):
    """One engine, its servers and its jobs; subclasses name the policy."""

    make_policy: Callable[[], Policy] = RandomPolicy

    @initialize(crowd=st.lists(st.integers(1, 4), max_size=16), steps=st.integers(0, 60))
    def begin(self, crowd: list[int], steps: int) -> None:
        """Start with as much load as makes time-slicing likely, and some of it running."""
        self.settings = Settings()
        self.engine = Engine(self.make_policy(), self.settings, check="full")
        self.outside = Outside()
        self.now_s = 0.0
        self.submitted = 0
        self.past: list[e.Event] = []
        self.alive: set[JobId] = set()
        self.ended: set[JobId] = {JobId("nobody")}
        for each in SERVERS:
            self.send(e.ServerJoined(0.0, each))
        self.send(e.QueuesConfigured(0.0, QUEUES))
        for gpus in crowd:
            self.submit([1] * gpus, "root.default", 1.0, 0)
        self.go_on(steps, 0.0)

    def send(self, event: e.Event) -> Outcome:
        before = self.engine.number
        outcome = self.engine.handle(event)
        assert outcome.number == before + 1
        self.past.append(event)
        self.outside.note(event)
        self.outside.take(outcome.effects)
        self.outside.check_devices(self.engine.view)
        self.ended |= self.alive - set(self.engine.view.jobs)
        self.alive = set(self.engine.view.jobs)
        return outcome

    def some_job(self, number: int, *phases: JobPhase) -> JobId:
        fitting = [job_id for job_id, j in self.engine.view.jobs.items() if j.phase in phases]
        pool = fitting or list(self.engine.view.jobs) or [JobId("nobody")]
        return pool[number % len(pool)]

    # ------------------------------------------------------------------ arrivals

    @rule(
        workers=st.lists(st.integers(1, 4), min_size=1, max_size=4),
        queue=st.sampled_from(["root.default", "root.small", "root.off", "root.default.unknown"]),
        weight=st.sampled_from([1.0, 2.0]),
        priority=st.integers(0, 1),
    )
    def submit(self, workers: list[int], queue: str, weight: float, priority: int) -> None:
        self.submitted += 1
        name = f"j{self.submitted:03d}"
        spec = job(name, workers=workers, queue=queue, weight=weight, priority_class=priority)
        self.send(e.JobSubmitted(self.now_s, spec))
        assert self.engine.view.jobs[JobId(name)].phase is not JobPhase.SUBMITTED

    @rule(
        workers=st.lists(st.integers(1, 2), min_size=1, max_size=4),
        number=NUMBERS,
        is_known=st.booleans(),
        queue=st.sampled_from(["root.default", "root.small"]),
    )
    def adopt(self, workers: list[int], number: int, is_known: bool, queue: str) -> None:
        """A gang is found somewhere: a new one, or one that waits, is being committed, is resident, or has ended."""
        self.submitted += not is_known
        name = self.some_job(number, *WAITING) if is_known else JobId(f"j{self.submitted:03d}")
        pool = [each.server_id for each in SERVERS if each.gpus >= sum(workers)] or [ServerId("a")]
        servers = tuple(pool[number % len(pool)] for _ in workers)
        if sum(workers) > 4:
            servers = tuple(ServerId("ab"[rank % 2]) for rank in range(len(workers)))
        known, before = self.engine.view.jobs.get(name), self.engine.ignored
        is_open = known is None or known.phase in WAITING
        is_open = is_open and all(each in self.engine.view.servers for each in servers)
        sequence = None if known is None else known.sequence
        self.send(
            e.JobAdopted(self.now_s, job(name, workers=workers, queue=queue), servers, servers)
        )
        found = self.engine.view.jobs.get(name)
        if self.engine.ignored > before:
            assert not is_open or name in self.ended
        else:
            assert found is not None
            assert found.servers == servers
            assert sequence in (None, found.sequence)

    @rule(seconds=st.sampled_from([0.5, 7.0, 61.0, 700.0]))
    def wait(self, seconds: float) -> None:
        self.now_s += seconds

    # ------------------------------------------------------------------ answers

    @precondition(lambda self: self.outside.orders)
    @rule(number=NUMBERS, is_committed=st.sampled_from([True, True, True, False]))
    def answer_order(self, number: int, is_committed: bool) -> None:
        order = self.outside.oldest_order_of(number)
        if is_committed:
            ids = tuple(f"c{i}" for i in range(len(order.servers)))
            self.send(e.GangCommitted(self.now_s, order.job_id, ids))
        else:
            self.send(e.GangRefused(self.now_s, order.job_id, "NO_ROOM"))

    @precondition(lambda self: self.outside.switches)
    @rule(number=NUMBERS, late_s=st.sampled_from([0.0, 0.3, 20.0]), is_whole=st.booleans())
    def report_switch(self, number: int, late_s: float, is_whole: bool) -> None:
        """The whole answer, or first the stops alone; late either way. Starts wait for what holds their devices."""
        switches = self.outside.switches
        index = number % len(switches)
        switch = switches[index]
        self.now_s += late_s
        ready = tuple(run for run in switch.run if is_whole and self.outside.is_free(switch, run))
        switches[index] = rest = msgspec.structs.replace(
            switch, suspend=(), run=tuple(run for run in switch.run if run not in ready)
        )
        if not rest.run:
            del switches[index]
        self.outside.carry_out(switch.suspend, ready)
        at_s = self.now_s
        self.send(
            e.ResidentsSwitched(
                at_s,
                switch.switch_id,
                tuple((job_id, at_s - 0.1) for job_id in switch.suspend),
                tuple((run.job_id, at_s) for run in ready),
            )
        )

    @precondition(lambda self: self.outside.switches)
    @rule(number=NUMBERS)
    def fail_switch(self, number: int) -> None:
        """Nobody of it stops, and nobody starts (G-12)."""
        switch = self.outside.switches.pop(number % len(self.outside.switches))
        kept, not_started = switch.suspend, tuple(run.job_id for run in switch.run)
        self.send(e.SwitchFailed(self.now_s, switch.switch_id, kept, not_started, "NO_BOUNDARY"))

    @rule(number=NUMBERS, can_suspend=st.booleans(), can_move=st.booleans())
    def learn(self, number: int, can_suspend: bool, can_move: bool) -> None:
        """A job shows what it can do, at any time of its life."""
        job_id = self.some_job(number, *JobPhase)
        fixed = "" if can_move else "no loop"
        self.send(e.JobLearned(self.now_s, job_id, can_suspend, fixed=fixed))

    @rule(number=NUMBERS)
    def ask_move(self, number: int) -> None:
        """Somebody wants a job elsewhere (G-69)."""
        self.send(e.MoveAsked(self.now_s, self.some_job(number, *JobPhase)))

    @precondition(lambda self: self.outside.moves)
    @rule(number=NUMBERS, late_s=st.sampled_from([0.0, 20.0]), is_well=st.booleans())
    def answer_move(self, number: int, late_s: float, is_well: bool) -> None:
        """A stage of a move is done, or fails: then the job computes where it did (G-13)."""
        move = self.outside.moves.pop(number % len(self.outside.moves))
        self.now_s += late_s
        if not is_well:
            self.send(e.MoveFailed(self.now_s, move.move_id, move.job_id, "ASK_GONE"))
        elif isinstance(move, OpenMove):
            self.send(e.MoveCommitted(self.now_s, move.move_id, move.job_id, move.servers))
        else:
            self.outside.carry_over(move)
            self.send(e.GangMoved(self.now_s, move.move_id, move.job_id, 0.5))
            assert self.engine.view.jobs[move.job_id].servers == move.servers

    @rule(number=NUMBERS, is_held=st.booleans())
    def hold(self, number: int, is_held: bool) -> None:
        """Its owner suspends a job, or resumes it; who is held is never told to run."""
        job_id = self.some_job(number, *JobPhase)
        kind = e.JobHeld if is_held else e.JobReleased
        outcome = self.send(kind(self.now_s, job_id))
        for effect in outcome.effects:
            if is_held and isinstance(effect, SwitchResidents):
                assert job_id not in {run.job_id for run in effect.run}

    @precondition(lambda self: self.outside.timers)
    @rule(number=NUMBERS, late_s=st.sampled_from([0.0, 0.0, 5.0]))
    def fire_timer(self, number: int, late_s: float) -> None:
        key = min(self.outside.timers, key=lambda key: (self.outside.timers[key], key))
        self.now_s = max(self.now_s, self.outside.timers.pop(key)) + late_s
        self.send(e.TimerFired(self.now_s, key))
        assert self.engine.view.wakes.get(key, self.now_s) >= self.now_s

    @rule(steps=st.integers(1, 8), seconds=st.sampled_from([0.0, 1.0]))
    def go_on(self, steps: int, seconds: float) -> None:
        """The outside works well for a while."""
        self.now_s += seconds
        for _ in range(steps):
            if self.outside.orders:
                self.answer_order(steps, True)
            elif self.outside.switches:
                self.report_switch(0, seconds, True)
            elif self.outside.moves:
                self.answer_move(0, seconds, True)
            elif self.outside.timers:
                self.fire_timer(0, 0.0)

    # ------------------------------------------------------------------ ends and faults

    @precondition(lambda self: self.outside.running)
    @rule(number=NUMBERS)
    def finish(self, number: int) -> None:
        job_id = list(self.outside.running)[number % len(self.outside.running)]
        self.send(e.JobFinished(self.now_s, job_id))
        assert job_id not in self.engine.view.jobs

    @rule(
        number=NUMBERS,
        kind=st.sampled_from(["fail", "kill", "break", "reclaim", "lose", "lose", "less"]),
    )
    def fault(self, number: int, kind: str) -> None:
        """One of what goes wrong: a job's end, a worker's, a server's, a server that comes back smaller."""
        job_id = self.some_job(number, *JobPhase)
        each = SERVERS[number % len(SERVERS)]
        at_s = self.now_s
        if kind == "fail":
            self.send(e.JobFailed(at_s, job_id))
        elif kind == "kill":
            self.send(e.JobKilled(at_s, job_id))
        elif kind == "break":
            self.send(e.GangBroken(at_s, job_id, "a worker died"))
        elif kind == "reclaim":
            self.send(e.ReclaimAsked(at_s, job_id, 1))
        elif kind == "lose":
            self.send(e.ServerLost(at_s, each.server_id, "gone"))
        else:
            gpus, memory_mib = ((each.gpus - 1, each.memory_mib), (each.gpus, 2048))[number % 2]
            less = msgspec.structs.replace(each, gpus=gpus, memory_mib=memory_mib)
            self.send(e.ServerJoined(at_s, less))

    @rule(number=NUMBERS)
    def join_server(self, number: int) -> None:
        """A server that comes back, or one that was there all the time."""
        self.send(e.ServerJoined(self.now_s, SERVERS[number % len(SERVERS)]))

    @rule(number=NUMBERS, lacking=st.integers(0, 2), can_suspend=st.booleans())
    def revise_server(self, number: int, lacking: int, can_suspend: bool) -> None:
        """A server that is there comes with other devices or abilities: who is on it stays on it."""
        each = SERVERS[number % len(SERVERS)]
        known = self.engine.view.servers.get(each.server_id)
        if known is None:
            return
        residents = dict(known.residents)
        gpus = each.gpus - lacking
        other = msgspec.structs.replace(each, gpus=gpus, can_suspend=can_suspend)
        running = {
            j.spec.job_id for j in self.engine.view.jobs.values() if j.run_since_s is not None
        }
        self.send(e.ServerJoined(self.now_s, other))
        jobs = self.engine.view.jobs
        assert residents.items() <= self.engine.view.servers[each.server_id].residents.items()
        assert all(jobs[job_id].run_since_s is not None for job_id in running)

    @rule(
        number=NUMBERS,
        limit=st.sampled_from([0.5, 3.0, 4.5, 14.0]),
        is_off=st.booleans(),
        is_move=st.booleans(),
    )
    def administer(self, number: int, limit: float, is_off: bool, is_move: bool) -> None:
        """A job moves to another queue, or a queue gets another limit, or is not to be sliced any more."""
        if is_move:
            queue = QUEUES[1 + number % 3].name
            self.send(e.JobMoved(self.now_s, self.some_job(number, *JobPhase), queue))
        else:
            rows = list(QUEUES)
            at = 1 + number % 2
            off = (SLICING,) if is_off else ()
            rows[at] = msgspec.structs.replace(rows[at], max_gpus=limit, mechanisms_off=off)
            self.send(e.QueuesConfigured(self.now_s, tuple(rows)))

    @rule(number=NUMBERS)
    def repeat(self, number: int) -> None:
        """An old message once more: of what is gone it changes nothing, and it never raises."""
        event = self.past[number % len(self.past)]
        if isinstance(event, e.GangCommitted | e.GangRefused):
            return  # an order is answered once: that is the substrate's contract
        again = msgspec.structs.replace(event, at_s=self.now_s)
        self.send(again)

    @rule()
    def restart(self) -> None:
        """A core that is restored from its snapshot, by way of bytes, is the same core."""
        taken = self.engine.snapshot()
        read = msgspec.json.decode(msgspec.json.encode(taken), type=EngineSnapshot)
        self.engine = Engine.restore(read, self.make_policy(), self.settings, check="full")
        assert self.engine.snapshot() == taken

    # ------------------------------------------------------------------ the end

    def teardown(self) -> None:
        if not hasattr(self, "engine"):
            return
        self.drain()
        assert not self.engine.view.jobs

    def drain(self) -> None:
        for job_id in list(self.engine.view.jobs):
            self.send(e.JobKilled(self.now_s, job_id))
        for each in self.engine.view.servers.values():
            assert (each.allocated, each.affinity, dict(each.residents)) == (0, 0, {})
            assert not any(each.holders)
            assert not any(each.claims)


class GandivaMachine(EngineMachine):
    """With the real policy no wish is refused, and every job ends by itself once faults stop."""

    make_policy = staticmethod(lambda: create(Settings(), {}))

    def send(self, event: e.Event) -> Outcome:
        outcome = super().send(event)
        assert not outcome.refusals, outcome.refusals
        return outcome

    def drain(self) -> None:
        for each in (*SERVERS, server("z", 16)):
            self.rejoin(each)
        for job_id, each_job in list(self.engine.view.jobs.items()):
            if each_job.is_held:
                self.send(e.JobReleased(self.now_s, job_id))
        for limit in (14.0, 100.0):
            self.send(
                e.QueuesConfigured(self.now_s, (QueueLimit(QueueName("root"), limit, limit),))
            )
        for _ in range(2000):
            if not self.engine.view.jobs:
                return
            self.step_on()
        states = {j.spec.job_id: str(j.phase) for j in self.engine.view.jobs.values()}
        raise AssertionError(f"jobs that never end: {states}")

    def rejoin(self, each: Server) -> None:
        known = self.engine.view.servers.get(each.server_id)
        if known is None or known.server != each:
            self.send(e.ServerJoined(self.now_s, each))

    def step_on(self) -> None:
        """Whatever is due: answers first, then the next timer; each running job ends when nothing else is left."""
        if self.outside.orders:
            self.answer_order(0, True)
        elif self.outside.switches:
            self.report_switch(0, 0.0, True)
        elif self.outside.moves:
            self.answer_move(0, 0.0, True)
        else:
            running = [j for j in self.engine.view.jobs.values() if j.phase is JobPhase.RUNNING]
            if running:
                self.send(e.JobFinished(self.now_s, running[0].spec.job_id))
            elif self.outside.timers:
                self.fire_timer(0, 0.0)


SIZES = settings(stateful_step_count=40, suppress_health_check=[HealthCheck.too_slow])

TestRandomPolicy = EngineMachine.TestCase
TestRandomPolicy.settings = settings(SIZES, max_examples=60)
TestGandiva = GandivaMachine.TestCase
TestGandiva.settings = settings(SIZES, max_examples=60)
