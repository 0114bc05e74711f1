"""Hadoop's stock DistributedShell, unmodified, submitted the `yarn jar` way to a cluster of this machine."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from gandiva_core.cli.main import run
from gandiva_core.site.http import HttpSession
from tests.conftest import in_ci, missing_for_yarn
from yarn_plugin.bridge.jvm import TARGET_DIR
from yarn_plugin.bridge.status import Bean
from yarn_plugin.bridge.status import ask as ask_gandiva
from yarn_plugin.cluster.daemons import LISTING, distributed_shell
from yarn_plugin.cluster.processes import CLUSTER_ID, ProcessTable
from yarn_plugin.cluster.state import Cluster, StateFolder
from yarn_plugin.cluster.status import RmReport, ask

CLIENT = "org.apache.hadoop.yarn.applications.distributedshell.Client"
PATIENCE_S = 90.0
"""How long a busy machine may take for one step; nothing is measured by it."""

LIFE_MS = 900_000
"""After it an application ends itself."""


def require_hadoop() -> None:
    """Skip, or under CI fail, where there is no JDK or no jars."""
    missing = missing_for_yarn()
    if missing is None and not (TARGET_DIR / LISTING).is_file():
        missing = "no Hadoop jars for daemons: run `make cluster-jars`"
    if missing is not None:
        (pytest.fail if in_ci() else pytest.skip)(missing)


class Shell:
    """A DistributedShell that was submitted; by default its containers run until it is released.

    Attributes:
        name: of the application, its own in the cluster.
        client: the process that submitted it and waits for its end.
    """

    def __init__(
        self, live: Live, name: str, client: subprocess.Popen[bytes], script: Path
    ) -> None:
        self._live = live
        self._script = script
        self.name = name
        self.client = client

    def release(self) -> None:
        """Let its containers end."""
        hold_of(self._script).touch()

    def pids(self) -> set[int]:
        """Numbers of the shells that its containers run."""
        script = str(self._script)
        found = [each for each in self._live.processes() if words(each)[-1:] == [script]]
        pids = {each.pid for each in found}
        # One that was just forked, to become a `sleep`, still has its parent's command line.
        return {each.pid for each in found if parent_of(each) not in pids}

    def app(self) -> dict[str, Any] | None:
        """What the ResourceManager says of it."""
        return next((app for app in self._live.apps() if app["name"] == self.name), None)

    def app_id(self) -> str:
        """Once it was accepted."""
        wait_until(lambda: self.app() is not None, f"{self.name} is accepted")
        found = self.app()
        assert found is not None
        return str(found["id"])

    def finish(self) -> None:
        """Release it and see it end well."""
        self.release()
        assert self.client.wait(timeout=120) == 0


class Live:
    """A cluster that is up.

    Attributes:
        options: of the `up` that brought it up.
    """

    def __init__(self, folder: StateFolder, options: Sequence[str] = ()) -> None:
        self.folder = folder
        self.options = tuple(options)
        self.session = HttpSession()

    @property
    def cluster(self) -> Cluster:
        cluster = self.folder.load()
        assert cluster is not None
        return cluster

    def up(self) -> None:
        """Start what is missing, as a user does: what runs is no child of these tests."""
        place = ["--state-dir", str(self.folder.path)]
        command = [sys.executable, "-m", "gandiva_core", "cluster", "up", *place, *self.options]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr

    def daemon(self, name: str) -> psutil.Process:
        """The process of a daemon."""
        pid = ProcessTable(self.folder.run, self.cluster.cluster_id).alive(name)
        assert pid is not None, name
        return psutil.Process(pid)

    def yarn(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Hadoop's own command."""
        command = [str(self.folder.yarn), *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    # ------------------------------------------------------------------ what it says

    def get(self, page: str) -> Any:
        return self.session.get_json(f"{self.cluster.web}{page}")

    def report(self) -> RmReport:
        return ask(self.cluster, self.session)

    def bean(self) -> Bean:
        """What the plug-in shows."""
        found = ask_gandiva(self.cluster.web, self.session).bean
        assert found is not None
        return found

    def apps(self) -> list[dict[str, Any]]:
        return list((self.get("/ws/v1/cluster/apps")["apps"] or {}).get("app", []))

    def gpus_used(self) -> int:
        return sum(node.gpus_used for node in self.report().nodes)

    def processes(self) -> list[psutil.Process]:
        return of_cluster(self.cluster.cluster_id)

    def journal(self) -> str:
        return "".join(path.read_text() for path in sorted(self.folder.journal.glob("*.jsonl")))

    def record(self, name: str, **figures: object) -> None:
        """Keep what was measured; nothing is decided by it."""
        text = json.dumps({"name": name, **figures}, indent=1, default=str)
        (self.folder.logs / f"figures-{name}.json").write_text(text + "\n")
        sys.stdout.write(text + "\n")

    # ------------------------------------------------------------------ applications

    @contextmanager
    def shell(
        self,
        containers: int,
        *more: str,
        name: str = "wait",
        resources: str = "memory-mb=256,vcores=1,yarn.io/gpu=1",
        command: str | None = None,
    ) -> Iterator[Shell]:
        """Submit, and end the client whatever happens."""
        script = self.folder.path / f"{name}.sh"
        hold_of(script).unlink(missing_ok=True)
        script.write_text(f"#!/bin/sh\nwhile [ ! -e {hold_of(script)} ]; do sleep 0.2; done\n")
        jar = str(distributed_shell())
        place = [str(self.folder.yarn), "jar", jar, CLIENT, "-jar", jar, "-appname", name]
        size = ["-num_containers", str(containers), "-master_memory", "256"]
        what = ["-container_resources", resources, "-shell_command", command or f"sh {script}"]
        with self.folder.log("client").open("ab") as log:
            line = [*place, *size, *what, "-timeout", str(LIFE_MS), *more]
            client = subprocess.Popen(line, stdout=log, stderr=subprocess.STDOUT)
        try:
            yield Shell(self, name, client, script)
        finally:
            client.kill()
            client.wait()


@contextmanager
def brought_up(path: Path, *options: str) -> Iterator[Live]:
    """A cluster for some tests; taken down at the end."""
    require_hadoop()
    live = Live(StateFolder(path), options)
    live.up()
    cluster_id = live.cluster.cluster_id
    try:
        yield live
    finally:
        live.session.close()
        assert run(["cluster", "down", "--state-dir", str(path)]) == 0
    assert of_cluster(cluster_id) == []


def of_cluster(cluster_id: str) -> list[psutil.Process]:
    """Every process with the cluster's id in its environment: daemons, the core, containers."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(CLUSTER_ID) == cluster_id:
                found.append(process)
        except (psutil.Error, OSError):
            continue
    return found


def words(process: psutil.Process) -> list[str]:
    """Its command line; nothing where it has ended."""
    with suppress(psutil.Error):
        return list(process.cmdline())
    return []


def listening(process: psutil.Process) -> set[str]:
    """The internet addresses that it listens on; none where it has ended."""
    with suppress(psutil.Error):
        found = process.net_connections("inet")
        return {each.laddr.ip for each in found if each.status == psutil.CONN_LISTEN}
    return set()


def parent_of(process: psutil.Process) -> int | None:
    """Number of its parent; None where it has ended."""
    with suppress(psutil.Error):
        return int(process.ppid())
    return None


def hold_of(script: Path) -> Path:
    """Containers that run this script end once this file is there."""
    return script.with_suffix(".go")


def wait_until(is_so: Callable[[], bool], what: str, pause_s: float = 0.3) -> None:
    """Ask again and again, for as long as a busy machine may need."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline_s, f"never: {what}"
        time.sleep(pause_s)
