"""Faults of the core, the ResourceManager and a NodeManager in a cluster that runs (FAULTS E3, E4, E5, E7, A1).

One cluster for all, in this order; `docs/FAULT_EXPERIMENTS.md` has the figures. The full lengths of FAULTS are those of
`make thorough`.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator
from random import Random

import pytest
import typer

from gandiva_core.cli.main import ExitCode
from tests.live.books import (
    Holdings,
    containers,
    newest_container,
    of_core,
    of_rm,
)
from tests.live.ledger import Ledger
from tests.live.probes import PROPERTIES, ThreadSampler, heartbeats
from tests.live.shells import Live, Shell, brought_up, wait_until
from tests.live.tampering import (
    Interpreter,
    answer_to,
    asks_of,
    child_id,
    core_in_place,
    core_of,
    garbage,
    refresh,
    stopped,
)
from tests.yarn.nonsense import Nonsense, answers
from yarn_plugin.cluster.daemons import RESOURCE_MANAGER
from yarn_plugin.status.command import status

pytestmark = [
    pytest.mark.live,
    pytest.mark.slow,
    pytest.mark.timeout(900),
]  # JVMs, back-off of a core that is killed, and pauses that FAULTS asks for

IN_ORDER = True
IS_THOROUGH = os.environ.get("HYPOTHESIS_PROFILE") == "thorough"
KILLS = 20 if IS_THOROUGH else 2
"""At random points; three more kills at chosen ones. A fifth end within ten minutes makes a managed core rest."""

PAUSE_S = 30.0 if IS_THOROUGH else 8.0
NONSENSE = 2000 if IS_THOROUGH else 300
HEIGHT_MAX = 4
GPUS = 4
EVENTS_MAX = 6
HOLD_MS = 15_000
HEARTBEAT_S = 1.0
FIRST_GRANT_S_MAX = 1.0 + HEARTBEAT_S
EXTENDED = "yarn.scheduler.gandiva."
WAIT, EXCLUSIVE = "<value>wait</value>", "<value>exclusive</value>"
QUEUES = (
    "yarn.scheduler.capacity.root.queues=default,plain",
    "yarn.scheduler.capacity.root.default.capacity=75",
    "yarn.scheduler.capacity.root.default.user-limit-factor=8",
    "yarn.scheduler.capacity.root.plain.capacity=25",
    "yarn.scheduler.capacity.root.plain.maximum-capacity=25",
)
"""Work without GPUs is bounded by its queue: else it would reserve the node, for nobody else."""

PROFILE = {
    "pause_s": PAUSE_S,
    "random_kills": KILLS,
    "recovery.hold-ms": HOLD_MS,
    "bridge.events.max": EVENTS_MAX,
    "scheduling-wait-ms": 1000,
}
DEFAULTS = {
    "pause_s": 30.0,
    "random_kills": 20,
    "recovery.hold-ms": 60_000,
    "bridge.events.max": 100_000,
    "scheduling-wait-ms": 10_000,
}


@pytest.fixture(scope="module")
def interpreter(tmp_path_factory: pytest.TempPathFactory) -> Interpreter:
    """Whatever is asked to run the core."""
    return Interpreter(tmp_path_factory.mktemp("interpreter"), is_patient=IS_THOROUGH)


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory, interpreter: Interpreter) -> Iterator[Live]:
    """One four-GPU node whose devices are shared although no agent is there; fallback `wait`."""
    settings = (
        f"{EXTENDED}oversubscribe-without-agent=true",
        f"{EXTENDED}core.python={interpreter.program}",
        f"{EXTENDED}core.fallback=wait",
        f"{EXTENDED}recovery.hold-ms={HOLD_MS}",
        f"{EXTENDED}bridge.events.max={EVENTS_MAX}",
        *QUEUES,
        *PROPERTIES,
    )
    options = ["--nodes", "1", "--gpus", str(GPUS), "--scheduler", "gandiva"]
    for setting in settings:
        options += ["--set", setting]
    with brought_up(tmp_path_factory.mktemp("live") / "faults", *options) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def ledger(live: Live) -> Ledger:
    """Checked after every step."""
    return Ledger(live, HEIGHT_MAX)


@pytest.fixture(scope="module")
def plain(live: Live) -> Iterator[Shell]:
    """Work without GPUs that asks for one container after the other, all the time."""
    size = {"resources": "memory-mb=128,vcores=1", "command": "sleep 3"}
    with live.shell(900, "-queue", "plain", name="plain", **size) as shell:
        yield shell


@pytest.fixture(scope="module")
def gang(live: Live, ledger: Ledger) -> Iterator[Shell]:
    """Eight at once on four devices: the core never places it, stock code would."""
    with live.shell(8, "-application_tags", "gandiva.gang=8", name="gang") as shell:
        yield shell


@pytest.fixture(scope="module")
def eight(live: Live, ledger: Ledger) -> Iterator[Shell]:
    """Eight containers on four devices, two on each."""
    with live.shell(8, "-application_tags", "gandiva.gang=1", name="eight") as shell:
        wait_until(lambda: len(shell.pids()) == 8, "eight containers at once")
        yield shell


class Going:
    """Whether work without GPUs goes on: containers are given to it that were not there before."""

    def __init__(self, live: Live, plain: Shell) -> None:
        self._live = live
        self._app_id = plain.app_id()
        self._before = self._newest()

    def check(self) -> None:
        wait_until(lambda: self._newest() > self._before + 1, "work without GPUs is served")

    def _newest(self) -> int:
        return newest_container(self._live, self._app_id)


def show(live: Live, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Exit code and text of `gandiva status`."""
    capsys.readouterr()
    try:
        status(rm=live.cluster.web)
    except typer.Exit as end:
        return end.exit_code, capsys.readouterr().out
    return 0, capsys.readouterr().out


def wait_for_books(live: Live) -> None:
    """The core's are the ResourceManager's."""
    wait_until(lambda: of_core(live) == of_rm(live), "equal books")


def wait_for_core(live: Live, after_epoch: int) -> None:
    wait_until(
        lambda: live.bean().core_epoch > after_epoch and live.bean().is_well, "a core is back", 0.05
    )


def heights(live: Live) -> dict[str, int]:
    return {each.key: each.value for each in live.bean().nodes_by_height}


# ---------------------------------------------------------------------------- reasons, settings


def test_a_gang_that_waits_says_what_it_needs_and_what_there_is(
    live: Live, plain: Shell, gang: Shell, ledger: Ledger
) -> None:
    """Issue's must-show: the reason in the diagnostics, with need and have, in the words of `explain`."""
    words = (
        "gang of 8 waits: needs 8 GPUs at once, 4 are there in the default partition"
        " (no server set is large enough)"
    )
    wait_until(lambda: words in live.yarn("application", "-status", gang.app_id()).stdout, words)
    assert live.gpus_used() == 0
    ledger.check()


def test_a_refresh_with_a_mistake_changes_nothing(live: Live) -> None:
    """The command fails, its line has key, found and expected, and what was in force stays."""
    said = refresh(live, "<value>full</value>", "<value>ful</value>")
    try:
        assert not said.startswith("0\n")
        (line,) = [each for each in said.splitlines() if f"{EXTENDED}mode" in each][:1]
        assert '"ful"' in line
        assert "observe or place or full" in line
        assert live.bean().mode == "full"
        assert live.bean().core_state == "CONNECTED"
    finally:
        assert refresh(live, "<value>ful</value>", "<value>full</value>").startswith("0\n")
    assert live.bean().mode == "full"


# ---------------------------------------------------------------------------- the core is dead


def test_with_fallback_wait_nothing_is_given_and_the_wait_is_seen(
    live: Live,
    plain: Shell,
    gang: Shell,
    ledger: Ledger,
    interpreter: Interpreter,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """E3, `wait`; then E5 in the place of the core, before it comes back."""
    before, going = live.bean(), Going(live, plain)
    with interpreter.unusable():
        core_of(live).kill()
        wait_until(lambda: live.bean().core_state == "SILENT", "silence is noticed")
        assert live.bean().breaker_opens == before.breaker_opens + 1
        assert live.bean().fallback_engaged == 0
        code, text = show(live, capsys)
        assert code == ExitCode.CHECK_FAILED
        assert "silent since" in text
        assert "wait, not used" in text
        going.check()
        assert live.gpus_used() == 0
        ledger.check()
        garbage_is_refused_whole(live, gang)
        ledger.check()
    wait_for_core(live, before.core_epoch + 1)
    assert live.gpus_used() == 0
    assert show(live, capsys)[0] == 0
    assert "needs 8 GPUs" in live.yarn("application", "-status", gang.app_id()).stdout


def garbage_is_refused_whole(live: Live, gang: Shell) -> None:
    """E5: reason and counter for each, nothing done, not even in part."""
    before, rm = live.bean(), live.daemon(RESOURCE_MANAGER)
    core = core_in_place(live, child_id(live))
    app = asks_of(core)
    ask = next(each for each in app["asks"] if each["resource_name"] == "*")
    same = ("priority", "allocation_request_id", "memory_mib", "vcores", "gpus")
    (node,) = live.report().nodes
    orders = garbage(app["attempt"], app["app"], node.node_id, {name: ask[name] for name in same})
    for order in orders:
        code, reason = answer_to(core, order)
        assert code not in {"OK", "INTERNAL"}, (order, code, reason)
        assert reason, order
    # About an attempt and a node that are not there: there is nothing that it could do.
    absent = Nonsense(5, "appattempt_1_0001_000001")
    codes = answers(core, absent, NONSENSE, core._sequence + 1)
    assert "INTERNAL" not in codes
    after = live.bean()
    refused = after.garbage_refused - before.garbage_refused
    assert refused >= len(orders) / 2
    assert after.own_errors == before.own_errors
    assert live.daemon(RESOURCE_MANAGER) == rm
    assert live.gpus_used() == 0, "no part of any gang was created"
    assert after.commits_ok == before.commits_ok
    assert heights(live) == {str(HEIGHT_MAX): 1}, "nobody's height was changed"
    live.record("garbage", orders=len(orders), refused=refused, codes=codes)
    core.close()


def test_with_fallback_exclusive_stock_code_serves_what_is_physically_free(
    live: Live,
    plain: Shell,
    gang: Shell,
    ledger: Ledger,
    interpreter: Interpreter,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """E3, `exclusive`: the first grant comes while the core is away; the target is 1 s and a heartbeat."""
    assert refresh(live, WAIT, EXCLUSIVE).startswith("0\n")
    before, going = live.bean(), Going(live, plain)
    assert before.fallback == "exclusive"
    assert live.gpus_used() == 0, "the ask waits, and the core is there"
    with interpreter.unusable():
        killed_s = time.monotonic()
        core_of(live).kill()
        wait_until(lambda: live.gpus_used() > 0, "the first stock grant", 0.02)
        first_grant_s = time.monotonic() - killed_s
        bean = live.bean()
        assert (bean.core_state, bean.fallback_engaged) == ("SILENT", 1), "granted while it is away"
        wait_until(lambda: live.gpus_used() == GPUS, "all that is physically free")
        code, text = show(live, capsys)
        assert code == ExitCode.CHECK_FAILED
        assert "stock code serves GPU asks on physical GPUs" in text
        assert heights(live) == {"1": 1}
        going.check()
        assert live.gpus_used() == GPUS, "eight are asked for, four are there"
        ledger.check()
    back_s = resumed(live, before.core_epoch)
    live.record(
        "exclusive",
        first_grant_s=first_grant_s,
        target_s=FIRST_GRANT_S_MAX,
        heights_after_hello_s=back_s,
        profile=PROFILE,
        defaults=DEFAULTS,
    )
    wait_for_books(live)
    kill(live, gang, ledger)
    wait_for_books(live)


def resumed(live: Live, after_epoch: int) -> float:
    """From the core's hello until its heights are in force again."""
    wait_for_core(live, after_epoch)
    hello_s = time.monotonic()
    wait_until(lambda: heights(live) == {str(HEIGHT_MAX): 1}, "the policy's heights", 0.05)
    assert live.bean().fallback_engaged == 0
    return time.monotonic() - hello_s


def kill(live: Live, shell: Shell, ledger: Ledger) -> None:
    app_id = shell.app_id()
    ledger.killed(app_id)
    assert live.yarn("application", "-kill", app_id).returncode == 0
    wait_until(lambda: live.gpus_used() == 0, f"{shell.name} holds nothing")


def test_a_core_killed_at_random_points_loses_nothing(
    live: Live, plain: Shell, eight: Shell, ledger: Ledger
) -> None:
    """E3: the ResourceManager never ends, work goes on, all containers live, the policy resumes."""
    rm, pids, random, backs_s = live.daemon(RESOURCE_MANAGER), eight.pids(), Random(3), []
    assert len(pids) == 8
    for _ in range(KILLS):
        time.sleep(random.expovariate(1.0 / 4.0) if IS_THOROUGH else random.uniform(0.0, 2.0))
        before, going = live.bean(), Going(live, plain)
        core_of(live).kill()
        backs_s.append(resumed(live, before.core_epoch))
        wait_for_books(live)
        assert live.daemon(RESOURCE_MANAGER) == rm
        assert eight.pids() == pids
        assert live.gpus_used() == 8
        going.check()
        ledger.check()
    ledger.every_decision_can_be_made_again()
    live.record("kills", heights_after_hello_s=backs_s, profile=PROFILE, defaults=DEFAULTS)


# ---------------------------------------------------------------------------- the core hangs


def test_a_core_that_hangs_blocks_no_thread_of_the_resource_manager(
    live: Live,
    plain: Shell,
    eight: Shell,
    ledger: Ledger,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """E4: by samples of all stacks; heartbeats are served, the breaker is seen, and all goes on after SIGCONT."""
    core, before, quiet, going = core_of(live), live.bean(), heartbeats(live), Going(live, plain)
    with stopped(core), ThreadSampler(live) as sampler:
        began_s = time.monotonic()
        wait_until(lambda: live.bean().core_state == "SILENT", "silence is noticed")
        assert live.bean().breaker_opens == before.breaker_opens + 1
        assert "silent since" in show(live, capsys)[1]
        going.check()
        time.sleep(max(0.0, PAUSE_S - (time.monotonic() - began_s)))
        assert live.gpus_used() == 8
        hung, hung_s = heartbeats(live), time.monotonic() - began_s
    assert sampler.samples > 0
    assert sampler.longest_s <= 1.1, sampler.where
    assert hung.count - quiet.count >= hung_s / HEARTBEAT_S / 3, "nodes go on to report"
    wait_until(lambda: live.bean().is_well, "the same core is back")
    assert live.bean().core_epoch == before.core_epoch, "in its old session"
    wait_until(lambda: heights(live) == {str(HEIGHT_MAX): 1}, "the policy's heights")
    wait_for_books(live)
    ledger.check()
    live.record(
        "hang",
        longest_in_our_code_s=sampler.longest_s,
        where=sampler.where,
        samples=sampler.samples,
        longest_gap_s=max(sampler.gaps_s),
        heartbeats=hung.count - quiet.count,
        seconds=hung_s,
        p99_ms_before=quiet.p99_ms,
        p99_ms_while=hung.p99_ms,
        profile=PROFILE,
        defaults=DEFAULTS,
    )


# ---------------------------------------------------------------------------- daemons die


def test_a_dead_resource_manager_and_core_leave_eight_containers_alone(
    live: Live, plain: Shell, eight: Shell, ledger: Ledger, interpreter: Interpreter
) -> None:
    """A1, with the core dead in between: same processes, same ids, same books; nothing placed during the hold."""
    if live.bean().fallback != "wait":
        # Where eight are seen and eight are held, Hadoop calls their queue full, for masters too.
        assert refresh(live, EXCLUSIVE, WAIT).startswith("0\n")
    before, pids, core_before = held_by(live, eight), eight.pids(), of_core(live)
    assert of_rm(live) == core_before
    with live.shell(1, "-application_tags", "gandiva.gang=1", name="late") as late:
        with interpreter.unusable():
            core_of(live).kill()
            wait_until(lambda: has_master(live, late), "an application that asks")
            assert live.gpus_used() == 8, "nobody decides: nothing is given"
            live.daemon(RESOURCE_MANAGER).kill()
        live.up()
        wait_until(lambda: live.gpus_used() >= 8, "all are known again")
        assert eight.pids() == pids
        assert held_by(live, eight) == before
        wait_until(lambda: live.gpus_used() == 9, "what was asked meanwhile, after the hold")
        refused = {each.key: each.value for each in live.bean().effects_refused}
        assert refused.get("NOT_READY", 0) >= 1, "nothing was committed during the hold"
        wait_for_books(live)
        assert of_core(live) - of_rm_of(live, late) == core_before
        (node,) = live.cluster.nodes
        assert {place for _, place in of_core(live)} == {node.node_id}
        assert of_core(live).total() == 9, "the eight, two for each of four devices, and one more"
        late.finish()
    wait_until(lambda: live.gpus_used() == 8, "eight are left")
    wait_for_books(live)
    ledger.check()


def test_a_dead_node_manager_leaves_its_containers_alone(
    live: Live, plain: Shell, eight: Shell, ledger: Ledger
) -> None:
    """E7, supervised: same processes, same ids, same books."""
    before, pids = held_by(live, eight), eight.pids()
    (node,) = live.cluster.nodes
    live.daemon(node.name).kill()
    live.up()
    wait_until(lambda: live.gpus_used() == 8, "its containers are known")
    going = Going(live, plain)
    assert eight.pids() == pids
    assert held_by(live, eight) == before
    wait_for_books(live)
    going.check()
    ledger.check()


def test_a_full_queue_of_events_becomes_one_resync(
    live: Live, plain: Shell, eight: Shell, ledger: Ledger
) -> None:
    """More happens than is kept for a core that does not listen; afterwards books are equal, and asks are served."""
    overflows = live.bean().queue_overflows
    with stopped(core_of(live)):
        eight.finish()
        wait_until(lambda: live.gpus_used() == 0, "all eight have ended")
        assert live.bean().queue_overflows > overflows
    wait_until(lambda: live.bean().is_well, "the core is back")
    wait_for_books(live)
    with live.shell(2, "-application_tags", "gandiva.gang=2", name="last") as last:
        wait_until(lambda: live.gpus_used() == 2, "a gang after it")
        wait_for_books(live)
        last.finish()
    ledger.check()
    ledger.every_decision_can_be_made_again()


def held_by(live: Live, shell: Shell) -> set[tuple[str, str]]:
    """Ids and nodes of an application's GPU containers."""
    app_id = shell.app_id()
    return {
        (each.container, each.node) for each in containers(live) if each.app == app_id and each.gpus
    }


def of_rm_of(live: Live, shell: Shell) -> Holdings:
    """What one application holds in the ResourceManager's books."""
    app_id = shell.app_id()
    return Counter({key: gpus for key, gpus in of_rm(live).items() if key[0] == app_id})


def has_master(live: Live, shell: Shell) -> bool:
    """Whether its master runs: it asks with its first heartbeat."""
    app = shell.app()
    return app is not None and app["state"] == "RUNNING"
