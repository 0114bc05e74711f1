"""A policy in the real engine over the tiny world, with all invariants checked, and what tests ask of the run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from gandiva_core.config.settings import Settings
from gandiva_core.conformance.world import Delays, SmallWorld, Work
from gandiva_core.engine.engine import Engine
from gandiva_core.messages import events as e
from gandiva_core.messages.decisions import Enqueue, Place, Switch, Wait
from gandiva_core.messages.effects import CommitGang
from gandiva_core.messages.policy import Policy
from gandiva_core.model.cluster import Server
from gandiva_core.model.job import JobSpec
from gandiva_core.model.units import JobId, ServerId
from gandiva_core.policies.gandiva import create

FOR_EVER_S = 1e9

NO_WAITING = Settings(starving_after_quanta=0.0, height_max=16)
"""Puts unlike jobs on one server at once, as the fairness figures of SPEC want them."""


def arriving(*jobs: JobSpec, at_s: float = 0.0, run_s: float = FOR_EVER_S) -> list[Work]:
    """Jobs that come at one time."""
    return [Work(at_s, job, run_s) for job in jobs]


class Stage:
    """One run; nothing may be refused."""

    def __init__(
        self,
        servers: Sequence[Server],
        works: Iterable[Work],
        *,
        settings: Settings | None = None,
        policy: Policy | None = None,
        delays: Delays | None = None,
        refuse: Callable[[CommitGang, float], str | None] = lambda _commit, _now_s: None,
        facts: Iterable[e.Event] = (),
    ) -> None:
        settings = settings or Settings()
        self.engine = Engine(policy or create(settings, {}), settings, check="full")
        self.world = SmallWorld(
            self.engine, servers, works, delays=delays, refuse=refuse, facts=facts
        )

    def run(self, until_s: float = float("inf")) -> Stage:
        """Go on; fail on any refusal."""
        self.world.run(until_s, events_max=50_000)
        refusals = [r for _, outcome in self.world.journal for r in outcome.refusals]
        assert not refusals
        return self

    def tell(self, event: e.Event) -> Stage:
        """Something happens outside, and then whatever follows at the same time."""
        self.world.tell(event)
        return self.run(event.at_s)

    def placements(self) -> list[tuple[str, str, str]]:
        """(job, step, servers) of every Place, in order; a server is named once."""
        return [
            (d.job_id, d.step, " ".join(dict.fromkeys(d.servers)))
            for _, outcome in self.world.journal
            for d in outcome.decisions
            if isinstance(d, Place)
        ]

    def switches(self) -> list[tuple[float, Switch]]:
        """Every switch with its time."""
        return [
            (event.at_s, d)
            for event, outcome in self.world.journal
            for d in outcome.decisions
            if isinstance(d, Switch)
        ]

    def reasons(self) -> list[tuple[str, Wait]]:
        """Every reason to wait, in order."""
        return [
            (d.job_id, d.reason)
            for _, outcome in self.world.journal
            for d in outcome.decisions
            if isinstance(d, Enqueue)
        ]

    def layout(self) -> dict[str, list[str]]:
        """Residents by server."""
        return {key: sorted(s.residents) for key, s in self.engine.view.servers.items()}

    def running(self) -> list[str]:
        """Jobs that hold devices now."""
        return sorted(
            {holder for s in self.engine.view.servers.values() for holder in s.holders if holder}
        )

    def run_sets(self, times: Iterable[float]) -> list[list[str]]:
        """Who runs shortly after each of these times."""
        return [self.run(at_s + 1.0).running() for at_s in times]

    def ran_s(self, name: str) -> float:
        """Seconds that a job ran."""
        return self.world.running_s(JobId(name))

    def affinity(self, name: str) -> int:
        """G-5."""
        return self.engine.view.servers[ServerId(name)].affinity


def jain(shares: Sequence[float]) -> float:
    """Jain's index (C-4)."""
    return sum(shares) ** 2 / (len(shares) * sum(share * share for share in shares))
