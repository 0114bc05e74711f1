"""What the ResourceManager's REST answers mean, odd ones too."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from gandiva_core.site.http import HttpError, HttpSession
from tests.yarn_plugin.cluster.stand_in import answer, gpus, node
from yarn_plugin.cluster.state import Plan, addressed
from yarn_plugin.cluster.status import (
    ClusterUnreachableError,
    CoreReport,
    NodeReport,
    RmReport,
    ask,
)

CLUSTER = addressed(Plan(1, 4, "gandiva", 4))


class Answers:
    """A session that answers from a table."""

    def __init__(self, **parts: object) -> None:
        self._parts = parts

    def get_json(self, url: str) -> object:
        found = self._parts[url.rpartition("/")[2].partition("?")[0]]
        if isinstance(found, Exception):
            raise found
        return found


def asked(tmp: Path, **changes: object) -> RmReport:
    parts = {
        name: answer(f"/{name}", tmp / "nodes") for name in ("info", "metrics", "nodes", "jmx")
    }
    return ask(CLUSTER, cast("HttpSession", Answers(**{**parts, **changes})))


def test_a_cluster_without_nodes_answers_null(tmp_path: Path) -> None:
    report = asked(tmp_path)
    assert (report.state, report.nodes) == ("STARTED", ())
    assert (report.apps_running, report.apps_pending) == (1, 2)


def test_nodes_are_told_in_order_with_physical_gpus(tmp_path: Path) -> None:
    lost = {**node("a:1"), "state": "LOST"}
    report = asked(tmp_path, nodes={"nodes": {"node": [node("b:1"), lost]}})
    assert report.nodes[1] == NodeReport("b:1", "RUNNING", 3, 2, 4)
    assert [each.node_id for each in report.nodes] == ["a:1", "b:1"]
    assert report.has_running("b:1")
    assert not report.has_running("a:1")


def test_a_node_whose_daemon_was_started_again_is_not_the_old_one(tmp_path: Path) -> None:
    """The ResourceManager goes on calling a killed node RUNNING for a minute."""
    report = asked(tmp_path, nodes={"nodes": {"node": [node("a:1", 1000)]}})
    assert report.has_running("a:1", since_ms=1000)
    assert not report.has_running("a:1", since_ms=1001)


def test_an_older_resource_manager_tells_used_and_free_only(tmp_path: Path) -> None:
    old = {"id": "a:1", "state": "RUNNING", "usedResource": gpus(1), "availableResource": gpus(3)}
    assert asked(tmp_path, nodes={"nodes": {"node": [old]}}).nodes[0].gpus == 4


@pytest.mark.parametrize(
    "changes",
    [
        {"info": HttpError("http://x: no connection")},
        {"info": {}},
        {"metrics": []},
        {"nodes": {"nodes": {"node": [{}]}}},
        {"nodes": {"nodes": {"node": [7]}}},
        {"jmx": {}},
        {"jmx": {"beans": [7]}},
        {"metrics": {"clusterMetrics": {"appsRunning": "many", "appsPending": 0}}},
    ],
)
def test_whatever_else_answers_there_is_no_resource_manager(
    tmp_path: Path, changes: dict[str, object]
) -> None:
    with pytest.raises(ClusterUnreachableError) as refused:
        asked(tmp_path, **changes)
    assert "\n" not in str(refused.value)


def test_a_plug_in_that_has_not_started_yet_has_no_core(tmp_path: Path) -> None:
    assert asked(tmp_path).core == CoreReport("NEVER_SEEN", 0, "")
    bean = {"CoreState": "CONNECTED", "CoreEpoch": 7, "CoreDownReason": ""}
    assert asked(tmp_path, jmx={"beans": [bean]}).core == CoreReport("CONNECTED", 7, "")
