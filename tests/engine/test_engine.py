"""What each event does, what comes too late, and what an exception leaves behind."""

from __future__ import annotations

import math

import pytest

from gandiva_core.config.settings import Settings
from gandiva_core.engine.engine import Engine
from gandiva_core.engine.errors import PolicyError
from gandiva_core.messages import events as e
from gandiva_core.messages.decisions import Enqueue, Remember, Switch, Wait, WakeAt
from gandiva_core.messages.effects import CommitGang, ReleaseGang, StartTimer, SwitchResidents
from gandiva_core.messages.policy import Decisions
from gandiva_core.model.cluster import QueueLimit
from gandiva_core.model.errors import InputError, InvariantError
from gandiva_core.model.job import JobPhase
from gandiva_core.model.units import JobId, QueueName, ServerId
from gandiva_core.model.view import ClusterView
from tests.builders import ScriptedPolicy, job, on, server
from tests.engine.scene import Scene, limit, place, run

J = JobId("j")


@pytest.fixture
def scene() -> Scene:
    return Scene(server("s1"), server("s2"))


class TestLife:
    def test_whole_life_of_a_job(self, scene: Scene) -> None:
        """G-10, first row to last."""
        outcome = scene.submit(job("j", 2), "s1", "s1")
        assert outcome.effects == (
            CommitGang(3, J, (ServerId("s1"),) * 2, scene.job("j").spec.workers),
        )
        assert scene.phase("j") is JobPhase.COMMITTING
        scene.commit("j")
        assert scene.phase("j") is JobPhase.STARTING
        scene.now_s = 5.0
        first = scene.switch(run=[run("j", on("s1", 0, 1))])
        assert scene.phase("j") is JobPhase.RESUMING
        assert scene.server("s1").claims == ["j", "j", None, None]
        scene.now_s = 7.0
        scene.switched(first, started=["j"], at_s=6.5)
        assert (scene.phase("j"), scene.job("j").run_since_s) == (JobPhase.RUNNING, 6.5)
        assert scene.server("s1").holders == ["j", "j", None, None]
        assert not any(scene.server("s1").claims)
        scene.now_s = 60.0
        second = scene.switch(suspend=["j"])
        assert scene.phase("j") is JobPhase.SUSPENDING
        assert scene.job("j").run_since_s == 6.5
        scene.now_s = 66.5
        scene.switched(second, stopped=["j"])
        assert scene.phase("j") is JobPhase.SUSPENDED
        assert (scene.job("j").held_s, scene.job("j").last_stopped_at_s) == (60.0, 66.5)
        assert scene.job("j").bindings == (on("s1", 0, 1),)
        assert not any(scene.server("s1").holders)
        scene.tell(e.JobFinished(70.0, J))
        assert "j" not in scene.engine.view.jobs
        assert scene.server("s1").allocated == 0

    def test_undecided_job_waits_and_the_journal_says_so(self, scene: Scene) -> None:
        outcome = scene.submit(job("j"))
        assert outcome.decisions == (Enqueue(J, Wait("undecided", "", "")),)
        assert scene.engine.view.queue == ["j"]

    def test_refused_gang_keeps_its_place_in_the_queue(self, scene: Scene) -> None:
        scene.submit(job("j"), "s1")
        scene.submit(job("k"))
        scene.now_s = 9.0
        scene.tell(e.GangRefused(9.0, J, "NO_ROOM", "0 free"))
        assert scene.engine.view.queue == ["j", "k"]
        assert scene.job("j").queued_since_s == 9.0
        assert scene.server("s1").allocated == 0

    def test_first_start_has_no_history(self, scene: Scene) -> None:
        scene.settle(job("j"), "s1")
        view = scene.job("j")
        assert (view.has_run, view.held_s, view.last_stopped_at_s) == (False, 0.0, None)
        scene.start("j", on("s1", 0))
        assert scene.job("j").has_run

    @pytest.mark.parametrize("kind", [e.JobFinished, e.JobFailed, e.JobKilled])
    def test_ending_frees_everything_from_any_phase(
        self, scene: Scene, kind: type[e.JobFinished | e.JobFailed | e.JobKilled]
    ) -> None:
        scene.submit(job("waiting"))
        scene.submit(job("committing"), "s1")
        scene.settle(job("starting"), "s1")
        scene.settle(job("resuming"), "s1")
        scene.switch(run=[run("resuming", on("s1", 0))])
        scene.running("running", on("s1", 1))
        scene.running("suspending", on("s1", 2))
        scene.switch(suspend=["suspending"])
        scene.running("suspended", on("s1", 3))
        scene.switched(scene.switch(suspend=["suspended"]), stopped=["suspended"])
        for name in list(scene.engine.view.jobs):
            scene.tell(kind(1.0, name))
        each = scene.server("s1")
        assert (each.allocated, each.affinity, each.memory_free_mib, each.vcores_free) == (
            0,
            0,
            each.server.memory_mib,
            each.server.vcores,
        )
        assert not any(each.holders)
        assert not any(each.claims)
        assert not scene.engine.view.queue


class TestSwitching:
    def test_device_passes_from_stopped_to_started(self, scene: Scene) -> None:
        scene.running("a", on("s1", 0))
        scene.settle(job("b"), "s1")
        switch_id = scene.switch(suspend=["a"], run=[run("b", on("s1", 0))])
        assert (scene.server("s1").holders[0], scene.server("s1").claims[0]) == ("a", "b")
        scene.switched(switch_id, stopped=["a"], started=["b"])
        assert (scene.server("s1").holders[0], scene.server("s1").claims[0]) == ("b", None)

    def test_partial_answers(self, scene: Scene) -> None:
        """Jobs not named are still on their way."""
        scene.running("a", on("s1", 0))
        scene.settle(job("b"), "s1")
        switch_id = scene.switch(suspend=["a"], run=[run("b", on("s1", 0))])
        scene.switched(switch_id, stopped=["a"])
        assert scene.phase("b") is JobPhase.RESUMING
        assert scene.server("s1").holders[0] is None
        scene.switched(switch_id, started=["b"])
        assert scene.phase("b") is JobPhase.RUNNING

    def test_start_reported_first_implies_the_stop(self, scene: Scene) -> None:
        scene.running("a", on("s1", 0))
        scene.settle(job("b"), "s1")
        switch_id = scene.switch(suspend=["a"], run=[run("b", on("s1", 0))])
        scene.now_s = 3.0
        scene.switched(switch_id, started=["b"])
        assert (scene.phase("a"), scene.job("a").held_s) == (JobPhase.SUSPENDED, 3.0)
        assert scene.phase("b") is JobPhase.RUNNING
        scene.switched(switch_id, stopped=["a"])
        assert (scene.engine.ignored, scene.job("a").held_s) == (1, 3.0)

    def test_run_may_wait_for_a_job_that_is_stopping_already(self, scene: Scene) -> None:
        scene.running("a", on("s1", 0))
        scene.settle(job("b"), "s1")
        first = scene.switch(suspend=["a"])
        second = scene.switch(run=[run("b", on("s1", 0))])
        scene.switched(first, stopped=["a"])
        scene.switched(second, started=["b"])
        assert scene.phase("b") is JobPhase.RUNNING

    def test_holder_that_ends_early_leaves_its_device_to_the_claim(self, scene: Scene) -> None:
        scene.running("a", on("s1", 0))
        scene.settle(job("b"), "s1")
        switch_id = scene.switch(suspend=["a"], run=[run("b", on("s1", 0))])
        scene.tell(e.JobFinished(1.0, JobId("a")))
        assert (scene.server("s1").holders[0], scene.server("s1").claims[0]) == (None, "b")
        scene.now_s = 1.0
        scene.switched(switch_id, stopped=["a"], started=["b"])
        assert scene.phase("b") is JobPhase.RUNNING
        assert scene.engine.ignored == 1

    def test_claim_that_ends_early_leaves_the_device_to_its_holder(self, scene: Scene) -> None:
        scene.running("a", on("s1", 0))
        scene.settle(job("b"), "s1")
        switch_id = scene.switch(suspend=["a"], run=[run("b", on("s1", 0))])
        scene.tell(e.JobKilled(1.0, JobId("b")))
        assert (scene.server("s1").holders[0], scene.server("s1").claims[0]) == ("a", None)
        scene.now_s = 2.0
        scene.switched(switch_id, stopped=["a"], started=["b"])
        assert scene.phase("a") is JobPhase.SUSPENDED

    def test_effect_names_the_whole_domain_and_its_cause(self, scene: Scene) -> None:
        scene.settle(job("wide", 2), "s1", "s2")
        scene.settle(job("j"), "s1")
        outcome = scene.wish(
            Switch(run=(run("j", on("s1", 0)),), prepare=(run("wide", on("s1", 1), on("s2", 0)),))
        )
        assert outcome.effects == (
            SwitchResidents(
                outcome.number,
                1,
                (ServerId("s1"), ServerId("s2")),
                (),
                (run("j", on("s1", 0)),),
                (run("wide", on("s1", 1), on("s2", 0)),),
            ),
        )

    def test_answer_to_an_older_switch_is_ignored(self, scene: Scene) -> None:
        scene.running("a", on("s1", 0))
        first = scene.switch(suspend=["a"])
        scene.switched(first, stopped=["a"])
        scene.switch(run=[run("a", on("s1", 0))])
        scene.switched(first, started=["a"])
        assert (scene.phase("a"), scene.engine.ignored) == (JobPhase.RESUMING, 1)

    def test_times_after_the_message_are_cut_to_it(self, scene: Scene) -> None:
        scene.settle(job("a"), "s1")
        switch_id = scene.switch(run=[run("a", on("s1", 0))])
        scene.now_s = 2.0
        scene.switched(switch_id, started=["a"], at_s=99.0)
        assert scene.job("a").run_since_s == 2.0


class TestLoss:
    def test_lost_server_frees_the_shares_on_the_others(self, scene: Scene) -> None:
        """G-13: the gang restarts from the queue, at its old place."""
        scene.running("wide", on("s1", 0), on("s2", 0))
        scene.submit(job("k"))
        scene.now_s = 50.0
        outcome = scene.tell(e.ServerLost(50.0, ServerId("s1"), "power"))
        assert outcome.effects == (
            ReleaseGang(outcome.number, JobId("wide"), "server s1 was lost power"),
        )
        assert scene.engine.view.queue == ["wide", "k"]
        view = scene.job("wide")
        assert (view.held_s, view.run_since_s, view.bindings, dict(view.shares)) == (
            50,
            None,
            (),
            {},
        )
        assert (scene.server("s2").allocated, any(scene.server("s2").holders)) == (0, False)
        assert list(scene.engine.view.servers) == ["s2"]

    def test_pending_switch_of_a_broken_gang_is_forgotten(self, scene: Scene) -> None:
        scene.settle(job("a"), "s1")
        switch_id = scene.switch(run=[run("a", on("s1", 0))])
        scene.tell(e.GangBroken(1.0, JobId("a"), "worker 0 died"))
        scene.now_s = 2.0
        scene.switched(switch_id, started=["a"])
        assert (scene.phase("a"), scene.engine.ignored) == (JobPhase.QUEUED, 1)

    def test_stale_answer_is_not_taken_for_the_next_one(self, scene: Scene) -> None:
        """Broken while COMMITTING: the first order's answer still comes, about containers that were given back."""
        scene.submit(job("a"), "s1")
        scene.tell(e.ServerLost(1.0, ServerId("s1")), place("a", "s2"))
        assert scene.phase("a") is JobPhase.COMMITTING
        scene.now_s = 1.0
        scene.commit("a")
        assert (scene.phase("a"), scene.engine.ignored) == (JobPhase.COMMITTING, 1)
        scene.tell(e.GangRefused(1.0, JobId("a"), "NO_ROOM"))
        assert scene.phase("a") is JobPhase.QUEUED

    def test_server_that_comes_back_with_fewer_devices_keeps_its_jobs(self, scene: Scene) -> None:
        """Nobody is lost: who runs on a device that is gone runs on until he stops, and nobody follows him there."""
        scene.running("a", on("s1", 3))
        scene.running("b", on("s1", 1))
        scene.settle(job("c"), "s1")
        outcome = scene.tell(e.ServerJoined(1.0, server("s1", 2)))
        assert (outcome.effects, scene.phase("a")) == ((), JobPhase.RUNNING)
        assert scene.server("s1").holders == [None, "b", None, "a"]
        scene.now_s = 1.0
        reason = scene.refusal(Switch((JobId("a"),), (run("c", on("s1", 3)),)))
        assert reason == "server s1 has no device 3"
        scene.switched(scene.switch(suspend=["a"]), stopped=["a"])
        assert scene.server("s1").holders == [None, "b"]
        scene.start("a", on("s1", 0))
        assert scene.server("s1").holders == ["a", "b"]

    def test_server_that_comes_back_with_more_devices_has_them(self, scene: Scene) -> None:
        scene.running("a", on("s1", 3))
        scene.tell(e.ServerJoined(1.0, server("s1", 6)))
        scene.now_s = 1.0
        scene.running("b", on("s1", 5))
        assert scene.server("s1").holders == [None, None, None, "a", None, "b"]

    def test_promise_on_a_device_that_goes_is_kept(self, scene: Scene) -> None:
        """The agent was told already; and a core that restarts from a snapshot in between knows the same."""
        scene.settle(job("a"), "s1")
        switch_id = scene.switch(run=[run("a", on("s1", 3))])
        scene.tell(e.ServerJoined(1.0, server("s1", 1)))
        taken = scene.engine.snapshot()
        assert Engine.restore(taken, ScriptedPolicy(), scene.settings).snapshot() == taken
        scene.now_s = 1.0
        scene.switched(switch_id, started=["a"])
        assert scene.server("s1").holders == [None, None, None, "a"]
        scene.tell(e.JobFinished(1.0, JobId("a")))
        assert scene.server("s1").holders == [None]

    def test_gang_that_could_not_run_again_is_not_stopped(self, scene: Scene) -> None:
        scene.running("a", on("s1", 0, 1, 2))
        scene.tell(e.ServerJoined(1.0, server("s1", 2)))
        scene.now_s = 1.0
        assert scene.refusal(Switch((JobId("a"),))) == (
            "job a is not to be stopped: it could not run again on server s1 with 2 GPUs"
        )

    def test_exception_after_a_change_of_devices_leaves_the_old_ones(self, scene: Scene) -> None:
        scene.running("a", on("s1", 3))
        before = scene.engine.snapshot()

        def fail(_view: ClusterView) -> Enqueue:
            raise RuntimeError("a bug")

        with pytest.raises(PolicyError, match="a bug"):
            scene.tell(e.ServerJoined(1.0, server("s1", 2)), fail)
        assert scene.engine.snapshot() == before
        assert scene.server("s1").holders == [None, None, None, "a"]

    def test_server_that_comes_back_with_less_memory_keeps_its_jobs(self, scene: Scene) -> None:
        """A fact may leave a limit exceeded; no decision may then add to it."""
        scene.running("a", on("s1", 0))
        scene.tell(e.ServerJoined(1.0, server("s1", memory_mib=1000)))
        assert (scene.phase("a"), scene.server("s1").memory_free_mib) == (JobPhase.RUNNING, -24)
        scene.now_s = 1.0
        scene.submit(job("b", memory_mib=0))
        assert "MiB free" in scene.refusal(place("b", "s1"))


class TestFromOutside:
    @pytest.mark.parametrize(
        "event",
        [
            e.ServerLost(0.0, ServerId("s9")),
            e.JobMoved(0.0, JobId("x"), QueueName("root.a")),
            e.GangCommitted(0.0, JobId("x"), ("c",)),
            e.GangRefused(0.0, JobId("x"), "NO_ROOM"),
            e.GangBroken(0.0, JobId("x")),
            e.ResidentsSwitched(0.0, 7, ((JobId("x"), 0.0),)),
            e.MinibatchesReached(0.0, JobId("x"), 100),
            e.JobFinished(0.0, JobId("x")),
            e.JobFailed(0.0, JobId("x")),
            e.JobKilled(0.0, JobId("x")),
            e.ContainersHeld(0.0, JobId("x"), 1, 2),
            e.AmWaited(0.0, JobId("x")),
            e.TimerFired(0.0, "x"),
            e.ServerJoined(0.0, server("s1")),
        ],
    )
    def test_unknown_or_doubled_is_ignored_and_counted(self, scene: Scene, event: e.Event) -> None:
        asked = len(scene.policy.asked)
        outcome = scene.tell(event)
        assert (outcome.decisions, outcome.effects) == ((), ())
        assert (scene.engine.ignored, len(scene.policy.asked)) == (1, asked)

    def test_second_submission_is_ignored_alive_or_ended(self, scene: Scene) -> None:
        scene.submit(job("j"))
        scene.submit(job("j"))
        assert (scene.engine.ignored, scene.engine.view.queue) == (1, ["j"])
        scene.tell(e.JobFinished(0.0, J))
        scene.submit(job("j"))
        assert (scene.engine.ignored, scene.engine.view.queue) == (2, [])

    def test_broken_gang_of_a_waiting_job_is_ignored(self, scene: Scene) -> None:
        scene.submit(job("j"))
        scene.tell(e.GangBroken(0.0, J))
        assert (scene.engine.ignored, scene.phase("j")) == (1, JobPhase.QUEUED)

    @pytest.mark.parametrize("at_s", [4.9, -1.0, math.nan, math.inf])
    def test_time_never_goes_back(self, scene: Scene, at_s: float) -> None:
        scene.tell(e.JobSubmitted(5.0, job("j")))
        number = scene.engine.number
        with pytest.raises(InputError, match=r"expected a time not before 5\.0 s"):
            scene.tell(e.JobFinished(at_s, J))
        assert (scene.engine.number, scene.engine.view.now_s) == (number, 5.0)
        assert scene.phase("j") is JobPhase.QUEUED

    @pytest.mark.parametrize(
        "event",
        [
            e.JobSubmitted(0.0, job("j", workers=(0,))),
            e.JobSubmitted(0.0, job("j", weight=0.0)),
            e.ServerJoined(0.0, server("s9", -1)),
            e.QueuesConfigured(0.0, (limit("root", 1), limit("root", 2))),
            e.QueuesConfigured(0.0, (limit("a", 1, "b"), limit("b", 1, "a"))),
        ],
    )
    def test_message_that_makes_no_sense_is_an_input_error(
        self, scene: Scene, event: e.Event
    ) -> None:
        before = scene.engine.snapshot()
        with pytest.raises(InputError, match="expected a message that makes sense"):
            scene.tell(event)
        assert scene.engine.snapshot() == before

    def test_job_that_moves_counts_in_its_new_queue(self, scene: Scene) -> None:
        queues = (limit("root.a", 4), limit("root.b", 4))
        scene.tell(e.QueuesConfigured(0.0, queues))
        scene.settle(job("j", 2, queue="root.a"), "s1", "s1")
        scene.start("j", on("s1", 0, 1))
        scene.tell(e.JobMoved(0.0, J, QueueName("root.b")))
        use = [(each.running, each.resident) for each in scene.engine.view.queues.values()]
        assert use == [(0, 0), (2, 2)]
        assert scene.job("j").spec.queue == "root.b"

    def test_limit_lowered_below_use_stands_until_use_falls(self, scene: Scene) -> None:
        scene.settle(job("a", 2), "s1", "s1")
        scene.start("a", on("s1", 0, 1))
        scene.settle(job("b"), "s1")
        tight = QueueLimit(QueueName("root"), 1, 1)
        scene.tell(e.QueuesConfigured(0.0, (tight,)))
        assert "would run 3 GPUs of 1" in scene.refusal(Switch(run=(run("b", on("s1", 2)),)))
        scene.tell(e.JobFinished(1.0, JobId("a")))
        scene.now_s = 1.0
        scene.start("b", on("s1", 2))


class TestWakesAndMemory:
    def test_wake_is_answered_once(self, scene: Scene) -> None:
        outcome = scene.wish(WakeAt("k", 60.0))
        assert outcome.effects == (StartTimer(outcome.number, "k", 60.0),)
        assert dict(scene.engine.view.wakes) == {"k": 60.0}
        asked = len(scene.policy.asked)
        scene.tell(e.TimerFired(60.0, "k"))
        assert (len(scene.policy.asked), dict(scene.engine.view.wakes)) == (asked + 1, {})
        scene.tell(e.TimerFired(60.0, "k"))
        assert (len(scene.policy.asked), scene.engine.ignored) == (asked + 1, 1)

    def test_replaced_wake_drops_the_earlier_timer(self, scene: Scene) -> None:
        scene.wish(WakeAt("k", 60.0))
        scene.wish(WakeAt("k", 90.0))
        scene.tell(e.TimerFired(60.0, "k"))
        assert (scene.engine.ignored, dict(scene.engine.view.wakes)) == (1, {"k": 90.0})

    def test_same_wake_twice_orders_one_timer(self, scene: Scene) -> None:
        outcome = scene.wish(WakeAt("k", 60.0), WakeAt("k", 60.0))
        assert len(outcome.decisions) == 2
        assert len(outcome.effects) == 1

    def test_memory_is_kept_replaced_and_forgotten(self, scene: Scene) -> None:
        values = {"a": 1.0}
        scene.wish(Remember("k", values))
        values["a"] = 2.0
        assert scene.engine.view.memory == {"k": {"a": 1.0}}
        scene.wish(Remember("k", {"b": 3.0}))
        assert scene.engine.view.memory == {"k": {"b": 3.0}}
        scene.wish(Remember("k", {}), Remember("unknown", {}))
        assert scene.engine.view.memory == {}


class TestAllOrNothing:
    def exploding(self, view: ClusterView) -> Enqueue:
        raise ZeroDivisionError("boom")

    def test_policy_exception_undoes_the_whole_event(self, scene: Scene) -> None:
        scene.running("a", on("s1", 0))
        scene.submit(job("b"))
        scene.wish(WakeAt("k", 9.0), Remember("m", {"x": 1.0}))
        before, number = scene.engine.snapshot(), scene.engine.number
        with pytest.raises(
            PolicyError, match=rf"event {number + 1}: policy scripted: .*boom"
        ) as caught:
            scene.tell(
                e.JobFinished(5.0, JobId("a")),
                place("b", "s2"),
                WakeAt("k", 70.0),
                WakeAt("new", 71.0),
                Remember("m", {}),
                self.exploding,
            )
        assert isinstance(caught.value.__cause__, ZeroDivisionError)
        assert scene.engine.snapshot() == before
        assert list(scene.engine.view.jobs) == ["a", "b"]

    def test_next_event_after_an_undone_one_is_handled_as_if_it_had_not_been(
        self, scene: Scene
    ) -> None:
        with pytest.raises(PolicyError):
            scene.tell(e.JobSubmitted(0.0, job("a")), place("a", "s1"), self.exploding)
        outcome = scene.submit(job("a"), "s1")
        assert (outcome.number, scene.job("a").sequence) == (3, 0)

    def test_thing_that_is_no_decision_is_the_policys_fault(self, scene: Scene) -> None:
        with pytest.raises(PolicyError, match="'hello' is no decision"):
            scene.tell(e.JobSubmitted(0.0, job("a")), lambda _: "hello")  # type: ignore[arg-type, return-value]

    def test_endless_policy_is_stopped(self) -> None:
        class Endless(ScriptedPolicy):
            def decide(self, event: e.Event, view: ClusterView) -> Decisions:
                while True:
                    yield WakeAt("k", view.now_s)

        engine = Engine(Endless(), Settings())
        with pytest.raises(PolicyError, match="more than 10000 decisions on one event"):
            engine.handle(e.ServerJoined(0.0, server("s1")))
        assert not engine.view.servers

    def test_policy_that_raises_before_its_first_wish(self) -> None:
        class Broken(ScriptedPolicy):
            def decide(self, event: e.Event, view: ClusterView) -> Decisions:
                raise LookupError("no such thing")

        engine = Engine(Broken(), Settings())
        with pytest.raises(PolicyError, match="LookupError: no such thing"):
            engine.handle(e.ServerJoined(0.0, server("s1")))

    def test_broken_invariant_names_the_event_and_undoes_it(self, scene: Scene) -> None:
        """A policy that reaches around the protocols is caught by the invariants."""
        scene.running("a", on("s1", 0))

        def steal(view: ClusterView) -> Enqueue:
            view.servers[ServerId("s1")].holders[1] = JobId("a")  # type: ignore[index]
            return Enqueue(JobId("a"), Wait("", "", ""))

        with pytest.raises(InvariantError, match=r"event \d+: .*the event was undone"):
            scene.wish(steal)
