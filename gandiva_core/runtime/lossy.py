"""A journal that stops nobody: what cannot be written is lost, and said (DESIGN §4: the journal only explains)."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress

from gandiva_core.runtime.journal import Ending, Entry
from gandiva_core.runtime.segments import SegmentedJournal

RETRY_S = 60.0
"""A disk that is full is not asked again at each event."""


class LossyJournal:
    """Segments that may have gaps between them. Each begins with a snapshot, so each can still be rechecked alone.

    Args:
        begin: opens a journal behind the segments that are there; may raise OSError.
        say: given a line and its fields when entries begin to be lost, and when they no longer are.
    """

    def __init__(self, begin: Callable[[], SegmentedJournal], say: Callable[..., object]) -> None:
        self._begin = begin
        self._say = say
        self._journal: SegmentedJournal | None = None
        self._is_losing = False
        self._retry_at_s = -math.inf
        self._open(-math.inf)

    def ask_rotation(self) -> None:
        """As `SegmentedJournal.ask_rotation`; without a segment there is nothing to end."""
        journal = self._journal
        if journal is not None:
            journal.ask_rotation()

    def write(self, entry: Entry) -> None:
        """Append one entry, or lose it."""
        at_s = entry.event.at_s
        if self._journal is None:
            if at_s >= self._retry_at_s:
                self._open(at_s)  # its snapshot has this entry in it
            return
        try:
            self._journal.write(entry)
        except OSError as error:
            self._journal.abandon()
            self._lose(error, at_s)

    def close(self, ending: Ending) -> None:
        """End the last segment, as far as that can be written."""
        if self._journal is not None:
            with suppress(OSError):
                self._journal.close(ending)

    def _open(self, at_s: float) -> None:
        try:
            self._journal = self._begin()
        except OSError as error:
            self._lose(error, at_s)
            return
        if self._is_losing:
            self._is_losing = False
            self._say("the journal goes on in a new segment", path=str(self._journal.path))

    def _lose(self, error: OSError, at_s: float) -> None:
        self._journal = None
        self._retry_at_s = at_s + RETRY_S
        if not self._is_losing:
            self._is_losing = True
            self._say("the journal cannot be written: entries are lost", reason=str(error))
