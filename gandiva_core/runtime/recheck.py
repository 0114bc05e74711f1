"""Running a journal through the scheduler again and comparing everything it did (DESIGN §3, C-7).

A journal of a policy arm goes through the engine with the same policy and settings, a stock arm's through the
observer; metrics are computed again and compared with the trailer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from pydantic import ValidationError

from gandiva_core.config.settings import Settings
from gandiva_core.engine.engine import Engine
from gandiva_core.messages.policy import Outcome, PolicyFactory, Scheduler
from gandiva_core.model.errors import GandivaError, InputError
from gandiva_core.runtime.journal import Entry, Header, Trailer
from gandiva_core.runtime.observer import StockObserver
from gandiva_core.runtime.reading import JournalReader

SHOWN = 10
"""Differences kept with their text; the others are only counted."""

_TEXT_MAX = 400


class Difference(msgspec.Struct, frozen=True):
    """One place where the journal and the run of today disagree.

    Attributes:
        line: in the journal's plain text, from 1.
        number: the event's; 0 for a figure.
        what: ``decisions``, ``refusals``, ``effects``, ``number``, ``event`` or ``metrics.NAME``.
        recorded, recomputed: JSON, cut where long.
    """

    line: int
    number: int
    what: str
    recorded: str
    recomputed: str


class RecheckReport(msgspec.Struct, frozen=True):
    """What a recheck found.

    Attributes:
        difference_count: all of them; `differences` has the first `SHOWN`.
        is_complete: whether the journal has a trailer that says so.
        sha256: over the plain bytes; empty for a journal without a trailer.
    """

    path: str
    arm: str
    entries: int
    difference_count: int
    differences: tuple[Difference, ...]
    is_complete: bool
    sha256: str


class Figures(NamedTuple):
    """A metrics computation: the same two callables that the driver takes."""

    observe: Callable[[Entry], None]
    trailer: Callable[[], Mapping[str, Any]]


def scheduler_of(header: Header, find_policy: Callable[[str], PolicyFactory]) -> Scheduler:
    """The scheduler that a journal was written by, in its first state.

    Args:
        header: of the journal.
        find_policy: from a policy's name to its factory; raises InputError for an unknown one.

    Raises:
        InputError: settings or snapshot are not usable.
    """
    if header.is_stock:
        return StockObserver()
    try:
        settings = Settings(**dict(header.settings))
    except ValidationError as error:
        found = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise InputError("journal header, settings", found, "settings of this version") from error
    policy = find_policy(header.policy)(settings, header.switches)
    if header.snapshot is None:
        return Engine(policy, settings)
    return Engine.restore(header.snapshot, policy, settings)


def recheck(
    path: Path,
    find_policy: Callable[[str], PolicyFactory],
    figures_of: Callable[[Header], Figures] | None = None,
    *,
    is_open_ended: bool = False,
) -> RecheckReport:
    """Run a journal again and compare.

    Args:
        path: of the journal.
        find_policy: see `scheduler_of`.
        figures_of: how metrics are computed; None leaves them unchecked.
        is_open_ended: see `JournalReader`.

    Raises:
        InputError: the journal cannot be read.
    """
    reader = JournalReader(path, is_open_ended=is_open_ended)
    scheduler = scheduler_of(reader.header, find_policy)
    figures = figures_of(reader.header) if figures_of is not None else None
    found = _Findings()
    line = 1
    for line, entry in reader:
        found.entries += 1
        if figures is not None:
            figures.observe(entry)
        if not _compare_entry(scheduler, line, entry, found):
            break
    else:
        # A live core computes no figures: it does not know the work of its jobs.
        if figures is not None and reader.trailer is not None and reader.trailer.metrics:
            _compare_metrics(reader.trailer, figures.trailer(), line + 1, found)
    trailer = reader.trailer
    return RecheckReport(
        str(path),
        reader.header.arm,
        found.entries,
        found.count,
        tuple(found.first),
        trailer is not None and trailer.complete,
        reader.sha256,
    )


class _Findings:
    def __init__(self) -> None:
        self.entries = 0
        self.count = 0
        self.first: list[Difference] = []

    def add(self, line: int, number: int, what: str, recorded: object, recomputed: object) -> None:
        self.count += 1
        if len(self.first) < SHOWN:
            texts = _text(recorded), _text(recomputed)
            self.first.append(Difference(line, number, what, *texts))


def _compare_entry(scheduler: Scheduler, line: int, entry: Entry, found: _Findings) -> bool:
    """Compare one entry; False where the run cannot go on."""
    try:
        outcome = scheduler.handle(entry.event)
    except GandivaError as error:
        found.add(line, entry.n, "event", entry.event, str(error))
        return False
    if outcome.number != entry.n:
        found.add(line, entry.n, "number", entry.n, outcome.number)
    for what, recorded, recomputed in _pairs(entry, outcome):
        if recorded != recomputed:
            found.add(line, entry.n, what, *_first_unequal(recorded, recomputed))
    return True


def _pairs(
    entry: Entry, outcome: Outcome
) -> Iterator[tuple[str, tuple[object, ...], tuple[object, ...]]]:
    yield "decisions", entry.decisions, outcome.decisions
    yield "refusals", entry.refusals, outcome.refusals
    yield "effects", entry.effects, outcome.effects


def _first_unequal(
    recorded: tuple[object, ...], recomputed: tuple[object, ...]
) -> tuple[object, object]:
    return next((a, b) for a, b in zip_longest(recorded, recomputed) if a != b)


def _compare_metrics(
    trailer: Trailer, recomputed: Mapping[str, Any], line: int, found: _Findings
) -> None:
    recorded = dict(_flat("metrics", trailer.metrics))
    today = dict(_flat("metrics", msgspec.json.decode(msgspec.json.encode(recomputed))))
    for name in dict.fromkeys([*recorded, *today]):
        if recorded.get(name) != today.get(name):
            found.add(line, 0, name, recorded.get(name), today.get(name))


def _flat(name: str, value: object) -> Iterator[tuple[str, object]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flat(f"{name}.{key}", inner)
    else:
        yield name, value


def _text(value: object) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= _TEXT_MAX else text[:_TEXT_MAX] + "…"
