"""The schema of `summary.json`, ratios of known value, the quoted shape, and what a deadlock does to a ratio."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from gandiva_core.replay.details import RunDetails
from gandiva_core.replay.figures import JobRecord
from gandiva_core.replay.summary import summarise

Maker = Callable[..., RunDetails]

TOP = {"trace", "cluster", "engine", "seeds", "commit", "versions", "arms", "ratios", "intervals"}
ARM = {
    "scheduler_class", "mechanisms", "jobs", "finished", "failed", "mean_jct_s", "median_jct_s",
    "p95_jct_s", "p99_jct_s", "makespan_s", "mean_queueing_s", "mean_first_100_minibatches_s",
    "gpu_utilization", "gpu_allocated", "am_limit_waits", "max_height", "suspends", "migrations",
    "packings_tried", "packings_kept", "wall_s", "runs",
}  # fmt: skip
RUN = {"seed", "shape", "journal", "journal_sha256"}
RATIOS = {"mean_jct", "median_jct", "makespan", "first_100_minibatches"}


def two_seeds(make_run: Maker) -> list[RunDetails]:
    return [
        make_run("capacity", {"a": 100.0, "b": 300.0}, seed=1),
        make_run("gandiva", {"a": 50.0, "b": 250.0}, seed=1),
        make_run("capacity", {"a": 200.0, "b": 400.0}, seed=2),
        make_run("gandiva", {"a": 100.0, "b": 300.0}, seed=2),
    ]


def test_the_file_has_every_field_of_the_schema(make_run: Maker) -> None:
    written = msgspec.json.decode(msgspec.json.encode(summarise(two_seeds(make_run))))
    assert set(written) >= TOP
    for arm in written["arms"].values():
        assert set(arm) >= ARM
        for run in arm["runs"]:
            assert set(run) >= RUN
    assert set(written["ratios"]) == {"gandiva"}
    assert set(written["ratios"]["gandiva"]) >= RATIOS
    low, high = written["intervals"]["gandiva"]["mean_jct"]
    assert low <= written["ratios"]["gandiva"]["mean_jct"] <= high


def test_ratios_are_of_the_means_over_seeds(make_run: Maker) -> None:
    summary = summarise(two_seeds(make_run))
    assert summary.arms["capacity"].mean_jct_s == 250.0
    assert summary.arms["gandiva"].mean_jct_s == 175.0
    assert summary.ratios["gandiva"].mean_jct == pytest.approx(250 / 175)
    assert summary.ratios["gandiva"].makespan == pytest.approx(700 / 550)
    assert summary.ratios["gandiva"].first_100_minibatches == pytest.approx(250 / 175)
    assert summary.ratios["gandiva"].common_jobs == 4


def test_counts_are_sums_over_seeds(make_run: Maker) -> None:
    arm = summarise(two_seeds(make_run)).arms["gandiva"]
    assert (arm.jobs, arm.finished, arm.suspends, arm.wall_s) == (4, 4, 6, 3.0)
    assert arm.gpu_utilization == 0.5


def test_intervals_are_over_seeds_or_else_over_jobs(make_run: Maker) -> None:
    runs = two_seeds(make_run)
    assert "over 2 seeds" in summarise(runs).interval_method
    single = summarise(runs[:2])
    assert "jobs of one seed" in single.interval_method
    assert set(single.intervals["gandiva"]) == {"mean_jct", "median_jct", "first_100_minibatches"}
    low, high = single.intervals["gandiva"]["mean_jct"]
    assert low == pytest.approx(300 / 250)
    assert high == pytest.approx(100 / 50)


def test_the_quoted_shape_favours_the_baseline(make_run: Maker) -> None:
    runs = [
        make_run("capacity", {"a": 100.0}, shape="gpu"),
        make_run("gandiva", {"a": 50.0}, shape="gpu"),
        make_run("capacity", {"a": 90.0}, shape="server"),
        make_run("gandiva", {"a": 60.0}, shape="server"),
    ]
    summary = summarise(runs)
    assert summary.shape == "server"
    assert summary.ratios["gandiva"].mean_jct == 1.5
    assert summary.shapes["gpu"].ratios["gandiva"].mean_jct == 2.0
    assert [run.shape for run in summary.arms["capacity"].runs] == ["gpu", "server"]


def test_the_quoted_shape_is_chosen_by_the_policy_not_by_another_baseline(make_run: Maker) -> None:
    runs = [
        make_run(arm, {"a": jct_s}, shape=shape)
        for shape, jcts in {"gpu": (100.0, 101.0, 50.0), "server": (100.0, 99.0, 95.0)}.items()
        for arm, jct_s in zip(("capacity", "capacity-fair", "gandiva"), jcts, strict=True)
    ]
    summary = summarise(runs)
    assert (summary.primary, summary.shape) == ("gandiva", "server")


def test_a_gang_deadlock_gives_no_ratio_and_names_who_holds_what(
    make_run: Maker, make_record: Callable[..., JobRecord]
) -> None:
    stuck = make_record("b", None, gpus=6, held_gpus=4)
    starved = make_record("c", None, gpus=2)
    runs = [
        make_run("capacity", {"a": 100.0, "b": 100.0, "c": 9.0}),
        make_run("capacity-fair", [make_record("a", 100.0), starved, stuck]),
        make_run("gandiva", {"a": 50.0, "b": 100.0, "c": 9.0}),
    ]
    summary = summarise(runs)
    assert summary.ratios["capacity-fair"].mean_jct is None
    assert summary.intervals["capacity-fair"] == {}
    assert summary.ratios["gandiva"].mean_jct is not None
    holders = summary.arms["capacity-fair"].never_finished
    assert [(h.job, h.held_gpus, h.gpus) for h in holders] == [("b", 4, 6), ("c", 0, 2)]
    assert not summary.partial


def test_an_interrupted_run_is_compared_on_common_jobs_and_marked(make_run: Maker) -> None:
    runs = [
        make_run("capacity", {"a": 100.0, "b": 300.0}),
        make_run("gandiva", {"a": 50.0, "b": None}, complete=False),
    ]
    summary = summarise(runs)
    assert summary.partial
    assert summary.ratios["gandiva"].common_jobs == 1
    assert summary.ratios["gandiva"].mean_jct == 2.0
    assert summary.arms["gandiva"].never_finished == ()


def test_half_a_run_is_not_averaged_with_whole_ones(make_run: Maker) -> None:
    runs = [
        make_run("capacity", {"a": 100.0}, seed=1),
        make_run("capacity", {"a": 900.0}, seed=2, complete=False),
    ]
    summary = summarise(runs)
    assert summary.arms["capacity"].mean_jct_s == 100.0
    assert len(summary.arms["capacity"].runs) == 2


def test_without_the_baseline_there_is_no_ratio(make_run: Maker) -> None:
    summary = summarise([make_run("gandiva", {"a": 1.0}), make_run("fifo", {"a": 2.0})])
    assert summary.ratios == {}
    assert set(summary.arms) == {"gandiva", "fifo"}
