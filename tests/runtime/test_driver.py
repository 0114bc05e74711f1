"""The loop: order at one instant, routing of effects, the end, deadlocks, interruptions."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from gandiva_core.engine.errors import PolicyError
from gandiva_core.messages import events as e
from gandiva_core.messages.effects import CommitGang, ReleaseGang, StartTimer, SwitchResidents
from gandiva_core.messages.policy import Outcome, Scheduler
from gandiva_core.model.errors import InvariantError
from gandiva_core.model.job import JobSpec
from gandiva_core.model.units import JobId, ServerId
from gandiva_core.runtime import driver as driver_module
from gandiva_core.runtime.driver import Driver, Progress
from gandiva_core.runtime.journal import Entry, ReplayJournal, Unfinished
from gandiva_core.runtime.ports import WorldStep
from gandiva_core.runtime.reading import JournalReader
from tests.builders import cluster, job
from tests.runtime.doubles import SmallSubstrate, SmallWorld, engine, header

ONE = cluster(1, 4)


def kinds(entries: Sequence[Entry]) -> list[str]:
    return [f"{entry.event.at_s:g} {type(entry.event).__name__}" for entry in entries]


def test_run_of_two_jobs_in_turn() -> None:
    entries: list[Entry] = []
    world = SmallWorld([(0.0, job("a", 4)), (1.0, job("b", 3))])
    substrate = SmallSubstrate(ONE)
    report = Driver(world, substrate, engine(), observers=[entries.append]).run()
    assert kinds(entries) == [
        "0 ServerJoined",
        "0 JobSubmitted",
        "0 GangCommitted",
        "0 ResidentsSwitched",
        "1 JobSubmitted",
        "10 JobFinished",
        "10 GangCommitted",
        "10 ResidentsSwitched",
        "20 JobFinished",
    ]
    assert [entry.n for entry in entries] == list(range(1, 10))
    assert (report.ended_at_s, report.events, report.jobs_done, report.unfinished) == (20, 9, 2, ())
    assert substrate.is_closed


def test_order_at_one_instant() -> None:
    """Completions leave first, then the world's reports, then arrivals, then what the substrate does by itself."""

    class Busy(SmallSubstrate):
        due_s: float | None = 10.0

        def next_at_s(self) -> float | None:
            return self.due_s

        def advance(self, now_s: float) -> Sequence[e.Event]:
            super().advance(now_s)
            self.due_s = None
            return ()

    seen: list[str] = []
    world = SmallWorld([(0.0, job("a")), (10.0, job("b"))])
    world.apply(0.0, [StartTimer(0, "t", 10.0)])
    substrate = Busy(ONE)
    driver = Driver(
        world,
        substrate,
        engine(),
        observers=[lambda entry: seen.append(type(entry.event).__name__)],
    )
    driver.run()
    at_ten = seen[seen.index("JobFinished") : seen.index("JobFinished") + 4]
    assert at_ten == ["JobFinished", "TimerFired", "JobSubmitted", "GangCommitted"]
    assert substrate.calls == ["submit a", "finish a", "submit b", "advance 10.0", "finish b"]


def test_substrate_acts_by_itself_between_events_of_the_world() -> None:
    """A preemption round, while nothing happens among the jobs."""

    class Rounds(SmallSubstrate):
        rounds: tuple[float, ...] = (4.0, 7.0)

        def next_at_s(self) -> float | None:
            return self.rounds[0] if self.rounds else None

        def advance(self, now_s: float) -> Sequence[e.Event]:
            super().advance(now_s)
            self.rounds = self.rounds[1:]
            return [e.GangBroken(now_s, JobId("a"), "preempted")] if now_s == 4.0 else ()

    substrate = Rounds(ONE)
    entries: list[Entry] = []
    Driver(SmallWorld([(0.0, job("a"))]), substrate, engine(), observers=[entries.append]).run()
    assert substrate.calls[:3] == ["submit a", "advance 4.0", "advance 7.0"]
    assert kinds(entries)[4:7] == ["4 GangBroken", "4 GangCommitted", "4 ResidentsSwitched"]


def test_release_goes_to_both_sides_and_a_commit_only_to_the_substrate() -> None:
    class Once:
        def __init__(self) -> None:
            self.number = 0

        def handle(self, event: e.Event) -> Outcome:
            self.number += 1
            if self.number > 1:
                return Outcome(self.number)
            effects = (
                ReleaseGang(1, JobId("a"), "why"),
                CommitGang(1, JobId("b"), (ServerId("s01"),), ()),
                SwitchResidents(1, 1, (ServerId("s01"),)),
                StartTimer(1, "k", 3.0),
            )
            return Outcome(1, effects=effects)

    world, substrate = SmallWorld([]), SmallSubstrate(ONE)
    Driver(world, substrate, Once()).run()
    assert [type(effect).__name__ for _, effect in world.told] == [
        "ReleaseGang",
        "SwitchResidents",
        "StartTimer",
    ]
    assert [type(effect).__name__ for effect in substrate.told] == ["ReleaseGang", "CommitGang"]


def test_jobs_that_never_end_are_reported_with_what_they_hold() -> None:
    """A gang deadlock is hold and wait (DESIGN §7); a job too large for any server starves."""

    class Holding(SmallSubstrate):
        def submit(self, now_s: float, jobs: Sequence[JobSpec]) -> Sequence[e.Event]:
            told = list(super().submit(now_s, jobs))
            if jobs[0].job_id == "half":
                told.append(e.ContainersHeld(now_s, JobId("half"), 2, 4))
            return told

    world = SmallWorld([(0.0, job("big", 9)), (1.0, job("half", 8)), (2.0, job("ok", 1))])
    report = Driver(world, Holding(ONE), engine()).run()
    assert report.jobs_done == 1
    assert report.unfinished == (
        Unfinished(JobId("big"), "waiting", 0.0, 0, 9, "full 9 GPUs none"),
        Unfinished(JobId("half"), "holding", 1.0, 2, 8, "full 8 GPUs none"),
    )


def test_refused_submission_counts_as_ended() -> None:
    class Refusing(SmallSubstrate):
        def submit(self, now_s: float, jobs: Sequence[JobSpec]) -> Sequence[e.Event]:
            return [e.JobFailed(now_s, job.job_id, "no such queue") for job in jobs]

    report = Driver(SmallWorld([(0.0, job("a"))]), Refusing(ONE), engine()).run()
    assert (report.jobs_done, report.unfinished) == (1, ())


def test_progress_is_told_at_the_end() -> None:
    told: list[Progress] = []
    world = SmallWorld([(0.0, job("a"))])
    Driver(world, SmallSubstrate(ONE), engine(), progress=told.append, jobs_total=1).run()
    assert told[-1] == Progress(1, 1, 10.0)


class TestWhatCannotEnd:
    def test_time_that_goes_back_is_a_bug(self) -> None:
        class Wrong(SmallWorld):
            times = iter((5.0, 4.0))

            def next_at_s(self) -> float | None:
                return 5.0 if self._count < 3 else 4.0

            def advance(self, now_s: float) -> WorldStep:
                self._count += 1
                return WorldStep()

        with pytest.raises(InvariantError, match=r"time went back from 5.0 s to 4.0 s"):
            Driver(Wrong([]), SmallSubstrate(ONE), engine()).run()

    def test_scheduler_and_substrate_that_answer_each_other_for_ever(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class Refusing(SmallSubstrate):
            def apply(self, now_s: float, effects: Sequence[object]) -> Sequence[e.Event]:
                return [e.GangRefused(now_s, JobId("a"), "NO_ROOM")]

        monkeypatch.setattr(driver_module, "EVENTS_PER_INSTANT_MAX", 500)
        with pytest.raises(InvariantError, match=r"more than 500 events at 0.0 s"):
            Driver(SmallWorld([(0.0, job("a"))]), Refusing(ONE), engine()).run()

    def test_world_that_is_always_due_and_does_nothing(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class Stuck(SmallWorld):
            def next_at_s(self) -> float | None:
                return 1.0

        monkeypatch.setattr(driver_module, "EVENTS_PER_INSTANT_MAX", 500)
        with pytest.raises(InvariantError, match=r"more than 500 events at 1.0 s"):
            Driver(Stuck([]), SmallSubstrate(ONE), engine()).run()

    def test_scheduler_that_waits_for_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        class Waiting:
            number = 0

            def handle(self, event: e.Event) -> Outcome:
                self.number += 1
                timer = StartTimer(self.number, "again", event.at_s + 60.0)
                return Outcome(self.number, effects=(timer,))

        monkeypatch.setattr(driver_module, "TIMERS_ALONE_MAX", 100)
        report = Driver(SmallWorld([(0.0, job("a"))]), SmallSubstrate(ONE), Waiting()).run()
        assert [each.job_id for each in report.unfinished] == ["a"]


class TestInterruption:
    def run_with(self, tmp_path: Path, scheduler: Scheduler, error: type[BaseException]) -> Path:
        path = tmp_path / "run.jsonl.zst"
        world = SmallWorld([(float(i), job(f"j{i}")) for i in range(50)])
        driver = Driver(
            world,
            SmallSubstrate(ONE),
            scheduler,
            journal=ReplayJournal(path, header(ONE)),
            trailer=lambda: {"so_far": 1},
        )
        with pytest.raises(error):
            driver.run()
        return path

    def check_partial(self, path: Path, last_event: int) -> None:
        reader = JournalReader(path)
        assert [entry.n for _, entry in reader] == list(range(1, last_event + 1))
        trailer = reader.trailer
        assert trailer is not None
        assert not trailer.complete
        assert trailer.metrics == {"so_far": 1}
        assert trailer.unfinished

    def test_ctrl_c_leaves_a_usable_journal(self, tmp_path: Path) -> None:
        """Ctrl-C takes effect after the event during which it came, even inside the scheduler."""
        path = self.run_with(
            tmp_path, _at(20, lambda: os.kill(os.getpid(), signal.SIGINT)), KeyboardInterrupt
        )
        self.check_partial(path, 20)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler

    def test_error_of_a_policy_leaves_a_usable_journal(self, tmp_path: Path) -> None:
        def fail() -> None:
            raise PolicyError(20, "first-fit", "boom")

        path = self.run_with(tmp_path, _at(20, fail), PolicyError)
        self.check_partial(path, 19)

    def test_handler_of_somebody_else_keeps_its_say(self, tmp_path: Path) -> None:
        noted: list[int] = []
        before = signal.signal(signal.SIGINT, lambda number, _: noted.append(number))
        try:
            world = SmallWorld([(0.0, job("a"))])
            scheduler = _at(2, lambda: os.kill(os.getpid(), signal.SIGINT))
            report = Driver(world, SmallSubstrate(ONE), scheduler).run()
        finally:
            signal.signal(signal.SIGINT, before)
        assert (noted, report.jobs_done) == ([signal.SIGINT], 1)


def _at(number: int, act: Callable[[], None]) -> Scheduler:
    """The usual engine, and something more at one event."""

    class Acting:
        def __init__(self) -> None:
            self.engine = engine()

        def handle(self, event: e.Event) -> Outcome:
            if self.engine.number + 1 == number:
                act()
            return self.engine.handle(event)

    return Acting()
