"""The root files say the same thing as the code."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import gandiva_core
from gandiva_core.config.keys import KEYS
from gandiva_core.site.hadoop_xml import read_file
from tests.architecture.sources import ROOT

PIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9][A-Za-z0-9.!+_-]*")
LINK = re.compile(r"\[[^\]]+\]\((?!https?:)(?P<target>[^)#\s]+)(?:#[^)]*)?\)")
MAKE_TARGET = re.compile(r"`make (?P<target>[a-z-]+)`")


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]  # type: ignore[no-any-return]


def documents() -> list[Path]:
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    return found + [path for path in ROOT.glob("*/README.md") if path.parent.name[0] != "."]


def test_pins_are_names_and_versions_only_sorted_and_each_once() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    assert [line for line in lines if not PIN.fullmatch(line)] == []
    names = [line.partition("==")[0].lower() for line in lines]
    assert names == sorted(set(names))


def test_every_requirement_is_pinned() -> None:
    """Frameworks of the job side and extras of later versions are installed by those who want them."""
    pinned = {
        line.partition("==")[0].lower() for line in (ROOT / "constraints.txt").read_text().split()
    }
    extras = project()["optional-dependencies"]
    wanted = [*project()["dependencies"], *extras["core"], *extras["replay"], *extras["dev"]]
    names = {re.split(r"[\[<>=!,; ]", line)[0].lower() for line in wanted} - {"gandiva-yarn"}
    assert names - pinned == set()


def test_the_version_is_the_same_everywhere() -> None:
    version = project()["version"]
    assert gandiva_core.__version__ == version
    pom = (ROOT / "yarn_plugin" / "pom.xml").read_text()
    assert f"<artifactId>gandiva-yarn</artifactId>\n  <version>{version}</version>" in pom


def test_the_documents_name_every_command() -> None:
    commands = project()["entry-points"]["gandiva.commands"]
    text = "\n".join(path.read_text() for path in documents())
    assert [name for name in commands if f"gandiva {name}" not in text] == []


def test_the_two_commands_come_first() -> None:
    text = (ROOT / "README.md").read_text()
    assert text.index("make replay") < text.index("make test")
    assert text.index("make test") < 2500


def test_every_make_target_in_a_document_exists() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    named = {
        (path.name, match["target"])
        for path in documents()
        for match in MAKE_TARGET.finditer(path.read_text())
    }
    assert {(name, target) for name, target in named if target not in targets} == set()


def test_links_between_documents_lead_somewhere() -> None:
    broken = [
        f"{path.relative_to(ROOT)}: {match['target']}"
        for path in documents()
        for match in LINK.finditer(path.read_text())
        if not (path.parent / match["target"]).exists()
    ]
    assert broken == []


def test_every_key_is_documented_with_its_default() -> None:
    text = (ROOT / "docs" / "CONFIGURATION.md").read_text()
    rows = [f"| `{key.name}` | `{key.default}` |" for key in KEYS if key.default]
    rows += [f"| `{key.name}` | – |" for key in KEYS if not key.default]
    assert [row for row in rows if row not in text] == []


def test_the_shipped_site_file_holds_every_default() -> None:
    written = {item.name: item.value for item in read_file(ROOT / "conf" / "gandiva-site.xml")}
    assert written == {key.name: key.default for key in KEYS if key.default}


def test_every_top_level_folder_explains_itself() -> None:
    folders = (
        "yarn_plugin",
        "gandiva_core",
        "nodemanager_agent",
        "baselines",
        "conf",
        "tests",
        "docs",
    )
    assert [name for name in folders if not (ROOT / name / "README.md").is_file()] == []
