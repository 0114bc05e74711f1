"""Which asks of an application make one gang (DESIGN §6), and which container belongs to which gang.

An application's GPU asks are a table: key to count and size. A gang takes containers out of it: while it waits they
stay in the ResourceManager's own table, once committed they leave it. What no gang has taken can form the next one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

import msgspec

from gandiva_core.model.job import Worker
from gandiva_core.model.units import JobId
from yarn_plugin.bridge.wire import ANY, Ask

_GANG_TAG = "gandiva.gang="
_ELASTIC_TYPES = frozenset({"SPARK", "TEZ", "MAPREDUCE"})


class GangRule(StrEnum):
    """How an application's containers are grouped."""

    DECLARED = "declared"
    """Tag ``gandiva.gang=N``: every N containers are a gang."""
    TONY = "tony"
    """All GPU priorities together, never singly: TonY gives each task type a priority of its own."""
    INDEPENDENT = "independent"
    """Each container is a job of its own: ``gandiva.gang=1``, and elastic frameworks."""
    SOFT = "soft"
    """Nothing is known: tried whole once the asks rest, singly after the gang wait."""


def gang_rule(tags: Sequence[str], application_type: str) -> tuple[GangRule, int]:
    """The rule for an application and its N, which is 0 where nothing declares it.

    A tag that is no positive number counts as absent. YARN lower-cases tags and upper-cases no type.
    """
    for tag in tags:
        text = tag.strip().lower()
        if text.startswith(_GANG_TAG) and (number := text[len(_GANG_TAG) :]).isdecimal():
            size = int(number)
            if size == 1:
                return GangRule.INDEPENDENT, 1
            if size > 1:
                return GangRule.DECLARED, size
    kind = application_type.upper()
    if kind in _ELASTIC_TYPES:
        return GangRule.INDEPENDENT, 1
    return (GangRule.TONY if kind == "TONY" else GangRule.SOFT), 0


class AskKey(NamedTuple):
    """What tells one ask of an attempt from another; asks of one key have one size."""

    priority: int
    allocation_request_id: int


class Pending(msgspec.Struct, frozen=True):
    """How many containers of which size are asked for under a key."""

    count: int
    worker: Worker
    label: str


class GangPhase(StrEnum):
    """Where a gang stands between the ask table and its containers."""

    WAITING = "waiting"
    """Its asks are in the ResourceManager's table."""
    HELD = "held"
    """It has all of its containers."""
    RENEWING = "renewing"
    """It lost its containers; the AM has not asked for all of them again."""


@dataclass(slots=True)
class Member:
    """One worker of a gang: the ask it came from, and its container while there is one."""

    key: AskKey
    worker: Worker
    container: str = ""
    node: str = ""
    exit_status: int | None = None


@dataclass(slots=True)
class Gang:
    """A job as YARN sees it."""

    job_id: JobId
    members: list[Member]
    formed_at_s: float
    phase: GangPhase = GangPhase.WAITING

    @property
    def needs(self) -> Counter[AskKey]:
        """Containers by key."""
        return Counter(member.key for member in self.members)

    @property
    def live(self) -> list[str]:
        """Containers that exist."""
        return [m.container for m in self.members if m.container and m.exit_status is None]

    @property
    def is_drained(self) -> bool:
        """Its AM let all of its workers go."""
        return self.phase is GangPhase.HELD and all(m.exit_status is not None for m in self.members)

    def drop_containers(self) -> None:
        """Forget all containers: the gang has to be asked for again."""
        self.phase = GangPhase.RENEWING
        for member in self.members:
            member.container = member.node = ""
            member.exit_status = None

    def in_order(self, workers: Sequence[Worker]) -> list[Member]:
        """Members in the order of `workers`, sizes matching.

        Raises:
            LookupError: where the sizes are not the gang's.
        """
        left = list(self.members)
        chosen: list[Member] = []
        for worker in workers:
            index = next((i for i, m in enumerate(left) if m.worker == worker), None)
            if index is None:
                raise LookupError(f"{self.job_id} asks for no container of {worker}")
            chosen.append(left.pop(index))
        return chosen


@dataclass(slots=True)
class Application:
    """An application attempt, its asks, and the gangs formed of them."""

    first_job: str
    attempt: str
    queue: str
    user: str
    name: str
    priority: int
    rule: GangRule
    size: int
    asks: dict[AskKey, Pending] = field(default_factory=dict)
    gangs: dict[JobId, Gang] = field(default_factory=dict)
    formed: int = 0
    is_single: bool = False
    """A soft application that waited too long: its containers are placed one by one from now on."""

    def replace_asks(self, asks: Sequence[Ask]) -> None:
        """Take a snapshot: only whole-cluster entries, since place entries repeat their count."""
        self.asks = {
            AskKey(ask.priority, ask.allocation_request_id): Pending(
                ask.count, Worker(ask.gpus, ask.memory_mib, ask.vcores), ask.label
            )
            for ask in asks
            if ask.resource_name == ANY
            and ask.gpus > 0
            and ask.count > 0
            and ask.execution_type == "GUARANTEED"
        }

    def free(self) -> Counter[AskKey]:
        """Containers asked for that no waiting gang has taken; negative where some were withdrawn."""
        counts = Counter({key: pending.count for key, pending in self.asks.items()})
        for gang in self.gangs.values():
            if gang.phase is GangPhase.WAITING:
                counts.subtract(gang.needs)
        return counts

    def renewed(self) -> None:
        """Let gangs wait again whose containers are all asked for anew."""
        for gang in self.gangs.values():
            if gang.phase is GangPhase.RENEWING:
                free = self.free()
                if all(free[key] >= count for key, count in gang.needs.items()):
                    gang.phase = GangPhase.WAITING

    def withdrawn(self) -> Iterator[Gang]:
        """Waiting gangs that no longer have their asks, youngest first; each is dropped as it is yielded."""
        for gang in reversed(list(self.gangs.values())):
            missing = {key for key, count in self.free().items() if count < 0}
            if not missing:
                return
            if gang.phase is GangPhase.WAITING and missing & gang.needs.keys():
                del self.gangs[gang.job_id]
                yield gang

    def form(self, *, settled: bool, now_s: float) -> list[Gang]:
        """New gangs out of what is free.

        Args:
            settled: whether the asks rest: the last two AM heartbeats were the same.
            now_s: their birth.
        """
        free = [key for key, count in sorted(self.free().items()) for _ in range(count)]
        size = self._gang_size(len(free), settled=settled)
        formed: list[Gang] = []
        while size and len(free) >= size:
            formed.append(self._gang(free[:size], now_s))
            free = free[size:]
        return formed

    def _gang_size(self, free: int, *, settled: bool) -> int:
        if self.rule is GangRule.DECLARED:
            return self.size
        if self.rule is GangRule.INDEPENDENT or self.is_single:
            return 1
        return free if settled else 0

    def _gang(self, keys: Sequence[AskKey], now_s: float) -> Gang:
        self.formed += 1
        suffix = "" if self.formed == 1 else f"#{self.formed}"
        members = [Member(key, self.asks[key].worker) for key in keys]
        gang = Gang(JobId(f"{self.first_job}{suffix}"), members, now_s)
        self.gangs[gang.job_id] = gang
        return gang

    def committed(self, gang: Gang) -> None:
        """Take a gang's asks out of the table, as the ResourceManager did when it committed."""
        for key, count in gang.needs.items():
            pending = self.asks.get(key)
            if pending is None:
                continue
            left = pending.count - count
            if left > 0:
                self.asks[key] = msgspec.structs.replace(pending, count=left)
            else:
                del self.asks[key]
        gang.phase = GangPhase.HELD
