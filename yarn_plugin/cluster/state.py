"""What a cluster on this machine is, and the one folder that holds all of it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from secrets import randbelow, token_hex

import msgspec

from gandiva_core.model.errors import InputError

MARK = "gandiva-cluster"
"""A file that says whose folder this is: nothing is ever deleted in one without it."""

RM_HOST = "127.0.0.1"
FIRST_NODE = 11
NODES_MAX = 200
PORTS = range(20_000, 32_000)
"""Below those that Linux gives to outgoing connections: one could take a daemon's place while it is down."""

_PORT_TRIES_MAX = 200
RM_SERVICES = ("client", "scheduler", "tracker", "admin", "web", "bridge", "agents")
NODE_SERVICES = ("container", "localizer", "web")


class Plan(msgspec.Struct, frozen=True):
    """A cluster as it was asked for.

    Attributes:
        gpus: of each node; they are numbers, no devices.
        properties: Hadoop keys over what the cluster sets itself.
        agents: an agent beside each node, with a virtual device for each of its GPUs.
    """

    nodes: int
    gpus: int
    scheduler: str
    height_max: int
    properties: Mapping[str, str] = {}
    agents: bool = False


class Node(msgspec.Struct, frozen=True):
    """One NodeManager: an address of the loopback network, and its ports by service."""

    name: str
    host: str
    ports: Mapping[str, int]

    @property
    def node_id(self) -> str:
        """What YARN calls it."""
        return f"{self.host}:{self.ports['container']}"


class Cluster(msgspec.Struct, frozen=True):
    """A plan with addresses.

    Attributes:
        cluster_id: drawn anew for each; in the environment of every process of the cluster, containers too.
        ports: of the ResourceManager, by service.
    """

    plan: Plan
    cluster_id: str
    ports: Mapping[str, int]
    nodes: tuple[Node, ...]

    @property
    def web(self) -> str:
        """Where the ResourceManager's REST interface is."""
        return f"http://{RM_HOST}:{self.ports['web']}"


class StateFolder:
    """The folder, and where everything in it is.

    Attributes:
        path: absolute.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.conf = self.path / "conf"
        self.logs = self.path / "logs"
        self.run = self.path / "run"
        self.nodes = self.path / "nodes"
        self.journal = self.logs / "journal"
        self.rm_state = self.path / "rm-state"
        self.lib = self.path / "lib"
        self.home = self.path / "home"
        self.temporary = self.path / "tmp"
        self.token = self.path / "token"
        self.agents_token = self.path / "agents-token"
        self.operations_token = self.path / "operations-token"
        self.yarn = self.path / "yarn"
        self._file = self.path / "cluster.json"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Make it where it is missing, and let nobody else change the cluster meanwhile.

        Raises:
            InputError: something else is there, or another command is at work on it.
        """
        self._claim()
        with (self.path / MARK).open("a", encoding="utf-8") as mark:
            try:
                fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                found = "another gandiva cluster command at work on it"
                raise InputError(str(self.path), found, "one at a time") from None
            yield

    def _claim(self) -> None:
        if self.path.exists() and not self._is_ours():
            expected = "an empty or new folder, or one of an earlier cluster"
            raise InputError(str(self.path), "something else", expected)
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        (self.path / MARK).touch(mode=0o600)

    def _is_ours(self) -> bool:
        return self.path.is_dir() and ((self.path / MARK).exists() or not any(self.path.iterdir()))

    def load(self) -> Cluster | None:
        """The cluster that was brought up here and not taken down; None for none.

        Raises:
            InputError: its file was damaged.
        """
        try:
            return msgspec.json.decode(self._file.read_bytes(), type=Cluster)
        except FileNotFoundError:
            return None
        except (msgspec.DecodeError, NotADirectoryError) as error:
            expected = "the file that `gandiva cluster up` wrote; remove the folder if nothing runs"
            raise InputError(str(self._file), str(error), expected) from error

    def save(self, cluster: Cluster) -> None:
        """Keep a cluster; the file is there whole or not at all."""
        part = self._file.with_suffix(".part")
        part.write_bytes(msgspec.json.format(msgspec.json.encode(cluster)))
        part.replace(self._file)

    def clear(self) -> None:
        """Forget the cluster: all but its logs and journals."""
        own = (self.run, self.nodes, self.conf, self.lib, self.home, self.temporary, self.rm_state)
        for folder in own:
            shutil.rmtree(folder, ignore_errors=True)
        cluster = None
        with contextlib.suppress(InputError):
            cluster = self.load()
        if cluster is not None:
            shutil.rmtree(sockets_of(cluster), ignore_errors=True)
        tokens = (self.token, self.agents_token, self.operations_token)
        for file in (*tokens, self.yarn, self._file):
            file.unlink(missing_ok=True)

    def log(self, name: str) -> Path:
        """Where a process of the cluster writes."""
        return self.logs / f"{name}.log"


def sockets_of(cluster: Cluster) -> Path:
    """Where its agents listen: a path short enough for a socket, wherever the cluster's folder is."""
    return Path(tempfile.gettempdir()) / f"gandiva-{cluster.cluster_id[:12]}"


def default_folder(environment: Mapping[str, str] | None = None) -> Path:
    """Where a cluster is kept when nobody says where: the user's folder for state."""
    values = os.environ if environment is None else environment
    base = values.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(base) / "gandiva" / "cluster"


def addressed(plan: Plan) -> Cluster:
    """A cluster for a plan: every service on a loopback port that is free now."""
    with contextlib.ExitStack() as held:
        ports = {name: _free_port(RM_HOST, held) for name in RM_SERVICES}
        nodes = tuple(_node(number, held) for number in range(plan.nodes))
    return Cluster(plan, token_hex(16), ports, nodes)


def _node(number: int, held: contextlib.ExitStack) -> Node:
    host = f"127.0.0.{FIRST_NODE + number}"
    ports = {name: _free_port(host, held) for name in NODE_SERVICES}
    return Node(f"node-{number + 1}", host, ports)


def _free_port(host: str, held: contextlib.ExitStack) -> int:
    """Held until all are chosen, so that no two are the same.

    Raises:
        InputError: nearly every port is taken.
    """
    for _ in range(_PORT_TRIES_MAX):
        port = PORTS[randbelow(len(PORTS))]
        with contextlib.suppress(OSError):
            held.enter_context(socket.create_server((host, port)))
            return port
    found = f"{_PORT_TRIES_MAX} ports that are taken"
    raise InputError(host, found, f"free ports from {PORTS.start} to {PORTS.stop - 1}")
