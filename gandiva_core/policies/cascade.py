"""Where a gang goes: the cascade of G-21 with the tie-breaks of G-23, in one pass over the kinds of servers.

Memory and vcores are never inflated by the height (DESIGN §4): what a container asks for is also the host memory
that its suspended job needs (G-46), so a server whose memory is asked for in full takes no resident at any height.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from functools import cached_property

import msgspec

from gandiva_core.messages.decisions import Wait
from gandiva_core.model.job import JobSpec
from gandiva_core.model.units import ServerId
from gandiva_core.model.view import ClusterView, ServerView
from gandiva_core.policies.limits import full_queue, is_sliced, kept_places
from gandiva_core.policies.sets import (
    Ask,
    can_ever_host,
    is_possible,
    room_on,
    smallest_set,
    spread,
)

NOTHING: frozenset[ServerId] = frozenset()


class Step(StrEnum):
    """The steps of G-21 by name."""

    SAME_AFFINITY = "same-affinity"
    PRISTINE = "pristine"
    RELAXED = "relaxed"
    OVER_SUBSCRIBE = "over-subscribe"
    STARVING = "starving"


SHARING = frozenset({Step.OVER_SUBSCRIBE, Step.STARVING})
"""Steps that give a gang devices which others have already."""


class Choice(msgspec.Struct, frozen=True):
    """A place that was found: one server a worker, in rank order, and the step that found it."""

    servers: tuple[ServerId, ...]
    step: Step


def choose(
    view: ClusterView,
    spec: JobSpec,
    height_max: int,
    *,
    steps: frozenset[Step],
    closed: frozenset[ServerId] = NOTHING,
) -> Choice | Wait:
    """The first step of G-21 that finds a place for the gang, or why none did.

    Args:
        view: the cluster now.
        spec: the job.
        height_max: H_max; 1 never over-subscribes.
        steps: steps that may be taken.
        closed: servers kept for somebody else.
    """
    ask = Ask.of(spec)
    if not is_sliced(view, spec):
        height_max = 1  # it must always run, so it shares with nobody
    full = full_queue(view, spec, height_max)
    if full is not None and ask.gpus <= _gpus(view, ask.partition):
        used = (
            f"{full.resident} of {full.limit.max_gpus:g} GPUs × {height_max} in {full.limit.name}"
        )
        return Wait("queue-limit", f"{ask.gpus} GPUs", used)
    survey = _survey(view, spec, height_max, closed)
    kept = kept_places(view, spec) if height_max > 1 else 0.0
    if kept:
        left = survey.places_left()
        if left - ask.gpus < kept:
            steps -= SHARING
            survey.kept = f"{left} places for residents, {kept:g} of them kept for guarantees"
    places = survey.places() if survey.can_host else _set_places(survey, view)
    for step, servers in places:
        if servers is not None and step in steps:
            return Choice(servers, step)
    found = survey.anywhere() if Step.STARVING in steps else None
    if found is not None:
        return Choice(found, Step.STARVING)
    if spec.only_on:
        return Wait("locality", f"{ask.gpus} GPUs", survey.on_these())
    return survey.why_not()


def elsewhere(
    view: ClusterView,
    spec: JobSpec,
    height_max: int,
    *,
    steps: frozenset[Step],
    closed: frozenset[ServerId] = NOTHING,
) -> Choice | None:
    """Where a gang that has a place could live instead: as `choose`, but its queue counts it already."""
    if not is_sliced(view, spec):
        height_max = 1
    survey = _survey(view, spec, height_max, closed)
    places = survey.places() if survey.can_host else _set_places(survey, view)
    found = ((step, servers) for step, servers in places if servers is not None and step in steps)
    return next((Choice(servers, step) for step, servers in found), None)


def _survey(
    view: ClusterView, spec: JobSpec, height_max: int, closed: frozenset[ServerId]
) -> Survey:
    closed |= _draining(view)
    if spec.only_on:
        closed |= view.servers.keys() - set(spec.only_on)
    survey = Survey(view, Ask.of(spec), height_max, closed)
    survey.look()
    return survey


def _draining(view: ClusterView) -> frozenset[ServerId]:
    """Servers that are being emptied: nobody new goes there."""
    return frozenset(
        member.server.server_id
        for kind in view.kinds
        if kind[0].server.is_draining
        for member in kind
    )


def _gpus(view: ClusterView, partition: str) -> int:
    """Of all servers of a partition: more than these is a fault of no queue's limit."""
    servers = ((kind[0].server, len(kind)) for kind in view.kinds)
    return sum(server.gpus * count for server, count in servers if server.partition == partition)


class Survey:
    """What one pass found for one ask; each `best` is the winner of its step under G-23.

    Args:
        view: the cluster now.
        ask: of the gang.
        height_max: H_max.
        closed: servers kept for somebody else.
    """

    def __init__(
        self, view: ClusterView, ask: Ask, height_max: int, closed: frozenset[ServerId]
    ) -> None:
        self.view = view
        self.ask = ask
        self.height_max = height_max
        self.closed = closed
        self.can_host = False
        #: Whether some server of the partition, when empty, holds the whole gang.
        self.total = 0
        self.free = 0
        self.class_size = 0
        #: Servers reserved for this class.
        self.memory_short: ServerView | None = None
        #: A server that some step would have taken but for its host memory (G-46).
        self.vcores_short: ServerView | None = None
        self.same: ServerView | None = None
        self.pristine: ServerView | None = None
        self.relaxed: ServerView | None = None
        self.over: ServerView | None = None
        self.least_loaded: ServerView | None = None
        self.kept = ""
        #: Why nobody was over-subscribed, where guarantees of other queues are the reason.

    @cached_property
    def all(self) -> list[ServerView]:
        """Servers of the partition, by id, closed ones left out."""
        partition, closed = self.ask.partition, self.closed
        return [
            view
            for server_id, view in self.view.servers.items()
            if view.server.partition == partition and server_id not in closed
        ]

    @cached_property
    def of_class(self) -> list[ServerView]:
        """Of `all` those reserved for this class; for gangs larger than a server they form sets (G-5 d)."""
        return [view for view in self.all if view.affinity == self.ask.affinity_class]

    @cached_property
    def open(self) -> list[ServerView]:
        """Of `all` those with at least one free GPU."""
        return [view for view in self.all if view.allocated < view.server.gpus]

    def look(self) -> None:
        """The pass. The first member speaks for its kind: it has the lowest id, and so wins every tie among them."""
        for members in self._kinds():
            self._consider(members[0], len(members), members[-1])

    def _kinds(self) -> Iterable[Sequence[ServerView]]:
        """Kinds of the partition without closed servers, by their first member."""
        ask = self.ask
        own = [kind for kind in self.view.kinds if kind[0].server.partition == ask.partition]
        for kind in own:
            server = kind[0].server
            self.total += server.gpus * len(kind)
            self.can_host = self.can_host or can_ever_host(ask, server)
        if not self.closed:
            return own
        left = ([view for view in kind if view.server.server_id not in self.closed] for kind in own)
        return sorted(filter(None, left), key=lambda kind: kind[0].server.server_id)

    def _consider(self, view: ServerView, count: int, last: ServerView) -> None:
        """Attribute access and comparisons only: a large cluster may have hundreds of kinds."""
        server, ask = view.server, self.ask
        allocated, gpus = view.allocated, self.ask.gpus
        is_of_class = view.affinity == ask.affinity_class
        if is_of_class:
            self.class_size += count
        if allocated < server.gpus:
            self.free += count * (server.gpus - allocated)
        if gpus > server.gpus:
            return
        if self._is_full(view, allocated):
            return
        if view.memory_free_mib >= ask.memory_mib and view.vcores_free >= ask.vcores:
            self._rank(view, allocated)
        elif is_of_class or allocated + gpus <= server.gpus:
            self._note_short(last)

    def places_left(self) -> int:
        """GPUs that residents of the partition could still ask for under H_max, closed servers included."""
        return sum(
            len(kind) * max(0, room_on(kind[0], self.height_max) - kind[0].allocated)
            for kind in self.view.kinds
            if kind[0].server.partition == self.ask.partition
        )

    def _is_full(self, view: ServerView, allocated: int) -> bool:
        """Whether the gang would exceed H_max here, or could never run beside those that are never suspended."""
        gpus, unsliced = self.ask.gpus, view.unsliced
        if unsliced and gpus > view.server.gpus - unsliced:
            return True
        return allocated + gpus > room_on(view, self.height_max)

    def _note_short(self, view: ServerView) -> None:
        """A server that some step would have taken but for its memory or vcores; the last id is told."""
        if view.memory_free_mib < self.ask.memory_mib:
            self.memory_short = _later(self.memory_short, view)
        else:
            self.vcores_short = _later(self.vcores_short, view)

    def _rank(self, view: ServerView, allocated: int) -> None:
        """Let a server that can take the whole gang under H_max compete in every step it qualifies for."""
        fits_free = allocated + self.ask.gpus <= view.server.gpus
        if self.least_loaded is None or is_less_loaded(view, self.least_loaded):
            self.least_loaded = view
        if view.affinity == self.ask.affinity_class:
            if self.over is None or is_less_loaded(view, self.over):
                self.over = view
            if fits_free and (self.same is None or is_less_loaded(view, self.same)):
                self.same = view
        if not fits_free:
            return
        if allocated == 0 and view.affinity == 0 and self.pristine is None:
            self.pristine = view
        if self.relaxed is None or _is_tighter(view, self.relaxed):
            self.relaxed = view

    def places(self) -> Iterable[tuple[Step, tuple[ServerId, ...] | None]]:
        """Steps 1 to 4 for a gang that one server can hold; lazily, as the set of step 3 costs more."""
        yield Step.SAME_AFFINITY, self._on(self.same)
        yield Step.PRISTINE, self._on(self.pristine)
        yield Step.RELAXED, self._on(self.relaxed) or self._free_set()
        yield Step.OVER_SUBSCRIBE, self._on(self.over)

    def anywhere(self) -> tuple[ServerId, ...] | None:
        """Where a starving head goes: the least loaded server of any affinity; a set only if none is large enough."""
        if self.can_host:
            return self._on(self.least_loaded)
        by_load = sorted(self.all, key=lambda view: view.allocated / max(1, view.server.gpus))
        return spread(self.ask, ((self.room(view), view) for view in by_load))

    def room(self, view: ServerView) -> int:
        """GPUs that a gang may add on a server under H_max; its share never exceeds the server."""
        shared = max(0, view.server.gpus - view.unsliced)
        return min(shared, room_on(view, self.height_max) - view.allocated)

    def _free_set(self) -> tuple[ServerId, ...] | None:
        return None if self.free < self.ask.gpus else self.free_set(self.open)

    def free_set(self, candidates: Iterable[ServerView]) -> tuple[ServerId, ...] | None:
        """The smallest set of servers with enough free GPUs (G-23 step 3, G-25)."""
        rooms = [(view.server.gpus - view.allocated, view) for view in candidates]
        if sum(room for room, _ in rooms) < self.ask.gpus:
            return None
        return smallest_set(self.ask, rooms)

    def _on(self, view: ServerView | None) -> tuple[ServerId, ...] | None:
        return None if view is None else (view.server.server_id,) * len(self.ask.workers)

    def on_these(self) -> str:
        """What the servers have that an ask insists on."""
        if not self.all:
            return f"none of them is a server of partition '{self.ask.partition}'"
        names = ", ".join(view.server.server_id for view in self.all[:3])
        gpus = sum(view.server.gpus for view in self.all)
        return f"{self.free} of {gpus} GPUs free on {names}" + (" …" if len(self.all) > 3 else "")

    def why_not(self) -> Wait:
        """The nearest miss, with numbers (USERS B7)."""
        ask = self.ask
        need = f"{ask.gpus} GPUs"
        if self.total == 0:
            return Wait("partition", need, f"no server in partition '{ask.partition}'")
        if not self.can_host and not is_possible(ask, self.all):
            return Wait("too-large", need, f"{self.total} GPUs, with no room for it even if empty")
        if self.memory_short is not None:
            return Wait(
                "host-memory",
                f"{ask.memory_mib} MiB",
                f"{self.memory_short.memory_free_mib} MiB on {self.memory_short.server.server_id}",
            )
        if self.vcores_short is not None:
            return Wait(
                "vcores",
                f"{ask.vcores} vcores",
                f"{self.vcores_short.vcores_free} on {self.vcores_short.server.server_id}",
            )
        if self.kept:
            return Wait("guarantees", need, self.kept)
        same = f"{self.class_size} servers of class {ask.affinity_class}, none with room"
        return Wait("gpus", need, f"{self.free} free; {same}")


def is_less_loaded(view: ServerView, best: ServerView) -> bool:
    """G-23 and SPEC §9 for steps 1 and 4: lowest load, most idle devices, fewest jobs; the earlier id stays."""
    load = view.allocated * best.server.gpus
    best_load = best.allocated * view.server.gpus
    if load != best_load:
        return load < best_load
    idle, best_idle = _idle(view), _idle(best)
    if idle != best_idle:
        return idle > best_idle
    return len(view.residents) < len(best.residents)


def _idle(view: ServerView) -> int:
    """Devices with no running or reserved job (G-21)."""
    return sum(
        1
        for holder, claim in zip(view.holders, view.claims, strict=True)
        if holder is None and claim is None
    )


def _later(known: ServerView | None, view: ServerView) -> ServerView:
    if known is not None and known.server.server_id > view.server.server_id:
        return known
    return view


def _is_tighter(view: ServerView, best: ServerView) -> bool:
    """G-23 step 3: best fit, then lowest load; the earlier id stays."""
    free = view.server.gpus - view.allocated
    best_free = best.server.gpus - best.allocated
    if free != best_free:
        return free < best_free
    return view.allocated * best.server.gpus < best.allocated * view.server.gpus


def _set_places(
    survey: Survey, view: ClusterView
) -> Iterable[tuple[Step, tuple[ServerId, ...] | None]]:
    """Steps 1 to 4 for a gang that no server can hold: the unit is a set of servers (G-5 d, G-25)."""
    sets = _sets_of_class(survey, view)
    yield Step.SAME_AFFINITY, next(filter(None, map(survey.free_set, sets)), None)
    untouched = [v for v in survey.open if v.affinity == 0 and v.allocated == 0]
    yield Step.PRISTINE, survey.free_set(untouched)
    yield Step.RELAXED, survey.free_set(survey.open)
    over = (_over_set(survey, members) for members in sets)
    yield Step.OVER_SUBSCRIBE, next(filter(None, over), None)


def _sets_of_class(survey: Survey, view: ClusterView) -> list[tuple[ServerView, ...]]:
    """n0 for such a gang: the sets that its class was given, least loaded first; a set's load is its maximum."""
    found: dict[tuple[ServerId, ...], tuple[ServerView, ...]] = {}
    usable = {member.server.server_id: member for member in survey.of_class}
    for member in survey.of_class:
        for job_id in member.residents:
            job = view.jobs[job_id]
            ids = tuple(sorted(job.shares))
            if (
                len(ids) > 1
                and job.spec.affinity_class == survey.ask.affinity_class
                and all(server_id in usable for server_id in ids)
            ):
                found.setdefault(ids, tuple(usable[server_id] for server_id in ids))
    ordered = sorted(found.items(), key=lambda item: (_set_load(item[1]), item[0]))
    return [members for _, members in ordered]


def _set_load(members: Iterable[ServerView]) -> float:
    return max(member.allocated / max(1, member.server.gpus) for member in members)


def _over_set(survey: Survey, members: tuple[ServerView, ...]) -> tuple[ServerId, ...] | None:
    by_load = sorted(members, key=lambda view: view.allocated / max(1, view.server.gpus))
    return spread(survey.ask, ((survey.room(view), view) for view in by_load))
