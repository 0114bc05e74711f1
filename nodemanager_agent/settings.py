"""What an agent is told: flags over the NodeManager's own configuration (docs/AGENT.md has the table)."""

from __future__ import annotations

import argparse
import os
import socket
from collections.abc import Sequence
from pathlib import Path

import msgspec

from gandiva_core.config.keys import PREFIX
from gandiva_core.model.errors import InputError
from gandiva_core.site.configuration import NODE_FILES, SiteConfiguration
from nodemanager_agent.devices.virtual import MEMORY_MIB
from nodemanager_agent.transport import CoreAddress, Tls, read_token

ALLOWED = "yarn.nodemanager.resource-plugins.gpu.allowed-gpu-devices"
"""Hadoop's own list of devices: ``index:minor,…``, or ``auto`` for all."""
NODE = "yarn.nodemanager.address"
SECURE = "hadoop.security.authentication"


class AgentSettings(msgspec.Struct, frozen=True):
    """All of it.

    Attributes:
        node: the NodeManager's id, host:port.
        is_open: launchers of other users may dial the socket.
        allowed: numbers of the devices that may be given away; None for all.
        virtual_gpus: so many virtual devices; 0 for real ones.
        conf_dir: where it was read from.
    """

    node: str
    core: CoreAddress
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
    site = _Site(flags.conf_dir)
    host, port = _address(flags.core or _core_of(site))
    token_file = flags.token_file or site.path("agents.token-file")
    tls = _tls(flags, site)
    token = "" if token_file is None else read_token(token_file, "the agents' token")
    core = CoreAddress(host, port, token, tls)
    core.check()
    return AgentSettings(
        node=flags.node or _node_of(site),
        core=core,
        socket=flags.socket or Path(site.own("agent.socket") or "/run/gandiva/agent.sock"),
        state_dir=flags.state_dir or Path(site.own("agent.state-dir") or "/var/lib/gandiva/agent"),
        ram_dir=flags.ram_dir,
        is_open=flags.open_socket or site.text(SECURE).lower() == "kerberos",
        allowed=_allowed(flags.allowed or site.text(ALLOWED)),
        virtual_gpus=_or(flags.virtual_gpus, site.whole("agent.virtual-gpus", 0)),
        virtual_memory_mib=flags.virtual_memory_mib,
        virtual_step_s=_or(flags.virtual_step_ms, site.whole("agent.virtual-step-ms", 0)) / 1000,
        unhooked_after_s=site.whole("agent.unhooked-after-ms", 30_000) / 1000
        if flags.unhooked_after_s is None
        else flags.unhooked_after_s,
    )


class _Site:
    """A NodeManager's configuration folder, or none."""

    def __init__(self, conf_dir: Path | None) -> None:
        self._site = (
            None if conf_dir is None else SiteConfiguration.load(conf_dir, os.environ, NODE_FILES)
        )

    def text(self, key: str) -> str:
        return "" if self._site is None else (self._site.get(key) or "").strip()

    def own(self, name: str) -> str:
        return self.text(PREFIX + name)

    def path(self, name: str) -> Path | None:
        value = self.own(name)
        return Path(value) if value else None

    def whole(self, name: str, default: int) -> int:
        """A whole number of our own key."""
        value = self.own(name)
        if not value:
            return default
        if not value.isdecimal():
            place = "" if self._site is None else self._site.describe(PREFIX + name)
            raise InputError(place, repr(value), "a whole number from 0")
        return int(value)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m nodemanager_agent",
        description="Gandiva's agent of one NodeManager: docs/AGENT.md.",
    )
    add = parser.add_argument
    add("--node", metavar="HOST:PORT", help="the NodeManager's id, as the ResourceManager has it")
    add("--core", metavar="HOST:PORT", help="where the core listens for agents")
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


def _core_of(site: _Site) -> str:
    port = site.whole("agents.port", 0)
    return f"{site.own('agents.address') or '127.0.0.1'}:{port}" if port else ""


def _node_of(site: _Site) -> str:
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


def _tls(flags: argparse.Namespace, site: _Site) -> Tls | None:
    certificate = flags.tls_certificate or site.path("agents.tls.certificate-file")
    key = flags.tls_key or site.path("agents.tls.key-file")
    authority = flags.tls_authority or site.path("agents.tls.authority-file")
    if certificate is None and key is None and authority is None:
        return None
    if certificate is None or key is None or authority is None:
        raise InputError("certificates", "some of them", "certificate, key and authority")
    return Tls(certificate, key, authority)


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
