"""Looks from outside at real processes (G-50; FAULTS E15)."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from nodemanager_agent.devices.virtual import VirtualDevices
from nodemanager_agent.processes import ancestors, by_container, container_of, is_alive
from nodemanager_agent.profiler import Profiler, Sample
from tests.fakes.agent import job_environment
from tests.fakes.core import until

NAME = f"container_profiled_{os.getpid()}"
BUSY = "block = bytearray(40 << 20)\nwhile True: pass"


@pytest.fixture
def busy() -> Iterator[subprocess.Popen[bytes]]:
    job = subprocess.Popen([sys.executable, "-c", BUSY], env=job_environment(CONTAINER_ID=NAME))
    yield job
    job.kill()
    job.wait()


def test_a_containers_processes_are_seen_with_memory_and_load(
    busy: subprocess.Popen[bytes],
) -> None:
    """G-50: without a hook: host memory, and how busy it is."""
    samples: list[Sample] = []
    profiler = Profiler(VirtualDevices(1), samples.append)
    profiler.start()
    try:
        until(lambda: samples and samples[-1].workers.get(NAME) is not None)
        until(lambda: (samples[-1].workers[NAME].cpu_ratio or 0) > 0.1)
        assert samples[-1].workers[NAME].host_memory_mib >= 40
        assert 0 <= samples[-1].idle_ratio <= 1
        assert len(samples[-1].devices) == 1
        busy.kill()
        busy.wait()
        until(lambda: NAME not in samples[-1].workers)
    finally:
        profiler.close()


def test_a_look_that_takes_long_is_followed_by_one_and_not_by_all_that_were_missed() -> None:
    """E15, issue 5 item 1: coalesced, one instance, and what is late is not dropped."""
    begun: list[float] = []

    def slow(_: Sample) -> None:
        begun.append(time.monotonic())
        time.sleep(2.2 if len(begun) == 1 else 0)

    profiler = Profiler(VirtualDevices(1), slow)
    profiler.start()
    try:
        until(lambda: len(begun) >= 3)
    finally:
        profiler.close()
    assert begun[1] - begun[0] > 2.1
    assert begun[2] - begun[1] > 0.5


def test_there_is_one_look_at_a_time_and_nothing_is_kept_of_who_has_gone(
    busy: subprocess.Popen[bytes],
) -> None:
    """G-50: both kinds of looks share what they know of processes; an agent lives for months."""

    class Watched(Profiler):
        inside = overlaps = 0

        def sample(self) -> None:
            self._alone(super().sample)

        def sample_memory(self) -> None:
            self._alone(super().sample_memory)

        def _alone(self, look: Callable[[], None]) -> None:
            self.inside += 1
            self.overlaps += self.inside > 1
            time.sleep(0.3)
            look()
            self.inside -= 1

    samples: list[Sample] = []
    profiler = Watched(VirtualDevices(1), samples.append)
    profiler.start()
    try:
        until(lambda: NAME in profiler._cpu_s and NAME in profiler._memory)
        busy.kill()
        busy.wait()
        until(lambda: NAME not in profiler._cpu_s and NAME not in profiler._memory)
    finally:
        profiler.close()
    assert profiler.overlaps == 0


def test_a_process_is_its_number_and_its_start(busy: subprocess.Popen[bytes]) -> None:
    """E6: a number that the kernel gave to another process is not the same process."""
    until(lambda: container_of(busy.pid) == NAME)
    assert busy.pid in by_container()[NAME]
    assert is_alive(busy.pid, None)
    assert not is_alive(busy.pid, 1)
    assert {os.getpid(), os.getppid()} <= ancestors(busy.pid)
    busy.kill()
    busy.wait()
    assert not is_alive(busy.pid, None)
    assert container_of(busy.pid) is None
