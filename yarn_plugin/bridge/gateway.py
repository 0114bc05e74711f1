"""The connection to a JVM: the only module that imports py4j.

Python is always the caller. Every call sends one JSON text and gets one JSON text; docs/BRIDGE.md
describes both. Every failure is a ``GatewayError`` whose message is one line for people.
"""

from __future__ import annotations

import json
import logging
import socket
import stat
import time
from pathlib import Path
from typing import Any, Final, Protocol, Self, TypeAlias

from py4j.java_gateway import GatewayClient, GatewayConnection, GatewayParameters, JavaGateway
from py4j.protocol import Py4JAuthenticationError, Py4JError, Py4JJavaError, Py4JNetworkError

# py4j logs a traceback for every refused connection; what matters is in the exception.
logging.getLogger("py4j").setLevel(logging.CRITICAL)

LOOPBACK: Final = "127.0.0.1"
PROTOCOL: Final = 1
CONNECT_TRIES_MAX: Final = 3
CONNECT_PAUSE_S: Final = 0.2
TOKEN_LENGTH_MIN: Final = 16
READ_BUFFER_BYTES: Final = 1 << 20

JsonObject: TypeAlias = dict[str, Any]


class GatewayError(Exception):
    """The JVM could not be asked, or refused.

    Attributes:
        kind: one upper-case word: of the protocol (``STALE_EPOCH``, ``BAD_REQUEST`` …) or of this
            module (``TOKEN_FILE``, ``WRONG_TOKEN``, ``UNREACHABLE``, ``TIMEOUT``, ``BROKEN``).
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(" ".join(message.split()))
        self.kind = kind


class JavaEntry(Protocol):
    """A Java object whose methods take and return JSON texts."""

    def __getattr__(self, name: str) -> Any:
        """Return the Java method of this name."""


class _Client(GatewayClient):  # type: ignore[misc]  # py4j ships no types
    """A client with a time-out for connecting, and no Nagle delay on what it sends."""

    connect_timeout_s: float = 5.0
    read_timeout_s: float = 30.0

    def _create_connection(self) -> Any:
        connection = GatewayConnection(self.gateway_parameters, self.gateway_property)
        connection.socket.settimeout(self.connect_timeout_s)
        connection.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            connection.start()
        except BaseException:
            # Refused: py4j would leave both to the garbage collector.
            stream = getattr(connection, "stream", None)
            if stream is not None:
                stream.close()
            connection.socket.close()
            raise
        # py4j's stream reads 8 KiB at a time; a batch of 1,000 events is 230 KB.
        connection.stream.close()
        connection.stream = connection.socket.makefile("rb", buffering=READ_BUFFER_BYTES)
        connection.socket.settimeout(self.read_timeout_s)
        return connection


def read_token(token_file: Path) -> str:
    """Read the secret of the bridge.

    Raises:
        GatewayError: kind ``TOKEN_FILE``: absent, readable by others, not one line, too short.
    """
    try:
        mode = stat.S_IMODE(token_file.stat().st_mode)
        text = token_file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise GatewayError(
            "TOKEN_FILE", f"token file {token_file}: {getattr(error, 'strerror', None) or error}"
        ) from error
    token = text.removesuffix("\n")
    if mode & 0o177:
        found = f"rights are {mode:04o}, expected 0600"
    elif "\n" in token or "\r" in token:
        found = "newline in the token, expected one line"
    elif len(token) < TOKEN_LENGTH_MIN or not token.isascii() or not token.isprintable():
        found = f"expected at least {TOKEN_LENGTH_MIN} printable characters"
    else:
        return token
    raise GatewayError("TOKEN_FILE", f"token file {token_file}: {found}")


class Gateway:
    """One connection to a JVM. Not shared between threads; use as a context manager."""

    def __init__(self, java: JavaGateway, port: int) -> None:
        self._java = java
        self._port = port
        self._replay: JavaEntry | None = None
        self._scheduler: JavaEntry | None = None
        self.epoch = 0
        self._sequence = 0

    @classmethod
    def connect(
        cls,
        port: int,
        token_file: Path,
        read_timeout_s: float = 30.0,
        connect_timeout_s: float = 5.0,
    ) -> Self:
        """Connect to the gateway that listens on this loopback port.

        A refused connection is tried ``CONNECT_TRIES_MAX`` times, a wrong token once.

        Raises:
            GatewayError: kind ``TOKEN_FILE``, ``WRONG_TOKEN`` or ``UNREACHABLE``.
        """
        parameters = GatewayParameters(
            address=LOOPBACK,
            port=port,
            auth_token=read_token(token_file),
            enable_memory_management=False,
            read_timeout=read_timeout_s,
        )
        client = _Client(gateway_parameters=parameters)
        client.connect_timeout_s = connect_timeout_s
        client.read_timeout_s = read_timeout_s
        for attempt in range(1, CONNECT_TRIES_MAX + 1):
            try:
                client._give_back_connection(client._create_connection())  # eager
                break
            except Py4JAuthenticationError as error:
                raise GatewayError(
                    "WRONG_TOKEN",
                    f"the gateway on port {port} refused the token of {token_file}:"
                    " it was started with another one",
                ) from error
            except Py4JNetworkError as error:
                if attempt == CONNECT_TRIES_MAX:
                    raise GatewayError(
                        "UNREACHABLE",
                        f"no gateway answers on {LOOPBACK}:{port} (tried {attempt} times)",
                    ) from error
                time.sleep(CONNECT_PAUSE_S)
        return cls(JavaGateway(gateway_client=client, gateway_parameters=parameters), port)

    def __enter__(self) -> Self:
        """Return the open gateway."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connection."""
        self.close()

    def close(self) -> None:
        """Close the connection; the JVM stays."""
        self._java.close()

    # --- the scheduler's gateway -----------------------------------------------------------------

    def hello(self, client: str, managed: str = "") -> JsonObject:
        """Open a session: a new epoch, from which on older sessions are refused.

        Args:
            client: who says it.
            managed: which child of the ResourceManager this process is; empty for none.

        Raises:
            GatewayError: kind ``NO_GATEWAY`` when the scheduler of this JVM is not Gandiva's, ``MANAGED`` when it
                talks to its own child only.
        """
        if self._scheduler is None:
            self._scheduler = self._call(self._java.entry_point.gateway)
        if self._scheduler is None:
            raise GatewayError("NO_GATEWAY", "the scheduler of this JVM has no gateway")
        request = {"client": client, "protocol": PROTOCOL, "managed": managed}
        reply = self.ask(self._scheduler.hello, request)
        self.epoch = int(reply["epoch"])
        self._sequence = 0
        return reply

    def take_events(self, count_max: int, wait_ms: int) -> JsonObject:
        """Return the next events, waiting up to ``wait_ms`` (at most 400) for the first one."""
        return json_object(self.take_events_text(count_max, wait_ms))

    def take_events_text(self, count_max: int, wait_ms: int) -> str:
        """Return the next events as JSON text, undecoded."""
        request = {"epoch": self.epoch, "max": count_max, "wait_ms": wait_ms}
        return self.ask_text(self._session().takeEvents, json.dumps(request))

    def apply(self, effects: list[JsonObject]) -> list[JsonObject]:
        """Apply effects in order; return one result for each (``id``, ``code``, ``detail`` …)."""
        self._sequence += 1
        request = {"epoch": self.epoch, "seq": self._sequence, "effects": effects}
        results: list[JsonObject] = self.ask(self._session().apply, request)["results"]
        return results

    def _session(self) -> JavaEntry:
        if self._scheduler is None:
            raise GatewayError("NO_SESSION", "say hello first")
        return self._scheduler

    # --- the replay harness ----------------------------------------------------------------------

    def replay_start(
        self, conf_dir: Path | None, properties: dict[str, str], epoch_s: float = 1.0
    ) -> JsonObject:
        """Start a ResourceManager in the JVM with this configuration."""
        request = {
            "conf_dir": None if conf_dir is None else str(conf_dir.absolute()),
            "properties": properties,
            "epoch_s": epoch_s,
        }
        return self.ask(self._harness().start, request)

    def replay_configuration(self) -> dict[str, str]:
        """Return the effective configuration of the running ResourceManager."""
        reply = json_object(self._call(self._harness().configuration))
        configuration: dict[str, str] = reply["configuration"]
        return configuration

    def replay_step(
        self, now_s: float, actions: list[JsonObject], rounds: int | None = None
    ) -> JsonObject:
        """Move virtual time to ``now_s``, do the actions; return ``events`` and ``stats``."""
        request: JsonObject = {"now_s": now_s, "actions": actions}
        if rounds is not None:
            request["rounds"] = rounds
        return self.ask(self._harness().step, request)

    def replay_query(self, **question: object) -> JsonObject:
        """Ask about the ResourceManager's state, as ``replay_query(nodes=True)``."""
        return self.ask(self._harness().query, question)

    def replay_stop(self) -> None:
        """Stop the ResourceManager; the JVM stays and can start another one."""
        json_object(self._call(self._harness().stop))
        self._scheduler = None

    def _harness(self) -> JavaEntry:
        if self._replay is None:
            self._replay = self._call(self._java.entry_point.replay)
        if self._replay is None:
            raise GatewayError("NO_REPLAY", "this JVM has no replay harness")
        return self._replay

    # --- one call --------------------------------------------------------------------------------

    def ask(self, method: Any, request: JsonObject) -> JsonObject:
        """Send one request to a Java method; return its reply."""
        return json_object(self.ask_text(method, json.dumps(request)))

    def ask_text(self, method: Any, request: str) -> str:
        """Send one request text to a Java method; return its reply undecoded."""
        text: str = self._call(method, request)
        return text

    def _call(self, method: Any, *arguments: str) -> Any:
        try:
            return method(*arguments)
        except Py4JAuthenticationError as error:
            raise GatewayError("WRONG_TOKEN", "the gateway refused the token") from error
        except Py4JJavaError as error:
            message = str(error.java_exception).splitlines()[0]
            raise GatewayError("BROKEN", f"the JVM failed: {message}") from error
        except Py4JNetworkError as error:
            if isinstance(error.cause, TimeoutError):
                raise GatewayError(
                    "TIMEOUT", f"no answer on port {self._port} in time; see the JVM's log"
                ) from error
            raise GatewayError(
                "UNREACHABLE", f"the JVM on port {self._port} went away; see its log"
            ) from error
        except Py4JError as error:
            raise GatewayError("BROKEN", str(error)) from error


def json_object(text: str) -> JsonObject:
    """Decode a reply; a refusal becomes the exception it names.

    Raises:
        GatewayError: with the kind and the message of the reply.
    """
    reply: JsonObject = json.loads(text)
    if not reply.get("ok"):
        problem = reply.get("error", {})
        raise GatewayError(str(problem.get("kind", "BROKEN")), str(problem.get("message", "")))
    return reply
