"""The files the architecture tests look at."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("gandiva_core", "nodemanager_agent", "baselines", "yarn_plugin")
PURE = (
    "gandiva_core/model",
    "gandiva_core/config",
    "gandiva_core/messages",
    "gandiva_core/policies",
    "gandiva_core/engine",
    "baselines",
    "yarn_plugin/bridge/translate.py",
    "nodemanager_agent/lifecycle.py",
    "nodemanager_agent/binding.py",
    "nodemanager_agent/rotation.py",
    "nodemanager_agent/memory_cycle.py",
)
_TEXT = {
    ".py", ".java", ".md", ".toml", ".txt", ".xml", ".yaml", ".yml", ".json", ".cfg", ".csv", ".html",
    ".css", ".js", ".sh", ".j2", "",
}  # fmt: skip


def modules(*folders: str) -> list[Path]:
    """Python files under these folders (or the files themselves), built outputs left out."""
    found: list[Path] = []
    for folder in folders:
        path = ROOT / folder
        found += [path] if path.is_file() else sorted(path.rglob("*.py"))
    return [path for path in found if "target" not in path.relative_to(ROOT).parts]


def tracked() -> list[Path]:
    """Text files that git knows, new ones included; in an exported tree, everything but outputs."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    names = listing.stdout.splitlines() if listing.returncode == 0 else _without_git()
    paths = (ROOT / name for name in names)
    return [path for path in paths if path.suffix in _TEXT and path.is_file()]


def short(path: Path) -> str:
    """A path as a person would name it."""
    return str(path.relative_to(ROOT))


def _without_git() -> list[str]:
    made = {".venv", "out", "target", "dist", "build", "__pycache__"}
    files = (path.relative_to(ROOT) for path in ROOT.rglob("*") if path.is_file())
    return [
        str(path)
        for path in files
        if not made & set(path.parts) and not path.parts[0].startswith(".")
    ]
