"""An arm on a cluster of its own on this machine: brought up, played, taken down, whatever happens."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import mean
from typing import Any

import msgspec
import psutil

from gandiva_core.replay.live import ArmRun
from gandiva_core.replay.provenance import commit
from yarn_plugin.cluster import lifecycle
from yarn_plugin.cluster.configuration import GANDIVA
from yarn_plugin.cluster.state import Cluster, Plan, StateFolder
from yarn_plugin.live_replay.arm import Replay, Say, Submission
from yarn_plugin.live_replay.course import observed
from yarn_plugin.live_replay.measured import NotMeasuredError
from yarn_plugin.live_replay.plan import LiveJob
from yarn_plugin.live_replay.prediction import Played, entries_of, prediction
from yarn_plugin.live_replay.site import of_cluster
from yarn_plugin.live_replay.switches import orders_of, stops_of


class LocalSetting(msgspec.Struct, frozen=True):
    """What the clusters of all arms have in common.

    Attributes:
        gpus: virtual devices of each node; a mini-batch takes at least `step_ms` there.
        limit_s: after which an arm that goes on is given up.
    """

    nodes: int
    gpus: int
    height_max: int
    quantum_ms: int
    step_ms: int
    limit_s: float
    settings: tuple[str, ...] = ()


def run_arm(
    arm: str, jobs: Sequence[LiveJob], setting: LocalSetting, out: Path, say: Say
) -> ArmRun:
    """Bring a cluster up, play the jobs, take it down again.

    Raises:
        LiveReplayError: it did not end within its limit, or a submission was refused.
        GandivaError: the cluster does not come up.
    """
    folder = StateFolder(out / "clusters" / arm)
    with cluster_of(arm, setting, folder, say) as cluster:
        site = of_cluster(cluster.web, folder.path)
        idle: list[float] = []
        psutil.cpu_percent()
        submission = Submission(sys.executable, settings=setting.settings)
        with Replay(site, submission, folder.logs, say, lambda: idle.append(_idle())) as replay:
            replay.play(jobs, setting.limit_s)
    journal = _kept_journal(folder, out / "journals" / arm)
    stops_s = stops_of(orders_of(entries_of(Path(journal)))) if journal else {}
    runs = observed(replay.runs(jobs), folder.logs, replay.first_s, stops_s)
    played = Played(
        arm, tuple(jobs), runs, setting.nodes, setting.gpus, replay.first_s, site.settings
    )
    return ArmRun(
        arm=arm,
        jobs=runs,
        headroom_ratio=mean(idle),
        scheduler_class=site.scheduler_class,
        hadoop_version=site.hadoop_version,
        settings=site.settings,
        journal=journal,
        commit=commit(),
        prediction=_prediction(played, Path(journal), say),
    )


def _prediction(played: Played, journal: Path, say: Say) -> dict[str, Any] | None:
    try:
        return prediction(played, journal)
    except NotMeasuredError as error:
        say(f"{played.arm}: no prediction: {error}")
        return None


def _idle() -> float:
    """Idle part of all processors since the last look."""
    return 1.0 - psutil.cpu_percent() / 100.0


@contextmanager
def cluster_of(arm: str, setting: LocalSetting, folder: StateFolder, say: Say) -> Iterator[Cluster]:
    """The arm's cluster; only the scheduler differs, and with it who tells the agents what to do."""
    properties = {
        "yarn.scheduler.capacity.maximum-am-resource-percent": "0.9",
        "yarn.scheduler.gandiva.agent.virtual-step-ms": str(setting.step_ms),
    }
    if arm == GANDIVA:
        properties["yarn.scheduler.gandiva.quantum-ms"] = str(setting.quantum_ms)
    plan = Plan(setting.nodes, setting.gpus, arm, setting.height_max, properties, agents=True)
    lifecycle.down(folder, say)
    try:
        yield lifecycle.up(folder, plan, say)
    finally:
        lifecycle.down(folder, say)


def _kept_journal(folder: StateFolder, place: Path) -> str:
    """The core's journal, out of the cluster's folder: the next run of this arm begins with an empty one."""
    if not any(folder.journal.glob("*.jsonl")):
        return ""
    shutil.rmtree(place, ignore_errors=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(folder.journal, place)
    return str(place)
