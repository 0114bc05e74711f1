"""What an earlier replay left in the same folder is kept until there is a new result to stand in its place."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gandiva_core.replay.details import JOURNALS_FOLDER, RUNS_FOLDER

ASIDE_FOLDER = ".earlier"
PATTERNS = (
    f"{RUNS_FOLDER}/*.json",
    f"{JOURNALS_FOLDER}/*.jsonl.zst",
    "report.html",
    "summary.json",
)
"""What a replay replaces; nothing else in the folder is touched."""


@contextmanager
def replacing(out: Path) -> Iterator[bool]:
    """Set an earlier result aside; it goes when the block ends well, and comes back when it does not.

    Yields:
        Whether there is one.
    """
    aside = out / ASIDE_FOLDER
    if aside.is_dir():
        remove(out)  # of a replay that was killed: the result before it is the one to keep
    else:
        move(out, aside)
    is_there = aside.is_dir()
    try:
        yield is_there
    except BaseException:
        if is_there:
            remove(out)
            move(aside, out)
            shutil.rmtree(aside)
        raise
    if is_there:
        shutil.rmtree(aside)


def found(folder: Path) -> list[Path]:
    """What a replay left under a folder."""
    return [path for pattern in PATTERNS for path in sorted(folder.glob(pattern))]


def remove(folder: Path) -> None:
    """Delete what a replay left under a folder."""
    for path in found(folder):
        path.unlink()


def move(source: Path, target: Path) -> None:
    """Move what a replay left; where there is nothing, no folder is made."""
    for path in found(source):
        moved = target / path.relative_to(source)
        moved.parent.mkdir(parents=True, exist_ok=True)
        path.rename(moved)
