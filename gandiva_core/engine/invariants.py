"""What must hold between two events (G-11, DESIGN §4); a breach is a bug of ours and undoes the event.

- A device has at most one holder and one claim; a claimed device's holder is on its way out (G-11 i, iv).
- A gang holds all its devices or none, and is promised all or none (G-11 ii).
- A job awaits the answer to at most one order (G-11 iv); it runs exactly in RUNNING and SUSPENDING.
- No server above H_max, its memory or its vcores; no queue above M_q or M_q × height; except where a fact left it so.
- Every sum equals itself computed from scratch.

After an event only what it touched is checked; the full check looks at everything and is for tests.
"""

from __future__ import annotations

from collections import defaultdict

from gandiva_core.engine.alike import Alike
from gandiva_core.engine.domains import Domains
from gandiva_core.engine.ledger import Ledger, is_over_height
from gandiva_core.engine.queue_books import device_users, is_over_limit
from gandiva_core.engine.state import JobState, QueueState, ServerState, State
from gandiva_core.model.errors import InvariantError
from gandiva_core.model.job import DEVICE_PHASES, RESIDENT_PHASES, JobPhase
from gandiva_core.model.placement import shares_of
from gandiva_core.model.units import JobId

_COMPUTING = frozenset({JobPhase.RUNNING, JobPhase.SUSPENDING, JobPhase.MIGRATING})
_SETTLED = frozenset({JobPhase.RUNNING, JobPhase.MIGRATING})
_AWAITED = frozenset({JobPhase.SUSPENDING, JobPhase.RESUMING})


def check(ledger: Ledger, *, is_full: bool) -> None:
    """Check what the current event touched, or everything.

    Raises:
        InvariantError: naming the job, server or queue, and both sides of the contradiction.
    """
    state = ledger.state
    if is_full:
        check_all(state)
        return
    for job_id in ledger.touched_jobs:
        job = state.jobs.get(job_id)
        if job is not None:
            _check_job(state, job)
    for link in ledger.touched_queues:
        _check_queue(state, link)
    for server_id in ledger.touched_servers:
        server = state.servers.get(server_id)
        if server is not None:
            _check_devices(state, server)
    for server_id in ledger.moved_servers:
        server = state.servers.get(server_id)
        if server is not None:
            _check_accounts(state, server)


def check_all(state: State) -> None:
    """Everything, from scratch. Raises as `check`."""
    for job in state.jobs.values():
        _check_job(state, job)
    for server in state.servers.values():
        _check_devices(state, server)
        _check_accounts(state, server)
    for link in state.queues.values():
        _check_queue(state, link)
    _check_orders(state)
    _check_queue_use(state)
    _check_domains(state)
    _check_kinds(state)


def _demand(holds: bool, what: str, found: object, expected: object) -> None:
    if not holds:
        raise InvariantError(f"{what}: found {found}; expected {expected}")


def _check_job(state: State, job: JobState) -> None:
    job_id, phase, shares = job.spec.job_id, job.phase, job.shares
    if phase is JobPhase.SUBMITTED:
        raise InvariantError(f"job {job_id} is still undecided after its event")
    if (phase in RESIDENT_PHASES) != bool(shares):
        raise InvariantError(f"job {job_id} is {phase} with shares {shares}")
    if (phase in _COMPUTING) != (job.run_since_s is not None):
        raise InvariantError(f"job {job_id} is {phase} with a run since {job.run_since_s}")
    if (phase in _AWAITED) != (job.switch_id != 0):
        raise InvariantError(f"job {job_id} is {phase}, awaiting switch {job.switch_id}")
    if (phase is JobPhase.MIGRATING) != (job.move is not None):
        raise InvariantError(f"job {job_id} is {phase}, moving by {job.move}")
    coming = {} if job.move is None else job.move.shares
    for server_id in {**shares, **coming}:
        found = state.servers[server_id].residents.get(job_id)
        share = shares.get(server_id, 0) + coming.get(server_id, 0)
        if found != share:
            raise InvariantError(f"job {job_id}: {found} GPUs resident on {server_id}, not {share}")
    if phase in DEVICE_PHASES:
        _check_gang(state, job)


def _check_gang(state: State, job: JobState) -> None:
    job_id = job.spec.job_id
    is_promised = job.phase is JobPhase.RESUMING
    counts = dict.fromkeys(job.shares, 0)
    for binding in job.bindings:
        server = state.servers[binding.server_id]
        devices = server.claims if is_promised else server.holders
        for gpu in binding.gpus:
            if devices[gpu] != job_id:
                raise InvariantError(
                    f"job {job_id} is {job.phase} without {binding.server_id}/{gpu}: a broken gang"
                )
        counts[binding.server_id] += len(binding.gpus)
    if counts != job.shares:
        raise InvariantError(f"job {job_id} is bound to {counts} of its shares {job.shares}")
    for binding in () if job.move is None else job.move.bindings:
        claims = state.servers[binding.server_id].claims
        if any(claims[gpu] != job_id for gpu in binding.gpus):
            raise InvariantError(f"job {job_id} moves to {binding} without a promise of it")


def _check_devices(state: State, server: ServerState) -> None:
    jobs = state.jobs
    _demand(
        len(server.holders) == server.devices_listed,
        f"server {server.server.server_id}: devices listed",
        len(server.holders),
        server.devices_listed,
    )
    counts: dict[JobId, int] = {}
    for gpu, (holder, claim) in enumerate(zip(server.holders, server.claims, strict=True)):
        if holder is not None:
            phase = jobs[holder].phase
            counts[holder] = counts.get(holder, 0) + 1
            if phase is not JobPhase.SUSPENDING and (phase not in _SETTLED or claim):
                device = f"{server.server.server_id}/{gpu}"
                raise InvariantError(f"{device} is held by {holder} in {phase}, claimed by {claim}")
        if claim is not None:
            phase = jobs[claim].phase
            counts[claim] = counts.get(claim, 0) + 1
            if phase is not JobPhase.RESUMING and phase is not JobPhase.MIGRATING:
                device = f"{server.server.server_id}/{gpu}"
                raise InvariantError(f"{device} is claimed by {claim} in {phase}")
    for job_id, count in counts.items():
        share = server.residents.get(job_id)
        if share != count:
            raise InvariantError(
                f"job {job_id} has {count} devices on {server.server.server_id}, its share is {share}"
            )


def _check_accounts(state: State, server: ServerState) -> None:
    name, spec = server.server.server_id, server.server
    memory_mib, vcores = spec.memory_mib, spec.vcores
    for job_id in server.residents:
        job = state.jobs[job_id]
        for servers in (job.servers, () if job.move is None else job.move.servers):
            for worker, server_id in zip(job.spec.workers, servers, strict=False):
                if server_id == name:
                    memory_mib -= worker.memory_mib
                    vcores -= worker.vcores
    allocated = sum(server.residents.values())
    _demand(server.allocated == allocated, f"server {name}: M", server.allocated, allocated)
    unsliced = sum(
        share for job_id, share in server.residents.items() if not state.jobs[job_id].is_sliced
    )
    _demand(server.unsliced == unsliced, f"server {name}: unsliced", server.unsliced, unsliced)
    found = server.memory_free_mib, server.vcores_free
    _demand(found == (memory_mib, vcores), f"server {name}: free", found, (memory_mib, vcores))
    _demand(
        server.is_overfull or not is_over_height(server, state.height_max),
        f"server {name}",
        f"{allocated} GPUs allocated, {found[0]} MiB and {found[1]} vcores free",
        f"at most {server.room(state.height_max)} GPUs on {spec.gpus}, nothing below 0",
    )
    _demand(
        (server.affinity == 0) == (not server.residents),
        f"server {name}: affinity",
        server.affinity,
        f"the class of one of {list(server.residents)} (G-5)",
    )


def _check_queue(state: State, link: QueueState) -> None:
    if not link.is_overfull and is_over_limit(link, state.height_max):
        raise InvariantError(
            f"queue {link.limit.name}: found {link.running} running and {link.resident} resident GPUs; "
            f"expected at most {link.limit.max_gpus:g}, and × {state.height_max}"
        )


def _check_orders(state: State) -> None:
    jobs = list(state.jobs.values())
    sequences = [job.sequence for job in jobs]
    _demand(sequences == sorted(set(sequences)), "jobs", sequences, "ordered by sequence")
    waiting = [job.spec.job_id for job in jobs if job.phase is JobPhase.QUEUED]
    _demand(state.queue == waiting, "queue", state.queue, waiting)
    expected = [state.jobs[job_id].sequence for job_id in waiting]
    _demand(state.queue_sequences == expected, "queue", state.queue_sequences, expected)
    servers = list(state.servers)
    _demand(servers == sorted(servers), "servers", servers, "ordered by id")
    for server in state.servers.values():
        order = [state.jobs[job_id].sequence for job_id in server.residents]
        _demand(
            order == sorted(order), f"residents of {server.server.server_id}", order, "by sequence"
        )
    for job in jobs:
        if job.shares:
            shares = shares_of(job.spec.workers, job.servers)
            _demand(job.shares == shares, f"job {job.spec.job_id}: shares", job.shares, shares)


def _check_queue_use(state: State) -> None:
    running: defaultdict[QueueState, int] = defaultdict(int)
    resident: defaultdict[QueueState, int] = defaultdict(int)
    unsliced: defaultdict[QueueState, int] = defaultdict(int)
    demand: defaultdict[QueueState, int] = defaultdict(int)
    for server in state.servers.values():
        for users in device_users(state, server):
            for link in {link for user in users for link in user.chain}:
                running[link] += 1
    for job in state.jobs.values():
        _demand(
            job.chain == state.chain(job.spec.queue, job.spec.partition),
            f"job {job.spec.job_id}",
            "a queue",
            "its own, in its partition",
        )
        gpus = sum(job.shares.values())
        for link in job.chain:
            resident[link] += gpus
            unsliced[link] += 0 if job.is_sliced else gpus
            demand[link] += job.spec.gpus
    for link in state.queues.values():
        found = link.running, link.resident, link.unsliced, link.demand
        expected = running[link], resident[link], unsliced[link], demand[link]
        _demand(found == expected, f"queue {link.limit.name}: use", found, expected)


def _check_kinds(state: State) -> None:
    fresh = Alike(state)
    for server_id in state.servers:
        fresh.touch(server_id)
    found, expected = (
        [[view.server.server_id for view in kind] for kind in kinds]
        for kinds in (state.kinds, fresh.groups())
    )
    _demand(found == expected, "kinds of servers", found, expected)


def _check_domains(state: State) -> None:
    fresh = Domains(state)
    for server_id in state.servers:
        found, expected = state.domain(server_id), fresh.of(server_id)
        _demand(found == expected, f"domain of {server_id}", found, expected)
