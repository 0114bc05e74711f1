"""Same events, same bytes: ten runs of the engine under the real policy, one of them in another process (C-6)."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from random import Random

import msgspec

from gandiva_core.config.settings import Settings
from gandiva_core.engine.engine import Engine
from gandiva_core.messages import events as e
from gandiva_core.messages.effects import CommitGang, Effect, StartTimer, SwitchResidents
from gandiva_core.model.job import JobPhase
from gandiva_core.policies.gandiva import create
from gandiva_core.runtime.journal import entry_of
from tests.builders import cluster, job


class Run:
    """A run with faults, chosen by the seed alone; answers come at the same instant."""

    def __init__(self, seed: int) -> None:
        self.draw = Random(seed)
        self.engine = Engine(create(Settings(), {}), Settings())
        self.lines = hashlib.sha256()
        self.timers: dict[str, float] = {}

    def tell(self, event: e.Event) -> None:
        inbox = [event]
        while inbox:
            due = inbox.pop(0)
            outcome = self.engine.handle(due)
            self.lines.update(msgspec.json.encode(entry_of(due, outcome)))
            for effect in outcome.effects:
                if isinstance(effect, StartTimer):
                    self.timers[effect.key] = effect.at_s
                elif (reply := self.answer(effect, due.at_s)) is not None:
                    inbox.append(reply)

    def answer(self, effect: Effect, at_s: float) -> e.Event | None:
        if isinstance(effect, CommitGang):
            if self.draw.random() < 0.1:
                return e.GangRefused(at_s, effect.job_id, "NO_ROOM")
            return e.GangCommitted(at_s, effect.job_id, ("c",) * len(effect.workers))
        if isinstance(effect, SwitchResidents):
            started = tuple((run.job_id, at_s) for run in effect.run)
            stopped = tuple((job_id, at_s) for job_id in effect.suspend)
            return e.ResidentsSwitched(at_s, effect.switch_id, stopped, started)
        return None

    def pass_time(self, seconds: float) -> float:
        now_s = self.engine.view.now_s + seconds
        while self.timers and min(self.timers.values()) <= now_s:
            key = min(self.timers, key=lambda key: (self.timers[key], key))
            self.tell(e.TimerFired(max(self.timers.pop(key), self.engine.view.now_s), key))
        return max(now_s, self.engine.view.now_s)

    def end_some(self, now_s: float) -> None:
        running = [j for j in self.engine.view.jobs.values() if j.phase is JobPhase.RUNNING]
        if running and self.draw.random() < 0.6:
            self.tell(e.JobFinished(now_s, self.draw.choice(running).spec.job_id))


def digest(seed: int = 7) -> str:
    """The sha256 of all entries of a run, and of the state at its end."""
    run = Run(seed)
    servers = cluster(4).servers
    for server in servers:
        run.tell(e.ServerJoined(0.0, server))
    for number in range(120):
        now_s = run.pass_time(run.draw.choice((0.0, 1.0, 40.0)))
        run.tell(e.JobSubmitted(now_s, job(f"j{number}", run.draw.choice((1, 1, 2, 4, 8)))))
        run.end_some(now_s)
        if run.draw.random() < 0.05:
            lost = run.draw.choice(servers)
            run.tell(e.ServerLost(now_s, lost.server_id))
            run.tell(e.ServerJoined(now_s, lost))
    run.lines.update(msgspec.json.encode(run.engine.snapshot()))
    return run.lines.hexdigest()


def test_ten_runs_one_hash() -> None:
    assert len({digest() for _ in range(10)}) == 1


def test_other_seed_other_hash() -> None:
    """So that the hash is of something."""
    assert digest(8) != digest(7)


def test_another_process_with_another_hash_seed(repo_root: Path) -> None:
    """No decision may hang on the order of a set of strings."""
    code = "from tests.engine.test_determinism import digest; print(digest())"
    printed = {
        subprocess.run(
            [sys.executable, "-c", code],
            check=True,
            capture_output=True,
            text=True,
            cwd=repo_root,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(repo_root)},
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert printed == {digest()}
