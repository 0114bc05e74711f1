"""A cluster and its jobs in the harness's words: nodes, masters, asks. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from gandiva_core.model.cluster import Cluster, Server
from gandiva_core.model.errors import InputError
from gandiva_core.model.job import JobSpec, Worker
from yarn_plugin.replay.wire import (
    AddNode,
    Ask,
    AskLine,
    AskRefused,
    Finish,
    HarnessEvent,
    Submit,
)

_PORT = 45454
AM_MEMORY_MIB = 1024
AM_VCORES = 1
AM_HOST_MASTERS = 1 << 14
"""How many masters the host of the masters can take at once; more wait for one another."""
MASTERS_A_HEARTBEAT = 100
"""What `maximum-container-assignments` lets one heartbeat give; more would go to the servers behind."""
_HOST_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")


def add_server(server: Server) -> AddNode:
    """A server as a NodeManager that registers; its id is the host name.

    Raises:
        InputError: for an id that cannot be a host name.
    """
    host = str(server.server_id)
    if not host[:1].isalnum() or set(host) - _HOST_CHARACTERS:
        expected = "a letter or digit, then also '-', '_', '.': on YARN it is the node's host name"
        raise InputError("cluster: server id", repr(host), expected)
    return AddNode(
        host=host,
        port=_PORT,
        rack=server.rack,
        memory_mib=server.memory_mib,
        vcores=server.vcores,
        gpus=server.gpus,
        label=server.partition,
    )


def node_name(server: Server) -> str:
    """What YARN calls a server's node."""
    return f"{server.server_id}:{_PORT}"


def master_host(cluster: Cluster) -> AddNode:
    """A host without a GPU for the application masters, as sites have them.

    On the GPU servers a master would take memory that the declared sizes of the workers leave no room for. Its name
    sorts before every server's: nodes send heartbeats in that order, so that masters come here.
    """
    first = min((str(server.server_id) for server in cluster.servers), default="a")
    name = "am-host"
    while name >= first:
        name = f"0{name}" if name[0] != "0" else f"-{name}"
    memory_mib = AM_MEMORY_MIB * AM_HOST_MASTERS
    return AddNode(host=name, port=_PORT, memory_mib=memory_mib, vcores=AM_VCORES * AM_HOST_MASTERS)


def bursts(jobs: Sequence[JobSpec]) -> Iterator[Sequence[JobSpec]]:
    """Jobs of one instant in groups whose masters all find room at one heartbeat of their host."""
    for first in range(0, len(jobs), MASTERS_A_HEARTBEAT):
        yield jobs[first : first + MASTERS_A_HEARTBEAT]


def submit(job: JobSpec, queue: str) -> Submit:
    """A job's submission: the tag declares its gang (DESIGN §6), its AM asks for no GPU."""
    return Submit(
        key=str(job.job_id),
        name=str(job.job_id),
        queue=queue,
        user=job.user or "user",
        tags=(f"gandiva.gang={len(job.workers)}",),
        am_memory_mib=AM_MEMORY_MIB,
        am_vcores=AM_VCORES,
        priority=job.priority_class,
    )


def ask(job: JobSpec) -> Ask:
    """The AM's ask for the whole gang; sent again after a loss, it replaces what was left of the first."""
    lines = tuple(
        AskLine(
            priority=priority,
            count=job.workers.count(worker),
            memory_mib=worker.memory_mib,
            vcores=worker.vcores,
            gpus=worker.gpus,
            label=job.partition,
        )
        for priority, worker in sizes(job)
    )
    return Ask(key=str(job.job_id), asks=lines)


def give_up(events: Iterable[HarnessEvent]) -> list[Finish]:
    """AMs whose ask was refused end their application, as real ones do."""
    return [Finish(key=e.key, status="FAILED") for e in events if isinstance(e, AskRefused)]


def sizes(job: JobSpec) -> Iterator[tuple[int, Worker]]:
    """Each container size of a gang with its priority: YARN allows one size a priority."""
    return enumerate(dict.fromkeys(job.workers), start=1)


def ranks(job: JobSpec) -> dict[int, list[int]]:
    """Ranks served by each priority, ascending."""
    priority_of = {worker: priority for priority, worker in sizes(job)}
    found: dict[int, list[int]] = {}
    for rank, worker in enumerate(job.workers):
        found.setdefault(priority_of[worker], []).append(rank)
    return found
