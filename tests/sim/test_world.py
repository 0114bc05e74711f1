"""The job model: exact progress, honest switches, nothing lost but by a crash (C-3, G-40, G-44, GE-13)."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest

from gandiva_core.messages.effects import ReleaseGang, StartTimer
from gandiva_core.messages.events import (
    GangBroken,
    MinibatchesReached,
    ResidentsSwitched,
    ServerJoined,
    ServerLost,
    TimerFired,
)
from gandiva_core.model.errors import InputError, InvariantError
from gandiva_core.model.profile import ModelProfile
from gandiva_core.model.units import JobId, ServerId
from gandiva_core.sim.faults import WorldOptions
from gandiva_core.sim.performance import suspend_resume_s
from gandiva_core.sim.world import JobWorld
from tests.sim.stepping import SteppingWorld
from tests.sim.worlds import (
    PLAIN,
    SPLIT,
    Rotation,
    Told,
    planned,
    random_trace,
    rotation,
    run,
    servers,
    switch,
)

HALF_S = 0.5 * suspend_resume_s(PLAIN)


def begun(world: JobWorld, *runs: tuple[str, int]) -> Told:
    """A world at time 0 with jobs (name, first GPU on s1) ordered to run."""
    told = Told().drain(world, 0.0)
    world.apply(0.0, [switch(1, runs=[run(name, ("s1", (gpu,))) for name, gpu in runs])])
    return told.drain(world, 0.0)


def test_a_lone_job_ends_when_its_work_is_done_and_reports_its_hundredth_minibatch() -> None:
    world = JobWorld([planned("a", 250)], servers(1))
    told = begun(world, ("a", 0)).drain(world)
    assert told.completed == [("a", 250.0)]
    assert told.events == [
        ResidentsSwitched(0.0, 1, (), ((JobId("a"), 0.0),)),
        MinibatchesReached(100.0, JobId("a"), 100),
    ]
    assert world.next_at_s() is None


def test_a_job_of_fewer_minibatches_than_the_milestone_reports_none() -> None:
    world = JobWorld([planned("a", 99)], servers(1))
    told = begun(world, ("a", 0)).drain(world)
    assert told.completed == [("a", 99.0)]
    assert len(told.events) == 1


def test_a_job_holds_its_devices_while_it_comes_up_and_comes_up_once() -> None:
    """A measured start: told to stop within it, a job stops when it is up, and goes on later without another."""
    world = JobWorld([planned("a", 20, start_s=7.0), planned("b", 5)], servers(1))
    told = begun(world, ("a", 0))
    assert told.events == [ResidentsSwitched(0.0, 1, (), ((JobId("a"), 0.0),))]
    world.apply(3.0, [switch(2, ["a"], [run("b", ("s1", (0,)))])])
    told.drain(world)
    assert told.events[-1] == ResidentsSwitched(
        7.0 + HALF_S, 2, ((JobId("a"), 7.0 + HALF_S),), ((JobId("b"), 7.0 + HALF_S),)
    )
    assert told.completed == [("b", 12.0 + HALF_S)]
    world.apply(20.0, [switch(3, runs=[run("a", ("s1", (0,)))])])
    assert dict(told.drain(world).completed)["a"] == pytest.approx(40.0 + HALF_S)


def test_a_split_gang_that_still_comes_up_stops_at_once_and_comes_up_anew() -> None:
    world = JobWorld([planned("a", 20, gpus=2, start_s=7.0)], servers(2))
    told = Told().drain(world, 0.0)
    both = run("a", ("s1", (0,)), ("s2", (0,)))
    world.apply(0.0, [switch(1, runs=[both])])
    told.drain(world, 3.0)
    world.apply(3.0, [switch(2, ["a"])])
    told.drain(world, 9.0)
    assert told.events[-1] == ResidentsSwitched(3.0, 2, ((JobId("a"), 3.0),), ())
    world.apply(10.0, [switch(3, runs=[both])])
    assert told.drain(world).completed == [("a", 37.0)]


def test_what_a_suspend_was_measured_to_cost_stands_for_the_formula() -> None:
    """G-44 where nothing was measured."""
    jobs = [planned("a", 20), planned("b", 5)]
    world = JobWorld(jobs, servers(1), options=WorldOptions(suspend_resume_s=4.0))
    told = begun(world, ("a", 0))
    world.apply(10.0, [switch(2, ["a"], [run("b", ("s1", (0,)))])])
    told.drain(world)
    # Half of it until the device is free; who comes after that starts for the first time, and pays no resume.
    assert told.events[-1] == ResidentsSwitched(
        12.0, 2, ((JobId("a"), 12.0),), ((JobId("b"), 12.0),)
    )
    world.apply(20.0, [switch(3, runs=[run("a", ("s1", (0,)))])])
    assert told.drain(world).completed == [("b", 17.0), ("a", 32.0)]


def test_a_start_lasts_from_0_seconds() -> None:
    with pytest.raises(InputError, match="start_s"):
        JobWorld([planned("a", 1, start_s=-1.0)], servers(1))


def test_a_suspended_job_computes_on_to_its_boundary_and_its_successor_waits_for_the_copies() -> (
    None
):
    """G-40, G-44: one mini-batch a second, order at 10.25: boundary 11, half the cost each side."""
    world = JobWorld([planned("a", 20), planned("b", 5)], servers(1))
    told = begun(world, ("a", 0))
    world.apply(10.25, [switch(2, ["a"], [run("b", ("s1", (0,)))])])
    told.drain(world, 12.0)
    switched = told.events[-1]
    stopped_s = 11.0 + HALF_S
    assert switched == ResidentsSwitched(
        stopped_s, 2, ((JobId("a"), stopped_s),), ((JobId("b"), stopped_s),)
    )
    assert world.done(JobId("a"), 12.0) == 11.0
    world.apply(13.0, [switch(3, ["b"], [run("a", ("s1", (0,)))])])
    told.drain(world)
    b_stops_s = stopped_s + 2.0 + HALF_S
    a_starts_s = b_stops_s + HALF_S
    assert told.events[-1] == ResidentsSwitched(
        a_starts_s, 3, ((JobId("b"), b_stops_s),), ((JobId("a"), a_starts_s),)
    )
    assert dict(told.completed) == pytest.approx({"a": a_starts_s + 9.0})
    assert world.done(JobId("b"), 99.0) == 2.0


def test_a_job_told_to_stop_in_its_last_minibatch_ends_and_is_left_out_of_the_report() -> None:
    world = JobWorld([planned("a", 10.5), planned("b", 5)], servers(1))
    told = begun(world, ("a", 0))
    world.apply(10.25, [switch(2, ["a"], [run("b", ("s1", (0,)))])])
    told.drain(world)
    assert told.completed[0] == ("a", 10.5)
    assert told.events[-1] == ResidentsSwitched(10.5, 2, (), ((JobId("b"), 10.5),))


def test_one_report_a_switch_at_the_last_start_and_jobs_that_ended_before_it_are_left_out() -> None:
    """`b` starts at once and is done before slow `a` gave its GPU to `c`."""
    world = JobWorld([planned("a", 100), planned("b", 1), planned("c", 50)], servers(1))
    told = begun(world, ("a", 0))
    late = JobWorld(
        [planned("a", 100), planned("b", 1), planned("c", 50)],
        servers(1),
        options=WorldOptions(late_suspend_s={JobId("a"): 30.0}),
    )
    begun(late, ("a", 0))
    late.apply(10.0, [switch(2, ["a"], [run("b", ("s1", (1,))), run("c", ("s1", (0,)))])])
    told = Told().drain(late, 60.0)
    free_s = 40.0 + HALF_S
    assert told.completed == [("b", 11.0)]
    assert told.events == [
        ResidentsSwitched(free_s, 2, ((JobId("a"), free_s),), ((JobId("c"), free_s),))
    ]


def test_a_start_waits_for_an_earlier_switch_and_is_reported_after_it() -> None:
    """A start on a device is never reported before the stop on it, though its own switch is done."""
    jobs = [planned(name, 500) for name in "abc"]
    options = WorldOptions(late_suspend_s={JobId("b"): 20.0})
    world = JobWorld(jobs, servers(1), options=options)
    begun(world, ("a", 0), ("b", 1))
    world.apply(10.0, [switch(2, ["a", "b"])])
    world.apply(10.0, [switch(3, [], [run("c", ("s1", (0,)))])])
    told = Told().drain(world, 100.0)
    assert [(e.switch_id, e.at_s) for e in told.events if isinstance(e, ResidentsSwitched)] == [
        (2, 30.0 + HALF_S),
        (3, 30.0 + HALF_S),
    ]
    assert told.events[1] == ResidentsSwitched(30.0 + HALF_S, 3, (), ((JobId("c"), 10.0 + HALF_S),))


def test_an_illegal_start_is_a_bug_and_said_so() -> None:
    world = JobWorld([planned("a", 50), planned("b", 50)], servers(1))
    begun(world, ("a", 0))
    with pytest.raises(InvariantError, match="kept by a"):
        world.apply(1.0, [switch(2, [], [run("b", ("s1", (0,)))])])
    with pytest.raises(InvariantError, match="while it runs"):
        world.apply(1.0, [switch(3, [], [run("a", ("s1", (1,)))])])


def test_a_gang_of_two_servers_starts_on_all_its_devices_at_once() -> None:
    jobs = [planned("a", 500), planned("gang", 500, gpus=2)]
    world = JobWorld(jobs, servers(2))
    begun(world, ("a", 0))
    gang = run("gang", ("s1", (0,)), ("s2", (3,)))
    world.apply(10.5, [switch(2, ["a"], [gang])])
    told = Told().drain(world, 20.0)
    start_s = 11.0 + HALF_S
    assert told.events[-1] == ResidentsSwitched(
        start_s, 2, ((JobId("a"), start_s),), ((JobId("gang"), start_s),)
    )
    assert world.done(JobId("gang"), 20.0) == pytest.approx(20.0 - start_s)


def test_split_gangs_slow_each_other_down_only_where_they_share_a_server() -> None:
    """G-72: two split jobs on s1; a third pair of servers is not concerned; and it ends with the neighbour."""
    jobs = [planned(name, 100_000, gpus=2, profile=SPLIT) for name in ("a", "b", "far")]
    jobs.append(planned("inside", 100_000, gpus=2, profile=SPLIT))
    world = JobWorld(jobs, servers(4))
    Told().drain(world, 0.0)
    spread = 2.0 * 0.72
    world.apply(0.0, [switch(1, [], [run("a", ("s1", (0,)), ("s2", (0,)))])])
    world.apply(0.0, [switch(2, [], [run("far", ("s3", (0,)), ("s4", (0,)))])])
    world.apply(0.0, [switch(3, [], [run("inside", ("s1", (2, 3)))])])
    Told().drain(world, 0.0)
    assert world.rate_per_s(JobId("a")) == pytest.approx(spread)
    world.apply(50.0, [switch(4, [], [run("b", ("s1", (1,)), ("s3", (1,)))])])
    Told().drain(world, 50.0)
    rates = {name: world.rate_per_s(JobId(name)) for name in ("a", "b", "far", "inside")}
    assert rates == pytest.approx(
        {"a": spread * 0.77, "b": spread * 0.77, "far": spread * 0.77, "inside": 2.0}
    )
    world.apply(60.0, [switch(5, ["b"])])
    Told().drain(world, 70.0)
    assert world.rate_per_s(JobId("a")) == pytest.approx(spread)
    assert world.done(JobId("a"), 50.0) == pytest.approx(world.done(JobId("far"), 50.0))


def test_rate_times_time_is_the_work_done_through_every_change_of_rate() -> None:
    """Σ rate × time == mini-batches, sampled beside the world while neighbours come and go."""
    jobs = [planned(f"j{n}", 400.0, gpus=2, profile=SPLIT) for n in range(4)]
    world = JobWorld(jobs, servers(2))
    Told().drain(world, 0.0)
    done = dict.fromkeys((job.spec.job_id for job in jobs), 0.0)
    now_s = 0.0
    for n in range(4):
        world.apply(now_s, [switch(n, [], [run(f"j{n}", ("s1", (n,)), ("s2", (n,)))])])
        world.advance(now_s)
        rates = {job_id: world.rate_per_s(job_id) for job_id in done}
        for job_id, rate in rates.items():
            done[job_id] += rate * 17.0
        now_s += 17.0
    for job_id, expected in done.items():
        assert world.done(job_id, now_s) == pytest.approx(expected)


def test_timers_fire_once_and_a_second_of_one_key_replaces_the_first() -> None:
    world = JobWorld([], servers(1))
    world.apply(0.0, [StartTimer(0, "x", 5.0), StartTimer(0, "y", 7.0), StartTimer(1, "x", 9.0)])
    assert Told().drain(world).events == [TimerFired(7.0, "y"), TimerFired(9.0, "x")]


def test_a_crash_falls_back_to_the_last_checkpoint_and_nothing_else_ever_loses_work() -> None:
    """G-13: checkpoints every 30 s of running; suspended time is not running time."""
    jobs = [planned("a", 200, checkpoint_every_s=30.0), planned("b", 200)]
    world = JobWorld(jobs, servers(1))
    begun(world, ("a", 0), ("b", 1))
    world.apply(25.0, [switch(2, ["a"])])
    Told().drain(world, 40.0)
    world.apply(40.0, [switch(3, [], [run("a", ("s1", (0,)))])])
    Told().drain(world, 80.0)
    started_s = 40.0 + HALF_S
    assert world.done(JobId("a"), 80.0) == pytest.approx(25.0 + 80.0 - started_s)
    world.apply(80.0, [ReleaseGang(0, JobId("a"), "server lost")])
    assert world.done(JobId("a"), 80.0) == 60.0
    assert world.done(JobId("b"), 80.0) == 80.0
    world.apply(90.0, [switch(4, [], [run("a", ("s1", (0,)))])])
    told = Told().drain(world)
    assert told.completed == [("b", 200.0), ("a", 90.0 + 140.0)]


def test_a_released_gang_is_not_in_the_report_that_was_promised_before() -> None:
    world = JobWorld([planned("a", 50), planned("b", 50)], servers(1))
    begun(world, ("a", 0))
    world.apply(10.5, [switch(2, ["a"], [run("b", ("s1", (0,)))])])
    world.apply(10.75, [ReleaseGang(0, JobId("a"), "x"), ReleaseGang(0, JobId("b"), "x")])
    assert Told().drain(world).events == [ResidentsSwitched(11.0 + HALF_S, 2)]


def test_faults_strike_when_planned_and_what_ran_there_computes_no_longer() -> None:
    back = servers(2)[1]
    faults = (
        ServerLost(20.0, ServerId("s2"), "power"),
        GangBroken(30.0, JobId("a"), "worker died"),
        ServerJoined(40.0, back),
    )
    jobs = [planned("a", 100), planned("b", 100, gpus=2, profile=SPLIT)]
    world = JobWorld(jobs, servers(2), options=WorldOptions(faults=faults))
    Told().drain(world, 0.0)
    orders = [run("a", ("s1", (0,))), run("b", ("s1", (1,)), ("s2", (0,)))]
    world.apply(0.0, [switch(1, [], orders)])
    told = Told().drain(world)
    assert [e for e in told.events if not isinstance(e, ResidentsSwitched)] == list(faults)
    assert told.completed == []
    assert world.done(JobId("a"), 99.0) == world.done(JobId("b"), 99.0) == 0.0


@pytest.mark.parametrize(
    ("job", "found"),
    [
        (planned("a", 0), "job a: minibatches"),
        (planned("a", float("nan")), "job a: minibatches"),
        (planned("a", float("inf")), "job a: minibatches"),
        (planned("a", 5, arrival_s=-1), "job a: arrival_s"),
        (planned("a", 5, checkpoint_every_s=0), "job a: checkpoint_every_s"),
    ],
)
def test_work_that_never_ends_is_refused_by_name(job: object, found: str) -> None:
    with pytest.raises(InputError, match=found):
        JobWorld([job], servers(1))  # type: ignore[list-item]
    with pytest.raises(InputError, match="second job"):
        JobWorld([planned("a", 5), planned("a", 6)], servers(1))


def overlaps(played: Rotation) -> int:
    """Pairs of stints that held one device at one time (G-11 i)."""
    by_device: dict[tuple[str, int], list[tuple[float, float]]] = {}
    for _, bindings, started_s, stopped_s in played.stints:
        for binding in bindings:
            for gpu in binding.gpus:
                by_device.setdefault((binding.server_id, gpu), []).append((started_s, stopped_s))
    pairs = 0
    for stints in by_device.values():
        stints.sort()
        pairs += sum(a[1] > b[0] + 1e-9 for a, b in pairwise(stints))
    return pairs


@pytest.mark.parametrize("seed", range(4))
def test_nothing_is_lost_or_gained_by_a_thousand_switches(seed: int) -> None:
    """Every job's stints, less the copies, add up to its work; no device has two jobs (conservation)."""
    jobs = random_trace(seed, 60)
    cluster = servers(4)
    played = rotation(JobWorld(jobs, cluster), jobs, cluster, quantum_s=20.0).play()
    assert len(played.finished) == len(jobs)
    assert len(played.switched) > 200
    assert overlaps(played) == 0
    worked = dict.fromkeys(played.finished, 0.0)
    for job_id, _, started_s, stopped_s in played.stints:
        copy_s = 0.0 if stopped_s == played.finished[job_id] else HALF_S
        worked[job_id] += stopped_s - copy_s - started_s
    for job in jobs:
        assert worked[job.spec.job_id] == pytest.approx(job.minibatches, abs=1e-5)


def test_a_suspend_is_never_later_than_one_minibatch_and_its_copy() -> None:
    """G-43: the order's report comes within 1/rate + cost of both sides."""
    jobs = random_trace(9, 60, SPLIT)
    cluster = servers(4)
    played = rotation(JobWorld(jobs, cluster), jobs, cluster, quantum_s=20.0).play()
    slowest_s = 1.0 / (2.0 * 0.42 * 0.53 * 0.6)
    for event in played.switched:
        for _, at_s in event.stopped + event.started:
            assert event.at_s - at_s <= slowest_s + suspend_resume_s(SPLIT)


def test_same_seed_same_bytes_and_late_suspends_are_drawn_from_it() -> None:
    """C-6."""

    def told(seed: int) -> bytes:
        jobs = random_trace(3, 40, SPLIT)
        cluster = servers(4)
        options = WorldOptions(late_ratio=0.2, late_s=3.0)
        played = rotation(JobWorld(jobs, cluster, seed, options), jobs, cluster).play()
        assert len(played.finished) == 40
        return b"".join(msgspec.json.encode(event) for event in played.switched)

    assert told(1) == told(1)
    assert told(1) != told(2)


def fast_and_slow(seed: int, profile: ModelProfile) -> tuple[Rotation, Rotation]:
    """One trace in both worlds."""
    jobs = random_trace(seed, 60, profile)
    cluster = servers(4)
    fast = rotation(JobWorld(jobs, cluster), jobs, cluster).play()
    slow = rotation(SteppingWorld(jobs, cluster), jobs, cluster).play()
    assert len(fast.finished) == len(slow.finished) == len(jobs)
    return fast, slow


@pytest.mark.parametrize("seed", [5, 6, 7])
def test_fast_forward_agrees_with_steps_of_one_second(seed: int) -> None:
    """GE-13: mean JCT and makespan within 1 % of a world that steps through every second."""
    fast, slow = fast_and_slow(seed, PLAIN)
    assert fast.mean_jct_s == pytest.approx(slow.mean_jct_s, rel=0.01)
    assert fast.makespan_s == pytest.approx(slow.makespan_s, rel=0.01)


def test_fast_forward_agrees_where_placement_matters_in_the_mean() -> None:
    """GE-13 with locality and network: there one early switch scatters other gangs, so one trace differs by chance."""
    pairs = [fast_and_slow(seed, SPLIT) for seed in range(8)]
    fast_s, slow_s = (
        sum(played.mean_jct_s for played in side) for side in zip(*pairs, strict=True)
    )
    assert fast_s == pytest.approx(slow_s, rel=0.01)
    fast_s, slow_s = (
        sum(played.makespan_s for played in side) for side in zip(*pairs, strict=True)
    )
    assert fast_s == pytest.approx(slow_s, rel=0.01)
