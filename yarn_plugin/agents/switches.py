"""Switches of jobs on their way: what each node was told of them, and what came of it.

Pure: messages and time are handed in. Each order ends in one event, told whole: a gang runs when all of its workers do.
A gang that stops on several nodes frees a device on one while it may still refuse on another; then it gets the device
back, so a start is told only once the stops are whole that it depends on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from gandiva_core.messages import agents as a
from gandiva_core.messages.effects import SwitchResidents
from gandiva_core.messages.events import Event, GangBroken, ResidentsSwitched, SwitchFailed
from gandiva_core.model.units import JobId
from yarn_plugin.agents.amends import AMENDS, Amends
from yarn_plugin.agents.briefing import Briefing
from yarn_plugin.agents.commands import Commands
from yarn_plugin.agents.lessons import Lessons, forget
from yarn_plugin.agents.orders import JobOrder, devices_of, on_devices, start_order, stop_order
from yarn_plugin.bridge.register import Register

PAUSE_S, PAUSE_S_MAX = 0.5, 8.0
"""A start that failed is told to the engine after this, which doubles with each: it would order it again at once."""

_CANNOT = frozenset({"NOT_SUSPENDABLE", "NO_BOUNDARY", "NOT_STOPPED", "NO_ANSWER"})
"""Codes of a stop that failed because of what the job is; others are about the moment."""


class Switches:
    """Carries out orders through agents.

    Args:
        commands: to agents.
        register: whose container is whose.
        lessons: told of jobs that do not stop.
        briefing: tells nodes whose workers they have before they are told to run them.
    """

    def __init__(
        self, commands: Commands, register: Register, lessons: Lessons, briefing: Briefing
    ) -> None:
        self._commands = commands
        self._nodes = commands.nodes
        self._register = register
        self._lessons = lessons
        self._briefing = briefing
        self._orders: dict[JobId, JobOrder] = {}
        #: The last stop that was to free a device: one entry a device, looked at where the stop is on its way still.
        self._leaving: dict[tuple[str, int], JobOrder] = {}
        #: Starts that were carried out before each stop was whole that frees their devices.
        self._early: list[JobOrder] = []
        #: The last start of each job that runs: where it holds which devices.
        self._placed: dict[JobId, JobOrder] = {}
        self._answered: list[JobOrder] = []
        self._amends = Amends(register)
        #: Starts that failed, and when the engine hears of each.
        self._failed: list[tuple[float, SwitchFailed]] = []
        self._failures: dict[JobId, int] = {}

    # ------------------------------------------------------------------ orders

    def order(self, effect: SwitchResidents) -> None:
        """Tell agents; answers come from later calls of `due` and `obeyed`."""
        orders = [*self._stops(effect), *self._starts(effect)]
        for order in orders:
            self._orders[order.job_id] = order
            for container in order.waiting:
                self._amends.take_back(container)
            if order.is_start:
                self._placed[order.job_id] = order
        self._send(orders)
        for order in orders:
            self._settle(order)

    def repeat(self, node: str) -> None:
        """An agent is there again: orders that wait for workers of its node are sent anew, oldest first."""
        for order in [*self._amends.pending(), *self._orders.values()]:
            if self._waits_for(order, node):
                self._send([order])

    def _stops(self, effect: SwitchResidents) -> Iterator[JobOrder]:
        for job_id in effect.suspend:
            found = self._register.find(job_id)
            if found is not None:
                order = stop_order(effect.switch_id, found[1])
                placed = self._placed.get(job_id)
                order.runs = {} if placed is None else placed.runs
                self._leaving.update(dict.fromkeys(devices_of(order), order))
                yield order

    def _starts(self, effect: SwitchResidents) -> Iterator[JobOrder]:
        for run in effect.run:
            found = self._register.find(run.job_id)
            if found is not None:
                plain = start_order(effect.switch_id, run, found[1], self._register.node_of)
                order = on_devices(plain, self._nodes)
                stops = (self._leaving.get(device) for device in devices_of(order))
                order.behind = list({id(stop): stop for stop in stops if stop is not None}.values())
                self._briefing.expect(*found)
                yield order

    def _waits_for(self, order: JobOrder, node: str) -> bool:
        found = self._register.find(order.job_id)
        members = () if found is None else found[1].members
        return any(m.node == node and m.container in order.waiting for m in members)

    def _send(self, orders: Iterable[JobOrder]) -> None:
        """One command a node; workers of nodes without an agent count as obedient."""
        suspend: dict[str, list[str]] = {}
        run: dict[str, list[a.RunWorker]] = {}
        switch_id = 0
        for order in orders:
            switch_id = order.switch_id
            runs = {w.container_id: w for workers in order.runs.values() for w in workers}
            found = self._register.find(order.job_id)
            for member in () if found is None else found[1].members:
                container, node = member.container, member.node
                if not container or container not in order.waiting:
                    continue
                if node not in self._nodes:
                    order.waiting.discard(container)
                    order.done.append(container)
                elif not order.is_start:
                    suspend.setdefault(node, []).append(container)
                else:
                    mine = [runs[container]] if container in runs else []
                    run.setdefault(node, []).extend(mine)
        for node in dict.fromkeys([*suspend, *run]):
            stops, starts = tuple(suspend.get(node, ())), tuple(run.get(node, ()))
            self._commands.tell(node, a.SwitchWorkers, switch_id, stops, starts)
            self._briefing.tell_table(node, self._placed)

    def _settle(self, order: JobOrder) -> None:
        """Whether an order is carried out whole: a start only once nobody can be called back for its devices."""
        if order.waiting or self._orders.get(order.job_id) is not order:
            return
        if any(map(self._is_on_its_way, order.behind)):
            self._early.append(order)
            return
        del self._orders[order.job_id]
        self._answered.append(order)
        if order.is_start:
            self._failures.pop(order.job_id, None)
        else:
            self._placed.pop(order.job_id, None)

    def _is_on_its_way(self, stop: JobOrder) -> bool:
        """Whether workers have yet to stop that are there."""
        is_last = self._orders.get(stop.job_id) is stop
        return is_last and any(worker in self._register.job_of for worker in stop.waiting)

    # ------------------------------------------------------------------ answers

    def next_at_s(self, now_s: float) -> float | None:
        """When `due` has something."""
        if self._answered:
            return now_s
        return min((due_s for due_s, _ in self._failed), default=None)

    def due(self, now_s: float) -> Iterator[Event]:
        """What was carried out whole, and failures whose pause is over."""
        early, self._early = self._early, []
        for order in early:
            self._settle(order)
        answered, self._answered = self._answered, []
        for switch_id in dict.fromkeys(order.switch_id for order in answered):
            mine = [order for order in answered if order.switch_id == switch_id]
            yield ResidentsSwitched(
                now_s,
                switch_id,
                tuple((order.job_id, now_s) for order in mine if not order.is_start),
                tuple((order.job_id, now_s) for order in mine if order.is_start),
            )
        failed, self._failed = self._failed, []
        for at_s, event in failed:
            if at_s <= now_s:
                yield msgspec.structs.replace(event, at_s=now_s)
            else:
                self._failed.append((at_s, event))

    def obeyed(self, report: a.Switched, now_s: float) -> Iterator[Event]:
        """An agent's answer; about strangers, or twice, it means nothing."""
        if report.switch_id == AMENDS:
            for job_id, why in self._amends.answered(report):
                self._drop(job_id)
                yield GangBroken(now_s, job_id, why)
            return
        for container, _ in (*report.stopped, *report.started):
            order = self._order_of(container, report)
            if order is not None:
                if container in order.waiting:
                    order.waiting.discard(container)
                    order.done.append(container)
                self._settle(order)
        for failure in report.failed:
            order = self._order_of(failure.container_id, report)
            if order is not None:
                yield from self._undone(order, failure, now_s)

    def _order_of(self, container: str, report: a.Switched) -> JobOrder | None:
        job_id = self._register.job_of.get(container)
        order = None if job_id is None else self._orders.get(job_id)
        return order if order is not None and order.switch_id == report.switch_id else None

    def _undone(self, order: JobOrder, failure: a.Failure, now_s: float) -> Iterator[Event]:
        """One worker did not do it: its siblings go back, and who waits for its devices waits for others."""
        del self._orders[order.job_id]
        reason = f"{failure.code}: {failure.detail}".strip(": ")
        if order.is_start:
            self._call_back(order)
            count = self._failures.get(order.job_id, 0)
            self._failures[order.job_id] = count + 1
            failed = SwitchFailed(now_s, order.switch_id, (), (order.job_id,), reason)
            self._failed.append((now_s + min(PAUSE_S * 2**count, PAUSE_S_MAX), failed))
            return
        for other in [o for o in self._orders.values() if any(b is order for b in o.behind)]:
            del self._orders[other.job_id]
            self._call_back(other)
        # Only now: a sibling that stopped already may find its devices with one that was called back.
        siblings = {*order.waiting, *order.done} - {failure.container_id}
        placed = self._placed.get(order.job_id)
        if placed is not None and siblings:
            self._amend(JobOrder(order.job_id, AMENDS, True, siblings, runs=placed.runs))
        yield SwitchFailed(now_s, order.switch_id, kept=(order.job_id,), reason=reason)
        if failure.code in _CANNOT:
            yield self._lessons.failed(order.job_id, reason, now_s)

    def _call_back(self, order: JobOrder) -> None:
        """Its workers were told to run, and shall not."""
        self._placed.pop(order.job_id, None)
        self._amend(JobOrder(order.job_id, AMENDS, False, {*order.waiting, *order.done}))

    def _amend(self, order: JobOrder) -> None:
        self._amends.note(order)
        self._send([order])

    def moved(self, order: JobOrder) -> None:
        """A job runs elsewhere: its workers have these devices now."""
        self._placed[order.job_id] = order
        self._tell_tables(order)

    def reshaped(self, job_id: JobId, joined: Sequence[JobId]) -> None:
        """A job has other workers: some have left, and others, which were jobs of their own, have joined."""
        orders = [self._placed.pop(each) for each in (job_id, *joined) if each in self._placed]
        found = self._register.find(job_id)
        if found is None or not orders:
            return
        live = set(found[1].live)
        order = JobOrder(job_id, orders[0].switch_id, True, set(), done=list(live))
        for node, workers in [item for each in orders for item in each.runs.items()]:
            mine = [worker for worker in workers if worker.container_id in live]
            order.runs.setdefault(node, []).extend(mine)
        self._placed[job_id] = order
        self._briefing.expect(*found)
        self._tell_tables(order)

    def _tell_tables(self, order: JobOrder) -> None:
        for node in order.runs:
            if node in self._nodes:
                self._briefing.tell_table(node, self._placed)

    # ------------------------------------------------------------------ jobs that are gone

    def without_device(self, node: str, gpu: int) -> list[JobId]:
        """Jobs that held a device, which is gone: nothing of them is on its way any more."""
        broken = [
            order.job_id
            for order in self._placed.values()
            if any(
                gpu in worker.gpus and not self._has_ended(node, worker.container_id)
                for worker in order.runs.get(node, ())
            )
        ]
        for job_id in broken:
            self._drop(job_id)
        return broken

    def _has_ended(self, node: str, container_id: str) -> bool:
        report = self._nodes[node].workers.get(container_id)
        return report is not None and report.state is a.WorkerState.ENDED

    def _drop(self, job_id: JobId) -> None:
        self._placed.pop(job_id, None)
        self._orders.pop(job_id, None)

    def forget(self) -> None:
        """Drop what is kept of jobs that have left."""
        for kept in (self._placed, self._orders, self._failures):
            forget(kept, self._register)
        self._amends.forget()
