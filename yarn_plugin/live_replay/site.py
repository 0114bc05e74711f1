"""A ResourceManager that is there: where it answers, what schedules in it, and how a user submits to it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from gandiva_core.config.keys import BY_NAME, PREFIX
from gandiva_core.model.errors import InputError
from gandiva_core.site.configuration import SiteConfiguration
from gandiva_core.site.http import HttpError, HttpSession
from yarn_plugin.bridge.status import RmUnreachableError
from yarn_plugin.cluster.configuration import GANDIVA, SCHEDULERS
from yarn_plugin.cluster.status import node_report
from yarn_plugin.submit.client import runner

SCHEDULER_KEY = "yarn.resourcemanager.scheduler.class"
_WEB = "yarn.resourcemanager.webapp"
_NUMBERS = {"quantum_s": ("quantum-ms", 1000.0), "height_max": ("height.max", 1.0)}


class Site(msgspec.Struct, frozen=True):
    """It.

    Attributes:
        web: address of its REST interface.
        program: what runs a jar against it; `environment` is what that needs beside this process's.
        gpus: of all nodes; `server_gpus` of the largest.
        settings: of Gandiva, where that schedules.
    """

    web: str
    program: tuple[str, ...]
    environment: Mapping[str, str]
    scheduler_class: str
    hadoop_version: str
    nodes: int
    gpus: int
    server_gpus: int
    settings: Mapping[str, float] = {}

    @property
    def arm(self) -> str:
        """The arm that is played here, by what the ResourceManager says that it runs.

        Raises:
            InputError: a scheduler of another kind.
        """
        for arm, name in SCHEDULERS.items():
            if name == self.scheduler_class:
                return arm
        raise InputError(
            self.web, f"scheduler {self.scheduler_class}", " or ".join(SCHEDULERS.values())
        )


def of_conf_dir(conf_dir: Path) -> Site:
    """The site of a Hadoop client configuration.

    Raises:
        InputError: the folder cannot be used.
        RmUnreachableError: no ResourceManager answers.
    """
    site = SiteConfiguration.load(conf_dir, os.environ)
    with HttpSession() as session:
        web = _active(session, list(addresses(site)))
        program, environment = runner(conf_dir, None)
        return _asked(session, web, tuple(program), environment)


def of_cluster(web: str, state_dir: Path) -> Site:
    """A cluster of this machine.

    Raises:
        RmUnreachableError: its ResourceManager does not answer.
    """
    program, environment = runner(None, state_dir)
    with HttpSession() as session:
        return _asked(session, web, tuple(program), environment)


def addresses(site: SiteConfiguration) -> Iterator[str]:
    """Where its ResourceManagers' REST interfaces are, of a pair both."""
    is_https = site.text("yarn.http.policy").upper() == "HTTPS_ONLY"
    scheme, key, port = (
        ("https", f"{_WEB}.https.address", 8090) if is_https else ("http", f"{_WEB}.address", 8088)
    )
    for suffix in [f".{each}" for each in site.texts("yarn.resourcemanager.ha.rm-ids")] or [""]:
        host = site.text(f"yarn.resourcemanager.hostname{suffix}") or "0.0.0.0"
        yield f"{scheme}://{site.text(key + suffix) or f'{host}:{port}'}"


def _active(session: HttpSession, webs: list[str]) -> str:
    told = []
    for web in webs:
        try:
            info = session.get_json(f"{web}/ws/v1/cluster/info")["clusterInfo"]
        except (HttpError, KeyError, TypeError) as error:
            told.append(str(error))
            continue
        if info.get("haState", "ACTIVE") == "ACTIVE":
            return web
        told.append(f"{web} is {info['haState']}")
    raise RmUnreachableError(f"no active ResourceManager: {'; '.join(told)}")


def _asked(
    session: HttpSession, web: str, program: tuple[str, ...], environment: Mapping[str, str]
) -> Site:
    try:
        info = session.get_json(f"{web}/ws/v1/cluster/info")["clusterInfo"]
        listed = session.get_json(f"{web}/ws/v1/cluster/nodes")["nodes"]
        nodes = map(node_report, (listed or {}).get("node", ()))
        sizes = [node.gpus for node in nodes if node.state == "RUNNING" and node.gpus]
        scheduler_class = _property(session, web, SCHEDULER_KEY)
        is_ours = scheduler_class == SCHEDULERS[GANDIVA]
        return Site(
            web=web,
            program=program,
            environment=environment,
            scheduler_class=scheduler_class,
            hadoop_version=str(info["hadoopVersion"]),
            nodes=len(sizes),
            gpus=sum(sizes),
            server_gpus=max(sizes, default=0),
            settings=_settings(session, web) if is_ours else {},
        )
    except (HttpError, KeyError, TypeError, ValueError) as error:
        raise RmUnreachableError(f"{web}: no answer of a ResourceManager: {error}") from error


def _settings(session: HttpSession, web: str) -> dict[str, float]:
    return {
        name: float(_property(session, web, PREFIX + key, BY_NAME[PREFIX + key].default)) / unit
        for name, (key, unit) in _NUMBERS.items()
    }


def _property(session: HttpSession, web: str, key: str, default: str | None = None) -> str:
    """A key as the ResourceManager itself has it in force."""
    try:
        found = session.get_json(f"{web}/conf?format=json&name={key}")
        return str(found["property"]["value"])
    except HttpError as error:
        if error.status == 404 and default is not None:
            return default
        raise
