"""A core that restarts, collects garbage and talks nonsense, against one real ResourceManager (C01, C03, E5)."""

from __future__ import annotations

import contextlib
import gc
import json
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

import psutil
import pytest
from py4j import finalizer

from tests.yarn.nonsense import Nonsense, answers
from yarn_plugin.bridge.gateway import Gateway, GatewayError
from yarn_plugin.bridge.jvm import ReplayJvm

pytestmark = pytest.mark.yarn

CALLERS = 32
PROXIES = 10_000
RESTARTS = 200
MESSAGES = 10_000
SPARE = 5
PROPERTIES = {
    "yarn.resourcemanager.scheduler.class": "org.gandiva.yarn.GandivaScheduler",
    "yarn.resource-types": "yarn.io/gpu",
    "yarn.scheduler.capacity.resource-calculator": (
        "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator"
    ),
    "yarn.scheduler.capacity.root.queues": "default",
    "yarn.scheduler.capacity.root.default.capacity": "100",
    "yarn.scheduler.capacity.maximum-am-resource-percent": "1.0",
    "yarn.scheduler.minimum-allocation-mb": "256",
}
NODE = {"do": "add_node", "host": "n1", "memory_mib": 65_536, "vcores": 64, "gpus": 4}
SUBMIT = {"do": "submit", "key": "j", "user": "ann", "am_memory_mib": 256, "am_vcores": 1}
ASK = {"priority": 1, "count": 6, "memory_mib": 256, "vcores": 1, "gpus": 1, "resource_name": "*"}


@pytest.fixture
def jvm(tmp_path: Path) -> Iterator[ReplayJvm]:
    """A JVM of its own: its threads and descriptors are counted."""
    with ReplayJvm(tmp_path / "jvm.log") as started:
        yield started


@pytest.fixture
def attempt(jvm: ReplayJvm) -> Iterator[str]:
    """The attempt of a job that asks for six GPUs of four, at a height of four."""
    driver = jvm.connect()
    driver.replay_start(None, PROPERTIES)
    ask = {"do": "ask", "key": "j", "asks": [ASK]}
    events = driver.replay_step(1.0, [NODE, SUBMIT, ask])["events"]
    yield next(event["attempt"] for event in events if event["kind"] == "am_started")
    driver.replay_stop()
    driver.close()


def process_of(jvm: ReplayJvm) -> psutil.Process:
    assert jvm._process is not None
    return psutil.Process(jvm._process.pid)


def settled(count: Callable[[], int], most: int) -> int:
    """What a count comes down to: threads and descriptors of a closed connection go a moment later."""
    deadline_s = time.monotonic() + 20.0
    while count() > most and time.monotonic() < deadline_s:
        time.sleep(0.05)
    return count()


class Collecting(str):
    """A text that collects garbage while it is being sent."""

    __slots__ = ()

    def replace(self, *arguments: Any) -> str:
        gc.collect(0)
        return super().replace(*arguments)


def test_garbage_collected_inside_a_call_spoils_no_answer(jvm: ReplayJvm) -> None:
    """C01 (py4j#275): 32 callers create and drop proxies; each call echoes its number."""
    gateways = [jvm.connect() for _ in range(CALLERS)]
    gc.collect()
    gc.freeze()

    def call(caller: int) -> list[str]:
        wrong = []
        java = gateways[caller]._java.jvm.java
        for i in range(PROXIES // CALLERS):
            number = f"{caller}/{i}"
            proxy = java.lang.StringBuilder(Collecting(number))
            circle: list[Any] = [proxy]
            circle.append(circle)  # only the collector can find it
            if proxy.toString() != number:
                wrong.append(number)
        return wrong

    try:
        with ThreadPoolExecutor(CALLERS) as pool:
            assert [number for wrong in pool.map(call, range(CALLERS)) for number in wrong] == []
    finally:
        gc.unfreeze()
        for gateway in gateways:
            gateway.close()
    assert finalizer.ThreadSafeFinalizer.finalizers == {}, "no call of the collector's own"


def test_two_hundred_cores_one_after_the_other_leave_nothing_behind(
    jvm: ReplayJvm, attempt: str
) -> None:
    """C03 (py4j#206): the newest core is answered, older ones are not, and nothing of them stays."""
    process = process_of(jvm)

    def core() -> Gateway:
        gateway = jvm.connect()
        gateway.hello("core")
        return gateway

    for _ in range(5):
        core().close()
    before = core()
    epoch = before.epoch
    threads, descriptors = process.num_threads(), process.num_fds()
    for restart in range(RESTARTS):
        newest = core()
        assert newest.epoch == epoch + restart + 1
        with pytest.raises(GatewayError) as refused:
            before.take_events(10, 0)
        assert refused.value.kind == "STALE_EPOCH"
        before.close()
        (resync,) = newest.take_events(10, 0)["events"]
        assert [app["attempt"] for app in resync["apps"]] == [attempt]
        before = newest
    assert settled(process.num_threads, threads + SPARE) <= threads + SPARE
    assert settled(process.num_fds, descriptors + SPARE) <= descriptors + SPARE
    before.close()


def test_ten_thousand_messages_of_nonsense_end_nothing(jvm: ReplayJvm, attempt: str) -> None:
    """E5: refused whole, with a reason and a counter; the ResourceManager lives, and no thread is left over."""
    process = process_of(jvm)
    gateway = jvm.connect()
    gateway.hello("core")
    threads = process.num_threads()
    kinds = answers(gateway, Nonsense(5, attempt), MESSAGES)
    assert kinds["BAD_REQUEST"] > MESSAGES / 5
    assert kinds["OK"] > 0, "what was still right was done"
    assert "INTERNAL" not in kinds
    shout_at(jvm.port)
    assert settled(process.num_threads, threads) <= threads + 1
    assert gateway.hello("core")["epoch"] == 2
    (resync,) = gateway.take_events(10, 0)["events"]
    assert len(resync["apps"]) == 1, "no application was lost"
    (node,) = resync["nodes"]
    assert node["gpus"] == 4
    gateway.close()


def shout_at(port: int) -> None:
    """Connections without a token: noise, silence, an end in the middle, and one line without an end."""
    random = Random(6)

    def one(_: int) -> None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 5.0) as s:
            s.sendall(random.randbytes(random.randrange(200)))
            if random.random() < 0.5:
                s.sendall(b"\nc\nt\nhello\ns{}\ne\n")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(one, range(200)))


def test_one_message_of_ten_megabytes_is_refused_in_one_line(jvm: ReplayJvm, attempt: str) -> None:
    """E5: neither a text nor a list of any size is done or repeated in the answer."""
    gateway = jvm.connect()
    gateway.hello("core")
    huge = "x" * (10 * 1024 * 1024)
    effects: list[dict[str, Any]] = [
        {"id": huge, "op": "agent_reported", "node": "n1:1"},
        {"id": "1", "op": huge},
        {"id": "2", "op": "agent_reported", "node": huge},
        {"id": "3", "op": "release_gang", "attempt": attempt, "containers": [huge]},
    ]
    for effect in effects:
        (result,) = gateway.apply([effect])
        assert result["code"] in {"BAD_REQUEST", "NODE_STATE"}
        assert len(json.dumps(result)) < 600
    gateway.close()
