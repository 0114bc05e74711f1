"""Kinds of servers: what placement tells apart only by id stands together, whatever came, went or was taken back."""

from __future__ import annotations

import pytest

from gandiva_core.engine.errors import PolicyError
from gandiva_core.messages.decisions import Decision
from gandiva_core.messages.events import JobFinished, JobSubmitted, ServerLost
from gandiva_core.model.units import JobId, ServerId
from gandiva_core.model.view import ClusterView
from tests.builders import job, joined, server
from tests.engine.scene import Scene, place


def kinds(scene: Scene) -> list[list[str]]:
    return [[str(view.server.server_id) for view in kind] for kind in scene.engine.view.kinds]


def test_servers_of_different_sizes_and_partitions_are_no_kind() -> None:
    scene = Scene(
        server("s1"),
        server("s2", 8),
        server("s3", partition="gpu"),
        server("s4", can_suspend=False),
        server("s5", memory_mib=1024),
        server("s6"),
    )
    assert kinds(scene) == [["s1", "s6"], ["s2"], ["s3"], ["s4"], ["s5"]]


def test_a_resident_takes_its_server_out_of_its_kind_and_its_end_brings_it_back() -> None:
    scene = Scene(*(server(f"s{i}") for i in range(1, 5)))
    assert kinds(scene) == [["s1", "s2", "s3", "s4"]]
    scene.submit(job("a"), "s1")
    scene.submit(job("b"), "s3")
    assert kinds(scene) == [["s1", "s3"], ["s2", "s4"]]
    scene.tell(JobFinished(0.0, JobId("a")))
    assert kinds(scene) == [["s1", "s2", "s4"], ["s3"]]


def test_servers_come_and_go() -> None:
    scene = Scene(server("s1"), server("s3"))
    for event in joined(server("s2")):
        scene.tell(event)
    assert kinds(scene) == [["s1", "s2", "s3"]]
    scene.tell(ServerLost(0.0, ServerId("s1"), "gone"))
    assert kinds(scene) == [["s2", "s3"]]


def test_a_decision_that_is_taken_back_leaves_kinds_as_they_were() -> None:
    """An event whose policy raises changes nothing; the policy had seen the kinds under its own decision."""
    scene = Scene(server("s1"), server("s2"))
    seen: list[list[list[str]]] = []

    def explode(_: ClusterView) -> Decision:
        seen.append(kinds(scene))
        raise ZeroDivisionError("after a look")

    with pytest.raises(PolicyError, match="after a look"):
        scene.tell(JobSubmitted(0.0, job("a")), place("a", "s2"), explode)
    assert seen == [[["s1"], ["s2"]]]
    assert kinds(scene) == [["s1", "s2"]]
