"""Gangs on their way to other servers: warm up, freeze at a boundary, go on there (G-69, G-74, G-76)."""

from __future__ import annotations

from dataclasses import dataclass

from gandiva_core.messages.effects import CarryOver
from gandiva_core.model.profile import ModelProfile
from gandiva_core.sim.performance import BYTES_PER_MIB
from gandiva_core.sim.progress import JobRun
from gandiva_core.sim.queue import Agenda, Due

_INSIDE = (0.29, 1.70)
"""Of G-74: fixed seconds, and seconds a GB of checkpoint, within one server."""

_BETWEEN = (0.33, 2.42)
"""The same between servers."""


def move_s(profile: ModelProfile, *, is_inside: bool) -> float:
    """How long a warm move freezes a job, whatever its number of GPUs (G-68 B, G-74)."""
    fixed_s, per_gb_s = _INSIDE if is_inside else _BETWEEN
    return fixed_s + per_gb_s * profile.checkpoint_mib * BYTES_PER_MIB / 1e9


@dataclass(slots=True)
class Course:
    """One move.

    Attributes:
        life: of the run when the move began; after a crash the move means nothing.
        stopped_at_s: its last mini-batch at the source; None while it warms up at the destination.
        is_off: called off once it was frozen: it goes on where it was.
    """

    effect: CarryOver
    run: JobRun
    life: int
    stopped_at_s: float | None = None
    is_off: bool = False

    @property
    def frozen_s(self) -> float:
        """How long it stands still in all."""
        here = {binding.server_id for binding in self.run.run}
        is_inside = here == set(self.effect.servers)
        return move_s(self.run.job.profile, is_inside=is_inside)


class Moves:
    """The moves that are under way.

    Args:
        agenda: where their stages are entered.
        warm_s: until a new process could take over (G-76); the job computes on meanwhile.
    """

    def __init__(self, agenda: Agenda, warm_s: float) -> None:
        self._agenda = agenda
        self._warm_s = warm_s
        self._courses: dict[int, Course] = {}

    def begin(self, effect: CarryOver, run: JobRun, now_s: float, free_s: float) -> None:
        """Warm up, on devices that are free from `free_s` on."""
        self._courses[effect.move_id] = Course(effect, run, run.life)
        self._agenda.add(max(now_s + self._warm_s, free_s), Due.MOVING, effect.move_id)

    def due(self, move_id: int) -> Course | None:
        """A stage has come; None where the job ended or crashed since, or was told to stay before it froze."""
        course = self._courses.get(move_id)
        if course is None or course.run.ended or course.run.life != course.life:
            self._courses.pop(move_id, None)
            return None
        return course

    def freeze(self, course: Course, stop_at_s: float) -> None:
        """It computes until `stop_at_s`, and from the end of the move on."""
        course.stopped_at_s = stop_at_s
        self._agenda.add(stop_at_s + course.frozen_s, Due.MOVING, course.effect.move_id)

    def end(self, course: Course) -> None:
        """It computes again."""
        del self._courses[course.effect.move_id]

    def call_off(self, move_id: int) -> Course | None:
        """The engine does not want it any more; None for one that is over."""
        course = self._courses.get(move_id)
        if course is not None:
            course.is_off = True
            if course.stopped_at_s is None:
                del self._courses[move_id]
        return course
