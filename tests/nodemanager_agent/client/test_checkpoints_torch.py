"""A worker that was lost goes on from the last checkpoint of all ranks (case B03): at most so many steps are lost."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.fakes.agent import job_environment
from tests.nodemanager_agent.client.jobs import PROGRAM as UNMARKED
from tests.nodemanager_agent.client.jobs import free_port, gang_environment, needs_torch

pytestmark = needs_torch
PROGRAM = Path(__file__).parent / "moving.py"
EVERY, STEPS = 10, 300


def life(
    program: Path, out: Path, environment: Mapping[str, str], steps: int = STEPS
) -> subprocess.Popen[str]:
    """A task of a cluster that has no agents: checkpoints need none."""
    launch = [sys.executable, "-m", "nodemanager_agent.client.launch", "--", sys.executable]
    words = [*launch, str(program), "--out", str(out), "--steps", str(steps)]
    return subprocess.Popen(
        words, env=job_environment(**environment), stderr=subprocess.PIPE, text=True
    )


def gang(out: Path, more: Mapping[str, str]) -> list[subprocess.Popen[str]]:
    port = free_port()
    return [life(PROGRAM, out, {**gang_environment(rank, port), **more}) for rank in (0, 1)]


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Its exit code, and what it said."""
    said = process.communicate(timeout=60)[1]
    return process.returncode, said


def steps_of(lines: list[str]) -> list[int]:
    return [int(line.split()[0]) for line in lines]


@pytest.mark.slow  # three gangs of two
def test_losses_bit_exact_after_a_rank_was_killed(tmp_path: Path) -> None:
    """B03: no step twice in the accepted log, none missing, at most `EVERY` lost; a torn checkpoint is passed over."""
    plain, out, folder = tmp_path / "plain", tmp_path / "lives", tmp_path / "checkpoints"
    assert [ended(each)[0] for each in gang(plain, {})] == [0, 0]
    kept = {"GANDIVA_CHECKPOINT_DIR": str(folder), "GANDIVA_CHECKPOINT_EVERY": str(EVERY)}
    first = gang(out, kept)
    log = out.with_suffix(".1")
    while not log.exists() or len(log.read_text().splitlines()) < 3 * EVERY:
        assert first[1].poll() is None, ended(first[1])
        time.sleep(0.01)
    first[1].kill()
    first[0].kill()
    [ended(each) for each in first]
    before = {rank: out.with_suffix(f".{rank}").read_text().splitlines() for rank in (0, 1)}
    own = max((folder / "rank-1").glob("generation-*"))
    (own / "own.pt").write_bytes(b"torn")
    newest = EVERY * (len(before[1]) // EVERY)
    second = gang(out, kept)
    ends = [ended(each) for each in second]
    said = [text for _, text in ends]
    assert [code for code, _ in ends] == [0, 0], said
    for rank in (0, 1):
        lines = out.with_suffix(f".{rank}").read_text().splitlines()
        again = lines[len(before[rank]) :]
        begin = steps_of(again)[0]
        assert f"gandiva: goes on from its checkpoint after {begin} mini-batches" in said[rank]
        assert begin % EVERY == 0
        assert newest - 2 * EVERY <= begin <= newest
        accepted = before[rank][:begin] + again
        assert accepted == plain.with_suffix(f".{rank}").read_text().splitlines()
        assert steps_of(accepted) == list(range(STEPS))


def test_what_cannot_be_saved_is_said_and_trains_on(tmp_path: Path) -> None:
    """A script that keeps nothing, and a folder that cannot be written."""
    (tmp_path / "file").write_text("")
    kept = {"GANDIVA_CHECKPOINT_EVERY": "5"}
    unmarked = life(
        UNMARKED, tmp_path / "a", {**kept, "GANDIVA_CHECKPOINT_DIR": str(tmp_path / "c")}, 12
    )
    unwritable = life(
        PROGRAM, tmp_path / "b", {**kept, "GANDIVA_CHECKPOINT_DIR": str(tmp_path / "file")}, 12
    )
    ends = [ended(unmarked), ended(unwritable)]
    said = [text for _, text in ends]
    assert [code for code, _ in ends] == [0, 0], said
    assert said[0].count("no checkpoints: it does not say where its mini-batches begin") == 1
    assert said[1].count("no checkpoint after") == 2
    assert not (tmp_path / "c").exists()
