"""The agent of a stock arm: no core, and devices for whoever comes, as they are free (C-8; issue 5, item 1)."""

from __future__ import annotations

import json
from pathlib import Path

from gandiva_core.messages import agents as a
from nodemanager_agent.own_core import placed
from tests.fakes.core import until
from tests.nodemanager_agent.nodes import Node, expected

A, B, C, D = (f"container_1_{name}" for name in "abcd")


def seen(*workers: a.WorkerReport, lost: int | None = None, gpus: int = 3) -> a.Measured:
    devices = tuple(
        a.Device(n, f"virtual-{n}", "virtual", 1024, healthy=n != lost) for n in range(gpus)
    )
    return a.Measured(1.0, devices, workers)


def waiting(name: str) -> a.WorkerReport:
    return a.WorkerReport(name, a.WorkerState.WAITING)


def test_the_first_free_devices_go_to_whoever_came_first() -> None:
    known = {name: expected(name, gpus) for name, gpus in ((B, 1), (A, 2), (C, 1))}
    assert placed(known, seen(waiting(A), waiting(B))) == (
        a.RunWorker(B, (0,)),
        a.RunWorker(A, (1, 2)),
    )


def test_nobody_passes_one_who_came_earlier_and_what_is_held_or_lost_is_not_free() -> None:
    """A13: a device whose holder has ended and is still bound is not free either."""
    known = {name: expected(name, gpus) for name, gpus in ((A, 2), (B, 1))}
    ended = a.WorkerReport(C, a.WorkerState.ENDED, (0,))
    assert placed(known, seen(waiting(A), waiting(B), ended, lost=1)) == ()
    assert placed(known, seen(waiting(A), waiting(B), ended)) == (a.RunWorker(A, (1, 2)),)


def test_containers_have_devices_of_their_own_until_they_end(tmp_path: Path) -> None:
    """C-8: the stock arm's half: nobody orders, and no two containers ever have one device."""
    with Node(tmp_path, 2, "--without-core") as node:
        until(lambda: Path(node.socket).exists())
        first = node.launch(A, asked=2)
        until(lambda: held(tmp_path) == {A: (0, 1)})
        second = node.launch(B, asked=1)
        until(lambda: (B, "waiting") in states(tmp_path))
        node.launch(C, asked=1)
        node.launch(D)
        log = tmp_path / "agent.log"
        until(lambda: "a launcher was refused" in log.read_text())
        assert held(tmp_path) == {A: (0, 1)}
        first.kill()
        until(lambda: held(tmp_path) == {B: (0,), C: (1,)})
        node.kill()  # E6
        node.start()
        until(lambda: (B, "running") in states(tmp_path) and (C, "running") in states(tmp_path))
        second.kill()
        until(lambda: held(tmp_path) == {C: (1,)})
        assert "GANDIVA_GPUS: None, of 2 devices here" in log.read_text()
        assert node.core.heard == []


def kept(folder: Path) -> dict[str, list[dict[str, object]]]:
    file = folder / "state" / "state.json"
    return dict(json.loads(file.read_text())) if file.exists() else {}


def held(folder: Path) -> dict[object, tuple[object, ...]]:
    """Who has which devices, as the agent notes it."""
    found = {}
    for claim in kept(folder).get("claims", ()):
        gpus = claim["gpus"]
        assert isinstance(gpus, list)
        found[claim["container_id"]] = tuple(gpus)
    return found


def states(folder: Path) -> set[tuple[object, object]]:
    return {(each["container_id"], each["state"]) for each in kept(folder).get("workers", ())}
