"""Rotation, memory cycles, answers and the health line: what needs neither process nor socket."""

from __future__ import annotations

import math
import random
from pathlib import Path

import pytest

from gandiva_core.messages import agents as a
from gandiva_core.model.errors import InputError
from nodemanager_agent.answers import Answers
from nodemanager_agent.devices.virtual import Headroom, VirtualDevices
from nodemanager_agent.health import HealthFile, line
from nodemanager_agent.memory_cycle import cycle_s
from nodemanager_agent.rotation import Rotation

A = a.RunWorker("container_a", (0,))
B = a.RunWorker("container_b", (0,))


def rotation(silent_s: float = 30.0) -> Rotation:
    made = Rotation()
    made.quantum_s, made.silent_s = 10.0, silent_s
    made.table = a.RotationTable(1, 1, ((A,), (B,)))
    made.heard(0.0)
    return made


def test_turns_begin_once_the_core_has_been_silent_and_end_with_its_first_word() -> None:
    """DESIGN §4: after three quanta of silence."""
    turns = rotation()
    assert [turns.due(now_s, 1000.0 + now_s) for now_s in (1.0, 29.0)] == [None, None]
    assert turns.due(30.0, 1030.0) == (B,)
    assert turns.due(39.0, 1039.0) is None
    assert turns.due(40.0, 1040.0) == (A,)
    turns.heard(41.0)
    assert not turns.is_turning
    assert turns.due(50.0, 1050.0) is None


def test_a_clock_that_jumps_neither_skips_nor_doubles_a_turn() -> None:
    """E15: the wall clock counts at the beginning of the silence only."""
    turns = rotation()
    turns.due(30.0, 1030.0)
    assert turns.due(35.0, 4635.0) is None
    assert turns.due(40.0, 4640.0) == (A,)


def test_agents_of_one_domain_turn_at_the_same_moments() -> None:
    """Two agents that lost the core at different times are in the same quantum."""
    one, other = rotation(), rotation()
    other.heard(4.0)
    one.due(30.0, 1030.0)
    other.due(34.5, 1034.5)
    assert one.due(40.0, 1040.0) == other.due(40.0, 1040.0) == (A,)


def test_without_a_table_nobody_turns() -> None:
    turns = rotation()
    turns.table = None
    assert turns.due(1000.0, 1000.0) is None


@pytest.mark.parametrize("period_s", [2.0, 3.3, 7.5])
def test_the_memory_cycle_gives_the_length_of_a_minibatch(period_s: float) -> None:
    """G-41, FACTS §7: within 4 %, for a swing of 18 MB and more beside noise."""
    noise = random.Random(7)
    samples = [300 + 20 * ((0.25 * n / period_s) % 1.0) + noise.gauss(0, 2) for n in range(240)]
    found_s = cycle_s(samples, 0.25)
    assert found_s is not None
    assert math.isclose(found_s, period_s, rel_tol=0.04)


@pytest.mark.parametrize("kind", ["noise", "flat", "growing", "short"])
def test_what_has_no_cycle_has_none(kind: str) -> None:
    """G-41: gated on the peak: a wrong figure is worse than none."""
    noise = random.Random(3)
    samples = {
        "noise": [300 + noise.gauss(0, 5) for _ in range(240)],
        "flat": [300.0] * 240,
        "growing": [300.0 + n for n in range(240)],
        "short": [1.0, 2.0, 1.0],
    }[kind]
    assert cycle_s(samples, 0.25) is None


def test_a_command_is_carried_out_once_and_a_stale_one_not_at_all() -> None:
    """I6: epoch and message id."""
    said: list[a.Report] = []
    answers = Answers(said.append)
    assert answers.is_new(2, 1)
    answers.answer(2, a.Answered(1))
    assert not answers.is_new(2, 1)
    assert said == [a.Answered(1), a.Answered(1)]
    assert not answers.is_new(1, 7)
    assert isinstance(said[-1], a.Answered)
    assert said[-1].code == "STALE_EPOCH"
    assert answers.is_new(3, 1)
    answers.answer(2, a.Answered(1, "LATE"))  # to a core that is no more
    assert len(said) == 3


def test_the_health_line_is_an_error_only_where_nothing_is_left_to_lose(tmp_path: Path) -> None:
    """FAULTS: YARN kills every container of a node with an ERROR line; an agent that is away is none."""
    assert line(tmp_path, 0.0).startswith("WARN")
    file = HealthFile(tmp_path)
    fine = a.Device(0, "u0", "t", 1)
    lost = a.Device(1, "u1", "t", 1, healthy=False, reason="lost\nERROR forged")
    file.write(100.0, (fine,))
    assert line(tmp_path, 101.0) == "OK"
    assert line(tmp_path, 200.0).startswith("WARN")
    file.write(100.0, (fine, lost))
    assert line(tmp_path, 101.0).startswith("WARN device 1")
    file.write(100.0, (lost,))
    assert line(tmp_path, 101.0).startswith("ERROR no device is left")


def test_a_run_without_headroom_is_marked_invalid(tmp_path: Path) -> None:
    """C-8, issue 5 item 1: below 20 % idle, virtual devices slowed each other down."""
    headroom = Headroom(tmp_path / "headroom.json")
    assert headroom.add(0.3).is_valid
    record = headroom.add(0.05)
    assert not record.is_valid
    assert record.min_ratio == pytest.approx(0.05)
    assert b'"is_valid":false' in (tmp_path / "headroom.json").read_bytes()


def test_a_virtual_device_shows_no_real_one_and_paces_steps() -> None:
    """C-8, A13: jobs on virtual devices never see a GPU."""
    devices = VirtualDevices(2, 1024, step_s=0.25)
    assert [(d.index, d.is_virtual, d.memory_mib) for d in devices.measure()] == [
        (0, True, 1024), (1, True, 1024),
    ]  # fmt: skip
    assert devices.environment([0]) == {
        "CUDA_VISIBLE_DEVICES": "", "GANDIVA_VIRTUAL_STEP_S": "0.25",
    }  # fmt: skip
    assert devices.environment([]) == {"CUDA_VISIBLE_DEVICES": ""}


def test_a_virtual_devices_book_outlives_its_agent(tmp_path: Path) -> None:
    """C-8, E6: jobs that run share it by a file, which an agent started again takes over as it is."""
    books = (tmp_path / "agent.sock", 0o600)
    two = VirtualDevices(2, books=books).environment([0, 1])["GANDIVA_VIRTUAL_DEVICES"].split(":")
    assert [Path(each).name for each in two] == ["agent.sock.device-0", "agent.sock.device-1"]
    assert [Path(each).stat().st_mode & 0o777 for each in two] == [0o600, 0o600]
    Path(two[0]).write_bytes(b"0123456789abcdef")
    VirtualDevices(2, books=books)
    assert [Path(each).read_bytes() for each in two] == [b"0123456789abcdef", bytes(16)]
    Path(two[1]).unlink()
    Path(two[1]).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="device-1"):
        VirtualDevices(2, books=books)
