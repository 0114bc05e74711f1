"""The journal: one line a header, one an event, one a trailer; JSON, the same run the same bytes (C-6).

Metrics, reports, `why` and recheck are all computed from it, so it holds every measurement a policy saw (C-7)
and no clock time. A replay's journal is one zstandard file that never rotates; its sha256 is over the plain
lines. A live journal is plain segments (`gandiva_core.runtime.segments`), each with a snapshot in its header.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import msgspec
import zstandard

from gandiva_core.engine.snapshot import EngineSnapshot
from gandiva_core.messages.decisions import Decision
from gandiva_core.messages.effects import Effect
from gandiva_core.messages.events import Event
from gandiva_core.messages.policy import Outcome, Refusal
from gandiva_core.model.cluster import Cluster
from gandiva_core.model.units import JobId

FORMAT_VERSION = 1
_FLUSH_BYTES = 1 << 18
_ZSTD_LEVEL = 3


class JournalJob(msgspec.Struct, frozen=True, omit_defaults=True):
    """What metrics need to know of a job beyond the events; `utilisation_ratio` is while it runs alone (C-4)."""

    job_id: JobId
    gpus: int
    arrival_s: float
    name: str = ""
    model: str = ""
    utilisation_ratio: float = 1.0


class Header(
    msgspec.Struct, frozen=True, omit_defaults=True, tag="header", tag_field="kind", kw_only=True
):
    """What ran, on what, with what.

    Attributes:
        arm: the arm as written, switches included.
        policy: its name without switches; the scheduler class's short name on a stock arm.
        is_stock: whether the substrate scheduled by itself and the scheduler only observed.
        settings: `Settings`, by name.
        engine: of the replay, ``yarn`` or ``sim``; empty live.
        scheduler_class: who handed out containers.
        left_out: reason to number of the trace's jobs that were not run.
        snapshot: the state before the first entry; None for a journal that starts from nothing.
    """

    format_version: int
    arm: str
    policy: str
    cluster: Cluster
    is_stock: bool = False
    switches: Mapping[str, bool] = {}
    mechanisms: tuple[str, ...] = ()
    settings: Mapping[str, Any] = {}
    seed: int = 0
    trace: str = ""
    trace_sha256: str = ""
    shape: str = ""
    engine: str = ""
    scheduler_class: str = ""
    jobs: tuple[JournalJob, ...] = ()
    left_out: Mapping[str, int] = {}
    versions: Mapping[str, str] = {}
    commit: str = ""
    snapshot: EngineSnapshot | None = None


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One event and what it led to."""

    n: int
    event: Event
    decisions: tuple[Decision, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    effects: tuple[Effect, ...] = ()


def entry_of(event: Event, outcome: Outcome) -> Entry:
    """An event with its outcome, as it is written."""
    return Entry(outcome.number, event, outcome.decisions, outcome.refusals, outcome.effects)


class Unfinished(msgspec.Struct, frozen=True, omit_defaults=True):
    """A job that never ended although nothing more will happen: a deadlock, or starvation.

    Attributes:
        state: ``arrived``, ``waiting``, ``holding`` (part of its containers, hold and wait) or ``resident``.
        since_s: when it came into that state.
        held_gpus, wanted_gpus: what it has and what it asked for.
        reason: the last one its scheduler gave, if any.
    """

    job_id: JobId
    state: str
    since_s: float
    held_gpus: int
    wanted_gpus: int
    reason: str = ""


class Trailer(msgspec.Struct, frozen=True, omit_defaults=True, tag="trailer", tag_field="kind"):
    """How it ended.

    Attributes:
        complete: False for a run that was interrupted or failed; everything up to there is usable.
        entries: how many there are.
        body_sha256: of all plain lines before this one.
        metrics: figures computed while running; recheck computes them again.
    """

    complete: bool
    entries: int
    body_sha256: str
    ended_at_s: float
    unfinished: tuple[Unfinished, ...] = ()
    metrics: Mapping[str, Any] = {}


class JournalFile(msgspec.Struct, frozen=True):
    """A journal that was written: `sha256` is over all plain bytes."""

    path: str
    sha256: str
    entries: int


class Ending(msgspec.Struct, frozen=True):
    """What a driver knows at the end, for the trailer."""

    complete: bool
    ended_at_s: float
    unfinished: tuple[Unfinished, ...] = ()
    metrics: Mapping[str, Any] = {}


class EntrySink(Protocol):
    """Where entries go."""

    def write(self, entry: Entry) -> None:
        """Append one entry."""


class JournalSink(EntrySink, Protocol):
    """Where entries go that make a journal in the end."""

    def close(self, ending: Ending) -> JournalFile:
        """Write the trailer and close; nothing may follow."""


class LineWriter:
    """Header, entries and trailer as lines into an open file, hashed on the way."""

    def __init__(self, sink: BinaryIO, header: Header) -> None:
        self._sink = sink
        self._encoder = msgspec.json.Encoder()
        self._hash = hashlib.sha256()
        self._buffer = bytearray(self._encoder.encode(header) + b"\n")
        self.entries = 0

    def write(self, entry: Entry) -> None:
        """Append one entry; buffered."""
        buffer = self._buffer
        self._encoder.encode_into(entry, buffer, -1)
        buffer += b"\n"
        self.entries += 1
        if len(buffer) >= _FLUSH_BYTES:
            self.flush()

    def flush(self) -> None:
        """Hand what is buffered to the file."""
        plain, self._buffer = bytes(self._buffer), bytearray()
        self._hash.update(plain)
        self._sink.write(plain)

    def end(self, ending: Ending) -> str:
        """Write the trailer.

        Returns:
            The sha256 of all plain bytes, the trailer's included.
        """
        self.flush()
        trailer = Trailer(
            ending.complete,
            self.entries,
            self._hash.hexdigest(),
            ending.ended_at_s,
            ending.unfinished,
            ending.metrics,
        )
        self._buffer += self._encoder.encode(trailer) + b"\n"
        self.flush()
        return self._hash.hexdigest()


class ReplayJournal:
    """A replay's journal, ``NAME.jsonl.zst``; implements `JournalSink`.

    Args:
        path: replaced where it exists.
        header: its first line.
    """

    def __init__(self, path: Path, header: Header) -> None:
        self._path = path
        self._file = path.open("wb")
        compressor = zstandard.ZstdCompressor(level=_ZSTD_LEVEL, write_checksum=True)
        self._frame = compressor.stream_writer(self._file, closefd=True)
        self._lines = LineWriter(self._frame, header)

    def write(self, entry: Entry) -> None:
        """Append one entry."""
        self._lines.write(entry)

    def close(self, ending: Ending) -> JournalFile:
        """Write the trailer and close the file."""
        sha256 = self._lines.end(ending)
        self._frame.close()  # type: ignore[no-untyped-call]
        return JournalFile(str(self._path), sha256, self._lines.entries)
