"""The live journal: plain segments in one folder, each starting with a snapshot, so that each rechecks alone.

Segments are private (mode 0600), flushed line by line and synced when they end. A segment whose process died
has no trailer; it is read with ``is_open_ended``. Rotation happens between two events, in the thread that
writes: whoever wants one only asks for it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from gandiva_core.engine.snapshot import EngineSnapshot
from gandiva_core.runtime.journal import Ending, Entry, Header, JournalFile, LineWriter

_PATTERN = "journal-*.jsonl"


def segments(folder: Path) -> list[Path]:
    """All segments, oldest first."""
    return sorted(folder.glob(_PATTERN))


class Retention(msgspec.Struct, frozen=True):
    """How much of the past is kept; the segment being written does not count.

    Attributes:
        segments_max: number of ended segments.
        bytes_max: their total size.
    """

    segments_max: int = 64
    bytes_max: int = 4 << 30


def prune(folder: Path, retention: Retention) -> tuple[Path, ...]:
    """Delete the oldest segments beyond `retention`, never the newest one, which may be being written.

    Returns:
        What was deleted.
    """
    ended = segments(folder)[:-1]
    kept_bytes = 0
    deleted: list[Path] = []
    for kept, path in enumerate(reversed(ended)):
        kept_bytes += path.stat().st_size
        if kept >= retention.segments_max or kept_bytes > retention.bytes_max:
            deleted.append(path)
    for path in deleted:
        path.unlink()
    return tuple(reversed(deleted))


class SegmentedJournal:
    """Implements `JournalSink` over a folder of segments.

    Args:
        folder: made with mode 0700 where missing; segments of earlier processes stay.
        header: of every segment, without a snapshot.
        take_snapshot: the scheduler's state between two events.
        bytes_max: a segment that has grown to it is ended.
    """

    def __init__(
        self,
        folder: Path,
        header: Header,
        take_snapshot: Callable[[], EngineSnapshot],
        *,
        bytes_max: int = 256 << 20,
    ) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder = folder
        self._header = header
        self._take_snapshot = take_snapshot
        self._bytes_max = bytes_max
        self._is_asked = threading.Event()
        self._index = max((_index_of(path) for path in segments(folder)), default=0)
        self._last_at_s = 0.0
        self._open()

    @property
    def path(self) -> Path:
        """The segment being written."""
        return self._path

    def ask_rotation(self) -> None:
        """End the segment after the next entry; safe from any thread."""
        self._is_asked.set()

    def write(self, entry: Entry) -> None:
        """Append one entry, at once visible to readers; rotate after it where that is due."""
        self._lines.write(entry)
        self._lines.flush()
        self._last_at_s = entry.event.at_s
        if self._is_asked.is_set() or self._file.tell() >= self._bytes_max:
            self.rotate()

    def rotate(self) -> JournalFile:
        """End the segment and begin the next; only between two events, in the writing thread.

        Returns:
            The segment that ended.
        """
        ended = self._end(Ending(True, self._last_at_s))
        self._open()
        return ended

    def close(self, ending: Ending) -> JournalFile:
        """End the last segment."""
        return self._end(ending)

    def abandon(self) -> None:
        """Close the last segment as it is, as after the death of its process."""
        with suppress(OSError):
            self._file.close()

    def _open(self) -> None:
        self._is_asked.clear()
        self._index += 1
        self._path = self._folder / f"journal-{self._index:09d}.jsonl"
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        self._file = os.fdopen(descriptor, "wb", buffering=0)
        header = msgspec.structs.replace(self._header, snapshot=self._take_snapshot())
        self._lines = LineWriter(self._file, header)
        try:
            self._lines.flush()
            self._sync_folder()
        except OSError:
            self.abandon()
            self._path.unlink(missing_ok=True)  # a segment without its header is none
            raise

    def _end(self, ending: Ending) -> JournalFile:
        sha256 = self._lines.end(ending)
        os.fsync(self._file.fileno())
        self._file.close()
        return JournalFile(str(self._path), sha256, self._lines.entries)

    def _sync_folder(self) -> None:
        """A file's name is durable only once its folder is synced."""
        descriptor = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _index_of(path: Path) -> int:
    digits = path.stem.rpartition("-")[2]
    return int(digits) if digits.isdigit() else 0
