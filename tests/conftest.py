"""What every test may ask for: the shared data, hypothesis profiles, and honest skips.

A test marked `yarn` needs a JDK and the built plug-in. Where they are absent it is skipped with the
reason; under CI (environment `CI=true`) it fails instead, so that a green gate has run it.
"""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"

settings.register_profile(
    "ci",
    derandomize=True,
    deadline=None,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("explore", deadline=None, max_examples=200, print_blob=True)
settings.register_profile("thorough", deadline=None, max_examples=2000, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Started in the background of a shell without job control; tests send Ctrl-C to themselves and to children.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def in_ci() -> bool:
    """Whether a skipped yarn test would hide that the gate did not run it."""
    return os.environ.get("CI", "").lower() in {"1", "true", "yes"}


def missing_for_yarn() -> str | None:
    """What a yarn test lacks here, with the command that brings it; None where nothing is."""
    java_home = os.environ.get("JAVA_HOME")
    has_java = (Path(java_home) / "bin" / "java").exists() if java_home else False
    if not has_java and shutil.which("java") is None:
        return "no java: install a JDK 17 or set JAVA_HOME"
    if not list((ROOT / "yarn_plugin" / "target").glob("gandiva-yarn-*.jar")):
        return "the plug-in is not built: run `make plugin`"
    return None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what is marked `thorough`, unless it was asked for by that name."""
    if "thorough" in config.option.markexpr:
        return
    long = [item for item in items if item.get_closest_marker("thorough") is not None]
    if long:
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if item not in long]


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skips, or under CI fails, a yarn test that has no JVM to talk to."""
    if item.get_closest_marker("yarn") is None:
        return
    missing = missing_for_yarn()
    if missing is None:
        return
    if in_ci():
        pytest.fail(f"yarn test cannot run: {missing}", pytrace=False)
    pytest.skip(missing)


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    """The folder of traces and cases beside the repository, never copied into it."""
    if not SHARED.is_dir():
        pytest.skip("no ../shared beside the repository: real traces and cases are not here")
    return SHARED


@pytest.fixture(scope="session")
def repo_root() -> Path:
    """The top of the checkout."""
    return ROOT
