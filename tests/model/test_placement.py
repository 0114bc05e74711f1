"""G-6: the level of a placement is the worst over all pairs."""

from __future__ import annotations

import pytest

from gandiva_core.model.cluster import Server, default_topology
from gandiva_core.model.placement import Binding, LocalityLevel, level_of, level_within
from gandiva_core.model.units import ServerId


@pytest.mark.parametrize(
    ("gpus", "expected"),
    [
        ((3,), LocalityLevel.SAME_SWITCH),
        ((0, 1), LocalityLevel.SAME_SWITCH),
        ((0, 2), LocalityLevel.SAME_SOCKET),
        ((0, 1, 2, 3), LocalityLevel.SAME_SOCKET),
        ((3, 4), LocalityLevel.DIFF_SOCKET),
        (tuple(range(8)), LocalityLevel.DIFF_SOCKET),
    ],
)
def test_levels_inside_an_eight_gpu_server(gpus: tuple[int, ...], expected: LocalityLevel) -> None:
    assert level_within(default_topology(8), gpus) is expected


def test_a_four_gpu_server_has_no_same_socket_level() -> None:
    """E-4: one switch a socket."""
    levels = {level_within(default_topology(4), (a, b)) for a in range(4) for b in range(a)}
    assert levels == {LocalityLevel.SAME_SWITCH, LocalityLevel.DIFF_SOCKET}


def _servers(*racks: str) -> dict[ServerId, Server]:
    ids = [ServerId(f"s{i}") for i in range(len(racks))]
    return {sid: Server(sid, 4, 1, 1, rack=rack) for sid, rack in zip(ids, racks, strict=True)}


@pytest.mark.parametrize(
    ("racks", "expected"),
    [(("/a", "/a"), LocalityLevel.SAME_RACK), (("/a", "/b"), LocalityLevel.DIFF_RACK)],
)
def test_levels_between_servers(racks: tuple[str, str], expected: LocalityLevel) -> None:
    servers = _servers(*racks)
    bindings = [Binding(server_id, (0,)) for server_id in servers]
    assert level_of(bindings, servers) is expected


def test_two_workers_on_one_server_are_judged_together() -> None:
    servers = _servers("/a")
    bindings = [Binding(ServerId("s0"), (0,)), Binding(ServerId("s0"), (2,))]
    assert level_of(bindings, servers) is LocalityLevel.DIFF_SOCKET
