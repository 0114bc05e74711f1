"""A job's story as its owner reads it (USERS B7)."""

from __future__ import annotations

from gandiva_core.engine.story import StoryLine, story
from gandiva_core.messages import events as e
from gandiva_core.messages.decisions import Enqueue, Wait
from gandiva_core.model.units import JobId, ServerId
from gandiva_core.runtime.journal import Entry, entry_of
from tests.builders import Wish, job, on, server
from tests.engine.scene import Scene, place


class Told(Scene):
    """A scene that keeps its journal."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        super().__init__(server("s1"), server("s2"))

    def tell(self, event: e.Event, *wishes: Wish) -> e.Event | object:  # type: ignore[override]
        outcome = super().tell(event, *wishes)
        self.entries.append(entry_of(event, outcome))
        return outcome


def test_story_of_a_job_that_waits_runs_stops_and_is_broken() -> None:
    scene = Told()
    wait = Wait("host-memory", "4 GiB", "1 GiB on s1")
    scene.tell(e.JobSubmitted(0.0, job("j", 2)), Enqueue(JobId("j"), wait))
    scene.submit(job("other"))
    scene.now_s = 5.0
    scene.wish(Enqueue(JobId("j"), wait), place("j", "s1"))
    scene.wish(place("j", "s1", "s2"))
    scene.commit("j")
    scene.start("j", on("s1", 0), on("s2", 3))
    scene.now_s = 8.0
    switch_id = scene.switch(suspend=["j"])
    scene.now_s = 9.0
    scene.switched(switch_id, stopped=["j"], at_s=8.5)
    scene.tell(e.ServerLost(9.0, ServerId("s2"), "(power)"))
    scene.tell(e.JobKilled(10.0, JobId("j")))
    told = [(line.at_s, line.code, line.text) for line in story(scene.entries, JobId("j"))]
    assert told == [
        (0.0, "submitted", "submitted to root.default, asks for 2 GPUs"),
        (0.0, "wait:host-memory", "waits (host-memory): needs 4 GiB; there is 1 GiB on s1"),
        (5.0, "refusal", "a wish of the policy was refused: 1 servers for 2 workers"),
        (5.0, "place:test", "placed on s1, s2 (test)"),
        (5.0, "committed", "all 1 containers are there"),
        (5.0, "run", "may run on s1/0, s2/3"),
        (5.0, "started", "computes"),
        (8.0, "suspend", "told to stop at its next mini-batch boundary"),
        (8.5, "stopped", "stopped computing; its devices are free"),
        (9.0, "released", "its containers were given back: server s2 was lost (power)"),
        (10.0, "killed", "killed"),
    ]


def test_story_of_a_stock_arms_job() -> None:
    events: list[e.Event] = [
        e.JobSubmitted(0.0, job("j", 4)),
        e.AmWaited(0.0, JobId("j"), "limit 1 GiB"),
        e.ContainersHeld(1.0, JobId("j"), 3, 4),
        e.GangCommitted(2.0, JobId("j"), ("c",) * 4),
        e.MinibatchesReached(3.0, JobId("j"), 100),
        e.ReclaimAsked(3.0, JobId("j"), 2),
        e.GangBroken(4.0, JobId("j"), "preempted"),
        e.JobFailed(5.0, JobId("j"), "gone"),
        e.JobFinished(6.0, JobId("k")),
    ]
    entries = [Entry(n, event) for n, event in enumerate(events, start=1)]
    assert story(entries, JobId("j"))[1:] == [
        StoryLine(0.0, 2, "am-waited", "application master waits: limit 1 GiB"),
        StoryLine(1.0, 3, "holding", "holds 3 of 4 GPUs, waits"),
        StoryLine(2.0, 4, "committed", "all 4 containers are there"),
        StoryLine(3.0, 5, "progress", "100 mini-batches done"),
        StoryLine(
            3.0, 6, "reclaim", "the preemption monitor would have killed containers for 2 GPUs"
        ),
        StoryLine(4.0, 7, "broken", "lost a worker, restarts: preempted"),
        StoryLine(5.0, 8, "failed", "failed: gone"),
    ]


def test_story_of_a_job_that_was_found() -> None:
    """DESIGN §4: a core that starts anew finds containers of which it ordered none."""
    scene = Told()
    servers = (ServerId("s1"), ServerId("s1"), ServerId("s2"))
    scene.tell(e.JobAdopted(3.0, job("j", 3), ("c1", "c2", "c3"), servers))
    scene.tell(e.JobAdopted(3.0, job("other"), ("c4",), (ServerId("s1"),)))
    assert story(scene.entries, JobId("j")) == [
        StoryLine(3.0, 3, "adopted", "found with its 3 containers on s1, s2")
    ]
