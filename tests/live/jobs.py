"""Jobs of ours, submitted the `yarn jar` way to a cluster of this machine."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from tests.live.shells import Live, wait_until
from yarn_plugin.submit.client import client_jar

SMALL = ("gandiva.job.worker.memory=256m", "gandiva.job.am.memory=256m")
"""A gang's containers and its master fit on nodes of this machine."""

MEET = r"""
import json, os, sys, time, urllib.error, urllib.request

url, token = os.environ["GANDIVA_AM_URL"], open("gandiva-am.token").read().strip()


def call(path, body=None, secret=token):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url + path, data, {"Authorization": "Bearer " + secret})
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            return response.status, json.loads(response.read())
    except urllib.error.HTTPError as error:
        return error.code, {}


def meet(port):
    generation = int(os.environ["GANDIVA_GENERATION"])
    me = {"rank": int(os.environ["GANDIVA_RANK"]), "host": os.environ["NM_HOST"], "port": port}
    me.update(container_id=os.environ["CONTAINER_ID"], generation=generation)
    status, _ = call("/register", me)
    while status == 200:
        status, answer = call("/rendezvous?generation=%d" % generation)
        if status == 200 and answer["ready"]:
            return answer
        time.sleep(0.1)
    sys.exit("refused: %d" % status)
"""
"""What a launcher does to meet the others of its gang, for commands that run without one."""


class Submitted:
    """A job that was submitted, and the client that follows it."""

    def __init__(self, live: Live, client: subprocess.Popen[str], log: Path) -> None:
        self._live = live
        self.client = client
        self._log = log

    @property
    def app_id(self) -> str:
        """Once the client has said it."""
        wait_until(lambda: "application_" in self._out(), f"accepted: {self.progress()}")
        return next(w for w in self._out().split() if w.startswith("application_"))

    def _out(self) -> str:
        return self._log.with_suffix(".out").read_text()

    def progress(self) -> str:
        """What the client said on its way."""
        return self._log.read_text()

    def wait(self, limit_s: float = 120.0) -> int:
        """Its exit code."""
        return self.client.wait(timeout=limit_s)

    def logs(self, name: str = "stdout") -> list[str]:
        """What its containers wrote, the master's apart, in the order of their ids."""
        files = self._live.folder.logs.glob(f"node-*-containers/{self.app_id}/container_*/{name}")
        return [
            file.read_text()
            for file in sorted(files, key=lambda file: file.parent.name)
            if not file.parent.name.endswith("_000001")
        ]

    def processes(self, word: str) -> list[psutil.Process]:
        """Those in its containers whose command line has a word."""
        return [each for each in self._live.processes() if word in _words(each)]


def _words(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def submit(live: Live, name: str, command: str, *settings: str) -> Submitted:
    """Submit a job whose command is a line of shell."""
    words = [str(live.folder.yarn), "jar", str(client_jar()), "-executes", command]
    for setting in (*SMALL, f"gandiva.job.name={name}", *settings):
        words += ["-conf", setting]
    log = live.folder.log(f"job-{name}-{time.monotonic_ns()}")
    with log.open("w") as err, log.with_suffix(".out").open("w") as out:
        client = subprocess.Popen(words, stdout=out, stderr=err, text=True)
    return Submitted(live, client, log)


def python(folder: Path, name: str, program: str) -> str:
    """The command that runs a program, which is written to a folder."""
    file = folder / f"{name}.py"
    file.write_text(program)
    return f'"$GANDIVA_PYTHON" {file}'


def until(what: Callable[[], bool], said: str) -> None:
    """As `wait_until`, under a name that reads well here."""
    wait_until(what, said)
