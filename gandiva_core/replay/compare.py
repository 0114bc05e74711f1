"""Joining arms that were run apart: only where everything but the scheduler was the same."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from gandiva_core.model.errors import InputError
from gandiva_core.replay.arms import BASELINE
from gandiva_core.replay.details import RunDetails, read_all

MUST_AGREE = {
    "engine": "engine",
    "cluster_digest": "nodes",
    "queues_digest": "queue file",
    "height_max": "maximum height",
}
"""Fields of `Surroundings`, with the word for them. What a baseline itself prescribes (an ordering policy, a second
queue) is laid over the queue file at run time, so the file as the site has it must be the same."""


def target(folders: Sequence[Path], out: Path | None) -> Path:
    """Where the joint report goes: as told, else into the folder itself where there is one only.

    Raises:
        InputError: several folders and no target.
    """
    if out is not None:
        return out
    if len({folder.resolve() for folder in folders}) == 1:
        return folders[0]
    raise InputError("--out", "nothing", "a folder for the joint report of several")


def join(folders: Sequence[Path], where: Path) -> tuple[RunDetails, ...]:
    """All runs of all folders, the baseline first, else as asked for; journals relative to `where`.

    Raises:
        InputError: naming both places and what differs; also a run that is there twice.
    """
    found: dict[tuple[str, str, int], tuple[Path, RunDetails]] = {}
    for folder in folders:
        for run in read_all(folder):
            if run.key in found:
                raise InputError(str(folder), f"{label(run)} again", "each run once")
            check_together(list(found.values()), folder, run)
            found[run.key] = (folder, run)
    placed = sorted(
        found.values(),
        key=lambda each: (each[1].arm != BASELINE, folders.index(each[0]), each[1].position),
    )
    return tuple(relative(run, folder, where) for folder, run in placed)


def check_together(
    earlier: Sequence[tuple[Path, RunDetails]], folder: Path, run: RunDetails
) -> None:
    """Refuse a run whose surroundings differ from those before it."""
    if not earlier:
        return
    first_folder, first = earlier[0]
    for field, word in MUST_AGREE.items():
        ours, theirs = getattr(run.surroundings, field), getattr(first.surroundings, field)
        if ours != theirs:
            raise unlike(folder, run, first_folder, first, f"{word} {short(ours)}", short(theirs))
    for other_folder, other in earlier:
        if (other.shape, other.seed) != (run.shape, run.seed):
            continue
        ours, theirs = run.surroundings.trace_digest, other.surroundings.trace_digest
        if ours != theirs:
            found = f"trace {run.surroundings.trace} with jobs {short(ours)}"
            raise unlike(folder, run, other_folder, other, found, short(theirs))


def unlike(
    folder: Path, run: RunDetails, other_folder: Path, other: RunDetails, found: str, expected: str
) -> InputError:
    """What differs, and between which two runs."""
    return InputError(
        f"{folder}: {label(run)}", found, f"{expected}, as in {other_folder}: {label(other)}"
    )


def label(run: RunDetails) -> str:
    """``gandiva, shape server, seed 1``."""
    return f"{run.arm}, shape {run.shape}, seed {run.seed}"


def short(value: object) -> str:
    """A digest's start; anything else whole."""
    text = str(value)
    return text[:12] if len(text) == 64 else text


def relative(run: RunDetails, folder: Path, where: Path) -> RunDetails:
    """The run with its journal's path as seen from `where`."""
    path = os.path.relpath(folder / run.journal, where)
    return msgspec.structs.replace(run, journal=Path(path).as_posix())
