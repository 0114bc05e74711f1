"""Orders to launchers: one at a time a worker, with a time limit, and idempotent over lines and agents that are lost.

An order whose time is over counts as failed and its worker as it was. What such a worker answers after all is undone:
one that stopped too late is continued, because the core was told that it runs (G-12).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from typing import Any

from gandiva_core.messages.agents import WorkerState
from nodemanager_agent.lifecycle import FOUND
from nodemanager_agent.ports import Ports
from nodemanager_agent.workers import Done, Order, Outcome, Undone, Worker

GRACE_S = 2.0
"""For a launcher's own time-out to reach us before ours."""

GOALS = {
    "start": WorkerState.RUNNING,
    "resume": WorkerState.RUNNING,
    "restore": WorkerState.RUNNING,
    "suspend": WorkerState.SUSPENDED,
    "save": WorkerState.SUSPENDED,
    "warm": WorkerState.STARTING,
    "release": WorkerState.ENDED,
}


class Orders:
    """Gives orders and takes answers.

    Args:
        late: told of a worker that carried out an order which had been given up, and the order's op.
    """

    def __init__(self, ports: Ports, late: Callable[[Worker, str], None]) -> None:
        self._ports = ports
        self._late = late

    def give(
        self,
        worker: Worker,
        op: str,
        within_s: float,
        then: Callable[[Outcome], None],
        **values: Any,
    ) -> None:
        """Order; `then` hears the outcome once, at the latest `within_s` and a little from now."""
        until_s = self._ports.monotonic() + within_s + GRACE_S
        order = Order(secrets.token_hex(6), op, GOALS[op], values, until_s, then)
        if worker.ordered is None:
            worker.ordered = order
            self._send(worker, order)
        else:
            worker.queued.append(order)

    def answered(self, worker: Worker, message: Mapping[str, Any]) -> None:
        """A launcher's ``done`` or ``failed``."""
        key = str(message.get("id"))
        outcome = _outcome(message, self._ports.wall())
        order = worker.ordered
        if order is not None and order.id == key:
            self._finish(worker, outcome)
        elif key in worker.late:
            op = worker.late.pop(key)
            if isinstance(outcome, Done):
                self._late(worker, op)

    def registered(self, worker: Worker, state: str) -> None:
        """A launcher is there again: its order was carried out meanwhile, is under way, or is said anew."""
        order = worker.ordered
        if order is None:
            return
        if state == order.goal.value and order.op not in ("warm", "restore"):
            self._finish(worker, Done(self._ports.wall()))
        elif state in ("starting", "suspending", "resuming"):
            order.is_sent = False
        else:
            self._send(worker, order)

    def told_state(self, worker: Worker, state: str) -> None:
        """A launcher said its state in passing; counts for an order whose answer a lost line took along."""
        order = worker.ordered
        if order is not None and not order.is_sent and state == order.goal.value:
            self._finish(worker, Done(self._ports.wall()))

    def lost(self, worker: Worker) -> None:
        """Its line is closed."""
        if worker.ordered is not None:
            worker.ordered.is_sent = False

    def ended(self, worker: Worker) -> None:
        """It ended: every order is over."""
        while worker.ordered is not None:
            order = worker.ordered
            done = order.goal is WorkerState.ENDED
            self._finish(worker, Done(self._ports.wall()) if done else Undone("ENDED", "it ended"))

    def advance(self, worker: Worker, now_s: float) -> None:
        """Give up what took too long; what waits behind it counts from its own time."""
        for order in [each for each in worker.queued if now_s >= each.until_s]:
            worker.queued.remove(order)
            order.then(Undone("NO_ANSWER", "an earlier order is still under way"))
        order_now = worker.ordered
        if order_now is not None and now_s >= order_now.until_s:
            worker.late[order_now.id] = order_now.op
            self._finish(worker, Undone("NO_ANSWER", f"no answer to {order_now.op} in time"))

    def _finish(self, worker: Worker, outcome: Outcome) -> None:
        order, worker.ordered = worker.ordered, None
        if worker.queued:
            worker.ordered = worker.queued.popleft()
            self._send(worker, worker.ordered)
        if order is not None:
            order.then(outcome)

    def _send(self, worker: Worker, order: Order) -> None:
        order.is_sent = self._ports.launchers.send(
            worker.container_id, order.op, id=order.id, **order.values
        )


def found(state: str) -> WorkerState | None:
    """A launcher's word for its state; what was saved stands still like a suspended one. None where it is no state."""
    if state == "saved":
        return WorkerState.SUSPENDED
    try:
        known = WorkerState(state)
    except ValueError:
        return None
    return known if known in FOUND else None


def _outcome(message: Mapping[str, Any], now_s: float) -> Outcome:
    if message["op"] == "failed":
        return Undone(str(message.get("code") or "FAILED"), str(message.get("detail") or ""))
    figures = message.get("figures")
    numbers = figures.items() if isinstance(figures, dict) else ()
    return Done(now_s, {str(k): float(v) for k, v in numbers if isinstance(v, int | float)})
