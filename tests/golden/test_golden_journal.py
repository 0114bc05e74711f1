"""A golden journal: one small run whose every byte is known (C-6).

It shows what a change of a policy, of the engine or of the format does, line by line. After a change that was meant,
write it anew and read the difference before committing it:

    GANDIVA_RENEW_GOLDEN=1 pytest tests/golden
"""

from __future__ import annotations

import io
import os
from itertools import zip_longest
from pathlib import Path

import pytest

from gandiva_core.config.settings import Settings
from gandiva_core.conformance.world import Delays, SmallWorld, Work
from gandiva_core.engine.engine import Engine
from gandiva_core.messages import events as e
from gandiva_core.messages.effects import CommitGang
from gandiva_core.messages.policy import PolicyFactory
from gandiva_core.model.cluster import Cluster
from gandiva_core.model.units import JobId, ServerId
from gandiva_core.policies.gandiva import create
from gandiva_core.runtime.journal import FORMAT_VERSION, Ending, Header, LineWriter, entry_of
from gandiva_core.runtime.recheck import recheck
from tests.builders import cluster, job, server

GOLDEN = Path(__file__).with_name("gandiva-small.jsonl")


def works() -> list[Work]:
    """Every step of the cascade, a gang over two servers, a late job, two classes."""
    return [
        Work(0.0, job("a"), 400.0),
        Work(0.0, job("b", 2), 150.0),
        Work(0.0, job("c", 4), 250.0),
        Work(5.0, job("d", 4), 250.0),
        Work(5.0, job("e", weight=2.0), 300.0),
        Work(10.0, job("f", 5), 100.0),
        Work(20.0, job("g", 3), 100.0),
        Work(130.0, job("h", priority_class=1), 90.0),
    ]


def journal() -> bytes:
    """The run: 2×4 GPUs, Q = 60 s, switches of 0.75 s, one refusal, a broken gang, a lost server, a kill."""
    settings = Settings()
    both: Cluster = cluster(2)
    engine = Engine(create(settings, {}), settings, check="full")
    commits = iter(range(1000))

    def refuse(_commit: CommitGang, _now_s: float) -> str | None:
        return "NO_ROOM" if next(commits) == 2 else None

    facts: list[e.Event] = [
        e.GangBroken(95.0, JobId("b"), "container lost"),
        e.ServerLost(700.0, ServerId("s02"), "power"),
        e.ServerJoined(760.0, server("s02")),
        e.JobKilled(800.0, JobId("g")),
    ]
    world = SmallWorld(
        engine,
        both.servers,
        works(),
        delays=Delays(lambda _: 0.5, lambda _: 0.25),
        refuse=refuse,
        facts=facts,
    )
    world.run(events_max=1000)
    assert not world.unfinished
    sink = io.BytesIO()
    header = Header(
        format_version=FORMAT_VERSION,
        arm="gandiva",
        policy="gandiva",
        cluster=both,
        mechanisms=("slicing",),
        settings=settings.model_dump(),
    )
    writer = LineWriter(sink, header)
    for event, outcome in world.journal:
        writer.write(entry_of(event, outcome))
    writer.end(Ending(complete=True, ended_at_s=world.now_s))
    return sink.getvalue()


def test_the_journal_is_the_golden_one_byte_for_byte() -> None:
    """C-6; the first line that differs is shown."""
    found = journal()
    if os.environ.get("GANDIVA_RENEW_GOLDEN"):
        GOLDEN.write_bytes(found)
    lines = zip_longest(found.splitlines(), GOLDEN.read_bytes().splitlines())
    for number, (line, golden) in enumerate(lines, start=1):
        assert line == golden, f"line {number}"
    assert found == GOLDEN.read_bytes()


def test_it_shows_what_it_is_meant_to_show() -> None:
    """Each kind of event and decision, and every step of the cascade, is in it."""
    text = GOLDEN.read_text()
    for kind in ("GangRefused", "GangBroken", "ServerLost", "ServerJoined", "JobKilled"):
        assert f'"kind":"{kind}"' in text, kind
    for step in ("same-affinity", "pristine", "relaxed", "over-subscribe"):
        assert f'"step":"{step}"' in text, step
    for part in ('"suspend":', '"prepare":', '"kind":"Enqueue"', '"kind":"Remember"'):
        assert part in text, part


def test_recheck_finds_no_difference() -> None:
    """The engine of today does what the journal says (C-7)."""
    report = recheck(GOLDEN, find_policy)
    assert (report.difference_count, report.is_complete) == (0, True)


def find_policy(name: str) -> PolicyFactory:
    """The one policy in it."""
    if name != "gandiva":
        pytest.fail(f"the journal names {name}")
    return create
