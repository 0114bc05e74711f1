"""Lines between processes of a job: whole messages, and nobody who is held up by the other side."""

from __future__ import annotations

import resource
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from nodemanager_agent.client.wire import Line, WireError, wait_readable


@pytest.fixture
def pair() -> Iterator[tuple[Line, socket.socket]]:
    one, other = socket.socketpair()
    yield Line(one), other
    one.close()
    other.close()


@pytest.mark.parametrize("text", ["{", "[1]", "[" * 100_000], ids=["cut", "a list", "deep"])
def test_nonsense_of_any_depth_is_one_error(pair: tuple[Line, socket.socket], text: str) -> None:
    line, other = pair
    threading.Thread(target=other.sendall, args=(text.encode() + b"\n",)).start()
    with pytest.raises(WireError):
        line.read(5.0)


def send_much(line: Line) -> None:
    for _ in range(1000):
        line.send("progress", text="x" * 10_000)


def test_who_does_not_read_holds_nobody_up(pair: tuple[Line, socket.socket]) -> None:
    line, _ = pair
    line.send_s = 0.1
    began_s = time.monotonic()
    with pytest.raises(TimeoutError):
        send_much(line)
    assert time.monotonic() - began_s < 5
    assert line.poll() == [], "the other side is there"


def test_a_process_with_many_open_files_is_heard(pair: tuple[Line, socket.socket]) -> None:
    """`select` takes no file above 1023; a training process with many shards has thousands."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2000:
        pytest.skip("no so many files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2000), hard))
    line, other = pair
    held = [socket.socket() for _ in range(1100)]
    try:
        far = Line(socket.fromfd(line.fileno(), socket.AF_UNIX, socket.SOCK_STREAM))
        assert far.fileno() > 1023
        wait_readable([far], 0.01)
        other.sendall(b'{"op":"resume"}\n')
        wait_readable([far], None)
        assert far.poll() == [{"op": "resume"}]
        far.close()
    finally:
        for each in held:
            each.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
