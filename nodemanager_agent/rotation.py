"""Who runs while the core is silent (DESIGN §4): quantum by quantum, by the last table that it gave. Pure.

Quanta are counted on the wall clock at the moment the core fell silent, and by the monotonic clock from then on: agents
of one slicing domain turn together without talking, and a clock that jumps meanwhile neither skips nor doubles a
quantum (E15).
"""

from __future__ import annotations

from gandiva_core.messages.agents import RotationTable, RunWorker


class Rotation:
    """The table, and where in it we are."""

    def __init__(self) -> None:
        self.table: RotationTable | None = None
        self.quantum_s = 60.0
        self.silent_s = 180.0
        self._heard_s: float | None = None
        self._began_s: float | None = None
        self._offset_s = 0.0
        self._turn: int | None = None

    @property
    def is_turning(self) -> bool:
        """The core has been silent for too long."""
        return self._began_s is not None

    def heard(self, now_s: float) -> None:
        """A word from the core."""
        self._heard_s = now_s
        self._began_s = None
        self._turn = None

    def due(self, now_s: float, wall_s: float) -> tuple[RunWorker, ...] | None:
        """Who shall run from now on; None where nothing is to change.

        Args:
            now_s: monotonic.
            wall_s: seconds since 1970; looked at once, when the silence begins to count.
        """
        if self._heard_s is None:
            self._heard_s = now_s  # just started: the core has time to let us in
        if self.table is None or not self.table.quanta or now_s - self._heard_s < self.silent_s:
            return None
        if self._began_s is None:
            self._began_s, self._offset_s = now_s, wall_s - now_s
        turn = int((now_s + self._offset_s) // self.quantum_s)
        if turn == self._turn:
            return None
        self._turn = turn
        return self.table.quanta[turn % len(self.table.quanta)]
