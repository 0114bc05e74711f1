"""The agent's decisions over launchers that answer late, wrongly or never (G-12, G-13; FAULTS E6, E11, E19)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gandiva_core.messages import agents as a
from nodemanager_agent.ports import Admitted, Refused, Registration
from tests.nodemanager_agent.node_mind import Mind

A, B, C = "container_a", "container_b", "container_c"


def failures(mind: Mind) -> dict[str, str]:
    return {each.container_id: each.code for each in mind.switched().failed}


def test_a_worker_that_never_stops_runs_on_and_is_an_alarm_after_three(tmp_path: Path) -> None:
    """E11: time-out 10 s, it stays RUNNING on its device, who waited for it is told, and nobody is killed."""
    mind = Mind(tmp_path)
    mind.running(A)
    mind.expect(*(a.Expected(name, name, 1, user="ann") for name in (A, B)))
    mind.register(B, 2000)
    for round_ in range(1, 4):
        mind.switch(suspend=(A,), run=(a.RunWorker(B, (0,)),))
        assert mind.state(A) == "suspending"
        mind.after(12.1)
        assert mind.state(A) == "running"
        codes = [f.code for e in mind.reports[-2:] if isinstance(e, a.Switched) for f in e.failed]
        assert codes == ["NO_ANSWER", "DEVICE_BUSY"]
        assert mind.held(A) == (0,)
        alarms = [text for level, text, _ in mind.log if level == "error"]
        assert len(alarms) == (round_ == 3)
    report = next(w for w in mind.controller.hello().workers if w.container_id == A)
    assert report.method is a.Method.NONE
    assert "3 times" in report.reason
    assert {op for _, op, _ in mind.sent} == {"start", "suspend"}


def test_a_worker_that_stops_too_late_is_continued(tmp_path: Path) -> None:
    """G-12: the core was told that it runs, so it runs."""
    mind = Mind(tmp_path)
    mind.running(A)
    mind.switch(suspend=(A,))
    mind.after(12.1)
    mind.answer(A)
    assert mind.sent[-1][1] == "resume"
    assert mind.sent[-1][2]["gpus"] == [0]
    mind.answer(A)
    assert (mind.state(A), mind.held(A)) == ("running", (0,))


def test_a_launcher_that_refuses_says_why(tmp_path: Path) -> None:
    mind = Mind(tmp_path)
    mind.running(A)
    mind.switch(suspend=(A,))
    mind.answer(A, "failed", code="NO_BOUNDARY", detail="none in time")
    assert failures(mind) == {A: "NO_BOUNDARY"}
    assert mind.state(A) == "running"


def test_an_order_that_a_lost_line_took_along_is_said_anew_or_found_done(tmp_path: Path) -> None:
    """I6: launchers dial again; what they say of themselves counts."""
    mind = Mind(tmp_path)
    mind.running(A)
    mind.switch(suspend=(A,))
    mind.controller.desk.gone(A)
    sent = len(mind.sent)
    mind.register(A, 1000, state="running")
    assert [op for _, op, _ in mind.sent[sent:]] == ["suspend"]
    mind.controller.desk.gone(A)
    mind.register(A, 1000, state="suspended")
    assert mind.switched().stopped[0][0] == A
    assert (mind.state(A), mind.held(A)) == ("suspended", ())


@pytest.mark.parametrize("found", ["running", "suspended", "suspending"])
def test_an_agent_started_again_believes_launchers(tmp_path: Path, found: str) -> None:
    """E6: killed between order and answer; the device is not free before the launcher says so."""
    mind = Mind(tmp_path)
    mind.running(A)
    mind.switch(suspend=(A,))
    mind.after(0.1)
    mind.start()
    assert mind.held(A) == (0,)
    mind.message_id = 100
    mind.expect(*(a.Expected(name, name, 1, user="ann") for name in (A, B)))
    mind.register(B, 2000)
    mind.switch(run=(a.RunWorker(B, (0,)),))
    assert failures(mind) == {B: "DEVICE_BUSY"}
    mind.register(A, 1000, state=found, gpus=(0,))
    assert mind.state(A) == found
    assert mind.held(A) == (() if found == "suspended" else (0,))
    if found == "suspending":
        mind.progress(A, state="suspended")
        assert (mind.state(A), mind.held(A)) == ("suspended", ())


def test_an_agent_that_lost_its_notes_takes_devices_as_launchers_say(tmp_path: Path) -> None:
    """What is not known to be free is not free."""
    mind = Mind(tmp_path)
    mind.expect(a.Expected(A, A, 1, user="ann"))
    mind.register(A, 1000, state="running", gpus=(1,))
    assert (mind.state(A), mind.held(A)) == ("running", (1,))


def test_a_worker_gone_while_the_agent_was_away_has_ended(tmp_path: Path) -> None:
    mind = Mind(tmp_path)
    mind.running(A)
    mind.after(0.1)
    mind.alive.clear()
    mind.reports.clear()
    mind.start()
    assert [e.container_id for e in mind.reports if isinstance(e, a.WorkerEnded)] == [A]
    mind.controller.beat()
    assert mind.held(A) == ()


def test_a_device_of_one_that_ended_is_free_after_a_restart_too(tmp_path: Path) -> None:
    """E6, E19: the agent was killed before the last process was gone; nobody else would ever look."""
    mind = Mind(tmp_path, 1)
    mind.running(A)
    mind.left[A] = frozenset({4711})
    mind.controller.desk.launcher_said(A, {"op": "ended", "exit_code": 0})
    mind.after(0.1)
    mind.alive.clear()
    mind.start()
    mind.controller.beat()
    assert mind.held(A) == (0,)
    mind.left.clear()
    mind.controller.beat()
    assert mind.held(A) == ()


@pytest.mark.parametrize("is_expected", [True, False])
def test_devices_of_a_container_that_had_not_come_up_are_not_lost_in_a_restart(
    tmp_path: Path, is_expected: bool
) -> None:
    """E6: it comes up later and has them, or its container is gone and they are free."""
    mind = Mind(tmp_path, 1)
    mind.expect(a.Expected(A, A, 1, user="ann"))
    mind.switch(run=(a.RunWorker(A, (0,)),))
    mind.after(0.1)
    mind.start()
    assert mind.held(A) == (0,)
    mind.message_id = 100
    mind.expect(*([a.Expected(A, A, 1, user="ann")] if is_expected else []))
    mind.controller.beat()
    assert mind.held(A) == ((0,) if is_expected else ())
    if is_expected:
        mind.register(A, 1000)
        mind.answer(A)
        assert (mind.state(A), mind.held(A)) == ("running", (0,))


@pytest.mark.parametrize(
    ("state", "gpus"), [("waiting", (0,)), ("running", (7,)), ("running", (0, 1))]
)
def test_a_launcher_gets_no_device_by_saying_that_it_has_one(
    tmp_path: Path, state: str, gpus: tuple[int, ...]
) -> None:
    """A13: none that is not there, none while it waits, and not more than it asked for."""
    mind = Mind(tmp_path)
    mind.expect(a.Expected(A, A, 1, user="ann"))
    mind.register(A, 1000, state=state, gpus=gpus)
    assert mind.held(A) == ()
    assert mind.sent == []


def test_a_device_stays_quarantined_while_any_of_those_that_shared_it_stays(tmp_path: Path) -> None:
    """E19, G-56."""
    mind = Mind(tmp_path, 1)
    mind.expect(*(a.Expected(name, name, 1, user="ann") for name in (A, B)))
    for name, other, pid in ((A, B, 1000), (B, A, 1001)):
        mind.register(name, pid)
        mind.progress(name, state="waiting", memory_peak_mib=10)
        mind.switch(run=(a.RunWorker(name, (0,), (other,)),))
        mind.answer(name)
        mind.progress(name, state="running", memory_peak_mib=10)
    assert (mind.held(A), mind.held(B)) == ((0,), (0,))
    for name, pid in ((A, 4711), (B, 4712)):
        mind.left[name] = frozenset({pid})
        mind.controller.desk.launcher_said(name, {"op": "ended", "exit_code": 0})
    for _ in range(3):
        mind.controller.beat()
    del mind.left[A]
    mind.controller.beat()
    assert not mind.controller.inventory.devices()[0].healthy
    del mind.left[B]
    mind.controller.beat()
    assert mind.controller.inventory.devices()[0].healthy


def test_a_device_is_given_on_only_when_nothing_is_left_on_it(tmp_path: Path) -> None:
    """E19, I2: quarantined and an alarm at the third beat; free again when the process has gone."""
    mind = Mind(tmp_path, 1)
    mind.running(A)
    mind.expect(*(a.Expected(name, name, 1, user="ann") for name in (A, B)))
    mind.register(B, 2000)
    mind.left[A] = frozenset({4711})
    mind.controller.desk.launcher_said(A, {"op": "ended", "exit_code": 0})
    mind.switch(run=(a.RunWorker(B, (0,)),))
    mind.controller.beat()
    mind.controller.beat()
    assert not [e for e in mind.reports if isinstance(e, a.DeviceLost)]
    mind.controller.beat()
    lost = [e for e in mind.reports if isinstance(e, a.DeviceLost)]
    assert [each.index for each in lost] == [0]
    assert "4711" in lost[0].reason
    mind.after(0.1)
    assert failures(mind) == {B: "DEVICE_LOST"}
    mind.left.clear()
    mind.controller.beat()
    assert mind.controller.inventory.devices()[0].healthy
    mind.switch(run=(a.RunWorker(B, (0,)),))
    mind.answer(B)
    assert mind.held(B) == (0,)


def test_who_never_registers_is_exclusive_and_who_does_at_last_is_started(tmp_path: Path) -> None:
    """Contract 7: after so many seconds; a launcher that comes later gets its start, and the same device."""
    mind = Mind(tmp_path)
    mind.expect(a.Expected(A, A, 1, user="ann"))
    mind.switch(run=(a.RunWorker(A, (0,)),))
    mind.sample()
    mind.now_s += 29
    mind.sample()
    assert mind.state(A) == "expected"
    mind.now_s += 2
    mind.sample()
    assert mind.state(A) == "unhooked"
    assert mind.switched().started[0][0] == A
    mind.switch(suspend=(A,))
    assert failures(mind) == {A: "NOT_SUSPENDABLE"}
    mind.register(A, 1000)
    assert mind.sent[-1][:2] == (A, "start")
    mind.answer(A)
    assert (mind.state(A), mind.held(A)) == ("running", (0,))


def test_who_may_not_be_stopped_is_not_asked(tmp_path: Path) -> None:
    """Item 7: the owner's word."""
    mind = Mind(tmp_path)
    mind.running(A)
    mind.expect(a.Expected(A, A, 1, user="ann", never=("suspend",)))
    sent = len(mind.sent)
    mind.switch(suspend=(A,))
    assert failures(mind) == {A: "FORBIDDEN"}
    assert len(mind.sent) == sent


def test_a_container_without_devices_sees_none(tmp_path: Path) -> None:
    """A13: also after suspend and resume."""
    mind = Mind(tmp_path)
    mind.expect(a.Expected(A, A, 0, user="ann"))
    mind.register(A, 1000)
    for _ in range(2):
        mind.switch(run=(a.RunWorker(A, ()),))
        values = mind.sent[-1][2]
        assert (values["gpus"], values["uuids"]) == ([], [])
        assert values["environment"]["CUDA_VISIBLE_DEVICES"] == ""
        mind.answer(A)
        mind.switch(suspend=(A,))
        mind.answer(A)
    assert mind.state(A) == "suspended"


@pytest.mark.parametrize(
    ("registration", "code"),
    [
        (Registration("../../etc", 1, 0), "IDENTITY"),
        (Registration(A, 5, 0, claimed=B), "IDENTITY"),
        (Registration(A, 5, 0, claimed=A), "TAKEN"),
        (Registration(A, 5, 0, claimed=A, token="guess"), "TAKEN"),
        (Registration(A, 1000, 7, 1, claimed=None), "TAKEN"),
    ],
)
def test_nobody_takes_a_launchers_place(
    tmp_path: Path, registration: Registration, code: str
) -> None:
    """Contract 3: the kernel's word, the process's own environment, and the container's token."""
    mind = Mind(tmp_path)
    mind.running(A)
    admission = mind.controller.desk.admit(registration)
    assert isinstance(admission, Refused)
    assert admission.code == code
    assert mind.state(A) == "running"


def test_an_unknown_container_waits_and_a_later_launcher_follows_one_that_is_gone(
    tmp_path: Path,
) -> None:
    mind = Mind(tmp_path)
    assert mind.register(A, 1000) is None
    mind.expect(a.Expected(A, A, 1))
    assert isinstance(mind.register(A, 1000), Admitted)
    mind.alive.clear()
    assert isinstance(mind.register(A, 1001), Admitted)


def test_a_move_warms_restores_and_lets_go(tmp_path: Path) -> None:
    """G-69: warm before the source stops; the source lets go only when it is told that the move is done."""
    mind = Mind(tmp_path)
    mind.running(A)
    folder = str(tmp_path / "ram" / "move-1")
    there = a.Expected(B, A, 1, user="ann")
    mind.command(lambda e, m: a.PrepareMove(e, m, 1, there, (1,), A))
    mind.register(B, 2000)
    assert mind.sent[-1][:2] == (B, "warm")
    mind.answer(B, figures={"warm_s": 1.5})
    assert mind.answered().figures == {"warm_s": 1.5}
    mind.command(lambda e, m: a.SaveState(e, m, 1, A, folder))
    mind.answer(A, figures={"save_s": 0.2})
    assert (mind.state(A), mind.held(A)) == ("suspended", (0,))
    assert Path(folder).stat().st_mode & 0o777 == 0o700
    mind.command(lambda e, m: a.RestoreState(e, m, 1, B, folder))
    mind.answer(B, figures={"restore_s": 0.3})
    assert (mind.state(B), mind.held(B)) == ("running", (1,))
    for name in (A, B):
        mind.command(lambda e, m, name=name: a.EndMove(e, m, 1, name, True))
    assert mind.sent[-1][:2] == (A, "release")
    mind.controller.desk.launcher_said(A, {"op": "ended", "exit_code": 0, "reason": "released"})
    assert mind.answered().code == "OK"
    assert not Path(folder).exists()


def test_a_move_that_is_given_up_leaves_the_source_running(tmp_path: Path) -> None:
    """G-13: abort after the save; the source goes on where it stopped, the destination ends."""
    mind = Mind(tmp_path)
    mind.running(A)
    there = a.Expected(B, A, 1, user="ann")
    mind.command(lambda e, m: a.PrepareMove(e, m, 1, there, (1,), A))
    mind.register(B, 2000)
    mind.answer(B)
    mind.command(lambda e, m: a.SaveState(e, m, 1, A, str(tmp_path / "ram" / "m")))
    mind.answer(A)
    mind.command(lambda e, m: a.EndMove(e, m, 1, A, False))
    assert mind.sent[-1][:2] == (A, "resume")
    mind.answer(A)
    assert (mind.state(A), mind.held(A)) == ("running", (0,))
    mind.command(lambda e, m: a.EndMove(e, m, 1, B, False))
    assert mind.sent[-1][:2] == (B, "release")


def test_a_move_without_room_or_to_a_foreign_folder_never_stops_the_source(tmp_path: Path) -> None:
    """E13: space is looked at before; only folders below the agent's own are written."""
    mind = Mind(tmp_path)
    mind.running(A)
    mind.progress(A, state="running", memory_mib=10**9)
    mind.command(lambda e, m: a.SaveState(e, m, 1, A, str(tmp_path / "ram" / "m")))
    assert mind.answered().code == "NO_SPACE"
    for folder in ("/etc/m", str(tmp_path / "ram" / ".." / "m"), "m"):
        mind.command(lambda e, m, folder=folder: a.SaveState(e, m, 1, A, folder))
        assert mind.answered().code == "FOLDER"
    if os.geteuid() == 0:  # nobody else can make such a folder
        os.chown(tmp_path / "ram", 54321, -1)
        mind.command(lambda e, m: a.SaveState(e, m, 1, A, str(tmp_path / "ram" / "m")))
        assert mind.answered().detail == f"{tmp_path / 'ram'} belongs to user 54321"
    assert mind.state(A) == "running"


def test_packing_is_told_by_both_and_a_foreign_worker_is_not_joined(tmp_path: Path) -> None:
    """D05, G-56: `packed_with` is honoured; a device that was given for one alone is not shared."""
    mind = Mind(tmp_path)
    mind.running(A)
    mind.expect(*(a.Expected(name, name, 1, user="ann") for name in (A, B)))
    mind.register(B, 2000)
    mind.switch(run=(a.RunWorker(B, (0,)),))
    assert failures(mind) == {B: "DEVICE_BUSY"}
    mind.switch(run=(a.RunWorker(B, (0,), (A,)),))
    assert failures(mind) == {B: "MEMORY"}
    for name in (A, B):
        mind.progress(name, memory_peak_mib=1000)
    mind.switch(run=(a.RunWorker(B, (0,), (A,)),))
    mind.answer(B)
    assert mind.held(A) == mind.held(B) == (0,)
