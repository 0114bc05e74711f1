"""A core of one agent's tests: a real gRPC server that says what it is told to."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import grpc

from gandiva_core.messages import agents as a

R = TypeVar("R")


class FakeCore:
    """Serves one agent on a free loopback port; keeps what it heard."""

    def __init__(self, token: str, port: int = 0, epoch: int = 1) -> None:
        self.epoch = epoch
        self.heard: list[a.Report] = []
        self.refused = 0
        self.quantum_s = 60.0
        self.silent_s = 180.0
        self._token = token
        self._message_id = 0
        self._out: queue.Queue[bytes | None] = queue.Queue()
        handler = grpc.stream_stream_rpc_method_handler(self._attend)
        self._server = grpc.server(ThreadPoolExecutor(8), options=(("grpc.so_reuseport", 0),))
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(a.SERVICE, {a.METHOD: handler}),)
        )
        self.port = self._server.add_insecure_port(f"127.0.0.1:{port}")
        self._server.start()

    def _attend(self, requests: Iterator[bytes], context: Any) -> Iterator[bytes]:
        if dict(context.invocation_metadata()).get("authorization") != f"Bearer {self._token}":
            self.refused += 1
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "no")
        out = self._out = queue.Queue()
        hello = a.decode_report(next(requests))
        assert isinstance(hello, a.AgentHello)
        self._message_id = max(self._message_id, hello.last_message_id)
        out.put(a.encode(a.Welcome(self.epoch, 0.2, self.quantum_s, self.silent_s)))
        self.heard.append(hello)
        context.add_callback(lambda: out.put(None))
        reader = ThreadPoolExecutor(1)
        reader.submit(self._read, requests)
        while (data := out.get()) is not None:
            yield data

    def _read(self, requests: Iterator[bytes]) -> None:
        try:
            for data in requests:
                self.heard.append(a.decode_report(data))
        except grpc.RpcError:
            return

    def say(self, make: Callable[[int, int], a.Command]) -> int:
        """Send the command that `make` gives for an epoch and a message id; the id."""
        self._message_id += 1
        self._out.put(a.encode(make(self.epoch, self._message_id)))
        return self._message_id

    def say_raw(self, command: a.Command) -> None:
        """Send a command as it is."""
        self._out.put(a.encode(command))

    def expect(self, *workers: a.Expected) -> None:
        """All workers of the node."""
        self.say(lambda epoch, key: a.Expect(epoch, key, workers))

    def switch(
        self,
        suspend: tuple[str, ...] = (),
        run: tuple[a.RunWorker, ...] = (),
        limit_s: float = 30.0,
    ) -> int:
        """Switch workers; the command's id."""
        return self.say(lambda e, key: a.SwitchWorkers(e, key, key, suspend, run, limit_s))

    def of(self, kind: type[R]) -> list[R]:
        """What was heard of one kind."""
        return [each for each in list(self.heard) if isinstance(each, kind)]

    def switched(self, message_id: int) -> tuple[set[str], set[str], dict[str, str]]:
        """Stopped, started and failed (with the code) in answer to a command, so far."""
        mine = [each for each in self.of(a.Switched) if each.message_id == message_id]
        stopped = {c for each in mine for c, _ in each.stopped}
        started = {c for each in mine for c, _ in each.started}
        return stopped, started, {f.container_id: f.code for each in mine for f in each.failed}

    def worker(self, name: str) -> a.WorkerReport:
        """As last reported; EXPECTED where it was not."""
        last = next(e for e in reversed(self.heard) if isinstance(e, a.Measured | a.AgentHello))
        named = {each.container_id: each for each in last.workers}
        return named.get(name, a.WorkerReport(name, a.WorkerState.EXPECTED))

    def devices(self) -> tuple[a.Device, ...]:
        """As last reported."""
        last = next(e for e in reversed(self.heard) if isinstance(e, a.Measured | a.AgentHello))
        return last.devices

    def close(self) -> None:
        """End the stream and the server."""
        self._out.put(None)
        self._server.stop(0.1).wait()


def until(is_so: Callable[[], Any], limit_s: float = 20.0) -> None:
    """Wait until it is so.

    Raises:
        AssertionError: it is not, in time.
    """
    ends_s = time.monotonic() + limit_s
    while not is_so():
        assert time.monotonic() < ends_s, "it did not come true"
        time.sleep(0.02)
