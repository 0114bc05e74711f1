"""What happens to a job, one method a stimulus: the phase by the table, the accounts by the ledger, both or neither."""

from __future__ import annotations

from gandiva_core.engine.ledger import Ledger
from gandiva_core.engine.state import JobState, Moving
from gandiva_core.engine.transitions import Stimulus, follow
from gandiva_core.messages.decisions import Wait
from gandiva_core.model.job import JobPhase, JobSpec
from gandiva_core.model.placement import Binding
from gandiva_core.model.units import ServerId


class Lifecycle:
    """Moves jobs along the transition table. Preconditions are the caller's: `checks` and `facts`."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._state = ledger.state

    def enqueue(self, job: JobState, reason: Wait) -> None:
        """Wait in the queue, saying why; a waiting job only renews the reason."""
        was_waiting = job.phase is JobPhase.QUEUED
        self._move(job, Stimulus.ENQUEUE_ORDERED)
        job.reason = reason
        if not was_waiting:
            self._start_waiting(job)

    def place(self, job: JobState, servers: tuple[ServerId, ...]) -> None:
        """Become resident on these servers, whose containers are ordered."""
        if job.phase is JobPhase.QUEUED:
            self._ledger.leave_queue(job)
        self._move(job, Stimulus.PLACE_ORDERED)
        self._ledger.settle(job, servers)

    def commit(self, job: JobState) -> None:
        """The gang's containers are there."""
        self._move(job, Stimulus.COMMITTED)

    def refuse(self, job: JobState, reason: Wait) -> None:
        """The substrate could not commit; back to the queue, to its old place."""
        self._move(job, Stimulus.REFUSED)
        job.reason = reason
        self._ledger.vacate(job)
        self._start_waiting(job)

    def adopt(self, job: JobState, spec: JobSpec, servers: tuple[ServerId, ...]) -> None:
        """Resident as it was found, whatever heights and limits say; a commit of our own is overtaken by it."""
        was = job.phase
        self._move(job, Stimulus.ADOPTED)
        if was is JobPhase.QUEUED:
            self._ledger.leave_queue(job)
        elif was is JobPhase.COMMITTING:
            job.answers_owed += 1
            self._ledger.vacate(job)
        self._ledger.redefine(job, spec)
        self._ledger.settle(job, servers)
        self._ledger.excuse(job)

    def order_run(self, job: JobState, bindings: tuple[Binding, ...], switch_id: int) -> None:
        """Promise devices; it runs once they are free."""
        self._move(job, Stimulus.RUN_ORDERED)
        job.bindings = bindings
        job.switch_id = switch_id
        self._ledger.promise(job, bindings)

    def start(self, job: JobState, at_s: float) -> None:
        """It really runs: promised devices become held ones."""
        self._move(job, Stimulus.STARTED)
        job.run_since_s = at_s
        job.has_run = True
        job.switch_id = 0
        self._ledger.take(job)

    def order_suspend(self, job: JobState, switch_id: int) -> None:
        """Told to stop at its mini-batch boundary; holds its devices until it does."""
        self._move(job, Stimulus.SUSPEND_ORDERED)
        job.switch_id = switch_id

    def stop(self, job: JobState, at_s: float) -> None:
        """It really stopped: its devices are free."""
        self._move(job, Stimulus.STOPPED)
        self._close_run(job, at_s)
        job.switch_id = 0
        self._ledger.let_go(job)

    def keep(self, job: JobState) -> None:
        """It did not stop: it runs on, on its devices."""
        self._move(job, Stimulus.KEPT)
        job.switch_id = 0

    def withdraw(self, job: JobState) -> None:
        """It did not get what it was promised: it waits as before."""
        self._move(job, Stimulus.NOT_RESUMED if job.has_run else Stimulus.NOT_STARTED)
        job.switch_id = 0
        self._ledger.let_go(job)
        if not job.has_run:
            job.bindings = ()

    def order_move(self, job: JobState, move: Moving) -> None:
        """Told to go on elsewhere; computes here until its state is saved, and has its place there reserved."""
        self._move(job, Stimulus.MOVE_ORDERED)
        self._ledger.reserve(job, move)

    def arrive(self, job: JobState) -> None:
        """It computes where it was going; what it had before is free."""
        self._move(job, Stimulus.MOVED)
        self._ledger.arrive(job)

    def stay(self, job: JobState) -> None:
        """Its move came to nothing: it computes on where it is."""
        self._move(job, Stimulus.NOT_MOVED)
        self._ledger.release(job)

    def commit_move(self, job: JobState) -> None:
        """Its new containers are there."""
        self._ledger.commit_move(job)

    def reshape(
        self,
        job: JobState,
        spec: JobSpec,
        servers: tuple[ServerId, ...],
        bindings: tuple[Binding, ...],
    ) -> None:
        """It runs on with other workers, on devices that it holds or that are free."""
        self._ledger.keep(job)
        self._ledger.let_go(job)
        self._ledger.vacate(job)
        self._ledger.redefine(job, spec)
        job.bindings = bindings
        self._ledger.settle(job, servers)
        self._ledger.excuse(job)
        self._ledger.seize(job)

    def redefine(self, job: JobState, spec: JobSpec) -> None:
        """It waits for something else."""
        self._ledger.keep(job)
        self._ledger.redefine(job, spec)

    def break_gang(self, job: JobState, reason: Wait) -> None:
        """The gang lost a worker: everything it has on any server is free, and it waits at its old place (G-13)."""
        was_committing = job.phase is JobPhase.COMMITTING
        self._move(job, Stimulus.BROKEN)
        job.answers_owed += was_committing
        job.reason = reason
        self._close_run(job, self._state.now_s)
        self._strip(job)
        self._start_waiting(job)

    def end(self, job: JobState, stimulus: Stimulus) -> None:
        """It finished, failed or was killed: it leaves with everything it has."""
        if job.phase is JobPhase.QUEUED:
            self._ledger.leave_queue(job)
        self._move(job, stimulus)
        if job.shares:
            self._strip(job)
        self._ledger.remove_job(job)

    def forget_answer(self, job: JobState) -> None:
        """An answer came to an order that no longer matters."""
        self._ledger.undo.note(job.put_back, job.keep())
        job.answers_owed -= 1

    def _move(self, job: JobState, stimulus: Stimulus) -> None:
        phase = follow(job.phase, stimulus, job.spec.job_id)
        self._ledger.keep(job)
        job.phase = phase

    def _start_waiting(self, job: JobState) -> None:
        job.queued_since_s = self._state.now_s
        self._ledger.join_queue(job)

    def _close_run(self, job: JobState, at_s: float) -> None:
        if job.run_since_s is not None:
            job.held_s += max(0.0, at_s - job.run_since_s)
            job.last_stopped_at_s = at_s
            job.run_since_s = None

    def _strip(self, job: JobState) -> None:
        if job.move is not None:
            self._ledger.release(job)
        self._ledger.let_go(job)
        self._ledger.vacate(job)
        job.bindings = ()
        job.switch_id = 0
