"""Up, again up, repaired, failed, down: with processes that are real and daemons that are not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from gandiva_core.model.errors import InputError
from yarn_plugin.cluster import daemons, lifecycle
from yarn_plugin.cluster.configuration import MANAGED
from yarn_plugin.cluster.processes import CLUSTER_ID, ProcessTable
from yarn_plugin.cluster.state import Cluster, Node, Plan, StateFolder

STAND_IN = Path(__file__).with_name("stand_in.py")
PLAN = Plan(nodes=2, gpus=4, scheduler="capacity", height_max=4)
GANDIVA = Plan(nodes=1, gpus=4, scheduler="gandiva", height_max=4)
NAMES = ("resourcemanager", "node-1", "node-2")


def stand_in(*arguments: str) -> list[str]:
    return [sys.executable, str(STAND_IN), *arguments]


def quiet(_: str) -> None:
    pass


def table(folder: StateFolder) -> ProcessTable:
    cluster = folder.load()
    assert cluster is not None
    return ProcessTable(folder.run, cluster.cluster_id)


def pids(folder: StateFolder) -> list[int | None]:
    return [table(folder).alive(name) for name in NAMES]


@pytest.fixture
def bean(tmp_path: Path) -> Path:
    """What the plug-in shows of the core; without it, nothing."""
    return tmp_path / "registered.bean"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StateFolder]:
    folder = StateFolder(tmp_path / "cluster")
    nodes_file = tmp_path / "registered"

    def resource_manager(state: StateFolder, _: str) -> list[str]:
        cluster = state.load()
        assert cluster is not None
        return stand_in("rm", str(cluster.ports["web"]), str(nodes_file))

    def node_manager(_: StateFolder, node: Node, __: str) -> list[str]:
        return stand_in("node", str(nodes_file), node.node_id)

    plugin = tmp_path / "plugin.jar"
    plugin.write_text("built once")
    monkeypatch.setattr(daemons, "class_path", lambda: f"{plugin}:/jars/b.jar")
    monkeypatch.setattr(daemons, "java", lambda: "java")
    monkeypatch.setattr(daemons, "resource_manager", resource_manager)
    monkeypatch.setattr(daemons, "node_manager", node_manager)
    yield folder
    lifecycle.down(folder, quiet)


def up(folder: StateFolder, plan: Plan = PLAN) -> Cluster:
    return lifecycle.up(folder, plan, quiet, limit_s=30.0)


def test_up_starts_everything_and_up_again_changes_nothing(folder: StateFolder) -> None:
    first = up(folder)
    before = pids(folder)
    assert None not in before
    assert up(folder) == first
    assert pids(folder) == before


def test_a_new_build_does_not_change_the_jar_of_a_cluster_that_is_up(folder: StateFolder) -> None:
    up(folder)
    (folder.path.parent / "plugin.jar").write_text("built again")
    up(folder)
    assert (folder.lib / "plugin.jar").read_text() == "built once"
    assert str(folder.lib / "plugin.jar") in folder.yarn.read_text()
    lifecycle.down(folder, quiet)
    up(folder)
    assert (folder.lib / "plugin.jar").read_text() == "built again"


def test_what_is_private_is_private(folder: StateFolder) -> None:
    up(folder)
    assert folder.path.stat().st_mode & 0o777 == 0o700
    assert not folder.token.exists(), "a stock cluster has no bridge"
    lifecycle.down(folder, quiet)
    up(folder, replace(GANDIVA, properties={MANAGED: "false"}))
    assert folder.token.stat().st_mode & 0o777 == 0o600


def test_up_after_a_crash_starts_what_is_missing_and_leaves_the_rest(folder: StateFolder) -> None:
    first = up(folder)
    before = pids(folder)
    assert before[1] is not None
    os.kill(before[1], signal.SIGKILL)
    wait_until(lambda: table(folder).alive("node-1") is None)
    assert up(folder) == first
    after = pids(folder)
    assert (after[0], after[2]) == (before[0], before[2])
    assert after[1] not in {None, before[1]}


def test_a_cluster_of_another_kind_is_refused_while_one_is_up(folder: StateFolder) -> None:
    up(folder)
    with pytest.raises(InputError, match=r"2 nodes with 4 GPUs.*down.*2 nodes with 8 GPUs"):
        up(folder, Plan(nodes=2, gpus=8, scheduler="capacity", height_max=4))
    assert None not in pids(folder)


def test_after_down_nothing_runs_and_another_kind_may_come(folder: StateFolder) -> None:
    up(folder)
    running = [pid for pid in pids(folder) if pid is not None]
    assert lifecycle.down(folder, quiet)
    assert not any(alive(pid) for pid in running)
    assert not folder.token.exists()
    assert folder.log("resourcemanager").exists(), "logs stay"
    assert not lifecycle.down(folder, quiet)
    assert len(up(folder, Plan(1, 4, "capacity", 4)).nodes) == 1


def test_a_daemon_that_does_not_start_leaves_nothing_behind(
    folder: StateFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(daemons, "node_manager", lambda *_: stand_in("fail"))
    started: list[int] = []
    start = ProcessTable.start

    def remember(self: ProcessTable, *arguments: object) -> int:
        started.append(start(self, *arguments))  # type: ignore[arg-type]
        return started[-1]

    monkeypatch.setattr(ProcessTable, "start", remember)
    with pytest.raises(lifecycle.ClusterError, match=r"node-. ended at once: cannot start"):
        up(folder)
    assert len(started) == 3
    assert not any(alive(pid) for pid in started)
    assert folder.load() is None
    assert not folder.token.exists()


def test_a_core_that_cannot_begin_is_told_and_leaves_nothing_behind(
    folder: StateFolder, bean: Path
) -> None:
    bean.write_text('{"CoreState": "NEVER_SEEN", "CoreDownReason": "exit code 1: No module"}')
    with pytest.raises(lifecycle.ClusterError, match=r"core does not start: exit code 1: No mod"):
        up(folder, GANDIVA)
    assert folder.load() is None


def test_up_waits_until_the_core_has_a_session(folder: StateFolder, bean: Path) -> None:
    bean.write_text('{"CoreState": "SILENT", "CoreEpoch": 3}')
    with pytest.raises(lifecycle.ClusterError, match="the core did not become ready"):
        lifecycle.up(folder, GANDIVA, quiet, limit_s=2.0)
    bean.write_text('{"CoreState": "CONNECTED", "CoreEpoch": 4}')
    assert up(folder, GANDIVA).plan == GANDIVA


def test_a_repair_that_fails_leaves_what_was_running(
    folder: StateFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    up(folder)
    before = pids(folder)
    assert before[2] is not None
    os.kill(before[2], signal.SIGKILL)
    wait_until(lambda: table(folder).alive("node-2") is None)
    monkeypatch.setattr(daemons, "node_manager", lambda *_: stand_in("fail"))
    with pytest.raises(lifecycle.ClusterError, match="node-2 ended at once"):
        up(folder)
    assert pids(folder) == [before[0], before[1], None]


def test_a_daemon_that_is_never_ready_is_given_up_on(folder: StateFolder) -> None:
    with pytest.raises(lifecycle.ClusterError, match="did not become ready in time"):
        lifecycle.up(folder, PLAN, quiet, limit_s=0.0)
    assert folder.load() is None


def test_two_commands_at_once_are_told_apart(folder: StateFolder) -> None:
    with folder.locked(), pytest.raises(InputError, match="one at a time"):
        up(folder)


def test_containers_whose_node_was_killed_end_with_the_cluster(folder: StateFolder) -> None:
    """A NodeManager under SIGKILL leaves its containers: they are known by the cluster's id."""
    cluster = up(folder)
    left = subprocess.Popen(["sleep", "600"], env={**os.environ, CLUSTER_ID: cluster.cluster_id})
    other = subprocess.Popen(["sleep", "600"], env={**os.environ, CLUSTER_ID: "another cluster"})
    try:
        lifecycle.down(folder, quiet)
        assert not alive(left.pid)
        assert other.poll() is None
    finally:
        for process in (left, other):
            process.kill()
            process.wait()


def alive(pid: int) -> bool:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False
    return fields[0] not in {"Z", "X"}


def wait_until(is_so: Callable[[], bool]) -> None:
    for _ in range(500):
        if is_so():
            return
        signal.sigtimedwait([], 0.01)
    raise AssertionError("it never came true")
