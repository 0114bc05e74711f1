"""The tests that every policy must pass, whoever wrote it.

```python
from gandiva_core.conformance import PolicyConformance

class TestMine(PolicyConformance):
    def create(self, settings, switches):
        return my_package.create(settings, switches)
```

Each test runs the policy in the real engine with every invariant checked from scratch after every event. What the
engine refuses is a finding: a policy that asks for what cannot be has not looked at its view.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as examples

from gandiva_core.config.settings import Settings
from gandiva_core.conformance.scenario import Scenario, scenarios, servers_of, workers_of
from gandiva_core.conformance.world import SmallWorld, Work
from gandiva_core.engine.engine import Engine
from gandiva_core.messages.decisions import Enqueue, Place
from gandiva_core.messages.events import Event, JobSubmitted
from gandiva_core.messages.policy import Outcome, Policy, Switches
from gandiva_core.model.errors import InputError
from gandiva_core.model.job import JobSpec
from gandiva_core.model.units import JobId

_ENCODER = msgspec.json.Encoder()

# The suite is inherited, so one test runs under several classes: that is its purpose, not an accident.
_random = examples(
    max_examples=50,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.differing_executors, HealthCheck.too_slow],
)


class PolicyConformance:
    """Subclass, write `create`, and pytest collects the rest.

    Attributes:
        settings: what the policy is created with.
        switches: likewise.
        starvation_free: False for a policy that may let a job wait for ever on purpose; say why where you set it.
    """

    settings: ClassVar[Settings] = Settings()
    switches: ClassVar[Switches] = {}
    starvation_free: ClassVar[bool] = True

    def create(self, settings: Settings, switches: Switches) -> Policy:
        """The policy's factory, as its entry point names it."""
        raise NotImplementedError(f"{type(self).__name__} must say which policy it is about")

    def policy(self) -> Policy:
        """A fresh policy."""
        return self.create(self.settings, self.switches)

    def engine(self) -> Engine:
        """A fresh engine that checks everything after every event."""
        return Engine(self.policy(), self.settings, check="full")

    # ------------------------------------------------------------------ what it is

    def test_has_a_name_and_says_its_mechanisms(self) -> None:
        """A report names both."""
        policy = self.policy()
        assert policy.name
        assert all(isinstance(mechanism, str) for mechanism in policy.mechanisms)

    def test_refuses_an_unknown_switch(self) -> None:
        """A typing error in an arm's name must not run another experiment than the one asked for."""
        with pytest.raises(InputError, match="no-such-mechanism"):
            self.create(self.settings, {"no-such-mechanism": True})

    # ------------------------------------------------------------------ what it does

    @pytest.mark.parametrize("shape", ["gpu", "server"])
    @pytest.mark.parametrize("gpus", range(1, 17))
    def test_runs_a_gang_of_any_size(self, gpus: int, shape: str) -> None:
        """Sizes 1 to 16, powers of two or not, one container a GPU or one a server (C-2, DESIGN §7)."""
        spec = JobSpec(JobId("only"), workers_of(gpus, 1 if shape == "gpu" else 4))
        world = SmallWorld(self.engine(), servers_of(4, 4), [Work(0.0, spec, 100.0)])
        world.run(10_000.0)
        assert world.finished_at_s == {"only": 100.0}

    @_random
    @given(scenarios())
    def test_drains_any_scenario_without_a_refused_decision(self, scenario: Scenario) -> None:
        """Whatever happens, nothing is refused, invariants hold, and in the end every job has left (G-10, G-11)."""
        refused: list[str] = []

        def witness(event: Event, outcome: Outcome) -> None:
            refused.extend(f"{event}: {refusal}" for refusal in outcome.refusals)

        world = scenario.world(self.engine(), witness)
        world.run(events_max=20_000)
        assert not refused
        assert not world.unfinished

    @_random
    @given(scenarios())
    def test_answers_every_submission_at_once(self, scenario: Scenario) -> None:
        """A submitted job is placed, or enqueued with a reason that has a code."""
        undecided: list[JobId] = []

        def witness(event: Event, outcome: Outcome) -> None:
            if isinstance(event, JobSubmitted) and not _is_answered(event.job.job_id, outcome):
                undecided.append(event.job.job_id)

        scenario.world(self.engine(), witness).run(events_max=20_000)
        assert not undecided

    @_random
    @given(scenarios())
    def test_is_deterministic(self, scenario: Scenario) -> None:
        """The same events give the same bytes (C-6)."""
        journals = []
        for _ in range(2):
            world = scenario.world(self.engine())
            world.run(events_max=20_000)
            journals.append(b"\n".join(_ENCODER.encode(entry) for entry in world.journal))
        assert journals[0] == journals[1]

    @_random
    @given(scenarios())
    def test_keeps_nothing_to_itself(self, scenario: Scenario) -> None:
        """A fresh policy on a restored engine goes on as the old one would: all it knows is in the view (DESIGN §3)."""
        world = scenario.world(self.engine())
        world.run(events_max=20_000)
        engine = self.engine()
        for number, (event, outcome) in enumerate(world.journal):
            if number % 7 == 3:
                engine = Engine.restore(
                    engine.snapshot(), self.policy(), self.settings, check="full"
                )
            assert engine.handle(event) == outcome

    def test_lets_nobody_starve(self) -> None:
        """A gang of the whole cluster runs although small jobs keep coming (G-21)."""
        if not self.starvation_free:
            pytest.skip("this policy says that it may let a job wait for ever")
        small = [
            Work(20.0 * n, JobSpec(JobId(f"small{n}"), workers_of(1, 1)), 170.0) for n in range(400)
        ]
        large = Work(100.0, JobSpec(JobId("large"), workers_of(8, 4)), 60.0)
        world = SmallWorld(self.engine(), servers_of(2, 4), [*small, large])
        world.run()
        assert not world.unfinished
        assert world.finished_at_s[JobId("large")] < small[-1].arrival_s


def _is_answered(job_id: JobId, outcome: Outcome) -> bool:
    for decision in outcome.decisions:
        if isinstance(decision, Place) and decision.job_id == job_id:
            return True
        if isinstance(decision, Enqueue) and decision.job_id == job_id:
            return decision.reason.code not in {"", "undecided"}
    return False
