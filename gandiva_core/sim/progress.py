"""One job's mini-batches over time: a piecewise constant rate, counted exactly (C-3, GE-13)."""

from __future__ import annotations

import math

from gandiva_core.model.errors import InputError
from gandiva_core.model.placement import Binding
from gandiva_core.model.units import ServerId
from gandiva_core.model.workload import PlannedJob

WHOLE = 1e-6
"""Mini-batches: closer than this to a whole number is that number. Far above rounding of 10⁷ of them, far below one."""

NEVER = math.inf


class JobRun:
    """A job in the world. Times in virtual seconds; work in mini-batches.

    Attributes:
        done: mini-batches done at `since_s`; what came after is `rate_per_s` × time.
        since_s: start of the present stretch of constant rate; may lie ahead for a job that is about to start.
        rate_per_s: present rate; 0 while it computes nothing.
        base_per_s: rate without other jobs' use of the network.
        stop_at_s: while stopping, the boundary from which on it computes nothing; its rate is fixed until then.
        start_at_s: while a split gang waits to start, when it does.
        due_s: when it reaches its milestone or its end, as things stand.
        queued_at_s: its earliest entry in the agenda; an entry that turns out to be early is entered again.
        life: raised by every crash, so that what was promised before it is void.
        devices_from_s: when its devices were, or will be, its own.
    """

    __slots__ = (
        "base_per_s",
        "checkpoint",
        "devices_from_s",
        "done",
        "due_s",
        "ended",
        "has_run",
        "job",
        "life",
        "milestone",
        "number",
        "queued_at_s",
        "ran_s",
        "rate_per_s",
        "run",
        "since_s",
        "split",
        "start_at_s",
        "stop_at_s",
        "suspend_s",
        "work",
    )

    def __init__(self, number: int, job: PlannedJob, suspend_s: float, milestone: float) -> None:
        place = f"job {job.spec.job_id}"
        if not 0.0 < job.minibatches < NEVER:
            raise InputError(f"{place}: minibatches", repr(job.minibatches), "a number above 0")
        if not job.checkpoint_every_s > 0.0:
            found = repr(job.checkpoint_every_s)
            raise InputError(f"{place}: checkpoint_every_s", found, "seconds above 0")
        self.number = number
        self.job = job
        self.work = job.minibatches
        self.suspend_s = suspend_s
        self.milestone = milestone if milestone <= job.minibatches else NEVER
        self.done = 0.0
        self.since_s = 0.0
        self.rate_per_s = 0.0
        self.base_per_s = 0.0
        self.stop_at_s = NEVER
        self.start_at_s = NEVER
        self.due_s = NEVER
        self.queued_at_s = NEVER
        self.devices_from_s = 0.0
        self.checkpoint = 0.0
        self.ran_s = 0.0
        self.run: tuple[Binding, ...] = ()
        self.split: tuple[ServerId, ...] = ()
        self.has_run = False
        self.ended = False
        self.life = 0

    @property
    def is_ending(self) -> bool:
        """Whether the order to stop came within its last mini-batch: it ends instead."""
        return self.stop_at_s < NEVER and self._boundary(self.stop_at_s) >= self.work

    def is_coming_up(self, now_s: float) -> bool:
        """Whether it has its devices for the first time, and its framework is not there yet."""
        return not self.has_run and self.job.start_s > 0.0 and self.devices_from_s <= now_s

    def done_at(self, now_s: float) -> float:
        """Mini-batches done by `now_s`."""
        stretch_s = min(now_s, self.stop_at_s) - self.since_s
        if stretch_s <= 0.0 or self.rate_per_s == 0.0:
            return self.done
        return min(self.work, self.done + self.rate_per_s * stretch_s)

    def start(self, at_s: float, rate_per_s: float) -> None:
        """Compute from `at_s` on."""
        self.since_s = at_s
        self.rate_per_s = rate_per_s
        self.start_at_s = NEVER
        self.has_run = True
        self.plan()

    def change_rate(self, now_s: float, rate_per_s: float) -> None:
        """Go on at another rate from `now_s` on."""
        self.settle(now_s)
        self.rate_per_s = rate_per_s
        self.plan()

    def stop_from(self, now_s: float, seen_s: float) -> float:
        """Compute on to the mini-batch boundary that follows `seen_s`, and no further (G-40).

        Args:
            now_s: when the order came.
            seen_s: when the job looks at it; not before `now_s`.

        Returns:
            When it stops computing; where that is the end of its work, it ends at that very time.
        """
        boundary = self._boundary(seen_s)
        reached_s = self.since_s + (boundary - self.done) / self.rate_per_s
        stop_at_s = self.stop_at_s = max(now_s, reached_s)
        if boundary >= self.work:
            self.plan()
        elif self.due_s > stop_at_s:
            self.due_s = NEVER
        return stop_at_s

    def stopped(self) -> None:
        """Book the stop that `stop_from` foresaw: exactly whole mini-batches."""
        boundary = self._boundary(self.stop_at_s)
        self.settle(self.stop_at_s)
        self.done = boundary
        self.rate_per_s = 0.0
        self.stop_at_s = NEVER

    def settle(self, now_s: float) -> None:
        """Close the present stretch at `now_s`, checkpoints in it included (G-13)."""
        stretch_s = min(now_s, self.stop_at_s) - self.since_s
        if stretch_s <= 0.0 or self.rate_per_s == 0.0:
            return
        ran_s = self.ran_s + stretch_s
        every_s = self.job.checkpoint_every_s
        if ran_s >= every_s:
            taken = int(ran_s / every_s)
            reached = self.done + self.rate_per_s * (taken * every_s - self.ran_s)
            self.checkpoint = math.floor(min(self.work, reached) + WHOLE)
            ran_s -= taken * every_s
        self.done = min(self.work, self.done + self.rate_per_s * stretch_s)
        self.ran_s = ran_s
        self.since_s += stretch_s

    def reached(self, now_s: float) -> bool:
        """Book what is due at `now_s`; whether that is the end (else it is the milestone)."""
        if self.milestone < NEVER:
            self.settle(now_s)
            self.done = max(self.done, self.milestone)
            self.milestone = NEVER
            self.plan()
            return False
        self.settle(now_s)
        self.done = self.work
        self.rate_per_s = 0.0
        self.due_s = NEVER
        self.ended = True
        return True

    def crash(self, now_s: float) -> None:
        """Lose everything since the last checkpoint, and all devices (G-13)."""
        self.settle(now_s)
        self.done = self.checkpoint
        self.rate_per_s = 0.0
        self.ran_s = 0.0
        self.stop_at_s = self.start_at_s = self.due_s = NEVER
        self.run = ()
        self.has_run = False
        self.life += 1

    def plan(self) -> None:
        """Foresee the milestone or the end."""
        if self.milestone < NEVER:
            due_s = self.since_s + (self.milestone - self.done) / self.rate_per_s
            self.due_s = due_s if due_s <= self.stop_at_s else NEVER
        elif self.stop_at_s == NEVER:
            self.due_s = self.since_s + (self.work - self.done) / self.rate_per_s
        else:
            self.due_s = self.stop_at_s if self.is_ending else NEVER

    def _boundary(self, at_s: float) -> float:
        """The whole number of mini-batches at or after what is done at `at_s`; the end of the work counts as one."""
        reached = self.done
        if at_s > self.since_s:
            reached += self.rate_per_s * (at_s - self.since_s)
        return min(self.work, float(math.ceil(reached - WHOLE)))
