"""The connection itself: tokens, time-outs, what becomes of a JVM that is not there (case C05, FACTS §4)."""

from __future__ import annotations

import logging
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from yarn_plugin.bridge import jvm
from yarn_plugin.bridge.gateway import Gateway, GatewayError, json_object, read_token
from yarn_plugin.bridge.jvm import ReplayJvm, write_token

TOKEN = "0123456789abcdef"


def token_file(folder: Path, content: str = TOKEN + "\n", mode: int = 0o600) -> Path:
    file = folder / "token"
    file.write_text(content, encoding="utf-8")
    file.chmod(mode)
    return file


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """A server that accepts connections into its backlog and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def test_one_trailing_newline_is_no_part_of_the_token(tmp_path: Path) -> None:
    assert read_token(token_file(tmp_path)) == TOKEN


@pytest.mark.parametrize(
    ("content", "mode", "said"),
    [
        (TOKEN, 0o640, "0640, expected 0600"),
        (TOKEN + "\n" + TOKEN, 0o600, "newline in the token"),
        (TOKEN + "\n\n", 0o600, "newline in the token"),
        ("short", 0o600, "at least 16"),
        (TOKEN + "é", 0o600, "printable"),
    ],
)
def test_a_token_file_that_cannot_be_trusted_is_one_line(
    tmp_path: Path, content: str, mode: int, said: str
) -> None:
    with pytest.raises(GatewayError, match=said) as refused:
        read_token(token_file(tmp_path, content, mode))
    assert refused.value.kind == "TOKEN_FILE"
    assert "\n" not in str(refused.value)


def test_an_absent_token_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(GatewayError, match=r"nowhere.*No such file"):
        read_token(tmp_path / "nowhere")


def test_a_fresh_token_is_for_its_owner_only(tmp_path: Path) -> None:
    write_token(tmp_path / "token")
    assert len(read_token(tmp_path / "token")) == 64
    with pytest.raises(FileExistsError):
        write_token(tmp_path / "token")


def test_nobody_listening_is_said_after_three_tries(
    tmp_path: Path, listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = listener.getsockname()[1]
    listener.close()
    pauses: list[float] = []
    monkeypatch.setattr("yarn_plugin.bridge.gateway.time.sleep", pauses.append)
    with pytest.raises(GatewayError, match="tried 3 times") as refused:
        Gateway.connect(port, token_file(tmp_path))
    assert refused.value.kind == "UNREACHABLE"
    assert len(pauses) == 2


def test_a_server_that_never_answers_does_not_hold_the_caller(
    tmp_path: Path, listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("yarn_plugin.bridge.gateway.CONNECT_TRIES_MAX", 1)
    with pytest.raises(GatewayError) as refused:
        Gateway.connect(listener.getsockname()[1], token_file(tmp_path), connect_timeout_s=0.2)
    assert refused.value.kind == "UNREACHABLE"


def test_a_refusal_of_the_jvm_becomes_the_exception_it_names() -> None:
    text = '{"ok": false, "error": {"kind": "STALE_EPOCH", "message": "epoch: found 1,\\n not 2"}}'
    with pytest.raises(GatewayError, match="epoch: found 1, not 2") as refused:
        json_object(text)
    assert refused.value.kind == "STALE_EPOCH"


def test_java_is_looked_for_where_java_home_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(GatewayError, match="no bin/java") as refused:
        jvm.java_program()
    assert refused.value.kind == "NO_JAVA"
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").touch()
    assert jvm.java_program() == tmp_path / "bin" / "java"


def test_no_java_at_all_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(GatewayError, match="set JAVA_HOME"):
        jvm.java_program()


def test_an_unbuilt_plugin_names_the_command(tmp_path: Path) -> None:
    with pytest.raises(GatewayError, match="make plugin"):
        jvm.class_path(tmp_path)


# --- with a JVM -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def running() -> Iterator[ReplayJvm]:
    with ReplayJvm() as started:
        yield started


@pytest.mark.yarn
def test_a_wrong_token_is_one_line_and_tried_once(
    tmp_path: Path, running: ReplayJvm, caplog: pytest.LogCaptureFixture
) -> None:
    """Case C05: one clear line, no retry storm, nothing on the log."""
    with caplog.at_level(logging.INFO), pytest.raises(GatewayError) as refused:
        Gateway.connect(running.port, token_file(tmp_path))
    assert refused.value.kind == "WRONG_TOKEN"
    assert str(tmp_path) in str(refused.value)
    assert caplog.text == ""
    assert "Traceback" not in str(refused.value)


@pytest.mark.yarn
def test_a_client_without_a_token_runs_nothing(running: ReplayJvm) -> None:
    """FAULTS finding 4: a raw command before the token is answered by no Java method."""
    with socket.create_connection(("127.0.0.1", running.port), timeout=5) as raw:
        raw.sendall(b"c\nz:java.lang.System\ngetProperty\nsuser.name\ne\n")
        try:
            answer = raw.recv(4096)
        except ConnectionResetError:
            answer = b""
    assert not answer.startswith(b"!ys")


@pytest.mark.yarn
def test_a_line_without_end_is_cut_off(running: ReplayJvm) -> None:
    """FACTS §4: 67 MB without a newline exhausted a heap of 128 MB."""
    is_cut = False
    with socket.create_connection(("127.0.0.1", running.port), timeout=30) as raw:
        try:
            for _ in range(64):
                raw.sendall(b"x" * (1 << 20))
        except (BrokenPipeError, ConnectionResetError):
            is_cut = True
    assert is_cut
    with running.connect() as gateway, pytest.raises(GatewayError, match="call start first"):
        gateway.replay_step(0.0, [])


@pytest.mark.yarn
def test_what_the_jvm_refuses_keeps_its_kind(running: ReplayJvm, tmp_path: Path) -> None:
    with running.connect() as gateway:
        with pytest.raises(GatewayError, match="has no gateway") as refused:
            gateway.hello("test")
        assert refused.value.kind == "NO_GATEWAY"
        with pytest.raises(GatewayError, match=r"no yarn-site\.xml"):
            gateway.replay_start(tmp_path, {})


@pytest.mark.yarn
def test_the_token_is_on_no_command_line(running: ReplayJvm) -> None:
    token = read_token(running.token_file)
    assert token not in " ".join(running.command())


@pytest.mark.yarn
def test_two_connections_get_their_own_answers(running: ReplayJvm) -> None:
    answers: list[str] = []

    def ask() -> None:
        with running.connect() as gateway:
            for _ in range(50):
                try:
                    gateway.replay_query(nodes=True)
                except GatewayError as error:
                    answers.append(error.kind)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == ["NOT_STARTED"] * 200


@pytest.mark.yarn
def test_no_jvm_outlives_its_context(tmp_path: Path) -> None:
    with ReplayJvm(log_file=tmp_path / "jvm.log") as started:
        gateway = started.connect()
        process = started._process
        assert process is not None
        assert process.poll() is None
        token = started.token_file
    assert process.poll() is not None
    assert not token.exists()
    with pytest.raises(GatewayError) as gone:
        gateway.replay_step(0.0, [])
    assert gone.value.kind == "UNREACHABLE"


@pytest.mark.yarn
def test_a_killed_python_leaves_no_jvm_behind(tmp_path: Path) -> None:
    script = (
        "import sys, time; from yarn_plugin.bridge.jvm import ReplayJvm\n"
        "with ReplayJvm() as jvm:\n"
        "    print(jvm._process.pid, flush=True)\n"
        "    time.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, cwd=Path.cwd()
    ) as driver:
        assert driver.stdout is not None
        jvm_pid = int(driver.stdout.readline())
        driver.kill()
    deadline = time.monotonic() + 10
    while _is_running(jvm_pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _is_running(jvm_pid)


def _is_running(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


@pytest.mark.yarn
def test_a_jvm_that_cannot_start_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jvm, "JVM_FLAGS", ("-XX:NoSuchFlag",))
    log = tmp_path / "jvm.log"
    with (
        pytest.raises(GatewayError, match=r"ended at once: \S") as refused,
        ReplayJvm(log_file=log),
    ):
        pass
    assert refused.value.kind == "JVM_FAILED"
    assert "NoSuchFlag" in log.read_text(encoding="utf-8")
