"""A stand-in for Hadoop's daemons, so that bringing up and taking down is tested without a JVM.

Run as a program: ``stand_in.py rm PORT NODES_FILE`` answers the ResourceManager's REST calls, with the nodes that
the file lists; ``stand_in.py node NODES_FILE NODE_ID`` adds itself to the file; ``stand_in.py fail`` ends at once.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


def answer(path: str, nodes_file: Path) -> dict[str, Any]:
    if path.endswith("/info"):
        return {"clusterInfo": {"state": "STARTED", "hadoopVersion": "3.4.2"}}
    if path.endswith("/metrics"):
        return {"clusterMetrics": {"appsRunning": 1, "appsPending": 2}}
    if path.startswith("/jmx"):
        bean = nodes_file.with_suffix(".bean")
        return {"beans": [json.loads(bean.read_text())] if bean.exists() else []}
    lines = nodes_file.read_text().splitlines() if nodes_file.exists() else []
    started = dict(line.split() for line in lines)
    nodes = [node(name, int(at_ms)) for name, at_ms in started.items()]
    return {"nodes": {"node": nodes} if nodes else None}


def node(node_id: str, at_ms: int = 0) -> dict[str, Any]:
    return {
        "id": node_id,
        "lastHealthUpdate": at_ms,
        "state": "RUNNING",
        "numContainers": 3,
        "usedResource": gpus(2),
        "totalResource": gpus(4),
    }


def gpus(count: int) -> dict[str, Any]:
    named = [{"name": "memory-mb", "value": 8192}, {"name": "yarn.io/gpu", "value": count}]
    return {"memory": 8192, "resourceInformations": {"resourceInformation": named}}


class Handler(BaseHTTPRequestHandler):
    nodes_file = Path()

    def do_GET(self) -> None:
        body = json.dumps(answer(self.path, self.nodes_file)).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


def main(role: str, *arguments: str) -> None:
    if role == "fail":
        sys.exit("cannot start: port is taken")
    if role == "rm":
        Handler.nodes_file = Path(arguments[1])
        with ThreadingHTTPServer(("127.0.0.1", int(arguments[0])), Handler) as server:
            server.serve_forever()
    with Path(arguments[0]).open("a", encoding="utf-8") as nodes:
        nodes.write(f"{arguments[1]} {time.time_ns() // 1_000_000}\n")
    signal.pause()


if __name__ == "__main__":
    main(*sys.argv[1:])
