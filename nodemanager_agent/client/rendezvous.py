"""Where the ranks of a gang meet: agreed through the job's ApplicationMaster before the command starts (DESIGN §6)."""

import http.client
import json
import os
import socket
import time
import urllib.error
import urllib.request
from typing import Any, Callable, Dict, List, Mapping, Optional

TOKEN_FILE = "gandiva-am.token"
_POLL_S = 0.3
_CALL_S = 10.0
_PORTS_MAX = 4


class NoRendezvous(Exception):  # noqa: N818 - what happened
    """The ApplicationMaster refused this worker, or its answer makes no sense."""


class HeldPort:
    """A port that is really free: bound until just before the command takes it."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.bind(("", 0))
        self.number = int(self._socket.getsockname()[1])

    def let_go(self) -> None:
        """Free it for the command."""
        self._socket.close()


def is_gang(environment: Mapping[str, str]) -> bool:
    """Whether an ApplicationMaster of ours said that there are others."""
    tasks = max(_number(environment, name, 1) for name in ("GANDIVA_WORLD_SIZE", "GANDIVA_TASKS"))
    return bool(environment.get("GANDIVA_AM_URL")) and tasks > 1


def meet(
    environment: Mapping[str, str], may_wait: Callable[[], bool] = lambda: True
) -> Dict[str, str]:
    """Register with the ApplicationMaster and wait for the others.

    Args:
        environment: ``GANDIVA_AM_URL``, ``GANDIVA_RANK``, ``GANDIVA_WORLD_SIZE``, ``GANDIVA_GENERATION``.
        may_wait: asked between two tries; False gives up.

    Returns:
        What the command needs: ``MASTER_ADDR``, ``MASTER_PORT``, ``RANK``, ``WORLD_SIZE``, ``LOCAL_RANK``,
        ``LOCAL_WORLD_SIZE``; with TensorFlow ``TF_CONFIG`` too.

    Raises:
        NoRendezvous: refused, or given up.
    """
    generation = _number(environment, "GANDIVA_GENERATION", 0)
    master = master_at(environment)
    port = _registered(master, environment, generation, may_wait)
    try:
        path = "/rendezvous?generation={}".format(generation)
        answer = master.call(path, None, may_wait)
        while not answer.get("ready"):
            if not may_wait():
                raise NoRendezvous("given up")
            time.sleep(_POLL_S)
            answer = master.call(path, None, may_wait)
    finally:
        port.let_go()
    return _environment(answer, environment)


def master_at(environment: Mapping[str, str]) -> "Master":
    """The job's master.

    Raises:
        NoRendezvous: there is no secret to show.
    """
    return Master(environment["GANDIVA_AM_URL"], _token())


def tell_moved(environment: Mapping[str, str]) -> None:
    """Tell the ApplicationMaster, if it is ours, that this worker lives on where it moved to.

    The end of this container is then no end of the job. One try: the scheduler tells it too.
    """
    if not environment.get("GANDIVA_AM_URL"):
        return
    try:
        worker = {"container_id": environment.get("CONTAINER_ID", "")}
        master_at(environment).call("/moved", worker, lambda: False)
    except NoRendezvous:
        pass


def _registered(
    master: "Master",
    environment: Mapping[str, str],
    generation: int,
    may_wait: Callable[[], bool],
) -> HeldPort:
    """A port that is ours and that no other worker of the job has named (case B05)."""
    refused: List[HeldPort] = []
    try:
        while True:
            port = HeldPort()
            worker = {
                "rank": _number(environment, "GANDIVA_RANK", 0),
                "host": environment.get("NM_HOST") or socket.gethostname(),
                "port": port.number,
                "container_id": environment.get("CONTAINER_ID", ""),
                "generation": generation,
            }
            try:
                master.call("/register", worker, may_wait)
            except NoRendezvous:
                refused.append(port)
                if len(refused) == _PORTS_MAX:
                    raise
            else:
                return port
    finally:
        for port in refused:
            port.let_go()


class Master:
    """The job's ApplicationMaster, as its tasks talk to it."""

    def __init__(self, url: str, token: str) -> None:
        self._url = url.rstrip("/")
        self._headers = {"Authorization": "Bearer " + token, "Content-Type": "application/json"}
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def call(
        self, path: str, body: Optional[Dict[str, Any]], may_wait: Callable[[], bool]
    ) -> Dict[str, Any]:
        """GET, or POST where there is a body; tried again while the ApplicationMaster is away or busy."""
        data = None if body is None else json.dumps(body).encode()
        while True:
            try:
                request = urllib.request.Request(self._url + path, data, self._headers)
                with self._opener.open(request, timeout=_CALL_S) as response:
                    text = response.read()
                answer = json.loads(text.decode()) if text.strip() else {}
            except urllib.error.HTTPError as error:
                if error.code < 500:
                    raise NoRendezvous("{}: HTTP {}".format(path, error.code)) from error
            except (OSError, ValueError, http.client.HTTPException):  # it is away, or was cut off
                answer = None
            else:
                if isinstance(answer, dict):
                    return answer
            if not may_wait():
                raise NoRendezvous("given up")
            time.sleep(_POLL_S)


def _environment(answer: Mapping[str, Any], environment: Mapping[str, str]) -> Dict[str, str]:
    rank = environment.get("GANDIVA_RANK", "0")
    try:
        found = {
            "MASTER_ADDR": str(answer["master_addr"]),
            "MASTER_PORT": str(int(answer["master_port"])),
            "RANK": rank,
            "WORLD_SIZE": str(int(answer["world_size"])),
            "LOCAL_RANK": "0",
            "LOCAL_WORLD_SIZE": "1",
        }
    except (KeyError, TypeError, ValueError) as error:
        raise NoRendezvous("an answer without {}".format(error)) from error
    if environment.get("GANDIVA_JOB_TYPE") == "tensorflow":
        cluster = answer.get("cluster") or {"worker": answer.get("workers") or []}
        task = {
            "type": environment.get("GANDIVA_TASK_TYPE", "worker"),
            "index": int(environment.get("GANDIVA_TASK_INDEX", rank)),
        }
        found["TF_CONFIG"] = json.dumps({"cluster": cluster, "task": task})
    return found


def _token() -> str:
    try:
        with open(os.environ.get("GANDIVA_AM_TOKEN_FILE") or TOKEN_FILE, encoding="ascii") as file:
            return file.read().strip()
    except OSError as error:
        raise NoRendezvous("no token of the ApplicationMaster: {}".format(error)) from error


def _number(environment: Mapping[str, str], name: str, default: int) -> int:
    try:
        return int(environment.get(name) or default)
    except ValueError as error:
        raise NoRendezvous("{}: {}".format(name, error)) from error
