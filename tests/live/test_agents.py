"""Real training in real containers, shared by time: agents, launchers, and a core that decides (GE-2; DESIGN §5)."""

from __future__ import annotations

import importlib.util
import json
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from gandiva_core.site.configuration import SiteConfiguration
from tests.live.shells import Live, Shell, brought_up, wait_until
from yarn_plugin.bridge.status import CONNECTED

pytestmark = [
    pytest.mark.live,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        importlib.util.find_spec("torch") is None, reason="no torch: run `make env-jobs`"
    ),
]

ROOT = Path(__file__).resolve().parents[2]
QUANTUM_S = 2.0
QUANTA = 20
JOBS = 6
GPUS = 4
SILENT_S = 20.0
"""Three quanta until agents turn by themselves, and time for everybody's turn."""


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """One node with an agent and four virtual devices."""
    prefix = "yarn.scheduler.gandiva."
    settings = {
        f"{prefix}quantum-ms": f"{QUANTUM_S * 1000:.0f}",
        f"{prefix}agent.virtual-step-ms": "50",
        f"{prefix}core.fallback": "wait",
    }
    options = ["--nodes", "1", "--gpus", str(GPUS), "--height-max", "2", "--agents"]
    for key, value in settings.items():
        options += ["--set", f"{key}={value}"]
    with brought_up(tmp_path_factory.mktemp("live") / "agents", *options) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def six(live: Live) -> Iterator[Shell]:
    """Six independent jobs of one GPU each, in containers of Hadoop's own example."""
    python = sys.executable
    train = f"{python} {ROOT / 'tests' / 'live' / 'training.py'} 1000000"
    launch = f"{python} -m nodemanager_agent.client.launch -- {train}"
    with live.shell(
        JOBS,
        "-application_tags",
        "gandiva.gang=1",
        name="six",
        resources="memory-mb=768,vcores=1,yarn.io/gpu=1",
        command=f"env PYTHONPATH={ROOT} OMP_NUM_THREADS=1 {launch}",
    ) as shell:
        wait_until(lambda: len(steps(live)) == JOBS, "every job has computed")
        yield shell


def steps(live: Live) -> dict[str, int]:
    """The last step that each container printed."""
    found = {}
    for file in live.folder.logs.glob("node-1-containers/*/*/stdout"):
        lines = [line for line in file.read_text().splitlines() if line.count(" ") == 2]
        if lines:
            found[file.parent.name] = int(lines[-1].split()[0])
    return found


def runs(live: Live) -> dict[str, list[tuple[float, float]]]:
    """When each job held its device, from the journal: (from, to), the last one open."""
    since: dict[str, float] = {}
    held: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for line in live.journal().splitlines():
        event = json.loads(line).get("event") or {}
        if event.get("kind") == "ResidentsSwitched":
            for job_id, at_s in event.get("stopped", ()):
                held[job_id].append((since.pop(job_id, at_s), at_s))
            since.update(event.get("started", ()))
    for job_id, at_s in since.items():
        held[job_id].append((at_s, float("inf")))
    return held


def test_six_jobs_share_four_devices_fairly(live: Live, six: Shell) -> None:
    """GE-2, live: each runs four of six quanta; Jain of what they held over 20 quanta."""
    begins_s = time.time() + 2 * QUANTUM_S
    ends_s = begins_s + QUANTA * QUANTUM_S
    before = steps(live)
    wait_until(lambda: time.time() > ends_s + QUANTUM_S, "20 quanta have passed")
    held = runs(live)
    assert len(held) == JOBS
    shares = [
        sum(max(0.0, min(to, ends_s) - max(since, begins_s)) for since, to in spans)
        for spans in held.values()
    ]
    jain = sum(shares) ** 2 / (len(shares) * sum(share * share for share in shares))
    used = sum(shares) / (GPUS * (ends_s - begins_s))
    after = steps(live)
    live.record("slicing", jain=jain, used_ratio=used, shares_s=shares, steps=after)
    assert jain >= 0.98
    assert all(after[container] > before[container] for container in before)
    # At most four at any moment, and never two on one device: what the core believes is what agents do.
    assert used <= 1.001


def test_jobs_go_on_in_turn_while_the_core_is_silent(live: Live, six: Shell) -> None:
    """DESIGN §4: nobody stays suspended because the core is away; and it takes over again."""
    core = next(each for each in live.processes() if "core" in each.cmdline()[:5])
    core.send_signal(signal.SIGSTOP)
    try:
        before = steps(live)
        time.sleep(SILENT_S)
        after = steps(live)
    finally:
        core.send_signal(signal.SIGCONT)
    live.record("silence", before=before, after=after)
    assert set(before) == set(after)
    assert all(after[container] > before[container] for container in before)
    wait_until(lambda: live.report().core is not None, "the bean is there")
    wait_until(
        lambda: (core_now := live.report().core) is not None and core_now.state == CONNECTED,
        "the core decides again",
    )
    count = live.journal().count('"ResidentsSwitched"')
    wait_until(
        lambda: live.journal().count('"ResidentsSwitched"') > count + 3, "switches are carried out"
    )
    again = steps(live)
    wait_until(lambda: all(steps(live)[c] > again[c] for c in again), "all of them compute again")


def test_the_agents_secret_is_nobodys_to_see(live: Live) -> None:
    """FAULTS I7: in a file of mode 0600, on no command line and in no log."""
    site = SiteConfiguration.load(live.folder.conf, {})
    file = Path(site.text("yarn.scheduler.gandiva.agents.token-file", ""))
    secret = file.read_text().strip()
    assert file.stat().st_mode & 0o077 == 0
    assert all(secret not in " ".join(each.cmdline()) for each in live.processes())
    logs = [log for log in live.folder.logs.rglob("*") if log.is_file()]
    assert [log.name for log in logs if secret in log.read_text(errors="replace")] == []
