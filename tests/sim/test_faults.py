"""Faults under the real engine and policy: every job ends, and loses no more than it must (G-12, G-13)."""

from __future__ import annotations

import pytest

from gandiva_core.messages.events import GangBroken, ServerJoined, ServerLost
from gandiva_core.model.cluster import Cluster
from gandiva_core.model.errors import InputError
from gandiva_core.model.units import JobId
from gandiva_core.sim.faults import Lateness, WorldOptions
from gandiva_core.sim.performance import suspend_resume_s
from gandiva_core.sim.world import JobWorld
from tests.sim.runs import Played, play_policy
from tests.sim.worlds import PLAIN, planned, random_trace, servers


def played_with(options: WorldOptions, seed: int = 1) -> Played:
    """Sixty jobs on four servers, every invariant checked after every event."""
    jobs = random_trace(seed, 60)
    cluster = Cluster("faults", servers(4))
    return play_policy(jobs, cluster, world=JobWorld(jobs, cluster.servers, seed, options))


def test_a_server_lost_and_back_costs_time_but_no_job() -> None:
    """G-13: jobs with a share there restart elsewhere."""
    lost, *_ = servers(4)
    faults = (
        ServerLost(1800.0, lost.server_id, "power"),
        ServerJoined(5400.0, lost),
        GangBroken(6000.0, JobId("j7"), "worker died"),
    )
    plain, hurt = played_with(WorldOptions()), played_with(WorldOptions(faults=faults))
    assert len(hurt.finished) == len(plain.finished) == 60
    assert hurt.mean_jct_s > plain.mean_jct_s
    between = [
        entry.event.at_s
        for entry in hurt.entries
        for effect in entry.effects
        if lost.server_id in getattr(effect, "servers", ()) and 1800 < entry.event.at_s < 5400
    ]
    assert between == []


def test_a_restart_loses_what_came_after_the_last_checkpoint_and_nothing_else() -> None:
    """A lone job broken at 100 s with a checkpoint every 30 s goes on from 90: it ends 10 s later than 200 s."""
    jobs = [planned("a", 200, checkpoint_every_s=30.0)]
    cluster = Cluster("one", servers(1))
    options = WorldOptions(faults=(GangBroken(100.0, JobId("a"), "worker died"),))
    played = play_policy(jobs, cluster, world=JobWorld(jobs, cluster.servers, 1, options))
    assert played.finished == {JobId("a"): pytest.approx(210.0)}


@pytest.mark.parametrize("seed", [1, 2])
def test_jobs_that_suspend_late_are_waited_for_and_all_end(seed: int) -> None:
    """G-12: a third of the orders obeyed 20 s too late; no device ever has two jobs (checked by the world, too)."""
    options = WorldOptions(late_ratio=0.33, late_s=20.0)
    late, plain = played_with(options, seed), played_with(WorldOptions(), seed)
    assert len(late.finished) == 60
    assert late.entries != plain.entries


def test_a_start_has_a_price_where_one_is_set() -> None:
    jobs = [planned("a", 50)]
    cluster = Cluster("one", servers(1))
    options = WorldOptions(start_cost_s=7.0)
    played = play_policy(jobs, cluster, world=JobWorld(jobs, cluster.servers, 1, options))
    assert played.finished == {JobId("a"): 57.0}
    assert suspend_resume_s(PLAIN) == pytest.approx(0.030)


def test_a_share_of_late_suspends_is_a_share() -> None:
    with pytest.raises(InputError, match=r"late_ratio: found 1\.5; expected a share from 0 to 1"):
        Lateness(WorldOptions(late_ratio=1.5), 1)
