"""The state folder: nobody else's is touched, a damaged file is said, ports do not meet."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from gandiva_core.model.errors import InputError
from yarn_plugin.cluster import state
from yarn_plugin.cluster.state import MARK, PORTS, Plan, StateFolder, addressed, default_folder

PLAN = Plan(3, 4, "gandiva", 4, {"a.b": "c"})


def test_a_cluster_is_read_as_it_was_written(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path)
    assert folder.load() is None
    cluster = addressed(PLAN)
    folder.save(cluster)
    assert folder.load() == cluster


def test_a_folder_with_other_things_in_it_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(InputError, match="something else"), StateFolder(tmp_path).locked():
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "x").touch()
    with pytest.raises(InputError, match="something else"), StateFolder(tmp_path / "x").locked():
        pass


def test_a_new_folder_is_private_and_marked(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path / "a" / "b")
    with folder.locked():
        assert folder.path.stat().st_mode & 0o777 == 0o700
        assert (folder.path / MARK).is_file()


@pytest.mark.parametrize("content", ["", "{", "[]", '{"plan": {}}'])
def test_a_damaged_file_is_said_in_one_line(tmp_path: Path, content: str) -> None:
    (tmp_path / "cluster.json").write_text(content)
    with pytest.raises(InputError, match=r"cluster\.json.*expected the file") as refused:
        StateFolder(tmp_path).load()
    assert "\n" not in str(refused.value)


def test_no_two_services_share_an_address() -> None:
    cluster = addressed(PLAN)
    rm = [("127.0.0.1", port) for port in cluster.ports.values()]
    nodes = [(node.host, port) for node in cluster.nodes for port in node.ports.values()]
    assert len(set(rm + nodes)) == len(rm) + len(nodes)
    assert {port for _, port in rm + nodes} <= set(PORTS)
    assert [node.host for node in cluster.nodes] == ["127.0.0.11", "127.0.0.12", "127.0.0.13"]
    assert addressed(PLAN).cluster_id != cluster.cluster_id


def test_a_port_that_is_taken_is_not_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setattr(state, "PORTS", range(port, port + 1))
        with pytest.raises(InputError, match="ports that are taken"):
            addressed(PLAN)


def test_the_usual_folder_is_the_users_own() -> None:
    assert default_folder({"XDG_STATE_HOME": "/x"}) == Path("/x/gandiva/cluster")
    assert default_folder({}).parts[-4:] == (".local", "state", "gandiva", "cluster")
