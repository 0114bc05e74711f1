"""One JVM for all tests here; each test has a ResourceManager of its own in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gandiva_core.runtime.ports import OpenedSubstrate, RunSetup
from tests.yarn.runs import Opener
from yarn_plugin.bridge.jvm import ReplayJvm
from yarn_plugin.replay.engine import open_engine
from yarn_plugin.replay.faults import ServerFault
from yarn_plugin.replay.rm import ReplayedRm


@pytest.fixture(scope="session")
def jvm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReplayJvm]:
    """A JVM that waits for its first ResourceManager."""
    log_file = tmp_path_factory.mktemp("jvm") / "resourcemanager.log"
    with ReplayJvm(log_file) as started:
        yield started


@pytest.fixture
def connect(jvm: ReplayJvm) -> Iterator[Callable[[Path], ReplayedRm]]:
    """Connections to that JVM; its ResourceManager ends with the connection."""
    opened: list[ReplayedRm] = []

    def bring(_: Path) -> ReplayedRm:
        gateway = jvm.connect(read_timeout_s=120.0)

        def end() -> None:
            gateway.replay_stop()
            gateway.close()

        opened.append(ReplayedRm(gateway, end, str(jvm.log_file)))
        return opened[-1]

    yield bring
    for rm in opened:
        rm.close()


@pytest.fixture
def opener(connect: Callable[[Path], ReplayedRm]) -> Opener:
    """Opens the engine `yarn` in the shared JVM."""

    def start(setup: RunSetup, faults: tuple[ServerFault, ...] = ()) -> OpenedSubstrate:
        return open_engine(setup, faults, connect)

    return start
