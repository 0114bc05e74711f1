"""Recheck: 0 differences on an honest journal, each kind of difference found and shown (DESIGN §3, C-7)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gandiva_core.config.settings import Settings
from gandiva_core.messages import events as e
from gandiva_core.messages.decisions import Place
from gandiva_core.messages.policy import Policy, PolicyFactory, Switches
from gandiva_core.model.errors import InputError
from gandiva_core.model.job import JobSpec
from gandiva_core.model.units import JobId, ServerId
from gandiva_core.model.view import ClusterView
from gandiva_core.runtime.driver import Driver
from gandiva_core.runtime.journal import Ending, Entry, Header, ReplayJournal
from gandiva_core.runtime.observer import StockObserver
from gandiva_core.runtime.reading import JournalReader
from gandiva_core.runtime.recheck import SHOWN, Difference, Figures, recheck
from tests.builders import cluster, job
from tests.runtime.doubles import FirstFit, SmallSubstrate, SmallWorld, engine, header

TWO = cluster(2, 4)


def find(name: str) -> PolicyFactory:
    if name != "first-fit":
        raise InputError("policy", name, "first-fit")
    return lambda _settings, _switches: FirstFit()


class Counter:
    """Figures: how many jobs ended, and when the last one did."""

    def __init__(self) -> None:
        self.values: dict[str, float] = {"jobs": 0, "last_s": 0.0}

    def observe(self, entry: Entry) -> None:
        if isinstance(entry.event, e.JobFinished):
            self.values["jobs"] += 1
            self.values["last_s"] = entry.event.at_s

    def trailer(self) -> Mapping[str, Any]:
        return {"totals": self.values}


def figures(_: Header) -> Figures:
    counter = Counter()
    return Figures(counter.observe, counter.trailer)


def write(path: Path, jobs: int = 6, **changes: object) -> Path:
    counter = Counter()
    world = SmallWorld([(0.5 * i, job(f"j{i}", 1 + i % 4)) for i in range(jobs)])
    Driver(
        world,
        SmallSubstrate(TWO),
        engine(),
        journal=ReplayJournal(path, header(TWO, **changes)),
        observers=[counter.observe],
        trailer=counter.trailer,
    ).run()
    return path


def rewrite(path: Path, out: Path, change: Mapping[int, Entry], **ending: Any) -> Path:
    """Another journal with some entries replaced, whole and well-formed."""
    reader = JournalReader(path)
    journal = ReplayJournal(out, reader.header)
    for _, entry in reader:
        journal.write(change.get(entry.n, entry))
    assert reader.trailer is not None
    journal.close(Ending(**{"complete": True, "ended_at_s": 1.0, **ending}))
    return out


def entry_at(path: Path, number: int) -> Entry:
    return next(entry for _, entry in JournalReader(path) if entry.n == number)


def test_honest_journal_has_no_difference(tmp_path: Path) -> None:
    path = write(tmp_path / "run.jsonl.zst")
    report = recheck(path, find, figures)
    assert (report.difference_count, report.differences, report.is_complete) == (0, (), True)
    assert report.entries == sum(1 for _ in JournalReader(path))
    assert report.arm == "first-fit"
    assert len(report.sha256) == 64


def test_changed_decision_and_effect_are_shown_with_their_line(tmp_path: Path) -> None:
    path = write(tmp_path / "run.jsonl.zst")
    entry = entry_at(path, 3)
    place = Place(JobId("j0"), (ServerId("s02"),), "first-fit")
    changed = msgspec.structs.replace(entry, decisions=(place,), effects=())
    bad = rewrite(path, tmp_path / "bad.jsonl.zst", {3: changed})
    report = recheck(bad, find)
    assert report.difference_count == 2
    first, second = report.differences
    assert (first.line, first.number, first.what, second.what) == (4, 3, "decisions", "effects")
    assert '"s02"' in first.recorded
    assert '"s01"' in first.recomputed
    assert (second.recorded, '"CommitGang"' in second.recomputed) == ("null", True)


def test_entry_with_another_number_is_a_difference(tmp_path: Path) -> None:
    """One line was cut out, and the trailer made to fit."""
    path = write(tmp_path / "run.jsonl.zst")
    numbered = msgspec.structs.replace(entry_at(path, 3), n=7)
    bad = rewrite(path, tmp_path / "bad.jsonl.zst", {3: numbered})
    (difference,) = recheck(bad, find).differences
    assert (difference.what, difference.recorded, difference.recomputed) == ("number", "7", "3")


def test_changed_metric_is_a_difference(tmp_path: Path) -> None:
    path = write(tmp_path / "run.jsonl.zst")
    metrics = {"totals": {"jobs": 6, "last_s": 99.0}, "extra": 1}
    bad = rewrite(path, tmp_path / "bad.jsonl.zst", {}, metrics=metrics)
    report = recheck(bad, find, figures)
    assert [d.what for d in report.differences] == ["metrics.totals.last_s", "metrics.extra"]
    assert (report.differences[0].recorded, report.differences[1].recomputed) == ("99.0", "null")


def test_a_journal_without_figures_has_none_to_compare(tmp_path: Path) -> None:
    """A live core's: it does not know the work of its jobs."""
    bare = rewrite(write(tmp_path / "a.jsonl.zst"), tmp_path / "bare.jsonl.zst", {}, metrics={})
    assert recheck(bare, find, figures).differences == ()


def test_event_that_the_engine_refuses_ends_the_comparison(tmp_path: Path) -> None:
    path = write(tmp_path / "run.jsonl.zst")
    entry = entry_at(path, 5)
    back = msgspec.structs.replace(entry, event=e.JobFinished(-1.0, JobId("j0")))
    bad = rewrite(path, tmp_path / "bad.jsonl.zst", {5: back})
    report = recheck(bad, find, figures)
    assert report.differences[-1].what == "event"
    assert "expected a time not before" in report.differences[-1].recomputed
    assert report.entries == 5


def test_another_policy_differs_everywhere_and_only_the_first_are_shown(tmp_path: Path) -> None:
    class Lazy(FirstFit):
        def decide(self, event: e.Event, view: ClusterView) -> Any:
            return iter(())

    def lazy(_: str) -> PolicyFactory:
        def create(_settings: Settings, _switches: Switches) -> Policy:
            return Lazy()

        return create

    path = write(tmp_path / "run.jsonl.zst", jobs=20)
    report = recheck(path, lazy)
    assert report.difference_count > SHOWN
    assert len(report.differences) == SHOWN
    assert isinstance(report.differences[0], Difference)


def test_unknown_policy_and_unusable_settings_are_input_errors(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl.zst", policy="nobody")
    with pytest.raises(InputError, match="found nobody; expected first-fit"):
        recheck(path, find)
    path = write(tmp_path / "b.jsonl.zst", settings={"quantum_s": -1})
    with pytest.raises(InputError, match="journal header, settings: found quantum_s"):
        recheck(path, find)


def test_interrupted_journal_rechecks_as_far_as_it_goes(tmp_path: Path) -> None:
    path = write(tmp_path / "run.jsonl.zst")
    part = rewrite(path, tmp_path / "part.jsonl.zst", {}, complete=False)
    report = recheck(part, find)
    assert (report.difference_count, report.is_complete) == (0, False)


def test_stock_arm_is_run_through_the_observer(tmp_path: Path) -> None:
    """Its effects and its metrics are computed again."""

    class Stock(SmallSubstrate):
        def submit(self, now_s: float, jobs: Any) -> Any:
            told = list(super().submit(now_s, jobs))
            return told + [self._commit(now_s, each) for each in jobs]

        def _commit(self, now_s: float, each: JobSpec) -> e.GangCommitted:
            count = len(each.workers)
            return e.GangCommitted(now_s, each.job_id, ("c",) * count, (ServerId("s01"),) * count)

    path = tmp_path / "stock.jsonl.zst"
    counter = Counter()
    world = SmallWorld([(0.0, job("a", 2)), (1.0, job("b", 3))])
    report = Driver(
        world,
        Stock(TWO),
        StockObserver(),
        journal=ReplayJournal(path, header(TWO, is_stock=True, policy="capacity")),
        observers=[counter.observe],
        trailer=counter.trailer,
    ).run()
    assert report.ended_at_s == 20.0
    found = recheck(path, find, figures)
    assert (found.difference_count, found.is_complete) == (0, True)
    entry = entry_at(path, 4)
    bad = rewrite(path, tmp_path / "bad.jsonl.zst", {4: msgspec.structs.replace(entry, effects=())})
    assert [d.what for d in recheck(bad, find).differences] == ["effects"]
