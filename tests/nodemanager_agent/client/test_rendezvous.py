"""A gang's rendezvous against a small ApplicationMaster of its own (DESIGN §6; cases B05, A13)."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from nodemanager_agent.client import rendezvous
from tests.fakes.agent import Job, Refused


class Master(ThreadingHTTPServer):
    """Answers as the job's ApplicationMaster does; ready once two have registered.

    Attributes:
        refuse: so many registrations are refused first.
        cuts: so many answers break off.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.workers: dict[int, dict[str, Any]] = {}
        self.ports: list[int] = []
        self.moved: list[str] = []
        self.refuse = 0
        self.cuts = 0
        self.is_over = False


class _Handler(BaseHTTPRequestHandler):
    server: Master

    def do_POST(self) -> None:
        if self.headers["Authorization"] != "Bearer secret":
            return self._answer(401, {})
        worker = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/moved":
            self.server.moved.append(worker["container_id"])
            return self._answer(200, {})
        self.server.ports.append(worker["port"])
        if self.server.refuse:
            self.server.refuse -= 1
            return self._answer(409, {"detail": "hold another port"})
        self.server.workers[worker["rank"]] = worker
        return self._answer(200, {})

    def do_GET(self) -> None:
        if self.server.is_over:
            return self._answer(410, {})
        assert self.path == "/rendezvous?generation=3"
        workers = self.server.workers
        if len(workers) < 2:
            return self._answer(200, {"ready": False, "generation": 3})
        addresses = [f"{workers[rank]['host']}:{workers[rank]['port']}" for rank in (0, 1)]
        first = workers[0]
        return self._answer(
            200,
            {
                "ready": True,
                "master_addr": first["host"],
                "master_port": first["port"],
                "world_size": 2,
                "generation": 3,
                "workers": addresses,
                "cluster": {"worker": addresses},
            },
        )

    def _answer(self, status: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        is_cut, self.server.cuts = self.server.cuts > 0, max(0, self.server.cuts - 1)
        self.send_header("Content-Length", str(len(data) + 10 * is_cut))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        return


@pytest.fixture
def master(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Master]:
    (tmp_path / rendezvous.TOKEN_FILE).write_text("secret\n")
    monkeypatch.chdir(tmp_path)
    with Master() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def worker(master: Master, rank: int, **more: str) -> dict[str, str]:
    return {
        "GANDIVA_AM_URL": master.url,
        "GANDIVA_RANK": str(rank),
        "GANDIVA_WORLD_SIZE": "2",
        "GANDIVA_GENERATION": "3",
        "NM_HOST": "127.0.0.1",
        **more,
    }


def test_two_launchers_meet_and_their_commands_are_told(master: Master, tmp_path: Path) -> None:
    """The port of rank 0 is really free when its command starts."""
    script = 'echo "$RANK/$WORLD_SIZE $MASTER_ADDR:$MASTER_PORT $LOCAL_RANK"'
    with (
        Job(["/bin/sh", "-c", script], tmp_path, worker(master, 0), "a") as first,
        Job(["/bin/sh", "-c", script], tmp_path, worker(master, 1), "b") as second,
    ):
        key = first.agent.send("start", gpus=[0], uuids=[], environment=worker(master, 0))
        second.start()
        first.agent.answer(key)
        assert [first.wait(), second.wait()] == [0, 0]
        port = master.workers[0]["port"]
        assert first.text().strip() == f"0/2 127.0.0.1:{port} 0"
        assert second.text().strip() == f"1/2 127.0.0.1:{port} 0"
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", port))


def test_a_port_that_another_worker_named_is_exchanged(master: Master) -> None:
    """Case B05."""
    master.refuse = 2
    master.workers[1] = {"host": "127.0.0.1", "port": 7}
    found = rendezvous.meet(worker(master, 0))
    assert len(set(master.ports)) == 3
    assert found["MASTER_PORT"] == str(master.ports[-1])


def test_tensorflow_is_told_its_way(master: Master) -> None:
    master.workers[0] = {"host": "h0", "port": 7}
    found = rendezvous.meet(
        worker(master, 1, GANDIVA_JOB_TYPE="tensorflow", GANDIVA_TASK_INDEX="1")
    )
    told = json.loads(found["TF_CONFIG"])
    assert told["task"] == {"type": "worker", "index": 1}
    assert told["cluster"]["worker"] == ["h0:7", f"127.0.0.1:{master.ports[0]}"]


def test_a_generation_that_is_over_fails_the_start_and_the_worker_waits_on(
    master: Master, tmp_path: Path
) -> None:
    master.is_over = True
    with Job(["/bin/true"], tmp_path, worker(master, 0)) as job:
        with pytest.raises(Refused, match="NO_RENDEZVOUS"):
            job.start()
        assert job.agent.await_op("progress")["state"] == "waiting"


def test_an_answer_that_breaks_off_is_asked_for_again(master: Master) -> None:
    """As a master that ends does; whatever the library calls it, the gang still meets."""
    master.cuts = 2
    call = rendezvous.master_at(worker(master, 0)).call
    assert call("/rendezvous?generation=3", None, lambda: True) == {"ready": False, "generation": 3}
    master.cuts = 1
    with pytest.raises(rendezvous.NoRendezvous, match="given up"):
        call("/rendezvous?generation=3", None, lambda: False)


def test_a_wrong_token_is_told_at_once(master: Master, tmp_path: Path) -> None:
    (tmp_path / rendezvous.TOKEN_FILE).write_text("guessed")
    with pytest.raises(rendezvous.NoRendezvous, match="401"):
        rendezvous.meet(worker(master, 0))
    (tmp_path / rendezvous.TOKEN_FILE).unlink()
    with pytest.raises(rendezvous.NoRendezvous, match="token"):
        rendezvous.meet(worker(master, 0))


def test_only_a_worker_of_our_master_with_others_is_a_gang() -> None:
    assert not rendezvous.is_gang({})
    assert not rendezvous.is_gang({"GANDIVA_AM_URL": "http://x", "GANDIVA_WORLD_SIZE": "1"})
    assert not rendezvous.is_gang({"GANDIVA_WORLD_SIZE": "2"})
    assert rendezvous.is_gang({"GANDIVA_AM_URL": "http://x", "GANDIVA_WORLD_SIZE": "2"})


def test_a_worker_that_moved_away_says_so_and_nobody_waits_for_a_master_that_is_gone(
    master: Master,
) -> None:
    rendezvous.tell_moved({"GANDIVA_AM_URL": master.url, "CONTAINER_ID": "c_1"})
    assert master.moved == ["c_1"]
    rendezvous.tell_moved({"CONTAINER_ID": "c_1"})
    master.shutdown()
    master.server_close()
    rendezvous.tell_moved({"GANDIVA_AM_URL": master.url, "CONTAINER_ID": "c_1"})
    assert master.moved == ["c_1"]
