"""The one door: `Engine.handle` takes a fact, asks the policy, checks and applies its decisions, and orders the rest.

An event succeeds whole or changes nothing (DESIGN §3): an exception out of the policy, and a contradiction
found by the invariants, undo it, number and time included. Not safe to call from several threads, nor from
inside a policy.
"""

from __future__ import annotations

from typing import Literal, NoReturn

from gandiva_core.config.settings import Settings
from gandiva_core.engine import invariants
from gandiva_core.engine.errors import PolicyError
from gandiva_core.engine.expansion import Expansion
from gandiva_core.engine.facts import Facts
from gandiva_core.engine.ledger import Ledger
from gandiva_core.engine.lifecycle import Lifecycle
from gandiva_core.engine.snapshot import EngineSnapshot, rebuild, take
from gandiva_core.engine.state import UNDECIDED, State
from gandiva_core.messages.decisions import ACCEPTED, Decision, Enqueue, Verdict
from gandiva_core.messages.effects import Effect
from gandiva_core.messages.events import Event, JobSubmitted
from gandiva_core.messages.policy import Decisions, Outcome, Policy, Refusal
from gandiva_core.model.errors import InvariantError
from gandiva_core.model.job import JobPhase
from gandiva_core.model.view import ClusterView

CheckLevel = Literal["touched", "full"]
"""Invariants after every event: of what the event touched, or of everything and from scratch."""

_DECISIONS_FLOOR = 10_000
_DECISIONS_PER_JOB = 64


class Engine:
    """The scheduler of every policy arm; implements `Scheduler`.

    Args:
        policy: who decides.
        settings: `height_max` is enforced here, the rest is the policy's.
        check: see `CheckLevel`.
    """

    def __init__(
        self, policy: Policy, settings: Settings, *, check: CheckLevel = "touched"
    ) -> None:
        self._policy = policy
        self._check = check
        self._bind(State(settings.height_max))

    def _bind(self, state: State) -> None:
        self._state = state
        self._ledger = Ledger(state)
        lifecycle = Lifecycle(self._ledger)
        self._facts = Facts(self._ledger, lifecycle)
        self._expansion = Expansion(self._ledger, lifecycle)

    @property
    def view(self) -> ClusterView:
        """The live state, read-only."""
        return self._state

    @property
    def number(self) -> int:
        """Of the last event that was handled; 0 before the first."""
        return self._state.number

    @property
    def ignored(self) -> int:
        """Events, and entries of switch reports, that came too late or from nowhere."""
        return self._state.ignored

    def snapshot(self) -> EngineSnapshot:
        """The whole state between two events, frozen."""
        return take(self._state)

    @classmethod
    def restore(
        cls,
        taken: EngineSnapshot,
        policy: Policy,
        settings: Settings,
        *,
        check: CheckLevel = "touched",
    ) -> Engine:
        """An engine that goes on exactly where `taken` was taken.

        Raises:
            InputError: for a snapshot that contradicts itself.
        """
        engine = cls(policy, settings, check=check)
        engine._bind(rebuild(taken, settings.height_max))
        return engine

    def handle(self, event: Event) -> Outcome:
        """Book one event and decide on it.

        Raises:
            InputError: time goes backwards, or the message contradicts itself; nothing has changed.
            PolicyError: the policy raised or broke its contract; nothing has changed.
            InvariantError: a bug of ours; nothing has changed.
        """
        state = self._state
        before = state.number, state.now_s
        state.number += 1
        try:
            outcome = self._handle(event)
            invariants.check(self._ledger, is_full=self._check == "full")
        except BaseException as error:
            number = state.number
            self._ledger.rollback(0)
            self._ledger.seal()
            state.number, state.now_s = before
            if isinstance(error, InvariantError):
                raise InvariantError(f"event {number}: {error}; the event was undone") from error
            raise
        self._ledger.seal()
        return outcome

    def _handle(self, event: Event) -> Outcome:
        effects: list[Effect] = []
        decisions: list[Decision] = []
        refusals: list[Refusal] = []
        if self._facts.book(event, effects):
            self._drive(event, decisions, refusals, effects)
            if type(event) is JobSubmitted:
                self._settle_undecided(event, decisions, effects)
        return Outcome(self._state.number, tuple(decisions), tuple(refusals), tuple(effects))

    def _drive(
        self,
        event: Event,
        decisions: list[Decision],
        refusals: list[Refusal],
        effects: list[Effect],
    ) -> None:
        """Ask the policy until it has nothing more to say."""
        apply = self._expansion.apply
        limit = max(_DECISIONS_FLOOR, _DECISIONS_PER_JOB * len(self._state.jobs))
        wishes = self._listen(event)
        decision = self._next(wishes, None)
        while decision is not None:
            reason = apply(decision, effects)
            if reason is None:
                decisions.append(decision)
                verdict = ACCEPTED
            else:
                refusals.append(Refusal(decision, reason))
                verdict = Verdict(False, reason)
            if len(decisions) + len(refusals) > limit:
                self._blame(f"more than {limit} decisions on one event")
            decision = self._next(wishes, verdict)

    def _listen(self, event: Event) -> Decisions:
        try:
            return self._policy.decide(event, self._state)
        except Exception as error:  # a policy may be anybody's: its bug undoes the event, no more
            self._blame(f"{type(error).__name__}: {error}", error)

    def _next(self, wishes: Decisions, verdict: Verdict | None) -> Decision | None:
        """The policy's next wish, of a known kind; None when it is done."""
        try:
            decision = next(wishes) if verdict is None else wishes.send(verdict)
        except StopIteration:
            return None
        except Exception as error:  # as above
            self._blame(f"{type(error).__name__}: {error}", error)
        if type(decision) not in self._expansion.kinds:
            self._blame(f"{decision!r} is no decision")
        return decision

    def _blame(self, problem: str, error: Exception | None = None) -> NoReturn:
        raise PolicyError(self._state.number, self._policy.name, problem) from error

    def _settle_undecided(
        self, event: JobSubmitted, decisions: list[Decision], effects: list[Effect]
    ) -> None:
        """A job that the policy left in SUBMITTED waits, and its journal says that nobody said why."""
        job_id = event.job.job_id
        if self._state.jobs[job_id].phase is JobPhase.SUBMITTED:
            decision = Enqueue(job_id, UNDECIDED)
            self._expansion.apply(decision, effects)
            decisions.append(decision)
