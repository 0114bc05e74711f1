"""How processes of a job talk: launcher with agent, ranks with launcher. JSON lines over unix sockets.

Each line is one object with ``op``; what is answered has ``id``, drawn by who asks.

Agent's socket (``GANDIVA_AGENT_SOCKET``); `L` launcher, or a lone rank whose command is not ours; `A` agent::

    L register  {container_id, pid, start_ticks, role: "launcher" | "rank", version, token?, state, gpus, asked}
                                                     token: of an earlier one; state: as in `WorkerState`, or saved;
                                                     asked: devices of its container (``GANDIVA_GPUS``), null: not known
    A welcome   {token, never: [...]}                or  refused {code, detail}, and the line is closed
    A start     {id, gpus, uuids, environment}       first devices: start the training process
    A suspend   {id, limit_s, may_stop?}             all ranks, at the same mini-batch boundary; may_stop: where no rank
                                                     is ours, SIGSTOP will do, though it frees no device memory
    A resume    {id, gpus, uuids, environment}
    A save      {id, folder}                         stop at a boundary; one replica's state is written there (G-68 B)
    A restore   {id, folder, gpus, uuids, environment}   a process that warmed up loads it and does one mini-batch;
                                                     of a resize with holds: true, and then waits for a resume
    A warm      {id, gpus, uuids, environment}       start the process up to the point where state would be loaded
    A release   {id}                                 the state is confirmed elsewhere: end the training process, quietly
    L done      {id, at_s, figures: {name: number}, minibatches}
    L failed    {id, code, detail}                   the ranks go on as they were
    L progress  {minibatches, minibatch_s, memory_mib, memory_peak_mib, memory_min_mib,
                 utilisation_ratio, ranks, method, can_pack, can_move, can_resize, reason,
                 step?, metric?}                  about once a second, and at once after a change; step, metric: as in
                                                  the last report of a rank
    L continuity {after, is_same, minibatches, detail}
    L ended     {exit_code, reason}                  the training command has ended

Launcher's socket (``GANDIVA_LAUNCHER_SOCKET``), `R` a rank's hook::

    R join      {pid, start_ticks, rank, world_size, local_world_size, framework, methods: [...], ring, is_warm,
                 can_pack, can_move, can_resize, reason}       ring: path of its step ring (`ring.py`)
    L joined    {}
    L suspend | resume | save | restore              as above; L sends suspend to every rank, and each answers done
    L probe     {id}                                 answered at the next boundary; nothing stops
    L cancel    {id}                                 of a suspend: forget it, or go on where it was done
    R done | failed | continuity                     as above, of this rank
    R report    {step, metric}                       by the script: how good its model is

A rank that answered done to suspend has copied its state, given its device memory back and waits; only then does the
launcher SIGSTOP the process group, and it sends SIGCONT before resume. A launcher whose agent is gone keeps the job as
it is and dials again.
"""

import json
import select
import socket
from typing import Any, Dict, Iterable, Iterator, List, Optional

LINE_BYTES_MAX = 1 << 20

AGENT_SOCKET = "GANDIVA_AGENT_SOCKET"
LAUNCHER_SOCKET = "GANDIVA_LAUNCHER_SOCKET"
CONTAINER_ID = "CONTAINER_ID"
ASKED_GPUS = "GANDIVA_GPUS"
"""Set by the master: how many devices a container asked for."""


class WireError(Exception):
    """The other side said something that is no message, or a line that is too long."""


class Line:
    """One end of a connection. Sending is whole or raises; reading gives one message at a time.

    Attributes:
        send_s: how long sending may take; None for as long as it takes.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._pending = b""
        self.send_s: Optional[float] = None

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
        """Raises OSError where the other side is gone or does not read, WireError where the message is too long."""
        text = json.dumps({"op": op, **values}, separators=(",", ":")).encode() + b"\n"
        if len(text) > LINE_BYTES_MAX:
            raise WireError("a message of {} bytes".format(len(text)))
        self._socket.settimeout(self.send_s)
        try:
            self._socket.sendall(text)
        finally:
            self._socket.settimeout(None)  # `poll` would wait as long

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
        return _message(text)

    def poll(self) -> Optional[List[Dict[str, Any]]]:
        """All messages that are there now, without waiting; None where the other side has closed.

        Raises:
            WireError: one of them was no message.
        """
        try:
            part = self._socket.recv(LINE_BYTES_MAX, socket.MSG_DONTWAIT)
        except (BlockingIOError, InterruptedError):
            part = None
        except OSError:
            part = b""
        self._pending += part or b""
        messages = []
        while b"\n" in self._pending:
            text, _, self._pending = self._pending.partition(b"\n")
            messages.append(_message(text))
        if len(self._pending) > LINE_BYTES_MAX:
            raise WireError("a line of over {} bytes".format(LINE_BYTES_MAX))
        return messages if messages or part != b"" else None

    def __iter__(self) -> Iterator[Dict[str, Any]]:
        while True:
            message = self.read()
            if message is None:
                return
            yield message

    def close(self) -> None:
        """Close; a second time is no error."""
        self._socket.close()


def _message(text: bytes) -> Dict[str, Any]:
    try:
        message = json.loads(text.decode())
    except (ValueError, RecursionError) as error:
        raise WireError("no JSON: {}".format(error)) from None
    if not isinstance(message, dict) or not isinstance(message.get("op"), str):
        raise WireError("no object with op")
    return message


def wait_readable(readers: Iterable[Any], limit_s: Optional[float]) -> None:
    """Until one of them may be read; None for as long as it takes. Unlike `select` with any number of open files."""
    poll = select.poll()
    for reader in readers:
        poll.register(reader, select.POLLIN)
    poll.poll(None if limit_s is None else max(0.0, limit_s) * 1000.0)


def start_ticks(pid: int) -> Optional[int]:
    """When a process started, in the kernel's ticks since boot; with its number it names it; None at its end."""
    try:
        with open("/proc/{}/stat".format(pid), encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in ("Z", "X") else int(fields[19])
