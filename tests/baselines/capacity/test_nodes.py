"""Nodes: what fits, and the order in which Java shows them."""

from __future__ import annotations

import pytest

from baselines.capacity.nodes import Node, first_in_hash_order, node_hash
from gandiva_core.model.job import Worker
from tests.sim.worlds import servers


def test_room_is_taken_and_given_back() -> None:
    node = Node(servers(1)[0])
    assert node.could_hold(Worker(4, 458_752, 64))
    assert not node.could_hold(Worker(5, 1, 1))
    node.take(Worker(3, 458_751, 1))
    assert node.has_room(Worker(1, 1, 63))
    assert not node.has_room(Worker(1, 2, 1))
    node.take(Worker(0, 1, 1))
    assert node.is_full()
    node.take(Worker(3, 458_751, 1), -1)
    assert not node.is_full()


@pytest.mark.parametrize(
    ("host", "port", "spread"),
    [("server-01", 45454, 745_862_874), ("a", 1, 3_674_705_264), ("", 0, 3_626_863_448)],
)
def test_the_hash_is_javas(host: str, port: int, spread: int) -> None:
    """Values from `NodeId.newInstance(host, port).hashCode()`, spread as `java.util.HashMap` does."""
    assert node_hash(host, port) == spread


def test_the_first_of_a_hash_map_depends_on_the_buckets_not_on_the_names() -> None:
    nodes = [Node(server) for server in servers(20)]
    few, many = nodes[:5], nodes
    assert first_in_hash_order(few).hash & 15 == min(node.hash & 15 for node in few)
    assert first_in_hash_order(many).hash & 31 == min(node.hash & 31 for node in many)
    assert first_in_hash_order([nodes[3]]) is nodes[3]
