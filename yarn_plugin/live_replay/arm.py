"""One arm: every job submitted at its time to a ResourceManager that is there, and watched until the last has ended."""

from __future__ import annotations

import os
import secrets
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

import msgspec

from gandiva_core.model.errors import GandivaError
from gandiva_core.replay.live import JobRun
from gandiva_core.site.http import HttpError, HttpSession
from yarn_plugin.live_replay.plan import LiveJob
from yarn_plugin.live_replay.site import Site
from yarn_plugin.submit.client import Job, client_jar

POLL_S = 1.0
WORKLOADS = Path(__file__).resolve().parents[2] / "nodemanager_agent" / "workloads"
_ENDED = frozenset({"FINISHED", "FAILED", "KILLED"})
WORKER_MEMORY_MIB = 768
_SETTINGS = (
    f"gandiva.job.worker.memory={WORKER_MEMORY_MIB}m",
    "gandiva.job.am.memory=256m",
    "gandiva.job.env=OMP_NUM_THREADS=1",
)

Say = Callable[[str], None]


class LiveReplayError(GandivaError):
    """An arm did not come to its end."""


class Submission(msgspec.Struct, frozen=True):
    """How jobs are submitted, beside what the plan says of each.

    Attributes:
        python: that trains, on the nodes.
        python_venv: archive with it; None where nodes have it.
        settings: ``KEY=VALUE`` of docs/JOBS.md for every job.
        is_paced: the training keeps its mini-batches' least time itself, where no virtual device does.
    """

    python: str
    python_venv: Path | None = None
    settings: tuple[str, ...] = ()
    is_paced: bool = False

    def job(self, planned: LiveJob, tag: str) -> Job:
        """One job, as the Java client takes it."""
        options = {"--model": planned.kind, "--steps": planned.minibatches}
        if self.is_paced:
            options["--step-s"] = f"{planned.step_s:g}"
        words = ["training.py", *(str(word) for pair in options.items() for word in pair)]
        own = (f"gandiva.job.worker.gpus={planned.gpus}", f"gandiva.job.tags={tag}")
        return Job(
            command=" ".join(words),
            settings=(*_SETTINGS, *self.settings, *own),
            src_dir=WORKLOADS,
            python_venv=self.python_venv,
            python=self.python,
            name=f"{tag}-{planned.job_id}",
            is_detached=True,
        )


class Replay:
    """Submissions, and what the ResourceManager says of them.

    Args:
        logs: folder for what the clients say.
        look: called between two looks at the ResourceManager.
    """

    def __init__(
        self,
        site: Site,
        submission: Submission,
        logs: Path,
        say: Say,
        look: Callable[[], None] = lambda: None,
    ) -> None:
        self._site = site
        self._submission = submission
        self._logs = logs
        self._say = say
        self._look_too = look
        self._tag = f"live-{secrets.token_hex(4)}"
        self._session = HttpSession()
        self._clients: dict[str, subprocess.Popen[bytes]] = {}
        self.seen: dict[str, Mapping[str, object]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for client in self._clients.values():
            if client.poll() is None:
                client.kill()
            client.wait()
        self._session.close()

    def play(self, jobs: Sequence[LiveJob], limit_s: float) -> None:
        """Submit all, each at its time; until the last has ended.

        Raises:
            LiveReplayError: that took longer than the limit, or a submission was refused.
        """
        waiting = list(jobs)
        began_s = time.monotonic()
        while waiting or not self._have_all_ended(jobs):
            now_s = time.monotonic() - began_s
            while waiting and waiting[0].arrival_s <= now_s:
                self._submit(waiting.pop(0))
            if now_s > limit_s:
                raise LiveReplayError(f"{self._site.arm}: jobs go on after {limit_s:.0f} s")
            time.sleep(POLL_S)
            self._look_too()
            self._look(len(jobs))

    def going_on(self) -> tuple[str, ...]:
        """Applications that were submitted and have not ended."""
        return tuple(str(app["id"]) for app in self.seen.values() if app["state"] not in _ENDED)

    def _submit(self, job: LiveJob) -> None:
        words = self._submission.job(job, self._tag).words()
        with self._log(job.job_id).open("wb") as log:
            self._clients[job.job_id] = subprocess.Popen(
                [*self._site.program, str(client_jar()), *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **self._site.environment},
            )

    def _log(self, job_id: str) -> Path:
        return self._logs / f"client-{job_id}.log"

    def _look(self, count: int) -> None:
        try:
            page = f"/ws/v1/cluster/apps?applicationTags={self._tag}"
            answer = self._session.get_json(f"{self._site.web}{page}")
        except HttpError:
            return  # busy: the next look will do
        for app in (answer["apps"] or {}).get("app", ()):
            self.seen[str(app["name"]).removeprefix(f"{self._tag}-")] = app
        for job_id, client in self._clients.items():
            if client.poll() not in (None, 0):
                told = f"job {job_id} was not submitted; see {self._log(job_id)}"
                raise LiveReplayError(f"{self._site.arm}: {told}")
        ended = len(self.seen) - len(self.going_on())
        self._say(f"{self._site.arm}: {len(self.seen)} of {count} submitted, {ended} ended")

    def _have_all_ended(self, jobs: Sequence[LiveJob]) -> bool:
        return not self.going_on() and all(job.job_id in self.seen for job in jobs)

    @property
    def first_s(self) -> float:
        """When the first was submitted, on the ResourceManager's clock."""
        return min(_s(app, "startedTime") for app in self.seen.values())

    def runs(self, jobs: Sequence[LiveJob]) -> tuple[JobRun, ...]:
        """Times from the ResourceManager, in seconds after the first submission."""
        return tuple(self._run(job.job_id) for job in jobs)

    def _run(self, job_id: str) -> JobRun:
        app = self.seen[job_id]
        return JobRun(
            job_id,
            _s(app, "startedTime") - self.first_s,
            _s(app, "finishedTime") - self.first_s,
            str(app["finalStatus"]),
            str(app["id"]),
        )


def _s(app: Mapping[str, object], name: str) -> float:
    return int(str(app[name])) / 1000.0
