"""`gandiva core` as a process: exit codes, one line, a clean end."""

from __future__ import annotations

import os
import signal
import socket
import threading
from pathlib import Path

import pytest

from gandiva_core.cli.main import ExitCode, run
from gandiva_core.model.errors import InputError
from yarn_plugin.bridge.jvm import write_token
from yarn_plugin.live.process import opened, read_site, stopped_by_signals

SITE = """<configuration><property><name>yarn.scheduler.gandiva.{key}</name>
<value>{value}</value></property></configuration>"""
QUEUES = """<configuration>
<property><name>yarn.scheduler.capacity.root.queues</name><value>default</value></property>
<property><name>yarn.scheduler.capacity.root.default.capacity</name><value>100</value></property>
</configuration>"""


def conf(folder: Path, key: str, value: str) -> Path:
    (folder / "yarn-site.xml").write_text(SITE.format(key=key, value=value))
    (folder / "capacity-scheduler.xml").write_text(QUEUES)
    return folder


def test_no_gateway_is_one_line_and_exit_code_4(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_token(tmp_path / "token")
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    code = run(["core", "--port", str(port), "--token-file", str(tmp_path / "token")])
    assert code == ExitCode.UNREACHABLE
    assert capsys.readouterr().err == (
        f"gandiva: error: no gateway answers on 127.0.0.1:{port} (tried 3 times)\n"
    )


def test_a_token_that_others_may_read_is_not_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    token = tmp_path / "token"
    write_token(token)
    token.chmod(0o644)
    assert run(["core", "--port", "1", "--token-file", str(token)]) == ExitCode.BAD_INPUT
    assert "0644, expected 0600" in capsys.readouterr().err


def test_devices_are_shared_without_agents_only_where_the_site_says_so(tmp_path: Path) -> None:
    assert not read_site(None).oversubscribes_without_agent
    key = "oversubscribe-without-agent"
    assert not read_site(conf(tmp_path, key, "false")).oversubscribes_without_agent
    assert read_site(conf(tmp_path, key, "true")).oversubscribes_without_agent


def test_the_sites_keys_are_the_cores(tmp_path: Path) -> None:
    site = read_site(conf(tmp_path, "height.max", "2"))
    assert site.settings.height_max == 2
    with pytest.raises(InputError, match=r"yarn-site\.xml.*height\.max"):
        read_site(conf(tmp_path, "height.max", "none"))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_asks_for_the_end_and_handlers_come_back(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with stopped_by_signals() as stop:
        assert not stop.is_set()
        os.kill(os.getpid(), number)
        assert stop.wait(5.0)
    assert signal.getsignal(number) is before


def test_a_journal_is_closed_complete_or_not(tmp_path: Path) -> None:
    threads = threading.active_count()
    with opened(read_site(None), tmp_path / "j", clock=lambda: 5.0):
        pass
    with pytest.raises(RuntimeError), opened(read_site(None), tmp_path / "j", clock=lambda: 6.0):
        raise RuntimeError
    first, second = sorted((tmp_path / "j").glob("*.jsonl"))
    assert '"complete":true' in first.read_text()
    assert '"complete":false' in second.read_text()
    assert threading.active_count() == threads, "housekeeping has ended"
