"""The session: always a time-out, retries only where safe, no redirect to strangers (USERS, row requests)."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from gandiva_core.site.http import HttpError, HttpSession


class Daemon(ThreadingHTTPServer):
    """Answers each path as told, in order; the last answer is repeated."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: dict[str, list[tuple[int, dict[str, str], bytes]]] = {}
        self.seen: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def say(
        self, path: str, status: int, body: bytes = b"{}", headers: dict[str, str] | None = None
    ) -> None:
        self.answers.setdefault(path, []).append((status, headers or {}, body))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        assert isinstance(self.server, Daemon)
        self.server.seen.append(f"{self.command} {self.path}")
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        answers = self.server.answers[self.path]
        status, headers, body = answers.pop(0) if len(answers) > 1 else answers[0]
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET  # noqa: N815 - names of the base class
    do_PUT = do_GET  # noqa: N815

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def daemon() -> Iterator[Daemon]:
    with Daemon() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def session() -> Iterator[HttpSession]:
    with HttpSession(connect_s=2.0, read_s=5.0, wait_s=0.01) as opened:
        yield opened


def test_json_is_decoded(daemon: Daemon, session: HttpSession) -> None:
    daemon.say("/info", 200, b'{"state": "STARTED"}')
    assert session.get_json(f"{daemon.url}/info") == {"state": "STARTED"}


@pytest.mark.parametrize("asked", [{}, {"timeout": None}])
def test_a_daemon_that_never_answers_is_given_up_on(asked: dict[str, Any]) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        HttpSession(read_s=0.1, tries_max=2, wait_s=0.01) as session,
        pytest.raises(HttpError, match="no answer in time"),
    ):
        session.get(f"http://127.0.0.1:{silent.getsockname()[1]}/", **asked)


def test_time_outs_cannot_be_switched_off() -> None:
    with pytest.raises(ValueError, match="above 0"):
        HttpSession(read_s=0.0)


def test_nobody_listening_is_one_line(session: HttpSession) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(HttpError, match=rf"127\.0\.0\.1:{port}/x: no connection") as refused:
        session.get(f"http://127.0.0.1:{port}/x")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_an_idempotent_call_is_repeated_while_the_daemon_is_busy(
    daemon: Daemon, session: HttpSession, method: str
) -> None:
    daemon.say("/a", 503)
    daemon.say("/a", 502)
    daemon.say("/a", 200)
    assert session.request(method, f"{daemon.url}/a").status_code == 200
    assert daemon.seen == [f"{method} /a"] * 3


def test_it_is_not_repeated_for_ever(daemon: Daemon, session: HttpSession) -> None:
    daemon.say("/a", 503)
    with pytest.raises(HttpError, match="status 503") as refused:
        session.get(f"{daemon.url}/a")
    assert (refused.value.status, len(daemon.seen)) == (503, 3)


def test_a_call_that_may_have_worked_is_never_sent_twice(
    daemon: Daemon, session: HttpSession
) -> None:
    daemon.say("/apps", 503)
    assert session.post(f"{daemon.url}/apps", json={}).status_code == 503
    assert daemon.seen == ["POST /apps"]


def test_a_mistake_of_ours_is_not_repeated(daemon: Daemon, session: HttpSession) -> None:
    daemon.say("/a", 404)
    with pytest.raises(HttpError, match="status 404, expected 200"):
        session.get_json(f"{daemon.url}/a")
    assert len(daemon.seen) == 1


def test_what_is_no_json_is_said(daemon: Daemon, session: HttpSession) -> None:
    daemon.say("/a", 200, b"<html>")
    with pytest.raises(HttpError, match="no JSON"):
        session.get_json(f"{daemon.url}/a")


def test_a_redirect_on_the_same_host_is_followed(daemon: Daemon, session: HttpSession) -> None:
    daemon.say("/old", 307, headers={"Location": f"{daemon.url}/new"})
    daemon.say("/new", 200, b"[1]")
    assert session.get_json(f"{daemon.url}/old") == [1]


@pytest.mark.parametrize("target", ["http://127.0.0.2:{port}/x", "//127.0.0.2:{port}/x"])
def test_a_redirect_to_a_foreign_host_is_refused(
    daemon: Daemon, session: HttpSession, target: str
) -> None:
    daemon.say("/old", 307, headers={"Location": target.format(port=daemon.server_port)})
    with pytest.raises(HttpError, match=r"127\.0\.0\.2, which is no host"):
        session.get(f"{daemon.url}/old")
    assert daemon.seen == ["GET /old"]


def test_a_standby_may_send_to_the_active_one(daemon: Daemon) -> None:
    daemon.say("/old", 307, headers={"Location": f"http://localhost:{daemon.server_port}/new"})
    daemon.say("/new", 200, b"[2]")
    with HttpSession(hosts={"localhost"}) as session:
        assert session.get_json(f"{daemon.url}/old") == [2]


def test_no_proxy_of_the_environment_sees_the_call(
    daemon: Daemon, session: HttpSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    daemon.say("/a", 200)
    assert session.get_json(f"{daemon.url}/a") == {}
