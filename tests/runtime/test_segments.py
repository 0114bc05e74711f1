"""Live segments: private, each rechecks alone, rotation between events, pruning of the oldest."""

from __future__ import annotations

import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gandiva_core.engine.engine import Engine
from gandiva_core.messages import events as e
from gandiva_core.model.errors import InputError
from gandiva_core.model.units import JobId
from gandiva_core.runtime.housekeeping import Chore, Housekeeping, journal_chores
from gandiva_core.runtime.journal import Ending, entry_of
from gandiva_core.runtime.reading import JournalReader
from gandiva_core.runtime.recheck import recheck
from gandiva_core.runtime.segments import Retention, SegmentedJournal, prune, segments
from tests.builders import cluster, job, joined
from tests.runtime.doubles import FirstFit, engine, header

TWO = cluster(2, 4)


class Live:
    """An engine with a live journal."""

    def __init__(self, folder: Path, bytes_max: int = 1 << 30) -> None:
        self.engine: Engine = engine()
        self.journal = SegmentedJournal(
            folder, header(TWO), self.engine.snapshot, bytes_max=bytes_max
        )
        self.jobs = 0
        for event in joined(*TWO.servers):
            self.tell(event)

    def tell(self, event: e.Event) -> None:
        self.journal.write(entry_of(event, self.engine.handle(event)))

    def run_job(self) -> None:
        self.jobs += 1
        name = JobId(f"j{self.jobs}")
        at_s = float(self.jobs)
        self.tell(e.JobSubmitted(at_s, job(name)))
        self.tell(e.GangCommitted(at_s, name, ("c",)))
        if self.jobs > 2:
            self.tell(e.JobFinished(at_s, JobId(f"j{self.jobs - 2}")))


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Callable[..., Live]]:
    """Starts live cores over one folder; at the end their files are closed as a dying process closes them."""
    started: list[Live] = []

    def start(bytes_max: int = 1 << 30) -> Live:
        started.append(Live(tmp_path / "journal", bytes_max))
        return started[-1]

    yield start
    for live in started:
        live.journal._file.close()


def recheck_alone(path: Path, *, is_open_ended: bool = False) -> tuple[int, int]:
    report = recheck(path, lambda _: lambda *_: FirstFit(), is_open_ended=is_open_ended)
    return report.entries, report.difference_count


def test_each_segment_rechecks_alone(tmp_path: Path, begin: Callable[..., Live]) -> None:
    live = begin()
    for round_ in range(3):
        for _ in range(4):
            live.run_job()
        if round_ < 2:
            live.journal.rotate()
    live.journal.close(Ending(True, 12.0))
    paths = segments(tmp_path / "journal")
    assert [path.name for path in paths] == [f"journal-00000000{i}.jsonl" for i in (1, 2, 3)]
    counts = [recheck_alone(path) for path in paths]
    assert [differences for _, differences in counts] == [0, 0, 0]
    assert sum(entries for entries, _ in counts) == live.engine.number
    second = JournalReader(paths[1]).header.snapshot
    assert second is not None
    assert second.number == counts[0][0]
    assert second.jobs


def test_files_are_private(tmp_path: Path, begin: Callable[..., Live]) -> None:
    live = begin()
    assert stat.S_IMODE(live.journal.path.stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "journal").stat().st_mode) == 0o700


def test_segment_of_a_dead_process_is_readable_to_its_last_whole_line(
    tmp_path: Path, begin: Callable[..., Live]
) -> None:
    live = begin()
    for _ in range(5):
        live.run_job()
    path = live.journal.path
    assert recheck_alone(path, is_open_ended=True) == (live.engine.number, 0)
    with path.open("rb+") as file:
        file.truncate(path.stat().st_size - 30)
    assert recheck_alone(path, is_open_ended=True) == (live.engine.number - 1, 0)
    with pytest.raises(InputError, match="a line that is cut"):
        recheck_alone(path)


def test_restarted_process_begins_a_new_segment(tmp_path: Path, begin: Callable[..., Live]) -> None:
    begin()
    second = begin()
    assert second.journal.path.name == "journal-000000002.jsonl"
    assert len(segments(tmp_path / "journal")) == 2


def test_rotation_that_was_asked_for_comes_after_the_next_entry(
    tmp_path: Path, begin: Callable[..., Live]
) -> None:
    live = begin()
    first = live.journal.path
    asking = threading.Thread(target=live.journal.ask_rotation)
    asking.start()
    asking.join()
    assert live.journal.path == first
    live.run_job()
    assert live.journal.path != first
    assert recheck_alone(first)[1] == 0
    assert JournalReader(first).header.snapshot is not None


def test_segment_that_has_grown_is_ended(tmp_path: Path, begin: Callable[..., Live]) -> None:
    live = begin(bytes_max=3000)
    for _ in range(30):
        live.run_job()
    assert len(segments(tmp_path / "journal")) > 3
    assert [recheck_alone(path)[1] for path in segments(tmp_path / "journal")[:-1]].count(0) > 2


class TestPruning:
    def folder(self, tmp_path: Path) -> Path:
        for number in range(1, 6):
            (tmp_path / f"journal-{number:09d}.jsonl").write_bytes(b"x" * 100)
        (tmp_path / "notes.txt").write_text("mine")
        return tmp_path

    def test_by_number(self, tmp_path: Path) -> None:
        folder = self.folder(tmp_path)
        deleted = prune(folder, Retention(segments_max=2))
        assert [path.name[-7:-6] for path in deleted] == ["1", "2"]
        assert [path.name[-7:-6] for path in segments(folder)] == ["3", "4", "5"]
        assert (folder / "notes.txt").exists()

    def test_by_size(self, tmp_path: Path) -> None:
        folder = self.folder(tmp_path)
        prune(folder, Retention(bytes_max=300))
        assert len(segments(folder)) == 4

    def test_the_newest_is_never_deleted(self, tmp_path: Path) -> None:
        folder = self.folder(tmp_path)
        prune(folder, Retention(segments_max=0, bytes_max=0))
        assert [path.name[-7:-6] for path in segments(folder)] == ["5"]


class TestHousekeeping:
    def test_chores_rotate_and_prune(self, tmp_path: Path, begin: Callable[..., Live]) -> None:
        """The chores are those of a live journal; the clock's part is the scheduler library's."""
        live = begin()
        chores = journal_chores(live.journal, tmp_path / "journal", Retention(segments_max=1))
        assert [chore.name for chore in chores] == ["rotate journal", "prune journal"]
        for _ in range(4):
            chores[0].act()
            live.run_job()
        chores[1].act()
        assert len(segments(tmp_path / "journal")) == 2

    def test_runs_in_a_thread_of_its_own_until_it_is_left(self) -> None:
        done = threading.Event()
        names: list[str] = []

        def act() -> None:
            names.append(threading.current_thread().name)
            done.set()

        with Housekeeping([Chore("beat", 0.05, act)]):
            assert done.wait(10.0)
        count = len(names)
        assert threading.main_thread().name not in names
        assert count == len(names)

    def test_late_chores_run_once_and_never_beside_themselves(self) -> None:
        with Housekeeping([Chore("rest", 3600.0, lambda: None)]) as keeping:
            (planned,) = keeping._scheduler.get_jobs()
        assert (planned.coalesce, planned.max_instances, planned.misfire_grace_time) == (
            True,
            1,
            None,
        )
