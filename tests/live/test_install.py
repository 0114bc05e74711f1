"""docs/INSTALL.md, followed on a cluster of this machine: from stock to observe, place, full, and back."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.test_install import LOCAL, blocks
from tests.live.books import of_rm
from tests.live.shells import Live, Shell, brought_up, wait_until
from yarn_plugin.cluster.daemons import RESOURCE_MANAGER

IN_ORDER = True
pytestmark = [
    pytest.mark.live,
    pytest.mark.slow,
    pytest.mark.timeout(900),
]  # two starts of a ResourceManager, and Hadoop's commands, each a JVM

NODES = 2
"""As the page's own `up`."""


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """What the page begins with."""
    options = ("--nodes", str(NODES), "--gpus", "4", "--scheduler", "capacity")
    with brought_up(tmp_path_factory.mktemp("live") / "install", *options) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def running(live: Live) -> Iterator[Shell]:
    """Jobs that run across every step: placed by stock code before the first."""
    with live.shell(3, name="running") as shell:
        wait_until(lambda: len(shell.pids()) == 3, "three containers on stock")
        # Its master may have been given one more than it asked for, and gives it back.
        wait_until(lambda: of_rm(live).total() == 3, "no more than three")
        yield shell


@pytest.fixture(scope="module")
def reader(live: Live, running: Shell) -> Reader:
    """Whoever follows the page."""
    return Reader(live, running)


class Reader:
    """Runs the page's blocks, and looks after the jobs that run meanwhile."""

    def __init__(self, live: Live, running: Shell) -> None:
        self.live = live
        self._running = running
        self._blocks = blocks()
        self._pids = running.pids()
        self._held = of_rm(live)
        self._rms: set[int] = set()

    def run(self, *steps: str) -> str:
        """The blocks of these steps, in a shell that stops where a command fails; returns what they print."""
        text = "\n".join(["set -e", self._blocks[LOCAL], *(self._blocks[step] for step in steps)])
        tools = Path(sys.executable).parent
        environment = {
            **os.environ,
            "CLUSTER": str(self.live.folder.path),
            "PATH": f"{tools}:{os.environ['PATH']}",
        }
        done = subprocess.run(
            ["sh"],
            input=text,
            env=environment,
            cwd=self.live.folder.path,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, (steps, done.stdout, done.stderr)
        return done.stdout

    def sees_all_alive(self) -> None:
        """Nothing was stopped, moved or forgotten."""
        wait_until(lambda: of_rm(self.live) == self._held, "the same containers as at the start")
        assert self._running.pids() == self._pids
        assert len(self._pids) == 3
        assert self._running.client.poll() is None

    def ask(self, containers: int, *more: str, expected: int) -> None:
        """Another application, served beside the first."""
        with self.live.shell(containers, *more, name=f"asks-{expected}") as shell:
            wait_until(lambda: self.live.gpus_used() == expected, f"{expected} GPUs in use")
            shell.finish()
        wait_until(lambda: self.live.gpus_used() == 3, "only the first is left")

    def rm(self) -> int:
        """Number of the ResourceManager's process."""
        return self.live.daemon(RESOURCE_MANAGER).pid


def test_before(reader: Reader) -> None:
    """Stock: validate finds no error, and says that Gandiva is not in force."""
    said = reader.run("before")
    assert "yarn.resourcemanager.scheduler.class" in said
    assert said.count("RUNNING") == NODES
    reader.sees_all_alive()


def test_observe(reader: Reader) -> None:
    """The first restart; stock code goes on to schedule, and the core writes down what it would do."""
    before = reader.rm()
    said = reader.run("observe, write", "observe, check")
    assert "gandiva-site.xml" in said
    said = reader.run("observe, restart", "observe, look")
    assert reader.rm() != before
    assert "observe" in said
    assert "connected" in said
    assert said.count("RUNNING") >= NODES
    reader.sees_all_alive()
    reader.ask(2, "-application_tags", "gandiva.gang=2", expected=5)
    assert reader.live.bean().commits_ok == 0, "stock code gave them"
    assert "GangRefused" in reader.live.journal(), "what the core would have done is written down"


def test_place(reader: Reader) -> None:
    """By refresh: gangs whole, no device shared, and why a gang waits is told."""
    before = reader.rm()
    said = reader.run("place", "place, look")
    assert reader.rm() == before
    assert "place" in said
    reader.sees_all_alive()
    reader.ask(2, "-application_tags", "gandiva.gang=2", expected=5)
    assert reader.live.bean().commits_ok > 0, "the core gave them"
    with reader.live.shell(9, "-application_tags", "gandiva.gang=9", name="nine") as nine:
        app_id = nine.app_id()
        wait_until(
            lambda: "gang of 9 waits" in reader.live.yarn("application", "-status", app_id).stdout,
            "the reason",
        )
        reader.live.yarn("application", "-kill", app_id)
    reader.sees_all_alive()


def test_full(reader: Reader) -> None:
    """By refresh; without agents full places as place does."""
    before = reader.rm()
    said = reader.run("full", "full, look")
    assert reader.rm() == before
    assert "full" in said
    reader.sees_all_alive()
    assert [(each.key, each.value) for each in reader.live.bean().nodes_by_height] == [("1", NODES)]


def test_back(reader: Reader, running: Shell) -> None:
    """To observe by refresh, to stock by the second restart; the files are as they were."""
    before = reader.rm()
    assert "observe" in reader.run("back to observe")
    assert reader.rm() == before
    reader.sees_all_alive()
    said = reader.run("back to stock")
    assert reader.rm() != before
    assert said.count("RUNNING") >= NODES
    reader.sees_all_alive()
    conf = reader.live.folder.conf
    for file in conf.with_name("conf.stock").iterdir():
        assert (conf / file.name).read_text().split() == file.read_text().split(), file.name
    killed = {app["name"] for app in reader.live.apps() if app["finalStatus"] == "KILLED"}
    assert killed == {"nine"}
    running.finish()
