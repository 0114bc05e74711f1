"""FIFO, exclusive and strict, over the same engine as every policy."""

from __future__ import annotations

import pytest

from baselines.fifo import create
from gandiva_core.config.settings import Settings
from gandiva_core.conformance.world import Work
from gandiva_core.messages import events as e
from gandiva_core.model.cluster import QueueLimit, Server
from gandiva_core.model.errors import InputError
from gandiva_core.model.units import JobId, QueueName
from tests.builders import job, server
from tests.policies.stage import Stage, arriving


def played(servers: list[Server], works: list[Work], *facts: e.Event) -> Stage:
    """FIFO to the end."""
    return Stage(servers, works, policy=create(Settings(), {}), facts=facts).run()


def test_the_head_blocks_all_behind_it() -> None:
    """A 4-GPU gang waits for the whole server; the small job behind it waits too, although a GPU is free."""
    works = [
        *arriving(job("first", 3), run_s=100.0),
        *arriving(job("gang", 4), at_s=1.0, run_s=50.0),
        *arriving(job("small"), at_s=2.0, run_s=10.0),
    ]
    stage = played([server("A")], works)
    assert stage.world.finished_at_s == {"first": 100.0, "gang": 150.0, "small": 160.0}


def test_nothing_is_suspended_or_over_subscribed() -> None:
    """Exclusive: six jobs of 100 s on four GPUs take 200 s (case B01's FIFO side, halved)."""
    stage = played([server("A")], arriving(*[job(f"j{n}") for n in range(6)], run_s=100.0))
    assert max(stage.world.finished_at_s.values()) == 200.0
    assert not [switch for _, switch in stage.switches() if switch.suspend]


def test_B01_six_single_jobs_twice_on_eight_gpus_take_two_rounds() -> None:
    """Case B01: 8 GPUs, two sets of six 1-GPU jobs of 100 s: makespan 200 s, no gang holds a part."""
    jobs = [job(f"{part}{n}") for part in "ab" for n in range(6)]
    stage = played([server("A"), server("B")], arriving(*jobs, run_s=100.0))
    assert max(stage.world.finished_at_s.values()) == 200.0


def test_a_gang_larger_than_a_server_waits_for_a_set() -> None:
    """Six GPUs over two 4-GPU servers, whole or not at all."""
    works = [
        *arriving(job("first", 4), run_s=30.0),
        *arriving(job("six", workers=(4, 2)), at_s=1.0, run_s=10.0),
    ]
    stage = played([server("A"), server("B")], works)
    assert stage.world.finished_at_s[JobId("six")] == 40.0


def test_each_queue_has_its_own_line() -> None:
    """A head at its queue's limit blocks its own queue only."""
    limits = e.QueuesConfigured(
        0.0,
        tuple(QueueLimit(QueueName(f"root.{q}"), 1.0, most) for q, most in (("a", 1.0), ("b", 4))),
    )
    works = arriving(job("a1", queue="root.a"), run_s=50.0)
    # Residents may be H_max times the limit, so four of queue a are placed, of which one runs at a time.
    works += arriving(*[job(f"a{n}", queue="root.a") for n in range(2, 7)], run_s=50.0)
    works += arriving(job("b1", queue="root.b"), at_s=1.0, run_s=10.0)
    stage = played([server("A"), server("B")], works, limits)
    assert stage.world.finished_at_s[JobId("b1")] == 11.0
    assert stage.world.finished_at_s[JobId("a6")] == 300.0


def test_it_has_no_switches() -> None:
    """A switch is refused by name."""
    with pytest.raises(InputError, match="slicing"):
        create(Settings(), {"slicing": False})
