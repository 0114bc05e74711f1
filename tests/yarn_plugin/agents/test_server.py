"""The port that agents dial, over real gRPC (G-92; FAULTS E16)."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pytest

from gandiva_core.messages import agents as a
from gandiva_core.model.errors import InputError
from gandiva_core.site.credentials import Credentials
from yarn_plugin.agents.server import AgentServer, Heard

TOKEN = "0123456789abcdef"
PATIENCE_S = 10.0


@pytest.fixture
def server() -> Iterator[AgentServer]:
    server = AgentServer(Credentials(TOKEN), "127.0.0.1", 0, lambda *_, **__: None)
    server.start()
    yield server
    server.close()


class Dialled:
    """An agent's side of one stream."""

    def __init__(self, server: AgentServer, token: str = TOKEN) -> None:
        self._out: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._channel = grpc.insecure_channel(f"127.0.0.1:{server.port}")
        attend: Any = self._channel.stream_stream(f"/{a.SERVICE}/{a.METHOD}")
        metadata = (("authorization", f"Bearer {token}"),)
        self.commands = attend(iter(self._out.get, None), metadata=metadata, timeout=PATIENCE_S)

    def say(self, data: bytes) -> None:
        self._out.put(data)

    def hello(self, node: str = "n1:1") -> None:
        self.say(a.encode(a.AgentHello(node, "s", "1", (), True)))

    def hear(self) -> a.Command:
        return a.decode_command(next(self.commands))

    def close(self) -> None:
        self._out.put(None)
        self._channel.close()


@pytest.fixture
def dial(server: AgentServer) -> Iterator[Callable[..., Dialled]]:
    dialled: list[Dialled] = []

    def one(token: str = TOKEN) -> Dialled:
        dialled.append(Dialled(server, token))
        return dialled[-1]

    yield one
    for each in dialled:
        each.close()


def heard(server: AgentServer, count: int) -> list[Heard]:
    """Waits for so much."""
    found: list[Heard] = []
    until_s = time.monotonic() + PATIENCE_S
    while len(found) < count:
        found += server.heard()
        assert time.monotonic() < until_s, found
        time.sleep(0.005)
    return found


def test_what_agents_say_is_heard_in_order_and_answered(
    server: AgentServer, dial: Callable[..., Dialled]
) -> None:
    agent = dial()
    agent.hello()
    agent.say(a.encode(a.Measured(1.0, (), ())))
    (_, first), (node, second) = heard(server, 2)
    assert isinstance(first, a.AgentHello)
    assert (node, second) == ("n1:1", a.Measured(1.0, (), ()))
    server.send("n1:1", a.Welcome(7, 1.0, 60.0, 180.0))
    assert agent.hear() == a.Welcome(7, 1.0, 60.0, 180.0)
    server.send("nobody", a.Welcome(7, 1.0, 60.0, 180.0))


@pytest.mark.parametrize("token", ["", "another", TOKEN + "0", TOKEN[:-1]])
def test_without_the_token_nobody_is_let_in(
    server: AgentServer, dial: Callable[..., Dialled], token: str
) -> None:
    agent = dial(token)
    agent.hello()
    with pytest.raises(grpc.RpcError) as refused:
        agent.hear()
    assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED
    assert server.heard() == []


@pytest.mark.parametrize("data", [b"", b"\xff\x00", b"{}", b"[" * 50_000, b'{"kind":"Welcome"}'])
def test_garbage_first_ends_the_stream_and_later_is_skipped(
    server: AgentServer, dial: Callable[..., Dialled], data: bytes
) -> None:
    rude = dial()
    rude.say(data)
    with pytest.raises(grpc.RpcError):
        rude.hear()
    agent = dial()
    agent.hello()
    agent.say(data)
    agent.say(a.encode(a.DeviceLost(1.0, 0, "XID 79")))
    found = heard(server, 2)
    assert [report for _, report in found][1:] == [a.DeviceLost(1.0, 0, "XID 79")]


def test_more_than_a_message_may_have_ends_that_stream_alone(
    server: AgentServer, dial: Callable[..., Dialled]
) -> None:
    other = dial()
    other.hello("n2:1")
    heard(server, 1)
    agent = dial()
    agent.hello()
    agent.say(b" " * (a.MESSAGE_BYTES_MAX + 1))
    with pytest.raises(grpc.RpcError):
        agent.hear()
    server.send("n2:1", a.Welcome(7, 1.0, 60.0, 180.0))
    assert isinstance(other.hear(), a.Welcome)


def test_a_second_stream_of_a_node_takes_the_place_of_the_first(
    server: AgentServer, dial: Callable[..., Dialled]
) -> None:
    """An agent that was restarted dials before the core has noticed: the old stream's end is not the new one's."""
    first, second = dial(), dial()
    first.hello()
    heard(server, 1)
    second.hello()
    found = heard(server, 2)
    assert [report is None for _, report in found] == [True, False]
    server.send("n1:1", a.Welcome(7, 1.0, 60.0, 180.0))
    assert isinstance(second.hear(), a.Welcome)
    first.close()
    time.sleep(0.1)
    assert server.heard() == []


def test_an_agent_that_goes_is_missed(server: AgentServer, dial: Callable[..., Dialled]) -> None:
    agent = dial()
    agent.hello()
    heard(server, 1)
    agent.close()
    assert heard(server, 1) == [("n1:1", None)]


@pytest.mark.parametrize(
    ("credentials", "address"),
    [(Credentials(), "127.0.0.1"), (Credentials(TOKEN), "0.0.0.0"), (Credentials(TOKEN), "host")],
)
def test_a_port_that_nothing_protects_is_not_opened(credentials: Credentials, address: str) -> None:
    with pytest.raises(InputError):
        AgentServer(credentials, address, 0, lambda *_, **__: None)
