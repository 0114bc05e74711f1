"""When Hadoop's preemption monitor runs on the virtual clock. Pure.

Live it runs every few seconds for ever. In a replay its rounds matter only for a while after something changed and
while somebody waits: long enough for a container to be marked, to be given its time to leave, and to be taken.
"""

from __future__ import annotations

from collections.abc import Sequence

from yarn_plugin.replay.wire import EditSchedule, HarnessEvent

MONITORING_INTERVAL_S = 3.0
"""Hadoop's default for `yarn.resourcemanager.monitor.capacity.preemption.monitoring_interval`."""
WAIT_BEFORE_KILL_S = 15.0
"""Hadoop's default for `…preemption.max_wait_before_kill`."""


class PreemptionRounds:
    """The monitor's next round, if one can matter."""

    action = EditSchedule()

    def __init__(
        self,
        interval_s: float = MONITORING_INTERVAL_S,
        wait_before_kill_s: float = WAIT_BEFORE_KILL_S,
    ) -> None:
        self._interval_s = interval_s
        self._quiet_rounds = int(wait_before_kill_s / interval_s) + 2
        self._left = 0
        self._next_at_s: float | None = None

    def next_at_s(self) -> float | None:
        """When it runs next; None while nobody waits or all has been tried."""
        return self._next_at_s

    def is_due(self, now_s: float) -> bool:
        """Whether a round is due; counts it as run."""
        if self._next_at_s is None or self._next_at_s > now_s:
            return False
        self._left -= 1
        self._next_at_s = now_s + self._interval_s if self._left > 0 else None
        return True

    def seen(self, now_s: float, events: Sequence[HarnessEvent], *, waits: bool) -> None:
        """Take note of a step: any change gives the monitor a reason to look again.

        Args:
            now_s: of the step.
            events: what the AMs saw in it.
            waits: whether any gang is not whole.
        """
        if not waits:
            self._next_at_s = None
            return
        if events:
            self._left = self._quiet_rounds
            if self._next_at_s is None:
                self._next_at_s = now_s + self._interval_s
