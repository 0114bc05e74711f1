"""A full disk under the live journal (DESIGN §4: the core's journal only explains; it stops nobody)."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from gandiva_core.messages import events as e
from gandiva_core.model.units import JobId
from gandiva_core.runtime import segments as segments_module
from gandiva_core.runtime.journal import Ending, LineWriter, entry_of
from gandiva_core.runtime.lossy import RETRY_S, LossyJournal
from gandiva_core.runtime.recheck import recheck
from gandiva_core.runtime.segments import SegmentedJournal, segments
from tests.builders import cluster, job, joined
from tests.runtime.doubles import FirstFit, engine, header

TWO = cluster(2, 4)


class Disk:
    """Full or not; what is written is counted."""

    def __init__(self) -> None:
        self.is_full = False

    def check(self) -> None:
        if self.is_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class _Lines(LineWriter):
    disk: Disk

    def flush(self) -> None:
        self.disk.check()
        super().flush()


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    _Lines.disk = Disk()
    monkeypatch.setattr(segments_module, "LineWriter", _Lines)
    return _Lines.disk


class Live:
    def __init__(self, folder: Path) -> None:
        self.engine = engine()
        self.said: list[str] = []
        self.journal = LossyJournal(
            lambda: SegmentedJournal(folder, header(TWO), self.engine.snapshot),
            lambda line, **_fields: self.said.append(line),
        )

    def tell(self, *events: e.Event) -> None:
        for event in events:
            self.journal.write(entry_of(event, self.engine.handle(event)))

    def submit(self, name: str, at_s: float) -> None:
        self.tell(
            e.JobSubmitted(at_s, job(JobId(name))), e.GangCommitted(at_s, JobId(name), ("c",))
        )


def test_entries_are_lost_and_nothing_else_and_it_goes_on_with_a_snapshot(
    tmp_path: Path, disk: Disk
) -> None:
    live = Live(tmp_path)
    live.tell(*joined(*TWO.servers))
    live.submit("before", 1.0)
    disk.is_full = True
    live.submit("lost", 2.0)
    live.submit("lost too", 3.0)
    assert live.said == ["the journal cannot be written: entries are lost"]
    live.submit("still full", 3.0 + RETRY_S)
    disk.is_full = False
    live.submit("not asked again yet", 4.0 + RETRY_S)
    assert len(segments(tmp_path)) == 1, "a segment without a header is none"
    live.submit("after", 4.0 + 2 * RETRY_S)
    live.journal.close(Ending(True, 200.0))
    assert live.said[1:] == ["the journal goes on in a new segment"]
    first, second = segments(tmp_path)
    for path, is_open_ended in ((first, True), (second, False)):
        report = recheck(path, lambda _: lambda *_: FirstFit(), is_open_ended=is_open_ended)
        assert report.difference_count == 0
        assert report.entries > 0
    assert '"after"' in second.read_text()
    assert '"lost"' in second.read_text(), "the snapshot has it"


def test_a_core_starts_on_a_full_disk(tmp_path: Path, disk: Disk) -> None:
    disk.is_full = True
    live = Live(tmp_path)
    live.tell(*joined(*TWO.servers))
    assert not segments(tmp_path)
    assert live.said == ["the journal cannot be written: entries are lost"]
    live.journal.ask_rotation()
    live.journal.close(Ending(True, 1.0))
