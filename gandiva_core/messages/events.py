"""Facts, in the past tense, each with the time it became true. The only way anything enters the engine."""

from __future__ import annotations

import msgspec

from gandiva_core.model.cluster import QueueLimit, Server
from gandiva_core.model.job import JobSpec
from gandiva_core.model.units import JobId, QueueName, ServerId


class _Event(msgspec.Struct, frozen=True, tag=True, tag_field="kind", omit_defaults=True):
    at_s: float


class ServerJoined(_Event, frozen=True, tag=True):
    """A server can host jobs from now on; also a server that came back."""

    server: Server


class ServerLost(_Event, frozen=True, tag=True):
    """A server and everything on it is gone; jobs with a share there restart elsewhere (G-13)."""

    server_id: ServerId
    reason: str = ""


class QueuesConfigured(_Event, frozen=True, tag=True):
    """The whole queue tree's limits; replaces what was known."""

    queues: tuple[QueueLimit, ...]


class JobSubmitted(_Event, frozen=True, tag=True):
    """A gang's asks are complete."""

    job: JobSpec


class JobMoved(_Event, frozen=True, tag=True):
    """A job went to another queue."""

    job_id: JobId
    queue: QueueName


class GangCommitted(_Event, frozen=True, tag=True):
    """All containers of the gang exist; one id a worker, in rank order.

    Servers are named, one a worker, by substrates that chose them themselves (stock arms).
    """

    job_id: JobId
    containers: tuple[str, ...]
    servers: tuple[ServerId, ...] = ()


class JobAdopted(_Event, frozen=True, tag=True):
    """A gang that is resident already and that this engine did not place: after a restart, or placed by stock code.

    It becomes resident as it is, whatever heights and limits say; nothing is ordered for it. Answered by nothing.

    Ignored where it comes too late: the job is resident or has ended, or a server is not known.

    Attributes:
        job: as in `JobSubmitted`. A job that waits becomes resident under its own sequence; of one that is being
            committed, the pending answer no longer matters.
        containers: one id a worker, in rank order.
        servers: one a worker, in rank order; all of them have joined. A gang with a larger share of a server than
            this has devices keeps its place and never runs: what may run apart is to be adopted apart.
    """

    job: JobSpec
    containers: tuple[str, ...]
    servers: tuple[ServerId, ...]


class ReclaimAsked(_Event, frozen=True, tag=True):
    """The stock preemption monitor would have killed containers of this job: its queue is above what others are owed.

    Nothing is killed; it asks for `gpus` of running time to be given back by suspending.
    """

    job_id: JobId
    gpus: int


class GangRefused(_Event, frozen=True, tag=True):
    """The substrate could not commit; nothing of the gang exists. `code` is one of DESIGN §4's answers."""

    job_id: JobId
    code: str
    detail: str = ""


class GangBroken(_Event, frozen=True, tag=True):
    """A worker of a live gang was lost, or the substrate took it away.

    The job restarts from its last checkpoint (G-13).
    """

    job_id: JobId
    reason: str = ""


class GangResized(_Event, frozen=True, tag=True):
    """A gang goes on with other workers (G-80 … G-84): it runs, or it waits after a worker was lost.

    Attributes:
        workers: which of its workers stay, by their place before; the others have left, and their devices are free.
        joined: jobs that run, whose workers come behind them, with the devices that they hold; these jobs end by it.
    """

    job_id: JobId
    workers: tuple[int, ...]
    joined: tuple[JobId, ...] = ()


class ResidentsSwitched(_Event, frozen=True, tag=True):
    """Answer to `SwitchResidents`: who really stopped and started, and when. Jobs not named are still on their way.

    Each entry is (job, time in s). A later message with the same `switch_id` may name the rest.
    """

    switch_id: int
    stopped: tuple[tuple[JobId, float], ...] = ()
    started: tuple[tuple[JobId, float], ...] = ()


class SwitchFailed(_Event, frozen=True, tag=True):
    """Part of the answer to `SwitchResidents`: what could not be done; nobody was killed for it (G-12).

    Attributes:
        kept: jobs that did not stop: they run on, on their devices, and who was promised those gets others later.
        not_started: jobs that did not start; they are as they were.
    """

    switch_id: int
    kept: tuple[JobId, ...] = ()
    not_started: tuple[JobId, ...] = ()
    reason: str = ""


class JobLearned(_Event, frozen=True, tag=True):
    """What a job's client, or the lack of one, shows that it can do (DESIGN §5).

    Before it a job counts as able to stop.

    Attributes:
        reason: why it cannot be suspended.
        fixed: why it cannot move; empty where it can, or as long as nobody knows.
    """

    job_id: JobId
    can_suspend: bool
    reason: str = ""
    fixed: str = ""


class JobProfiled(_Event, frozen=True, tag=True):
    """What a job's client or its node measured of it, over the last cycles (G-41, G-51); None is "not known".

    Attributes:
        utilisation_ratio: of its devices, 0 to 1.
        memory_peak_mib, memory_min_mib: of one device, over a mini-batch.
    """

    job_id: JobId
    minibatch_s: float | None = None
    utilisation_ratio: float | None = None
    memory_peak_mib: int | None = None
    memory_min_mib: int | None = None


class JobHeld(_Event, frozen=True, tag=True):
    """Its owner or an administrator suspended a job: it does not run, and keeps its place, until it is released."""

    job_id: JobId
    by: str = ""


class JobReleased(_Event, frozen=True, tag=True):
    """A held job may run again."""

    job_id: JobId
    by: str = ""


class MoveAsked(_Event, frozen=True, tag=True):
    """Its owner or an administrator wants a job to run elsewhere.

    Attributes:
        servers: one a worker, in rank order; empty for wherever there is room.
    """

    job_id: JobId
    servers: tuple[ServerId, ...] = ()
    by: str = ""


class MoveCommitted(_Event, frozen=True, tag=True):
    """Answer to `OpenMove`: the new containers exist; one id a worker, in rank order."""

    move_id: int
    job_id: JobId
    containers: tuple[str, ...]


class GangMoved(_Event, frozen=True, tag=True):
    """Answer to `CarryOver`: the gang has done a mini-batch in its new containers, and none in the old ones since.

    Attributes:
        frozen_s: from its last mini-batch there to its first here.
        figures: what was measured on the way: (name, value in the unit that the name ends in) (G-75).
    """

    move_id: int
    job_id: JobId
    frozen_s: float
    figures: tuple[tuple[str, float], ...] = ()


class MoveFailed(_Event, frozen=True, tag=True):
    """A move came to nothing, at whatever stage: the gang goes on where it is (G-13)."""

    move_id: int
    job_id: JobId
    code: str
    detail: str = ""


class ContinuityChecked(_Event, frozen=True, tag=True):
    """After a suspend, a move or a resize, a job's client compared where it stands with what it recorded before.

    Attributes:
        after: ``suspend``, ``move`` or ``resize``.
        is_same: step, data position, random generators and parameters are as before.
        minibatches: done by then.
    """

    job_id: JobId
    container: str
    after: str
    is_same: bool
    minibatches: int
    detail: str = ""


class TimerFired(_Event, frozen=True, tag=True):
    """Answer to `StartTimer`."""

    key: str


class MinibatchesReached(_Event, frozen=True, tag=True):
    """A job's client reports a milestone in mini-batches; 100 is the early-feedback mark (C-4)."""

    job_id: JobId
    minibatches: int


class JobFinished(_Event, frozen=True, tag=True):
    """A job ended well and left its containers."""

    job_id: JobId


class JobFailed(_Event, frozen=True, tag=True):
    """A job ended badly and left its containers."""

    job_id: JobId
    reason: str = ""


class JobKilled(_Event, frozen=True, tag=True):
    """A job was ended by its owner or by early stopping."""

    job_id: JobId


class ContainersHeld(_Event, frozen=True, tag=True):
    """A stock arm's job holds part of its gang and waits for the rest (hold and wait). In GPUs."""

    job_id: JobId
    held: int
    wanted: int


class AmWaited(_Event, frozen=True, tag=True):
    """A job's application master is not activated: the queue's AM limit is used up."""

    job_id: JobId
    reason: str = ""


Event = (
    ServerJoined
    | ServerLost
    | QueuesConfigured
    | JobSubmitted
    | JobMoved
    | GangCommitted
    | JobAdopted
    | ReclaimAsked
    | GangRefused
    | GangBroken
    | GangResized
    | ResidentsSwitched
    | SwitchFailed
    | JobLearned
    | JobProfiled
    | JobHeld
    | JobReleased
    | MoveAsked
    | MoveCommitted
    | GangMoved
    | MoveFailed
    | ContinuityChecked
    | TimerFired
    | MinibatchesReached
    | JobFinished
    | JobFailed
    | JobKilled
    | ContainersHeld
    | AmWaited
)
