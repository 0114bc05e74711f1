"""The journal: same run same bytes, whole round trip, and one clear line for every way a file can be bad."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from gandiva_core.messages import events as e
from gandiva_core.model.errors import InputError
from gandiva_core.model.units import JobId
from gandiva_core.runtime.driver import Driver
from gandiva_core.runtime.journal import (
    Ending,
    Entry,
    JournalFile,
    JournalJob,
    ReplayJournal,
)
from gandiva_core.runtime.reading import JournalReader
from tests.builders import cluster, job
from tests.runtime.doubles import SmallSubstrate, SmallWorld, engine, header

ONE = cluster(1, 4)


def write_run(path: Path, jobs: int = 5) -> JournalFile:
    world = SmallWorld([(0.1 * i, job(f"j{i}", 1 + i % 3)) for i in range(jobs)])
    planned = tuple(JournalJob(JobId(f"j{i}"), 1 + i % 3, 0.1 * i) for i in range(jobs))
    journal = ReplayJournal(path, header(ONE, jobs=planned))
    driver = Driver(
        world, SmallSubstrate(ONE), engine(), journal=journal, trailer=lambda: {"mean_jct_s": 0.1}
    )
    file = driver.run().journal
    assert file is not None
    return file


def plain(path: Path) -> bytes:
    with path.open("rb") as file:
        return zstandard.ZstdDecompressor().stream_reader(file).read()


def rewrite(path: Path, change: Callable[[list[bytes]], list[bytes]]) -> None:
    """Change a journal's lines and compress them again."""
    lines = plain(path).splitlines(keepends=True)
    path.write_bytes(zstandard.ZstdCompressor().compress(b"".join(change(lines))))


def test_same_run_same_bytes(tmp_path: Path) -> None:
    """C-6: ten runs, one hash; it is the sha256 of the plain bytes."""
    files = [write_run(tmp_path / f"{i}.jsonl.zst") for i in range(10)]
    assert len({file.sha256 for file in files}) == 1
    assert len({(tmp_path / f"{i}.jsonl.zst").read_bytes() for i in range(10)}) == 1
    body = plain(tmp_path / "0.jsonl.zst")
    assert hashlib.sha256(body).hexdigest() == files[0].sha256
    assert files[0].entries == body.count(b"\n") - 2


def test_reading_back(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl.zst"
    file = write_run(path)
    reader = JournalReader(path)
    assert reader.header == header(ONE, jobs=reader.header.jobs)
    read = list(reader)
    assert [line for line, _ in read] == list(range(2, file.entries + 2))
    assert [entry.n for _, entry in read] == list(range(1, file.entries + 1))
    trailer = reader.trailer
    assert trailer is not None
    assert (trailer.complete, trailer.metrics) == (True, {"mean_jct_s": 0.1})
    assert reader.sha256 == file.sha256


def test_lines_are_json_of_the_agreed_form(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl.zst"
    write_run(path)
    lines = [msgspec.json.decode(line) for line in plain(path).splitlines()]
    assert (lines[0]["kind"], lines[-1]["kind"]) == ("header", "trailer")
    worker = {"gpus": 1, "memory_mib": 1024, "vcores": 1}
    asked = {"job_id": "j0", "workers": [worker], "queue": "root.default", "weight": 1.0}
    placed = {"job_id": "j0", "servers": ["s01"]}
    assert lines[2] == {
        "n": 2,
        "event": {"kind": "JobSubmitted", "at_s": 0.0, "job": asked},
        "decisions": [{"kind": "Place", **placed, "step": "first-fit"}],
        "effects": [{"kind": "CommitGang", "cause": 2, **placed, "workers": [worker]}],
    }


@given(
    at_s=st.floats(0, 1e9),
    name=st.text(max_size=20),
    metrics=st.dictionaries(st.text(max_size=5), st.floats(allow_nan=False, allow_infinity=False)),
)
def test_any_text_and_number_survives(
    tmp_path_factory: pytest.TempPathFactory, at_s: float, name: str, metrics: dict[str, float]
) -> None:
    path = tmp_path_factory.mktemp("j") / "x.jsonl.zst"
    journal = ReplayJournal(path, header(ONE, trace=name))
    entry = Entry(1, e.JobFailed(at_s, JobId(name), name))
    journal.write(entry)
    journal.close(Ending(True, at_s, (), metrics))
    reader = JournalReader(path)
    assert [read for _, read in reader] == [entry]
    assert reader.trailer is not None
    assert reader.trailer.metrics == metrics
    assert reader.header.trace == name


class TestBadFiles:
    """Every fault is an InputError that names file and line, what stood there and what was expected."""

    @pytest.mark.parametrize(
        ("change", "line", "message"),
        [
            (lambda lines: lines[:-1], 23, "the end of the file; expected a trailer: it was cut"),
            (lambda lines: lines[:5], 6, "the end of the file; expected a trailer"),
            (lambda lines: [*lines[:5], lines[5][:40]], 6, "a line that is cut; expected an entry"),
            (lambda lines: [*lines[:3], b"garbage\n", *lines[3:]], 4, "expected an entry"),
            (lambda lines: [*lines[:3], b'{"n":3}\n', *lines[3:]], 4, "missing required field"),
            (lambda lines: [*lines[:3], b'{"n":"\xff"}\n', *lines[3:]], 4, "expected an entry"),
            (lambda lines: [*lines[:3], *lines[4:]], 22, "it was changed"),
            (lambda lines: [*lines, b"{}\n"], 24, "a line after the trailer; expected the end"),
            (lambda lines: lines[1:], 1, "expected the header of a journal of format 1"),
            (
                lambda lines: [lines[0].replace(b'"kind":"header"', b'"kind":"footer"')],
                1,
                "found a line of kind 'footer'; expected the header",
            ),
            (lambda lines: [], 1, "expected the header of a journal of format 1"),
            (
                lambda lines: [lines[0].replace(b'"format_version":1', b'"format_version":2')],
                1,
                "found format 2; expected the header of a journal of format 1",
            ),
            (
                lambda lines: [lines[0].replace(b'"arm"', b'"arms"'), *lines[1:]],
                1,
                "missing required field `arm`",
            ),
        ],
    )
    def test_lines(
        self,
        tmp_path: Path,
        change: Callable[[list[bytes]], list[bytes]],
        line: int,
        message: str,
    ) -> None:
        path = tmp_path / "run.jsonl.zst"
        write_run(path)
        assert plain(path).count(b"\n") == 23
        rewrite(path, change)
        with pytest.raises(InputError) as caught:
            list(JournalReader(path))
        assert caught.value.place == f"{path}:{line}"
        assert message in str(caught.value)

    def test_one_changed_figure_is_noticed(self, tmp_path: Path) -> None:
        path = tmp_path / "run.jsonl.zst"
        write_run(path)
        rewrite(path, lambda lines: [line.replace(b'"j3"', b'"j4"') for line in lines])
        with pytest.raises(InputError, match="it was changed"):
            list(JournalReader(path))

    def test_compressed_file_that_is_cut(self, tmp_path: Path) -> None:
        path = tmp_path / "run.jsonl.zst"
        write_run(path, jobs=200)
        path.write_bytes(path.read_bytes()[:-500])
        with pytest.raises(InputError) as caught:
            list(JournalReader(path))
        assert caught.value.place.startswith(f"{path}:")

    def test_file_that_is_no_zstandard(self, tmp_path: Path) -> None:
        path = tmp_path / "run.jsonl.zst"
        path.write_text("hello\n")
        with pytest.raises(InputError, match="expected a whole zstandard file"):
            JournalReader(path)

    def test_file_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="No such file or directory; expected a journal"):
            JournalReader(tmp_path / "none.jsonl.zst")

    def test_folder(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="Is a directory; expected a journal"):
            JournalReader(tmp_path)
