"""The world of a live core that has no agents: it keeps time, and nothing in it can be stopped.

Containers run from the moment YARN starts them and nobody here has a hand on them. So an order to stop or start is
answered as carried out at once: the books go on, the processes do not change. This is the truth only while no device
is shared, which is why servers without an agent are never over-subscribed unless a test asks for it.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from gandiva_core.messages.effects import StartTimer, SwitchResidents, WorldEffect
from gandiva_core.messages.events import Event, ResidentsSwitched, TimerFired
from gandiva_core.runtime.ports import WorldStep


class AgentlessWorld:
    """Implements `gandiva_core.runtime.ports.World` without jobs of its own: no arrivals, no completions."""

    def __init__(self) -> None:
        self._answers: list[tuple[float, SwitchResidents]] = []
        self._at_s: dict[str, float] = {}
        self._due: list[tuple[float, str]] = []

    def next_at_s(self) -> float | None:
        """When the next answer or timer is due."""
        if self._answers:
            return self._answers[0][0]
        while self._due and self._at_s.get(self._due[0][1]) != self._due[0][0]:
            heapq.heappop(self._due)  # replaced by a later one of its key
        return self._due[0][0] if self._due else None

    def advance(self, now_s: float) -> WorldStep:
        """Answers in the order of their orders, then timers by time and key."""
        events: list[Event] = [_done(effect, now_s) for _, effect in self._answers]
        self._answers = []
        while (at_s := self.next_at_s()) is not None and at_s <= now_s:
            _, key = heapq.heappop(self._due)
            del self._at_s[key]
            events.append(TimerFired(now_s, key))
        return WorldStep(tuple(events))

    def apply(self, now_s: float, effects: Sequence[WorldEffect]) -> None:
        """Take orders; a release needs nothing here, since it ends the containers."""
        for effect in effects:
            if isinstance(effect, SwitchResidents):
                if effect.suspend or effect.run:
                    self._answers.append((now_s, effect))
            elif isinstance(effect, StartTimer):
                self._at_s[effect.key] = effect.at_s
                heapq.heappush(self._due, (effect.at_s, effect.key))


def _done(effect: SwitchResidents, now_s: float) -> ResidentsSwitched:
    return ResidentsSwitched(
        now_s,
        effect.switch_id,
        stopped=tuple((job_id, now_s) for job_id in effect.suspend),
        started=tuple((run.job_id, now_s) for run in effect.run),
    )
