"""The simulator foresees an arm from what was measured in it, and from nothing else (issue 5; C-3)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gandiva_core.replay.live import JobRun
from yarn_plugin.live_replay.measured import NotMeasuredError, measured
from yarn_plugin.live_replay.plan import LiveJob
from yarn_plugin.live_replay.prediction import Played, foreseen_mean_jct_s, prediction
from yarn_plugin.live_replay.switches import Switches, orders_of, switches_of

FIRST_S = 1000.0
JOBS = tuple(LiveJob(name, n, 1, 100, 0.1, "cnn") for n, name in enumerate("ab"))


def course(name: str, submitted_s: float, allocated_s: float, **more: Any) -> JobRun:
    """A job of 100 mini-batches of 0.1 s; container 1 s, framework 3 s, end 1 s, master's end 0.4 s."""
    return JobRun(
        name,
        submitted_s,
        finished_s=allocated_s + 15.4,
        status="SUCCEEDED",
        app_id=f"app_{name}",
        registered_s=submitted_s + 1.5,
        allocated_s=allocated_s,
        begun_s=allocated_s + 1.0,
        first_s=allocated_s + 4.1,
        last_s=allocated_s + 14.0,
        released_s=allocated_s + 15.0,
        minibatch_s=0.1,
        **more,
    )


STOCK = (course("a", 0.0, 2.0), course("b", 1.0, 17.5))
"""One device: the second container is given 0.5 s after the first one's end."""


def test_a_stock_arm_that_went_as_the_model_says_is_foreseen_exactly(tmp_path: Path) -> None:
    found = prediction(Played("capacity", JOBS, STOCK, 1, 1, FIRST_S), tmp_path)
    assert found["live_mean_jct_s"] == pytest.approx((17.4 + 31.9) / 2)
    assert found["predicted_mean_jct_s"] == pytest.approx(found["live_mean_jct_s"])
    assert found["error_ratio"] == pytest.approx(0.0, abs=1e-9)
    assert found["measured"] == {
        "master_s": pytest.approx(2.0),
        "container_s": pytest.approx(1.0),
        "framework_s": pytest.approx(3.0),
        "minibatch_s": {"cnn": 0.1},
        "end_s": pytest.approx(1.0),
        "handover_s": pytest.approx(0.5),
        "master_end_s": pytest.approx(0.4),
        "suspend_resume_s": 0.0,
    }


def test_waiting_is_foreseen_and_not_measured() -> None:
    """A second job that waits longer than the model can say is an error that shows, not one that is fitted away."""
    slow = (STOCK[0], msgspec.structs.replace(STOCK[1], finished_s=60.0))
    costs = measured(JOBS, STOCK, 1, None, FIRST_S)
    before = foreseen_mean_jct_s(Played("capacity", JOBS, STOCK, 1, 1, FIRST_S), costs)
    assert before == foreseen_mean_jct_s(Played("capacity", JOBS, slow, 1, 1, FIRST_S), costs)


def journal(*entries: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"kind": "header"}, *entries]


def ordered(switch: int, at_s: float, run: str, suspend: str = "") -> dict[str, Any]:
    effect = {"kind": "SwitchResidents", "switch_id": switch, "run": [[run, [["n", [0]]]]]}
    if suspend:
        effect["suspend"] = [suspend]
    return {"event": {"kind": "TimerFired", "at_s": at_s}, "effects": [effect]}


def reported(switch: int, **told: list[list[object]]) -> dict[str, Any]:
    return {"event": {"kind": "ResidentsSwitched", "at_s": 0.0, "switch_id": switch, **told}}


ENTRIES = journal(
    ordered(1, 1002.0, "app_a"),
    reported(1, started=[["app_a", 1003.0]]),
    ordered(2, 1004.0, "app_b", "app_a"),  # it still comes up: no cost of a stop
    reported(2, stopped=[["app_a", 1006.2]]),
    reported(2, started=[["app_b", 1006.3]]),
    ordered(3, 1020.0, "app_a", "app_b"),
    reported(3, stopped=[["app_b", 1020.25]]),
    reported(3, started=[["app_a", 1020.55]]),
)


def test_a_switch_costs_what_is_not_the_wait_for_a_boundary() -> None:
    """G-40, G-44: half a mini-batch of a stop is the boundary's; a resume counts from the device that is free."""
    runs = (course("a", 0.0, 2.0), course("b", 1.0, 3.0))
    found = switches_of(orders_of(ENTRIES), runs, FIRST_S)
    assert found.suspend_resume_s == pytest.approx((0.25 - 0.05) + 0.3)
    assert found.ordered_s == {"app_a": 1002.0, "app_b": 1004.0}
    assert found.stops_s == {"app_a": [1006.2], "app_b": [1020.25]}


def test_under_gandiva_the_same_engine_shares_the_device_by_time(tmp_path: Path) -> None:
    (tmp_path / "journal-1.jsonl").write_text("\n".join(map(json.dumps, ENTRIES)))
    runs = (course("a", 0.0, 2.0), course("b", 1.0, 3.0))
    settings = {"quantum_s": 2.0, "height_max": 4.0}
    found = prediction(Played("gandiva", JOBS, runs, 1, 1, FIRST_S, settings), tmp_path)
    assert found["measured"]["suspend_resume_s"] == pytest.approx(0.5)
    assert found["measured"]["handover_s"] == 0.0
    # Together 2 × (3 + 10 + 1) s on one device, and some switches: both end late, neither at the end of a queue.
    assert 27.0 < found["predicted_mean_jct_s"] < 36.0


def test_a_job_that_was_stopped_while_it_came_up_says_nothing_of_how_long_that_takes() -> None:
    """Its first line is late by somebody else's turn; so is a span between two lines (`course`)."""
    slow = msgspec.structs.replace(course("b", 1.0, 3.0), first_s=30.0, last_s=40.0)
    runs = (course("a", 0.0, 2.0), slow)
    stopped = Switches(None, {}, {"app_b": [FIRST_S + 20.0]})
    assert measured(JOBS, runs, 4, stopped, FIRST_S).framework_s == pytest.approx(3.0)
    never = Switches(None, {}, {name: [FIRST_S + 5.0] for name in ("app_a", "app_b")})
    with pytest.raises(NotMeasuredError, match="stopped while it came up"):
        measured(JOBS, runs, 4, never, FIRST_S)


def test_what_was_not_seen_is_not_foreseen() -> None:
    lost = (STOCK[0], msgspec.structs.replace(STOCK[1], begun_s=None))
    with pytest.raises(NotMeasuredError, match="job b: no begun_s"):
        measured(JOBS, lost, 1, None, FIRST_S)
    with pytest.raises(NotMeasuredError, match="no job found room"):
        measured(JOBS, STOCK, 0, None, FIRST_S)
