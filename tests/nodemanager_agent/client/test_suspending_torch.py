"""PyTorch jobs that are suspended and resumed: nothing of it shows in what they compute (issue 5, "it must show").

Each test starts real training processes, whose import of torch alone takes five seconds.
"""

from __future__ import annotations

import signal
import statistics
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from nodemanager_agent.client.child import with_hook
from nodemanager_agent.client.processes import send
from tests.fakes.agent import FakeAgent, Job, job_environment
from tests.nodemanager_agent.client.jobs import (
    GRANT,
    anonymous_mib,
    cycle,
    free_port,
    gang_environment,
    needs_torch,
    plain,
    resume,
    suspend,
    training,
    tree,
)

pytestmark = needs_torch
PACE = {"GANDIVA_VIRTUAL_STEP_S": "0.03"}


def assert_went_on_as_before(job: Job) -> None:
    checks = job.agent.said("continuity")
    assert checks
    assert {(each["is_same"], each["detail"]) for each in checks} == {(True, "")}


@pytest.mark.parametrize("workers", [0, 2])
def test_losses_bit_exact_over_50_suspends_in_100_steps(tmp_path: Path, workers: int) -> None:
    """FACTS §5: batch norm, dropout, Adam, LR schedule, tied weights, shuffling; G-11 iii, G-51."""
    options: dict[str, Any] = {"steps": 100, "workers": workers, "width": 2048}
    reference = plain(tmp_path / "plain", **options)
    with Job(training(tmp_path / "stopped", **options), tmp_path, PACE) as job:
        job.start()
        answers = [each[0] for each in cycle(50, job)]
        assert job.wait() == 0, job.text()
        assert_went_on_as_before(job)
        ended = job.agent.await_op("ended")
    assert reference.wait() == 0
    assert (tmp_path / "stopped").read_text() == (tmp_path / "plain").read_text()
    assert len({each["minibatches"] for each in answers}) > 40
    assert ended["exit_code"] == 0
    for answer in answers:
        figures = answer["figures"]
        assert figures["state_mib"] > 8
        assert figures["freed_mib"] > 0.95 * figures["state_mib"]


@pytest.mark.slow  # two gangs, one after the other: with four processes at once the time-out of 5 s is short
def test_gang_losses_bit_exact_over_50_suspends(tmp_path: Path) -> None:
    """Both ranks stop at the same step, by the all-reduced flag; the agents speak at slightly different times."""
    port = free_port()
    reference = [
        plain(tmp_path / "plain", gang_environment(rank, port), steps=120) for rank in (0, 1)
    ]
    assert [each.wait() for each in reference] == [0, 0]
    port = free_port()
    with (
        Job(
            training(tmp_path / "s", steps=120), tmp_path, gang_environment(0, port) | PACE, "a"
        ) as first,
        Job(
            training(tmp_path / "s", steps=120), tmp_path, gang_environment(1, port) | PACE, "b"
        ) as second,
    ):
        first.start()
        second.start()
        answers = cycle(50, first, second, run_s=0.0)
        assert [first.wait(), second.wait()] == [0, 0], first.text() + second.text()
        assert_went_on_as_before(first)
        assert_went_on_as_before(second)
    for of_first, of_second in answers:
        assert of_first["minibatches"] == of_second["minibatches"]
    for rank in (0, 1):
        assert (tmp_path / f"s.{rank}").read_text() == (tmp_path / f"plain.{rank}").read_text()


@pytest.mark.slow  # two hundred of them
def test_200_suspends_leak_nothing_and_memory_is_back_at_the_floor_each_time(
    tmp_path: Path,
) -> None:
    """Resident memory while suspended stays within 5 % of the first time's, over 200 suspends."""
    floors = []
    with Job(training(tmp_path / "out", steps=100000, width=4096), tmp_path) as job:
        job.start()
        for _ in range(200):
            (answer,) = suspend(job)
            (rank,) = tree(job)
            assert rank.state == "T"
            floors.append(anonymous_mib(rank.pid))
            assert answer["figures"]["kept_mib"] <= 0.05 * answer["figures"]["state_mib"]
            resume(job)
        assert_went_on_as_before(job)
    first = statistics.median(floors[:5])
    assert max(floors) <= 1.05 * first
    assert statistics.median(floors[-20:]) <= 1.05 * statistics.median(floors[10:30])


@pytest.mark.slow  # the hold itself is 30 s
def test_a_gang_held_longer_than_its_time_out_goes_on_bit_exact(tmp_path: Path) -> None:
    """Process group's time-out 5 s, hold 30 s (FACTS §5: a raw SIGSTOP of 8 s killed the job)."""
    port = free_port()
    reference = [
        plain(tmp_path / "plain", gang_environment(rank, port), steps=60) for rank in (0, 1)
    ]
    assert [each.wait() for each in reference] == [0, 0]
    port = free_port()
    with (
        Job(
            training(tmp_path / "s", steps=60), tmp_path, gang_environment(0, port) | PACE, "a"
        ) as first,
        Job(
            training(tmp_path / "s", steps=60), tmp_path, gang_environment(1, port) | PACE, "b"
        ) as second,
    ):
        first.start()
        second.start()
        suspend(first)  # the other stops with it, and goes on by itself when no order comes
        resume(first)
        time.sleep(1)
        suspend(first, second)
        time.sleep(30)
        resume(first)
        time.sleep(7)  # whoever comes first waits for the other, whatever the time-out is
        resume(second)
        assert [first.wait(), second.wait()] == [0, 0], first.text() + second.text()
    for rank in (0, 1):
        assert (tmp_path / f"s.{rank}").read_text() == (tmp_path / f"plain.{rank}").read_text()


def test_accumulated_gradients_have_one_boundary_a_step_bit_exact(tmp_path: Path) -> None:
    """The boundary is the optimizer's step, not the backward."""
    options: dict[str, Any] = {"steps": 30, "accumulate": 3}
    reference = plain(tmp_path / "plain", **options)
    with Job(training(tmp_path / "stopped", **options), tmp_path, PACE) as job:
        job.start()
        answers = [each[0] for each in cycle(10, job)]
        assert job.wait() == 0, job.text()
    assert reference.wait() == 0
    assert (tmp_path / "stopped").read_text() == (tmp_path / "plain").read_text()
    assert answers[-1]["minibatches"] <= 30


@pytest.mark.slow  # held for longer than the loaders' time-out
def test_eight_loader_workers_stop_with_the_job_and_a_dead_one_fails_it(tmp_path: Path) -> None:
    """Case C11: the whole tree in state T for longer than the loaders' time-out; one killed then is a failure."""
    options: dict[str, Any] = {"steps": 100000, "workers": 8, "loader_limit_s": 3}
    with Job(training(tmp_path / "out", **options), tmp_path) as job:
        job.start()
        suspend(job)
        assert [each.state for each in tree(job)] == ["T"] * 9
        time.sleep(6)
        resume(job)
        before = len((tmp_path / "out").read_text())
        time.sleep(0.5)
        suspend(job)
        assert len((tmp_path / "out").read_text()) > before, job.text()
        worker = max(each.pid for each in tree(job))
        send(worker, signal.SIGKILL)
        resume(job)
        assert job.wait(60) != 0
        assert "DataLoader worker" in job.text()


@pytest.mark.slow  # torchrun and its two ranks import torch one after the other
def test_sharded_ranks_below_torchrun_stop_in_place_bit_exact(tmp_path: Path) -> None:
    """Every rank is found by joining; FSDP is suspended, and never moved or resized."""
    launcher = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port"]
    options: dict[str, Any] = {"steps": 60, "shard": 1}
    python, *program = training(tmp_path / "plain", **options)
    reference = subprocess.Popen(
        [python, *launcher, str(free_port()), *program], env=job_environment()
    )
    python, *program = training(tmp_path / "s", **options)
    with Job([python, *launcher, str(free_port()), *program], tmp_path, PACE) as job:
        job.start()
        (first, *_) = cycle(15, job)[0]
        assert first["figures"]["freed_mib"] > 0
        progress = job.agent.said("progress")[-1]
        assert job.wait() == 0, job.text()
        assert_went_on_as_before(job)
    assert reference.wait() == 0
    assert progress["ranks"] == 2
    assert not progress["can_move"]
    assert "DTensor" in progress["reason"]
    for rank in (0, 1):
        assert (tmp_path / f"s.{rank}").read_text() == (tmp_path / f"plain.{rank}").read_text()


def test_a_command_that_is_not_ours_binds_and_is_stopped_through_the_agent_bit_exact(
    tmp_path: Path,
) -> None:
    """DESIGN §5: an unmodified ApplicationMaster's command with the hook on PYTHONPATH, and no launcher."""
    options: dict[str, Any] = {"steps": 60, "workers": 2}
    reference = plain(tmp_path / "plain", **options)
    agent = FakeAgent()
    environment = job_environment(GANDIVA_AGENT_SOCKET=agent.path, CONTAINER_ID="container_1")
    process = subprocess.Popen(
        training(tmp_path / "s", **options), env=with_hook(environment), stderr=subprocess.PIPE
    )
    try:
        assert agent.attend()["role"] == "rank"
        assert not (tmp_path / "s").exists()
        agent.command("start", gpus=[0], uuids=["virtual-0"], environment=PACE)
        answers = []
        for number in range(10):
            answers.append(agent.command("suspend", limit_s=30))
            if number == 5:
                agent.hang_up()
                assert agent.come_back()["state"] == "suspended"
            agent.command("resume", **GRANT)
            time.sleep(0.03)
        progress = agent.await_op("progress")
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.communicate()
        agent.close()
    assert reference.wait() == 0
    assert progress["method"] == "framework"
    assert all(each["figures"]["freed_mib"] > 0 for each in answers)
    assert {each["is_same"] for each in agent.said("continuity")} == {True}
    assert (tmp_path / "s").read_text() == (tmp_path / "plain").read_text()
