"""The command line as a whole: help, version, exit codes (DESIGN §10), one line an error, never a traceback."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import typer

from gandiva_core.cli import compose, main
from gandiva_core.model.errors import GandivaError, InputError

CommandLine = Callable[..., subprocess.CompletedProcess[str]]


def test_version_names_the_commit(gandiva: CommandLine) -> None:
    done = gandiva("--version")
    assert done.returncode == 0
    assert done.stdout.startswith("gandiva ")
    assert "(commit " in done.stdout


def test_help_lists_the_commands(gandiva: CommandLine) -> None:
    done = gandiva("--help")
    assert done.returncode == 0
    for command in ("replay", "report", "recheck", "trace", "policy", "bench"):
        assert f"\n  {command} " in done.stdout
    assert "Not available" not in done.stdout
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["rerun"],
        ["replay", "--nonsense"],
        ["replay", "--seed", "one"],
        ["replay", "--seeds", "0"],
        ["replay", "--seed", "1", "--seeds", "2"],
        ["replay", "--shape", "round"],
        ["replay", "--on-bad", "ignore"],
        ["recheck"],
        ["report"],
        ["policy", "show"],
    ],
)
def test_wrong_usage_is_2_and_says_how(gandiva: CommandLine, arguments: list[str]) -> None:
    done = gandiva(*arguments)
    assert done.returncode == 2
    assert "Usage: gandiva" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (InputError("a.csv:3", "x", "y"), 3, "error: a.csv:3: found x; expected y"),
        (GandivaError("broken"), 1, "error: broken"),
        (PermissionError(13, "Permission denied", "/x/y"), 3, "error: /x/y: Permission denied"),
        (ZeroDivisionError("oops"), 1, "internal error: ZeroDivisionError: oops"),
        (
            ModuleNotFoundError("No module named 'matplotlib'", name="matplotlib"),
            3,
            "expected pip install 'gandiva-yarn[replay]'",
        ),
        (InputError("a\nb\x1b[31m", "x", "y"), 3, r"error: a\nb\x1b[31m: found x"),
    ],
)
def test_every_error_is_one_line(
    error: Exception,
    code: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail() -> Callable[..., None]:
        raise error

    monkeypatch.setattr(compose, "application", fail)
    monkeypatch.delenv(main.DEBUG, raising=False)
    assert main.run([]) == code
    shown = capsys.readouterr().err
    assert shown.count("\n") == 1
    assert said in shown


def test_an_interrupt_is_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt() -> Callable[..., None]:
        raise KeyboardInterrupt

    monkeypatch.setattr(compose, "application", interrupt)
    assert main.run([]) == 130
    assert capsys.readouterr().err == "gandiva: interrupted\n"


def test_an_interrupt_inside_a_command_is_told_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """typer ends the program with 130 and says nothing by itself."""
    app = typer.Typer()

    @app.command()
    def wait() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(compose, "application", lambda: app)
    assert main.run([]) == 130
    assert capsys.readouterr().err == "gandiva: interrupted\n"


def test_a_command_that_answered_its_interrupt_is_not_told_twice(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    app = typer.Typer()

    @app.command()
    def answer() -> None:
        raise typer.Exit(main.ExitCode.INTERRUPTED)

    monkeypatch.setattr(compose, "application", lambda: app)
    assert main.run([]) == 130
    assert capsys.readouterr().err == ""


def test_debugging_shows_where(gandiva: CommandLine, tmp_path: Path) -> None:
    done = gandiva("recheck", tmp_path / "absent.jsonl.zst", env={"GANDIVA_DEBUG": "1"})
    assert "Traceback" in done.stderr
    quiet = gandiva("recheck", tmp_path / "absent.jsonl.zst")
    assert quiet.returncode == 3
    assert "Traceback" not in quiet.stderr


def test_a_command_whose_parts_are_missing_says_what_to_install() -> None:
    error = ModuleNotFoundError("No module named 'py4j'", name="py4j.java_gateway")
    assert "gandiva-yarn[core]" in str(compose.missing("gandiva bench", error))
