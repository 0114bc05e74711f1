"""docs/COMPATIBILITY.md: every row names tests, and all of them exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.architecture.sources import ROOT

PAGE = ROOT / "docs" / "COMPATIBILITY.md"
JAVA_TESTS = ROOT / "yarn_plugin" / "src" / "test" / "java"
NAME = re.compile(r"`([^`]+)`")
JAVA_TEST = r"@(?:Test|ParameterizedTest)\b[^;{{}}]*?(?:\{{[^;}}]*\}}[^;{{}}]*?)?\bvoid {method}\("


def rows() -> list[list[str]]:
    """The cells of every row of every table, headings left out."""
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return [row for row in cells if row[-1] != "test" and not set(row[0]) <= {"-", "|"}]


def exists(name: str) -> bool:
    """Whether ``Class.method`` is a Java test, or ``tests/….py::function`` a Python one."""
    if "::" in name:
        path, _, function = name.partition("::")
        file = ROOT / path
        return file.is_file() and f"def {function}(" in file.read_text()
    class_name, _, method = name.partition(".")
    files: list[Path] = list(JAVA_TESTS.rglob(f"{class_name}.java"))
    pattern = re.compile(JAVA_TEST.format(method=re.escape(method)))
    return len(files) == 1 and pattern.search(files[0].read_text()) is not None


def test_every_row_names_tests_that_exist() -> None:
    """Issue 4, item 4: a table with a test a row."""
    table = rows()
    assert len(table) >= 40
    assert {len(row) for row in table} == {3}
    unnamed = [row[0] for row in table if not NAME.findall(row[2])]
    missing = [name for row in table for name in NAME.findall(row[2]) if not exists(name)]
    assert (unnamed, missing) == ([], [])


def test_every_test_of_the_folder_is_in_the_table() -> None:
    """What was tested for the table is found by its reader."""
    named = {name.partition(".")[0] for row in rows() for name in NAME.findall(row[2])}
    folder = JAVA_TESTS / "org" / "gandiva" / "yarn" / "compatibility"
    tests = {path.stem for path in folder.glob("*Test.java")}
    assert tests
    assert tests <= named


@pytest.mark.parametrize(
    "name",
    [
        "PartitionsTest.labelled",  # a helper
        "PartitionsTest.nobodyWroteThis",
        "NoSuchTest.anything",
        "tests/architecture/test_compatibility.py::test_that_is_not_there",
        "tests/no_such_file.py::test_x",
    ],
)
def test_a_name_that_is_no_test_is_noticed(name: str) -> None:
    """Else the table could not fail."""
    assert not exists(name)
