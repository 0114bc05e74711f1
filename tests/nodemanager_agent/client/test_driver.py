"""The driver's rung (cases E01, E03), with small executables in the place of `cuda-checkpoint` and CRIU.

The source and its copies are real processes; no GPU is needed, and none was used.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodemanager_agent.client.driver import Driver, DriverError, has_rights
from nodemanager_agent.client.wire import start_ticks

CUDA = """#!{python}
import os, sys
words = sys.argv[1:]
open({log!r}, "a").write("cuda " + words[1] + "\\n")
sys.exit(1 if words[1] in os.environ.get("CUDA_FAILS", "").split() else 0)
"""

CRIU = """#!{python}
import os, signal, subprocess, sys, time
words = sys.argv[1:]
open({log!r}, "a").write("criu " + words[0] + "\\n")
if words[0] == "--version":
    print("Version: " + os.environ.get("CRIU_VERSION", "4.1"))
elif words[0] in os.environ.get("CRIU_FAILS", "").split():
    print("Error (criu/x.c:1): no")
    sys.exit(1)
elif words[0] == "dump":
    os.kill(int(words[words.index("--tree") + 1]), signal.SIGSTOP)
else:
    life = os.environ.get("COPY_LIVES_S", "60")
    program = [sys.executable, "-c", "import time; time.sleep(" + life + ")"]
    copy = subprocess.Popen(program, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    open(words[words.index("--pidfile") + 1], "w").write(str(copy.pid))
"""


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the tools were called with; both are on the path."""
    log, tools = tmp_path / "log", tmp_path / "tools"
    tools.mkdir()
    log.touch()
    for name, text in (("cuda-checkpoint", CUDA), ("criu", CRIU)):
        (tools / name).write_text(text.format(python=sys.executable, log=str(log)))
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tools))
    return log


@pytest.fixture
def source() -> Iterator[int]:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    yield process.pid
    process.kill()
    process.wait()


def driver() -> Driver:
    return Driver(may=lambda: True, settle_s=1.2, limit_s=10)


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def assert_runs(pid: int) -> None:
    ends = time.monotonic() + 5
    while state(pid) == "T":
        assert time.monotonic() < ends, "left stopped"
        time.sleep(0.01)


def said(log: Path) -> list[str]:
    return log.read_text().splitlines()


@pytest.mark.parametrize(
    ("lacks", "reason"),
    [
        ("cuda-checkpoint", "no cuda-checkpoint"),
        ("criu", "no criu"),
        ("version", "criu 3.16 is older than 4.0"),
        ("nonsense", "criu 0.0 is older"),
        ("rights", "not allowed"),
    ],
)
def test_what_is_missing_is_found_before_anything_is_frozen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: Path, source: int, lacks: str, reason: str
) -> None:
    """E01: an unprivileged agent, criu 3.16, no cuda-checkpoint."""
    if lacks in ("cuda-checkpoint", "criu"):
        (tmp_path / "tools" / lacks).unlink()
    monkeypatch.setenv("CRIU_VERSION", {"version": "3.16", "nonsense": "?"}.get(lacks, "4.1"))
    tried = Driver(may=lambda: lacks != "rights")
    with pytest.raises(DriverError, match=reason) as raised:
        tried.copy(source, str(tmp_path / "images"), lambda _: True, 5)
    assert raised.value.code == "NO_DRIVER_CHECKPOINT"
    assert set(said(log)) <= {"criu --version"}
    assert not (tmp_path / "images").exists()
    assert_runs(source)


def test_suspend_and_resume_in_place(log: Path, source: int) -> None:
    tried = driver()
    tried.suspend(source)
    tried.resume(source)
    assert said(log) == ["cuda lock", "cuda checkpoint", "cuda restore", "cuda unlock"]


def test_a_suspend_that_fails_unlocks(
    monkeypatch: pytest.MonkeyPatch, log: Path, source: int
) -> None:
    """E01: toggling fails though all is there; the job is never left frozen."""
    monkeypatch.setenv("CUDA_FAILS", "checkpoint")
    with pytest.raises(DriverError) as raised:
        driver().suspend(source)
    assert raised.value.code == "FAILED"
    assert said(log)[-1] == "cuda unlock"
    assert_runs(source)


def test_a_copy_that_lives_and_steps_is_believed(tmp_path: Path, log: Path, source: int) -> None:
    began_s = time.monotonic()
    copy = driver().copy(source, str(tmp_path / "images"), lambda _: True, 5)
    assert time.monotonic() - began_s > 1.2
    assert start_ticks(copy) is not None
    assert state(source) == "T"  # kept, until the move is confirmed
    os.kill(copy, 9)
    assert said(log)[-2:] == ["criu dump", "criu restore"]


@pytest.mark.parametrize("trouble", ["dies", "does no step", "dump", "restore"])
def test_a_copy_that_is_none_leaves_the_source_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: Path, source: int, trouble: str
) -> None:
    """E03: the tool exits 0, and its process dies after a second; or it never steps; or a tool fails."""
    if trouble == "dies":
        monkeypatch.setenv("COPY_LIVES_S", "1")
    elif trouble in ("dump", "restore"):
        monkeypatch.setenv("CRIU_FAILS", trouble)
    seen: list[int] = []

    def has_stepped(pid: int) -> bool:
        seen.append(pid)
        return trouble != "does no step"

    with pytest.raises(DriverError) as raised:
        driver().copy(source, str(tmp_path / "images"), has_stepped, 0.3)
    assert raised.value.code == "FAILED"
    assert {"dies": "which ended", "does no step": "does no step"}.get(trouble, "Error") in str(
        raised.value
    )
    assert said(log)[-2:] == ["cuda restore", "cuda unlock"]
    assert_runs(source)
    assert all(start_ticks(pid) is None for pid in seen)


def test_rights_are_those_of_this_process() -> None:
    capabilities = int(
        next(
            line.split()[1]
            for line in Path("/proc/self/status").read_text().splitlines()
            if line.startswith("CapEff")
        ),
        16,
    )
    assert has_rights() == bool(capabilities & (1 << 21 | 1 << 40))
