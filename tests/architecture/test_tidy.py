"""Properties of the code itself: sizes, names, purity, and words that do not belong in the tree."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.sources import PACKAGES, PURE, ROOT, modules, short, tracked

MODULE_LINES_MAX = 500
FUNCTION_LINES_MAX = 70
BANNED_MODULES = {"utils", "util", "helpers", "helper", "common", "misc", "manager", "managers"}
BANNED_ENDINGS = re.compile(
    r"_(sec|secs|seconds|msec|msecs|millis|minutes|mins|hours|mb|gb|kb|mebibytes|pct|percent|perc)$"
)
QUANTITIES = re.compile(r"(^|_)(timeout|delay|duration|elapsed|deadline|interval|memory|latency)$")
IMPURE_CALLS = {"open", "print", "input", "exec", "eval"}
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b(?!\(#\d+\))")
HOSTS = (
    ("pypi", "org"),
    ("pythonhosted", "org"),
    ("maven", "org"),
    ("npmjs", "org"),
    ("crates", "io"),
)
MACHINE_PATHS = re.compile(r"(?<![\w./-])/(?:work|root)/|(?<![\w./-])/home/\w+/|/Users/\w+/")


def parsed(*folders: str) -> Iterator[tuple[Path, ast.Module]]:
    for path in modules(*folders):
        yield path, ast.parse(path.read_text(), str(path))


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def named_numbers(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Parameters and fields that are annotated as a number, with their line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            name, annotation, line = node.target.id, node.annotation, node.lineno
        elif isinstance(node, ast.arg) and node.annotation is not None:
            name, annotation, line = node.arg, node.annotation, node.lineno
        else:
            continue
        if ast.unparse(annotation).removesuffix(" | None") in {"int", "float"}:
            yield name, line


def test_modules_are_short() -> None:
    sizes = {
        short(path): len(path.read_text().splitlines()) for path in modules(*PACKAGES, "tests")
    }
    assert {name: size for name, size in sizes.items() if size > MODULE_LINES_MAX} == {}


def test_functions_are_short() -> None:
    """Bodies are counted: the options in a command's signature are a table."""
    long = [
        f"{short(path)}:{function.lineno} {function.name}"
        for path, tree in parsed(*PACKAGES, "tests")
        for function in functions(tree)
        if (function.end_lineno or 0) - function.body[0].lineno >= FUNCTION_LINES_MAX
    ]
    assert long == []


def test_modules_are_called_after_what_they_hold() -> None:
    assert [short(path) for path in modules(*PACKAGES) if path.stem in BANNED_MODULES] == []


def test_numbers_carry_their_unit_last_and_spelt_one_way() -> None:
    wrong = [
        f"{short(path)}:{line} {name}"
        for path, tree in parsed(*PACKAGES)
        for name, line in named_numbers(tree)
        if BANNED_ENDINGS.search(name) or QUANTITIES.search(name)
    ]
    assert wrong == [], "say _s, _ms, _mib, _ratio"


def test_the_pure_part_opens_nothing_and_prints_nothing() -> None:
    calls = [
        f"{short(path)}:{node.lineno} {node.func.id}"
        for path, tree in parsed(*(part for part in PURE if (ROOT / part).exists()))
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in IMPURE_CALLS
    ]
    assert calls == []


def test_every_module_says_what_it_is_for() -> None:
    silent = [
        short(path) for path, tree in parsed(*PACKAGES, "tests") if not ast.get_docstring(tree)
    ]
    assert silent == []


def test_unfinished_business_names_its_issue() -> None:
    here = Path(__file__)
    found = [
        f"{short(path)}:{number}"
        for path in tracked()
        if path != here
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1)
        if UNFINISHED.search(line)
    ]
    assert found == [], "write TODO(#12)"


def test_no_path_of_somebodys_machine_and_no_registry_host_is_in_the_tree() -> None:
    here = Path(__file__)
    hosts = [".".join(parts) for parts in HOSTS]
    found = [
        f"{short(path)}:{number}: {line.strip()[:80]}"
        for path in tracked()
        if path != here
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1)
        if MACHINE_PATHS.search(line) or any(host in line for host in hosts)
    ]
    assert found == []


def test_no_module_is_dead() -> None:
    """Each is imported by another, by a test, by an example, or is an entry point or a main program."""
    imported = imported_names("gandiva_core", *PACKAGES[1:], "tests", "docs")
    declared = (ROOT / "pyproject.toml").read_text()
    declared += (ROOT / "nodemanager_agent/client/importing.py").read_text()  # hooks, by name
    dead = [
        name
        for path in modules(*PACKAGES)
        if path.stem not in {"__init__", "__main__", "sitecustomize"}
        if 'if __name__ == "__main__"' not in path.read_text()
        for name in [short(path).removesuffix(".py").replace("/", ".")]
        if name not in imported and f'"{name}:' not in declared and f'"{name}"' not in declared
    ]
    assert dead == []


def imported_names(*folders: str) -> set[str]:
    """Every module named in an import, also as ``from package import module``."""
    names: set[str] = set()
    for _, tree in parsed(*(folder for folder in folders if (ROOT / folder).exists())):
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                names.add(node.module)
                names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names
