"""The page: self-contained, escaped, with absolute values, warnings, stories and the source of every figure."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest

from gandiva_core.model.errors import InputError
from gandiva_core.replay.details import RunDetails
from gandiva_core.replay.figures import JobRecord, Moment
from gandiva_core.replay.report import write_report
from gandiva_core.replay.summary import summarise

Maker = Callable[..., RunDetails]
VOID = {"meta", "br", "link", "img", "input", "hr"}


class Structure(HTMLParser):
    """Tags that are opened and closed, and attributes that would load something."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loads: list[str] = []
        self.ids: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name in {"src", "href", "xlink:href"} and value and not value.startswith("#"):
                self.loads.append(value)
            if name == "id" and value:
                self.ids.append(value)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def parsed(page: Path) -> Structure:
    structure = Structure()
    structure.feed(page.read_text(encoding="utf-8"))
    structure.close()
    assert structure.open == []
    return structure


def text_of(page: Path) -> str:
    return " ".join(" ".join(parsed(page).text).split())


@pytest.fixture
def real_pictures() -> None:
    """Asked for by the one test that looks at the files."""


@pytest.fixture(autouse=True)
def no_pictures(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing each chart twice is most of a test's time; the page holds its own copies."""
    if "real_pictures" not in request.fixturenames:
        monkeypatch.setattr("gandiva_core.replay.report.png", lambda _chart, _path: None)


@pytest.fixture
def runs(make_run: Maker) -> list[RunDetails]:
    return [
        make_run("capacity", {"a": 9000.0, "b": 12000.0}),
        make_run("gandiva", {"a": 6000.0, "b": 10000.0}),
    ]


def test_the_page_is_whole_and_loads_nothing(runs: list[RunDetails], tmp_path: Path) -> None:
    page = write_report(summarise(runs), runs, tmp_path)
    structure = parsed(page)
    assert structure.loads == []
    assert len(structure.ids) == len(set(structure.ids))
    content = page.read_text(encoding="utf-8")
    assert "<script" not in content
    assert "@import" not in content
    assert not re.search(r"url\((?!#)", content)
    assert "prefers-color-scheme: dark" in content


def test_absolute_values_stand_beside_the_ratio(runs: list[RunDetails], tmp_path: Path) -> None:
    text = text_of(write_report(summarise(runs), runs, tmp_path))
    assert "175.0 min → 133.3 min" in text
    assert "1.312" in text
    assert "baseline/ours − 1 = +31.2%" in text
    assert "class.of.capacity" in text
    assert "quantum_s = 60" in text
    assert "slicing" in text
    for run in runs:
        assert run.journal in text
        assert run.journal_sha256 in text


@pytest.mark.usefixtures("real_pictures")
def test_charts_are_files_too(runs: list[RunDetails], tmp_path: Path) -> None:
    write_report(summarise(runs), runs, tmp_path)
    pictures = {path.stem for path in tmp_path.glob("*.png")}
    assert pictures == {"jct-cdf", "queueing-cdf", "utilization", "allocated", "load", "height"}
    assert all(path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n" for path in tmp_path.glob("*.png"))


def test_the_same_runs_give_the_same_page(runs: list[RunDetails], tmp_path: Path) -> None:
    pages = [write_report(summarise(runs), runs, tmp_path / name) for name in ("a", "b")]
    assert pages[0].read_bytes() == pages[1].read_bytes()


def test_what_comes_from_a_trace_is_escaped(make_run: Maker, tmp_path: Path) -> None:
    evil = '<script>alert("x")</script>'
    run = make_run("capacity", {evil: 10.0, "b": 10.0})
    jobs = tuple(
        msgspec.structs.replace(job, model=evil, story=(Moment(0.0, evil),)) for job in run.jobs
    )
    run = msgspec.structs.replace(run, jobs=jobs, notes=(evil,), versions={evil: evil})
    page = write_report(summarise([run]), [run], tmp_path)
    assert "<script" not in page.read_text(encoding="utf-8")
    assert evil in text_of(page)


def test_a_deadlock_is_a_warning_that_names_who_holds_what(
    make_run: Maker, make_record: Callable[..., JobRecord], tmp_path: Path
) -> None:
    runs = [
        make_run("capacity", {"a": 10.0}),
        make_run(
            "capacity-fair", [make_record("a", 10.0), make_record("b", None, gpus=6, held_gpus=4)]
        ),
    ]
    text = text_of(write_report(summarise(runs), runs, tmp_path))
    assert "capacity-fair, shape server: gang deadlock. 1 job never finish" in text
    assert "b holds 4 of 6 GPUs on server-01" in text


def test_a_partial_result_says_so(make_run: Maker, tmp_path: Path) -> None:
    runs = [make_run("capacity", {"a": 10.0, "b": None}, complete=False)]
    text = text_of(write_report(summarise(runs), runs, tmp_path))
    assert "Partial result" in text
    assert "capacity server seed 1 (1 of 2 submitted jobs)" in text


def test_a_run_in_which_nothing_finished_still_has_a_page(make_run: Maker, tmp_path: Path) -> None:
    runs = [make_run("capacity", {"a": None}), make_run("gandiva", {"a": None})]
    assert "gang deadlock" not in text_of(write_report(summarise(runs), runs, tmp_path))


def test_several_arms_shapes_and_seeds(make_run: Maker, tmp_path: Path) -> None:
    arms = ["capacity", "gandiva", "gandiva:-slicing", "fifo", "capacity-fair", "exclusive", "x"]
    runs = [
        make_run(arm, {"a": 10.0 + index, "b": 20.0}, shape=shape, seed=seed)
        for shape in ("gpu", "server")
        for seed in (1, 2)
        for index, arm in enumerate(arms)
    ]
    text = text_of(write_report(summarise(runs), runs, tmp_path))
    assert "Both shapes" in text
    assert "Seed by seed" in text


def test_a_folder_that_cannot_be_written_is_named(runs: list[RunDetails], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="file"):
        write_report(summarise(runs), runs, tmp_path / "file")
