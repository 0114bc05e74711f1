"""A node as the scheduler sees it, and the order in which Java's hash map shows nodes."""

from __future__ import annotations

from collections.abc import Iterable

from gandiva_core.model.cluster import Server
from gandiva_core.model.job import Worker
from gandiva_core.model.units import ServerId

NODE_PORT = 45_454
"""The replay's NodeManager port; part of a node's hash."""

_INT = 0xFFFFFFFF


class Node:
    """Free room, and whether it is reserved; the reservation itself is its queue's."""

    __slots__ = (
        "gpus",
        "gpus_free",
        "hash",
        "is_reserved",
        "memory_free_mib",
        "memory_mib",
        "partition",
        "server_id",
        "vcores",
        "vcores_free",
    )

    def __init__(self, server: Server) -> None:
        self.server_id: ServerId = server.server_id
        self.partition = server.partition
        self.gpus = self.gpus_free = server.gpus
        self.memory_mib = self.memory_free_mib = server.memory_mib
        self.vcores = self.vcores_free = server.vcores
        self.is_reserved = False
        self.hash = node_hash(str(server.server_id), NODE_PORT)

    def could_hold(self, worker: Worker) -> bool:
        """Whether a container fits the empty node."""
        return (
            worker.gpus <= self.gpus
            and worker.memory_mib <= self.memory_mib
            and worker.vcores <= self.vcores
        )

    def has_room(self, worker: Worker) -> bool:
        """Whether a container fits now."""
        return (
            worker.gpus <= self.gpus_free
            and worker.memory_mib <= self.memory_free_mib
            and worker.vcores <= self.vcores_free
        )

    def is_full(self) -> bool:
        """Whether not even the smallest container fits; one without a GPU is smallest."""
        return self.memory_free_mib < 1 or self.vcores_free < 1

    def take(self, worker: Worker, sign: int = 1) -> None:
        """Book a container, or with -1 give its room back."""
        self.gpus_free -= sign * worker.gpus
        self.memory_free_mib -= sign * worker.memory_mib
        self.vcores_free -= sign * worker.vcores


def node_hash(host: str, port: int) -> int:
    """What a Java hash map spreads of YARN's node id, as 32 unsigned bits."""
    text = 0
    for character in host:
        text = (31 * text + ord(character)) & _INT
    mixed = ((493_217 * 8501 + text) * 493_217 + port) & _INT
    return mixed ^ (mixed >> 16)


def first_in_hash_order(nodes: Iterable[Node]) -> Node:
    """The node that a Java hash map of these, put in in this order, shows first."""
    listed = list(nodes)
    table = 16
    while len(listed) > table * 3 // 4:
        table *= 2
    return min(listed, key=lambda node: node.hash & (table - 1))
