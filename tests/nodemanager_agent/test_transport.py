"""The stream to the core: back-off, secrets, certificates, and nothing that forks (issue 5, item 1; case C06)."""

from __future__ import annotations

import ast
import asyncio
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import psutil
import pytest

import nodemanager_agent
from gandiva_core.messages import agents as a
from gandiva_core.model.errors import InputError
from gandiva_core.site.credentials import Credentials, Tls
from nodemanager_agent.settings import read
from nodemanager_agent.transport import CoreAddress, CoreStream
from tests.fakes.core import FakeCore, until
from tests.nodemanager_agent.nodes import Node

HELLO = a.AgentHello("n:1", "s", "0", (), can_suspend=True)
A = f"container_{os.getpid()}_t"


def attend(address: CoreAddress, is_done: Callable[[], bool], limit_s: float = 15.0) -> list[Any]:
    """Run a stream until it is done; the commands that came."""
    told: list[Any] = []

    async def run() -> None:
        stream = CoreStream(address, lambda: HELLO, told.append, lambda *_, **__: None)
        task = asyncio.create_task(stream.run())
        ends_s = time.monotonic() + limit_s
        while not is_done():
            assert time.monotonic() < ends_s, "it did not come true"
            if stream.is_open:
                stream.send(a.Measured(1.0, (), ()))
            await asyncio.sleep(0.02)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(run())
    return told


def test_it_dials_again_and_begins_with_the_truth() -> None:
    """A core that comes late, goes and comes back is found; each stream begins with a hello."""
    first = FakeCore("t")
    port = first.port
    try:
        told = attend(
            CoreAddress("127.0.0.1", port, Credentials("t")), lambda: bool(first.of(a.Measured))
        )
        assert isinstance(told[0], a.Welcome)
    finally:
        first.close()
    cores: list[FakeCore] = []

    def comes_back() -> bool:
        if not cores:
            time.sleep(1.0)
            cores.append(FakeCore("t", port, epoch=2))
        return bool(cores[0].of(a.Measured))

    try:
        told = attend(CoreAddress("127.0.0.1", port, Credentials("t")), comes_back)
        assert told[0].epoch == 2
    finally:
        cores[0].close()


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("openssl") is None:
        pytest.skip("no openssl")
    folder = tmp_path_factory.mktemp("tls")

    def openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)

    for name in ("authority", "stranger"):
        openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key",
                "-out", f"{name}.pem", "-days", "2", "-subj", f"/CN={name}")  # fmt: skip
    (folder / "san").write_text("subjectAltName=IP:127.0.0.1")
    for name, signer in (("core", "authority"), ("agent", "authority"), ("other", "stranger")):
        openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key",
                "-out", f"{name}.csr", "-subj", f"/CN={name}")  # fmt: skip
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", f"{signer}.pem", "-CAkey",
                f"{signer}.key", "-CAcreateserial", "-days", "2", "-out", f"{name}.pem",
                "-extfile", "san")  # fmt: skip
    return folder


@pytest.mark.parametrize("name", ["agent", "other"])
def test_certificates_of_the_authority_and_no_others(certificates: Path, name: str) -> None:
    """Mutual TLS: an agent with a stranger's certificate hears nothing."""
    folder = certificates
    heard: list[bytes] = []

    def serve(requests: Any, context: Any) -> Any:
        del context
        heard.append(next(requests))
        yield a.encode(a.Welcome(1, 1.0, 60.0, 180.0))

    server = grpc.server(ThreadPoolExecutor(2))
    handler = grpc.stream_stream_rpc_method_handler(serve)
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler(a.SERVICE, {a.METHOD: handler}),)
    )
    pair = ((folder / "core.key").read_bytes(), (folder / "core.pem").read_bytes())
    root = (folder / "authority.pem").read_bytes()
    port = server.add_secure_port(
        "127.0.0.1:0", grpc.ssl_server_credentials([pair], root, require_client_auth=True)
    )
    server.start()
    tls = Tls(folder / f"{name}.pem", folder / f"{name}.key", folder / "authority.pem")
    began_s = time.monotonic()

    def is_done() -> bool:
        return bool(heard) if name == "agent" else time.monotonic() > began_s + 2

    try:
        attend(CoreAddress("127.0.0.1", port, Credentials(tls=tls)), is_done)
        assert bool(heard) == (name == "agent")
    finally:
        server.stop(0).wait()


@pytest.mark.parametrize("tls", [[], ["certificate", "key", "authority"], ["key"]])
def test_a_secret_never_crosses_a_network_in_the_clear(tmp_path: Path, tls: list[str]) -> None:
    """Item 1: nothing without credentials, and nothing but loopback without certificates."""
    (tmp_path / "token").write_text("t")
    (tmp_path / "token").chmod(0o600)
    words = ["--node", "n:1", "--core", "10.0.0.1:7000", "--token-file", str(tmp_path / "token")]
    words += [word for name in tls for word in (f"--tls-{name}", str(tmp_path / name))]
    if len(tls) == 3:
        core = read(words).core
        assert core is not None
        assert core.credentials.token == "t"
        return
    told = "--core: .*10.0.0.1 without TLS" if not tls else "--tls-certificate: .*not set"
    with pytest.raises(InputError, match=told):
        read(words)
    with pytest.raises(InputError, match="neither a token nor certificates"):
        read(["--node", "n:1", "--core", "127.0.0.1:7000"])


def test_settings_are_the_nodes_own_files_under_its_flags(tmp_path: Path) -> None:
    """Item 1: the NodeManager's configuration, Hadoop's list of devices (A13), and flags that win."""
    token = tmp_path / "token"
    token.write_text("t")
    token.chmod(0o600)
    values = {
        "yarn.nodemanager.address": "worker-7:45454",
        "yarn.nodemanager.resource-plugins.gpu.allowed-gpu-devices": "0:0,2:3",
        "yarn.scheduler.gandiva.agents.port": "7000",
        "yarn.scheduler.gandiva.agents.token-file": str(token),
        "yarn.scheduler.gandiva.agent.virtual-step-ms": "250",
        "yarn.scheduler.gandiva.agent.virtual-gpus": "3",
    }
    lines = "".join(
        f"<property><name>{k}</name><value>{v}</value></property>" for k, v in values.items()
    )
    (tmp_path / "yarn-site.xml").write_text(f"<configuration>{lines}</configuration>")
    settings = read(["--conf-dir", str(tmp_path), "--virtual-gpus", "5"])
    assert settings.core is not None
    assert (settings.node, settings.core.port) == ("worker-7:45454", 7000)
    assert (settings.allowed, settings.virtual_gpus) == ((0, 2), 5)
    assert settings.virtual_step_s == pytest.approx(0.25)
    with pytest.raises(InputError, match="--core"):
        read(["--node", "n:1"])
    with pytest.raises(InputError, match="INDEX:MINOR"):
        read(["--conf-dir", str(tmp_path), "--allowed", "a,b"])


def test_the_agent_has_nothing_that_forks() -> None:
    """C06: a fork beside gRPC's threads hangs the child; so there is none to come."""
    folder = Path(nodemanager_agent.__file__).parent
    banned = {"subprocess", "multiprocessing", "pty"}
    found = []
    for path in folder.rglob("*.py"):
        if path.relative_to(folder).parts[0] in {"client", "workloads", "bench"}:  # other processes
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found += [a.name for a in node.names if a.name.split(".")[0] in banned]
            elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in banned:
                found.append(str(node.module))
            elif isinstance(node, ast.Attribute) and node.attr in {
                "fork",
                "forkpty",
                "posix_spawn",
            }:
                found.append(f"{path.name}: {node.attr}")
    assert found == []


def test_a_job_forks_a_thousand_times_while_commands_are_in_flight(tmp_path: Path) -> None:
    """C06: as a data loader does: no child hangs, commands go on, and nothing is left defunct."""
    script = (
        "import os, sys, time\n"
        "for n in range(1000):\n"
        "    pid = os.fork()\n"
        "    if pid == 0: os._exit(0)\n"
        "    assert os.waitpid(pid, 0)[1] == 0\n"
        f"open({str(tmp_path / 'done')!r}, 'w').write('1000')\n"
        "time.sleep(60)\n"
    )
    with Node(tmp_path, 1).ready() as node:
        core = node.core
        node.expect(A)
        job = node.launch(A, sys.executable, "-c", script)
        run = core.switch(run=(a.RunWorker(A, (0,)),))
        until(lambda: core.switched(run)[1] == {A})
        asked = 0
        while not (tmp_path / "done").exists():
            key = core.switch(run=(a.RunWorker(A, (0,)),))
            until(partial(_has_started, core, key))
            asked += 1
            assert job.poll() is None
        assert asked > 0
        below = psutil.Process(job.pid).children(recursive=True)
        assert not [each for each in below if each.status() == psutil.STATUS_ZOMBIE]
        assert psutil.Process(node.agent.pid).children() == []


def _has_started(core: FakeCore, key: int) -> bool:
    return core.switched(key)[1] == {A}
