"""What runs inside a job is read by Python 3.8."""

from __future__ import annotations

import ast
from pathlib import Path

from nodemanager_agent import client

MODULES = sorted(Path(client.__path__[0]).rglob("*.py"))


def test_every_module_of_the_client_is_python_3_8() -> None:
    assert len(MODULES) > 15
    for path in MODULES:
        ast.parse(path.read_text(), str(path), feature_version=(3, 8))


def test_annotations_that_are_read_at_run_time_are_of_typing() -> None:
    """`list[int]` in a signature, a class or a module is an error before 3.9, `int | None` before 3.10."""
    for path in MODULES:
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            for annotation in evaluated(node):
                for part in ast.walk(annotation):
                    assert not isinstance(part, ast.BinOp), (path, part.lineno)
                    if isinstance(part, ast.Subscript) and isinstance(part.value, ast.Name):
                        builtin = part.value.id in ("list", "dict", "tuple", "set", "type")
                        assert not builtin, (path, part.lineno)


def evaluated(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.FunctionDef):
        arguments = [*node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg]
        found = [each.annotation for each in arguments if each is not None]
        return [each for each in [*found, node.returns] if each is not None]
    if isinstance(node, ast.ClassDef | ast.Module):
        return [each.annotation for each in node.body if isinstance(each, ast.AnnAssign)]
    return []
