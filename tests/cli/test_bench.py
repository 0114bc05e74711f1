"""`gandiva bench`: choosing, JSON, files and the page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
import typer

from gandiva_core.cli import bench as module
from gandiva_core.cli.bench import bench
from gandiva_core.cli.benchmarks.results import Row, Say
from gandiva_core.model.errors import InputError


class _Benchmark(EntryPoint):
    """An entry point that needs no installed package."""

    def load(self) -> object:
        return quickly


def quickly(*, is_quick: bool, say: Say) -> Sequence[Row]:
    """How quick."""
    say("measuring")
    return [{"servers": 2500, "mode": "quick" if is_quick else "full"}]


@pytest.fixture(autouse=True)
def _two_benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [_Benchmark(name, "tests:quickly", module.GROUP) for name in ("zebra", "ant")]
    monkeypatch.setattr(
        module, "entry_points", lambda group: found if group == module.GROUP else []
    )


def test_one_is_measured_and_shown_as_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    bench("zebra")
    captured = capsys.readouterr()
    assert captured.out.startswith("zebra (")
    assert captured.out.splitlines()[1:] == ["servers  mode", "  2,500  full"]
    assert captured.err == "measuring\n"


def test_json_holds_nothing_but_json(capsys: pytest.CaptureFixture[str]) -> None:
    bench("all", as_json=True, quick=True)
    decoded = json.loads(capsys.readouterr().out)
    assert [each["benchmark"] for each in decoded] == ["ant", "zebra"]
    assert decoded[0]["rows"] == [{"servers": 2500, "mode": "quick"}]
    assert decoded[0]["is_quick"] is True


def test_files_and_page_are_written(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    bench("all", out=tmp_path / "new" / "folder", document=page)
    written = sorted(path.name for path in (tmp_path / "new" / "folder").iterdir())
    assert written == ["ant.json", "zebra.json"]
    assert json.loads((tmp_path / "new" / "folder" / "ant.json").read_text())["benchmark"] == "ant"
    assert "## ant\n\nHow quick.\n" in page.read_text()


def test_an_unknown_one_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(InputError, match="found 'bee'; expected one of ant, zebra, all"):
        bench("bee")


def test_quick_figures_make_no_page(tmp_path: Path) -> None:
    with pytest.raises(typer.BadParameter):
        bench("ant", quick=True, document=tmp_path / "page.md")
    assert list(tmp_path.iterdir()) == []


def test_where_results_go_is_looked_at_before_anything_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(
        InputError, match=r"--document .*page\.md: found a folder that does not exist"
    ):
        bench("ant", document=tmp_path / "absent" / "page.md")
    with pytest.raises(InputError, match=r"--document .*: found a directory"):
        bench("ant", document=tmp_path)
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(InputError, match=r"--out .*file"):
        bench("ant", out=tmp_path / "file")
    assert "measuring" not in capsys.readouterr().err
