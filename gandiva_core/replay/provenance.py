"""Where a figure comes from: commit, versions, and hashes of what went in."""

from __future__ import annotations

import hashlib
import platform
import subprocess
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec

import gandiva_core

PACKAGES = ("msgspec", "pydantic", "zstandard", "numpy", "matplotlib", "jinja2", "py4j")
"""Libraries whose version a reader may want to know."""

UNKNOWN = "unknown"


@cache
def commit() -> str:
    """The checkout's commit, with ``-dirty`` where tracked files differ; "unknown" in an installed package."""
    root = Path(gandiva_core.__file__).resolve().parent.parent
    if not (root / ".git").exists():
        return UNKNOWN
    head = _git(root, "rev-parse", "--short=12", "HEAD")
    if not head:
        return UNKNOWN
    changed = _git(root, "status", "--porcelain", "--untracked-files=no")
    return f"{head}-dirty" if changed else head


def _git(root: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments],
            capture_output=True,
            check=True,
            text=True,
            timeout=20,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()


def versions() -> Mapping[str, str]:
    """Component to version, of this process; an engine adds its own."""
    found = {"gandiva": gandiva_core.__version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def digest(message: object) -> str:
    """sha256 of a message's JSON, for "is this the same as that"; the same message, the same digest."""
    return hashlib.sha256(msgspec.json.encode(message)).hexdigest()


def file_digest(path: Path) -> str:
    """sha256 of a file's bytes; empty where there is no such file."""
    if not path.is_file():
        return ""
    return hashlib.sha256(path.read_bytes()).hexdigest()
