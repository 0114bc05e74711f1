"""GE-13: the event-driven world against one that steps through every second, under both schedulers."""

from __future__ import annotations

import pytest

from gandiva_core.model.cluster import Cluster
from gandiva_core.model.profile import ModelProfile
from gandiva_core.model.workload import PlannedJob
from gandiva_core.sim.world import JobWorld
from tests.sim.runs import Played, play_policy, play_stock
from tests.sim.stepping import SteppingWorld
from tests.sim.worlds import PLAIN, SPLIT, random_trace, servers

SERVERS = 5


def played(arm: str, jobs: list[PlannedJob], is_fast: bool) -> Played:
    cluster = Cluster("fidelity", servers(SERVERS))
    make = JobWorld if is_fast else SteppingWorld
    world = make(jobs, cluster.servers)
    if arm == "capacity":
        return play_stock(jobs, cluster, world=world)
    return play_policy(jobs, cluster, check="touched", world=world)


@pytest.mark.parametrize("profile", [PLAIN, SPLIT], ids=lambda profile: profile.name)
@pytest.mark.parametrize("arm", ["capacity", "gandiva"])
def test_mean_jct_and_makespan_agree_within_one_percent(arm: str, profile: ModelProfile) -> None:
    """GE-13: < 1 %, over three traces of two hours, with locality and network in one of the two models.

    Where both placement and slicing matter, one gang placed elsewhere after a switch of another second moves a whole
    trace's end by per cents either way: there the makespan is held to 2 %. docs/JOB_MODEL.md has gandiva-3h's figures.
    """
    fast_s = slow_s = fast_span_s = slow_span_s = 0.0
    for seed in range(3):
        jobs = random_trace(seed, 60, profile)
        fast, slow = played(arm, jobs, True), played(arm, jobs, False)
        assert len(fast.finished) == len(slow.finished) == len(jobs)
        fast_s, slow_s = fast_s + fast.mean_jct_s, slow_s + slow.mean_jct_s
        fast_span_s, slow_span_s = fast_span_s + fast.makespan_s, slow_span_s + slow.makespan_s
    assert fast_s == pytest.approx(slow_s, rel=0.01)
    is_chaotic = arm == "gandiva" and profile is SPLIT
    assert fast_span_s == pytest.approx(slow_span_s, rel=0.02 if is_chaotic else 0.01)
