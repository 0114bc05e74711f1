"""What is lost or ends on the ResourceManager's side, as events of the core. Pure.

A container that ends is judged by how it ended: an AM that lets its workers go is finishing, anything else breaks the
gang (G-13).
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from gandiva_core.messages.events import (
    Event,
    GangBroken,
    JobFailed,
    JobFinished,
    JobKilled,
    ServerLost,
)
from yarn_plugin.bridge import wire
from yarn_plugin.bridge.adoption import adopt
from yarn_plugin.bridge.gangs import Application, Gang, GangPhase, GangRule, Member
from yarn_plugin.bridge.register import Register

_SUCCESS = 0
_LET_GO = frozenset({_SUCCESS, -100, -105, -107})
"""Exit statuses of workers that were let go: done, released by the AM (-100, -105), or their application ended (-107).

YARN says -100 for a lost node too; those are taken out by the node's own event.
"""
_FINISHED = frozenset({"FINISHED", "SUCCEEDED", "ENDED"})


def node_removed(
    register: Register, node: str, ended: Container[str], at_s: float
) -> Iterator[Event]:
    """A node is gone; gangs that lost a container there have to be asked for again.

    Args:
        register: of the bridge.
        node: its id.
        ended: containers there that ended with it. The ResourceManager tells each: one that it does not tell was made
            after the node had come back already, and waits for the core to hear of that.
        at_s: the time of the events.
    """
    server = register.drop_server(node)
    if server is None:
        return
    yield ServerLost(at_s, server.server_id, "its NodeManager is gone")
    for app, gang in list(register.gangs()):
        here = [member for member in gang.members if member.container and member.node == node]
        lost = [m for m in here if m.exit_status is not None or m.container in ended]
        if here and not lost:
            register.scatter(app, gang)
        for member in lost:
            register.lose(gang, member)
        if lost and _goes_on(app, gang):
            yield from _left_behind(register, app, gang, at_s)
            continue
        if here and gang.is_piece and len(gang.members) == 1:
            # Nobody asked the core for it, nor will ask again.
            register.remove(app, gang)
            failed = JobFailed(at_s, gang.job_id, f"{node} was lost")
            yield failed if lost else JobKilled(at_s, gang.job_id)
    for app in register.apps.values():
        for stray in [stray for stray in app.strays.values() if stray.container in ended]:
            del app.strays[stray.container]


def nodes_missing(register: Register, nodes: Container[str], at_s: float) -> Iterator[Event]:
    """Nodes that are not in a snapshot may come back with their containers, after the ResourceManager's restart.

    So nothing of a gang that was there is given back: what is left of it can be adopted.
    """
    for node in [node for node in register.servers if node not in nodes]:
        yield from node_removed(register, node, (), at_s)


def application_ended(
    register: Register, app_id: str, final_state: str, at_s: float
) -> Iterator[Event]:
    """All jobs of an application end as it did."""
    app = register.apps[app_id]
    for gang in list(app.gangs.values()):
        register.remove(app, gang)
        if final_state in _FINISHED:
            yield JobFinished(at_s, gang.job_id)
        elif final_state == "KILLED":
            yield JobKilled(at_s, gang.job_id)
        else:
            yield JobFailed(at_s, gang.job_id, f"application {final_state or 'gone'}")
    del register.apps[app_id]


def withdrawn(register: Register, app: Application, at_s: float) -> Iterator[Event]:
    """Jobs leave whose asks are no longer there."""
    for gang in app.withdrawn():
        del register.app_of[gang.job_id]
        yield JobKilled(at_s, gang.job_id)


def prioritised(
    register: Register, app: Application, priority: int, at_s: float
) -> Iterator[Event]:
    """What waits will do so anew under another priority; what has its containers keeps its place."""
    if priority == app.priority:
        return
    app.priority = priority
    for gang in [gang for gang in app.gangs.values() if gang.phase is GangPhase.WAITING]:
        register.remove(app, gang)
        yield JobKilled(at_s, gang.job_id)


def new_attempt(register: Register, app: Application, attempt: str, at_s: float) -> Iterator[Event]:
    """An application master was started again: what it let go is asked for anew, what it keeps goes on."""
    app.attempt = attempt
    app.asks = {}
    for gang in list(app.gangs.values()):
        if gang.phase is GangPhase.WAITING and gang.is_growth:
            register.remove(app, gang)
            yield JobKilled(at_s, gang.job_id)
        elif gang.phase is GangPhase.WAITING or gang.is_drained:
            yield from break_gang(gang, at_s, "its application master was started again")


def break_gang(gang: Gang, at_s: float, reason: str) -> Iterator[Event]:
    """Its containers have to be asked for again."""
    was_held = gang.phase is GangPhase.HELD
    gang.phase = GangPhase.RENEWING
    if was_held:
        yield GangBroken(at_s, gang.job_id, reason)


def is_alone(app: Application, gang: Gang) -> bool:
    """Whether the end of its one container is the end of the job."""
    is_single_piece = gang.is_piece and len(gang.members) == 1
    is_single = app.rule is GangRule.INDEPENDENT or gang.is_growth
    return (is_single and len(gang.members) == 1) or gang.site.is_master or is_single_piece


def container_completed(
    register: Register, event: wire.ContainerCompleted, app: Application, at_s: float
) -> Iterator[Event]:
    """A container ended, and perhaps its job."""
    app.strays.pop(event.container, None)
    job_id = register.job_of.get(event.container)
    if job_id is None:
        return
    gang = app.gangs[job_id]
    member = next(m for m in gang.members if m.container == event.container)
    if is_alone(app, gang):
        register.remove(app, gang)
        yield _single_end(gang, event.exit_status, at_s)
    elif event.exit_status in _LET_GO and gang.phase is GangPhase.HELD:
        member.exit_status = event.exit_status
        if all(m.exit_status == _SUCCESS for m in gang.members):
            register.remove(app, gang)
            yield JobFinished(at_s, job_id)
    else:
        reason = f"{member.container} on {member.node} ended with status {event.exit_status}"
        yield from _workers_lost(register, app, gang, [member], GangBroken(at_s, job_id, reason))


def vanished(
    register: Register, app: Application, gang: Gang, live: frozenset[str], at_s: float
) -> Iterator[Event]:
    """Containers of a gang are not in a snapshot: how they ended is not known.

    A job of which nothing is left has ended, unless its asks are back already; one that lost a part is broken.
    """
    gone = [m for m in gang.members if m.container and m.container not in live]
    lost = [member for member in gone if member.exit_status is None]
    if not lost:
        return
    if is_alone(app, gang) or (len(gone) == len(gang.members) and not app.asks_cover(gang)):
        register.remove(app, gang)
        yield JobFailed(at_s, gang.job_id, "its containers ended while events were lost")
        return
    reason = f"{lost[0].container} on {lost[0].node} ended while events were lost"
    yield from _workers_lost(register, app, gang, lost, GangBroken(at_s, gang.job_id, reason))


def _workers_lost(
    register: Register, app: Application, gang: Gang, members: Sequence[Member], broken: GangBroken
) -> Iterator[Event]:
    was_held = gang.phase is GangPhase.HELD
    for member in members:
        register.lose(gang, member)
    if was_held and _goes_on(app, gang):
        yield from _left_behind(register, app, gang, broken.at_s)
    elif was_held:
        yield broken


def _goes_on(app: Application, gang: Gang) -> bool:
    """Whether the rest of a gang that lost a worker runs on.

    Nobody said that the workers of a soft one need each other: its master decides, as under stock code.
    """
    return app.rule is GangRule.SOFT and bool(gang.live)


def _left_behind(register: Register, app: Application, gang: Gang, at_s: float) -> Iterator[Event]:
    """Nothing of it is given back: what is left goes on as another job."""
    app_id = register.app_of[gang.job_id]
    register.scatter(app, gang)
    register.remove(app, gang)
    yield JobKilled(at_s, gang.job_id)
    yield from adopt(register, app_id, at_s)


def _single_end(gang: Gang, exit_status: int, at_s: float) -> Event:
    if exit_status in _LET_GO:
        return JobFinished(at_s, gang.job_id)
    return JobFailed(at_s, gang.job_id, f"container ended with status {exit_status}")
