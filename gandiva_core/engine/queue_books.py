"""What queues use: devices run, GPUs resident, GPUs asked for; every change is booked with the time before it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from gandiva_core.engine.state import JobState, QueueState, ServerState, State
from gandiva_core.engine.undo import UndoLog
from gandiva_core.model.cluster import QueueLimit
from gandiva_core.model.units import JobId, QueueKey


class QueueBooks:
    """The accounts of queues over a `State`.

    Args:
        touched: where queues that changed are noted.
    """

    def __init__(self, state: State, undo: UndoLog, touched: dict[QueueState, None]) -> None:
        self._state = state
        self._undo = undo
        self._touched = touched

    def count_device(self, job: JobState, other: JobId | None, sign: int) -> None:
        """A job begins or ceases to use a device that `other` has as well, one holding it, one claiming it.

        A queue uses such a device once, however many of its jobs do.
        """
        if other is None:
            self.count(job.chain, running=sign)
            return
        chain = self._state.jobs[other].chain
        if chain is not job.chain:
            self.count([link for link in job.chain if link not in chain], running=sign)

    def count_resident(self, job: JobState, sign: int) -> None:
        """A gang becomes resident, or with -1 ceases to be."""
        gpus = sign * job.spec.gpus
        self.count(job.chain, resident=gpus, unsliced=0 if job.is_sliced else gpus)

    def count(
        self,
        links: Iterable[QueueState],
        *,
        running: int = 0,
        resident: int = 0,
        unsliced: int = 0,
        demand: int = 0,
    ) -> None:
        """Add to a queue's use; what it ran until now is booked first."""
        now_s = self._state.now_s
        for link in links:
            self._undo.note(link.put_back, link.keep())
            self._touched[link] = None
            if running:
                link.gpu_s = link.used_gpu_s(now_s)
                link.since_s = now_s
                link.running += running
            link.resident += resident
            link.unsliced += unsliced
            link.demand += demand
            if link.is_overfull:
                over = over_limit(link, self._state.height_max)
                has_grown = (running > 0 and over[0]) or (resident > 0 and over[1])
                link.is_overfull = any(over) and not has_grown  # as in `settle`

    def configure(self, limits: Iterable[QueueLimit]) -> None:
        """Replace the queue tree and count every job anew; what a queue ran before is not forgotten."""
        state = self._state
        known, now_s = state.queues, state.now_s
        queues: dict[QueueKey, QueueState] = {}
        for limit in limits:
            key = limit.name, limit.partition
            ran_gpu_s = known[key].used_gpu_s(now_s) if key in known else 0.0
            queues[key] = QueueState(limit, now_s, ran_gpu_s)
        self._undo.write(state, "queues", queues)
        self._undo.write(state, "chains", {})
        for job in state.jobs.values():
            self._undo.write(job, "chain", state.chain(job.spec.queue, job.spec.partition))
        self.recount()

    def recount(self) -> None:
        """Queue use from scratch, after a fact changed what counts where."""
        running: defaultdict[QueueState, int] = defaultdict(int)
        resident: defaultdict[QueueState, int] = defaultdict(int)
        for server in self._state.servers.values():
            for users in device_users(self._state, server):
                for link in dict.fromkeys(link for user in users for link in user.chain):
                    running[link] += 1
        unsliced: defaultdict[QueueState, int] = defaultdict(int)
        demand: defaultdict[QueueState, int] = defaultdict(int)
        for job in self._state.jobs.values():
            gpus = sum(job.shares.values())
            for link in job.chain:
                resident[link] += gpus
                unsliced[link] += 0 if job.is_sliced else gpus
                demand[link] += job.spec.gpus
        now_s = self._state.now_s
        for link in self._state.queues.values():
            self._undo.note(link.put_back, link.keep())
            link.gpu_s, link.since_s = link.used_gpu_s(now_s), now_s
            link.running, link.resident = running[link], resident[link]
            link.unsliced, link.demand = unsliced[link], demand[link]
            link.is_overfull = is_over_limit(link, self._state.height_max)


def claimant(state: State, server: ServerState, gpu: int) -> JobId | None:
    """Who will run on a device; not a gang that moves there, which its queue runs where it is (G-69)."""
    claim = server.claims[gpu]
    return None if claim is None or state.jobs[claim].move is not None else claim


def device_users(state: State, server: ServerState) -> Iterator[list[JobState]]:
    """For each device the jobs whose queues use it: its holder, and who will run on it next."""
    for gpu, holder in enumerate(server.holders):
        users = (holder, claimant(state, server, gpu))
        yield [state.jobs[user] for user in users if user is not None]


def is_over_limit(link: QueueState, height_max: int) -> bool:
    """Whether a queue uses more than DESIGN §4 allows it."""
    return any(over_limit(link, height_max))


def over_limit(link: QueueState, height_max: int) -> tuple[bool, bool]:
    """Whether a queue runs more, and whether it has more residents, than DESIGN §4 allows it."""
    limit = link.limit.max_gpus + 1e-9
    return link.running > limit, link.resident > limit * height_max
