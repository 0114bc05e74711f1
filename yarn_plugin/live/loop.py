"""The live loop: events of the ResourceManager into the engine, its orders back, timers in between."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import msgspec

from gandiva_core.messages.effects import (
    FOR_CONTAINERS,
    FOR_WORLD,
    CloseMove,
    CommitGang,
    ContainerEffect,
    Effect,
    ReleaseGang,
    WorldEffect,
)
from gandiva_core.messages.events import Event, GangRefused, JobAdopted
from gandiva_core.messages.policy import Scheduler
from gandiva_core.model.errors import InvariantError
from gandiva_core.model.units import ServerId
from gandiva_core.runtime.clock import Clock
from gandiva_core.runtime.journal import EntrySink, entry_of
from gandiva_core.runtime.ports import World
from yarn_plugin.bridge.gateway import GatewayError, json_object
from yarn_plugin.bridge.orders import OK, OrderDesk
from yarn_plugin.bridge.translate import Translator
from yarn_plugin.bridge.wire import (
    Adoption,
    Answer,
    Batch,
    CommitOrder,
    Notice,
    Order,
    Resync,
    RmEvent,
    Settings,
    decode_batch,
)
from yarn_plugin.live.explain import Explanations
from yarn_plugin.live.reported import ReportedAgents
from yarn_plugin.live.servers import ServerRules

EVENTS_A_CALL = 10_000
WAIT_MS_MAX = 400
"""A long poll: how long the gateway may keep us when it has nothing. A second without a call is silence."""

AGENTS_WAIT_MS_MAX = 20
"""The same while agents may answer: a stop is to be passed on within a fraction of a mini-batch."""

EVENTS_A_TURN_MAX = 500_000
"""More is a policy and a ResourceManager that answer each other for ever."""

ORDERS_A_CALL = 32
"""Decisions that wait for one another before they are sent: a call costs as much as the commit of a small gang."""

_LOST = "STALE_EPOCH"
ADOPTING = "ADOPTING"


class Session(Protocol):
    """What is used of `yarn_plugin.bridge.gateway.Gateway`. Each call may raise `GatewayError`."""

    def take_events_text(self, count_max: int, wait_ms: int) -> str:
        """The scheduler's next events, undecoded."""

    def apply(self, effects: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Orders to the scheduler."""


class Nodes(Protocol):
    """Whose agents come and go."""

    def changed(self) -> Sequence[str]:
        """Nodes of whose agent something is new since the last call."""

    def is_there(self, node: str) -> bool:
        """Whether a node's agent can be talked to."""


class CoreLoop:
    """Everything between two `hello`s and across them; knows no connection, only the session it is handed.

    Args:
        scheduler: the engine.
        translator, desk: sharing a register.
        world: who carries out switches and keeps timers.
        rules: see `ServerRules`.
        clock: the time of every event.
        journal: where entries go; None for nowhere. Closed by whoever made it.
        nodes: None where no agents are waited for.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        translator: Translator,
        desk: OrderDesk,
        world: World,
        rules: ServerRules,
        *,
        clock: Clock,
        journal: EntrySink | None = None,
        nodes: Nodes | None = None,
    ) -> None:
        self._scheduler = scheduler
        self._translator = translator
        self._desk = desk
        self._world = world
        self._rules = rules
        self._clock = clock
        self._journal = journal
        self._nodes = nodes
        self._reported = ReportedAgents(_nobody if nodes is None else nodes.is_there)
        self._explanations = Explanations(desk.register)
        self._inbox: deque[Event] = deque()
        self._unsent: list[ContainerEffect] = []
        self._adopting = 0
        self._lost: GatewayError | None = None
        self.events = 0

    def turn(self, session: Session, wait_ms_max: int | None = None) -> None:
        """One call for events, and all that follows from them and from the time.

        Raises:
            GatewayError: the session is over. What was ordered and not answered counts as refused; whatever really
                came of it is in the next session's snapshot.
            GandivaError: of the engine or the policy; the event was undone.
        """
        self._lost = None
        wait_ms = min(self._patience_ms if wait_ms_max is None else wait_ms_max, self._wait_ms())
        batch = _batch(session.take_events_text(EVENTS_A_CALL, wait_ms))
        now_s = self._clock()
        if any(isinstance(event, Resync) and event.part == 1 for event in batch.events):
            self._rules.new_session()
        translated = self._translator.translate(batch.events, now_s)
        settings = _settings(batch.events)
        events = [] if settings is None else list(self._rules.settle(settings, now_s))
        events += self._rules.complete(translated)
        self._explanations.note_batch(batch.events)
        self._reported.note(batch.events)
        self._raise_heights(session)
        self._take(session, events, now_s)
        if not self._translator.is_reading_snapshot:
            # Until its last part is there, a commit would look like a container that the snapshot does not have.
            self._take(session, self._translator.due(now_s), now_s)
            self._take(session, self._world.advance(now_s).events, now_s)
            self._take(session, self._moves_due(session, now_s), now_s)
            self._resize(session, now_s)
            self._review(session, now_s)
            self._notify(session, self._explanations.due(now_s))
        if self._lost is not None:
            raise self._lost

    @property
    def _patience_ms(self) -> int:
        """Agents' answers are looked at between two calls."""
        return WAIT_MS_MAX if self._nodes is None else AGENTS_WAIT_MS_MAX

    def _resize(self, session: Session, now_s: float) -> None:
        """Masters hear what is wanted; gangs that have other workers are booked at once."""
        resizes = self._desk.resizes
        if resizes is not None:
            resizes.book(self._notify(session, resizes.orders()))
            for event in resizes.due(now_s):
                self._take(session, [event], now_s)

    def _review(self, session: Session, now_s: float) -> None:
        """What servers can do changes with their agents."""
        changed = () if self._nodes is None else self._nodes.changed()
        self._notify(session, self._reported.due(changed))
        if changed:
            reviewed = self._rules.review([ServerId(node) for node in changed], now_s)
            self._take(session, list(reviewed), now_s)
            self._raise_heights(session)

    def _raise_heights(self, session: Session) -> None:
        """Before anything is placed above the physical devices."""
        orders = self._rules.heights()
        codes = {answer.id: answer.code for answer in self._notify(session, orders)}
        for order in orders:
            if codes.get(order.id) == OK:
                self._rules.raised(order)

    def _notify(self, session: Session, notices: Sequence[Notice]) -> Sequence[Answer]:
        if not notices or self._lost is not None:
            return ()
        try:
            return msgspec.convert(session.apply(_plain(notices)), tuple[Answer, ...])
        except GatewayError as error:
            self._lost = error
            return ()

    def _wait_ms(self) -> int:
        """Until something of our own is due."""
        if self._translator.is_reading_snapshot:
            return 0
        times_s = (
            self._world.next_at_s(),
            self._translator.next_at_s(),
            self._explanations.next_at_s(),
            self._desk.moves.next_at_s(),
        )
        due_s = min((time_s for time_s in times_s if time_s is not None), default=None)
        if due_s is None:
            return WAIT_MS_MAX
        left_s = due_s - self._clock()
        # Rounded up: a timer that is a fraction of a millisecond away is not asked for in circles.
        return 0 if left_s <= 0.0 else int(left_s * 1000.0) + 1

    def _take(self, session: Session, events: Iterable[Event], now_s: float) -> None:
        self._receive(events)
        count = 0
        while self._inbox or self._unsent:
            if not self._inbox:
                self._order(session, now_s)
                continue
            event = self._inbox.popleft()
            self._adopting -= isinstance(event, JobAdopted)
            outcome = self._scheduler.handle(event)
            self.events += 1
            count += 1
            if self._journal is not None:
                self._journal.write(entry_of(event, outcome))
            self._explanations.note(event, outcome)
            self._send(session, outcome.effects, now_s)
            if count > EVENTS_A_TURN_MAX:
                raise InvariantError(f"more than {EVENTS_A_TURN_MAX} events in one turn")

    def _receive(self, events: Iterable[Event]) -> None:
        for event in events:
            self._adopting += isinstance(event, JobAdopted)
            self._inbox.append(event)

    def _send(self, session: Session, effects: Sequence[Effect], now_s: float) -> None:
        for_world: list[WorldEffect] = []
        for effect in effects:
            if isinstance(effect, ReleaseGang | CloseMove) and self._unsent:
                # What is released may be what an unsent order is to create.
                self._order(session, now_s)
            if isinstance(effect, CommitGang) and self._adopting:
                # What is there already takes its place first: a server may look empty until then.
                self._receive([GangRefused(now_s, effect.job_id, ADOPTING)])
            elif type(effect) in FOR_CONTAINERS:
                self._unsent.append(effect)  # type: ignore[arg-type]  # by its exact type
            if type(effect) in FOR_WORLD:
                for_world.append(effect)  # type: ignore[arg-type]  # by its exact type
        self._world.apply(now_s, for_world)
        if len(self._unsent) >= ORDERS_A_CALL:
            self._order(session, now_s)

    def _order(self, session: Session, now_s: float) -> None:
        """Send what was decided since the last call; answers are events like all others."""
        effects, self._unsent = self._unsent, []
        written = self._desk.write(effects, now_s)
        self._receive(written.refused)
        if written.orders:
            answers = self._answers(session, written.orders)
            self._receive(self._desk.book(answers, now_s))

    def _moves_due(self, session: Session, now_s: float) -> list[Event]:
        """Second containers that masters have asked for since the last turn."""
        written = self._desk.due(now_s)
        events = list(written.refused)
        if written.orders:
            events += self._desk.book(self._answers(session, written.orders), now_s)
        return events

    def _answers(self, session: Session, orders: Sequence[Order]) -> Sequence[Answer]:
        if self._lost is None:
            try:
                return msgspec.convert(session.apply(_plain(orders)), tuple[Answer, ...])
            except GatewayError as error:
                self._lost = error
        return [
            Answer(order.id, _LOST, f"the gateway was lost: {self._lost}")
            for order in orders
            if isinstance(order, CommitOrder)
        ]


def _nobody(_node: str) -> bool:
    return False


def _batch(text: str) -> Batch:
    """A reply to `takeEvents`; a refusal has no epoch and becomes the `GatewayError` that it names."""
    batch = decode_batch(text)
    if batch.epoch == 0:
        json_object(text)
    return batch


def _settings(events: Sequence[RmEvent]) -> Adoption | None:
    """The last ones told."""
    found: Adoption | None = None
    for event in events:
        if isinstance(event, Settings):
            found = event.adoption
        elif isinstance(event, Resync) and event.settings is not None:
            found = event.settings
    return found


def _plain(orders: Sequence[Order | Notice]) -> list[dict[str, Any]]:
    plain: list[dict[str, Any]] = msgspec.to_builtins(orders)
    return plain
