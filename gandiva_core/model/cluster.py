"""Servers, queues, and the definitions of height and load (G-1 to G-5)."""

from __future__ import annotations

import msgspec

from gandiva_core.model.units import AcceleratorType, QueueName, ServerId

Topology = tuple[tuple[tuple[int, ...], ...], ...]
"""Sockets, each a tuple of PCIe switches, each a tuple of GPU indices (E-4)."""


def default_topology(gpus: int) -> Topology:
    """The layout assumed for a server of `gpus` GPUs where none is configured (E-4).

    Up to four GPUs: two sockets with one switch each; above: two sockets with two switches each.
    """
    indices = tuple(range(gpus))
    if gpus <= 2:
        return ((indices,),)
    half = (gpus + 1) // 2
    sockets = (indices[:half], indices[half:])
    if gpus <= 4:
        return tuple((socket,) for socket in sockets)
    return tuple(
        (socket[: (len(socket) + 1) // 2], socket[(len(socket) + 1) // 2 :]) for socket in sockets
    )


class Server(msgspec.Struct, frozen=True, omit_defaults=True):
    """A machine with GPUs of one type (C-1); YARN's node.

    Attributes:
        gpus: physical devices, N_s in SPEC.
        memory_mib: memory YARN may hand out; never inflated by the height (DESIGN §4).
        vcores: likewise.
        can_suspend: whether something on it can suspend a job; without it the server is never over-subscribed.
        topology: sockets, switches, GPUs; empty means `default_topology`.
        is_draining: whoever is there stays until moved or ended; nobody new comes.
    """

    server_id: ServerId
    gpus: int
    memory_mib: int
    vcores: int
    accelerator_type: AcceleratorType = AcceleratorType("")
    rack: str = "/default-rack"
    partition: str = ""
    can_suspend: bool = True
    topology: Topology = ()
    is_draining: bool = False

    @property
    def sockets(self) -> Topology:
        """The topology in force."""
        return self.topology or default_topology(self.gpus)


SLICING = "slicing"
"""The mechanism that stops and starts residents; in `QueueLimit.mechanisms_off` it spares a queue's jobs from it."""

MIGRATION = "migration"
"""The mechanism that moves them."""

MECHANISMS = (SLICING, "packing", MIGRATION, "growshrink")
"""What a queue can switch: ``yarn.scheduler.capacity.<queue>.gandiva.<mechanism>``."""


class QueueLimit(msgspec.Struct, frozen=True, omit_defaults=True):
    """A leaf or parent queue's limits in one partition, in physical GPUs (DESIGN §4).

    Attributes:
        guaranteed_gpus: G_q, may be fractional (a percentage of the cluster).
        max_gpus: M_q; running devices of the queue never exceed it, residents never exceed M_q × height.
        parent: the parent's path, empty for root.
        partition: the node label that the limits are about; jobs count in the limits of their own partition.
        ordering: Hadoop's ordering policy of a leaf, ``fifo`` or ``fair``: who is admitted first.
        mechanisms_off: mechanisms that its jobs are spared: ``slicing``, ``packing``, ``migration``, ``growshrink``.
    """

    name: QueueName
    guaranteed_gpus: float
    max_gpus: float
    parent: str = ""
    partition: str = ""
    ordering: str = "fifo"
    mechanisms_off: tuple[str, ...] = ()


class Cluster(msgspec.Struct, frozen=True):
    """A named set of servers and the queues over them; no queue means one, `root.default`, without a limit."""

    name: str
    servers: tuple[Server, ...]
    queues: tuple[QueueLimit, ...] = ()

    @property
    def gpus(self) -> int:
        """Physical GPUs of all servers."""
        return sum(server.gpus for server in self.servers)


def height(allocated: int, gpus: int) -> int:
    """⌈M/N⌉ (G-2); 0 for an idle server.

    Args:
        allocated: M, GPUs asked for by all residents, running or suspended (G-1).
        gpus: N, physical GPUs; a server that lost all its devices counts each resident GPU as a level.
    """
    return -(-allocated // max(1, gpus))
