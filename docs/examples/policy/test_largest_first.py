"""The policy keeps what every policy must keep, and does what its name says."""

from __future__ import annotations

import largest_first

from gandiva_core.config.settings import Settings
from gandiva_core.conformance import PolicyConformance, SmallWorld, Work
from gandiva_core.conformance.scenario import servers_of, workers_of
from gandiva_core.engine.engine import Engine
from gandiva_core.messages.policy import Policy, Switches
from gandiva_core.model.job import JobSpec
from gandiva_core.model.units import JobId


class TestLargestFirst(PolicyConformance):
    """Inherits every test of the suite."""

    def create(self, settings: Settings, switches: Switches) -> Policy:
        return largest_first.create(settings, switches)


def test_the_largest_waiting_gang_goes_first() -> None:
    works = [
        Work(0.0, JobSpec(JobId("running"), workers_of(4, 4)), 100.0),
        Work(1.0, JobSpec(JobId("small"), workers_of(1, 1)), 10.0),
        Work(2.0, JobSpec(JobId("large"), workers_of(4, 4)), 10.0),
    ]
    engine = Engine(largest_first.create(Settings(), {}), Settings(), check="full")
    world = SmallWorld(engine, servers_of(1, 4), works)
    world.run()
    assert world.finished_at_s == {"running": 100.0, "large": 110.0, "small": 120.0}
