"""`gandiva policy`: what is installed, and what it can switch."""

from __future__ import annotations

import csv
import json
import subprocess
from collections.abc import Callable

CommandLine = Callable[..., subprocess.CompletedProcess[str]]


def test_policies_are_listed_in_every_format(gandiva: CommandLine) -> None:
    rows = json.loads(gandiva("policy", "list", "--format", "json").stdout)
    by_name = {row["name"]: row for row in rows}
    assert "slicing" in by_name["gandiva"]["mechanisms"].split(", ")
    assert by_name["fifo"]["mechanisms"] == "none"
    text = gandiva("policy", "list", "--format", "csv").stdout
    assert [row["name"] for row in csv.DictReader(text.splitlines())] == list(by_name)
    table = gandiva("policy", "list").stdout.splitlines()
    assert table[0].split() == ["NAME", "MECHANISMS", "FROM", "PACKAGE"]
    assert gandiva("policy", "list", "--format", "wide").stdout.splitlines() == table


def test_a_policy_is_described(gandiva: CommandLine) -> None:
    done = gandiva("policy", "show", "gandiva")
    assert done.returncode == 0
    assert "gandiva:-slicing" in done.stdout


def test_an_unknown_policy_is_3_and_lists_what_there_is(gandiva: CommandLine) -> None:
    done = gandiva("policy", "show", "nonsense")
    assert done.returncode == 3
    (line,) = done.stderr.splitlines()
    assert "'nonsense'" in line
    assert "gandiva" in line
