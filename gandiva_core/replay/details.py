"""One run's result as a file of its own, so that runs made apart can be joined later without reading journals again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

from gandiva_core.model.errors import InputError
from gandiva_core.replay.figures import Course, JobRecord, RunFigures

FORMAT = 1
"""Version of the file; a reader refuses another."""

RUNS_FOLDER = "runs"
JOURNALS_FOLDER = "journals"


class Surroundings(msgspec.Struct, frozen=True):
    """What arms of one comparison must have in common.

    Attributes:
        trace: its name; `trace_digest` is over the jobs really submitted, one of each seed and shape.
        cluster_digest: over servers and their sizes.
        queues_digest: over the queue file as the site has it, before what a baseline prescribes;
            "built-in" without a site's own.
        height_max: H_max of policy arms; it sizes every arm's default asks.
    """

    trace: str
    trace_source: str
    trace_digest: str
    cluster: str
    cluster_digest: str
    servers: int
    gpus: int
    gpus_by_type: Mapping[str, int]
    queues_digest: str
    engine: str
    height_max: int


class RunDetails(msgspec.Struct, frozen=True):
    """A run: which, where, and what came of it.

    Attributes:
        position: of the arm among those asked for together, from 0.
        settings: `Settings` as numbers; a stock arm reads none of them.
        journal: relative to the output folder.
        journal_sha256: over the plain bytes, before compression.
        is_complete: False where the run was interrupted; its figures then cover what was played.
        wall_s: real time the run took, start-up included; the only figure that differs between two equal runs.
        refused: jobs refused at submission, with the reason.
        left_out: jobs of the trace that were not submitted, by reason.
    """

    format: int
    arm: str
    position: int
    is_stock: bool
    mechanisms: tuple[str, ...]
    scheduler_class: str
    shape: str
    seed: int
    surroundings: Surroundings
    settings: Mapping[str, float]
    commit: str
    versions: Mapping[str, str]
    is_complete: bool
    wall_s: float
    journal: str
    journal_sha256: str
    figures: RunFigures
    course: Course
    refused: tuple[tuple[str, str], ...]
    left_out: Mapping[str, int]
    notes: tuple[str, ...]
    jobs: tuple[JobRecord, ...]

    @property
    def key(self) -> tuple[str, str, int]:
        """(arm, shape, seed)."""
        return (self.arm, self.shape, self.seed)


def run_name(arm: str, shape: str, seed: int) -> str:
    """File name of a run without suffix; of an arm's name, what a file name should not hold becomes a dot."""
    return f"{re.sub(r'[^A-Za-z0-9.+-]', '.', arm)}_{shape}_{seed}"


def write(details: RunDetails, out: Path) -> Path:
    """Write the file in one go under `out`; a half-written one is never seen."""
    folder = out / RUNS_FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{run_name(details.arm, details.shape, details.seed)}.json"
    draft = path.with_suffix(".part")
    draft.write_bytes(msgspec.json.encode(details))
    draft.replace(path)
    return path


def read(path: Path) -> RunDetails:
    """Read one run's file.

    Raises:
        InputError: where it is no such file, cut off, or of another version.
    """
    expected = f"a run of `gandiva replay`, format {FORMAT}"
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(str(path), error.strerror or "unreadable", expected) from error
    try:
        details = msgspec.json.decode(data, type=RunDetails)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(str(path), str(error), expected) from error
    if details.format != FORMAT:
        raise InputError(str(path), f"format {details.format}", expected)
    return details


def read_all(out: Path) -> tuple[RunDetails, ...]:
    """Every run under an output folder, by name.

    Raises:
        InputError: where there is none.
    """
    folder = out / RUNS_FOLDER
    paths = sorted(folder.glob("*.json")) if folder.is_dir() else []
    if not paths:
        raise InputError(str(out), f"no {RUNS_FOLDER}/*.json", "the --out folder of a replay")
    return tuple(read(path) for path in paths)
