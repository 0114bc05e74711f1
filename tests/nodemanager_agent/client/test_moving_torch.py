"""PyTorch jobs that move to another process: nothing of it shows in what they compute (SPEC G-68 B, G-69, G-75)."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.agent import Job, Refused, job_environment
from tests.nodemanager_agent.client.jobs import (
    GRANT,
    free_port,
    gang_environment,
    needs_torch,
    suspend,
)

pytestmark = needs_torch
PROGRAM = Path(__file__).parent / "moving.py"
PACE = {"GANDIVA_VIRTUAL_STEP_S": "0.05"}


def command(out: Path, **options: Any) -> list[str]:
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    return [sys.executable, str(PROGRAM), "--out", str(out), *words]


def reference(out: Path, environment: dict[str, str] | None = None, **options: Any) -> Any:
    return subprocess.Popen(command(out, **options), env=job_environment(**environment or {}))


def started(job: Job) -> Job:
    job.start()
    job.agent.await_message(lambda each: each["op"] == "progress" and each["minibatches"] > 12)
    return job


@pytest.mark.slow  # six starts of torch: a move, one that is called off, and what they are held against
@pytest.mark.parametrize("workers", [0, 2])
def test_losses_bit_exact_across_two_moves(tmp_path: Path, workers: int) -> None:
    """Model, batch norm, Adam, LR schedule, shuffling, dropout, augmentation, Python's and torch's generators."""
    options: dict[str, Any] = {"workers": workers, "steps": 150}
    plain = reference(tmp_path / "plain", **options)
    assert plain.wait() == 0
    out, folder = tmp_path / "moved", tmp_path / "state"
    with (
        Job(command(out, **options), tmp_path, PACE, "a") as first,
        Job(command(out, **options), tmp_path, PACE, "b") as second,
        Job(command(out, **options), tmp_path, PACE, "c") as third,
    ):
        for each in (second, third):
            each.agent.command("warm", **GRANT | {"environment": PACE})
        started(first)
        progress = first.agent.await_op("progress")
        assert (progress["can_move"], progress["can_resize"]) == (True, False), progress
        assert progress["metric"] > 0
        called_off = first.agent.command("save", folder=str(tmp_path / "x"), limit_s=20)
        first.agent.command("resume", **GRANT)
        at = move(first, second, folder / "1")
        assert at >= called_off["minibatches"]
        answer = suspend(second)[0]  # as any other job, and what it loaded is memory of its own
        assert answer["figures"]["freed_mib"] > 0.95 * answer["figures"]["state_mib"]
        second.agent.command("resume", **GRANT)
        move(second, third, folder / "2")
        assert third.wait() == 0, third.text()
    assert out.with_suffix(".0").read_text() == (tmp_path / "plain.0").read_text()


def move(source: Job, destination: Job, folder: Path) -> int:
    """As two agents do it; mini-batches done at the source."""
    saved = source.agent.command("save", folder=str(folder), limit_s=20)
    restored = destination.agent.command("restore", folder=str(folder), **GRANT)
    assert restored["minibatches"] == saved["minibatches"] + 1
    check = destination.agent.said("continuity")[-1]
    assert (check["after"], check["is_same"]) == ("move", True), check
    figures = restored["figures"]
    assert set(saved["figures"]) >= {"save_s", "saved_mib"}
    assert {"warm_s", "restore_s", "first_minibatch_s", "frozen_s", "since_stop_s"} <= set(figures)
    assert figures["frozen_s"] > figures["restore_s"] + figures["first_minibatch_s"]
    source.agent.command("release")
    assert source.wait() == 0
    return int(saved["minibatches"])


def test_what_cannot_be_loaded_leaves_the_source_running(tmp_path: Path) -> None:
    """E13, E14: a full disk, a flipped bit, and a state that would run something; G-13: the source stays the job."""
    bomb, out, folder = tmp_path / "bomb", tmp_path / "out", tmp_path / "state"
    small = tmp_path / "small"
    small.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(small)]
    can_mount = subprocess.run(mount, check=False, capture_output=True).returncode == 0
    options = {"bomb": bomb, "steps": 1000}
    try:
        with (
            Job(command(out, **options), tmp_path, PACE, "a") as source,
            Job(command(out, **options), tmp_path, PACE, "b") as destination,
        ):
            destination.agent.command("warm", **GRANT)
            started(source)
            if can_mount:
                with pytest.raises(Refused, match=f"NO_SPACE: no space on {small}"):
                    source.agent.command("save", folder=str(small), limit_s=20)
                assert not list(small.rglob("generation*"))
            refuses_what_is_anothers(source, "save", tmp_path / "anothers", limit_s=20)
            refuses_what_is_anothers(destination, "restore", tmp_path / "anothers", **GRANT)
            source.agent.command("save", folder=str(folder), limit_s=20)
            with pytest.raises(Refused, match="UNSAFE"):
                destination.agent.command("restore", folder=str(folder), **GRANT)
            assert not bomb.exists()
            state = next(folder.rglob("own.pt"))
            data = bytearray(state.read_bytes())
            data[100] ^= 1
            state.write_bytes(data)
            with pytest.raises(Refused, match=r"own\.pt is not what was written"):
                destination.agent.command("restore", folder=str(folder), **GRANT)
            source.agent.command("resume", **GRANT)
            done = source.agent.await_op("progress")["minibatches"]
            source.agent.await_message(lambda m: m["op"] == "progress" and m["minibatches"] > done)
    finally:
        if can_mount:
            subprocess.run(["umount", str(small)], check=True)
    steps = [int(line.split()[0]) for line in out.with_suffix(".0").read_text().splitlines()]
    assert steps == list(range(len(steps)))  # of the source alone, one after the other


def refuses_what_is_anothers(job: Job, order: str, folder: Path, **fields: Any) -> None:
    """Names of folders can be foreseen: whoever was there first neither reads the state nor puts one in its place."""
    if os.geteuid() == 0:  # nobody else can make such a folder
        folder.mkdir(exist_ok=True)
        os.chown(folder, 54321, -1)
        with pytest.raises(Refused, match=f"FOLDER: {folder} belongs to user 54321"):
            job.agent.command(order, folder=str(folder), **fields)


@pytest.mark.slow  # three gangs of two
def test_gang_losses_bit_exact_across_a_move(tmp_path: Path) -> None:
    """Collectives are formed anew at the destination; rank 0 writes the replica, each rank its own."""
    port = free_port()
    plain = [
        reference(tmp_path / "plain", gang_environment(rank, port), steps=140) for rank in (0, 1)
    ]
    assert [each.wait() for each in plain] == [0, 0]
    out, folder, here, there = tmp_path / "moved", tmp_path / "state", free_port(), free_port()
    with (
        Job(command(out, steps=140), tmp_path, gang_environment(0, here) | PACE, "a0") as a0,
        Job(command(out, steps=140), tmp_path, gang_environment(1, here) | PACE, "a1") as a1,
        Job(command(out, steps=140), tmp_path, {}, "b0") as b0,
        Job(command(out, steps=140), tmp_path, {}, "b1") as b1,
    ):
        asked = [
            job.agent.send("warm", **GRANT | {"environment": gang_environment(rank, there)})
            for rank, job in enumerate((b0, b1))
        ]
        keys = [
            job.agent.send("start", **GRANT | {"environment": gang_environment(r, here) | PACE})
            for r, job in enumerate((a0, a1))
        ]
        [job.agent.answer(key) for job, key in zip((a0, a1), keys, strict=True)]
        [job.agent.answer(key) for job, key in zip((b0, b1), asked, strict=True)]
        for job in (a0, a1):
            job.agent.await_message(lambda m: m["op"] == "progress" and m["minibatches"] > 12)
        first = a0.agent.send("save", folder=str(folder), limit_s=20)
        time.sleep(0.5)  # by then its rank has stopped with the gang, and for a suspend
        second = a1.agent.send("save", folder=str(folder), limit_s=20)
        saved = [a0.agent.answer(first), a1.agent.answer(second)]
        assert len({each["minibatches"] for each in saved}) == 1
        assert len(list(folder.rglob("replica.pt"))) == 1
        keys = [job.agent.send("restore", folder=str(folder), **GRANT) for job in (b0, b1)]
        restored = [job.agent.answer(key) for job, key in zip((b0, b1), keys, strict=True)]
        assert {each["minibatches"] for each in restored} == {saved[0]["minibatches"] + 1}
        [job.agent.command("release") for job in (a0, a1)]
        assert [b0.wait(), b1.wait()] == [0, 0], b0.text() + b1.text()
    for rank in (0, 1):
        moved = out.with_suffix(f".{rank}").read_text()
        assert moved == (tmp_path / f"plain.{rank}").read_text()
