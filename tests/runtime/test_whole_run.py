"""Policy, engine, world, substrate, driver and journal: a run with faults rechecks, and repeats to the byte."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from gandiva_core.config.settings import Settings
from gandiva_core.engine.engine import CheckLevel, Engine
from gandiva_core.engine.story import story
from gandiva_core.messages.events import GangBroken, ResidentsSwitched, ServerJoined, ServerLost
from gandiva_core.model.cluster import Cluster
from gandiva_core.model.profile import ModelProfile
from gandiva_core.model.units import AcceleratorType, JobId
from gandiva_core.model.workload import PlannedJob
from gandiva_core.policies.gandiva import create
from gandiva_core.runtime.driver import Driver, DriverReport
from gandiva_core.runtime.journal import Ending, ReplayJournal
from gandiva_core.runtime.reading import JournalReader
from gandiva_core.runtime.recheck import recheck
from gandiva_core.sim.faults import WorldOptions
from gandiva_core.sim.plain import PlainSubstrate
from gandiva_core.sim.world import JobWorld
from tests.builders import cluster, job
from tests.runtime.doubles import header

FOUR = cluster(4, 4)
PROFILE = ModelProfile("m", {AcceleratorType(""): 2.0}, 0.8, 2000.0, 300.0, 100.0)


def planned(seed: int, count: int = 40) -> list[PlannedJob]:
    """A burst that over-subscribes the cluster, then a trickle; some gangs span servers."""
    draw = Random(seed)
    return [
        PlannedJob(
            float(0 if number < 25 else 50 * number),
            job(f"j{number:02d}", draw.choice((1, 1, 1, 2, 2, 3, 4, 6))),
            draw.uniform(200.0, 2500.0),
            PROFILE,
        )
        for number in range(count)
    ]


def run(path: Path, seed: int = 3, check: CheckLevel = "touched") -> DriverReport:
    settings = Settings()
    lost = FOUR.servers[1]
    faults = (
        ServerLost(300.0, lost.server_id, "power"),
        GangBroken(350.0, JobId("j03"), "a worker died"),
        ServerJoined(900.0, lost),
    )
    world = JobWorld(planned(seed), FOUR.servers, seed, WorldOptions(faults=faults))
    engine = Engine(create(settings, {}), settings, check=check)
    journal = ReplayJournal(
        path, header(FOUR, policy="gandiva", settings=settings.model_dump(), seed=seed)
    )
    return Driver(world, PlainSubstrate(FOUR, settings.height_max), engine, journal=journal).run()


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, DriverReport]:
    path = tmp_path_factory.mktemp("whole") / "run.jsonl.zst"
    return path, run(path, check="full")


def test_every_job_ends(written: tuple[Path, DriverReport]) -> None:
    _, report = written
    assert (report.jobs_done, report.unfinished) == (40, ())


def test_it_was_sliced_and_something_broke(written: tuple[Path, DriverReport]) -> None:
    """So that the other tests are about something."""
    entries = [entry for _, entry in JournalReader(written[0])]
    stops = sum(
        len(entry.event.stopped) for entry in entries if isinstance(entry.event, ResidentsSwitched)
    )
    assert stops > 100
    codes = {line.code for line in story(entries, JobId("j03"))}
    assert {"submitted", "started", "suspend", "released", "finished"} <= codes


def test_recheck_finds_no_difference(written: tuple[Path, DriverReport]) -> None:
    path, report = written
    found = recheck(path, lambda _: create)
    assert (found.difference_count, found.entries) == (0, report.events)


def test_recheck_with_another_quantum_finds_many(
    written: tuple[Path, DriverReport], tmp_path: Path
) -> None:
    other = tmp_path / "other.jsonl.zst"
    reader = JournalReader(written[0])
    settings = Settings(quantum_s=61.0).model_dump()
    journal = ReplayJournal(other, header(FOUR, policy="gandiva", settings=settings))
    for _, entry in reader:
        journal.write(entry)
    journal.close(Ending(True, 0.0))
    assert recheck(other, lambda _: create).difference_count > 10


def test_same_seed_same_hash_and_the_level_of_checks_changes_nothing(
    written: tuple[Path, DriverReport], tmp_path: Path
) -> None:
    """C-6, across both levels of invariant checks."""
    first = written[1].journal
    second = run(tmp_path / "a.jsonl.zst").journal
    assert first is not None
    assert second is not None
    assert first.sha256 == second.sha256
    third = run(tmp_path / "b.jsonl.zst", seed=4).journal
    assert third is not None
    assert third.sha256 != first.sha256


def test_cluster_without_a_server_starves_and_says_so(tmp_path: Path) -> None:
    settings = Settings()
    empty = Cluster("empty", ())
    engine = Engine(create(settings, {}), settings, check="full")
    world = JobWorld(planned(1, 2), FOUR.servers, 1)
    report = Driver(world, PlainSubstrate(empty, settings.height_max), engine).run()
    assert [each.state for each in report.unfinished] == ["waiting", "waiting"]
    assert all(each.reason for each in report.unfinished)
