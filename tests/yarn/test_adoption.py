"""Containers that a real scheduler's stock code created, and that a new core meets: its books equal the scheduler's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from gandiva_core.messages.effects import CommitGang
from gandiva_core.messages.events import (
    Event,
    GangCommitted,
    GangRefused,
    JobAdopted,
    JobSubmitted,
    ServerJoined,
)
from gandiva_core.model.job import JobSpec, Worker
from gandiva_core.model.units import JobId
from tests.yarn.runs import small_cluster
from tests.yarn.test_bridge import Core, ask, given, job_of, started
from yarn_plugin.bridge.orders import OrderDesk
from yarn_plugin.bridge.register import Register
from yarn_plugin.bridge.translate import Translator
from yarn_plugin.replay.cluster import add_server, master_host, submit
from yarn_plugin.replay.rm import ReplayedRm
from yarn_plugin.replay.wire import Allocated, BeatAll

pytestmark = pytest.mark.yarn

Connect = Callable[[Path], ReplayedRm]
MODE = "yarn.scheduler.gandiva.mode"


def adopted(events: list[Event]) -> Counter[str]:
    """GPUs by server of what was adopted."""
    found: Counter[str] = Counter()
    for event in events:
        if isinstance(event, JobAdopted):
            for worker, server in zip(event.job.workers, event.servers, strict=True):
                found[server] += worker.gpus
    return found


def used(rm: ReplayedRm) -> Counter[str]:
    """GPUs that the scheduler has given away, by node."""
    nodes = rm.query(nodes=True)["nodes"]
    return Counter({n["node"]: n["used"]["gpus"] for n in nodes if n["used"]["gpus"]})


def test_in_observe_stock_code_serves_and_the_core_counts(connect: Connect, tmp_path: Path) -> None:
    rm = started(connect, tmp_path, **{MODE: "observe"})
    core = Core(rm, gpus=4)
    seen = rm.step(1.0, [job_of("j", 2), ask("j", 2)])
    assert given(list(seen)) == [(1024, 1, 1)] * 2
    events = core.hear()
    assert sum(adopted(events).values()) == 2
    assert set(core.translator.register.job_of) == containers(seen)
    later = core.commit("nobody", 1)
    assert [type(event) for event in later] == [GangRefused]


def test_a_new_core_takes_over_what_an_older_one_placed(connect: Connect, tmp_path: Path) -> None:
    rm = started(connect, tmp_path)
    core = Core(rm, gpus=4)
    rm.step(1.0, [job_of("wide", 3), ask("wide", 3), job_of("idle", 4), ask("idle", 4)])
    core.hear()
    [committed] = core.commit("wide", 3)
    assert isinstance(committed, GangCommitted)
    rm.hello()
    register = Register()
    events = Translator(register).translate(rm.take_events(), 2.0)
    assert [type(event) for event in events] == [ServerJoined, JobAdopted, JobSubmitted]
    [gang] = [event for event in events if isinstance(event, JobAdopted)]
    assert gang.containers == committed.containers
    assert gang.job.workers == (Worker(1, 1024, 1),) * 3
    assert adopted(events) == used(rm)


def test_a_commit_whose_answer_was_lost_is_found_by_the_next_session(
    connect: Connect, tmp_path: Path
) -> None:
    rm = started(connect, tmp_path)
    core = Core(rm, gpus=4)
    rm.step(1.0, [job_of("j", 2), ask("j", 2)])
    core.hear()
    lost = OrderDesk(core.translator.register)
    effect = core.order("j", 2)
    rm.apply(lost.write([effect], 1.0).orders)
    rm.hello()
    events = core.hear()
    assert [type(event) for event in events] == [JobAdopted]
    assert adopted(events) == used(rm)
    assert core.translator.register.find(JobId("j")) is not None


def test_a_master_with_a_gpu_is_a_job_of_its_own_before_its_gang_is_asked_for(
    connect: Connect, tmp_path: Path
) -> None:
    rm = started(connect, tmp_path)
    core = Core(rm, gpus=4)
    job = msgspec.structs.replace(job_of("j", 2), am_gpus=1)
    rm.step(1.0, [job, ask("j", 2)])
    [master] = [event for event in core.hear() if isinstance(event, JobSubmitted)]
    assert len(master.job.workers) == 1
    effect = CommitGang(1, master.job.job_id, (core.server,), master.job.workers)
    [committed] = core.desk.book(rm.apply(core.desk.write([effect], 1.0).orders), 1.0)
    assert isinstance(committed, GangCommitted)
    rm.step(2.0, [BeatAll(keys=("j",))])
    [gang] = [event for event in core.hear() if isinstance(event, JobSubmitted)]
    assert len(gang.job.workers) == 2
    core.commit(str(gang.job.job_id), 2)
    rm.hello()
    events = Translator(Register()).translate(rm.take_events(), 3.0)
    sizes = [len(event.containers) for event in events if isinstance(event, JobAdopted)]
    assert sizes == [1, 2]
    assert adopted(events) == used(rm)


def test_outside_the_adopted_queues_nobody_waits_for_the_core(
    connect: Connect, tmp_path: Path
) -> None:
    rm = started(connect, tmp_path, **{"yarn.scheduler.gandiva.queues": "root.other", **QUEUES})
    cluster = small_cluster(servers=1, gpus=4)
    rm.step(0.0, [master_host(cluster), *map(add_server, cluster.servers)])
    rm.hello()
    translator = Translator(Register())
    translator.translate(rm.take_events(), 0.0)
    jobs = {"ours": "root.other", "stock": "root.default"}
    for name, queue in jobs.items():
        rm.step(1.0, [submit(JobSpec(JobId(name), (Worker(1, 1024, 1),)), queue), ask(name, 1)])
    events = translator.translate(rm.take_events(), 1.0)
    waiting = [event.job.queue for event in events if isinstance(event, JobSubmitted)]
    placed = [event.job.queue for event in events if isinstance(event, JobAdopted)]
    assert (waiting, placed) == (["root.other"], ["root.default"])


QUEUES = {
    "yarn.scheduler.capacity.root.queues": "default,other",
    "yarn.scheduler.capacity.root.default.capacity": "50",
    "yarn.scheduler.capacity.root.other.capacity": "50",
    "yarn.scheduler.capacity.root.default.maximum-capacity": "100",
    "yarn.scheduler.capacity.root.other.maximum-capacity": "100",
}


def containers(seen: object) -> set[str]:
    """Ids that masters were given."""
    assert isinstance(seen, (list, tuple))
    return {c.container for e in seen if isinstance(e, Allocated) for c in e.containers}
