"""One arm: a cluster of its own, every job submitted at its time, watched until the last has ended."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
import psutil

from gandiva_core.model.errors import GandivaError
from gandiva_core.site.http import HttpError, HttpSession
from yarn_plugin.cluster import lifecycle
from yarn_plugin.cluster.configuration import GANDIVA
from yarn_plugin.cluster.state import Cluster, Plan, StateFolder
from yarn_plugin.live_replay.figures import ArmRun, JobRun
from yarn_plugin.live_replay.plan import LiveJob
from yarn_plugin.submit.client import Job, client_jar, runner

PREFIX = "live-"
POLL_S = 1.0
_ENDED = frozenset({"FINISHED", "FAILED", "KILLED"})
_MEMORY = ("gandiva.job.worker.memory=768m", "gandiva.job.am.memory=256m")

Say = Callable[[str], None]


class LiveReplayError(GandivaError):
    """An arm did not come to its end."""


class Setting(msgspec.Struct, frozen=True):
    """What all arms have in common.

    Attributes:
        limit_s: after which an arm that goes on is given up.
    """

    nodes: int
    gpus: int
    height_max: int
    quantum_ms: int
    limit_s: float


def run_arm(arm: str, jobs: Sequence[LiveJob], setting: Setting, out: Path, say: Say) -> ArmRun:
    """Bring a cluster up, play the jobs, take it down again, whatever happens.

    Raises:
        LiveReplayError: it did not end within its limit, or a submission was refused.
        GandivaError: the cluster does not come up.
    """
    folder = StateFolder(out / "clusters" / arm)
    with cluster_of(arm, setting, folder, say) as cluster:
        played = _Arm(arm, cluster, folder, say)
        try:
            played.play(jobs, setting.limit_s)
        finally:
            played.close()
    journal = _kept_journal(folder, out / "journals" / arm)
    return ArmRun(arm, played.runs(jobs), played.headroom_ratio, journal)


@contextmanager
def cluster_of(arm: str, setting: Setting, folder: StateFolder, say: Say) -> Iterator[Cluster]:
    """The arm's cluster; only the scheduler differs, and with it who tells the agents what to do."""
    properties = {"yarn.scheduler.capacity.maximum-am-resource-percent": "0.9"}
    if arm == GANDIVA:
        properties["yarn.scheduler.gandiva.quantum-ms"] = str(setting.quantum_ms)
    plan = Plan(setting.nodes, setting.gpus, arm, setting.height_max, properties, agents=True)
    lifecycle.down(folder, say)
    try:
        yield lifecycle.up(folder, plan, say)
    finally:
        lifecycle.down(folder, say)


class _Arm:
    """Submissions and what the ResourceManager says of them."""

    def __init__(self, arm: str, cluster: Cluster, folder: StateFolder, say: Say) -> None:
        self._arm = arm
        self._cluster = cluster
        self._folder = folder
        self._say = say
        self._session = HttpSession()
        self._clients: dict[str, subprocess.Popen[bytes]] = {}
        self._seen: dict[str, Mapping[str, object]] = {}
        self._program, self._environment = runner(None, folder.path)
        self._idle: list[float] = []

    def play(self, jobs: Sequence[LiveJob], limit_s: float) -> None:
        waiting = list(jobs)
        began_s = time.monotonic()
        psutil.cpu_percent()
        while waiting or not self._have_all_ended(jobs):
            now_s = time.monotonic() - began_s
            while waiting and waiting[0].arrival_s <= now_s:
                self._submit(waiting.pop(0))
            if now_s > limit_s:
                raise LiveReplayError(f"{self._arm}: jobs go on after {limit_s:.0f} s")
            time.sleep(POLL_S)
            self._idle.append(1.0 - psutil.cpu_percent() / 100.0)
            self._look(len(jobs))

    def _submit(self, job: LiveJob) -> None:
        words = Job(
            command=" ".join(_training(job)),
            settings=(*_MEMORY, f"gandiva.job.worker.gpus={job.gpus}", f"gandiva.job.env={_ENV}"),
            name=PREFIX + job.job_id,
            is_detached=True,
        ).words()
        with self._folder.log(f"client-{job.job_id}").open("wb") as log:
            self._clients[job.job_id] = subprocess.Popen(
                [*self._program, str(client_jar()), *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def _look(self, count: int) -> None:
        try:
            answer = self._session.get_json(f"{self._cluster.web}/ws/v1/cluster/apps")
        except HttpError:
            return  # busy: the next look will do
        for app in (answer["apps"] or {}).get("app", ()):
            self._seen[str(app["name"]).removeprefix(PREFIX)] = app
        for job_id, client in self._clients.items():
            if client.poll() not in (None, 0):
                log = self._folder.log(f"client-{job_id}")
                raise LiveReplayError(f"{self._arm}: job {job_id} was not submitted; see {log}")
        ended = sum(app["state"] in _ENDED for app in self._seen.values())
        self._say(f"{self._arm}: {len(self._seen)} of {count} submitted, {ended} ended")

    def _have_all_ended(self, jobs: Sequence[LiveJob]) -> bool:
        return all(
            job.job_id in self._seen and self._seen[job.job_id]["state"] in _ENDED for job in jobs
        )

    @property
    def headroom_ratio(self) -> float:
        """Mean idle part of all processors."""
        return sum(self._idle) / max(1, len(self._idle))

    def runs(self, jobs: Sequence[LiveJob]) -> tuple[JobRun, ...]:
        """Times from the ResourceManager, in seconds after the first submission."""
        starts = {job.job_id: _ms(self._seen[job.job_id], "startedTime") for job in jobs}
        first_ms = min(starts.values())
        return tuple(
            JobRun(
                job.job_id,
                (starts[job.job_id] - first_ms) / 1000.0,
                (_ms(self._seen[job.job_id], "finishedTime") - first_ms) / 1000.0,
                str(self._seen[job.job_id]["finalStatus"]),
                self._first_print_s(job, first_ms),
            )
            for job in jobs
        )

    def _first_print_s(self, job: LiveJob, first_ms: int) -> float | None:
        app_id = self._seen[job.job_id]["id"]
        for file in self._folder.logs.glob(f"node-*-containers/{app_id}/*/stdout"):
            for line in file.read_text(errors="replace").splitlines():
                words = line.split()
                if len(words) == 3 and words[0] == "0":
                    return float(words[1]) - first_ms / 1000.0
        return None

    def close(self) -> None:
        for client in self._clients.values():
            if client.poll() is None:
                client.kill()
            client.wait()
        self._session.close()


_ENV = "OMP_NUM_THREADS=1"


def _training(job: LiveJob) -> list[str]:
    """The workers' command; an absolute path, so that what travels with the job does not hide it."""
    script = Path(__file__).resolve().parents[2] / "nodemanager_agent" / "workloads" / "training.py"
    options = {"--model": job.kind, "--steps": job.minibatches, "--step-s": f"{job.step_s:g}"}
    words = [str(word) for pair in options.items() for word in pair]
    return [sys.executable, str(script), *words]


def _ms(app: Mapping[str, object], name: str) -> int:
    return int(str(app[name]))


def _kept_journal(folder: StateFolder, place: Path) -> str:
    """The core's journal, out of the cluster's folder: the next run of this arm begins with an empty one."""
    if not any(folder.journal.glob("*.jsonl")):
        return ""
    shutil.rmtree(place, ignore_errors=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(folder.journal, place)
    return str(place)
