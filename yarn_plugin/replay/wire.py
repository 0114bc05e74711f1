"""The replay harness's JSON as types: actions of a step, and the events it answers (docs/BRIDGE.md)."""

from __future__ import annotations

from typing import Literal

import msgspec

from yarn_plugin.bridge.wire import ANY


class _Action(msgspec.Struct, frozen=True, tag_field="do", kw_only=True):
    pass


class AddNode(_Action, frozen=True, kw_only=True, tag="add_node"):
    """A NodeManager registers."""

    host: str
    port: int = 1
    rack: str = "/default-rack"
    memory_mib: int
    vcores: int
    gpus: int = 0
    label: str = ""


class RemoveNode(_Action, frozen=True, tag="remove_node"):
    """A NodeManager is lost."""

    host: str


class AskLine(msgspec.Struct, frozen=True, kw_only=True):
    """One line of an AM's ask; `count` replaces what was asked under the key before."""

    priority: int
    count: int
    memory_mib: int
    vcores: int
    gpus: int
    resource_name: str = ANY
    relax_locality: bool = True
    allocation_request_id: int = 0
    label: str = ""


class Submit(_Action, frozen=True, tag="submit"):
    """A user submits an application."""

    key: str
    name: str
    queue: str
    user: str
    tags: tuple[str, ...]
    am_memory_mib: int
    am_vcores: int
    priority: int = 0
    am_gpus: int = 0


class Ask(_Action, frozen=True, tag="ask"):
    """An AM heartbeat with asks; kept until the AM runs."""

    key: str
    asks: tuple[AskLine, ...]


class BeatAll(_Action, frozen=True, tag="beat_all"):
    """AM heartbeats without news, in this order."""

    keys: tuple[str, ...]


class Finish(_Action, frozen=True, tag="finish"):
    """The workers end, then the AM."""

    key: str
    status: Literal["SUCCEEDED", "FAILED", "KILLED"] = "SUCCEEDED"


class Release(_Action, frozen=True, tag="release"):
    """The AM gives containers back."""

    key: str
    containers: tuple[str, ...]


class Kill(_Action, frozen=True, tag="kill"):
    """The user kills an application."""

    key: str


class EditSchedule(_Action, frozen=True, tag="edit_schedule"):
    """The preemption monitor runs once."""


Action = AddNode | RemoveNode | Submit | Ask | BeatAll | Finish | Release | Kill | EditSchedule


class Placed(msgspec.Struct, frozen=True):
    """A container that an AM was given."""

    container: str
    node: str
    memory_mib: int
    vcores: int
    gpus: int
    priority: int
    allocation_request_id: int = 0

    @property
    def host(self) -> str:
        """The node without its port."""
        return self.node.rpartition(":")[0]


class Ended(msgspec.Struct, frozen=True):
    """A container that is gone."""

    container: str
    exit_status: int
    node: str | None = None
    diagnostics: str = ""


class _KeyEvent(msgspec.Struct, frozen=True, tag_field="kind"):
    key: str


class AppAccepted(_KeyEvent, frozen=True, tag="app_accepted"):
    """The ResourceManager took an application."""

    app: str


class AppRejected(_KeyEvent, frozen=True, tag="app_rejected"):
    """It did not."""

    diagnostics: str = ""


class AmStarted(_KeyEvent, frozen=True, tag="am_started"):
    """An AM registered."""

    app: str
    attempt: str
    node: str


class AmWaiting(_KeyEvent, frozen=True, tag="am_waiting"):
    """An AM got no container of its own: AM_LIMIT or NO_ROOM."""

    reason: str


class AskRefused(_KeyEvent, frozen=True, tag="ask_refused"):
    """The ResourceManager took an AM's ask for a mistake, as one larger than any node."""

    diagnostics: str = ""


class Allocated(_KeyEvent, frozen=True, tag="allocated"):
    """What an AM heartbeat brought."""

    containers: tuple[Placed, ...]


class Completed(_KeyEvent, frozen=True, tag="completed"):
    """Containers ended."""

    containers: tuple[Ended, ...]


class Preempted(_KeyEvent, frozen=True, tag="preempted"):
    """Containers were taken away for another queue."""

    containers: tuple[Ended, ...]


class AppFinished(_KeyEvent, frozen=True, tag="app_finished"):
    """An application ended."""

    state: str = ""
    rm_state: str = ""


HarnessEvent = (
    AppAccepted
    | AppRejected
    | AmStarted
    | AmWaiting
    | AskRefused
    | Allocated
    | Completed
    | Preempted
    | AppFinished
)


class Started(msgspec.Struct, frozen=True):
    """What was started."""

    scheduler_class: str
    hadoop_version: str
    java_version: str = ""
    cluster_timestamp: int = 0
