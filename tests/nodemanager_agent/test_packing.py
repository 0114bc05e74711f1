"""Packing on one device by the agent's order, with real processes: measured, and undone (issue 5, item 5; GE-4).

Bounds are wide and relate two times of one run: what a shared machine does to both is in neither.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from gandiva_core.messages import agents as a
from tests.fakes.core import until
from tests.nodemanager_agent.nodes import COUNTING, Node, expected

NAMES = COMPUTES_1, COMPUTES_2, READS_1, READS_2 = [f"container_7_{each}" for each in "abcd"]
STRANGER = "container_7_e"
ON_ZERO = (0,)


def launch(node: Node, name: str) -> subprocess.Popen[bytes]:
    behaviour = "reads" if name in (READS_1, READS_2) else "computes"
    return node.launch(name, sys.executable, COUNTING, behaviour, "1000000", "1")


def alone(node: Node, name: str) -> float:
    """Run it alone until it is measured, and stop it; its mini-batch time."""
    core = node.core
    turn = core.switch(run=(a.RunWorker(name, ON_ZERO),))
    until(lambda: core.switched(turn)[1] == {name})
    until(lambda: core.worker(name).minibatch_alone_s and core.worker(name).memory_peak_mib)
    stop = core.switch(suspend=(name,))
    until(lambda: core.switched(stop)[0] == {name})
    return core.worker(name).minibatch_alone_s or 0.0


def packed_sum(node: Node, one: str, two: str) -> float:
    """The normalised sum of G-57 of a pair that runs at the same time: 1 is what slicing gives."""
    core = node.core
    first = core.switch(run=(a.RunWorker(one, ON_ZERO),))
    until(lambda: core.switched(first)[1] == {one})
    second = core.switch(run=(a.RunWorker(two, ON_ZERO, (one,)),))
    until(lambda: core.switched(second)[1] == {two})
    until(lambda: all(core.worker(each).minibatch_packed_s for each in (one, two)))
    assert core.worker(one).packed_with == (two,)
    assert core.worker(two).packed_with == (one,)
    assert core.worker(one).gpus == core.worker(two).gpus == ON_ZERO
    return sum(
        (core.worker(each).minibatch_alone_s or 0.0) / (core.worker(each).minibatch_packed_s or 1.0)
        for each in (one, two)
    )


def refusal(node: Node, name: str, *packed_with: str) -> str:
    """Why it is not packed with these."""
    key = node.core.switch(run=(a.RunWorker(name, ON_ZERO, packed_with),))
    until(lambda: node.core.switched(key)[2])
    return node.core.switched(key)[2][name]


def stop(node: Node, *names: str) -> None:
    key = node.core.switch(suspend=names)
    until(lambda: node.core.switched(key)[0] == set(names))


def test_a_pair_that_waits_is_kept_and_a_pair_that_computes_is_undone(tmp_path: Path) -> None:
    """GE-4, G-53, G-57, G-59: by what the agent measures of each, alone and packed."""
    with Node(
        tmp_path, 1, "--virtual-step-ms", "40", "--virtual-memory-mib", "150"
    ).ready() as node:
        core = node.core
        node.expect(*NAMES)
        for name in NAMES:
            launch(node, name)
        until(lambda: all(node.state(name) == "waiting" for name in NAMES))
        unknown = core.switch(
            run=(a.RunWorker(COMPUTES_1, ON_ZERO), a.RunWorker(READS_1, ON_ZERO, (COMPUTES_1,)))
        )
        until(lambda: core.switched(unknown)[1:] == ({COMPUTES_1}, {READS_1: "MEMORY"}))
        stop(node, COMPUTES_1)
        times_s = {name: alone(node, name) for name in NAMES}
        assert all(0.03 < time_s < 0.1 for time_s in times_s.values()), times_s

        computing = packed_sum(node, COMPUTES_1, COMPUTES_2)
        assert computing < 1.3, computing
        # A third would not fit: 3 x 60 MiB of 150.
        assert refusal(node, READS_1, COMPUTES_1, COMPUTES_2) == "MEMORY"
        packed_s = core.worker(COMPUTES_1).minibatch_packed_s or 0.0
        stop(node, COMPUTES_2)
        until(lambda: core.worker(COMPUTES_1).packed_with == ())
        until(lambda: (core.worker(COMPUTES_1).minibatch_s or 9.0) < 0.75 * packed_s)
        stop(node, COMPUTES_1)

        waiting = packed_sum(node, READS_1, READS_2)
        assert waiting > 1.5, waiting
        assert (core.worker(READS_1).utilisation_ratio or 0.0) < 0.5
        # Not without being told, not with another user's, and not against its owner's will.
        others = [expected(name) for name in NAMES]
        core.expect(*others, expected(STRANGER, user="bob"))
        launch(node, STRANGER)
        until(lambda: node.state(STRANGER) == "waiting")
        assert refusal(node, STRANGER, READS_1) == "DEVICE_BUSY"
        assert refusal(node, STRANGER, READS_1, READS_2) == "USERS"
        stop(node, READS_2)
        forbids = a.Expected(READS_2, "job", 1, user="ann", never=("pack",))
        core.expect(expected(READS_1), forbids)
        assert refusal(node, READS_2, READS_1) == "FORBIDDEN"
        assert node.state(READS_1) == "running"
