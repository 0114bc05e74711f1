"""The lifecycle table (G-10) and its picture."""

from __future__ import annotations

from pathlib import Path

import pytest

from gandiva_core.engine.transitions import TABLE, Stimulus, follow, is_allowed, mermaid
from gandiva_core.model.errors import InvariantError
from gandiva_core.model.job import RESIDENT_PHASES, TERMINAL_PHASES, JobPhase


def test_picture_in_the_documentation_is_drawn_from_the_table(repo_root: Path) -> None:
    text = (repo_root / "docs" / "LIFECYCLE.md").read_text()
    assert f"```mermaid\n{mermaid()}```" in text


def test_documentation_tells_every_phase(repo_root: Path) -> None:
    rows = (repo_root / "docs" / "LIFECYCLE.md").read_text().splitlines()
    first_cells = {
        name.strip()
        for row in rows
        if row.startswith("| ")
        for name in row.split("|")[1].split(",")
    }
    assert set(JobPhase) <= first_cells


def test_nothing_leaves_a_terminal_phase() -> None:
    assert not [start for start, _ in TABLE if start in TERMINAL_PHASES]


def test_every_live_phase_can_end_in_each_way() -> None:
    for phase in set(JobPhase) - TERMINAL_PHASES:
        ends = {TABLE[phase, why] for why in (Stimulus.FINISHED, Stimulus.FAILED, Stimulus.KILLED)}
        assert ends == TERMINAL_PHASES


def test_every_resident_phase_falls_back_to_the_queue() -> None:
    """G-13: restart through the placement cascade."""
    broken = {start: end for (start, why), end in TABLE.items() if why is Stimulus.BROKEN}
    assert broken == dict.fromkeys(RESIDENT_PHASES, JobPhase.QUEUED)


def test_every_phase_can_be_reached_and_left() -> None:
    reached, frontier = {JobPhase.SUBMITTED}, [JobPhase.SUBMITTED]
    while frontier:
        phase = frontier.pop()
        new = {end for (start, _), end in TABLE.items() if start is phase} - reached
        reached |= new
        frontier += new
    assert reached == set(JobPhase)


@pytest.mark.parametrize(
    ("phase", "stimulus"),
    [
        (JobPhase.QUEUED, Stimulus.RUN_ORDERED),
        (JobPhase.COMMITTING, Stimulus.RUN_ORDERED),
        (JobPhase.RESUMING, Stimulus.SUSPEND_ORDERED),
        (JobPhase.SUSPENDING, Stimulus.SUSPEND_ORDERED),
        (JobPhase.SUSPENDING, Stimulus.RUN_ORDERED),
        (JobPhase.FINISHED, Stimulus.KILLED),
    ],
)
def test_impossible_stimulus_names_job_phase_and_stimulus(
    phase: JobPhase, stimulus: Stimulus
) -> None:
    """G-11 iv among them: no second order before the first one's answer."""
    assert not is_allowed(phase, stimulus)
    with pytest.raises(InvariantError, match=f"job j7: {stimulus} cannot happen in phase {phase}"):
        follow(phase, stimulus, "j7")
