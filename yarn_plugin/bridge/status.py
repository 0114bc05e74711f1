"""What a ResourceManager shows of Gandiva: its REST interface and the plug-in's bean under `/jmx`."""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from gandiva_core.model.errors import GandivaError
from gandiva_core.site.http import HttpError

BEAN_PAGE = "/jmx?qry=Hadoop:service=ResourceManager,name=Gandiva"
CONNECTED = "CONNECTED"
NEVER_SEEN = "NEVER_SEEN"


class RmUnreachableError(GandivaError):
    """No ResourceManager answers there, or something else does."""


class Session(Protocol):
    """What is used of `HttpSession`."""

    def get_json(self, url: str) -> Any:
        """What is at `url`, decoded; raises `HttpError`."""


class Count(msgspec.Struct, frozen=True):
    """An entry of a map, as `/jmx` writes it."""

    key: str
    value: int


class Bean(msgspec.Struct, frozen=True, rename="pascal"):
    """`GandivaMXBean`; counts are since the ResourceManager's start, flags 0 or 1.

    Attributes:
        core_state: NEVER_SEEN, CONNECTED or SILENT.
        core_state_ms: for how long; a silence begins at the last call.
        core_epoch: of the session; each hello begins another.
        core_down_reason: why the managed core is not started for now; empty where it is.
        nodes_by_height: nodes with GPUs by how many containers may share a device.
    """

    mode: str
    core_state: str
    core_state_ms: int
    core_epoch: int
    core_managed: int
    core_restarts: int
    core_down_alarm: int
    core_down_reason: str
    breaker_opens: int
    fallback: str
    fallback_engaged: int
    own_errors: int
    commits_ok: int
    garbage_refused: int
    foreign_gpus_refused: int
    preemptions_reclaimed: int
    events_queued: int
    queue_overflows: int
    effects_done: tuple[Count, ...] = ()
    effects_refused: tuple[Count, ...] = ()
    requests_refused: tuple[Count, ...] = ()
    nodes_by_height: tuple[Count, ...] = ()

    @property
    def is_well(self) -> bool:
        """Whether the core is there, and nothing gives an alarm."""
        return self.core_state == CONNECTED and not self.core_down_alarm


class RmStatus(msgspec.Struct, frozen=True):
    """A ResourceManager; `bean` is None where its scheduler is not Gandiva's, or has not started."""

    state: str
    hadoop_version: str
    nodes_active: int
    nodes_lost: int
    apps_running: int
    apps_pending: int
    bean: Bean | None


def ask(rm: str, session: Session) -> RmStatus:
    """Ask a ResourceManager.

    Args:
        rm: its address, ``http://host:port``.
        session: with time-outs.

    Raises:
        RmUnreachableError: it does not answer, or not as a ResourceManager does.
    """
    base = f"{rm}/ws/v1/cluster"
    try:
        info = session.get_json(f"{base}/info")["clusterInfo"]
        metrics = session.get_json(f"{base}/metrics")["clusterMetrics"]
        beans = session.get_json(f"{rm}{BEAN_PAGE}")["beans"]
        return RmStatus(
            state=str(info["state"]),
            hadoop_version=str(info["hadoopVersion"]),
            nodes_active=int(metrics["activeNodes"]),
            nodes_lost=int(metrics["lostNodes"]),
            apps_running=int(metrics["appsRunning"]),
            apps_pending=int(metrics["appsPending"]),
            bean=msgspec.convert(beans[0], Bean) if beans else None,
        )
    except HttpError as error:
        raise RmUnreachableError(f"the ResourceManager is not reachable: {error}") from error
    except (KeyError, TypeError, ValueError, msgspec.ValidationError) as error:
        found = f"{type(error).__name__}: {error}"
        raise RmUnreachableError(f"{rm}: no answer of a ResourceManager: {found}") from error


def rows_of(rm: str, status: RmStatus) -> list[tuple[str, str]]:
    """One screen: what is asked first comes first."""
    apps = f"{status.apps_running} running, {status.apps_pending} pending"
    nodes = f"{status.nodes_active} active, {status.nodes_lost} lost"
    rows = [("resourcemanager", f"{status.state}, Hadoop {status.hadoop_version}, {rm}")]
    if status.bean is not None:
        rows += _of_bean(status.bean)
    return [*rows, ("nodes", nodes), ("applications", apps)]


def _of_bean(bean: Bean) -> list[tuple[str, str]]:
    engaged = "stock code serves GPU asks on physical GPUs" if bean.fallback_engaged else "not used"
    reclaimed = (
        f"{bean.foreign_gpus_refused} refused, {bean.preemptions_reclaimed} preemptions asked"
    )
    queue = f"{bean.events_queued} wait, {bean.queue_overflows} overflows"
    refused = [*bean.effects_refused, *bean.requests_refused]
    return [
        ("mode", bean.mode),
        ("core", _core(bean)),
        ("alarm", bean.core_down_reason or "none"),
        ("breaker", f"opened {_times(bean.breaker_opens)}"),
        ("fallback", f"{bean.fallback}, {engaged}"),
        ("heights", _counts(bean.nodes_by_height, "{value} nodes at {key}")),
        ("gangs committed", str(bean.commits_ok)),
        ("orders done", _counts(bean.effects_done)),
        ("orders refused", _counts(refused)),
        ("garbage refused", str(bean.garbage_refused)),
        ("stock GPU grants", reclaimed),
        ("events", queue),
        ("plug-in errors", str(bean.own_errors)),
    ]


def _core(bean: Bean) -> str:
    since = duration(bean.core_state_ms / 1000.0)
    kind = f"child, started again {_times(bean.core_restarts)}" if bean.core_managed else "not ours"
    if bean.core_state == CONNECTED:
        return f"connected since {since}, session {bean.core_epoch}, {kind}"
    if bean.core_state == NEVER_SEEN:
        return f"not there yet, {since} after the start, {kind}"
    return f"silent since {since}, {kind}"


def duration(seconds: float) -> str:
    """A time for people: the two largest units."""
    whole = int(seconds)
    for unit_s, unit, below_s, below in (
        (86_400, "d", 3600, "h"),
        (3600, "h", 60, "min"),
        (60, "min", 1, "s"),
    ):
        if whole >= unit_s:
            return f"{whole // unit_s} {unit} {whole % unit_s // below_s} {below}"
    return f"{whole} s"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _counts(counts: tuple[Count, ...] | list[Count], form: str = "{key} {value}") -> str:
    shown = [form.format(key=count.key, value=count.value) for count in counts]
    return ", ".join(shown) or "none"


def rm_address(text: str) -> str | None:
    """An address as a user types it, without what follows the port; None where it is none."""
    scheme, colon, rest = text.partition("://")
    host = rest.partition("/")[0]
    return f"{scheme}://{host}" if colon and scheme in {"http", "https"} and host else None
