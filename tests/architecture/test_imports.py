"""Imports run one way: the contracts of pyproject.toml, whose names are sentences."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.architecture.sources import PURE, ROOT


def contracts() -> dict[str, dict[str, Any]]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return {each["name"]: each for each in settings["tool"]["importlinter"]["contracts"]}


def test_every_contract_is_kept() -> None:
    run = subprocess.run(
        [Path(sys.executable).parent / "lint-imports", "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert " 0 broken" in run.stdout


def test_the_purity_contract_lists_every_pure_part_there_is() -> None:
    name = "the pure part does no I/O, reads no clock, draws no hidden randomness"
    listed = set(contracts()[name]["source_modules"])
    there = {part.removesuffix(".py").replace("/", ".") for part in PURE if (ROOT / part).exists()}
    assert listed == there


@pytest.mark.parametrize("package", ["gandiva_core/model", "gandiva_core/messages"])
def test_what_the_core_is_made_of_needs_little(package: str) -> None:
    """The nouns and messages are read by the agent too, so they bring msgspec and nothing heavier."""
    heavy = ("numpy", "rich", "typer", "matplotlib", "py4j", "structlog")
    for path in (ROOT / package).rglob("*.py"):
        text = path.read_text()
        assert not [name for name in heavy if f"import {name}" in text or f"from {name}" in text], (
            path
        )
