"""`gandiva recheck`: nothing differs in an honest journal, and what was changed is found."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from gandiva_core.messages.decisions import Place
from gandiva_core.runtime.journal import Ending, Entry, ReplayJournal
from gandiva_core.runtime.reading import JournalReader

CommandLine = Callable[..., subprocess.CompletedProcess[str]]
Writer = Callable[..., Path]


@pytest.fixture(scope="session")
def result(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where one small replay of a stock arm and a policy arm is kept."""
    return tmp_path_factory.mktemp("result") / "out"


@pytest.fixture
def journals(
    gandiva: CommandLine, write_trace: Writer, write_cluster: Writer, tmp_path: Path, result: Path
) -> Path:
    """A copy of its journals."""
    if not result.exists():
        trace = write_trace(("a", 0, 2, 300), ("b", 0, 4, 200), ("c", 5, 4, 100))
        done = gandiva(
            *("replay", trace, "--engine", "sim", "--shape", "server", "--out", result),
            *("--cluster", write_cluster(1, 4)),
        )
        assert done.returncode == 0, done.stderr
    shutil.copytree(result / "journals", tmp_path / "journals")
    return tmp_path / "journals"


def rewrite(path: Path, change: Callable[[Entry], Entry], **metrics: float) -> None:
    """The same journal with entries or metrics changed, whole and well formed."""
    reader = JournalReader(path)
    entries = [change(entry) for _, entry in reader]
    assert reader.trailer is not None
    figures = {**reader.trailer.metrics, **metrics}
    journal = ReplayJournal(path, reader.header)
    for entry in entries:
        journal.write(entry)
    journal.close(Ending(True, reader.trailer.ended_at_s, (), figures))


def test_an_honest_journal(gandiva: CommandLine, journals: Path) -> None:
    done = gandiva("recheck", *sorted(journals.iterdir()))
    assert done.returncode == 0
    assert done.stdout.count(" 0 differences") == 2


def test_a_changed_decision_is_found(gandiva: CommandLine, journals: Path) -> None:
    def move(entry: Entry) -> Entry:
        decisions = tuple(
            msgspec.structs.replace(each, step="pristine!") if isinstance(each, Place) else each
            for each in entry.decisions
        )
        return msgspec.structs.replace(entry, decisions=decisions)

    rewrite(journals / "gandiva_server_1.jsonl.zst", move)
    done = gandiva("recheck", journals / "gandiva_server_1.jsonl.zst")
    assert done.returncode == 1
    assert "decisions:" in done.stdout
    assert "pristine!" in done.stdout


def test_a_changed_figure_of_a_stock_arm_is_found(gandiva: CommandLine, journals: Path) -> None:
    path = journals / "capacity_server_1.jsonl.zst"
    rewrite(path, lambda entry: entry, mean_jct_s=1.0)
    done = gandiva("recheck", path)
    assert done.returncode == 1
    assert "metrics.mean_jct_s" in done.stdout


@pytest.mark.parametrize("kind", ["cut", "garbled", "empty", "not a journal", "absent", "folder"])
def test_a_journal_that_cannot_be_read_is_named(
    gandiva: CommandLine, journals: Path, kind: str
) -> None:
    path = journals / "gandiva_server_1.jsonl.zst"
    whole = path.read_bytes()
    match kind:
        case "cut":
            path.write_bytes(whole[: len(whole) // 2])
        case "garbled":
            path.write_bytes(whole[:40] + bytes(20) + whole[60:])
        case "empty":
            path.write_bytes(b"")
        case "not a journal":
            path = journals / "x.jsonl"
            path.write_bytes(b'{"hello": 1}\n')
        case "absent":
            path = journals / "absent.jsonl"
        case _:
            path = journals / "folder"
            path.mkdir()
    done = gandiva("recheck", path)
    assert done.returncode == 3, done.stdout
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"gandiva: error: {path}")
