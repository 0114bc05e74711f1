"""How processes of a job talk: launcher with agent, ranks with launcher. JSON lines over unix sockets.

Each line is one object with ``op``; what is answered has ``id``, drawn by who asks.

Agent's socket (``GANDIVA_AGENT_SOCKET``); `L` launcher, or a lone rank whose command is not ours; `A` agent::

    L register  {container_id, pid, start_ticks, role: "launcher" | "rank", version, token?}    token: of an earlier one
    A welcome   {token, never: [...]}                or  refused {code, detail}, and the line is closed
    A start     {id, gpus, uuids, environment}       first devices: start the training process
    A suspend   {id, limit_s}                        all ranks, at the same mini-batch boundary
    A resume    {id, gpus, uuids, environment}
    A save      {id, folder}                         stop at a boundary; one replica's state is written there (G-68 B)
    A restore   {id, folder, gpus, uuids, environment}   a process that warmed up loads it and does one mini-batch
    A warm      {id, gpus, uuids, environment}       start the process up to the point where state would be loaded
    A release   {id}                                 the state is confirmed elsewhere: end the training process, quietly
    L done      {id, at_s, figures: {name: number}, minibatches}
    L failed    {id, code, detail}                   the ranks go on as they were
    L progress  {minibatches, minibatch_s, memory_mib, memory_peak_mib, memory_min_mib, ranks, method,
                 can_pack, can_move, can_resize, reason}      about once a second, and at once after a change
    L continuity {after, is_same, minibatches, detail}
    L ended     {exit_code, reason}                  the training command has ended

Launcher's socket (``GANDIVA_LAUNCHER_SOCKET``), `R` a rank's hook::

    R join      {pid, start_ticks, rank, world_size, framework, methods: [...], can_move, can_resize, reason}
    L joined    {}
    L suspend | resume | save | restore              as above; L sends suspend to every rank, and each answers done
    R done | failed | progress | continuity          as above, of this rank

A rank that answered done to suspend has copied its state, given its device memory back and waits; only then does the
launcher SIGSTOP the process group, and it sends SIGCONT before resume. A launcher whose agent is gone keeps the job as
it is and dials again.
"""

import json
import socket
from typing import Any, Dict, Iterator, Optional

LINE_BYTES_MAX = 1 << 20

AGENT_SOCKET = "GANDIVA_AGENT_SOCKET"
LAUNCHER_SOCKET = "GANDIVA_LAUNCHER_SOCKET"
CONTAINER_ID = "CONTAINER_ID"


class WireError(Exception):
    """The other side said something that is no message, or a line that is too long."""


class Line:
    """One end of a connection. Sending is whole or raises; reading gives one message at a time."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._pending = b""

    @classmethod
    def dial(cls, path: str, limit_s: float = 5.0) -> "Line":
        """Connect to a unix socket.

        Raises:
            OSError: nobody listens there.
        """
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(limit_s)
            connection.connect(path)
            connection.settimeout(None)
        except BaseException:
            connection.close()
            raise
        return cls(connection)

    def fileno(self) -> int:
        """For `select`."""
        return self._socket.fileno()

    def send(self, op: str, **values: Any) -> None:
        """Raises OSError where the other side is gone, WireError where the message is too long."""
        text = json.dumps({"op": op, **values}, separators=(",", ":")).encode() + b"\n"
        if len(text) > LINE_BYTES_MAX:
            raise WireError("a message of {} bytes".format(len(text)))
        self._socket.sendall(text)

    def read(self, limit_s: Optional[float] = None) -> Optional[Dict[str, Any]]:
        """The next message; None where the other side has closed.

        Raises:
            socket.timeout: nothing whole came in time; what did come is kept.
            WireError: it was no message.
        """
        self._socket.settimeout(limit_s)
        while b"\n" not in self._pending:
            part = self._socket.recv(65536)
            if not part:
                return None
            self._pending += part
            if len(self._pending) > LINE_BYTES_MAX and b"\n" not in self._pending:
                raise WireError("a line of over {} bytes".format(LINE_BYTES_MAX))
        text, _, self._pending = self._pending.partition(b"\n")
        try:
            message = json.loads(text.decode())
        except ValueError as error:
            raise WireError("no JSON: {}".format(error)) from None
        if not isinstance(message, dict) or not isinstance(message.get("op"), str):
            raise WireError("no object with op")
        return message

    def __iter__(self) -> Iterator[Dict[str, Any]]:
        while True:
            message = self.read()
            if message is None:
                return
            yield message

    def close(self) -> None:
        """Close; a second time is no error."""
        self._socket.close()


def start_ticks(pid: int) -> Optional[int]:
    """When a process started, in the kernel's ticks since boot; with its number it names it; None at its end."""
    try:
        with open("/proc/{}/stat".format(pid), encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in ("Z", "X") else int(fields[19])
