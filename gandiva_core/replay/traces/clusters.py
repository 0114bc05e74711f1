"""Cluster files: groups of alike servers in TOML, the built-in ones shipped with the package."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec

from gandiva_core.model.cluster import Cluster, QueueLimit, Server, Topology
from gandiva_core.model.errors import InputError
from gandiva_core.model.units import AcceleratorType, QueueName, ServerId

GPUS_MAX = 128
SERVERS_MAX = 100_000
BOUNDS = {
    "count": (1, SERVERS_MAX),
    "gpus": (0, GPUS_MAX),
    "memory_mib": (1, 1 << 40),
    "vcores": (1, 1 << 20),
}


class ServerGroup(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[[servers]]`` of a cluster file: `count` servers alike."""

    count: int
    gpus: int
    memory_mib: int
    vcores: int
    accelerator_type: str = ""
    rack: str = "/default-rack"
    partition: str = ""
    topology: Topology = ()


class QueueEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[[queues]]`` of a cluster file, in physical GPUs."""

    name: str
    guaranteed_gpus: float
    max_gpus: float
    parent: str = ""


class ClusterFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A whole cluster file."""

    name: str
    servers: list[ServerGroup]
    queues: list[QueueEntry] = []


def builtin_clusters() -> tuple[str, ...]:
    """Names of the clusters shipped with the package, sorted."""
    folder = files("gandiva_core.replay.traces").joinpath("data/clusters")
    return tuple(sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir()))


def load_cluster(name_or_path: str | Path) -> Cluster:
    """A cluster by built-in name, else by path.

    Raises:
        InputError: unknown name, unreadable file, or a value that no cluster can have; names the place in the file.
    """
    text = str(name_or_path)
    if text in builtin_clusters():
        entry = files("gandiva_core.replay.traces").joinpath(f"data/clusters/{text}.toml")
        return parse_cluster(entry.read_bytes(), f"{text}.toml")
    path = Path(text)
    if not path.is_file():
        found = "a directory" if path.is_dir() else "no such file"
        names = ", ".join(builtin_clusters())
        raise InputError(text, found, f"a cluster file (TOML) or one of {names}")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(text, error.strerror or "an unreadable file", "a readable file") from error
    return parse_cluster(content, text)


def parse_cluster(content: bytes, place: str) -> Cluster:
    """A cluster from the bytes of its file.

    Raises:
        InputError: naming `place` and the key.
    """
    parsed = parse_toml(content, place)
    try:
        described = msgspec.convert(parsed, ClusterFile)
    except msgspec.ValidationError as error:
        raise InputError(place, str(error), "the keys of conf/clusters/example.toml") from error
    check_groups(described, place)
    total = sum(group.count for group in described.servers)
    width = max(2, len(str(total)))
    servers: list[Server] = []
    for group in described.servers:
        for _ in range(group.count):
            servers.append(server_of(group, f"server-{len(servers) + 1:0{width}d}"))
    queues = tuple(
        QueueLimit(QueueName(entry.name), entry.guaranteed_gpus, entry.max_gpus, entry.parent)
        for entry in described.queues
    )
    return Cluster(name=described.name, servers=tuple(servers), queues=queues)


def parse_toml(content: bytes, place: str) -> Mapping[str, Any]:
    """TOML, or one error that says where it is broken."""
    try:
        return tomllib.loads(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise InputError(place, f"byte {error.start} is not UTF-8", "TOML in UTF-8") from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(place, f"{error}", "TOML") from error


def server_of(group: ServerGroup, server_id: str) -> Server:
    """One server of a group."""
    return Server(
        server_id=ServerId(server_id),
        gpus=group.gpus,
        memory_mib=group.memory_mib,
        vcores=group.vcores,
        accelerator_type=AcceleratorType(group.accelerator_type),
        rack=group.rack,
        partition=group.partition,
        topology=group.topology,
    )


def check_groups(described: ClusterFile, place: str) -> None:
    """Refuse what no cluster can be.

    Raises:
        InputError: naming the group by number, from 1.
    """
    if not described.name.strip() or not described.name.isprintable():
        raise InputError(f"{place}: name", repr(described.name), "a printable name")
    if not described.servers:
        raise InputError(f"{place}: servers", "none", "at least one [[servers]] group")
    for index, group in enumerate(described.servers, 1):
        where = f"{place}: servers[{index}]"
        check_bounds(group, where)
        named = sorted(gpu for socket in group.topology for switch in socket for gpu in switch)
        if group.topology and named != list(range(group.gpus)):
            raise InputError(
                f"{where}.topology", f"GPUs {named}", f"each of 0…{group.gpus - 1} once"
            )
    check_totals(described, place)


def check_bounds(group: ServerGroup, where: str) -> None:
    """Refuse numbers that no server has."""
    for key, (low, high) in BOUNDS.items():
        value = getattr(group, key)
        if not low <= value <= high:
            raise InputError(f"{where}.{key}", str(value), f"{low} to {high}")


def check_totals(described: ClusterFile, place: str) -> None:
    """Refuse a cluster without a GPU or beyond all bounds, and queues that contradict themselves."""
    if sum(group.count for group in described.servers) > SERVERS_MAX:
        raise InputError(f"{place}: servers", "too many servers", f"at most {SERVERS_MAX}")
    if not any(group.gpus for group in described.servers):
        raise InputError(f"{place}: servers", "no GPU", "at least one GPU")
    for entry in described.queues:
        if not 0 <= entry.guaranteed_gpus <= entry.max_gpus:
            found = f"guaranteed {entry.guaranteed_gpus}, maximum {entry.max_gpus}"
            raise InputError(f"{place}: queue {entry.name}", found, "0 <= guaranteed <= maximum")
