"""May this decision be applied? A reason why not, or None. Nothing here changes anything.

Reasons are for people and for tests of policies: what was asked, what is there.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping

from gandiva_core.engine.state import JobState, QueueState, State
from gandiva_core.engine.transitions import Stimulus, is_allowed
from gandiva_core.messages.decisions import (
    Enqueue,
    Migrate,
    Place,
    Remember,
    Run,
    Switch,
    WakeAt,
)
from gandiva_core.model.job import JobPhase
from gandiva_core.model.placement import shares_of
from gandiva_core.model.units import JobId, ServerId


def check_place(state: State, decision: Place) -> str | None:
    """Phase, shape, partition, devices, height, memory, vcores, queue (G-21, G-46, DESIGN §4)."""
    job = state.jobs.get(decision.job_id)
    if job is None:
        return f"job {decision.job_id} is not known"
    if not is_allowed(job.phase, Stimulus.PLACE_ORDERED):
        return f"job {decision.job_id} is {job.phase}, not waiting"
    return _check_servers(state, job, decision.servers) or _check_resident(job, state.height_max)


def _check_servers(state: State, job: JobState, servers: tuple[ServerId, ...]) -> str | None:
    """Whether a gang may come to these servers."""
    workers = job.spec.workers
    if len(servers) != len(workers):
        return f"{len(servers)} servers for {len(workers)} workers"
    for server_id in servers:
        if server_id not in state.servers:
            return f"server {server_id} is not known"
        if state.servers[server_id].server.is_draining:
            return f"server {server_id} is being emptied"
        if job.spec.only_on and server_id not in job.spec.only_on:
            return f"job {job.spec.job_id} insists on other servers than {server_id}"
    for server_id, share in shares_of(workers, servers).items():
        problem = _check_room(state, job, server_id, share)
        if problem is not None:
            return problem
    return _check_host(state, job, servers)


def check_migrate(state: State, decision: Migrate) -> str | None:
    """A running gang that can move, room for it a second time, and free devices there (G-69)."""
    job_id = decision.job_id
    job = state.jobs.get(job_id)
    if job is None:
        return f"job {job_id} is not known"
    if not is_allowed(job.phase, Stimulus.MOVE_ORDERED):
        return f"job {job_id} is {job.phase}, not running"
    fixed = state.why_fixed(job_id)
    if fixed is not None:
        return f"job {job_id} is not to be moved: {fixed}"
    if decision.servers == job.servers:
        return f"job {job_id} is on {', '.join(job.shares)} already"
    problem = _check_servers(state, job, decision.servers)
    if problem is not None:
        return problem
    for server_id in decision.servers:
        if not state.servers[server_id].server.can_suspend:
            return f"nothing on server {server_id} can take a job over"
    for victim in decision.suspend:
        if victim == job_id or victim not in state.jobs:
            return f"job {victim} cannot be stopped for it"
    run = Run(job_id, decision.bindings)
    shares = shares_of(job.spec.workers, decision.servers)
    return (
        _check_suspends(state, decision.suspend)
        or _check_shape(state, run, shares)
        or _check_devices(state, run, decision.suspend, set())
    )


def _check_room(state: State, job: JobState, server_id: ServerId, share: int) -> str | None:
    server = state.servers[server_id]
    if server.server.partition != job.spec.partition:
        return (
            f"server {server_id} is in partition {server.server.partition!r}, "
            f"the job asks for {job.spec.partition!r}"
        )
    gpus = server.server.gpus
    if share > gpus:
        return f"a share of {share} GPUs can never run whole on server {server_id} with {gpus}"
    room = server.room(state.height_max)
    if not job.is_sliced:
        room = gpus  # it must always run, so it shares with nobody
    elif share > gpus - server.unsliced:
        return f"{server.unsliced} of {gpus} GPUs of server {server_id} are never given up, {share} needed"
    if server.allocated + share > room:
        return f"server {server_id} would have {server.allocated + share} GPUs of {room} allocated"
    return None


def _check_host(state: State, job: JobState, servers: tuple[ServerId, ...]) -> str | None:
    memory_mib: defaultdict[ServerId, int] = defaultdict(int)
    vcores: defaultdict[ServerId, int] = defaultdict(int)
    for worker, server_id in zip(job.spec.workers, servers, strict=True):
        memory_mib[server_id] += worker.memory_mib
        vcores[server_id] += worker.vcores
    for server_id, needed in memory_mib.items():
        server = state.servers[server_id]
        if needed > server.memory_free_mib:
            return f"server {server_id} has {server.memory_free_mib} MiB free, {needed} needed"
        if vcores[server_id] > server.vcores_free:
            return f"server {server_id} has {server.vcores_free} vcores free, {vcores[server_id]} needed"
    return None


def _check_resident(job: JobState, height_max: int) -> str | None:
    for link in job.chain:
        limit = link.limit.max_gpus * height_max
        if link.resident + job.spec.gpus > limit + 1e-9:
            return f"queue {link.limit.name} has {link.resident} resident GPUs of {limit:g}"
        if not job.is_sliced and link.unsliced + job.spec.gpus > link.limit.max_gpus + 1e-9:
            return (
                f"queue {link.limit.name} has {link.unsliced} GPUs that are never given up, "
                f"of {link.limit.max_gpus:g}"
            )
    return None


def check_enqueue(state: State, decision: Enqueue) -> str | None:
    """Only a job that has nothing can wait in the queue."""
    job = state.jobs.get(decision.job_id)
    if job is None:
        return f"job {decision.job_id} is not known"
    if not is_allowed(job.phase, Stimulus.ENQUEUE_ORDERED):
        return f"job {decision.job_id} is {job.phase}, not waiting"
    return None


def check_switch(state: State, decision: Switch) -> str | None:
    """One domain, gangs whole, each device with one holder and one claim, queues below M_q (G-11, G-32)."""
    runs, suspends = decision.run, decision.suspend
    named = [*suspends, *(run.job_id for run in runs)]
    if not named and not decision.prepare:
        return "nothing to switch"
    if len(set(named)) != len(named):
        return "a job is named twice"
    problem = _check_domain(state, [*named, *(run.job_id for run in decision.prepare)])
    if problem is not None:
        return problem
    problem = _check_suspends(state, suspends) or _check_runs(state, runs, suspends)
    if problem is not None:
        return problem
    for run in decision.prepare:
        problem = _check_shape(state, run, state.jobs[run.job_id].shares)
        if problem is not None:
            return problem
    return _check_running(state, runs) if state.queues and runs else None


def _check_domain(state: State, named: Iterable[JobId]) -> str | None:
    domain: tuple[ServerId, ...] | None = None
    for job_id in named:
        job = state.jobs.get(job_id)
        if job is None or not job.servers:
            return f"job {job_id} is not resident"
        found = state.domain(job.servers[0])
        if domain is None:
            domain = found
        elif found is not domain:
            return f"job {job_id} is outside the slicing domain {', '.join(domain)}"
    return None


def _check_suspends(state: State, suspends: Iterable[JobId]) -> str | None:
    for job_id in suspends:
        job = state.jobs[job_id]
        if job.phase is not JobPhase.RUNNING:
            return f"job {job_id} is {job.phase}, not running"
        kept = state.why_kept(job_id)
        if kept is not None:
            return f"job {job_id} is not to be stopped: {kept}"
    return None


def _check_runs(state: State, runs: Iterable[Run], suspends: tuple[JobId, ...]) -> str | None:
    promised: set[tuple[ServerId, int]] = set()
    for run in runs:
        job = state.jobs[run.job_id]
        if not is_allowed(job.phase, Stimulus.RUN_ORDERED):
            return f"job {run.job_id} is {job.phase}, neither starting nor suspended"
        if job.is_held:
            return f"job {run.job_id} is held by its owner"
        problem = _check_shape(state, run, job.shares)
        problem = problem or _check_devices(state, run, suspends, promised)
        if problem is not None:
            return problem
    return None


def _check_shape(state: State, run: Run, shares: Mapping[ServerId, int]) -> str | None:
    """A gang runs whole or not at all: bindings have its share on each server (G-11 ii)."""
    counts: dict[ServerId, int] = {}
    for binding in run.bindings:
        server = state.servers.get(binding.server_id)
        if server is None:
            return f"server {binding.server_id} is not known"
        if len(set(binding.gpus)) != len(binding.gpus):
            return f"job {run.job_id} names a device twice"
        for gpu in binding.gpus:
            if not 0 <= gpu < server.server.gpus:
                return f"server {binding.server_id} has no device {gpu}"
        counts[binding.server_id] = counts.get(binding.server_id, 0) + len(binding.gpus)
    if counts != shares:
        return f"job {run.job_id} is bound to {_text(counts)}, its gang is {_text(shares)}"
    return None


def _check_devices(
    state: State,
    run: Run,
    suspends: tuple[JobId, ...],
    promised: set[tuple[ServerId, int]],
) -> str | None:
    for binding in run.bindings:
        server = state.servers[binding.server_id]
        for gpu in binding.gpus:
            device = (binding.server_id, gpu)
            if server.claims[gpu] is not None or device in promised:
                return f"{binding.server_id}/{gpu} is promised already"
            promised.add(device)
            holder = server.holders[gpu]
            if holder is None or holder in suspends:
                continue
            if state.jobs[holder].phase is not JobPhase.SUSPENDING:
                return f"{binding.server_id}/{gpu} is held by {holder}, which goes on running"
    return None


def _check_running(state: State, runs: Iterable[Run]) -> str | None:
    """Running devices of a queue never exceed M_q; a device that changes hands inside the queue counts once."""
    added: defaultdict[QueueState, int] = defaultdict(int)
    for run in runs:
        chain = state.jobs[run.job_id].chain
        for binding in run.bindings:
            holders = state.servers[binding.server_id].holders
            for gpu in binding.gpus:
                holder = holders[gpu]
                before = () if holder is None else state.jobs[holder].chain
                if before is chain:
                    continue
                for link in chain:
                    if link not in before:
                        added[link] += 1
    for link, gpus in added.items():
        if link.running + gpus > link.limit.max_gpus + 1e-9:
            return f"queue {link.limit.name} would run {link.running + gpus} GPUs of {link.limit.max_gpus:g}"
    return None


def check_remember(decision: Remember) -> str | None:
    """Numbers that a journal can hold."""
    for value in decision.values.values():
        if not math.isfinite(value):
            return f"{decision.key}: {value} is not finite"
    return None


def check_wake(state: State, decision: WakeAt) -> str | None:
    """No wake in the past."""
    if not state.now_s <= decision.at_s < math.inf:
        return f"wake {decision.key} at {decision.at_s} s, it is {state.now_s} s"
    return None


def _text(counts: Mapping[ServerId, int]) -> str:
    return " + ".join(f"{gpus} on {server_id}" for server_id, gpus in counts.items()) or "nothing"
