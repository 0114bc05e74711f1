"""What core and agents say to each other: reports upwards, commands downwards (DESIGN §5; G-92).

One bidirectional stream an agent, which the agent opens. JSON of tagged structs, one a message; a field that is not
known is ignored, so that either side may be newer. Times are seconds since 1970 on the sender's clock; the core never
compares those of two agents. Workers are named by their YARN container ids; `Expected` tells whose they are.

A command has a `message_id` that rises within an `epoch` of the core. An agent carries out each id once, answers a
repeated one with its first answer, and refuses an older epoch: commands are idempotent, and nothing stale is done (I6).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import msgspec

SERVICE = "gandiva.Agents"
METHOD = "Attend"
MESSAGE_BYTES_MAX = 4 * 1024 * 1024


class _Message(msgspec.Struct, frozen=True, tag=True, tag_field="kind", omit_defaults=True):
    pass


# ------------------------------------------------------------------------------ agent to core


class WorkerState(StrEnum):
    """Where one worker is in its life, as its node sees it (G-10, one worker's part)."""

    EXPECTED = "expected"
    """Its container was committed; nothing of it has come up here."""
    WAITING = "waiting"
    """Its launcher is there; no device yet, and no training process."""
    STARTING = "starting"
    RUNNING = "running"
    SUSPENDING = "suspending"
    SUSPENDED = "suspended"
    RESUMING = "resuming"
    UNHOOKED = "unhooked"
    """It runs, and nothing of ours is in it: it holds its devices until it ends."""
    ENDED = "ended"


class Method(StrEnum):
    """A rung of the ladder of suspending (DESIGN §5), best first."""

    FRAMEWORK = "framework"
    DRIVER = "driver"
    CHECKPOINT = "checkpoint"
    STOP = "stop"
    """SIGSTOP only: device memory stays taken, and nobody says that it was freed."""
    NONE = "none"


class Device(msgspec.Struct, frozen=True, omit_defaults=True):
    """One device of a node.

    Attributes:
        index: as bindings name it.
        uuid: the driver's, or the virtual device's own.
        accelerator_type: the product's name.
        is_virtual: a share of this machine's cores that stands for a device (C-8).
        healthy: False from the moment it is lost; `reason` says how.
    """

    index: int
    uuid: str
    accelerator_type: str
    memory_mib: int
    is_virtual: bool = False
    healthy: bool = True
    reason: str = ""
    utilisation_ratio: float | None = None
    memory_used_mib: int | None = None


class WorkerReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """One worker as it is now; None is "not known", never 0.

    Attributes:
        method: the best rung that works for it; None before the probe.
        can_pack, can_move, can_resize: what its client can do besides; `reason` says why not.
        minibatches: mini-batches done, over all its lives here.
        minibatch_s: median of the last cycles (G-51).
        memory_mib: device memory in use now; peak and minimum over the last cycles (G-41).
        packed_with: containers that run on its devices with it.
        minibatch_alone_s: as it last was without anybody beside it (G-52).
        minibatch_packed_s: beside those of `packed_with`, once measured (G-53).
    """

    container_id: str
    state: WorkerState
    gpus: tuple[int, ...] = ()
    method: Method | None = None
    can_pack: bool = False
    can_move: bool = False
    can_resize: bool = False
    reason: str = ""
    minibatches: int = 0
    minibatch_s: float | None = None
    utilisation_ratio: float | None = None
    memory_mib: int | None = None
    memory_peak_mib: int | None = None
    memory_min_mib: int | None = None
    host_memory_mib: int | None = None
    packed_with: tuple[str, ...] = ()
    minibatch_alone_s: float | None = None
    minibatch_packed_s: float | None = None


class AgentHello(_Message, frozen=True, tag=True):
    """The first message of a stream.

    Attributes:
        node: the NodeManager's id, host:port; the core's `ServerId`.
        session: drawn when the agent started; another one means that it was restarted.
        can_suspend: it can stop jobs that register; where False, its node is never over-subscribed.
        isolation: ``cgroup`` or ``bound``: "bound, not isolated" is said to users (DESIGN §4).
        epoch, last_message_id: of the last command it carried out; 0 before the first.
        ram_dir: where states of moves go; the same folder on all nodes between which jobs move.
    """

    node: str
    session: str
    version: str
    devices: tuple[Device, ...]
    can_suspend: bool
    workers: tuple[WorkerReport, ...] = ()
    isolation: str = "bound"
    host_memory_mib: int = 0
    epoch: int = 0
    last_message_id: int = 0
    ram_dir: str = ""


class Measured(_Message, frozen=True, tag=True):
    """Sent every `Welcome.report_s`, and at once where a state or a device changed."""

    at_s: float
    devices: tuple[Device, ...]
    workers: tuple[WorkerReport, ...]


class Failure(msgspec.Struct, frozen=True, array_like=True):
    """Why a worker did not do what it was told: a code (G-12, FAULTS A8) and a sentence."""

    container_id: str
    code: str
    detail: str = ""


class Switched(_Message, frozen=True, tag=True):
    """Answer to `SwitchWorkers`, as often as something of it came true; a worker is named once.

    Attributes:
        stopped, started: (container id, when), in force from then on.
        failed: stays as it was: a worker that cannot stop is running (UNCOOPERATIVE), never killed for it.
    """

    message_id: int
    switch_id: int
    stopped: tuple[tuple[str, float], ...] = ()
    started: tuple[tuple[str, float], ...] = ()
    failed: tuple[Failure, ...] = ()


class Answered(_Message, frozen=True, tag=True):
    """Answer to every other command.

    Attributes:
        code: ``OK``, or why not.
        figures: what was measured on the way, such as ``save_s`` and ``frozen_s`` (G-75).
    """

    message_id: int
    code: str = "OK"
    detail: str = ""
    figures: Mapping[str, float] = {}


class WorkerEnded(_Message, frozen=True, tag=True):
    """The training process ended by itself, or was lost."""

    container_id: str
    at_s: float
    exit_code: int | None
    reason: str = ""


class ContinuityChecked(_Message, frozen=True, tag=True):
    """What a client found after a suspend, move or resize: the job goes on where it was, or does not."""

    container_id: str
    at_s: float
    after: str
    is_same: bool
    minibatches: int
    detail: str = ""


class DeviceLost(_Message, frozen=True, tag=True):
    """A device left for good: lost by NVML, a fatal XID, an uncorrectable ECC error, or a holder that stays."""

    at_s: float
    index: int
    reason: str


Report = AgentHello | Measured | Switched | Answered | WorkerEnded | ContinuityChecked | DeviceLost

# ------------------------------------------------------------------------------ core to agent


class Welcome(_Message, frozen=True, tag=True):
    """Answer to the hello.

    Attributes:
        report_s: between two `Measured`.
        quantum_s: Q, for the rotation while the core is silent.
        silent_s: without a word for so long, an agent rotates its residents by its own table (DESIGN §4).
    """

    epoch: int
    report_s: float
    quantum_s: float
    silent_s: float


class Expected(msgspec.Struct, frozen=True, omit_defaults=True):
    """A worker that is committed to this node.

    Attributes:
        rank: its place in the gang, from 0, of `workers`.
        never: what its owner or its queue forbids: ``suspend``, ``pack``, ``migrate``, ``resize``.
        with_other_users: its queue allows it to be packed with another user's workers.
    """

    container_id: str
    job_id: str
    gpus: int
    rank: int = 0
    workers: int = 1
    user: str = ""
    queue: str = ""
    never: tuple[str, ...] = ()
    with_other_users: bool = False


class Expect(_Message, frozen=True, tag=True):
    """All workers of this node as the core knows them; whoever is not among them is nobody's, and gets no device."""

    epoch: int
    message_id: int
    workers: tuple[Expected, ...]


class RunWorker(msgspec.Struct, frozen=True, array_like=True):
    """A worker and the devices it shall have.

    Attributes:
        packed_with: all container ids that run on the same devices at the same time (G-56); empty for exclusive.
            An agent refuses by name what must not be: DEVICE_BUSY (somebody holds one who is not named), USERS,
            FORBIDDEN (an owner or a queue forbids to pack), GPUS (not all devices the same), MEMORY (peaks do not fit,
            or one is not known).
    """

    container_id: str
    gpus: tuple[int, ...]
    packed_with: tuple[str, ...] = ()


class SwitchWorkers(_Message, frozen=True, tag=True):
    """Stop and start workers of this node. Answered by `Switched`.

    A device changes hands only once who held it has stopped.
    A worker that never ran starts its training process. `limit_s` is until a stop counts as failed (G-12).
    """

    epoch: int
    message_id: int
    switch_id: int
    suspend: tuple[str, ...] = ()
    run: tuple[RunWorker, ...] = ()
    limit_s: float = 30.0


class RotationTable(_Message, frozen=True, tag=True):
    """Who runs in which quantum while the core is silent: one entry a quantum, in turn; replaces the one before.

    Attributes:
        leads: this node gives the time for the other nodes of its slicing domain.
    """

    epoch: int
    message_id: int
    quanta: tuple[tuple[RunWorker, ...], ...]
    leads: bool = True


class PrepareMove(_Message, frozen=True, tag=True):
    """To the destination: a worker comes here; warm up for it. Answered when ready (G-69)."""

    epoch: int
    message_id: int
    move_id: int
    worker: Expected
    gpus: tuple[int, ...]
    from_container_id: str = ""


class SaveState(_Message, frozen=True, tag=True):
    """To the source: stop at the boundary and save; answered with the step, sizes, times and the manifest's place."""

    epoch: int
    message_id: int
    move_id: int
    container_id: str
    folder: str


class RestoreState(_Message, frozen=True, tag=True):
    """To the destination: load what was saved and do the first mini-batch; answered when it is done."""

    epoch: int
    message_id: int
    move_id: int
    container_id: str
    folder: str


class EndMove(_Message, frozen=True, tag=True):
    """To both: done, and the source lets go; or aborted, and the source goes on where it stopped."""

    epoch: int
    message_id: int
    move_id: int
    container_id: str
    is_done: bool


Command = (
    Welcome
    | Expect
    | SwitchWorkers
    | RotationTable
    | PrepareMove
    | SaveState
    | RestoreState
    | EndMove
)

decode_report = msgspec.json.Decoder(Report).decode
decode_command = msgspec.json.Decoder(Command).decode
encode = msgspec.json.Encoder().encode
