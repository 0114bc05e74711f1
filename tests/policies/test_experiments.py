"""GE-1 and G-36 in the simulator: the job model's switch costs, the plain substrate, the driver. (GE-2: tests/sim.)"""

from __future__ import annotations

import pytest

from gandiva_core.messages.decisions import Place
from gandiva_core.messages.events import ResidentsSwitched
from gandiva_core.model.cluster import Cluster, height
from gandiva_core.model.units import JobId
from tests.policies.stage import jain
from tests.sim.runs import Played, play_policy
from tests.sim.worlds import planned, servers

Q = 60.0


def test_GE1_layout_in_the_simulator() -> None:
    """GE-1: two servers with six 1-GPU jobs, one with three 2-GPU jobs, one with two 4-GPU jobs; all heights 2."""
    sizes = [1] * 8 + [2, 2, 4] + [1] * 4 + [2, 4]
    jobs = [planned(f"j{n:02d}", 5000, gpus=gpus) for n, gpus in enumerate(sizes)]
    played = play_policy(jobs, Cluster("ge1", servers(4)))
    layout: dict[str, list[int]] = {}
    for entry in played.entries:
        for decision in entry.decisions:
            if isinstance(decision, Place):
                layout.setdefault(decision.servers[0], []).append(len(decision.servers))
    assert sorted(layout.values()) == [[1] * 6, [1] * 6, [2] * 3, [4] * 2]
    assert [height(sum(gangs), 4) for gangs in layout.values()] == [2, 2, 2, 2]
    assert len(played.finished) == len(jobs)


@pytest.mark.parametrize("count", range(5, 13))
def test_G36_jobs_on_four_gpus_share_equally_in_the_simulator(count: int) -> None:
    """G-36: Jain at least 0.99 over 30 quanta for 5 to 12 jobs on 4 GPUs, switching costs and all; loss below 2 %."""
    jobs = [planned(f"j{n:02d}", 30 * Q) for n in range(count)]
    played = play_policy(jobs, Cluster("g36", servers(1)))
    ran_s = ran_before(played, 30 * Q)
    assert len(ran_s) == count
    assert jain(list(ran_s.values())) >= 0.99
    assert sum(ran_s.values()) >= 0.98 * 4 * 30 * Q


def ran_before(played: Played, end_s: float) -> dict[JobId, float]:
    """Seconds that each job ran before `end_s`, from what the world reported."""
    started: dict[JobId, float] = {}
    ran_s: dict[JobId, float] = {}
    for entry in played.entries:
        if isinstance(entry.event, ResidentsSwitched):
            for job_id, at_s in entry.event.stopped:
                since_s = started.pop(job_id)
                ran_s[job_id] = ran_s.get(job_id, 0.0) + max(0.0, min(at_s, end_s) - since_s)
            started.update(entry.event.started)
    for job_id, since_s in started.items():
        until_s = min(end_s, played.finished[job_id])
        ran_s[job_id] = ran_s.get(job_id, 0.0) + max(0.0, until_s - since_s)
    return ran_s
