"""Sessions over a gateway that comes and goes."""

from __future__ import annotations

import threading

import pytest

from gandiva_core.model.errors import InputError
from yarn_plugin.bridge.gateway import GatewayError, JsonObject
from yarn_plugin.live.connection import GatewayUnreachableError, SupersededError, serve
from yarn_plugin.live.loop import Session


class Connection:
    def __init__(self, hellos: list[str]) -> None:
        self._hellos = hellos
        self.is_closed = False

    def hello(self, client: str, managed: str = "") -> JsonObject:
        self._hellos.append(client + managed)
        return {"epoch": len(self._hellos), "hadoop_version": "3.4.2"}

    def take_events_text(self, count_max: int, wait_ms: int) -> str:
        raise AssertionError("turns are given here")

    def apply(self, effects: list[JsonObject]) -> list[JsonObject]:
        raise AssertionError("turns are given here")

    def close(self) -> None:
        self.is_closed = True


class Scene:
    """A gateway whose connections and turns go as told, in order; the last turn ends it."""

    def __init__(self, connects: list[str], turns: list[str]) -> None:
        self.stop = threading.Event()
        self.hellos: list[str] = []
        self.said: list[str] = []
        self.opened: list[Connection] = []
        self._connects = connects
        self._turns = turns

    def connect(self) -> Connection:
        self._fail(self._connects.pop(0))
        self.opened.append(Connection(self.hellos))
        return self.opened[-1]

    def turn(self, _: Session) -> None:
        kind = self._turns.pop(0)
        if not self._turns:
            self.stop.set()
        self._fail(kind)

    def say(self, event: str, **_: object) -> None:
        self.said.append(event)

    def serve(self, lost_s_max: float | None = None, managed: str = "") -> None:
        serve(self.connect, self.turn, self.stop, self.say, lost_s_max=lost_s_max, managed=managed)

    @staticmethod
    def _fail(kind: str) -> None:
        if kind != "OK":
            raise GatewayError(kind, f"it was {kind}")


def test_turns_are_taken_until_the_end() -> None:
    scene = Scene(["OK"], ["OK", "OK", "OK"])
    scene.serve()
    assert (len(scene.hellos), scene.said) == (1, ["connected"])
    assert scene.opened[0].is_closed


@pytest.mark.parametrize("kind", ["UNREACHABLE", "WRONG_TOKEN"])
def test_no_gateway_at_the_start_ends_it(kind: str) -> None:
    with pytest.raises(GatewayUnreachableError, match=kind):
        Scene([kind], ["OK"]).serve()


def test_a_token_file_that_cannot_be_used_is_bad_input() -> None:
    with pytest.raises(InputError, match="--token-file"):
        Scene(["TOKEN_FILE"], ["OK"]).serve()


@pytest.mark.parametrize("kind", ["UNREACHABLE", "TIMEOUT", "BROKEN"])
def test_a_lost_gateway_is_looked_for_until_it_is_back_and_greeted_anew(kind: str) -> None:
    scene = Scene(["OK", "UNREACHABLE", "UNREACHABLE", "OK"], ["OK", kind, "OK"])
    scene.serve()
    assert len(scene.hellos) == 2
    assert scene.said == ["connected", "gateway lost", "connected"]
    assert all(connection.is_closed for connection in scene.opened)


def test_told_to_end_it_looks_no_further() -> None:
    scene = Scene(["OK"], ["UNREACHABLE"])
    scene._connects += ["UNREACHABLE"]
    scene.serve()
    assert scene.said == ["connected", "gateway lost"]


def test_a_gateway_that_comes_back_with_another_token_ends_it() -> None:
    with pytest.raises(GatewayUnreachableError, match="WRONG_TOKEN"):
        Scene(["OK", "WRONG_TOKEN"], ["UNREACHABLE", "OK"]).serve()


def test_a_gateway_that_stays_away_ends_a_core_that_is_told_how_long_to_look() -> None:
    """DESIGN §4: a managed core exits 30 s after losing the gateway."""
    scene = Scene(["OK", *["UNREACHABLE"] * 20], ["UNREACHABLE", "OK"])
    with pytest.raises(GatewayUnreachableError, match=r"not back after 0\.3 s"):
        scene.serve(lost_s_max=0.3)
    assert len(scene.hellos) == 1


def test_a_child_says_which_it_is() -> None:
    scene = Scene(["OK"], ["OK"])
    scene.serve(managed=":child-7")
    assert scene.hellos == ["gandiva-core:child-7"]


@pytest.mark.parametrize("kind", ["STALE_EPOCH", "MANAGED"])
def test_another_core_is_not_fought(kind: str) -> None:
    """I6 of the faults: decisions of an older session are never made again."""
    scene = Scene(["OK"], ["OK", kind, "OK"])
    with pytest.raises(SupersededError):
        scene.serve()
    assert scene.opened[0].is_closed
