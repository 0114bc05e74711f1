"""The figures of a run, computed from its journal's entries only, one entry at a time.

The same collector is fed by the driver while a replay runs and by `gandiva recheck` and `gandiva report` from the file
afterwards, so that a figure can always be had again from the journal whose hash stands beside it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gandiva_core.messages.decisions import Enqueue, Place, Wait
from gandiva_core.messages.effects import CommitGang, ReleaseGang
from gandiva_core.messages.events import (
    AmWaited,
    ContainersHeld,
    GangBroken,
    GangCommitted,
    GangRefused,
    JobAdopted,
    JobFailed,
    JobFinished,
    JobKilled,
    JobSubmitted,
    MinibatchesReached,
    ResidentsSwitched,
    ServerJoined,
    ServerLost,
)
from gandiva_core.model.cluster import Server
from gandiva_core.model.units import JobId, ServerId
from gandiva_core.replay.accounts import JobAccount, JobTable, Residency, listed, shares_of
from gandiva_core.replay.figures import (
    FAILED,
    FINISHED,
    KILLED,
    UNFINISHED,
    Course,
    JobRecord,
    RunFigures,
    makespan,
    mean,
    quantile,
)
from gandiva_core.replay.series import MeanBins, PeakBins
from gandiva_core.runtime.journal import Entry

EARLY_FEEDBACK_MINIBATCHES = 100
"""The mark of C-4."""

HOST_MEMORY = "host-memory"
"""Code of a wait because a server's memory bounds over-subscription (G-46)."""

NO_ROOM = "NO_ROOM"
"""Reason of an `AmWaited` that is not the AM limit's."""


class MetricsCollector:
    """Streams over a journal.

    Args:
        servers: the cluster of the run; its GPUs are the denominator of every utilisation.
        utilization_by_job: busy fraction of a device while the job runs alone, 0 to 1; 1 where a
            job is not named.
        is_stock: whether the substrate schedules by itself. Then a gang's devices count as
            allocated from its first container on, and otherwise while it runs: residents of a
            sliced server share its devices.
    """

    def __init__(
        self,
        servers: Sequence[Server],
        utilization_by_job: Mapping[str, float],
        is_stock: bool,
    ) -> None:
        self._utilization_by_job = utilization_by_job
        self._is_stock = is_stock
        self._residency = Residency({server.server_id: server.gpus for server in servers})
        self._jobs = JobTable()
        self._refused_at_submit: list[JobFailed] = []
        self._outcomes: dict[JobId, str] = {}
        self._am_waited: set[JobId] = set()
        self._memory_waited: set[JobId] = set()
        self._held_partly: set[JobId] = set()
        self._gangs_refused: Counter[str] = Counter()
        self._partial_gpu_s = 0.0
        self._busy_gpu_s = 0.0
        self._allocated_gpu_s = 0.0
        self._events = 0
        self._now_s = 0.0
        self._busy, self._allocated = MeanBins(), MeanBins()
        self._load, self._height = MeanBins(), PeakBins()
        self._load_since_s = 0.0
        self._handlers: dict[type, Callable[[Any], None]] = {
            JobSubmitted: self._submitted,
            GangCommitted: self._committed,
            JobAdopted: self._adopted,
            GangRefused: self._refused,
            GangBroken: self._broken,
            ResidentsSwitched: self._switched,
            MinibatchesReached: self._milestone,
            JobFinished: self._finished,
            JobFailed: self._failed,
            JobKilled: self._killed,
            ContainersHeld: self._containers_held,
            AmWaited: self._am_waiting,
            ServerJoined: self._joined,
            ServerLost: self._lost,
        }

    def observe(self, entry: Entry) -> None:
        """Take one line of the journal; lines come in their order."""
        event = entry.event
        self._events += 1
        self._now_s = max(self._now_s, event.at_s)
        handler = self._handlers.get(type(event))
        if handler is not None:
            handler(event)
        for decision in entry.decisions:
            if type(decision) is Enqueue:
                self._waits(event.at_s, decision.job_id, decision.reason)
            elif type(decision) is Place:
                self._placed(event.at_s, decision)
        for effect in entry.effects:
            if type(effect) is CommitGang:
                self._settle(event.at_s, effect.job_id, effect.servers)
            elif type(effect) is ReleaseGang:
                self._released(event.at_s, effect.job_id, effect.reason)

    # ------------------------------------------------------------------ a job's life

    def _submitted(self, event: JobSubmitted) -> None:
        spec = event.job
        utilization = self._utilization_by_job.get(spec.job_id, 1.0)
        self._jobs[spec.job_id] = JobAccount(spec, event.at_s, utilization)

    def _committed(self, event: GangCommitted) -> None:
        job = self._jobs.get(event.job_id)
        if job is None:
            return
        self._end_partial_hold(event.at_s, job)
        if not job.shares and event.servers:
            self._settle(event.at_s, event.job_id, event.servers)
            job.tell(event.at_s, f"all containers on {listed(job.servers)}")

    def _adopted(self, event: JobAdopted) -> None:
        """Resident from here on; what came before it is not known."""
        job_id = event.job.job_id
        job = self._jobs.get(job_id)
        if job is None:
            utilization = self._utilization_by_job.get(job_id, 1.0)
            job = self._jobs[job_id] = JobAccount(event.job, event.at_s, utilization)
        if not job.shares and job_id not in self._outcomes:
            self._settle(event.at_s, job_id, event.servers)
            job.tell(event.at_s, f"found resident on {listed(job.servers)}")

    def _settle(self, at_s: float, job_id: JobId, servers: Sequence[ServerId]) -> None:
        job = self._jobs.get(job_id)
        if job is None:
            return
        job.servers = tuple(servers)
        job.shares = shares_of(job.spec, servers)
        job.resident_since_s = at_s
        job.wait_code = ""
        self._account_load(at_s)
        self._residency.add(job.shares)
        self._height.change(at_s, float(self._residency.height))

    def _leave(self, at_s: float, job: JobAccount) -> None:
        """Give back everything the job has; the books are closed up to `at_s`."""
        self._stop(at_s, job)
        self._end_partial_hold(at_s, job)
        if job.shares:
            if self._is_stock and job.resident_since_s is not None:
                self._allocate(job.resident_since_s, at_s, job.spec.gpus)
            self._account_load(at_s)
            self._residency.remove(job.shares)
            self._height.change(at_s, float(self._residency.height))
        job.shares = {}
        job.resident_since_s = None

    def _refused(self, event: GangRefused) -> None:
        self._gangs_refused[event.code] += 1
        job = self._jobs.get(event.job_id)
        if job is not None:
            job.tell(event.at_s, f"placement refused: {event.code} {event.detail}".rstrip())
            self._leave(event.at_s, job)

    def _broken(self, event: GangBroken) -> None:
        self._restart(event.at_s, event.job_id, event.reason or "a worker was lost")

    def _released(self, at_s: float, job_id: JobId, reason: str) -> None:
        job = self._jobs.get(job_id)
        if job is not None and job.shares:
            self._restart(at_s, job_id, reason)

    def _restart(self, at_s: float, job_id: JobId, reason: str) -> None:
        job = self._jobs.get(job_id)
        if job is None or job_id in self._outcomes or not (job.shares or job.partial_gpus):
            return
        job.restarts += 1
        job.tell(at_s, f"lost its gang ({reason}); begins anew from its last checkpoint")
        self._leave(at_s, job)

    def _switched(self, event: ResidentsSwitched) -> None:
        for job_id, at_s in event.stopped:
            job = self._jobs.get(job_id)
            if job is not None and job.run_since_s is not None:
                self._stop(at_s, job)
                job.suspends += 1
        for job_id, at_s in event.started:
            job = self._jobs.get(job_id)
            if job is not None and job_id not in self._outcomes:
                self._start(at_s, job)

    def _start(self, at_s: float, job: JobAccount) -> None:
        job.run_since_s = at_s
        if job.first_run_s is None:
            job.first_run_s = at_s
            job.tell(at_s, "ran first")

    def _stop(self, at_s: float, job: JobAccount) -> None:
        since_s = job.run_since_s
        if since_s is None:
            return
        job.run_since_s = None
        span_s = max(0.0, at_s - since_s)
        job.computed_s += span_s
        gpus = job.spec.gpus
        self._busy_gpu_s += span_s * gpus * job.utilization
        self._busy.add(since_s, at_s, gpus * job.utilization)
        if not self._is_stock:
            self._allocate(since_s, at_s, gpus)

    def _milestone(self, event: MinibatchesReached) -> None:
        job = self._jobs.get(event.job_id)
        if job is None or event.minibatches < EARLY_FEEDBACK_MINIBATCHES:
            return
        if job.first_100_s is None:
            job.first_100_s = event.at_s

    def _finished(self, event: JobFinished) -> None:
        self._end(event.at_s, event.job_id, FINISHED, "finished")

    def _failed(self, event: JobFailed) -> None:
        if event.job_id not in self._jobs:
            self._refused_at_submit.append(event)
            return
        self._end(event.at_s, event.job_id, FAILED, f"failed: {event.reason}")

    def _killed(self, event: JobKilled) -> None:
        self._end(event.at_s, event.job_id, KILLED, "killed")

    def _end(self, at_s: float, job_id: JobId, outcome: str, text: str) -> None:
        job = self._jobs.get(job_id)
        if job is None or job_id in self._outcomes:
            return
        self._leave(at_s, job)
        job.end(at_s, text)
        self._outcomes[job_id] = outcome

    # ------------------------------------------------------------------ waiting

    def _waits(self, at_s: float, job_id: JobId, reason: Wait) -> None:
        if reason.code == HOST_MEMORY:
            self._memory_waited.add(job_id)
        job = self._jobs.get(job_id)
        if job is not None and job.wait_code != reason.code:
            job.wait_code = reason.code
            job.tell(at_s, f"waits ({reason.code}): needs {reason.need}; there is {reason.have}")

    def _placed(self, at_s: float, decision: Place) -> None:
        job = self._jobs.get(decision.job_id)
        if job is not None:
            job.tell(at_s, f"placed on {listed(decision.servers)} ({decision.step})")

    def _containers_held(self, event: ContainersHeld) -> None:
        job = self._jobs.get(event.job_id)
        if job is None:
            return
        self._end_partial_hold(event.at_s, job)
        if 0 < event.held < event.wanted:
            self._held_partly.add(event.job_id)
            job.partial_gpus = event.held
            job.partial_since_s = event.at_s
            job.tell(
                event.at_s, f"holds {event.held} of {event.wanted} GPUs and waits for the rest"
            )

    def _end_partial_hold(self, at_s: float, job: JobAccount) -> None:
        if job.partial_gpus:
            self._partial_gpu_s += (at_s - job.partial_since_s) * job.partial_gpus
            self._allocate(job.partial_since_s, at_s, job.partial_gpus)
            job.partial_gpus = 0

    def _am_waiting(self, event: AmWaited) -> None:
        """Only the AM limit counts: a master that waits for room waits as its gang would."""
        why = "finds no room" if event.reason == NO_ROOM else f"waits: {event.reason}"
        if event.reason != NO_ROOM:
            self._am_waited.add(event.job_id)
        job = self._jobs.get(event.job_id)
        if job is not None and job.wait_code != event.reason:
            job.wait_code = event.reason
            job.tell(event.at_s, f"its application master {why}")

    # ------------------------------------------------------------------ the cluster

    def _joined(self, event: ServerJoined) -> None:
        self._residency.gpus[event.server.server_id] = event.server.gpus
        self._residency.allocated.setdefault(event.server.server_id, 0)

    def _lost(self, event: ServerLost) -> None:
        """A job with a share there has lost its gang, whether or not a release is said for it too."""
        for job_id, job in self._jobs.items():
            if event.server_id in job.shares:
                self._restart(event.at_s, job_id, f"server {event.server_id} was lost")

    def _allocate(self, since_s: float, until_s: float, gpus: int) -> None:
        self._allocated_gpu_s += (until_s - since_s) * gpus
        self._allocated.add(since_s, until_s, gpus)

    def _account_load(self, at_s: float) -> None:
        self._load.add(self._load_since_s, at_s, self._residency.residents_gpus)
        self._load_since_s = at_s

    # ------------------------------------------------------------------ results

    def close(self) -> None:
        """End the books at the last event's time; call once, after the last entry.

        What still runs or holds counts up to there.
        """
        for job in self._jobs.values():
            shares, partial = job.shares, job.partial_gpus
            self._leave(self._now_s, job)
            job.shares, job.partial_gpus = shares, partial
        self._account_load(self._now_s)

    def records(self) -> tuple[JobRecord, ...]:
        """A record a job, in order of submission. Jobs refused at submission have none: see `refused`."""
        return tuple(
            job.record(self._outcomes.get(job_id, UNFINISHED)) for job_id, job in self._jobs.items()
        )

    def refused(self) -> tuple[tuple[str, str], ...]:
        """Jobs refused at submission, each with the reason; they count as failed."""
        return tuple((event.job_id, event.reason) for event in self._refused_at_submit)

    def course(self) -> Course:
        """The run over time, as fractions of all GPUs."""
        total = max(1, self._residency.total_gpus)
        return Course(
            utilization=self._busy.series(self._now_s, 1 / total),
            allocated=self._allocated.series(self._now_s, 1 / total),
            load=self._load.series(self._now_s, 1 / total),
            height=self._height.series(self._now_s),
        )

    def figures(self) -> RunFigures:
        """The run's figures; after `close`."""
        records = self.records()
        jcts = [record.jct_s for record in records if record.jct_s is not None]
        makespan_s = makespan(records)
        span_s = makespan_s if makespan_s and len(jcts) == len(records) else self._span_s(records)
        gpu_s = max(1, self._residency.total_gpus) * span_s
        count = Counter(record.outcome for record in records)
        return RunFigures(
            jobs=len(records) + len(self._refused_at_submit),
            finished=count[FINISHED],
            failed=count[FAILED] + len(self._refused_at_submit),
            killed=count[KILLED],
            unfinished=count[UNFINISHED],
            mean_jct_s=mean(jcts),
            median_jct_s=quantile(jcts, 0.5),
            p95_jct_s=quantile(jcts, 0.95),
            p99_jct_s=quantile(jcts, 0.99),
            makespan_s=makespan_s,
            mean_queueing_s=mean([r.queueing_s for r in records if r.queueing_s is not None]),
            mean_first_100_minibatches_s=mean(
                [r.first_100_s - r.arrival_s for r in records if r.first_100_s is not None]
            ),
            gpu_utilization=self._busy_gpu_s / gpu_s if gpu_s else 0.0,
            gpu_allocated=self._allocated_gpu_s / gpu_s if gpu_s else 0.0,
            am_limit_waits=len(self._am_waited),
            max_height=self._residency.height_max,
            suspends=sum(record.suspends for record in records),
            restarts=sum(record.restarts for record in records),
            migrations=0,
            packings_tried=0,
            packings_kept=0,
            host_memory_waits=len(self._memory_waited),
            partial_holds=len(self._held_partly),
            partial_hold_gpu_s=self._partial_gpu_s,
            gangs_refused=dict(sorted(self._gangs_refused.items())),
            events=self._events,
        )

    def _span_s(self, records: Sequence[JobRecord]) -> float:
        first_s = min((record.arrival_s for record in records), default=0.0)
        return max(0.0, self._now_s - first_s)
