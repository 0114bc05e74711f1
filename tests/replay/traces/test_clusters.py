"""Cluster files."""

from __future__ import annotations

from pathlib import Path

import pytest

from gandiva_core.model.errors import InputError
from gandiva_core.replay.traces.clusters import builtin_clusters, load_cluster, parse_cluster

GROUP = "[[servers]]\ncount = 2\ngpus = 4\nmemory_mib = 1000\nvcores = 8\n"


def test_builtin_clusters_are_the_papers() -> None:
    """GE-14: 25 × 4, half of each type by whole servers; GE-12: 45 × 4."""
    assert builtin_clusters() == ("gandiva-100", "gandiva-180")
    hundred, more = load_cluster("gandiva-100"), load_cluster("gandiva-180")
    assert (hundred.gpus, len(hundred.servers)) == (100, 25)
    assert (more.gpus, len(more.servers)) == (180, 45)
    types = [server.accelerator_type for server in hundred.servers]
    assert (types.count(types[0]), types.count(types[-1])) == (12, 13)
    assert hundred.servers[0].server_id == "server-01"


@pytest.mark.parametrize("name", ["gandiva-100", "gandiva-180"])
def test_a_sixteenth_of_a_server_is_whole(name: str) -> None:
    """Default asks are a server's memory and vcores by GPUs × maximum height 4."""
    for server in load_cluster(name).servers:
        assert server.memory_mib % (server.gpus * 4) == 0
        assert server.vcores % (server.gpus * 4) == 0


def test_the_documented_example_loads(repo_root: Path) -> None:
    cluster = load_cluster(repo_root / "conf" / "clusters" / "example.toml")
    assert cluster.gpus == 24
    assert cluster.servers[4].sockets == (((0, 1), (2, 3)), ((4, 5), (6, 7)))
    assert cluster.queues[0].name == "root.default"


def test_ids_sort_as_they_are_numbered() -> None:
    cluster = parse_cluster(f'name = "c"\n{GROUP.replace("2", "120", 1)}'.encode(), "c.toml")
    ids = [server.server_id for server in cluster.servers]
    assert ids == sorted(ids)
    assert len(ids) == 120


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("name = ", "c.toml"),
        (f"{GROUP}", "c.toml"),
        ('name = "c"\n', "c.toml"),
        (f'name = "c"\ncolour = 1\n{GROUP}', "c.toml"),
        (f'name = "c"\n{GROUP}speed = 1\n', "c.toml"),
        (f'name = "c"\n{GROUP.replace("gpus = 4", "gpus = -4")}', "c.toml: servers[1].gpus"),
        (f'name = "c"\n{GROUP.replace("count = 2", "count = 0")}', "c.toml: servers[1].count"),
        (f'name = "c"\n{GROUP.replace("gpus = 4", "gpus = 0")}', "c.toml: servers"),
        (f'name = "c"\n{GROUP}topology = [[[0, 1], [2, 2]]]\n', "c.toml: servers[1].topology"),
        (f'name = ""\n{GROUP}', "c.toml: name"),
        (
            f'name = "c"\n{GROUP}[[queues]]\nname = "root.a"\nguaranteed_gpus = 5\nmax_gpus = 2\n',
            "c.toml: queue root.a",
        ),
    ],
)
def test_what_no_cluster_can_be_names_its_place(text: str, place: str) -> None:
    with pytest.raises(InputError) as raised:
        parse_cluster(text.encode(), "c.toml")
    assert raised.value.place == place


def test_bytes_that_are_not_utf8_are_refused() -> None:
    with pytest.raises(InputError, match="UTF-8"):
        parse_cluster(b"name = '\xff'", "c.toml")


def test_unknown_names_list_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="gandiva-100, gandiva-180"):
        load_cluster("gandiva-7")
    with pytest.raises(InputError, match="a directory"):
        load_cluster(tmp_path)
