"""The model does what Hadoop 3.4.2 did: every start, every partial gang, every deadlock of a crowded hour.

`hadoop_3_4_2.json` is what a real ResourceManager answered to the same driver, world and jobs (`--engine yarn`).
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.baselines.capacity.workload import crowd
from tests.sim.runs import play_stock

RECORDED = Path(__file__).with_name("hadoop_3_4_2.json")


@pytest.mark.parametrize("arm", ["capacity", "capacity-fair"])
@pytest.mark.parametrize("shape", ["server", "gpu"])
def test_starts_partial_gangs_and_deadlocks_are_those_of_hadoop(arm: str, shape: str) -> None:
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))[f"{arm} {shape}"]
    played = play_stock(*crowd(shape), arm)
    assert played.report is not None
    stuck = played.report.unfinished
    starts = [f"{at_s:g} {job_id} {' '.join(on)}" for at_s, job_id, on in played.starts]
    assert starts == recorded["starts"]
    assert [f"{at_s:g} {job_id} {gpus}" for at_s, job_id, gpus in played.held] == recorded["held"]
    assert [f"{job.job_id} {job.held_gpus}" for job in stuck] == recorded["stuck"]


def test_the_recording_needs_every_rule() -> None:
    """Starts out of order (the head does not block), partial gangs, and deadlocks are in it."""
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    order = [line.split()[1] for line in recorded["capacity server"]["starts"]]
    arrivals = [job.spec.job_id for job in crowd("server")[0]]
    assert order != arrivals
    assert recorded["capacity gpu"]["held"]
    assert recorded["capacity gpu"]["stuck"] == []
    assert len(recorded["capacity-fair gpu"]["stuck"]) > 10
