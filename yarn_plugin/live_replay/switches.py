"""What a core's journal says of its switches: who was stopped when, and what that costs. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import mean
from typing import Any

import msgspec

from gandiva_core.replay.live import JobRun


class Switches(msgspec.Struct, frozen=True):
    """From a core's journal.

    Attributes:
        suspend_resume_s: mean of what a stop takes beyond the wait for its mini-batch boundary, and a resume; None
            where no job was both stopped and continued.
        ordered_s: when each application was first told to run; seconds since 1970.
        stops_s: when each was stopped.
    """

    suspend_resume_s: float | None
    ordered_s: Mapping[str, float]
    stops_s: Mapping[str, Sequence[float]]


class Order(msgspec.Struct):
    """One `SwitchResidents`, and what was reported of it."""

    at_s: float
    devices: Mapping[str, tuple[tuple[str, int], ...]]
    stopped: dict[str, float]
    started: dict[str, float]


def switches_of(orders: Sequence[Order], runs: Sequence[JobRun], first_s: float) -> Switches:
    """Costs of switches.

    Args:
        orders: of the core's journal.
        runs: of the arm, for when each job first computed: a stop asked before that waits for it, and costs no more.
        first_s: what times of `runs` are counted from.
    """
    ordered_s: dict[str, float] = {}
    for order in orders:
        for job_id in order.devices:
            ordered_s.setdefault(job_id, order.at_s)
    up_s = {run.app_id: first_s + run.first_s for run in runs if run.first_s is not None}
    step_s = {run.app_id: run.minibatch_s or 0.0 for run in runs}
    stops = [
        at_s - order.at_s - step_s.get(job_id, 0.0) / 2
        for order in orders
        for job_id, at_s in order.stopped.items()
        if up_s.get(job_id, order.at_s) < order.at_s
    ]
    resumes = list(_resumes(orders, up_s))
    cost_s = max(0.0, mean(stops)) + max(0.0, mean(resumes)) if stops and resumes else None
    return Switches(cost_s, ordered_s, stops_of(orders))


def _resumes(orders: Iterable[Order], up_s: Mapping[str, float]) -> Iterator[float]:
    """From a device that is free to a job that had computed before and does again."""
    holder: dict[tuple[str, int], str] = {}
    for order in orders:
        for job_id, at_s in order.started.items():
            gpus = order.devices.get(job_id, ())
            left = [order.stopped.get(holder.get(each, ""), order.at_s) for each in gpus]
            if up_s.get(job_id, order.at_s) < order.at_s:
                yield at_s - max(left, default=order.at_s)
        for job_id in order.started:
            holder.update(dict.fromkeys(order.devices.get(job_id, ()), job_id))


def stops_of(orders: Iterable[Order]) -> dict[str, list[float]]:
    """When each application was stopped; seconds since 1970."""
    found: dict[str, list[float]] = {}
    for order in orders:
        for job_id, at_s in order.stopped.items():
            found.setdefault(job_id, []).append(at_s)
    return found


def orders_of(entries: Iterable[Mapping[str, Any]]) -> list[Order]:
    """All `SwitchResidents` of a journal, with what was reported of each."""
    found: dict[int, Order] = {}
    for entry in entries:
        event = entry.get("event") or {}
        order = found.get(event.get("switch_id", 0))
        if order is not None and event.get("kind") == "ResidentsSwitched":
            order.stopped.update(event.get("stopped", ()))
            order.started.update(event.get("started", ()))
        for effect in entry.get("effects", ()):
            if effect["kind"] == "SwitchResidents":
                gpus = {job_id: _devices(at) for job_id, at, *_ in effect.get("run", ())}
                found[effect["switch_id"]] = Order(event["at_s"], gpus, {}, {})
    return list(found.values())


def _devices(bindings: Iterable[Sequence[Any]]) -> tuple[tuple[str, int], ...]:
    return tuple((server, gpu) for server, gpus in bindings for gpu in gpus)
