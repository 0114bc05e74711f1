"""Containers that are there and that the core did not order: they become jobs as they are (`JobAdopted`). Pure.

They come from a core or a ResourceManager that was started again, from a commit whose answer was lost, and from stock
code where the core does not place. A gang that is known takes back its own; the rest is grouped by the application's
gang rule. Nothing is ever released because the core does not know it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from gandiva_core.messages.events import Event, JobAdopted, JobKilled
from gandiva_core.model.job import JobSpec
from gandiva_core.model.units import QueueName, ServerId
from yarn_plugin.bridge.asks import AskKey, Site, Stray
from yarn_plugin.bridge.gangs import Application, Gang, GangPhase, GangRule, Member
from yarn_plugin.bridge.register import Register

_NUMBERS = re.compile(r"\d+")


def container_order(container: str) -> tuple[int, ...]:
    """The order in which containers were made: the ResourceManager's epoch, then the numbers of the id."""
    numbers = [int(number) for number in _NUMBERS.findall(container)]
    has_epoch = container.startswith("container_e")
    return tuple(numbers if has_epoch else [0, *numbers])


def spec_of(
    app: Application, gang: Gang, partition: str, only_on: tuple[ServerId, ...] = ()
) -> JobSpec:
    """A gang as the core's job."""
    return JobSpec(
        job_id=gang.job_id,
        workers=tuple(member.worker for member in gang.members),
        name=app.name,
        queue=QueueName(app.queue),
        user=app.user,
        priority=app.priority,
        partition=partition,
        only_on=only_on,
        never=app.never,
    )


def adopt(
    register: Register, app_id: str, at_s: float, *, regroups: bool = False
) -> Iterator[Event]:
    """Make jobs of an application's strays, as far as their nodes are there.

    Args:
        register: in which the jobs are entered.
        app_id: of a known application.
        at_s: the time of the events.
        regroups: look at pieces anew even where no stray came.
    """
    app = register.apps[app_id]
    _turn_away(register, app)
    by_partition: dict[str, list[Stray]] = {}
    for stray in app.strays.values():
        server = register.servers.get(stray.node)
        if server is not None:
            by_partition.setdefault(server.partition, []).append(stray)
    pieces: dict[str, list[Gang]] = {}
    for gang in app.gangs.values():
        if gang.is_piece and gang.live:
            pieces.setdefault(_partition(register, gang), []).append(gang)
    for partition in sorted({*by_partition, *(pieces if regroups else ())}):
        found = pieces.get(partition, []) if app.scope.places(app.queue, partition) else []
        yield from _adopt(register, app_id, by_partition.get(partition, []), found, at_s)


def _turn_away(register: Register, app: Application) -> None:
    """A core that was started again may find a gang in the middle of a move: every worker has two containers.

    The new ones never computed, and the old ones are the job until they did (G-13); so the newest are let go. Only
    where all of that is certain: a declared gang, whole, and exactly as many containers again that a move asked for.
    """
    if app.rule not in (GangRule.DECLARED, GangRule.INDEPENDENT) or app.gangs:
        return
    strays = sorted(app.strays.values(), key=lambda stray: container_order(stray.container))
    newest = strays[app.size :]
    if len(strays) != 2 * app.size or not all(stray.key.is_move for stray in newest):
        return
    for stray in newest:
        del app.strays[stray.container]
        register.unwanted[stray.container] = None


def _partition(register: Register, gang: Gang) -> str:
    nodes = (member.node for member in gang.members if member.node)
    servers = (register.servers[node] for node in nodes if node in register.servers)
    return next((server.partition for server in servers), "")


def _adopt(
    register: Register, app_id: str, strays: list[Stray], pieces: Sequence[Gang], at_s: float
) -> Iterator[Event]:
    """Adopt strays of one partition, together with pieces that they may complete."""
    app = register.apps[app_id]
    pool = [*strays, *(stray for piece in pieces for stray in piece.strays)]
    pool.sort(key=lambda stray: container_order(stray.container))
    claimed = list(_claimed(app, pool))
    taken = {stray.container for _, group in claimed for stray in group}
    rest = [stray for stray in pool if stray.container not in taken]
    partition = register.servers[rest[0].node].partition if rest else ""
    kept = {tuple(piece.live) for piece in pieces}
    groups = list(_by_rule(app, rest, is_ours=app.scope.places(app.queue, partition)))
    fresh = [each for each in groups if tuple(stray.container for stray in each[0]) not in kept]
    moved = taken.union(stray.container for group, _ in fresh for stray in group)
    for piece in pieces:
        if not moved.isdisjoint(piece.live):  # its containers go on, as part of another job
            register.remove(app, piece)
            yield JobKilled(at_s, piece.job_id)
    for gang, group in claimed:
        yield _enter(register, app, gang, group, at_s)
    for group, is_piece in fresh:
        members = [Member(stray.key, stray.worker) for stray in group]
        site = Site(partition, is_master=group[0].is_master)
        gang = Gang(app.new_job_id(), members, at_s, site=site, is_piece=is_piece)
        app.gangs[gang.job_id] = gang
        register.app_of[gang.job_id] = app_id
        yield _enter(register, app, gang, group, at_s)


def _enter(
    register: Register, app: Application, gang: Gang, group: Sequence[Stray], at_s: float
) -> Event:
    """Give a gang the containers of `group`, one a member, in rank order."""
    for member, stray in zip(gang.members, group, strict=True):
        member.drop()
        member.container, member.node = stray.container, stray.node
        register.job_of[stray.container] = gang.job_id
        app.strays.pop(stray.container, None)
    gang.phase = GangPhase.HELD
    gang.is_found = True
    servers = [register.servers[stray.node] for stray in group]
    return JobAdopted(
        at_s,
        spec_of(app, gang, servers[0].partition),
        tuple(stray.container for stray in group),
        tuple(server.server_id for server in servers),
    )


# ---------------------------------------------------------------------- jobs that are known


def _claimed(app: Application, strays: Sequence[Stray]) -> Iterator[tuple[Gang, list[Stray]]]:
    """Gangs whose containers are all among the strays: by name, or by an ask that was served and not told of."""
    left = {stray.container: stray for stray in strays}
    for gang in app.gangs.values():
        if gang.phase is GangPhase.RENEWING:
            group = [left[m.former] for m in gang.members if m.former in left]
            if len(group) == len(gang.members):
                yield gang, _without(left, group)
    lacking = Counter({key: -count for key, count in app.free().items() if count < 0})
    for gang in app.gangs.values():
        if not lacking or not left:
            return
        if gang.phase is GangPhase.WAITING and gang.needs <= lacking:
            found = _served(gang, left)
            if found:
                lacking.subtract(gang.needs)
                lacking = +lacking
                yield gang, _without(left, found)


def _served(gang: Gang, left: dict[str, Stray]) -> list[Stray]:
    """The oldest strays that serve a gang's asks, in rank order; empty where one is missing."""
    by_ask: dict[AskKey, list[Stray]] = {}
    for stray in left.values():
        by_ask.setdefault(stray.key, []).append(stray)
    found: list[Stray] = []
    for member in gang.members:
        queue = by_ask.get(member.key, [])
        if not queue or queue[0].worker != member.worker:
            return []
        found.append(queue.pop(0))
    return found


def _without(left: dict[str, Stray], group: list[Stray]) -> list[Stray]:
    for stray in group:
        del left[stray.container]
    return group


# ---------------------------------------------------------------------- jobs that are not


def _by_rule(
    app: Application, strays: list[Stray], *, is_ours: bool
) -> Iterator[tuple[list[Stray], bool]]:
    """Groups in order of their ids, and whether more may belong to each.

    Where the core does not place, each container is alone: nothing there is ever stopped for another, so it does
    not matter who belongs to whom.
    """
    masters = [stray for stray in strays if stray.is_master]
    for stray in masters:
        yield [stray], False
    strays = [stray for stray in strays if not stray.is_master]
    is_alone = app.rule is GangRule.INDEPENDENT or app.is_single
    if is_alone or not is_ours:
        for stray in strays:
            yield [stray], not is_alone
        return
    if app.rule is not GangRule.DECLARED:
        if strays:
            yield strays, True
        return
    whole = len(strays) - len(strays) % app.size
    for first in range(0, whole, app.size):
        yield strays[first : first + app.size], False
    if strays[whole:]:
        yield strays[whole:], True
