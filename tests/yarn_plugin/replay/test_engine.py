"""What the engine `yarn` says where it cannot run; no JVM needed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest

from gandiva_core.model.errors import InputError
from gandiva_core.runtime.ports import Arm, RunSetup
from tests.builders import cluster, job
from yarn_plugin.bridge.gateway import GatewayError
from yarn_plugin.replay import engine
from yarn_plugin.replay.rm import RefusedError, ReplayedRm, ReplayError, last_line

STOCK = Arm("capacity", "capacity", {}, is_stock=True)


class BrokenGateway:
    """Answers every call with the same trouble."""

    def __init__(self, kind: str, message: str) -> None:
        self._error = GatewayError(kind, message)

    def _fail(self, *_: object, **__: object) -> NoReturn:
        raise self._error

    def __getattr__(self, name: str) -> Any:
        return self._fail


def setup(work_dir: Path, conf_dir: str | None = None) -> RunSetup:
    return RunSetup(STOCK, cluster(1), 1, 1, str(work_dir), conf_dir)


def broken(
    kind: str, message: str, log_file: Path
) -> tuple[Callable[[Path], ReplayedRm], list[str]]:
    """A way to connect to a JVM in trouble, and what happened to it."""
    ended: list[str] = []
    gateway: Any = BrokenGateway(kind, message)
    return lambda _: ReplayedRm(gateway, lambda: ended.append("ended"), str(log_file)), ended


class StartFails:
    """Stands for `ReplayJvm` where it cannot start."""

    kind = ""
    message = ""

    def __init__(self, *_: object, **__: object) -> None:
        self.is_closed = False

    def __enter__(self) -> NoReturn:
        raise GatewayError(self.kind, self.message)

    def close(self) -> None:
        self.is_closed = True


@pytest.mark.parametrize(
    ("kind", "message", "found", "expected"),
    [
        ("NO_JAVA", "found no java: set JAVA_HOME to a JDK 17", "found no java", "JDK 17"),
        (
            "NOT_BUILT",
            "the plug-in is not built in t: run `make plugin`",
            "not built in t;",
            "make plugin",
        ),
    ],
)
def test_what_is_missing_and_where_it_comes_from(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    kind: str,
    message: str,
    found: str,
    expected: str,
) -> None:
    monkeypatch.setattr(engine, "ReplayJvm", StartFails)
    monkeypatch.setattr(StartFails, "kind", kind)
    monkeypatch.setattr(StartFails, "message", message)
    with pytest.raises(InputError) as caught:
        engine.open_engine(setup(tmp_path))
    assert found in str(caught.value)
    assert expected in caught.value.expected
    assert "\n" not in str(caught.value)


def test_a_jdk_that_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The whole way from the environment: JAVA_HOME points to nothing."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(InputError, match="JAVA_HOME"):
        engine.open_engine(setup(tmp_path))


def test_a_jvm_that_does_not_come_up_names_its_log(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(engine, "ReplayJvm", StartFails)
    monkeypatch.setattr(StartFails, "kind", "JVM_FAILED")
    monkeypatch.setattr(StartFails, "message", "the JVM ended at once: Unrecognized option")
    with pytest.raises(ReplayError, match=r"Unrecognized option.*resourcemanager\.log"):
        engine.open_engine(setup(tmp_path))


def test_a_configuration_that_is_refused_is_bad_input(tmp_path: Path) -> None:
    connect, ended = broken("INTERNAL", "YarnRuntimeException: no child queue", tmp_path / "log")
    with pytest.raises(InputError, match="no child queue"):
        engine.open_engine(setup(tmp_path), connect=connect)
    assert ended == ["ended"]


@pytest.mark.parametrize("kind", ["UNREACHABLE", "TIMEOUT", "BROKEN"])
def test_a_jvm_that_is_gone_is_told_with_its_last_words(tmp_path: Path, kind: str) -> None:
    log_file = tmp_path / "log"
    log_file.write_text("first\njava.lang.OutOfMemoryError: Java heap space\n\n", encoding="utf-8")
    connect, ended = broken(kind, "the JVM went away", log_file)
    with pytest.raises(ReplayError) as caught:
        engine.open_engine(setup(tmp_path), connect=connect)
    assert not isinstance(caught.value, RefusedError)
    assert f"{log_file}: java.lang.OutOfMemoryError: Java heap space" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert ended == ["ended"]


def test_a_log_that_is_empty_or_absent_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("\n", encoding="utf-8")
    assert last_line(tmp_path / "empty") == "it said nothing"
    assert last_line(tmp_path / "absent") == "no log"


def test_jobs_go_to_two_queues_by_turns() -> None:
    assert [engine.by_parity(n, job()) for n in range(3)] == ["root.even", "root.odd", "root.even"]


def test_of_a_daemon_that_refused_to_start_its_reason_is_said(tmp_path: Path) -> None:
    """Hadoop writes the reason, a stack and a banner."""
    log_file = tmp_path / "resourcemanager.log"
    log_file.write_text(
        "10:00 ERROR ResourceManager: Error starting ResourceManager\n"
        'YarnRuntimeException: yarn.key: found "x", expected y\n'
        "\tat org.example.Service.init(Service.java:164)\n"
        "\t... 12 more\n"
        "10:00 INFO ResourceManager: SHUTDOWN_MSG: \n"
        "/****************\nSHUTDOWN_MSG: Shutting down at host\n****************/\n",
        encoding="utf-8",
    )
    assert last_line(log_file) == 'YarnRuntimeException: yarn.key: found "x", expected y'
