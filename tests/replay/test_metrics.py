"""Figures of hand-made journals whose values are known (C-4, G-1, G-2, G-46)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from gandiva_core.messages.decisions import Decision, Enqueue, Place, Wait
from gandiva_core.messages.effects import CommitGang, Effect, ReleaseGang
from gandiva_core.messages.events import (
    AmWaited,
    ContainersHeld,
    Event,
    GangBroken,
    GangCommitted,
    GangRefused,
    JobAdopted,
    JobFailed,
    JobFinished,
    JobKilled,
    JobSubmitted,
    MinibatchesReached,
    ResidentsSwitched,
    ServerLost,
    TimerFired,
)
from gandiva_core.model.cluster import Server
from gandiva_core.model.job import JobSpec, Worker
from gandiva_core.model.units import JobId, ServerId
from gandiva_core.replay.accounts import STORY_MAX
from gandiva_core.replay.metrics import MetricsCollector
from gandiva_core.runtime.journal import Entry as JournalLine

A, B = ServerId("s1"), ServerId("s2")
SERVERS = (Server(A, 4, 1000, 16), Server(B, 4, 1000, 16))


def Entry(
    event: Event, decisions: tuple[Decision, ...] = (), effects: tuple[Effect, ...] = ()
) -> JournalLine:
    """A line whose number does not matter."""
    return JournalLine(0, event, decisions, (), effects)


def gang(name: str, gpus: int) -> JobSpec:
    return JobSpec(JobId(name), (Worker(1, 10, 1),) * gpus, name=name, model="m")


def submitted(at_s: float, name: str, gpus: int = 1) -> JournalLine:
    return Entry(JobSubmitted(at_s, gang(name, gpus)))


def committed(at_s: float, name: str, *servers: ServerId) -> JournalLine:
    return Entry(GangCommitted(at_s, JobId(name), ("c",) * len(servers), servers))


def placed(at_s: float, name: str, gpus: int, *servers: ServerId) -> JournalLine:
    """A policy places a job the moment it comes."""
    job = JobId(name)
    return Entry(
        JobSubmitted(at_s, gang(name, gpus)),
        decisions=(Place(job, servers, "pristine"),),
        effects=(CommitGang(0, job, servers, ()),),
    )


def switched(
    at_s: float,
    stopped: Sequence[tuple[str, float]] = (),
    started: Sequence[tuple[str, float]] = (),
) -> JournalLine:
    return Entry(
        ResidentsSwitched(
            at_s,
            0,
            tuple((JobId(job), at) for job, at in stopped),
            tuple((JobId(job), at) for job, at in started),
        )
    )


def finished(at_s: float, name: str) -> JournalLine:
    return Entry(JobFinished(at_s, JobId(name)))


def collect(
    entries: Sequence[JournalLine],
    is_stock: bool = True,
    utilization: dict[str, float] | None = None,
) -> MetricsCollector:
    collector = MetricsCollector(SERVERS, utilization or {}, is_stock)
    for entry in entries:
        collector.observe(entry)
    collector.close()
    return collector


def test_one_exclusive_job() -> None:
    collector = collect(
        [
            submitted(10.0, "J", 4),
            committed(20.0, "J", A, A, A, A),
            switched(20.0, started=[("J", 20.0)]),
            Entry(MinibatchesReached(70.0, JobId("J"), 100)),
            finished(120.0, "J"),
        ],
        utilization={"J": 0.5},
    )
    figures = collector.figures()
    assert (figures.jobs, figures.finished, figures.unfinished) == (1, 1, 0)
    assert figures.mean_jct_s == 110.0
    assert figures.makespan_s == 110.0
    assert figures.mean_queueing_s == 10.0
    assert figures.mean_first_100_minibatches_s == 60.0
    assert figures.gpu_allocated == pytest.approx(4 * 100 / (8 * 110))
    assert figures.gpu_utilization == pytest.approx(4 * 100 * 0.5 / (8 * 110))
    assert (figures.max_height, figures.suspends) == (1, 0)
    (record,) = collector.records()
    assert (record.computed_s, record.delay_s, record.servers) == (100.0, 10.0, ("s1",))
    assert [moment.text for moment in record.story] == [
        "arrived",
        "all containers on s1",
        "ran first",
        "finished",
    ]


def test_a_job_that_was_found_counts_from_there_on() -> None:
    """DESIGN §4: after a restart of the core; a second report of the same job changes nothing."""
    found = Entry(JobAdopted(10.0, gang("J", 4), ("c",) * 4, (A,) * 4))
    collector = collect(
        [found, found, switched(12.0, started=[("J", 12.0)]), finished(112.0, "J"), found],
        is_stock=False,
    )
    figures = collector.figures()
    assert (figures.jobs, figures.finished, figures.mean_jct_s) == (1, 1, 102.0)
    assert figures.gpu_allocated == pytest.approx(4 * 100 / (8 * 102))
    (record,) = collector.records()
    assert [moment.text for moment in record.story] == [
        "arrived",
        "found resident on s1",
        "ran first",
        "finished",
    ]


def test_two_jobs_share_a_device_by_turns() -> None:
    """Two residents of four GPUs each on one server of four: height 2, one suspend a turn."""
    collector = collect(
        [
            placed(0.0, "J", 4, A, A, A, A),
            switched(0.0, started=[("J", 0.0)]),
            placed(30.0, "K", 4, A, A, A, A),
            switched(61.0, stopped=[("J", 60.0)], started=[("K", 61.0)]),
            switched(121.0, stopped=[("K", 120.0)], started=[("J", 121.0)]),
            finished(181.0, "J"),
            switched(181.0, started=[("K", 181.0)]),
            finished(222.0, "K"),
        ],
        is_stock=False,
    )
    figures = collector.figures()
    assert (figures.max_height, figures.suspends) == (2, 2)
    jobs = {record.job_id: record for record in collector.records()}
    assert (jobs["J"].computed_s, jobs["J"].delay_s) == (120.0, 61.0)
    assert (jobs["K"].computed_s, jobs["K"].queueing_s) == (100.0, 31.0)
    assert figures.gpu_allocated == pytest.approx(4 * 220 / (8 * 222))
    course = collector.course()
    assert course.height.values[:31] == (1.0,) * 30 + (2.0,)
    assert course.load.values[29:31] == (0.5, 1.0)
    assert course.utilization.values[60] == 0.0


def test_quantiles_interpolate() -> None:
    entries = [submitted(0.0, f"J{n}") for n in range(5)]
    entries += [finished(10.0 * (n + 1), f"J{n}") for n in range(5)]
    figures = collect(entries).figures()
    assert figures.median_jct_s == 30.0
    assert figures.p95_jct_s == pytest.approx(48.0)
    assert figures.p99_jct_s == pytest.approx(49.6)


def test_gang_deadlock_is_seen_with_what_is_held() -> None:
    """Two gangs of six hold four of eight each and wait for ever."""
    collector = collect(
        [
            submitted(0.0, "J", 6),
            submitted(0.0, "K", 6),
            Entry(ContainersHeld(0.0, JobId("J"), 4, 6)),
            Entry(ContainersHeld(0.0, JobId("K"), 4, 6)),
            Entry(TimerFired(50.0, "x")),
        ]
    )
    figures = collector.figures()
    assert (figures.unfinished, figures.partial_holds) == (2, 2)
    assert figures.partial_hold_gpu_s == 8 * 50.0
    assert figures.gpu_allocated == 1.0
    assert figures.makespan_s is None
    assert [(r.outcome, r.held_gpus) for r in collector.records()] == [("unfinished", 4)] * 2


def test_a_partial_hold_ends_with_the_gang() -> None:
    collector = collect(
        [
            submitted(0.0, "J", 2),
            Entry(ContainersHeld(5.0, JobId("J"), 1, 2)),
            committed(15.0, "J", A, B),
            switched(15.0, started=[("J", 15.0)]),
            finished(20.0, "J"),
        ]
    )
    figures = collector.figures()
    assert figures.partial_hold_gpu_s == 10.0
    assert figures.gpu_allocated == pytest.approx((10 + 2 * 5) / (8 * 20))
    assert collector.records()[0].servers == ("s1", "s2")


def test_a_refused_placement_leaves_no_resident() -> None:
    job = JobId("J")
    collector = collect(
        [
            placed(0.0, "J", 4, A, A, A, A),
            Entry(GangRefused(0.0, job, "NO_ROOM", "memory")),
            Entry(TimerFired(5.0, "retry"), effects=(CommitGang(2, job, (B,) * 4, ()),)),
            switched(5.0, started=[("J", 5.0)]),
            finished(9.0, "J"),
        ],
        is_stock=False,
    )
    figures = collector.figures()
    assert figures.gangs_refused == {"NO_ROOM": 1}
    assert (figures.max_height, figures.restarts) == (1, 0)
    assert collector.records()[0].servers == ("s2",)


@pytest.mark.parametrize("said", ["broken", "lost", "released", "lost and broken"])
def test_a_lost_gang_restarts_once(said: str) -> None:
    job = JobId("J")
    lost = {
        "broken": [Entry(GangBroken(10.0, job, "exit -100"))],
        "lost": [Entry(ServerLost(10.0, A))],
        "released": [Entry(TimerFired(10.0, "x"), effects=(ReleaseGang(3, job, "server lost"),))],
        "lost and broken": [
            Entry(ServerLost(10.0, A), effects=(ReleaseGang(3, job, "server lost"),)),
            Entry(GangBroken(10.0, job, "exit -100")),
        ],
    }[said]
    collector = collect(
        [
            submitted(0.0, "J", 2),
            committed(0.0, "J", A, A),
            switched(0.0, started=[("J", 0.0)]),
            *lost,
            committed(20.0, "J", B, B),
            switched(20.0, started=[("J", 20.0)]),
            finished(30.0, "J"),
        ]
    )
    (record,) = collector.records()
    assert (record.restarts, record.suspends, record.computed_s) == (1, 0, 20.0)
    assert collector.figures().gpu_allocated == pytest.approx(2 * 20 / (8 * 30))


def test_waits_are_counted_by_job_and_told_once() -> None:
    job = JobId("J")
    memory = Wait("host-memory", "40 MiB", "10 MiB")
    collector = collect(
        [
            Entry(JobSubmitted(0.0, gang("J", 1)), decisions=(Enqueue(job, memory),)),
            Entry(TimerFired(5.0, "x"), decisions=(Enqueue(job, memory),)),
            Entry(TimerFired(6.0, "x"), decisions=(Enqueue(job, Wait("height", "1", "0")),)),
            Entry(AmWaited(7.0, job, "queue's AM limit 10, used 8, asked 4")),
            Entry(AmWaited(8.0, job, "queue's AM limit 10, used 8, asked 4")),
            Entry(JobSubmitted(9.0, gang("K", 1))),
            Entry(AmWaited(9.0, JobId("K"), "NO_ROOM")),
        ],
        is_stock=False,
    )
    figures = collector.figures()
    assert (figures.host_memory_waits, figures.am_limit_waits) == (1, 1)
    texts = [moment.text for moment in collector.records()[0].story]
    assert texts[1] == "waits (host-memory): needs 40 MiB; there is 10 MiB"
    assert len(texts) == 4


def test_jobs_that_end_badly_have_no_jct() -> None:
    collector = collect(
        [
            submitted(0.0, "J"),
            submitted(0.0, "K"),
            submitted(0.0, "L"),
            Entry(JobFailed(0.0, JobId("M"), "no queue root.x")),
            Entry(JobFailed(5.0, JobId("J"), "exit 1")),
            Entry(JobKilled(6.0, JobId("K"))),
            finished(7.0, "L"),
            finished(8.0, "unheard of"),
        ]
    )
    figures = collector.figures()
    assert (figures.jobs, figures.finished, figures.failed, figures.killed) == (4, 1, 2, 1)
    assert figures.mean_jct_s == 7.0
    assert collector.refused() == (("M", "no queue root.x"),)


def test_a_long_story_is_bounded_and_keeps_its_end() -> None:
    entries = [submitted(0.0, "J")]
    for turn in range(100):
        reason = Wait(f"reason-{turn}", "1", "0")
        entries.append(
            Entry(TimerFired(float(turn), "x"), decisions=(Enqueue(JobId("J"), reason),))
        )
    entries.append(finished(100.0, "J"))
    story = collect(entries).records()[0].story
    assert len(story) == STORY_MAX
    assert story[-1].text == "finished"
    assert any("more lines" in moment.text for moment in story)


def test_an_empty_journal_has_no_figures_but_zeros() -> None:
    figures = collect([]).figures()
    assert (figures.jobs, figures.mean_jct_s, figures.gpu_utilization) == (0, None, 0.0)
