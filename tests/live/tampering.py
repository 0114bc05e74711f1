"""Faults put into a cluster: a core kept away or stopped, a site's file changed, garbage for the bridge."""

from __future__ import annotations

import math
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from tests.live.shells import Live, wait_until, words
from yarn_plugin.bridge.gateway import Gateway, GatewayError
from yarn_plugin.live.connection import LiveGateway

KILLED = 128 + signal.SIGKILL
_SCRIPT = """#!/bin/sh
# The core's interpreter: none while the file is there. With `again` a core that was killed is started at once.
while :; do
  while [ -e {hold} ]; do sleep 0.1; done
  {python} "$@"
  code=$?
  [ {again} = yes ] && [ $code -eq {killed} ] || exit $code
done
"""


class Interpreter:
    """A stand-in for `core.python` that can be made unusable.

    Args:
        folder: for its files.
        is_patient: start a killed core again without the ResourceManager's noticing, whose back-off would take hours
            of many kills.
    """

    def __init__(self, folder: Path, *, is_patient: bool) -> None:
        self.program = folder / "interpreter"
        self._hold = folder / "no-interpreter"
        again = "yes" if is_patient else "no"
        text = _SCRIPT.format(hold=self._hold, python=sys.executable, again=again, killed=KILLED)
        self.program.write_text(text)
        self.program.chmod(0o700)

    @contextmanager
    def unusable(self) -> Iterator[None]:
        """A core that is started meanwhile does not begin before the end."""
        self._hold.touch()
        try:
            yield
        finally:
            self._hold.unlink()


def core_of(live: Live) -> psutil.Process:
    """The core itself, once it is there."""
    found: list[psutil.Process] = []

    def is_there() -> bool:
        found[:] = [each for each in live.processes() if is_core(words(each))]
        return len(found) == 1

    wait_until(is_there, "one core")
    return found[0]


def is_core(line: list[str]) -> bool:
    """Whether this is its command line, not that of a shell that starts it."""
    return "gandiva_core" in line and Path(line[0]).name.startswith("python")


def child_id(live: Live) -> str:
    """What the youngest child of the ResourceManager says in its hello, taken from a child that is kept from it."""
    found: list[str] = []

    def is_there() -> bool:
        lines = [line for line in map(words, live.processes()) if "--managed" in line]
        found[:] = [line[line.index("--managed") + 1] for line in lines if not is_core(line)]
        return bool(found)

    wait_until(is_there, "a child that waits for its interpreter")
    return found[0]


@contextmanager
def stopped(process: psutil.Process) -> Iterator[None]:
    """SIGSTOP, and SIGCONT at the end."""
    process.suspend()
    try:
        yield
    finally:
        process.resume()


def refresh(live: Live, before: str, after: str) -> str:
    """Change a value in the ResourceManager's file and refresh; returns what the command said.

    Raises:
        AssertionError: the text was not there.
    """
    site = live.folder.conf / "yarn-site.xml"
    text = site.read_text()
    assert text.count(before) == 1, before
    site.write_text(text.replace(before, after))
    reply = live.yarn("rmadmin", "-refreshQueues")
    return f"{reply.returncode}\n{reply.stdout}{reply.stderr}"


def core_in_place(live: Live, managed: str) -> LiveGateway:
    """The real client of the bridge, in the place of the core."""
    (token,) = live.folder.logs.glob("bridge-*/token")
    gateway = LiveGateway.connect(live.cluster.ports["bridge"], token, 30.0)
    gateway.hello("test-core", managed)
    return gateway


def asks_of(gateway: Gateway) -> dict[str, Any]:
    """The first application in a resync that asks for GPUs."""
    found: list[dict[str, Any]] = []
    deadline_s = time.monotonic() + 30.0
    while not found and time.monotonic() < deadline_s:
        for event in gateway.take_events(100, 400)["events"]:
            found += [app for app in event.get("apps", []) if app["asks"]]
    return found[0]


def answer_to(gateway: Gateway, order: dict[str, Any]) -> tuple[str, str]:
    """Code and reason."""
    try:
        (answer,) = gateway.apply([order])
    except GatewayError as error:
        gateway._sequence -= 1  # a message that is no JSON has used no number
        return error.kind, str(error)
    return answer["code"], answer["detail"]


def garbage(attempt: str, app: str, node: str, container: dict[str, Any]) -> list[dict[str, Any]]:
    """Orders that name real things and cannot be followed (E5). Each is to be refused whole.

    Args:
        attempt, app: that asks for GPUs.
        node: with room.
        container: one of its asks, as a commit must repeat it.
    """
    right = {"node": node, **container}

    def commit(*wrong: dict[str, Any]) -> dict[str, Any]:
        return {"op": "commit_gang", "attempt": attempt, "containers": [right, *wrong]}

    spoilt = [
        {**right, "node": "127.0.0.99:1"},
        {**right, "gpus": -1},
        {**right, "gpus": math.nan},
        {**right, "gpus": 0.5},
        {**right, "gpus": 2**62},
        {**right, "gpus": "1"},
        {**right, "memory_mib": None},
        {**right, "priority": []},
        {},
    ]
    orders = [commit(each) for each in spoilt]
    orders += [
        commit(*[right] * 40),
        {**commit(), "attempt": "appattempt_1_0001_000001"},
        {**commit(), "containers": []},
        {**commit(), "containers": "all"},
        {"op": "release_gang", "attempt": attempt, "containers": ["container_0"]},
        {"op": "set_height", "node": node, "height": -1},
        {"op": "set_height", "node": node, "height": 10**9},
        {"op": "set_height", "node": node, "height": math.nan},
        {"op": "set_height", "node": "nowhere:1", "height": 2},
        {"op": "explain", "app": app, "text": "x" * (10 << 20)},
        {"op": "explain", "app": app, "text": "two\nlines\x1b[2J"},
        {"op": "drop_tables"},
        {},
    ]
    return [{"id": str(number), **order} for number, order in enumerate(orders)]
