"""Real training in real containers, shared by time: agents, launchers, and a core that decides (GE-2; DESIGN §5)."""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gandiva_core.site.configuration import SiteConfiguration
from tests.live.shells import Live, Shell, wait_until
from tests.live.slicing import six_jobs, sliced, slices, steps, wait_until_even
from yarn_plugin.bridge.status import CONNECTED

pytestmark = [
    pytest.mark.live,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        importlib.util.find_spec("torch") is None, reason="no torch: run `make env-jobs`"
    ),
]

IN_ORDER = True
"""Who held what is read from the core's journal, which has a gap after the core was away."""

QUANTUM_S = 2.0
QUANTA = 20
AWAY_S = 60.0
"""How long the core is kept away; after three quanta agents turn by themselves."""

HELD_OFF = """#!/bin/sh
# The core's interpreter, which does not start while a file is there.
while [ -e '{hold}' ]; do sleep 0.2; done
exec '{python}' "$@"
"""


@pytest.fixture(scope="module")
def hold(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """While this file is there, no core starts."""
    return tmp_path_factory.mktemp("core") / "hold"


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory, hold: Path) -> Iterator[Live]:
    """One node with an agent and four virtual devices."""
    python = hold.with_name("python")
    python.write_text(HELD_OFF.format(hold=hold, python=sys.executable))
    python.chmod(0o755)
    path = tmp_path_factory.mktemp("live") / "agents"
    with sliced(path, QUANTUM_S, core_python=str(python)) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def six(live: Live) -> Iterator[Shell]:
    """Six independent jobs."""
    with six_jobs(live) as shell:
        yield shell


def test_six_jobs_share_four_devices_fairly(live: Live, six: Shell) -> None:
    """GE-2, live: each runs four of six quanta; Jain of what they held over 20 quanta."""
    wait_until_even(live, QUANTUM_S)
    begins_s = time.time()
    ends_s = begins_s + QUANTA * QUANTUM_S
    before = steps(live)
    wait_until(lambda: time.time() > ends_s + QUANTUM_S, "20 quanta have passed")
    found, after = slices(live, begins_s, ends_s), steps(live)
    live.record("slicing", slices=found, steps=after)
    assert found.jain >= 0.98
    assert all(after[container] > before[container] for container in before)
    # At most four at any moment, and never two on one device: what the core believes is what agents do.
    assert found.used_ratio <= 1.001


def test_a_core_killed_for_a_minute_stops_nobody(live: Live, six: Shell, hold: Path) -> None:
    """DESIGN §4, FAULTS E3: six jobs on four devices all make progress meanwhile; and it takes over again."""
    hold.touch()
    try:
        (core,) = (each for each in live.processes() if "core" in each.cmdline()[:5])
        core.kill()
        before = steps(live)
        time.sleep(AWAY_S)
        after = steps(live)
        away = live.report().core
    finally:
        hold.unlink()
    live.record("core-away", before=before, after=after)
    assert away is not None
    assert away.state != CONNECTED
    assert set(before) == set(after)
    assert all(after[container] > before[container] for container in before)
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
    assert {app["state"] for app in live.apps()} == {"RUNNING"}


def test_the_agents_secret_is_nobodys_to_see(live: Live) -> None:
    """FAULTS I7: in a file of mode 0600, on no command line and in no log."""
    site = SiteConfiguration.load(live.folder.conf, {})
    file = Path(site.text("yarn.scheduler.gandiva.agents.token-file", ""))
    secret = file.read_text().strip()
    assert file.stat().st_mode & 0o077 == 0
    assert all(secret not in " ".join(each.cmdline()) for each in live.processes())
    logs = [log for log in live.folder.logs.rglob("*") if log.is_file()]
    assert [log.name for log in logs if secret in log.read_text(errors="replace")] == []
