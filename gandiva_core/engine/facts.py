"""Booking of facts: what each event changes by itself, before a policy is asked.

Facts come from outside and may be late, doubled or about something long gone. What fits no row of the
transition table is ignored and counted (`State.ignored`), never an exception; only a message that no correct
sender builds is an `InputError`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from gandiva_core.engine.ledger import Ledger
from gandiva_core.engine.lifecycle import Lifecycle
from gandiva_core.engine.resizing import may_resize, resize
from gandiva_core.engine.state import JobState, Moving
from gandiva_core.engine.transitions import Stimulus, is_allowed
from gandiva_core.messages import events as e
from gandiva_core.messages.decisions import Wait
from gandiva_core.messages.effects import CarryOver, CloseMove, Effect, ReleaseGang
from gandiva_core.model.errors import InputError
from gandiva_core.model.job import JobPhase, JobSpec
from gandiva_core.model.placement import Binding
from gandiva_core.model.units import JobId, QueueName, ServerId


class Facts:
    """Books events on the ledger."""

    def __init__(self, ledger: Ledger, lifecycle: Lifecycle) -> None:
        self._ledger = ledger
        self._lifecycle = lifecycle
        self._state = ledger.state
        self._effects: list[Effect] = []
        self._by_kind: dict[type, Callable[[Any], bool]] = {
            e.ServerJoined: self._server_joined,
            e.ServerLost: self._server_lost,
            e.QueuesConfigured: self._queues_configured,
            e.JobSubmitted: self._job_submitted,
            e.JobMoved: self._job_moved,
            e.GangCommitted: self._gang_committed,
            e.JobAdopted: self._job_adopted,
            e.GangRefused: self._gang_refused,
            e.GangBroken: self._gang_broken,
            e.GangResized: self._gang_resized,
            e.ResidentsSwitched: self._residents_switched,
            e.SwitchFailed: self._switch_failed,
            e.JobLearned: self._job_learned,
            e.JobHeld: lambda event: self._job_held(event.job_id, is_held=True),
            e.JobReleased: lambda event: self._job_held(event.job_id, is_held=False),
            e.JobProfiled: self._job_reported,
            e.MoveAsked: self._job_reported,
            e.ContinuityChecked: self._job_reported,
            e.MoveCommitted: self._move_committed,
            e.GangMoved: self._gang_moved,
            e.MoveFailed: self._move_failed,
            e.TimerFired: self._timer_fired,
            e.MinibatchesReached: self._job_reported,
            e.ReclaimAsked: self._job_reported,
            e.JobFinished: lambda event: self._job_ended(event.job_id, Stimulus.FINISHED),
            e.JobFailed: lambda event: self._job_ended(event.job_id, Stimulus.FAILED),
            e.JobKilled: lambda event: self._job_ended(event.job_id, Stimulus.KILLED),
            e.ContainersHeld: self._job_reported,
            e.AmWaited: self._job_reported,
        }

    def book(self, event: e.Event, effects: list[Effect]) -> bool:
        """Book an event; append effects that follow from it alone.

        Returns:
            Whether anything was news, so that the policy is to be asked.

        Raises:
            InputError: time goes backwards, or the message contradicts itself.
        """
        state = self._state
        if not state.now_s <= event.at_s < math.inf:
            raise InputError(
                f"event {state.number}",
                f"{type(event).__name__} at {event.at_s} s",
                f"a time not before {state.now_s} s",
            )
        state.now_s = event.at_s
        self._effects = effects
        return self._by_kind[type(event)](event)

    def _ignore(self) -> bool:
        self._ledger.undo.write(self._state, "ignored", self._state.ignored + 1)
        return False

    # ------------------------------------------------------------------ servers and queues

    def _server_joined(self, event: e.ServerJoined) -> bool:
        server = event.server
        if min(server.gpus, server.memory_mib, server.vcores) < 0:
            raise self._malformed(f"server {server.server_id}", "a negative capacity")
        known = self._state.servers.get(server.server_id)
        if known is None:
            self._ledger.add_server(server)
        elif known.server == server:
            return self._ignore()
        else:
            self._ledger.revise_server(server)
        return True

    def _server_lost(self, event: e.ServerLost) -> bool:
        if event.server_id not in self._state.servers:
            return self._ignore()
        self._lose(event.server_id, event.reason)
        return True

    def _lose(self, server_id: ServerId, reason: str) -> None:
        for job_id in tuple(self._state.servers[server_id].residents):
            job = self._state.jobs[job_id]
            if server_id in job.shares:
                self._break(job, f"server {server_id} was lost {reason}".strip())
            else:
                self._stay(job)
        self._ledger.remove_server(server_id)

    def _queues_configured(self, event: e.QueuesConfigured) -> bool:
        parents = {(limit.name, limit.partition): limit.parent for limit in event.queues}
        if len(parents) != len(event.queues):
            raise self._malformed("queues", "a queue named twice in one partition")
        for name, partition in parents:
            at: str = name
            for _ in range(len(parents) + 1):
                at = parents.get((QueueName(at), partition), "")
            if at:
                raise self._malformed(f"queue {name}", "a circle of parents")
        self._ledger.configure_queues(event.queues)
        return True

    # ------------------------------------------------------------------ jobs

    def _job_submitted(self, event: e.JobSubmitted) -> bool:
        spec = event.job
        self._demand_sense(spec)
        if spec.job_id in self._state.jobs or spec.job_id in self._state.ended:
            return self._ignore()
        self._add_job(spec)
        return True

    def _demand_sense(self, spec: JobSpec) -> None:
        if not spec.workers or any(worker.gpus < 1 for worker in spec.workers):
            raise self._malformed(f"job {spec.job_id}", "a worker without a GPU, or no worker")
        if not 0 < spec.weight < math.inf:
            raise self._malformed(f"job {spec.job_id}", f"weight {spec.weight}")

    def _add_job(self, spec: JobSpec) -> JobState:
        state = self._state
        chain = state.chain(spec.queue, spec.partition)
        job = JobState(spec, state.next_sequence, state.now_s, chain)
        self._ledger.add_job(job)
        return job

    def _job_adopted(self, event: e.JobAdopted) -> bool:
        """Containers that are there are booked, not judged; only a place that nobody knows cannot be."""
        spec, state = event.job, self._state
        self._demand_sense(spec)
        if not len(spec.workers) == len(event.servers) == len(event.containers):
            found = f"{len(event.containers)} containers on {len(event.servers)} servers"
            raise self._malformed(f"job {spec.job_id} of {len(spec.workers)} workers", found)
        job = state.jobs.get(spec.job_id)
        is_late = spec.job_id in state.ended or not all(s in state.servers for s in event.servers)
        if is_late or (job is not None and not is_allowed(job.phase, Stimulus.ADOPTED)):
            return self._ignore()
        self._lifecycle.adopt(job or self._add_job(spec), spec, event.servers)
        return True

    def _job_moved(self, event: e.JobMoved) -> bool:
        job = self._state.jobs.get(event.job_id)
        if job is None or job.spec.queue == event.queue:
            return self._ignore()
        self._ledger.move_queue(job, event.queue)
        return True

    def _job_ended(self, job_id: JobId, stimulus: Stimulus) -> bool:
        job = self._state.jobs.get(job_id)
        if job is None:
            return self._ignore()
        self._close_move(job, is_done=False)
        self._lifecycle.end(job, stimulus)
        return True

    def _job_reported(
        self,
        event: e.MinibatchesReached
        | e.ReclaimAsked
        | e.ContainersHeld
        | e.AmWaited
        | e.JobProfiled
        | e.MoveAsked
        | e.ContinuityChecked,
    ) -> bool:
        return event.job_id in self._state.jobs or self._ignore()

    # ------------------------------------------------------------------ gangs

    def _answered(self, job_id: JobId, stimulus: Stimulus) -> JobState | None:
        """The job whose order was answered; None where the answer came too late to matter."""
        job = self._state.jobs.get(job_id)
        if job is None:
            return None
        if job.answers_owed:
            self._lifecycle.forget_answer(job)
            return None
        return job if is_allowed(job.phase, stimulus) else None

    def _gang_committed(self, event: e.GangCommitted) -> bool:
        job = self._answered(event.job_id, Stimulus.COMMITTED)
        if job is None:
            return self._ignore()
        self._lifecycle.commit(job)
        return True

    def _gang_refused(self, event: e.GangRefused) -> bool:
        job = self._answered(event.job_id, Stimulus.REFUSED)
        if job is None:
            return self._ignore()
        self._lifecycle.refuse(job, Wait("refused", event.code, event.detail))
        return True

    def _gang_broken(self, event: e.GangBroken) -> bool:
        job = self._state.jobs.get(event.job_id)
        if job is None or not is_allowed(job.phase, Stimulus.BROKEN):
            return self._ignore()
        self._break(job, event.reason or "a worker was lost")
        return True

    def _gang_resized(self, event: e.GangResized) -> bool:
        job = self._state.jobs.get(event.job_id)
        joined = [self._state.jobs.get(each) for each in event.joined]
        if job is None or None in joined:
            return self._ignore()
        count = len(job.spec.workers)
        if not event.workers or not {*event.workers} <= {*range(count)}:
            found = f"workers {list(event.workers)} of {count}"
            raise self._malformed(f"job {event.job_id}", found)
        others = [each for each in joined if each is not None]
        if not may_resize(job, others):
            return self._ignore()
        resize(self._lifecycle, job, event.workers, others)
        return True

    def _break(self, job: JobState, reason: str) -> None:
        self._close_move(job, is_done=False)
        self._lifecycle.break_gang(job, Wait("broken", "a restart", reason))
        self._effects.append(ReleaseGang(self._state.number, job.spec.job_id, reason))

    # ------------------------------------------------------------------ moves

    def _moving(
        self, event: e.MoveCommitted | e.GangMoved | e.MoveFailed
    ) -> tuple[JobState, Moving] | None:
        """The job and its move; None where the event is about another one."""
        job = self._state.jobs.get(event.job_id)
        if job is None or job.move is None or job.move.move_id != event.move_id:
            return None
        return job, job.move

    def _move_committed(self, event: e.MoveCommitted) -> bool:
        found = self._moving(event)
        if found is None or found[1].is_committed:
            return self._ignore()
        job, move = found
        self._lifecycle.commit_move(job)
        self._effects.append(
            CarryOver(self._state.number, move.move_id, event.job_id, move.servers, move.bindings)
        )
        return True

    def _gang_moved(self, event: e.GangMoved) -> bool:
        found = self._moving(event)
        if found is None or not found[1].is_committed:
            return self._ignore()
        job, move = found
        self._stop_holders(move.bindings, event.at_s)
        self._close_move(job, is_done=True)
        self._lifecycle.arrive(job)
        return True

    def _move_failed(self, event: e.MoveFailed) -> bool:
        found = self._moving(event)
        if found is None:
            return self._ignore()
        self._stay(found[0])
        return True

    def _stay(self, job: JobState) -> None:
        self._close_move(job, is_done=False)
        self._lifecycle.stay(job)

    def _close_move(self, job: JobState, *, is_done: bool) -> None:
        if job.move is not None:
            self._effects.append(
                CloseMove(self._state.number, job.move.move_id, job.spec.job_id, is_done)
            )

    # ------------------------------------------------------------------ switches and timers

    def _residents_switched(self, event: e.ResidentsSwitched) -> bool:
        is_news = False
        for job_id, at_s in event.stopped:
            job = self._awaited(job_id, event.switch_id, JobPhase.SUSPENDING)
            if job is not None:
                self._lifecycle.stop(job, min(at_s, event.at_s))
                is_news = True
        for job_id, at_s in event.started:
            job = self._awaited(job_id, event.switch_id, JobPhase.RESUMING)
            if job is not None:
                self._stop_holders(job.bindings, min(at_s, event.at_s))
                self._lifecycle.start(job, min(at_s, event.at_s))
                is_news = True
        return is_news

    def _switch_failed(self, event: e.SwitchFailed) -> bool:
        is_news = False
        for job_id in event.not_started:
            job = self._awaited(job_id, event.switch_id, JobPhase.RESUMING)
            if job is not None:
                self._lifecycle.withdraw(job)
                is_news = True
        for job_id in event.kept:
            job = self._awaited(job_id, event.switch_id, JobPhase.SUSPENDING)
            if job is not None:
                self._withdraw_claims(job)
                self._lifecycle.keep(job)
                is_news = True
        return is_news

    def _withdraw_claims(self, job: JobState) -> None:
        """Devices that were promised to others stay with who holds them."""
        for binding in job.bindings:
            claims = self._state.servers[binding.server_id].claims
            for gpu in binding.gpus:
                claimant = claims[gpu]
                if claimant is not None:
                    self._withdraw(self._state.jobs[claimant])

    def _withdraw(self, job: JobState) -> None:
        if job.move is None:
            self._lifecycle.withdraw(job)
        else:
            self._stay(job)

    def _job_learned(self, event: e.JobLearned) -> bool:
        reason = "" if event.can_suspend else event.reason or "it cannot be suspended"
        job = self._state.jobs.get(event.job_id)
        if job is None or (job.unsuspendable == reason and job.fixed == event.fixed):
            return self._ignore()
        self._ledger.learn(job, reason, event.fixed)
        return True

    def _job_held(self, job_id: JobId, *, is_held: bool) -> bool:
        job = self._state.jobs.get(job_id)
        if job is None or job.is_held is is_held:
            return self._ignore()
        self._ledger.hold(job, is_held=is_held)
        return True

    def _awaited(self, job_id: JobId, switch_id: int, phase: JobPhase) -> JobState | None:
        job = self._state.jobs.get(job_id)
        if job is not None and job.switch_id == switch_id and job.phase is phase:
            return job
        self._ignore()
        return None

    def _stop_holders(self, bindings: Iterable[Binding], at_s: float) -> None:
        """A device passes on only after its holder stopped: a start reported first implies the stop."""
        for binding in bindings:
            holders = self._state.servers[binding.server_id].holders
            for gpu in binding.gpus:
                holder = holders[gpu]
                if holder is not None:
                    self._lifecycle.stop(self._state.jobs[holder], at_s)

    def _timer_fired(self, event: e.TimerFired) -> bool:
        due_s = self._state.wakes.get(event.key)
        if due_s is None or event.at_s < due_s:
            return self._ignore()
        self._ledger.undo.drop_entry(self._state.wakes, event.key)
        return True

    def _malformed(self, place: str, found: str) -> InputError:
        return InputError(
            f"event {self._state.number}: {place}", found, "a message that makes sense"
        )
