"""`gandiva config`: exit codes, one line a finding, every format."""

from __future__ import annotations

import csv
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.site.sites import OWN, Change, write

CommandLine = Callable[..., subprocess.CompletedProcess[str]]
RECOVERY = {
    "yarn.resourcemanager.recovery.enabled": "true",
    "yarn.nm.liveness-monitor.expiry-interval-ms": "60000",
    "yarn.acl.enable": "true",
    "hadoop.http.authentication.simple.anonymous.allowed": "false",
    "yarn.webapp.enable-rest-app-submissions": "false",
}


@pytest.fixture
def folder(tmp_path: Path) -> Callable[..., Path]:
    """Write a site into a folder of that name."""

    def make(change: Change, name: str = "conf") -> Path:
        (tmp_path / name).mkdir()
        return write(tmp_path / name, change)

    return make


def test_a_good_site_is_0_and_silent(gandiva: CommandLine, folder: Callable[..., Path]) -> None:
    done = gandiva("config", "validate", "--conf-dir", folder(Change(True, yarn=RECOVERY)))
    assert (done.returncode, done.stdout) == (0, "")
    assert "could start" in done.stderr


def test_a_warning_is_0_and_with_strict_1(
    gandiva: CommandLine, folder: Callable[..., Path]
) -> None:
    conf = folder(Change(True, {"root.c.capacity": "5"}, RECOVERY))
    done = gandiva("config", "validate", "--conf-dir", conf)
    assert done.returncode == 0
    (line,) = done.stdout.splitlines()
    assert line.startswith(f"warning: {conf}/capacity-scheduler.xml:6: yarn.scheduler.capacity.")
    assert gandiva("config", "validate", "--conf-dir", conf, "--strict").returncode == 1


def test_an_error_is_1_and_each_finding_a_line(
    gandiva: CommandLine, folder: Callable[..., Path]
) -> None:
    change = Change(False, {"root.a.state": "O\nN"}, RECOVERY | {OWN + "mode": "fulll"})
    conf = folder(change)
    done = gandiva("config", "validate", "--conf-dir", conf)
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert len(lines) == 2
    assert all(line.startswith("error: ") for line in lines)
    assert lines[1].startswith(f"error: {conf}/yarn-site.xml:8: {OWN}mode: found 'fulll', expected")
    assert "Traceback" not in done.stderr
    rows = json.loads(gandiva("config", "validate", "--conf-dir", conf, "--format", "json").stdout)
    assert [row["severity"] for row in rows] == ["error", "error"]
    assert list(rows[0]) == ["severity", "place", "key", "found", "expected", "advice"]


def test_a_file_that_is_no_xml_is_3_in_one_line(
    gandiva: CommandLine, folder: Callable[..., Path]
) -> None:
    """H17."""
    conf = folder(Change(True))
    (conf / "capacity-scheduler.xml").write_text("../conf/capacity-scheduler.xml")
    for command in (["validate", "--conf-dir", conf], ["show", "--conf-dir", conf]):
        done = gandiva("config", *command)
        assert (done.returncode, done.stdout) == (3, "")
        (line,) = done.stderr.splitlines()
        assert "capacity-scheduler.xml:1: found '../conf/capacity-scheduler.xml', a path" in line
    assert gandiva("config", "diff", conf, conf).returncode == 3
    assert gandiva("config", "validate", "--conf-dir", conf / "absent").returncode == 3


def test_roles_look_at_other_things(gandiva: CommandLine, folder: Callable[..., Path]) -> None:
    conf = folder(Change(True, yarn=RECOVERY))
    node = gandiva("config", "validate", "--conf-dir", conf, "--nm").stdout
    assert "yarn.nodemanager.resource-type.yarn.io/gpu" in node
    client = gandiva("config", "validate", "--conf-dir", conf, "--client").stdout
    assert "yarn.resourcemanager.hostname" in client
    both = gandiva("config", "validate", "--conf-dir", conf, "--nm", "--client").stdout
    assert sorted(both.splitlines()) == sorted(node.splitlines() + client.splitlines())


def test_values_are_shown_with_their_origin(
    gandiva: CommandLine, folder: Callable[..., Path]
) -> None:
    conf = folder(Change(True, yarn={OWN + "mode": "full"}))
    arguments = ("config", "show", "--conf-dir", conf, "--format", "json")
    plain = {row["key"]: row for row in json.loads(gandiva(*arguments).stdout)}
    assert plain[OWN + "mode"] == {"key": OWN + "mode", "value": "full"}
    env = {"GANDIVA_HEIGHT_MAX": "2"}
    rows = json.loads(gandiva(*arguments, "--origin", env=env).stdout)
    origin = {row["key"]: row["origin"] for row in rows}
    assert origin[OWN + "mode"] == f"{conf}/yarn-site.xml:3"
    assert origin[OWN + "height.max"] == "environment GANDIVA_HEIGHT_MAX"
    assert gandiva(*arguments[:-2]).stdout.startswith("KEY ")


def test_differences_are_1_and_none_is_0(gandiva: CommandLine, folder: Callable[..., Path]) -> None:
    left = folder(Change(True), "left")
    right = folder(Change(True, yarn={OWN + "mode": "full"}), "right")
    same = gandiva("config", "diff", left, left)
    assert (same.returncode, same.stdout) == (0, "")
    done = gandiva("config", "diff", left, right, "--format", "csv")
    assert done.returncode == 1
    (row,) = csv.DictReader(done.stdout.splitlines())
    assert (row["key"], row["left"], row["right"]) == (OWN + "mode", "observe", "full")
    assert (row["left from"], row["right from"]) == ("default", f"{right}/yarn-site.xml:3")
