"""Which asks of an application make one gang (DESIGN §6), and which container belongs to which gang.

An application's GPU asks are a table: key to count and size. A gang takes containers out of it: while it waits they
stay in the ResourceManager's own table, once committed they leave it. What no gang has taken can form the next one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import msgspec

from gandiva_core.model.job import Worker
from gandiva_core.model.units import JobId, ServerId
from yarn_plugin.bridge.asks import ANYWHERE, AskKey, Pending, Site, Stray, ask_table
from yarn_plugin.bridge.scope import OBSERVE, Scope
from yarn_plugin.bridge.wire import Ask

LIMITED = ("suspend", "pack", "migrate", "resize")
"""What an owner may forbid."""

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


def owners_limits(tags: Sequence[str]) -> tuple[str, ...]:
    """What an owner forbids, by tags such as ``gandiva.suspend=never``; whatever else is written forbids nothing."""
    words = {tag.strip().lower() for tag in tags}
    return tuple(name for name in LIMITED if f"gandiva.{name}=never" in words)


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
    """One worker of a gang: the ask it came from, its container while there is one, and the one before."""

    key: AskKey
    worker: Worker
    container: str = ""
    node: str = ""
    exit_status: int | None = None
    former: str = ""

    def drop(self) -> None:
        """It has no container any more."""
        self.former = self.container or self.former
        self.container = self.node = ""
        self.exit_status = None


@dataclass(slots=True)
class Gang:
    """A job as YARN sees it.

    Attributes:
        site: where it may go, while it waits.
        only_on: the servers at the site's places.
        is_found: its containers were found, and not ordered.
        is_piece: they were, and whether more belong to it is not known.
    """

    job_id: JobId
    members: list[Member]
    formed_at_s: float
    phase: GangPhase = GangPhase.WAITING
    site: Site = ANYWHERE
    only_on: tuple[ServerId, ...] = ()
    is_found: bool = False
    is_piece: bool = False

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

    @property
    def is_growth(self) -> bool:
        """Whether its workers are to join another gang of its application."""
        return all(member.key.is_growth for member in self.members)

    @property
    def original(self) -> list[int]:
        """Which of its members it began with."""
        return [at for at, member in enumerate(self.members) if not member.key.is_growth]

    @property
    def strays(self) -> list[Stray]:
        """Its live containers, as if they were nobody's."""
        return [
            Stray(m.container, m.node, m.key, m.worker, self.site.is_master)
            for m in self.members
            if m.container and m.exit_status is None
        ]

    def drop_containers(self) -> None:
        """Forget all containers: the gang has to be asked for again."""
        self.phase = GangPhase.RENEWING
        for member in self.members:
            member.drop()

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
    move_asks: dict[AskKey, Pending] = field(default_factory=dict)
    """Asks that a move made its master make: they form no job."""
    gangs: dict[JobId, Gang] = field(default_factory=dict)
    formed: int = 0
    is_single: bool = False
    """A soft application that waited too long: its containers are placed one by one from now on."""
    scope: Scope = field(default_factory=Scope)
    strays: dict[str, Stray] = field(default_factory=dict)
    """Containers of nobody that wait for their node."""
    opportunistic: int = 0
    never: tuple[str, ...] = ()
    """What its owner forbids."""

    @property
    def is_placed_by_us(self) -> bool:
        """Whether decisions about some partition of its queue are carried out."""
        return self.scope.mode != OBSERVE and self.scope.has_queue(self.queue)

    def replace_asks(self, asks: Sequence[Ask]) -> None:
        """Take a snapshot. Counts are those of whole-cluster entries, since place entries repeat theirs."""
        table, self.opportunistic = ask_table(asks)
        self.asks = {key: pending for key, pending in table.items() if not key.is_move}
        self.move_asks = {key: pending for key, pending in table.items() if key.is_move}

    def take(self, key: AskKey) -> None:
        """The ResourceManager served one container of this ask by itself."""
        self._reduce(key, 1)

    def free(self) -> Counter[AskKey]:
        """Containers asked for that no waiting gang has taken; negative where some were withdrawn."""
        counts = Counter(
            {
                key: pending.count
                for key, pending in self.asks.items()
                if self.scope.has(self.queue, pending.site.label)
            }
        )
        for gang in self.gangs.values():
            if gang.phase is GangPhase.WAITING:
                counts.subtract(gang.needs)
        return counts

    def renewed(self) -> None:
        """Let gangs wait again whose containers are all asked for anew."""
        for gang in self.gangs.values():
            if gang.phase is GangPhase.RENEWING and self.asks_cover(gang):
                gang.phase = GangPhase.WAITING

    def asks_cover(self, gang: Gang) -> bool:
        """Whether all containers of a gang that does not wait are asked for, and taken by nobody else."""
        free = self.free()
        return self._is_asked(gang) and all(free[key] >= count for key, count in gang.needs.items())

    def _is_asked(self, gang: Gang) -> bool:
        """Whether its asks, however many, are still of its sizes, and where it may go."""
        for member in gang.members:
            pending = self.asks.get(member.key)
            if pending is None or pending.worker != member.worker:
                return False
            if not gang.site.covers(pending.site):
                return False
        return True

    def withdrawn(self) -> Iterator[Gang]:
        """Waiting gangs that no longer have their asks, youngest first; each is dropped as it is yielded."""
        free = self.free()
        for gang in reversed(list(self.gangs.values())):
            if gang.phase is not GangPhase.WAITING:
                continue
            if any(free[key] < 0 for key in gang.needs) or not self._is_asked(gang):
                del self.gangs[gang.job_id]
                free = self.free()
                yield gang

    def form(self, *, settled: bool, now_s: float) -> list[Gang]:
        """New gangs out of what is free.

        Args:
            settled: whether the asks rest: the last two AM heartbeats were the same.
            now_s: their birth.
        """
        formed = [self._gang(keys, now_s) for keys in self._growth()] if settled else []
        for site, free in self._sites().items():
            size = 1 if site.is_master else self._gang_size(len(free), settled=settled)
            rest = 0 if site.is_master else self._rest_of_pieces()
            first = rest if rest and len(free) % size == rest else 0
            if first:
                formed.append(self._gang(free[:first], now_s))
                self._complete_pieces()
            starts = range(first, len(free) - size + 1, size) if size else ()
            formed += [self._gang(free[at : at + size], now_s) for at in starts]
        return formed

    def _sites(self) -> dict[Site, list[AskKey]]:
        """Free asks by where they may go; none where a gang that must stay whole would need two sites."""
        sites: dict[Site, list[AskKey]] = {}
        for key, count in sorted(self.free().items()):
            if count > 0 and not key.is_growth:
                sites.setdefault(self.asks[key].site, []).extend([key] * count)
        return {} if self.rule is GangRule.TONY and len(sites) > 1 else sites

    def _growth(self) -> list[list[AskKey]]:
        """Workers that are to join a gang, those of one resize together, whatever the rule."""
        free = sorted(self.free().items())
        return [[key] * count for key, count in free if key.is_growth and count > 0]

    def _gang_size(self, free: int, *, settled: bool) -> int:
        if self.rule is GangRule.DECLARED:
            return self.size
        if self.rule is GangRule.INDEPENDENT or self.is_single:
            return 1
        return free if settled else 0

    def _rest_of_pieces(self) -> int:
        """How many containers a declared gang lacks of which some were found; 0 for all other applications."""
        if self.rule is not GangRule.DECLARED or not self.is_placed_by_us:
            return 0
        found = sum(len(gang.live) for gang in self.gangs.values() if gang.is_piece)
        return -found % self.size

    def _complete_pieces(self) -> None:
        for gang in self.gangs.values():
            gang.is_piece = False

    def hindrance(self) -> str:
        """Why some of its asks form no job, for people; empty where all do or may yet."""
        free = sum(n for key, n in self.free().items() if n > 0 and not key.is_growth)
        if free and self.rule is GangRule.DECLARED:
            return (
                f"{free} of {self.size} containers of a gang are asked for: none is placed before all are "
                f"({_GANG_TAG}{self.size})"
            )
        if free and self.rule is GangRule.TONY and not self._sites():
            return "one gang asks for several partitions, or hosts: it can be placed in one only"
        if self.opportunistic:
            return f"{self.opportunistic} opportunistic containers with GPUs are never placed: ask for GUARANTEED ones"
        return ""

    def new_job_id(self) -> JobId:
        """The name of its next job."""
        self.formed += 1
        return JobId(self.first_job if self.formed == 1 else f"{self.first_job}#{self.formed}")

    def _gang(self, keys: Sequence[AskKey], now_s: float) -> Gang:
        members = [Member(key, self.asks[key].worker) for key in keys]
        gang = Gang(self.new_job_id(), members, now_s, site=self.asks[keys[0]].site)
        self.gangs[gang.job_id] = gang
        return gang

    def committed(self, gang: Gang) -> None:
        """Take a gang's asks out of the table, as the ResourceManager did when it committed."""
        for key, count in gang.needs.items():
            self._reduce(key, count)
        gang.phase = GangPhase.HELD
        gang.is_found = False

    def _reduce(self, key: AskKey, count: int) -> None:
        pending = self.asks.get(key)
        if pending is None:
            return
        if pending.count > count:
            self.asks[key] = msgspec.structs.replace(pending, count=pending.count - count)
        else:
            del self.asks[key]
