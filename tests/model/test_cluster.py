"""G-1 to G-6 on the definitions themselves, E-4's topologies."""

from __future__ import annotations

import pytest

from gandiva_core.model.cluster import Cluster, Server, default_topology, height
from gandiva_core.model.units import ServerId


@pytest.mark.parametrize(
    ("allocated", "expected"), [(0, 0), (1, 1), (4, 1), (5, 2), (6, 2), (8, 2), (9, 3)]
)
def test_height_is_the_ceiling_of_the_load(allocated: int, expected: int) -> None:
    """G-2's acceptance, N = 4."""
    assert height(allocated, 4) == expected


def test_four_gpus_are_two_sockets_of_one_switch() -> None:
    """E-4."""
    assert default_topology(4) == (((0, 1),), ((2, 3),))


def test_eight_gpus_have_all_three_levels() -> None:
    """E-4."""
    assert default_topology(8) == (((0, 1), (2, 3)), ((4, 5), (6, 7)))


@pytest.mark.parametrize("gpus", range(1, 17))
def test_a_default_topology_names_every_gpu_once(gpus: int) -> None:
    named = [gpu for socket in default_topology(gpus) for switch in socket for gpu in switch]
    assert named == list(range(gpus))


def test_a_cluster_counts_its_gpus() -> None:
    servers = tuple(Server(ServerId(f"s{i}"), gpus, 1, 1) for i, gpus in enumerate((4, 8)))
    assert Cluster("two", servers).gpus == 12


def test_a_configured_topology_wins() -> None:
    server = Server(ServerId("s"), 4, 1, 1, topology=(((0, 1, 2, 3),),))
    assert server.sockets == (((0, 1, 2, 3),),)
