"""The loop against a gateway that is a script: commits, losses, timers, and over-subscription only where allowed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gandiva_core.config.settings import Settings
from gandiva_core.engine.engine import Engine
from gandiva_core.messages.events import GangCommitted, GangRefused, TimerFired
from gandiva_core.model.job import JobPhase
from gandiva_core.model.units import JobId, ServerId
from gandiva_core.policies.gandiva import create
from gandiva_core.replay.arms import policy_factory
from gandiva_core.runtime.agentless import AgentlessWorld
from gandiva_core.runtime.journal import Ending
from gandiva_core.runtime.recheck import recheck
from yarn_plugin.bridge.gateway import GatewayError
from yarn_plugin.bridge.orders import OrderDesk
from yarn_plugin.bridge.register import Register
from yarn_plugin.bridge.translate import Translator
from yarn_plugin.live.loop import CoreLoop
from yarn_plugin.live.process import Site, open_journal
from yarn_plugin.live.servers import ServerRules

NODE = {"node": "a:1", "memory_mib": 8192, "vcores": 16, "gpus": 4, "state": "RUNNING"}
APP = {"app": "app", "attempt": "attempt", "queue": "root.default", "name": "x", "user": "u"}


def resync(tags: tuple[str, ...] = (), **more: object) -> dict[str, Any]:
    apps = [{**APP, "tags": tags, **more}] if more else []
    return {"kind": "resync", "part": 1, "parts": 1, "nodes": [NODE], "apps": apps}


def asks(count: int) -> list[dict[str, Any]]:
    size = {"memory_mib": 256, "vcores": 1, "gpus": 1}
    return [{"priority": 0, "allocation_request_id": -1, "count": count, **size}]


class Rm:
    """A session that plays batches, commits whatever is ordered, and notes what it was asked."""

    def __init__(self, *batches: list[dict[str, Any]], code: str = "OK") -> None:
        self.batches = list(batches)
        self.code = code
        self.is_lost = False
        self.orders: list[Mapping[str, Any]] = []
        self.calls: list[list[str]] = []
        self.waits_ms: list[int] = []
        self.told: dict[str, str] = {}
        self.heights: dict[str, int] = {}

    told_ops = frozenset({"explain", "set_height"})

    def take_events_text(self, count_max: int, wait_ms: int) -> str:
        self.waits_ms.append(wait_ms)
        events = self.batches.pop(0) if self.batches else []
        return json.dumps({"ok": True, "epoch": 1, "events": events})

    def apply(self, effects: list[dict[str, Any]]) -> list[dict[str, Any]]:
        if self.is_lost:
            raise GatewayError("UNREACHABLE", "it went away")
        answers = []
        self.calls.append([effect["op"] for effect in effects])
        for effect in effects:
            if effect["op"] == "explain":
                self.told[effect["app"]] = effect["text"]
            elif effect["op"] == "set_height":
                self.heights[effect["node"]] = effect["height"]
            if effect["op"] in self.told_ops:
                answers.append({"id": effect["id"], "code": "OK"})
                continue
            self.orders.append(effect)
            count = len(effect["containers"])
            names = [f"c{len(self.orders)}.{rank}" for rank in range(count)]
            answers.append({"id": effect["id"], "code": self.code, "containers": names})
        return answers


class Scene:
    def __init__(self, *, can_suspend: bool = False, journal_dir: Path | None = None) -> None:
        self.now_s = 1000.0
        settings = Settings()
        self.engine = Engine(create(settings, {}), settings, check="full")
        register = Register()
        site = Site(settings, can_suspend)
        self.journal = None if journal_dir is None else open_journal(journal_dir, self.engine, site)
        self.loop = CoreLoop(
            self.engine,
            Translator(register),
            OrderDesk(register),
            AgentlessWorld(),
            ServerRules(can_suspend=lambda _: can_suspend),
            clock=lambda: self.now_s,
            journal=self.journal,
        )

    def turns(self, rm: Rm, count: int, step_s: float = 0.1) -> None:
        for _ in range(count):
            self.loop.turn(rm)
            self.now_s += step_s

    def resident(self) -> int:
        phases = [job.phase for job in self.engine.view.jobs.values()]
        return sum(phase not in {JobPhase.QUEUED, JobPhase.SUBMITTED} for phase in phases)


@pytest.mark.parametrize(("can_suspend", "placed"), [(False, 4), (True, 8)])
def test_eight_one_gpu_containers_share_four_gpus_only_where_the_site_allows_it(
    can_suspend: bool, placed: int
) -> None:
    scene = Scene(can_suspend=can_suspend)
    rm = Rm([resync(("gandiva.gang=1",), asks=asks(8))])
    scene.turns(rm, 4)
    assert len(rm.orders) == placed
    assert scene.resident() == placed


def test_what_one_batch_leads_to_is_ordered_in_one_call() -> None:
    scene = Scene()
    rm = Rm([resync(("gandiva.gang=1",), asks=asks(4))])
    scene.turns(rm, 2)
    assert [call for call in rm.calls if "commit_gang" in call] == [["commit_gang"] * 4]


def test_a_release_is_ordered_behind_what_was_decided_before_it() -> None:
    """What a release gives back may be what an order before it creates: that is answered first."""
    scene = Scene()
    lost = {"kind": "container_completed", "app": "app", "container": "c1.0", "node": "a:1"}
    second = {"kind": "asks", "app": "app", "attempt": "attempt", "asks": asks(2)}
    rm = Rm(
        [resync(("gandiva.gang=2",), asks=asks(2))],
        [second, {**lost, "exit_status": 1}],
    )
    scene.turns(rm, 2)
    ordered = [call for call in rm.calls if "explain" not in call]
    assert ordered[:3] == [["commit_gang"], ["commit_gang"], ["release_gang"]]
    assert list(rm.orders[2]["containers"]) == ["c1.1"]


def test_a_gang_of_eight_on_four_gpus_waits() -> None:
    scene = Scene(can_suspend=True)
    rm = Rm([resync(("gandiva.gang=8",), asks=asks(8))])
    scene.turns(rm, 4)
    assert rm.orders == []
    assert scene.resident() == 0


def test_what_ends_makes_room_for_what_waits() -> None:
    scene = Scene()
    rm = Rm([resync(("gandiva.gang=1",), asks=asks(5))])
    scene.turns(rm, 2)
    assert len(rm.orders) == 4
    ended = {"kind": "container_completed", "app": "app", "container": "c1.0", "node": "a:1"}
    rm.batches.append([ended])
    scene.turns(rm, 1)
    assert len(rm.orders) == 5


def test_a_refusal_reaches_the_policy_and_is_tried_again_later_not_in_circles() -> None:
    scene = Scene()
    rm = Rm([resync(("gandiva.gang=1",), asks=asks(1))], code="QUEUE_LIMIT")
    scene.turns(rm, 5)
    tried = len(rm.orders)
    assert 1 <= tried <= 3
    rm.code = "OK"
    scene.now_s += 3600.0
    scene.turns(rm, 2)
    assert scene.resident() == 1


def test_the_call_waits_until_a_timer_is_due_and_no_longer() -> None:
    """A quantum ends while the gateway has nothing: the slices must turn all the same."""
    scene = Scene(can_suspend=True)
    rm = Rm([resync(("gandiva.gang=1",), asks=asks(8))])
    scene.turns(rm, 3)
    scene.now_s += 59.0
    scene.turns(rm, 1)
    assert 0 < rm.waits_ms[-1] < 1000
    before = scene.loop.events
    scene.now_s += 1.0
    scene.turns(rm, 1)
    assert scene.loop.events > before, "the timer fired"


def test_a_gateway_lost_in_the_middle_of_a_commit_refuses_it_and_ends_the_session(
    tmp_path: Path,
) -> None:
    scene = Scene(journal_dir=tmp_path)
    rm = Rm([resync(("gandiva.gang=1",), asks=asks(6))])
    rm.is_lost = True
    with pytest.raises(GatewayError, match="went away"):
        scene.loop.turn(rm)
    assert scene.resident() == 0
    again = Rm([resync(("gandiva.gang=1",), asks=asks(6))])
    scene.now_s += 3600.0
    scene.turns(again, 3)
    assert scene.resident() == 4
    assert scene.journal is not None
    scene.journal.close(Ending(True, scene.now_s))
    text = next(tmp_path.glob("*.jsonl")).read_text()
    assert '"STALE_EPOCH"' in text


def test_a_refused_call_is_no_empty_batch() -> None:
    """A reply without events must not pass for a quiet cluster: the older of two cores would never end."""
    refusal = {"ok": False, "error": {"kind": "STALE_EPOCH", "message": "the session is 2"}}

    class Refusing(Rm):
        def take_events_text(self, count_max: int, wait_ms: int) -> str:
            return json.dumps(refusal)

    with pytest.raises(GatewayError, match="the session is 2") as refused:
        Scene().loop.turn(Refusing())
    assert refused.value.kind == "STALE_EPOCH"


def test_a_restarted_resource_manager_without_memory_begins_anew() -> None:
    scene = Scene()
    scene.turns(Rm([resync(("gandiva.gang=1",), asks=asks(3))]), 3)
    assert scene.resident() == 3
    empty = {"kind": "resync", "part": 1, "parts": 1, "nodes": [], "apps": []}
    scene.turns(Rm([empty], [{"kind": "node_added", **NODE}]), 2)
    assert scene.resident() == 0
    assert list(scene.engine.view.servers) == ["a:1"]


def test_a_new_core_takes_over_containers_it_does_not_know() -> None:
    """C12: eight on four devices go on rotating, nothing is released, and the next finds no room above the height."""
    live = [{"container": f"container_1_0001_01_{n:06}", "node": "a:1"} for n in range(2, 10)]
    sized = [{**each, "memory_mib": 256, "vcores": 1, "gpus": 1} for each in live]
    scene = Scene(can_suspend=True)
    rm = Rm([resync(("gandiva.gang=1",), asks=asks(1), containers=sized)])
    scene.turns(rm, 3)
    view = scene.engine.view
    assert view.servers[ServerId("a:1")].allocated == 9
    assert [order["op"] for order in rm.orders] == ["commit_gang"]
    assert sum(job.phase is JobPhase.RUNNING for job in view.jobs.values()) == 4
    before = {job_id for job_id, job in view.jobs.items() if job.phase is JobPhase.RUNNING}
    scene.now_s += 60.0
    scene.turns(rm, 2)
    after = {job_id for job_id, job in view.jobs.items() if job.phase is JobPhase.RUNNING}
    assert before != after


def test_the_journal_of_a_live_core_rechecks_without_a_difference(tmp_path: Path) -> None:
    """C-7: every decision of it can be made again."""
    scene = Scene(can_suspend=True, journal_dir=tmp_path)
    scene.turns(Rm([resync(("gandiva.gang=1",), asks=asks(8))]), 4)
    scene.now_s += 60.0
    scene.turns(Rm(), 4)
    assert scene.journal is not None
    scene.journal.close(Ending(True, scene.now_s))
    (path,) = tmp_path.glob("*.jsonl")
    assert path.stat().st_mode & 0o777 == 0o600
    report = recheck(path, policy_factory)
    assert (report.difference_count, report.is_complete) == (0, True)
    assert report.entries == scene.loop.events
    kinds = path.read_text()
    assert all(kind.__name__ in kinds for kind in (GangCommitted, TimerFired))
    assert GangRefused.__name__ not in kinds
    assert JobId("app") in scene.engine.view.jobs
