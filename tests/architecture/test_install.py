"""docs/INSTALL.md can be run: its blocks are shell, each step is named once, and no block needs what no block sets."""

from __future__ import annotations

import re
import subprocess

from tests.architecture.sources import ROOT

BLOCK = re.compile(r"<!-- step: (?P<step>[^>]+?) -->\n```sh\n(?P<body>.*?)```", re.DOTALL)
SHOP, LOCAL = "variables of a shop", "variables of a local cluster"
STEPS = (
    SHOP,
    LOCAL,
    "before",
    "observe, write",
    "observe, check",
    "observe, restart",
    "observe, look",
    "place",
    "place, look",
    "full",
    "full, look",
    "back to observe",
    "back to stock",
)


def blocks() -> dict[str, str]:
    text = (ROOT / "docs" / "INSTALL.md").read_text()
    found = [(match["step"], match["body"]) for match in BLOCK.finditer(text)]
    assert len(found) == text.count("```sh")
    assert len({step for step, _ in found}) == len(found)
    return dict(found)


def test_the_steps_lead_there_and_back() -> None:
    assert tuple(blocks()) == STEPS


def test_every_block_is_shell() -> None:
    for step, body in blocks().items():
        done = subprocess.run(
            ["sh", "-n"], input=body, text=True, capture_output=True, check=False, timeout=20
        )
        assert done.returncode == 0, (step, done.stderr)


def test_both_kinds_of_cluster_set_what_the_steps_use() -> None:
    own = blocks()
    steps = "".join(body for step, body in own.items() if step not in (SHOP, LOCAL))
    used = set(re.findall(r"\$\{?([A-Z_]+)", steps))
    for kind in (SHOP, LOCAL):
        assert used <= set(re.findall(r"^([A-Z_]+)=", own[kind], re.MULTILINE))
        assert "restart_rm() {" in own[kind]


def test_the_shipped_step_is_observe() -> None:
    assert "<value>observe</value>" in blocks()["observe, write"]
