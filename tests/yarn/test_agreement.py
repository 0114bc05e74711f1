"""The simulator and the real ResourceManager agree (item 6, GE-13): 1 % is asked for, they do exactly."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from gandiva_core.messages.events import GangRefused
from gandiva_core.model.cluster import Cluster
from gandiva_core.model.workload import PlannedJob
from gandiva_core.replay.planning import Shape, plan
from gandiva_core.replay.traces import clusters, models, registry
from gandiva_core.sim.engine import open_engine as simulator
from tests.yarn.runs import Opener, play

pytestmark = pytest.mark.yarn

TOLERANCE_RATIO = 0.01


def three_hours(shape: Shape) -> tuple[Sequence[PlannedJob], Cluster]:
    """The built-in short trace on its cluster, cut into containers."""
    trace = registry.load("gandiva-3h", seed=1)
    cluster = clusters.load_cluster(trace.cluster_name or "gandiva-100")
    table = models.builtin_models()
    return plan(trace, cluster, shape, 4, lambda job: table[job.model]).jobs, cluster


@pytest.mark.parametrize("shape", list(Shape))
@pytest.mark.parametrize("arm", ["capacity", "capacity-fair", "gandiva"])
def test_three_hours_agree(opener: Opener, tmp_path: Path, shape: Shape, arm: str) -> None:
    jobs, cluster = three_hours(shape)
    real = play(opener, arm, jobs, cluster, tmp_path, "touched")
    simulated = play(simulator, arm, jobs, cluster, tmp_path, "touched")
    assert real.mean_jct_s == pytest.approx(simulated.mean_jct_s, rel=TOLERANCE_RATIO)
    assert real.makespan_s == pytest.approx(simulated.makespan_s, rel=TOLERANCE_RATIO)
    assert [gang[:2] for gang in real.starts] == [gang[:2] for gang in simulated.starts]
    assert real.ends == simulated.ends
    assert not [event for event in real.events if isinstance(event, GangRefused)]
