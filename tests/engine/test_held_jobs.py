"""Jobs that their owner holds, and servers that are being emptied (DESIGN §6: `gandiva job`, `gandiva node`)."""

from __future__ import annotations

import msgspec
import pytest

from gandiva_core.config.settings import Settings
from gandiva_core.engine.engine import Engine
from gandiva_core.messages import events as e
from gandiva_core.messages.decisions import Place, Switch
from gandiva_core.messages.effects import CommitGang, SwitchResidents
from gandiva_core.model.job import JobPhase
from gandiva_core.model.units import JobId, ServerId
from gandiva_core.policies.gandiva import create
from tests.builders import job, on, server
from tests.engine.scene import Scene, run

A = JobId("a")


@pytest.fixture
def scene() -> Scene:
    scene = Scene(server("s1", 2))
    scene.running("a", on("s1", 0))
    return scene


def test_who_is_held_is_not_told_to_run(scene: Scene) -> None:
    scene.switched(scene.switch(suspend=["a"]), stopped=["a"])
    scene.tell(e.JobHeld(0.0, A, "ann"))
    assert scene.refusal(Switch(run=(run("a", on("s1", 0)),))) == "job a is held by its owner"
    scene.tell(e.JobReleased(0.0, A, "ann"))
    scene.switch(run=[run("a", on("s1", 0))])


def test_a_hold_is_in_a_snapshot(scene: Scene) -> None:
    scene.tell(e.JobHeld(0.0, A))
    again = Engine.restore(scene.engine.snapshot(), scene.policy, scene.settings, check="full")
    assert again.view.jobs[A].is_held


def test_nobody_new_comes_to_a_server_that_is_emptied(scene: Scene) -> None:
    scene.tell(e.ServerJoined(0.0, msgspec.structs.replace(server("s1", 2), is_draining=True)))
    scene.tell(e.JobSubmitted(0.0, job("b")))
    refused = scene.refusal(Place(JobId("b"), (ServerId("s1"),), "relaxed"))
    assert refused == "server s1 is being emptied"
    assert scene.phase("a") is JobPhase.RUNNING


@pytest.mark.parametrize(
    "event",
    [
        e.JobHeld(0.0, JobId("x")),
        e.JobReleased(0.0, JobId("x")),
        e.JobReleased(0.0, A),
        e.JobProfiled(0.0, JobId("x"), 0.1),
    ],
)
def test_unknown_or_doubled_is_ignored_and_counted(scene: Scene, event: e.Event) -> None:
    scene.tell(event)
    assert scene.engine.ignored == 1


class Live:
    """The real policy, whose orders are carried out at once."""

    def __init__(self) -> None:
        settings = Settings(quantum_s=10.0)
        self.engine = Engine(create(settings, {}), settings, check="full")
        self.tell(e.ServerJoined(0.0, server("s1", 1)))

    def tell(self, event: e.Event) -> None:
        inbox = [event]
        while inbox:
            outcome = self.engine.handle(inbox.pop(0))
            assert not outcome.refusals
            for effect in outcome.effects:
                if isinstance(effect, CommitGang):
                    inbox.append(e.GangCommitted(event.at_s, effect.job_id, ("c",)))
                elif isinstance(effect, SwitchResidents) and (effect.suspend or effect.run):
                    stopped = tuple((name, event.at_s) for name in effect.suspend)
                    started = tuple((each.job_id, event.at_s) for each in effect.run)
                    inbox.append(
                        e.ResidentsSwitched(event.at_s, effect.switch_id, stopped, started)
                    )

    def phases(self) -> dict[str, str]:
        return {name: str(each.phase) for name, each in self.engine.view.jobs.items()}

    def boundaries(self, count: int) -> list[str]:
        """Who runs after each of the next boundaries."""
        seen = []
        for _ in range(count):
            key, at_s = min(self.engine.view.wakes.items(), key=lambda wake: wake[1])
            self.tell(e.TimerFired(at_s, key))
            seen += [name for name, phase in self.phases().items() if phase == "running"]
        return seen


def test_the_policy_stops_who_is_held_and_gives_the_device_to_others() -> None:
    live = Live()
    for name in "ab":
        live.tell(e.JobSubmitted(0.0, job(name)))
    assert live.phases() == {"a": "running", "b": "starting"}
    live.tell(e.JobHeld(1.0, A))
    assert live.phases() == {"a": "suspended", "b": "running"}
    assert set(live.boundaries(4)) == {"b"}
    live.tell(e.JobReleased(live.engine.view.now_s, A))
    assert set(live.boundaries(4)) == {"a", "b"}


def test_a_held_job_that_is_alone_leaves_its_device_idle_until_released() -> None:
    live = Live()
    live.tell(e.JobSubmitted(0.0, job("a")))
    live.tell(e.JobHeld(1.0, A))
    assert live.phases() == {"a": "suspended"}
    live.tell(e.JobReleased(5.0, A))
    assert live.phases() == {"a": "running"}


def test_the_policy_places_nobody_on_a_server_that_is_emptied() -> None:
    live = Live()
    live.tell(e.ServerJoined(0.0, msgspec.structs.replace(server("s1", 1), is_draining=True)))
    live.tell(e.JobSubmitted(0.0, job("a")))
    assert live.phases() == {"a": "queued"}
    live.tell(e.ServerJoined(1.0, server("s1", 1)))
    assert live.phases() == {"a": "running"}


def test_a_job_whose_owner_forbids_it_is_never_stopped_and_shares_with_nobody() -> None:
    """DESIGN §6: owner's limits; the device stays its own from start to end."""
    live = Live()
    live.tell(e.JobSubmitted(0.0, msgspec.structs.replace(job("a"), never=("suspend",))))
    live.tell(e.JobSubmitted(0.0, job("b")))
    assert live.phases() == {"a": "running", "b": "queued"}
    assert not live.engine.view.can_suspend(A)
    live.tell(e.JobFinished(9.0, A))
    assert live.phases() == {"b": "running"}


def test_a_job_that_is_known_to_be_unable_to_stop_is_placed_alone_when_it_restarts() -> None:
    """The policy must judge it as the engine does, or its wish is refused."""
    live = Live()
    live.tell(e.JobSubmitted(0.0, job("a")))
    live.tell(e.JobLearned(0.0, A, can_suspend=False, reason="nothing of it registered"))
    live.tell(e.GangBroken(1.0, A, "a worker was lost"))
    live.tell(e.JobSubmitted(2.0, job("b")))
    assert live.phases() == {"a": "running", "b": "queued"}
