"""From the core's effects to the ResourceManager's orders, and from its answers back to the core's events. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

from gandiva_core.messages.effects import (
    CloseMove,
    CommitGang,
    ContainerEffect,
    OpenMove,
    ReleaseGang,
)
from gandiva_core.messages.events import (
    Event,
    GangCommitted,
    GangRefused,
    GangResized,
    JobKilled,
    MoveCommitted,
    MoveFailed,
)
from yarn_plugin.bridge.adoption import adopt
from yarn_plugin.bridge.gangs import Application, Gang, GangPhase
from yarn_plugin.bridge.moves import MoveDesk, MoveRefusedError, move_of
from yarn_plugin.bridge.register import Register
from yarn_plugin.bridge.resizes import ResizeDesk
from yarn_plugin.bridge.wire import Answer, CommitOrder, ContainerOrder, Order, ReleaseOrder

OK = "OK"
ASK_GONE = "ASK_GONE"
NODE_STATE = "NODE_STATE"
NOT_ADOPTED = "NOT_ADOPTED"
MODE = "MODE"


class Orders(msgspec.Struct, frozen=True):
    """What effects became: orders for the ResourceManager, and events that need none of its answers.

    Attributes:
        refused: commits that cannot be ordered, and gangs whose containers stay although the core let them go.
    """

    orders: tuple[Order, ...]
    refused: tuple[Event, ...] = ()


@dataclass(slots=True)
class OrderDesk:
    """Writes orders for effects and books their answers in the register.

    Attributes:
        resizes: None where nobody can resize anything.
    """

    register: Register
    resizes: ResizeDesk | None = None
    moves: MoveDesk = field(init=False)
    _open: dict[str, CommitGang] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.moves = MoveDesk(self.register)

    def write(self, effects: Sequence[ContainerEffect], at_s: float) -> Orders:
        """Orders for `effects`, in order. What cannot be ordered at all is refused here and now."""
        orders: list[Order] = []
        refused: list[Event] = []
        for effect in effects:
            if isinstance(effect, OpenMove):
                try:
                    orders += self.moves.begin(effect.move_id, effect.job_id, effect.servers, at_s)
                except MoveRefusedError as error:
                    refused.append(
                        MoveFailed(at_s, effect.move_id, effect.job_id, ASK_GONE, str(error))
                    )
            elif isinstance(effect, CloseMove):
                orders += self.moves.end(effect.move_id, is_done=effect.is_done)
            elif isinstance(effect, CommitGang):
                written = self._commit(effect)
                if isinstance(written, str):
                    code, _, detail = written.partition(" ")
                    refused.append(GangRefused(at_s, effect.job_id, code, detail))
                else:
                    self._open[written.id] = effect
                    orders.append(written)
            else:
                released = self._release(effect, at_s)
                orders += [each for each in released if isinstance(each, ReleaseOrder)]
                refused += [each for each in released if not isinstance(each, ReleaseOrder)]
        return Orders(tuple(orders), tuple(refused))

    def _commit(self, effect: CommitGang) -> CommitOrder | str:
        found = self.register.find(effect.job_id)
        if found is None:
            return f"{ASK_GONE} the application has left"
        app, gang = found
        if gang.phase is not GangPhase.WAITING:
            return f"{ASK_GONE} its application master has not asked for all containers again"
        if not app.scope.has(app.queue, gang.site.label):
            return f"{NOT_ADOPTED} {app.queue}"
        if not app.scope.places(app.queue, gang.site.label):
            return f"{MODE} {app.scope.mode}: stock code schedules"
        try:
            nodes = [self.register.node_of[server] for server in effect.servers]
            members = gang.in_order(effect.workers)
        except KeyError as error:
            return f"{NODE_STATE} no such server {error.args[0]}"
        except LookupError as error:
            return f"{ASK_GONE} {error}"
        gang.members = members
        containers = tuple(
            ContainerOrder(node, *member.key, worker.memory_mib, worker.vcores, worker.gpus)
            for node, member, worker in zip(nodes, members, effect.workers, strict=True)
        )
        return CommitOrder(f"{effect.cause}/{effect.job_id}", app.attempt, containers)

    def _release(self, effect: ReleaseGang, at_s: float) -> Sequence[ReleaseOrder | Event]:
        found = self.register.find(effect.job_id)
        if found is None:
            return ()
        app, gang = found
        if gang.phase is GangPhase.HELD and gang.is_found:
            return ()  # found whole again, since the event that broke it; the core is about to hear of it
        if not app.scope.places(app.queue, gang.site.label):
            return list(self._let_be(app, gang, at_s))
        live = tuple(gang.live)
        if gang.phase is not GangPhase.WAITING:
            self.register.forget_containers(gang)
        # Not the id of a commit of the same job in the same batch.
        order_id = f"{effect.cause}/{effect.job_id}/release"
        orders = (ReleaseOrder(order_id, app.attempt, live),) if live else ()
        return (*orders, *self._ungrown(app, gang, at_s))

    def _ungrown(self, app: Application, gang: Gang, at_s: float) -> Iterator[Event]:
        """What was added is not asked for again: a gang that starts again has the size that it asked for."""
        if gang.is_growth:
            self.register.remove(app, gang)
            yield JobKilled(at_s, gang.job_id)
        elif len(gang.original) < len(gang.members):
            kept = tuple(gang.original)
            gang.members = [gang.members[at] for at in kept]
            yield GangResized(at_s, gang.job_id, kept)

    def _let_be(self, app: Application, gang: Gang, at_s: float) -> Iterator[Event]:
        """Where nothing is carried out, containers of a broken gang stay: each is a job of its own."""
        app_id = self.register.app_of[gang.job_id]
        if gang.phase is not GangPhase.WAITING:
            self.register.scatter(app, gang)
        if not app.scope.has(app.queue, gang.site.label):
            self.register.remove(app, gang)
            yield JobKilled(at_s, gang.job_id)
        yield from adopt(self.register, app_id, at_s)

    def book(self, answers: Sequence[Answer], at_s: float) -> list[Event]:
        """Events for the answers to what `write` ordered; answers to anything else mean nothing to the core."""
        out: list[Event] = []
        for answer in answers:
            effect = self._open.pop(answer.id, None)
            if effect is None:
                out += self._book_move(answer, at_s)
                continue
            found = self.register.find(effect.job_id)
            if answer.code != OK or found is None:
                out.append(GangRefused(at_s, effect.job_id, answer.code, answer.detail))
            else:
                out.append(self._committed(effect, answer, *found, at_s=at_s))
        return out

    def _book_move(self, answer: Answer, at_s: float) -> Iterator[Event]:
        number = move_of(answer.id)
        booked = self.moves.book(answer)
        if booked is not None:
            move_id, move = booked
            if move.containers:
                yield MoveCommitted(at_s, move_id, move.job_id, move.containers)
            else:
                yield MoveFailed(at_s, move_id, move.job_id, answer.code, answer.detail)
        elif number is not None and answer.code != OK:
            job_id = self.moves.job_of(number)  # one that ends is not known any more
            if job_id is not None:
                yield MoveFailed(at_s, number, job_id, answer.code, answer.detail)

    def due(self, at_s: float) -> Orders:
        """What moves need now: new containers whose masters have asked for them."""
        late = [
            MoveFailed(at_s, move_id, job_id, ASK_GONE, "its master asks for no second container")
            for move_id, job_id in self.moves.late(at_s)
        ]
        return Orders((*self.moves.due(), *self.moves.unwanted()), tuple(late))

    def _committed(
        self, effect: CommitGang, answer: Answer, app: Application, gang: Gang, *, at_s: float
    ) -> Event:
        app.committed(gang)
        placed = zip(gang.members, answer.containers, effect.servers, strict=True)
        for member, container, server_id in placed:
            member.container = container
            member.node = self.register.node_of[server_id]
            member.exit_status = None
            self.register.job_of[container] = gang.job_id
        return GangCommitted(at_s, gang.job_id, answer.containers)
