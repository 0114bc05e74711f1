"""What people ask of a running core, and what it answers: `gandiva job` and `gandiva node` (DESIGN §10)."""

from __future__ import annotations

import msgspec

from gandiva_core.messages.agents import WorkerReport
from gandiva_core.model.units import JobId, ServerId

METHOD = "Operate"
"""Of the service that agents use too: one request, one reply."""

REQUEST_BYTES_MAX = 16 * 1024


class _Operation(msgspec.Struct, frozen=True, tag=True, tag_field="kind", omit_defaults=True):
    pass


class ShowJobs(_Operation, frozen=True, tag=True):
    """Jobs that the caller may see.

    Attributes:
        name: a job or an application; empty for all.
    """

    name: str = ""


class HoldJobs(_Operation, frozen=True, tag=True):
    """Suspend a job, or all jobs of an application, until they are released."""

    name: str


class ReleaseJobs(_Operation, frozen=True, tag=True):
    """Let held jobs run again."""

    name: str


class MigrateJobs(_Operation, frozen=True, tag=True):
    """Let a job, or all jobs of an application, go on elsewhere as soon as there is room (G-69).

    Attributes:
        node: where to; empty for anywhere else.
    """

    name: str
    node: str = ""


class ResizeJob(_Operation, frozen=True, tag=True):
    """Let a job go on with another number of devices, on its own server (G-80 … G-84).

    Answered at once; `JobLine.resizing` says what comes of it.
    """

    name: str
    gpus: int


class ShowNodes(_Operation, frozen=True, tag=True):
    """Servers and their agents; for administrators."""


class DrainNode(_Operation, frozen=True, tag=True):
    """Let nobody new come to a server, or let them come again; for administrators."""

    node: str
    is_draining: bool


Operation = ShowJobs | HoldJobs | ReleaseJobs | MigrateJobs | ResizeJob | ShowNodes | DrainNode


class JobLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """One job.

    Attributes:
        devices: as ``server/index``: held or promised, of a suspended job the last ones.
        unsuspendable: why it is not suspended for others; empty where it is.
        fixed: why it is not moved; empty where it may be.
        resizing: what is under way, or why the last resize came to nothing.
        is_resizing: whether it is under way.
        ran_s: wall time that it held its devices.
        workers: what its nodes' agents last said of it.
    """

    job_id: JobId
    application: str
    name: str
    user: str
    queue: str
    phase: str
    gpus: int
    servers: tuple[ServerId, ...] = ()
    devices: tuple[str, ...] = ()
    is_held: bool = False
    unsuspendable: str = ""
    fixed: str = ""
    resizing: str = ""
    is_resizing: bool = False
    ran_s: float = 0.0
    workers: tuple[WorkerReport, ...] = ()


class NodeLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """One server.

    Attributes:
        agent: ``there``, ``gone`` or ``none``.
        running: devices in use.
        residents: jobs there, running or suspended.
    """

    node: ServerId
    gpus: int
    running: int
    residents: tuple[JobId, ...] = ()
    agent: str = "none"
    can_suspend: bool = False
    is_draining: bool = False


class Jobs(_Operation, frozen=True, tag=True):
    """Answer to `ShowJobs`, and to the orders about jobs: those that it is about, as they were."""

    jobs: tuple[JobLine, ...]


class Nodes(_Operation, frozen=True, tag=True):
    """Answer to `ShowNodes` and `DrainNode`."""

    nodes: tuple[NodeLine, ...]


class Refused(_Operation, frozen=True, tag=True):
    """It is not done.

    Attributes:
        code: ``UNKNOWN``, ``FORBIDDEN`` or ``UNABLE``.
    """

    code: str
    detail: str


OperationReply = Jobs | Nodes | Refused

decode_operation = msgspec.json.Decoder(Operation).decode
decode_reply = msgspec.json.Decoder(OperationReply).decode
