"""A job's ApplicationMaster as its launchers see it: meeting, and another number of workers (docs/JOBS.md)."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

SECRET = "secret"
LAST = 3


class FakeMaster(ThreadingHTTPServer):
    """The stages of a resize as the real one keeps them; what a test wants is set by hand.

    Attributes:
        workers: containers by rank, by generation.
        can_resize: what each container last said, with the reason.
        fails_at: the stage that is never passed: it is called off instead; 0 for none.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.workers: dict[int, list[str]] = {}
        self.can_resize: dict[str, tuple[bool, str]] = {}
        self.fails_at = 0
        self.generation = 1
        self.passed = LAST
        self.off = ""
        self._ports: dict[tuple[int, str], int] = {}
        self._reached: dict[str, int] = {}
        self._lock = threading.Lock()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def resize(self, generation: int, containers: Sequence[str]) -> None:
        """The gang shall be these, by rank."""
        with self._lock:
            self.workers[generation] = list(containers)
            self._reached.clear()
            self.passed, self.off = 0, ""

    def answer(self, path: str, said: dict[str, Any]) -> dict[str, Any]:
        """What a request is answered with."""
        url = urlsplit(path)
        with self._lock:
            if url.path == "/standing":
                return self._standing(said)
            if url.path == "/register":
                self._ports[said["generation"], said["container_id"]] = said["port"]
                return {}
            return self._met(int(parse_qs(url.query)["generation"][0]))

    def _met(self, generation: int) -> dict[str, Any]:
        containers = self.workers[generation]
        ports = [self._ports.get((generation, each)) for each in containers]
        if None in ports:
            return {"ready": False}
        where = {"master_addr": "127.0.0.1", "master_port": ports[0]}
        return {"ready": True, "world_size": len(containers), **where}

    def _standing(self, said: dict[str, Any]) -> dict[str, Any]:
        container, generation = said["container_id"], max(self.workers)
        self.can_resize[container] = said["can_resize"], said["reason"]
        mine = said.get("generation")
        if mine == generation and self.passed < LAST and not self.off:
            if said.get("failed"):
                self.off = said["failed"]
            else:
                self._reach(container, said["stage"], generation)
        if mine:
            return {"resize": self._told(mine, container)}
        before, after = self.workers[self.generation], self.workers[generation]
        is_there = all(each in self._reached for each in after if each not in before)
        if self.passed < LAST and not self.off and container in before and is_there:
            return {"resize": self._told(generation, container)}
        return {}

    def _reach(self, container: str, stage: int, generation: int) -> None:
        self._reached[container] = max(stage, self._reached.get(container, 0))
        everybody = {*self.workers[self.generation], *self.workers[generation]}
        lowest = min(self._reached.get(each, -1) for each in everybody)
        if lowest >= self.fails_at > 0:
            self.off = "the test wants it"
            return
        self.passed = max(self.passed, lowest)
        if self.passed == LAST:
            self.generation = generation

    def _told(self, generation: int, container: str) -> dict[str, Any]:
        is_surplus = container not in self.workers[generation]
        size = len(self.workers[generation])
        told = {"generation": generation, "world_size": size, "is_surplus": is_surplus}
        return {**told, "passed": self.passed, "off": self.off}


class _Handler(BaseHTTPRequestHandler):
    server: FakeMaster

    def do_POST(self) -> None:
        self._reply(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def do_GET(self) -> None:
        self._reply({})

    def _reply(self, said: dict[str, Any]) -> None:
        is_known = self.headers["Authorization"] == f"Bearer {SECRET}"
        data = json.dumps(self.server.answer(self.path, said) if is_known else {}).encode()
        self.send_response(200 if is_known else 401)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        return
