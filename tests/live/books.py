"""Who holds which GPUs: as the ResourceManager has it, and as the core's journal has it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from gandiva_core.engine.engine import Engine
from gandiva_core.replay.arms import policy_factory
from gandiva_core.runtime.reading import JournalReader
from gandiva_core.runtime.recheck import scheduler_of
from gandiva_core.runtime.segments import segments
from tests.live.shells import Live

GPU = "yarn.io/gpu"
Holdings = Counter[tuple[str, str]]
"""GPUs by application and node."""


class Held(msgspec.Struct, frozen=True):
    """A live container as the ResourceManager tells of it."""

    container: str
    app: str
    node: str
    gpus: int
    state: str


def containers(live: Live) -> list[Held]:
    """Every live container of every application that has not ended."""
    found: list[Held] = []
    for app in live.apps():
        if app["state"] in {"ACCEPTED", "RUNNING"}:
            found += _of_app(live, app["id"])
    return found


def _of_app(live: Live, app_id: str) -> Iterator[Held]:
    page = f"/ws/v1/cluster/apps/{app_id}/appattempts"
    for attempt in live.get(page)["appAttempts"].get("appAttempt", []):
        listed = live.get(f"{page}/{attempt['appAttemptId']}/containers").get("container", [])
        # One alone is no list.
        for each in [listed] if isinstance(listed, dict) else listed:
            if each["containerState"] != "COMPLETE":
                yield Held(
                    each["containerId"],
                    app_id,
                    each["assignedNodeId"],
                    _gpus(each),
                    each["containerState"],
                )


def _gpus(container: dict[str, Any]) -> int:
    entries = container["allocatedResources"]["entry"]
    return sum(int(entry["value"]) for entry in entries if entry["key"] == GPU)


def of_rm(live: Live) -> Holdings:
    """GPUs in the ResourceManager's books."""
    held: Holdings = Counter()
    for each in containers(live):
        if each.gpus:
            held[each.app, each.node] += each.gpus
    return held


def newest_container(live: Live, app_id: str) -> int:
    """Number of the last container that an application was given: it grows with every grant."""
    return max(
        (int(each.container.rpartition("_")[2]) for each in _of_app(live, app_id)), default=0
    )


def of_core(live: Live) -> Holdings:
    """GPUs in the core's books: the engine, brought to where its journal ends."""
    held: Holdings = Counter()
    for job in engine_of(segments(live.folder.journal)[-1]).snapshot().jobs:
        for server_id, worker in zip(job.servers, job.spec.workers, strict=False):
            held[str(job.spec.job_id).partition("#")[0], str(server_id)] += worker.gpus
    return held


def engine_of(segment: Path) -> Engine:
    """The engine after all that a segment tells, checked on the way as everywhere."""
    reader = JournalReader(segment, is_open_ended=True)
    engine = scheduler_of(reader.header, policy_factory)
    assert isinstance(engine, Engine)
    for _, entry in reader:
        engine.handle(entry.event)
    return engine


# ---------------------------------------------------------------------------- what the journal says


def entries(journal: str) -> list[dict[str, Any]]:
    """Lines about events; a last one that is being written is left out."""
    lines = (json.loads(line) for line in journal.splitlines() if line.endswith("}"))
    return [line for line in lines if "event" in line]


def residents_over_time(segment: str) -> Iterator[set[str]]:
    """Who is bound to each device of one core's life, after each event: started on it, and has not left."""
    bound: dict[tuple[str, int], set[str]] = {}
    for entry in entries(segment):
        event = entry["event"]
        if event["kind"] in {"JobFinished", "JobFailed", "JobKilled", "GangBroken"}:
            for residents in bound.values():
                residents.discard(event["job_id"])
        for effect in entry.get("effects", []):
            for job_id, bindings in effect.get("run", ()):
                for server_id, gpus in map(_binding, bindings):
                    for gpu in gpus:
                        bound.setdefault((server_id, gpu), set()).add(job_id)
        yield from map(set, bound.values())


def _binding(found: Any) -> tuple[str, list[int]]:
    if isinstance(found, dict):
        return found["server_id"], found["gpus"]
    return found[0], found[1]
