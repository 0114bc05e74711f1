"""What the gateway's JSON looks like, as types: events of the ResourceManager, orders to it, answers from it.

The names are the wire's (docs/BRIDGE.md). Unknown fields are ignored, so that an older core reads a newer plug-in.
"""

from __future__ import annotations

import msgspec

from gandiva_core.model.errors import InputError

ANY = "*"
"""The resource name that stands for the whole cluster; its entry carries an ask's full count."""


class Ask(msgspec.Struct, frozen=True):
    """One line of an application's ask table: `count` containers of one size, at one place.

    `is_master` for the container of its application master, which is asked for by nobody but the ResourceManager.
    """

    priority: int
    count: int
    memory_mib: int
    vcores: int
    gpus: int
    allocation_request_id: int = -1
    resource_name: str = ANY
    relax_locality: bool = True
    label: str = ""
    execution_type: str = "GUARANTEED"
    is_master: bool = False


class LiveContainer(msgspec.Struct, frozen=True):
    """A GPU container that exists, in a resync."""

    container: str
    node: str
    priority: int = 0
    allocation_request_id: int = -1
    memory_mib: int = 0
    vcores: int = 0
    gpus: int = 1
    is_master: bool = False


class Limit(msgspec.Struct, frozen=True):
    """A queue's limits in one partition: ratios of the partition's physical GPUs, or GPUs themselves."""

    queue: str
    parent: str = ""
    partition: str = ""
    ordering: str = "fifo"
    guaranteed_ratio: float = 0.0
    guaranteed_gpus: float | None = None
    max_ratio: float = 1.0
    max_gpus: float | None = None
    mechanisms_off: tuple[str, ...] = ()


class Adoption(msgspec.Struct, frozen=True):
    """What the site lets the core decide, and its queue tree's limits.

    Attributes:
        mode: ``observe``, ``place`` or ``full``.
        adopted_queues: paths of the leaf queues that are adopted.
        adopted_partitions: names of the partitions that are; the empty name is the default one.
    """

    mode: str
    adopted_queues: tuple[str, ...] = ()
    adopted_partitions: tuple[str, ...] = ()
    height_max: int = 1
    limits: tuple[Limit, ...] = ()


class _Event(msgspec.Struct, frozen=True, tag_field="kind"):
    at_ms: int = 0
    seq: int = 0


class NodeAdded(_Event, frozen=True, kw_only=True, tag="node_added"):
    """A NodeManager registered; `gpus` are physical."""

    node: str
    memory_mib: int
    vcores: int
    gpus: int
    rack: str = ""
    partition: str = ""
    schedulable_gpus: int = 0


class NodeRemoved(_Event, frozen=True, kw_only=True, tag="node_removed"):
    """A NodeManager is gone, lost or decommissioned."""

    node: str


class NodeUpdated(_Event, frozen=True, kw_only=True, tag="node_updated"):
    """A node's size, state or partition changed."""

    node: str
    memory_mib: int
    vcores: int
    gpus: int
    rack: str = ""
    partition: str | None = None
    schedulable_gpus: int = 0
    state: str = "RUNNING"


class AppAdded(_Event, frozen=True, kw_only=True, tag="app_added"):
    """An application attempt can ask from now on."""

    app: str
    attempt: str
    queue: str
    user: str = ""
    name: str = ""
    tags: tuple[str, ...] = ()
    priority: int = 0
    type: str = ""


class AppRemoved(_Event, frozen=True, kw_only=True, tag="app_removed"):
    """An application ended."""

    app: str
    attempt: str = ""
    final_state: str = ""


class Asks(_Event, frozen=True, kw_only=True, tag="asks"):
    """The whole table of an attempt's GPU asks, sent when it changed."""

    app: str
    attempt: str
    asks: tuple[Ask, ...]
    blacklist: tuple[str, ...] = ()
    heartbeat: int = 0
    app_priority: int | None = None


class AsksUnchanged(_Event, frozen=True, kw_only=True, tag="asks_unchanged"):
    """The AM's next heartbeat after a change brought no further one."""

    app: str
    attempt: str


class ContainerCompleted(_Event, frozen=True, kw_only=True, tag="container_completed"):
    """A GPU container is gone; `exit_status` is YARN's."""

    app: str
    container: str
    node: str = ""
    exit_status: int = 0


class AppMoved(_Event, frozen=True, kw_only=True, tag="app_moved"):
    """An application went to another queue."""

    app: str
    queue: str


class ContainerFound(_Event, frozen=True, kw_only=True):
    """A GPU container that the core did not order; never sent as such."""

    app: str
    container: str
    node: str
    attempt: str = ""
    priority: int = 0
    allocation_request_id: int = -1
    memory_mib: int = 0
    vcores: int = 0
    gpus: int = 1
    label: str = ""
    is_master: bool = False


class ContainerAllocated(ContainerFound, frozen=True, kw_only=True, tag="container_allocated"):
    """Stock code created a GPU container: an ask was served."""


class ContainerRecovered(ContainerFound, frozen=True, kw_only=True, tag="container_recovered"):
    """A node brought a GPU container with it, after a restart of the ResourceManager; no ask was served."""


class Settings(_Event, frozen=True, kw_only=True, tag="settings"):
    """The ResourceManager took a new configuration; fields as in `Adoption`."""

    mode: str
    adopted_queues: tuple[str, ...] = ()
    adopted_partitions: tuple[str, ...] = ()
    height_max: int = 1
    limits: tuple[Limit, ...] = ()

    @property
    def adoption(self) -> Adoption:
        """Without the event around it."""
        return Adoption(
            self.mode, self.adopted_queues, self.adopted_partitions, self.height_max, self.limits
        )


class ReclaimAsked(_Event, frozen=True, kw_only=True, tag="reclaim_asked"):
    """The preemption monitor wants this container; nothing is killed. `reason` is the monitor's event."""

    app: str
    container: str
    attempt: str = ""
    node: str = ""
    gpus: int = 1
    reason: str = ""


class ForeignGpuRefused(_Event, frozen=True, kw_only=True, tag="foreign_gpu_refused"):
    """The guard refused GPU containers that the core had not ordered; `count` since the start."""

    app: str
    count: int


class ResyncApp(msgspec.Struct, frozen=True):
    """One application of a resync: what `AppAdded` and `Asks` say, and its live GPU containers."""

    app: str
    attempt: str
    queue: str
    user: str = ""
    name: str = ""
    tags: tuple[str, ...] = ()
    priority: int = 0
    type: str = ""
    asks: tuple[Ask, ...] = ()
    containers: tuple[LiveContainer, ...] = ()

    @property
    def added(self) -> AppAdded:
        """What `AppAdded` says."""
        return AppAdded(
            app=self.app,
            attempt=self.attempt,
            queue=self.queue,
            user=self.user,
            name=self.name,
            tags=self.tags,
            priority=self.priority,
            type=self.type,
        )


class ResyncNode(msgspec.Struct, frozen=True):
    """One node of a resync."""

    node: str
    memory_mib: int
    vcores: int
    gpus: int
    rack: str = ""
    partition: str = ""
    schedulable_gpus: int = 0
    state: str = "RUNNING"


class Resync(_Event, frozen=True, kw_only=True, tag="resync"):
    """One part of a whole snapshot; nothing said before it counts once the last part is there."""

    part: int
    parts: int
    nodes: tuple[ResyncNode, ...] = ()
    apps: tuple[ResyncApp, ...] = ()
    settings: Adoption | None = None


RmEvent = (
    NodeAdded
    | NodeRemoved
    | NodeUpdated
    | AppAdded
    | AppRemoved
    | Asks
    | AsksUnchanged
    | ContainerCompleted
    | AppMoved
    | ContainerAllocated
    | ContainerRecovered
    | Settings
    | ReclaimAsked
    | ForeignGpuRefused
    | Resync
)


class Batch(msgspec.Struct, frozen=True):
    """The answer to one `takeEvents`."""

    epoch: int = 0
    first_seq: int = 0
    events: tuple[RmEvent, ...] = ()
    more: bool = False


class ContainerOrder(msgspec.Struct, frozen=True):
    """One container to create: where, and which ask it serves."""

    node: str
    priority: int
    allocation_request_id: int
    memory_mib: int
    vcores: int
    gpus: int


class CommitOrder(msgspec.Struct, frozen=True, tag_field="op", tag="commit_gang"):
    """Create all of these containers, or none."""

    id: str
    attempt: str
    containers: tuple[ContainerOrder, ...]


class ReleaseOrder(msgspec.Struct, frozen=True, tag_field="op", tag="release_gang"):
    """Give these containers back."""

    id: str
    attempt: str
    containers: tuple[str, ...]


class HeightOrder(msgspec.Struct, frozen=True, tag_field="op", tag="set_height"):
    """Over-subscribe a node up to this height from now on; 1 is not at all."""

    id: str
    node: str
    height: int


class MoveOrder(msgspec.Struct, frozen=True, tag_field="op", tag="ask_move"):
    """Tell a container's master to ask for one like it on a node, under this id (SPEC G-69)."""

    id: str
    container: str
    node: str
    allocation_request_id: int


class ResizeOrder(msgspec.Struct, frozen=True, tag_field="op", tag="ask_resize"):
    """Tell a container's master that its gang shall have so many workers; added ones on this node, under this id."""

    id: str
    container: str
    node: str
    workers: int
    allocation_request_id: int


class LetGoOrder(msgspec.Struct, frozen=True, tag_field="op", tag="let_go"):
    """Tell a container's master that it is not needed any more."""

    id: str
    container: str


class ExplainOrder(msgspec.Struct, frozen=True, tag_field="op", tag="explain"):
    """Say in an application's diagnostics why it waits; no text clears it."""

    id: str
    app: str
    text: str


Order = CommitOrder | ReleaseOrder | MoveOrder | LetGoOrder
"""Orders about containers."""


class AgentReported(msgspec.Struct, frozen=True, tag_field="op", tag="agent_reported"):
    """A node's agent has told who holds which device there: what was recovered need not be waited for any longer."""

    id: str
    node: str


Notice = HeightOrder | ExplainOrder | ResizeOrder | AgentReported
"""Orders that create and end nothing."""


class Answer(msgspec.Struct, frozen=True):
    """What became of one order. `code` is OK or one of DESIGN §4's refusals; `containers` in the order's order."""

    id: str
    code: str
    detail: str = ""
    containers: tuple[str, ...] = ()
    index: int = -1


_BATCH = msgspec.json.Decoder(Batch)


def decode_batch(data: str | bytes) -> Batch:
    """Read the answer to `takeEvents`.

    Raises:
        InputError: where it is none of this version.
    """
    try:
        return _BATCH.decode(data)
    except msgspec.DecodeError as error:
        raise InputError("gateway: takeEvents", str(error), "a batch of events") from error
