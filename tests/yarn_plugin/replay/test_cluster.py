"""Clusters and jobs in the harness's words."""

from __future__ import annotations

import pytest

from gandiva_core.model.cluster import Cluster
from gandiva_core.model.errors import InputError
from gandiva_core.model.job import Worker
from tests.builders import cluster, job, server
from yarn_plugin.replay import cluster as words
from yarn_plugin.replay.wire import AppFinished, AskRefused


def test_a_server_is_a_node_with_its_id_as_host() -> None:
    node = words.add_server(server("gpu-7", 8, rack="/r2", partition="fast"))
    assert (node.host, node.rack, node.gpus, node.label) == ("gpu-7", "/r2", 8, "fast")
    assert words.node_name(server("gpu-7")) == f"gpu-7:{node.port}"


@pytest.mark.parametrize("name", ["", "a b", "a:1", "-x", ".x", "ä/b"])
def test_an_id_that_is_no_host_name_is_an_input_error(name: str) -> None:
    with pytest.raises(InputError, match="host name"):
        words.add_server(server(name))


@pytest.mark.parametrize("first", ["s01", "a", "am-host", "am-hosts", "0", "0am-host", "00", "A"])
def test_masters_have_a_host_before_all_servers(first: str) -> None:
    """Nodes send heartbeats by name: the first with room gets the master."""
    host = words.master_host(Cluster("c", (server(first), server("zz"))))
    assert host.host < first
    assert host.gpus == 0


def test_a_cluster_without_servers_still_has_a_host_for_masters() -> None:
    assert words.master_host(cluster(0)).memory_mib >= 1024


def test_a_submission_declares_its_gang_and_asks_for_no_gpu() -> None:
    sent = words.submit(job("j1", workers=(4, 2), priority_class=3), "root.a")
    assert sent.tags == ("gandiva.gang=2",)
    assert (sent.key, sent.name, sent.queue, sent.user, sent.priority) == (
        "j1",
        "j1",
        "root.a",
        "user",
        3,
    )


def test_each_size_has_a_priority_of_its_own() -> None:
    """YARN keeps one size a priority."""
    asked = words.ask(job(workers=(4, 4, 2)))
    assert [(line.priority, line.count, line.gpus, line.memory_mib) for line in asked.asks] == [
        (1, 2, 4, 4096),
        (2, 1, 2, 2048),
    ]


def test_ranks_go_back_to_the_size_they_came_from() -> None:
    assert words.ranks(job(workers=(2, 4, 2))) == {1: [0, 2], 2: [1]}
    assert [worker for _, worker in words.sizes(job(workers=(2, 4, 2)))] == [
        Worker(2, 2048, 2),
        Worker(4, 4096, 4),
    ]


def test_masters_whose_ask_was_refused_give_up() -> None:
    [end] = words.give_up([AskRefused("j1", "too large"), AppFinished("j2")])
    assert (end.key, end.status) == ("j1", "FAILED")


def test_more_jobs_than_a_heartbeat_serves_come_in_bursts() -> None:
    jobs = [job(f"j{n}") for n in range(250)]
    groups = list(words.bursts(jobs))
    assert [len(group) for group in groups] == [100, 100, 50]
    assert [one for group in groups for one in group] == jobs
    assert list(words.bursts([])) == []
