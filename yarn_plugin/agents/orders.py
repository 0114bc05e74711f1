"""A switch of jobs as switches of workers: which container of a gang gets which devices, and what came of it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from gandiva_core.messages.agents import RunWorker
from gandiva_core.messages.decisions import Run
from gandiva_core.model.units import JobId, ServerId
from yarn_plugin.agents.nodes import NodeSide
from yarn_plugin.bridge.gangs import Gang


@dataclass(slots=True)
class JobOrder:
    """One job that was told to stop or to run; at most one a job at a time (G-11 iv).

    Attributes:
        is_start: to run, else to stop.
        waiting: its containers that have not answered.
        done: those that did as they were told.
        runs: node to the workers there with their devices.
        behind: of a start, the stops that free its devices.
    """

    job_id: JobId
    switch_id: int
    is_start: bool
    waiting: set[str]
    done: list[str] = field(default_factory=list)
    runs: dict[str, list[RunWorker]] = field(default_factory=dict)
    behind: list[JobOrder] = field(default_factory=list)


def start_order(switch_id: int, run: Run, gang: Gang, nodes: Mapping[ServerId, str]) -> JobOrder:
    """Workers in rank order take the devices of their server in the order of the binding."""
    free: dict[str, list[int]] = {}
    for binding in run.bindings:
        free.setdefault(nodes.get(binding.server_id, ""), []).extend(binding.gpus)
    runs: dict[str, list[RunWorker]] = {}
    for member in gang.members:
        gpus = free.get(member.node, [])
        given, free[member.node] = gpus[: member.worker.gpus], gpus[member.worker.gpus :]
        runs.setdefault(member.node, []).append(RunWorker(member.container, tuple(given)))
    containers = {worker.container_id for workers in runs.values() for worker in workers}
    return JobOrder(run.job_id, switch_id, True, containers, runs=runs)


def stop_order(switch_id: int, gang: Gang) -> JobOrder:
    """All workers that are there."""
    return JobOrder(gang.job_id, switch_id, False, set(gang.live))


def devices_of(order: JobOrder) -> Iterator[tuple[str, int]]:
    """Node and device, of each that its workers have or get."""
    for node, workers in order.runs.items():
        for worker in workers:
            yield from ((node, gpu) for gpu in worker.gpus)


def on_devices(order: JobOrder, nodes: Mapping[str, NodeSide]) -> JobOrder:
    """The same with the devices that stand behind the engine's indices, where a node lost some."""
    for node, workers in order.runs.items():
        side = nodes.get(node)
        if side is not None:
            order.runs[node] = [
                RunWorker(w.container_id, tuple(map(side.device, w.gpus)), w.packed_with)
                for w in workers
            ]
    return order
