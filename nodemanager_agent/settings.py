"""What an agent is told: flags over the NodeManager's own configuration (docs/AGENT.md has the table)."""

from __future__ import annotations

import argparse
import os
import socket
from collections.abc import Sequence
from pathlib import Path

import msgspec

from gandiva_core.config.keys import BY_NAME, PREFIX
from gandiva_core.model.errors import InputError
from gandiva_core.site.configuration import NODE_FILES, SiteConfiguration
from gandiva_core.site.credentials import Credentials, Tls
from gandiva_core.site.tokens import read_token
from nodemanager_agent.devices.virtual import MEMORY_MIB
from nodemanager_agent.transport import CoreAddress

ALLOWED = "yarn.nodemanager.resource-plugins.gpu.allowed-gpu-devices"
"""Hadoop's own list of devices: ``index:minor,…``, or ``auto`` for all."""
NODE = "yarn.nodemanager.address"
SECURE = "hadoop.security.authentication"


class AgentSettings(msgspec.Struct, frozen=True):
    """All of it.

    Attributes:
        node: the NodeManager's id, host:port.
        core: None for an agent that has none.
        is_open: launchers of other users may dial the socket.
        allowed: numbers of the devices that may be given away; None for all.
        virtual_gpus: so many virtual devices; 0 for real ones.
        conf_dir: where it was read from.
    """

    node: str
    core: CoreAddress | None
    socket: Path
    state_dir: Path
    ram_dir: Path
    is_open: bool = False
    allowed: tuple[int, ...] | None = None
    virtual_gpus: int = 0
    virtual_memory_mib: int = MEMORY_MIB
    virtual_step_s: float = 0.0
    unhooked_after_s: float = 30.0


def read(arguments: Sequence[str]) -> AgentSettings:
    """Flags over files over defaults.

    Raises:
        InputError: a file or a value that cannot be used.
        SystemExit: wrong usage, code 2; or ``--help``, code 0.
    """
    flags = _parser().parse_args(arguments)
    folder = flags.conf_dir
    site = (
        SiteConfiguration(())
        if folder is None
        else SiteConfiguration.load(folder, os.environ, NODE_FILES)
    )
    unhooked_after_s = flags.unhooked_after_s
    if unhooked_after_s is None:
        unhooked_after_s = _whole(site, "agent.unhooked-after-ms") / 1000
    is_alone = flags.without_core or site.flag(PREFIX + "agent.without-core", False)
    return AgentSettings(
        node=flags.node or _node_of(site),
        core=None if is_alone else _core_of(flags, site),
        socket=flags.socket or Path(_own(site, "agent.socket")),
        state_dir=flags.state_dir or Path(_own(site, "agent.state-dir")),
        ram_dir=flags.ram_dir,
        is_open=flags.open_socket or site.text(SECURE).lower() == "kerberos",
        allowed=_allowed(flags.allowed or site.text(ALLOWED)),
        virtual_gpus=_or(flags.virtual_gpus, _whole(site, "agent.virtual-gpus")),
        virtual_memory_mib=flags.virtual_memory_mib,
        virtual_step_s=_or(flags.virtual_step_ms, _whole(site, "agent.virtual-step-ms")) / 1000,
        unhooked_after_s=unhooked_after_s,
    )


def _own(site: SiteConfiguration, name: str) -> str:
    """The value of a key of ours, or its default."""
    return site.text(PREFIX + name) or BY_NAME[PREFIX + name].default


def _whole(site: SiteConfiguration, name: str) -> int:
    value = _own(site, name)
    if not value.isdecimal():
        raise InputError(site.describe(PREFIX + name), repr(value), "a whole number from 0")
    return int(value)


def _file(site: SiteConfiguration, name: str) -> Path | None:
    value = _own(site, name)
    return Path(value) if value else None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m nodemanager_agent",
        description="Gandiva's agent of one NodeManager: docs/AGENT.md.",
    )
    add = parser.add_argument
    add("--node", metavar="HOST:PORT", help="the NodeManager's id, as the ResourceManager has it")
    add("--core", metavar="HOST:PORT", help="where the core listens for agents")
    add("--without-core", action="store_true", help="devices to whoever comes, as they are free")
    add("--conf-dir", type=Path, help="the NodeManager's configuration folder")
    add("--token-file", type=Path, help="file of mode 0600 with the agents' secret")
    add("--tls-certificate", type=Path, help="PEM certificate of this host")
    add("--tls-key", type=Path, help="PEM key of that certificate")
    add("--tls-authority", type=Path, help="PEM certificates of who signs them")
    add("--socket", type=Path, help="unix socket that launchers dial (GANDIVA_AGENT_SOCKET)")
    add("--open-socket", action="store_true", help="other users' launchers may dial it")
    add("--state-dir", type=Path, help="folder of its own, kept over restarts")
    add("--ram-dir", type=Path, default=Path("/dev/shm/gandiva"), help="for states of moves")
    add("--allowed", metavar="N,N|auto", help="devices that may be given away")
    add("--virtual-gpus", type=int, metavar="N", help="so many virtual devices instead")
    add("--virtual-memory-mib", type=int, default=MEMORY_MIB, help="memory of each")
    add("--virtual-step-ms", type=int, help="a mini-batch there takes at least so long")
    add("--unhooked-after-s", type=float, help="who has not registered by then never will")
    return parser


def _core_of(flags: argparse.Namespace, site: SiteConfiguration) -> CoreAddress:
    port = _whole(site, "agents.port")
    named = f"{_own(site, 'agents.address')}:{port}" if port else ""
    host, number = _address(flags.core or named)
    token_file = flags.token_file or _file(site, "agents.token-file")
    token = "" if token_file is None else read_token(token_file, "the agents' token")
    parts = ("certificate", "key", "authority")
    files = [getattr(flags, f"tls_{p}") or _file(site, f"agents.tls.{p}-file") for p in parts]
    credentials = Credentials(token, Tls.of(files, [f"--tls-{part}" for part in parts]))
    credentials.check_address(host, "--core")
    return CoreAddress(host, number, credentials)


def _node_of(site: SiteConfiguration) -> str:
    address = site.text(NODE)
    host, _, port = address.rpartition(":")
    if not port.isdecimal() or port == "0":
        raise InputError("--node", repr(address), f"HOST:PORT, or {NODE} with a fixed port")
    return f"{socket.getfqdn() if host in ('', '0.0.0.0') else host}:{port}"


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise InputError("--core", repr(text), f"HOST:PORT, or {PREFIX}agents.port in --conf-dir")
    return host, int(port)


def _allowed(text: str) -> tuple[int, ...] | None:
    """``0:0,1:1`` as Hadoop has it (the index counts), or plain numbers."""
    if text.lower() in ("", "auto"):
        return None
    numbers = [item.strip().partition(":")[0] for item in text.split(",")]
    if not all(number.isdecimal() for number in numbers):
        raise InputError("allowed devices", repr(text), "INDEX:MINOR,… or auto")
    return tuple(int(number) for number in numbers)


def _or(flag: int | None, otherwise: int) -> int:
    return otherwise if flag is None else flag
