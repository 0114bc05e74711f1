"""GPU containers of an earlier core: nothing is placed beside them."""

from __future__ import annotations

from gandiva_core.messages.events import Event, ServerJoined, ServerLost
from gandiva_core.model.cluster import Server
from gandiva_core.model.units import JobId, ServerId
from yarn_plugin.bridge import wire
from yarn_plugin.bridge.register import Register
from yarn_plugin.live.foreign import ForeignContainers

A, B = "a:1", "b:1"


def joined(node: str) -> ServerJoined:
    return ServerJoined(1.0, Server(ServerId(node), 4, 8192, 16))


def resync(*containers: tuple[str, str], part: int = 1, parts: int = 1) -> wire.Resync:
    live = tuple(wire.LiveContainer(name, node) for name, node in containers)
    app = wire.ResyncApp(app="app", attempt="attempt", queue="root.default", containers=live)
    return wire.Resync(part=part, parts=parts, apps=(app,), seq=9)


def completed(container: str, node: str) -> wire.ContainerCompleted:
    return wire.ContainerCompleted(app="app", container=container, node=node)


def pass_on(foreign: ForeignContainers, *events: Event) -> list[Event]:
    return list(foreign.pass_on(events, 2.0))


def test_a_node_with_unknown_containers_is_held_back_until_the_last_has_ended() -> None:
    foreign = ForeignContainers(Register())
    assert foreign.note([resync(("c1", A), ("c2", A))]) == []
    assert pass_on(foreign, joined(A), joined(B)) == [joined(B)]
    assert foreign.nodes == (A,)
    foreign.note([completed("c1", A)])
    assert pass_on(foreign) == []
    foreign.note([completed("c2", A)])
    assert pass_on(foreign) == [ServerJoined(2.0, joined(A).server)]
    assert pass_on(foreign) == []
    assert not foreign.nodes


def test_a_node_that_changes_meanwhile_joins_as_it_is_then() -> None:
    foreign = ForeignContainers(Register())
    foreign.note([resync(("c1", A))])
    bigger = ServerJoined(1.5, Server(ServerId(A), 8, 8192, 16))
    assert pass_on(foreign, joined(A), bigger) == []
    foreign.note([completed("c1", A)])
    assert pass_on(foreign) == [ServerJoined(2.0, bigger.server)]


def test_a_node_that_leaves_meanwhile_was_never_there() -> None:
    foreign = ForeignContainers(Register())
    foreign.note([resync(("c1", A))])
    pass_on(foreign, joined(A))
    assert pass_on(foreign, ServerLost(1.5, ServerId(A))) == []
    foreign.note([completed("c1", A)])
    assert pass_on(foreign) == []


def test_a_node_that_went_and_came_back_has_no_old_containers() -> None:
    foreign = ForeignContainers(Register())
    foreign.note([resync(("c1", A))])
    pass_on(foreign, joined(A))
    foreign.note([wire.NodeRemoved(node=A)])
    assert pass_on(foreign, joined(A)) == [joined(A)]


def test_containers_of_all_parts_of_a_snapshot_count_and_a_new_snapshot_replaces_it() -> None:
    foreign = ForeignContainers(Register())
    foreign.note([resync(("c1", A), part=1, parts=2), resync(("c2", B), part=2, parts=2)])
    assert list(foreign.nodes) == [A, B]
    foreign.note([resync(("c2", B))])
    pass_on(foreign)
    assert list(foreign.nodes) == [B]


def test_our_own_containers_hold_nothing_back() -> None:
    register = Register()
    register.job_of["c1"] = JobId("J")
    foreign = ForeignContainers(register)
    assert foreign.note([resync(("c1", A))]) == []
    assert pass_on(foreign, joined(A)) == [joined(A)]


def test_on_a_node_in_use_they_are_given_back() -> None:
    """The answer to a commit was lost with the connection: the ask returns and is served again."""
    register = Register()
    register.put_server(A, joined(A).server)
    foreign = ForeignContainers(register)
    orders = foreign.note([resync(("c1", A), ("c2", A))])
    assert orders == [wire.ReleaseOrder("foreign/9/app", "attempt", ("c1", "c2"))]
    assert foreign.nodes == ()
