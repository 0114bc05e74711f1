"""TensorFlow jobs that are suspended and resumed (FACTS §6; case C09). Each start of TensorFlow takes six seconds."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.fakes.agent import Job, Refused, job_environment
from tests.nodemanager_agent.client.jobs import cycle

PROGRAM = Path(__file__).parent / "fitting.py"
PLAIN = {"TF_ENABLE_ONEDNN_OPTS": "0"}  # oneDNN's allocator keeps what is freed
PACE = PLAIN | {"GANDIVA_VIRTUAL_STEP_S": "0.12"}
MINIBATCHES = 3 * 8 + 24

pytestmark = pytest.mark.skipif(
    find_spec("tensorflow") is None, reason="needs tensorflow: make env-jobs"
)


@pytest.mark.slow  # two starts of TensorFlow, at once
def test_losses_bit_exact_over_suspends_in_fit_functions_and_eager_steps(tmp_path: Path) -> None:
    """Batch norm, dropout, Adam, momentum, shuffling, validation between epochs; memory goes back, without oneDNN."""
    plain = subprocess.Popen(
        [sys.executable, str(PROGRAM), str(tmp_path / "plain")], env=job_environment(**PLAIN)
    )
    with Job([sys.executable, str(PROGRAM), str(tmp_path / "stopped")], tmp_path, PACE) as job:
        job.start()
        answers = []
        while job.process.poll() is None:
            try:
                answers += [each[0] for each in cycle(1, job, run_s=0.1)]
            except (Refused, AssertionError, OSError):
                break
        assert job.wait() == 0, job.text()
        checks = job.agent.said("continuity")
        progress = job.agent.said("progress")
    assert plain.wait() == 0
    assert (tmp_path / "stopped").read_text() == (tmp_path / "plain").read_text()
    assert len(answers) > 10, job.text()
    assert {(each["is_same"], each["detail"]) for each in checks} == {(True, "")}
    stops = {each["minibatches"] for each in answers}
    assert min(stops) <= 24
    assert 36 < max(stops) <= MINIBATCHES  # in `fit`, and in eager steps
    for answer in answers[1:]:
        figures = answer["figures"]
        assert figures["state_mib"] > 90
        assert figures["freed_mib"] > 0.95 * figures["state_mib"], answers
    last = [each for each in progress if each["ranks"]][-1]
    assert (last["can_move"], last["can_pack"]) == (False, True)


RULES = """
import sys

from nodemanager_agent.client.tensorflow_hook import KEEPS, Gpu, limits_of, place

all_of_it, grows, limited = Gpu(False, None), Gpu(True, None), Gpu(False, 2048)
for gpus, can_pack in (([all_of_it], False), ([grows], True), ([limited], True), ([limited, all_of_it], False)):
    limits = limits_of(gpus, 1, False, "it keeps no state")
    assert (limits.methods, limits.can_pack) == ([], can_pack), (gpus, limits)
    assert limits.reason.startswith(KEEPS) and limits.reason.endswith("it keeps no state")
    assert (limits.can_move, limits_of(gpus, 1, False, "").can_move) == (False, True)
assert limits_of([], 1, False, "").methods == ["framework"]
for limits in (limits_of([], 2, False, ""), limits_of([], 1, True, "")):
    assert (limits.methods, limits.can_move) == ([], False)
config = '{"cluster": {"chief": ["a:1"], "worker": ["b:1", "c:1"]}, "task": {"type": "worker", "index": 1}}'
assert place(config) == (2, 3)
assert place(None) == place("{") == place("[]") == place('{"cluster": {}, "task": {}}') == (0, 1)

import tensorflow as tf
from nodemanager_agent.client import tensorflow_hook

tensorflow_hook.install()
variables = [tf.Variable(tf.ones([1024, 1024]) * number) for number in range(4)]
state = tensorflow_hook.boundaries.framework._state
before, figures = state.checksum(), state.offload()
assert figures["state_mib"] == 16
assert figures["kept_mib"] == max(0, 16 - figures["freed_mib"]), figures  # with oneDNN: all of it, and it says so
assert variables[3].read_value().shape == (0,)
assert state.reload()
state.let_go()
assert state.checksum() == before and float(variables[3][5, 7]) == 3
seen = []
tensorflow_hook.boundaries.rank.boundary = lambda: seen.append(1)
with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    variable = tf.compat.v1.get_variable("v", [], use_resource=True)
    train = tf.compat.v1.assign_add(variable, 1.0).op
    session.run(tf.compat.v1.global_variables_initializer())
    before = len(seen)
    session.run(variable)
    assert len(seen) == before
    session.run([train, variable])
    assert len(seen) == before + 1
assert not tensorflow_hook.boundaries.framework.limits().methods
from nodemanager_agent.client.tensorflow_replica import TensorFlowCodec, obstacle

data = tf.data.Dataset.from_tensor_slices(tf.range(8))
assert not obstacle(data.batch(2)) and not obstacle([1, 2])
assert "shuffles" in obstacle(data.shuffle(8).batch(2).prefetch(1))
import io, pickle, numpy as np
from nodemanager_agent.client.framework import Refusal
codec, path = TensorFlowCodec(), sys.argv[1]
value = {"b": tf.ones([2, 3], tf.bfloat16).numpy(), "n": [np.float32(0.1), None, "x", (True, 2)], "e": np.zeros((0, 4))}
with open(path, "wb") as file:
    codec.dump(value, file)
back = codec.load(path)
assert back["b"].dtype == value["b"].dtype and back["b"].shape == (2, 3) and back["e"].shape == (0, 4)
assert back["n"][1:] == [None, "x", [True, 2]] and back["n"][0] == np.float32(0.1)
assert b"".join(codec.parts(back["b"])) == b"".join(codec.parts(value["b"]))
for bad in ({1: 2}, [object()]):
    try:
        codec.dump(bad, io.BytesIO())
        raise SystemExit("taken")
    except Refusal as refusal:
        assert refusal.code == "NOT_MOVABLE"
np.savez(path, tree=np.array([object()]))
try:
    codec.load(path)
    raise SystemExit("a pickle was read")
except Refusal as refusal:
    assert refusal.code == "UNSAFE"
print("all held")
"""


def test_on_a_gpu_nothing_is_claimed_and_packing_needs_a_limit(tmp_path: Path) -> None:
    """C09: no release in the process is claimed; a job that takes all memory is never packed. A TF 1 session."""
    environment = job_environment(TF_CPP_MIN_LOG_LEVEL="3")
    done = subprocess.run(
        [sys.executable, "-c", RULES, str(tmp_path / "values.npz")],
        env=environment,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.stdout.endswith("all held\n"), done.stderr
