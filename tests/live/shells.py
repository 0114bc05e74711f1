"""Hadoop's stock DistributedShell, unmodified, submitted the `yarn jar` way to a cluster of this machine."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from gandiva_core.cli.main import run
from gandiva_core.site.http import HttpSession
from tests.conftest import in_ci, missing_for_yarn
from yarn_plugin.bridge.jvm import TARGET_DIR
from yarn_plugin.cluster.daemons import LISTING, distributed_shell
from yarn_plugin.cluster.processes import CLUSTER_ID
from yarn_plugin.cluster.state import Cluster, StateFolder
from yarn_plugin.cluster.status import RmReport, ask

CLIENT = "org.apache.hadoop.yarn.applications.distributedshell.Client"
PATIENCE_S = 90.0
"""How long a busy machine may take for one step; nothing is measured by it."""


def require_hadoop() -> None:
    """Skip, or under CI fail, where there is no JDK or no jars."""
    missing = missing_for_yarn()
    if missing is None and not (TARGET_DIR / LISTING).is_file():
        missing = "no Hadoop jars for daemons: run `make cluster-jars`"
    if missing is not None:
        (pytest.fail if in_ci() else pytest.skip)(missing)


class Live:
    """A cluster that is up.

    Attributes:
        hold: containers of `shell` run until this file is there.
    """

    def __init__(self, folder: StateFolder) -> None:
        self.folder = folder
        self.hold = folder.path / "go"
        self.session = HttpSession()

    @property
    def cluster(self) -> Cluster:
        cluster = self.folder.load()
        assert cluster is not None
        return cluster

    def report(self) -> RmReport:
        return ask(self.cluster, self.session)

    def gpus_used(self) -> int:
        return sum(node.gpus_used for node in self.report().nodes)

    def processes(self) -> list[psutil.Process]:
        return of_cluster(self.cluster.cluster_id)

    def containers(self) -> set[int]:
        """Numbers of the shells that containers run."""
        script = str(self.folder.path / "wait.sh")
        return {each.pid for each in self.processes() if each.cmdline()[-1:] == [script]}

    @contextmanager
    def shell(self, containers: int, *more: str) -> Iterator[subprocess.Popen[bytes]]:
        """Submit, and end the client whatever happens."""
        self.hold.unlink(missing_ok=True)
        script = self.folder.path / "wait.sh"
        script.write_text(f"#!/bin/sh\nwhile [ ! -e {self.hold} ]; do sleep 0.2; done\n")
        jar = str(distributed_shell())
        place = [str(self.folder.yarn), "jar", jar, CLIENT, "-jar", jar]
        size = ["-num_containers", str(containers), "-master_memory", "256"]
        gpu = ["-container_resources", "memory-mb=256,vcores=1,yarn.io/gpu=1"]
        what = ["-shell_command", f"sh {script}", "-timeout", "240000"]
        with self.folder.log("client").open("ab") as log:
            command = [*place, *size, *gpu, *what, *more]
            client = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        try:
            yield client
        finally:
            client.kill()
            client.wait()

    def journal(self) -> str:
        return "".join(path.read_text() for path in sorted(self.folder.journal.glob("*.jsonl")))


@contextmanager
def brought_up(path: Path, *options: str) -> Iterator[Live]:
    """A cluster for some tests; taken down at the end."""
    require_hadoop()
    place = ["--state-dir", str(path)]
    assert run(["cluster", "up", *place, *options]) == 0
    live = Live(StateFolder(path))
    cluster_id = live.cluster.cluster_id
    try:
        yield live
    finally:
        live.session.close()
        assert run(["cluster", "down", *place]) == 0
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


def wait_until(is_so: Callable[[], bool], what: str) -> None:
    """Ask again and again, for as long as a busy machine may need."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline_s, f"never: {what}"
        time.sleep(0.3)
