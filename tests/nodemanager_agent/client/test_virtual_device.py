"""How mini-batches share a virtual device, played on a clock that is set by hand (C-8; G-55)."""

from __future__ import annotations

import heapq
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path

import pytest

from nodemanager_agent.client.virtual_device import (
    BOOK_BYTES,
    DEVICES,
    STEP_S,
    Minibatch,
    Processor,
    Token,
    Turns,
    VirtualDevice,
)

HOLDER = """
import fcntl, sys, time
file = open(sys.argv[1], 'r+b')
fcntl.flock(file, fcntl.LOCK_EX)
print('held', flush=True)
time.sleep(60)
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    file = tmp_path / "device"
    file.write_bytes(bytes(BOOK_BYTES))
    return str(file)


Job = Generator[tuple[float, int], float, None]


def job(path: str, took_s: float, ratio: float, nominal_s: float) -> Job:
    """Mini-batches without end: yields until when it waits, and how many were done."""
    token = Token(path)
    now_s, done = 1000.0, 0
    while True:
        before_s = token.computed_s(now_s)
        began_s = now_s
        now_s = yield began_s + took_s, done
        lasts_s = max(took_s, nominal_s)
        turns = Turns([token], Minibatch(began_s, lasts_s, ratio * lasts_s), [before_s])
        while (due_s := turns.next_due_s(now_s)) is not None:
            now_s = yield due_s, done
        done += 1


def played(jobs: list[Job], lasts_s: float = 60.0) -> list[int]:
    """Mini-batches of each in so long."""
    done = [0] * len(jobs)
    queue = [(next(each)[0], number) for number, each in enumerate(jobs)]
    heapq.heapify(queue)
    while queue[0][0] < 1000.0 + lasts_s:
        now_s, number = heapq.heappop(queue)
        due_s, done[number] = jobs[number].send(now_s)
        heapq.heappush(queue, (max(now_s, due_s), number))
    return done


@pytest.mark.parametrize(
    ("took_s", "nominal_s"), [(0.005, 0.06), (0.06, 0.0), (0.06, 0.06), (0.6, 0.0)]
)
@pytest.mark.parametrize("ratio", [1.0, 0.5, 0.05])
def test_alone_a_mini_batch_takes_its_nominal_time(
    path: str, took_s: float, nominal_s: float, ratio: float
) -> None:
    """C-8: whatever part of it is computed."""
    done = played([job(path, took_s, ratio, nominal_s)])[0]
    assert done == pytest.approx(60 / max(took_s, nominal_s), abs=2)


@pytest.mark.parametrize(("took_s", "nominal_s"), [(0.003, 0.06), (0.06, 0.0), (0.6, 0.0)])
def test_a_device_never_computes_for_more_than_passes(
    path: str, took_s: float, nominal_s: float
) -> None:
    """G-55, G-58: of k that only compute each has the k-th part."""
    alone = 60 / max(took_s, nominal_s)
    for count in (2, 3):
        Path(path).write_bytes(bytes(BOOK_BYTES))
        done = played([job(path, took_s, 1.0, nominal_s) for _ in range(count)])
        assert done == pytest.approx([alone / count] * count, rel=0.1, abs=1.5)


def test_who_waits_for_input_leaves_the_device_to_others(path: str) -> None:
    """GE-4: two that wait most of the time hardly feel each other; one that computes loses what the other takes."""
    pair = played([job(path, 0.06, 0.1, 0.0), job(path, 0.006, 0.1, 0.06)])
    assert pair == pytest.approx([1000, 1000], rel=0.1)
    Path(path).write_bytes(bytes(BOOK_BYTES))
    mixed = played([job(path, 0.003, 1.0, 0.06), job(path, 0.06, 0.1, 0.0)])
    assert mixed[0] == pytest.approx(900, rel=0.1)
    assert mixed[1] == pytest.approx(900, rel=0.15)


def test_what_lies_far_ahead_is_of_another_boot(path: str) -> None:
    token = Token(path)
    token.book(1e9, 0.01)
    assert token.book(1000.0, 0.01) == pytest.approx(1000.01)
    Path(path).write_bytes(b"\xff" * BOOK_BYTES)  # no number at all
    assert Token(path).book(1000.0, 0.01) == pytest.approx(1000.01)


def test_one_that_was_stopped_with_the_lock_in_hand_stops_nobody(path: str) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLDER, path], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        began_s = time.monotonic()
        assert Token(path).book(began_s, 0.01) == pytest.approx(began_s + 0.01)
        assert time.monotonic() - began_s < 10
        holder.kill()


def test_computing_counts_and_sleeping_does_not() -> None:
    """On a busy machine too: what it waits for a core is neither."""
    processor = Processor()
    time.sleep(0.2)
    assert processor.ratio(0.2) < 0.3
    began_s, ends_s = time.monotonic(), time.process_time() + 0.2
    while time.process_time() < ends_s:
        pass
    assert processor.ratio(time.monotonic() - began_s) > 0.7


def test_which_devices_are_whose(tmp_path: Path) -> None:
    """A lone process has all of its worker's devices; of several each has one. What is not there counts for nothing."""
    names = []
    for index in range(3):
        names.append(str(tmp_path / str(index)))
        Path(names[-1]).write_bytes(bytes(BOOK_BYTES))
    environment = {DEVICES: ":".join([*names, str(tmp_path / "gone")]), STEP_S: "0.5"}
    assert len(VirtualDevice(environment).tokens) == 3
    ranked = VirtualDevice({**environment, "LOCAL_WORLD_SIZE": "4", "LOCAL_RANK": "1"})
    ranked.tokens[0].book(1000.0, 0.25)
    assert [Token(name).computed_s(2000.0) for name in names] == [0.0, 0.25, 0.0]
    plain = VirtualDevice({STEP_S: "0.5"})
    now_s = time.monotonic()
    turns = plain.done(now_s)
    assert turns.next_due_s(now_s) == pytest.approx(now_s + 0.5, abs=0.1)
    turns.put_off(3.0, plain)
    assert turns.next_due_s(now_s) == pytest.approx(now_s + 3.5, abs=0.1)
    assert plain.utilisation_ratio is None
