"""What users change while an application waits (docs/COMPATIBILITY.md)."""

from __future__ import annotations

import pytest

from gandiva_core.messages.events import JobKilled, JobSubmitted, ServerJoined
from gandiva_core.model.units import JobId
from tests.yarn_plugin.bridge.applications import APP, ATTEMPT, GPU, Cluster, ask
from yarn_plugin.bridge import wire


def asks(count: int, priority: int | None) -> wire.Asks:
    return wire.Asks(app=APP, attempt=ATTEMPT, asks=(ask(count),), app_priority=priority)


@pytest.mark.parametrize("kind", ["YARN", "SPARK"])
def test_what_waits_does_so_anew_under_another_priority(kind: str) -> None:
    cluster = Cluster()
    cluster.add_app("gandiva.gang=2" if kind == "YARN" else "", kind=kind)
    first = cluster.tell(asks(2, 0))
    [*killed, last] = cluster.tell(asks(2, 7), at_s=5.0)
    formed = [event for event in killed if isinstance(event, JobSubmitted)] + [last]
    ended = [event for event in killed if isinstance(event, JobKilled)]
    assert len(ended) == len(formed) == len(first)
    assert all(isinstance(event, JobSubmitted) and event.job.priority == 7 for event in formed)
    assert cluster.tell(asks(2, 7)) == []


def test_what_has_its_containers_is_left_alone() -> None:
    cluster = Cluster()
    cluster.add_app("gandiva.gang=2")
    cluster.tell(asks(2, 0))
    cluster.commit(APP, ["n1:1", "n1:1"], [GPU, GPU])
    assert cluster.tell(wire.Asks(app=APP, attempt=ATTEMPT, asks=(), app_priority=7)) == []
    [event] = cluster.tell(asks(2, 7))
    assert isinstance(event, JobSubmitted)
    assert (event.job.job_id, event.job.priority) == (JobId(f"{APP}#2"), 7)


def test_a_table_without_a_priority_changes_none() -> None:
    """Messages of an older plug-in."""
    cluster = Cluster()
    cluster.add_app("gandiva.gang=2")
    cluster.tell(asks(2, 3))
    assert cluster.tell(asks(2, None)) == []


def test_a_node_that_is_decommissioned_is_a_server_to_be_emptied() -> None:
    cluster = Cluster()
    sizes = {"memory_mib": 65536, "vcores": 64, "gpus": 8, "rack": "/r"}
    for state, is_draining in (("DECOMMISSIONING", True), ("RUNNING", False)):
        update = wire.NodeUpdated(node="n1:1", state=state, **sizes)  # type: ignore[arg-type]
        (event,) = cluster.tell(update)
        assert isinstance(event, ServerJoined)
        assert event.server.is_draining is is_draining
