"""Containers of moves that an earlier core, or an earlier session, left in the middle (G-13, G-69)."""

from __future__ import annotations

import msgspec
import pytest

from gandiva_core.model.units import JobId
from tests.yarn_plugin.bridge.applications import APP, GPU, Cluster, ask
from tests.yarn_plugin.bridge.test_adoption import adopted, live, snapshot
from yarn_plugin.bridge import wire


def coming(name: str, node: str = "n3:1") -> wire.LiveContainer:
    """One that a move asked for."""
    return msgspec.structs.replace(live(name, node), allocation_request_id=1_000_007)


def test_a_gang_found_in_the_middle_of_a_move_is_the_old_one() -> None:
    """G-13: the new containers never computed; the core that ordered them is gone, and their master lets them go."""
    cluster = Cluster()
    found = (live("c3"), live("c2"), coming("c4"), coming("c5"))
    events = cluster.tell(snapshot(*found, tags=("gandiva.gang=2",)))
    assert adopted(events) == [(APP, ("c2", "c3"))]
    orders = cluster.desk.due(0.0).orders
    assert {order.container for order in orders if isinstance(order, wire.LetGoOrder)} == {
        "c4",
        "c5",
    }
    assert cluster.desk.due(0.0).orders == ()


def test_a_gang_that_moved_before_is_whole_where_it_is() -> None:
    cluster = Cluster()
    events = cluster.tell(snapshot(coming("c4"), coming("c5"), tags=("gandiva.gang=2",)))
    assert adopted(events) == [(APP, ("c4", "c5"))]
    assert cluster.desk.due(0.0).orders == ()


@pytest.mark.parametrize(
    "found",
    [(live("c2"), live("c3"), coming("c4")), (live("c2"), live("c3"), live("c4"), coming("c5"))],
)
def test_what_is_not_certainly_a_moves_is_never_let_go(
    found: tuple[wire.LiveContainer, ...],
) -> None:
    cluster = Cluster()
    cluster.tell(snapshot(*found, tags=("gandiva.gang=2",)))
    assert cluster.desk.due(0.0).orders == ()


def test_second_containers_of_a_move_that_goes_on_are_no_job_in_a_new_session() -> None:
    """The gateway was lost and is back; the core is the same, and its move goes on."""
    cluster = Cluster()
    cluster.add_app("gandiva.gang=1")
    cluster.asks(ask(1))
    cluster.commit(APP, ["n1:1"], [GPU])
    cluster.register.seconds["c9"] = JobId(APP)
    events = cluster.tell(snapshot(live("c1"), coming("c9"), tags=("gandiva.gang=1",)))
    assert adopted(events) == []
