"""Guarantees in GPU time (DESIGN §4): a queue below its entitlement over ten minutes is served first until it is not.

What a queue ran is measured by the engine, what it is entitled to is computed anew at each look. Once it has run less
than that in the mean of a window it is *favoured*: its residents get their entitled time first in every slicing domain
they share, the others what is left, the queue furthest above its own entitlement last; and its waiting jobs are
placed beside the others' residents wherever they fit. Nobody is killed: who must yield is suspended at the next
boundary, which is brought forward. A favoured queue ceases to be one once it ran more than its entitlement over a
whole window.

Remembered under ``guarantees/PARTITION``, for each queue that is entitled to anything: the start of its window, what
it had run by then, and what it was owed since.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from gandiva_core.messages.decisions import Decision, Remember, WakeAt
from gandiva_core.messages.events import (
    GangCommitted,
    JobAdopted,
    JobMoved,
    JobSubmitted,
    QueuesConfigured,
    ReclaimAsked,
    ServerJoined,
    ServerLost,
    TimerFired,
)
from gandiva_core.messages.policy import Decisions
from gandiva_core.model.job import JobPhase
from gandiva_core.model.units import JobId, QueueName
from gandiva_core.model.view import ClusterView, Memory, QueueView
from gandiva_core.policies.entitlement import entitlements
from gandiva_core.policies.favour import COUNT, FAVOURED, GUARANTEES, favoured_in
from gandiva_core.policies.limits import can_ever_run, leaves_of
from gandiva_core.policies.timeslice import SLICE

_SEEN = ""
"""The name under which accounts say when they were last looked at; no queue is empty."""

WINDOW_S = 600.0
"""How long a queue must have run less than it is entitled to (DESIGN §4)."""

TOLERANCE_RATIO = 0.02
"""What a shortfall must exceed: suspending and resuming may cost as much (G-43)."""

_SLACK = 1e-6
_WAITING = frozenset({JobPhase.STARTING, JobPhase.SUSPENDED})


class Account(msgspec.Struct, frozen=True):
    """One queue's window.

    Attributes:
        since_s: its start.
        used_gpu_s: what the queue had run by then, ever.
        owed_gpu_s: what it was entitled to run since.
        due_gpus: its entitlement at the last look.
        favoured: 1 while it is served first.
    """

    since_s: float
    used_gpu_s: float
    owed_gpu_s: float
    due_gpus: float
    favoured: float

    @classmethod
    def read(cls, memory: Memory, queue: QueueName) -> Account | None:
        """What was remembered of a queue."""
        if f"{queue}/since_s" not in memory:
            return None
        return cls(*(memory[f"{queue}/{field}"] for field in cls.__struct_fields__))

    def written(self, queue: QueueName) -> Iterator[tuple[str, float]]:
        """As entries of a memory."""
        for field in self.__struct_fields__:
            yield f"{queue}/{field}", getattr(self, field)


class Guarantees(msgspec.Struct, frozen=True):
    """Watches what queues get, as a part of a policy.

    Attributes:
        period_s: time between two looks: a quantum, since nothing changes in between.
        window_s: see `WINDOW_S`.
    """

    period_s: float
    window_s: float = WINDOW_S

    def decide(self, event: object, view: ClusterView) -> Decisions:
        """What `event` means for who is served first."""
        if not view.queues:
            return
        match event:
            case TimerFired(key=key) if key == GUARANTEES:
                yield from self._look(view, at_once=False)
            case ReclaimAsked():
                yield from self._look(view, at_once=True)
            case JobSubmitted() | GangCommitted() | JobAdopted() | JobMoved():
                yield from self._watch(view)
            case QueuesConfigured() | ServerJoined() | ServerLost():
                yield from self._watch(view)

    def _watch(self, view: ClusterView) -> Decisions:
        """Look from now on, where queues compete."""
        if GUARANTEES not in view.wakes and _is_contested(view):
            yield WakeAt(GUARANTEES, view.now_s + self.period_s)

    def _look(self, view: ClusterView, *, at_once: bool) -> Decisions:
        """Bring every account up to date; whoever lacks for long enough, or `at_once`, is favoured."""
        is_contested = False
        for partition in sorted({partition for _, partition in view.queues}):
            accounts = self._accounts(view, partition, at_once=at_once)
            is_contested = is_contested or bool(accounts)
            yield from _keep_accounts(view, partition, accounts)
            yield from _keep_order(view, partition, accounts)
        if is_contested:
            yield WakeAt(GUARANTEES, view.now_s + self.period_s)

    def _accounts(
        self, view: ClusterView, partition: str, *, at_once: bool
    ) -> dict[QueueName, Account]:
        """Up to date; none where not two queues have jobs that could run."""
        leaves = leaves_of(view, partition)
        demand = _demand(view, leaves)
        if sum(gpus > 0 for gpus in demand.values()) < 2:
            return {}
        limits = [link.limit for key, link in view.queues.items() if key[1] == partition]
        entitled = entitlements(limits, demand, _gpus(view, partition))
        memory = view.memory.get(f"{GUARANTEES}/{partition}", {})
        return {
            link.limit.name: self._account(view, link, entitled[link.limit.name], memory, at_once)
            for link in leaves
            if entitled[link.limit.name] > _SLACK or link.running
        }

    def _account(
        self, view: ClusterView, link: QueueView, due: float, memory: Memory, at_once: bool
    ) -> Account:
        now_s = view.now_s
        used = link.used_gpu_s(now_s)
        known = Account.read(memory, link.limit.name)
        if known is None:
            known = Account(now_s, used, 0.0, due, 0.0)
        owed = known.owed_gpu_s + min(known.due_gpus, due) * (now_s - memory.get(_SEEN, now_s))
        ran = used - known.used_gpu_s
        has_lacked = ran < owed * (1.0 - TOLERANCE_RATIO)
        if at_once and due > _SLACK and (has_lacked or link.running < due - _SLACK):
            return Account(now_s, used, 0.0, due, 1.0)
        is_over = now_s >= known.since_s + self.window_s
        is_favoured = known.favoured > 0.0
        if is_over:
            is_favoured = ran <= owed * (1.0 + TOLERANCE_RATIO) if is_favoured else has_lacked
        if due <= _SLACK:
            is_favoured = False
        if is_over:
            return Account(now_s, used, 0.0, due, float(is_favoured))
        return Account(known.since_s, known.used_gpu_s, owed, due, float(is_favoured))


def _is_contested(view: ClusterView) -> bool:
    """Whether in some partition two queues or more have jobs."""
    parents = {(link.limit.parent, partition) for (_, partition), link in view.queues.items()}
    busy = Counter(
        key[1] for key, link in view.queues.items() if link.demand and key not in parents
    )
    return any(count > 1 for count in busy.values())


def _demand(view: ClusterView, leaves: Iterable[QueueView]) -> dict[QueueName, float]:
    """GPUs that each queue's jobs ask for; without those that this cluster or their queue could never run."""
    demand = {link.limit.name: float(link.demand) for link in leaves}
    partitions = {link.limit.partition for link in leaves}
    judged: dict[tuple[object, ...], bool] = {}
    for job_id in view.queue:
        spec = view.jobs[job_id].spec
        chain = view.chain(spec.queue, spec.partition)
        if not chain or chain[0].limit.partition not in partitions:
            continue
        ask = (spec.queue, spec.partition, spec.only_on, spec.workers)
        if ask not in judged:
            judged[ask] = can_ever_run(view, spec)
        if not judged[ask] and chain[0].limit.name in demand:
            demand[chain[0].limit.name] -= spec.gpus
    return demand


def _gpus(view: ClusterView, partition: str) -> float:
    """Physical GPUs that the limits of a partition are about."""
    is_all = not any(named for _, named in view.queues)
    return float(
        sum(
            state.server.gpus
            for state in view.servers.values()
            if is_all or state.server.partition == partition
        )
    )


def _keep_accounts(
    view: ClusterView, partition: str, accounts: Mapping[QueueName, Account]
) -> Iterator[Decision]:
    key = f"{GUARANTEES}/{partition}"
    values: dict[str, float] = {}
    for queue, account in accounts.items():
        values.update(account.written(queue))
    if values:
        values[_SEEN] = view.now_s
    if values or key in view.memory:
        yield Remember(key, values)


def _keep_order(
    view: ClusterView, partition: str, accounts: Mapping[QueueName, Account]
) -> Iterator[Decision]:
    """Remember the order of service where it changed; bring boundaries forward for queues that are newly favoured."""
    key = FAVOURED + partition
    before = view.memory.get(key, {})
    order = _order(view, partition, accounts)
    if list(before.items()) == list(order.items()):
        return
    known = set(favoured_in(before)) if before else set()
    yield Remember(key, order)
    news = [name for name in favoured_in(order) if name not in known] if order else []
    if news:
        yield from _hasten(view, partition, news)


def _order(
    view: ClusterView, partition: str, accounts: Mapping[QueueName, Account]
) -> dict[str, float]:
    """What to remember: favoured queues by what they lack, the others by how far they are above their own."""
    count = sum(account.favoured > 0.0 for account in accounts.values())
    if not count:
        return {}
    above = {
        name: view.queues[name, partition].running - account.due_gpus
        for name, account in accounts.items()
    }
    ordered = sorted(accounts, key=lambda name: (-accounts[name].favoured, above[name], name))
    return {COUNT: float(count), **{name: accounts[name].due_gpus for name in ordered}}


def _hasten(view: ClusterView, partition: str, queues: Sequence[QueueName]) -> Iterator[Decision]:
    """The boundary of every domain where a job of these queues waits is now."""
    seen: set[str] = set()
    for job_id in tuple(view.jobs):
        if _waits_in(view, job_id, partition, queues):
            key = SLICE + view.domain(view.jobs[job_id].servers[0])[0]
            if key not in seen and view.wakes.get(key, view.now_s) > view.now_s:
                seen.add(key)
                yield WakeAt(key, view.now_s)


def _waits_in(
    view: ClusterView, job_id: JobId, partition: str, queues: Sequence[QueueName]
) -> bool:
    job = view.jobs[job_id]
    if job.phase not in _WAITING:
        return False
    chain = view.chain(job.spec.queue, job.spec.partition)
    return bool(chain) and chain[0].limit.partition == partition and chain[0].limit.name in queues
