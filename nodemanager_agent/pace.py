"""Which mini-batch times a worker had alone on its devices, and which beside others (G-52, G-53, G-59). Pure."""

from __future__ import annotations

from dataclasses import dataclass

from nodemanager_agent.client.ring import CYCLES, DROPPED

SETTLED_MINIBATCHES = CYCLES + DROPPED
"""After so many the median of the last cycles holds none from before the company changed (G-51)."""


@dataclass(slots=True)
class Pace:
    """Follows one worker.

    Attributes:
        company: containers that run on its devices with it.
        alone_s: its last mini-batch time without company; None where it was never measured.
        packed_s: with the company it has now; None without, or before it is measured.
    """

    company: frozenset[str] = frozenset()
    alone_s: float | None = None
    packed_s: float | None = None
    _since: int = 0

    def note(self, company: frozenset[str], minibatches: int, minibatch_s: float | None) -> None:
        """What it told while it ran: mini-batches done, and the median of the last ones."""
        if company != self.company:
            self.company, self.packed_s, self._since = company, None, minibatches
        if minibatch_s is None or minibatches - self._since < SETTLED_MINIBATCHES:
            return
        if company:
            self.packed_s = minibatch_s
        else:
            self.alone_s = minibatch_s
