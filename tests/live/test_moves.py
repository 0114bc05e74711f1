"""A job's move, order by order, on real NodeManagers: the test is the core (SPEC G-69, FACTS §2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.live.jobs import Submitted, submit
from tests.live.shells import PATIENCE_S, Live, brought_up, wait_until
from yarn_plugin.live.connection import LiveGateway

pytestmark = [pytest.mark.live, pytest.mark.slow]  # JVMs

BARE = "gandiva.job.launcher=false"
COMMAND = (
    'echo "from $GANDIVA_MOVE_FROM generation $GANDIVA_GENERATION"; '
    "until [ -e {0}/$CONTAINER_ID ]; do sleep 0.1; done"
)
MOVE = 1_000_001


class Core:
    """What is asked for, and orders; nothing decides."""

    def __init__(self, gateway: LiveGateway) -> None:
        self._gateway = gateway
        self.nodes: list[str] = []
        self.asks: dict[str, list[dict[str, Any]]] = {}
        self.ended: dict[str, int] = {}
        gateway.hello("test")

    def turn(self) -> None:
        """Take what has happened."""
        for event in self._gateway.take_events(1000, 200)["events"]:
            kind = event["kind"]
            if kind == "resync":
                self.nodes += [node["node"] for node in event["nodes"]]
            elif kind == "asks":
                self.asks[event["attempt"]] = event["asks"]
            elif kind == "container_completed":
                self.ended[event["container"]] = event["exit_status"]

    def until(self, what: Callable[[], bool], said: str) -> None:
        """Take turns until it is so."""

        def turned() -> bool:
            self.turn()
            return what()

        wait_until(turned, said)

    def order(self, op: str, **fields: Any) -> dict[str, Any]:
        """One order, carried out."""
        (answer,) = self._gateway.apply([{"id": "t", "op": op, **fields}])
        assert answer["code"] == "OK", answer
        return answer

    def asked(self, job: Submitted, request_id: int) -> dict[str, Any] | None:
        """Its ask under an id, for the whole cluster."""
        attempt = job.app_id.replace("application", "appattempt") + "_000001"
        found = (ask for ask in self.asks.get(attempt, []) if ask["resource_name"] == "*")
        return next((a for a in found if a["allocation_request_id"] == request_id), None)

    def commit(self, job: Submitted, request_id: int, node: str) -> str:
        """Serve an ask once it is there; the container's id."""
        self.until(lambda: self.asked(job, request_id) is not None, f"ask {request_id}")
        ask = self.asked(job, request_id)
        assert ask is not None
        wanted = ("priority", "allocation_request_id", "memory_mib", "vcores", "gpus")
        container = {"node": node, **{name: ask[name] for name in wanted}}
        attempt = job.app_id.replace("application", "appattempt") + "_000001"
        answer = self.order("commit_gang", attempt=attempt, containers=[container])
        return str(answer["containers"][0])


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """Two nodes of one GPU, and no core."""
    path = tmp_path_factory.mktemp("moves") / "gandiva"
    unmanaged = ("--set", "yarn.scheduler.gandiva.core.managed=false")
    with brought_up(
        path, "--nodes", "2", "--gpus", "1", "--scheduler", "gandiva", *unmanaged
    ) as up:
        yield up


@pytest.fixture
def core(live: Live) -> Iterator[Core]:
    """A session of the bridge."""
    port, token = live.cluster.ports["bridge"], live.folder.token
    with LiveGateway.connect(port, token, read_timeout_s=PATIENCE_S) as gateway:
        core = Core(gateway)
        core.turn()
        yield core


def moving(live: Live, core: Core, name: str, folder: Path) -> tuple[Submitted, str, str]:
    """A job that runs on one node and warms up on the other: its old container, and the new one."""
    job = submit(live, name, COMMAND.format(folder), BARE)
    here, there = sorted(core.nodes)
    old = core.commit(job, 0, here)
    wait_until(lambda: job.logs() == ["from  generation 1\n"], "it runs")
    core.order("ask_move", container=old, node=there, allocation_request_id=MOVE)
    new = core.commit(job, MOVE, there)
    wait_until(lambda: len(job.logs()) == 2 and bool(job.logs()[1]), "it warms up there")
    assert job.logs()[1] == f"from {old} generation 2\n"
    return job, old, new


def test_a_move_ends_in_the_new_container(live: Live, core: Core, tmp_path: Path) -> None:
    job, old, new = moving(live, core, "moves", tmp_path)
    core.order("let_go", container=old)
    core.until(lambda: old in core.ended, "the old one is given back")
    (tmp_path / new).touch()
    assert job.wait() == 0, job.progress()
    assert len(job.logs()) == 2, "nothing was started again"


def test_the_old_launchers_quiet_end_is_no_end_of_the_job(
    live: Live, core: Core, tmp_path: Path
) -> None:
    job, old, new = moving(live, core, "quiet", tmp_path)
    (tmp_path / old).touch()
    core.until(lambda: core.ended.get(old) == 0, "the old one has ended with 0")
    assert job.client.poll() is None
    (tmp_path / new).touch()
    assert job.wait() == 0, job.progress()


def test_a_move_that_is_off_leaves_the_job_where_it_is(
    live: Live, core: Core, tmp_path: Path
) -> None:
    job, old, new = moving(live, core, "off", tmp_path)
    core.order("let_go", container=new)
    core.until(lambda: new in core.ended, "the new one is given back")
    assert job.client.poll() is None
    (tmp_path / old).touch()
    assert job.wait() == 0, job.progress()
    assert len(job.logs()) == 2
