"""The bridge against a real GandivaScheduler, call by call: cases B01, B07, C05, A11, and what a core relies on."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gandiva_core.messages.effects import CommitGang
from gandiva_core.messages.events import (
    Event,
    GangCommitted,
    GangRefused,
    JobSubmitted,
    ServerJoined,
)
from gandiva_core.model.job import JobSpec, Worker
from gandiva_core.model.units import JobId
from gandiva_core.replay.arms import parse_arm
from gandiva_core.runtime.ports import RunSetup
from tests.yarn.runs import small_cluster
from yarn_plugin.bridge import wire as rm_wire
from yarn_plugin.bridge.gateway import Gateway, GatewayError
from yarn_plugin.bridge.jvm import ReplayJvm
from yarn_plugin.bridge.orders import OrderDesk
from yarn_plugin.bridge.register import Register
from yarn_plugin.bridge.translate import Translator, application_name
from yarn_plugin.replay.cluster import add_server, master_host, submit
from yarn_plugin.replay.configuration import prepare
from yarn_plugin.replay.rm import ReplayedRm, ReplayError
from yarn_plugin.replay.wire import (
    AddNode,
    Allocated,
    AmStarted,
    AmWaiting,
    Ask,
    AskLine,
    BeatAll,
    HarnessEvent,
    Submit,
)

pytestmark = pytest.mark.yarn

Connect = Callable[[Path], ReplayedRm]
GPU = Worker(1, 1024, 1)


def started(connect: Connect, work_dir: Path, arm: str = "gandiva", **keys: str) -> ReplayedRm:
    """A ResourceManager of an arm without a node; `keys` are set over its configuration."""
    parsed = parse_arm(arm)
    height = 1 if parsed.is_stock else 4
    configuration = prepare(RunSetup(parsed, small_cluster(), 1, height, str(work_dir)))
    rm = connect(work_dir)
    rm.start(configuration.conf_dir, {**configuration.properties, **keys})
    return rm


def ask(key: str, count: int) -> Ask:
    """`count` containers of one GPU."""
    line = AskLine(priority=1, count=count, memory_mib=1024, vcores=1, gpus=1)
    return Ask(key=key, asks=(line,))


class Core:
    """What a core does with the bridge, by hand."""

    def __init__(self, rm: ReplayedRm, gpus: int = 8) -> None:
        self.rm = rm
        cluster = small_cluster(servers=1, gpus=gpus)
        rm.step(0.0, [master_host(cluster), *map(add_server, cluster.servers)])
        rm.hello()
        register = Register()
        self.desk = OrderDesk(register)
        self.translator = Translator(register, job_name=application_name)
        [joined] = self.hear()
        assert isinstance(joined, ServerJoined)
        self.server = joined.server.server_id

    def hear(self) -> list[Event]:
        """The core's events since the last call."""
        return self.translator.translate(self.rm.take_events(), 1.0)

    def order(self, name: str, count: int) -> CommitGang:
        """A gang on the one server."""
        return CommitGang(1, JobId(name), (self.server,) * count, (GPU,) * count)

    def commit(self, name: str, count: int) -> list[Event]:
        """Order a gang."""
        written = self.desk.write([self.order(name, count)], 1.0)
        return [*written.refused, *self.desk.book(self.rm.apply(written.orders), 1.0)]


def job_of(name: str, count: int) -> Submit:
    """A submission of a gang of one-GPU containers."""
    return submit(JobSpec(JobId(name), (GPU,) * count), "root.default")


def given(events: tuple[HarnessEvent, ...] | list[HarnessEvent]) -> list[tuple[int, int, int]]:
    """Sizes of the containers that AMs were given."""
    return [
        (c.memory_mib, c.vcores, c.gpus)
        for event in events
        if isinstance(event, Allocated)
        for c in event.containers
    ]


def test_b01_asks_interleaved_one_by_one_make_two_whole_gangs(
    connect: Connect, tmp_path: Path
) -> None:
    """B01: plain AMs ask container by container; no AM sees a container before its gang is whole."""
    rm = started(connect, tmp_path)
    core = Core(rm)
    rm.step(1.0, [job_of("j1", 6), job_of("j2", 6)])
    seen: list[HarnessEvent] = []
    submitted: list[JobSubmitted] = []
    for count in range(1, 7):
        for key in ("j1", "j2"):
            seen += rm.step(1.0, [ask(key, count)])
            submitted += [e for e in core.hear() if isinstance(e, JobSubmitted)]
            assert len(submitted) == (0 if count < 6 else 1 + (key == "j2"))
    assert given(seen) == []
    for name in ("j1", "j2"):
        [committed] = core.commit(name, 6)
        assert isinstance(committed, GangCommitted)
        assert given(list(rm.step(1.0, [BeatAll(keys=("j1", "j2"))]))) == [(1024, 1, 1)] * 6


def test_b07_a_container_is_what_was_asked_for(connect: Connect, tmp_path: Path) -> None:
    """B07: the AM's reply and the scheduler's own book say <1024 MiB, 1 vcore, 1 GPU>."""
    rm = started(connect, tmp_path)
    core = Core(rm)
    rm.step(1.0, [job_of("one", 1), ask("one", 1)])
    [came] = [event for event in core.hear() if isinstance(event, JobSubmitted)]
    assert came.job.workers == (GPU,)
    [committed] = core.commit("one", 1)
    assert isinstance(committed, GangCommitted)
    booked = rm.query(container=committed.containers[0])
    assert (booked["memory_mib"], booked["vcores"], booked["gpus"]) == (1024, 1, 1)
    assert given(list(rm.step(1.0, [BeatAll(keys=("one",))]))) == [(1024, 1, 1)]


def test_a_gang_that_does_not_fit_leaves_nothing_behind(connect: Connect, tmp_path: Path) -> None:
    """Item 3: all or nothing; a refusal has a code and what is free, and burns no container id."""
    rm = started(connect, tmp_path, **{"yarn.scheduler.gandiva.height.max": "1"})
    core = Core(rm, gpus=4)
    rm.step(1.0, [job_of("wide", 6), ask("wide", 6), job_of("small", 4), ask("small", 4)])
    core.hear()
    [refused] = core.commit("wide", 6)
    assert isinstance(refused, GangRefused)
    assert refused.code == "NO_ROOM"
    assert refused.detail
    [committed] = core.commit("small", 4)
    assert isinstance(committed, GangCommitted)
    assert [container[-6:] for container in committed.containers] == [
        "000002",
        "000003",
        "000004",
        "000005",
    ]


def test_height_bounds_what_the_scheduler_takes(connect: Connect, tmp_path: Path) -> None:
    """DESIGN §4: schedulable GPUs are physical × height; the RM's own page keeps the physical count."""
    rm = started(connect, tmp_path, **{"yarn.scheduler.gandiva.height.max": "2"})
    core = Core(rm, gpus=4)
    rm.step(1.0, [job_of("two", 8), ask("two", 8), job_of("more", 1), ask("more", 1)])
    core.hear()
    assert isinstance(core.commit("two", 8)[0], GangCommitted)
    [refused] = core.commit("more", 1)
    assert isinstance(refused, GangRefused)
    assert refused.code == "NO_ROOM"
    [node] = [node for node in rm.query(nodes=True)["nodes"] if node["node"].startswith("s01")]
    assert node["rm_total"]["gpus"] == 4
    assert node["scheduler_total"]["gpus"] == 8


def test_a_soft_gang_is_tried_whole_once_its_asks_rest(connect: Connect, tmp_path: Path) -> None:
    """DESIGN §6: unchanged for two AM heartbeats; the second one is told by the plug-in."""
    rm = started(connect, tmp_path)
    core = Core(rm)
    rm.step(1.0, [master("soft", 1024), ask("soft", 2)])
    assert core.hear() == []
    rm.step(2.0, [ask("soft", 3)])
    assert core.hear() == []
    rm.step(3.0, [BeatAll(keys=("soft",))])
    [came] = core.hear()
    assert isinstance(came, JobSubmitted)
    assert came.job.workers == (GPU,) * 3
    rm.step(4.0, [BeatAll(keys=("soft",))])
    assert core.hear() == []


def test_a_new_session_starts_with_what_is_there(connect: Connect, tmp_path: Path) -> None:
    """A core that may have lost events asks for all; to one that had missed nothing it is no news."""
    rm = started(connect, tmp_path)
    core = Core(rm)
    rm.step(1.0, [job_of("runs", 2), ask("runs", 2), job_of("waits", 3), ask("waits", 3)])
    assert len(core.hear()) == 2
    assert isinstance(core.commit("runs", 2)[0], GangCommitted)
    rm.step(2.0, [BeatAll(keys=("runs",))])
    core.hear()
    rm.hello()
    assert core.hear() == []
    assert isinstance(core.commit("waits", 3)[0], GangCommitted)


# ---------------------------------------------------------------------- C05


def test_c05_a_snapshot_of_ten_thousand_nodes(connect: Connect, tmp_path: Path) -> None:
    """C05: in parts of at most 16 MiB each, under 2 s; the best of three tries, since the machine is shared."""
    rm = started(connect, tmp_path, **{"yarn.scheduler.gandiva.height.max": "1"})
    nodes = [
        AddNode(host=f"n{number:05d}", memory_mib=458752, vcores=64, gpus=4)
        for number in range(10_000)
    ]
    for first in range(0, len(nodes), 2_000):
        rm.step(0.0, nodes[first : first + 2_000])
    times_s = []
    for _ in range(3):
        rm.hello()
        begun_s = time.perf_counter()
        events = rm.take_events()
        times_s.append(time.perf_counter() - begun_s)
    parts = [event for event in events if isinstance(event, rm_wire.Resync)]
    assert [part.part for part in parts] == list(range(1, parts[0].parts + 1))
    assert sum(len(part.nodes) for part in parts) == 10_000
    assert rm.longest_batch < 16 * 1024 * 1024
    assert min(times_s) < 2.0


@pytest.mark.parametrize("token", ["0" * 64, "0" * 64 + "\n" + "1" * 64 + "\n", ""])
def test_c05_a_wrong_token_is_one_clear_line(jvm: ReplayJvm, tmp_path: Path, token: str) -> None:
    """C05: a file with another token, with a newline in it, and an empty one; no storm of retries."""
    file = tmp_path / "token"
    file.write_text(token, encoding="utf-8")
    os.chmod(file, 0o600)  # noqa: PTH101
    begun_s = time.perf_counter()
    with pytest.raises(GatewayError) as caught:
        Gateway.connect(jvm.port, file)
    assert time.perf_counter() - begun_s < 5.0
    assert "\n" not in str(caught.value)
    assert "token" in str(caught.value)


# ---------------------------------------------------------------------- A11


@pytest.mark.parametrize("arm", ["capacity", "gandiva"])
@pytest.mark.parametrize(
    ("limit_mib", "first_mib", "waits"),
    [(3072, 1536, True), (1024, 2048, True), (4096, 1536, False)],
)
def test_a11_a_second_master_waits_for_the_am_limit(
    connect: Connect, tmp_path: Path, arm: str, limit_mib: int, first_mib: int, waits: bool
) -> None:
    """A11: 1536 + 2048 > 3072 waits; with nothing active one starts even above the limit; both arms agree."""
    cluster_mib = 65_536
    percent = {"yarn.scheduler.capacity.maximum-am-resource-percent": str(limit_mib / cluster_mib)}
    rm = started(connect, tmp_path, arm, **percent)
    rm.step(0.0, [AddNode(host="n1", memory_mib=cluster_mib, vcores=64, gpus=4)])
    first = master("first", first_mib)
    events = [*rm.step(1.0, [first]), *rm.step(2.0, [master("second", 2048)])]
    assert [event.key for event in events if isinstance(event, AmStarted)] == (
        ["first"] if waits else ["first", "second"]
    )
    waiting = [(e.key, e.reason) for e in events if isinstance(e, AmWaiting)]
    assert waiting == ([("second", "AM_LIMIT")] if waits else [])
    if waits:
        told = str(rm.query(app_diagnostics="second")["diagnostics"])
        assert "AM Resource Request = <memory:2048" in told
        assert f"Queue Resource Limit for AM = <memory:{limit_mib}" in told
        assert f"Queue AM Resource Usage = <memory:{first_mib}" in told


def master(key: str, memory_mib: int) -> Submit:
    """An application whose master wants this much memory."""
    return Submit(
        key=key,
        name=key,
        queue="root.default",
        user="ann",
        tags=(),
        am_memory_mib=memory_mib,
        am_vcores=1,
    )


# ---------------------------------------------------------------------- errors


def test_what_the_jvm_refuses_is_one_line(connect: Connect, tmp_path: Path) -> None:
    rm = started(connect, tmp_path)
    with pytest.raises(ReplayError, match="never submitted") as caught:
        rm.step(1.0, [ask("nobody", 1)])
    assert "\n" not in str(caught.value)


def test_a_jvm_that_died_is_one_line_with_its_log(tmp_path: Path) -> None:
    """The log's last line and its path, for whoever has to find out why."""
    log_file = tmp_path / "resourcemanager.log"
    with ReplayJvm(log_file) as jvm:
        gateway = jvm.connect()
        rm = ReplayedRm(gateway, gateway.close, str(log_file))
    with pytest.raises(ReplayError, match=r"resourcemanager\.log") as caught:
        rm.configuration()
    assert "\n" not in str(caught.value)
