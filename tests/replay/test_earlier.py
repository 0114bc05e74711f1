"""An earlier result is lost only to a newer one."""

from __future__ import annotations

from pathlib import Path

import pytest

from gandiva_core.replay.earlier import ASIDE_FOLDER, replacing

RESULT = ("runs/a.json", "journals/a.jsonl.zst", "report.html", "summary.json")


def fill(out: Path, text: str, names: tuple[str, ...] = RESULT) -> None:
    for name in names:
        path = out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def replay_that_fails(out: Path, names: tuple[str, ...], error: BaseException) -> None:
    with replacing(out):
        assert not (out / "report.html").exists()
        fill(out, "half", names)
        raise error


def content(out: Path) -> dict[str, str]:
    files = (path for path in out.rglob("*") if path.is_file())
    return {str(path.relative_to(out)): path.read_text(encoding="utf-8") for path in files}


def test_a_new_result_takes_the_place_of_the_earlier_one(tmp_path: Path) -> None:
    fill(tmp_path, "old")
    fill(tmp_path, "mine", ("notes.txt",))
    with replacing(tmp_path) as had_earlier:
        assert had_earlier
        assert not (tmp_path / "report.html").exists()
        fill(tmp_path, "new", ("runs/b.json", "report.html"))
    assert content(tmp_path) == {"runs/b.json": "new", "report.html": "new", "notes.txt": "mine"}


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_where_nothing_came_of_it_the_earlier_one_is_back(
    tmp_path: Path, error: type[BaseException]
) -> None:
    fill(tmp_path, "old")
    before = content(tmp_path)
    with pytest.raises(error):
        replay_that_fails(tmp_path, ("journals/a.jsonl.zst", "runs/b.json"), error())
    assert content(tmp_path) == before
    assert not (tmp_path / ASIDE_FOLDER).exists()


def test_without_an_earlier_one_what_a_failed_replay_left_stays(tmp_path: Path) -> None:
    """Its journals tell what went wrong."""
    with pytest.raises(OSError, match="full"):
        replay_that_fails(tmp_path, ("journals/a.jsonl.zst",), OSError("full"))
    assert content(tmp_path) == {"journals/a.jsonl.zst": "half"}


def test_after_a_killed_replay_the_result_before_it_counts(tmp_path: Path) -> None:
    fill(tmp_path / ASIDE_FOLDER, "old")
    fill(tmp_path, "killed", ("journals/a.jsonl.zst",))
    with pytest.raises(KeyboardInterrupt):
        replay_that_fails(tmp_path, ("journals/b.jsonl.zst",), KeyboardInterrupt())
    assert content(tmp_path) == dict.fromkeys(RESULT, "old")
