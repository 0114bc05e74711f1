"""An accepted decision becomes changes of the ledger and effects for the outside, each with its cause."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gandiva_core.engine import checks
from gandiva_core.engine.ledger import Ledger
from gandiva_core.engine.lifecycle import Lifecycle
from gandiva_core.engine.state import Moving
from gandiva_core.messages.decisions import (
    Decision,
    Enqueue,
    Migrate,
    Place,
    Remember,
    Switch,
    WakeAt,
)
from gandiva_core.messages.effects import (
    CommitGang,
    Effect,
    OpenMove,
    StartTimer,
    SwitchResidents,
)
from gandiva_core.model.units import JobId


class Expansion:
    """Judges decisions one at a time and applies those that may be."""

    def __init__(self, ledger: Ledger, lifecycle: Lifecycle) -> None:
        self._ledger = ledger
        self._lifecycle = lifecycle
        self._state = ledger.state
        self._by_kind: dict[type, Callable[[Any, list[Effect]], str | None]] = {
            Place: self._place,
            Enqueue: lambda decision, _: self._enqueue(decision),
            Switch: self._switch,
            Migrate: self._migrate,
            Remember: lambda decision, _: self._remember(decision),
            WakeAt: self._wake_at,
        }
        self.kinds = frozenset(self._by_kind)

    def apply(self, decision: Decision, effects: list[Effect]) -> str | None:
        """Apply a decision, one of `kinds`, whole and append its effects; or return why not and change nothing."""
        return self._by_kind[type(decision)](decision, effects)

    def _place(self, decision: Place, effects: list[Effect]) -> str | None:
        problem = checks.check_place(self._state, decision)
        if problem is None:
            job = self._state.jobs[decision.job_id]
            self._lifecycle.place(job, decision.servers)
            effects.append(
                CommitGang(self._state.number, decision.job_id, decision.servers, job.spec.workers)
            )
        return problem

    def _enqueue(self, decision: Enqueue) -> str | None:
        problem = checks.check_enqueue(self._state, decision)
        if problem is None:
            self._lifecycle.enqueue(self._state.jobs[decision.job_id], decision.reason)
        return problem

    def _switch(self, decision: Switch, effects: list[Effect]) -> str | None:
        problem = checks.check_switch(self._state, decision)
        if problem is not None:
            return problem
        state = self._state
        switch_id = self._next_switch_id()
        for job_id in decision.suspend:
            self._lifecycle.order_suspend(state.jobs[job_id], switch_id)
        for run in decision.run:
            self._lifecycle.order_run(state.jobs[run.job_id], run.bindings, switch_id)
        servers = state.domain(state.jobs[_some_job(decision)].servers[0])
        effects.append(
            SwitchResidents(
                state.number,
                switch_id,
                servers,
                decision.suspend,
                decision.run,
                decision.prepare,
            )
        )
        return None

    def _next_switch_id(self) -> int:
        switch_id = self._state.next_switch_id
        self._ledger.undo.write(self._state, "next_switch_id", switch_id + 1)
        return switch_id

    def _stop(self, job_id: JobId, effects: list[Effect]) -> None:
        state, switch_id = self._state, self._next_switch_id()
        job = state.jobs[job_id]
        self._lifecycle.order_suspend(job, switch_id)
        servers = state.domain(job.servers[0])
        effects.append(SwitchResidents(state.number, switch_id, servers, (job_id,)))

    def _migrate(self, decision: Migrate, effects: list[Effect]) -> str | None:
        problem = checks.check_migrate(self._state, decision)
        if problem is not None:
            return problem
        state, job_id = self._state, decision.job_id
        for victim in decision.suspend:
            self._stop(victim, effects)
        move_id = state.next_move_id
        self._ledger.undo.write(state, "next_move_id", move_id + 1)
        job = state.jobs[job_id]
        self._lifecycle.order_move(job, Moving(move_id, decision.servers, decision.bindings))
        effects.append(OpenMove(state.number, move_id, job_id, decision.servers, job.spec.workers))
        return None

    def _remember(self, decision: Remember) -> str | None:
        problem = checks.check_remember(decision)
        if problem is None:
            memory = self._state.memory
            if decision.values:
                self._ledger.undo.write_entry(memory, decision.key, dict(decision.values))
            elif decision.key in memory:
                self._ledger.undo.drop_entry(memory, decision.key)
        return problem

    def _wake_at(self, decision: WakeAt, effects: list[Effect]) -> str | None:
        problem = checks.check_wake(self._state, decision)
        if problem is None and self._state.wakes.get(decision.key) != decision.at_s:
            self._ledger.undo.write_entry(self._state.wakes, decision.key, decision.at_s)
            effects.append(StartTimer(self._state.number, decision.key, decision.at_s))
        return problem


def _some_job(decision: Switch) -> JobId:
    if decision.suspend:
        return decision.suspend[0]
    return (decision.run or decision.prepare)[0].job_id
