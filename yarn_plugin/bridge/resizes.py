"""Gangs that get another number of workers: from a wish to an order, and from what its master does to the books.

To grow, a master asks for the added workers, all under one id. They form a job of their own, which is placed and bound
by the core as any, on the gang's server: so nothing is given away that is not free, and the books are right while it is
under way. It counts as started once the whole gang has gone on with all of its workers; then the two become one. To
shrink, the surplus ends by itself; then the gang is what is left. Whatever goes wrong leaves the gang as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from gandiva_core.messages.events import Event, GangResized
from gandiva_core.model.job import JobPhase
from gandiva_core.model.units import JobId
from gandiva_core.model.view import ClusterView
from yarn_plugin.bridge.asks import FIRST_RESIZE_ID
from yarn_plugin.bridge.gangs import Application, Gang, GangPhase
from yarn_plugin.bridge.register import Register
from yarn_plugin.bridge.wire import Answer, ResizeOrder

LIMIT_S = 200.0
"""A little more than a master gives its workers."""

ASK_S = 30.0
"""By then a master has asked for the added workers, or it will not."""

_LEFT = frozenset({0, -100, -105})
"""Exit statuses of workers that were not needed any more."""

_OK = "OK"


class ResizeRefusedError(Exception):
    """A resize that cannot begin, in one sentence."""


@dataclass(slots=True)
class Resize:
    """One that is under way.

    Attributes:
        workers: how many there shall be.
        began_s: when it was wanted.
        added: the job of the added workers, once it is known.
    """

    job_id: JobId
    resize_id: int
    workers: int
    began_s: float
    is_told: bool = False
    added: JobId | None = None


@dataclass(slots=True)
class ResizeDesk:
    """Writes the orders of resizes, and books what came of them.

    Attributes:
        register: the core's.
        view: the engine's.
        next_id: of the next resize; masters may know those of an earlier core.
        reshaped: told of each job that has other workers, and of the jobs that it took over.
    """

    register: Register
    view: ClusterView
    next_id: int = FIRST_RESIZE_ID
    reshaped: Callable[[JobId, Sequence[JobId]], None] = lambda _job, _joined: None
    _resizes: dict[JobId, Resize] = field(default_factory=dict)
    _refused: dict[JobId, str] = field(default_factory=dict)

    def begin(self, job_id: JobId, workers: int, now_s: float) -> None:
        """A gang shall have another number of workers.

        Raises:
            ResizeRefusedError: it is being resized already, has not all of its containers, or lies on several servers.
        """
        found = self.register.find(job_id)
        if found is None or job_id in self._resizes:
            raise ResizeRefusedError(f"{job_id} has left, or is being resized")
        gang = found[1]
        if gang.phase is not GangPhase.HELD or len(gang.live) < len(gang.members):
            raise ResizeRefusedError(f"{job_id} has not all of its containers")
        if len({member.node for member in gang.members}) > 1:
            raise ResizeRefusedError(f"{job_id} has workers on several servers (G-81)")
        if workers < len(gang.original):
            raise ResizeRefusedError(f"{job_id} asked for {len(gang.original)} workers (G-82)")
        self._refused.pop(job_id, None)
        self._resizes[job_id] = Resize(job_id, self.next_id, workers, now_s)
        self.next_id += 1

    def standing(self, job_id: JobId) -> str:
        """What is under way, or why the last one came to nothing; empty for neither."""
        resize = self._resizes.get(job_id)
        if resize is not None:
            return f"to {resize.workers} workers"
        refused = self._refused.get(job_id)
        return f"not resized: {refused}" if refused else ""

    def is_under_way(self, job_id: JobId) -> bool:
        """Whether nothing has come of it yet."""
        return job_id in self._resizes

    # ------------------------------------------------------------------ orders

    def orders(self) -> list[ResizeOrder]:
        """Masters that are to be told; each once."""
        orders: list[ResizeOrder] = []
        for resize in self._resizes.values():
            found = self.register.find(resize.job_id)
            if resize.is_told or found is None:
                continue
            resize.is_told = True
            member = found[1].members[0]
            orders.append(
                ResizeOrder(
                    f"resize/{resize.job_id}",
                    member.container,
                    member.node,
                    resize.workers,
                    resize.resize_id,
                )
            )
        return orders

    def book(self, answers: Sequence[Answer]) -> None:
        """Take answers; those to orders of other things mean nothing here."""
        for answer in answers:
            kind, _, job_id = answer.id.partition("/")
            if kind == "resize" and answer.code != _OK:
                self._end(JobId(job_id), f"{answer.code} {answer.detail}".strip())

    # ------------------------------------------------------------------ what came of them

    def due(self, now_s: float) -> Iterator[Event]:
        """Gangs that have other workers now; what is told here is true in the register already."""
        for resize in list(self._resizes.values()):
            found = self.register.find(resize.job_id)
            if found is None:
                del self._resizes[resize.job_id]
                continue
            app, gang = found
            if resize.workers > len(gang.members):
                yield from self._grown(resize, app, gang, now_s)
            else:
                yield from self._shrunk(resize, gang, now_s)
            if resize.began_s + LIMIT_S <= now_s:
                self._end(resize.job_id, "its master did not do it in time")

    def _grown(self, resize: Resize, app: Application, gang: Gang, now_s: float) -> Iterator[Event]:
        added = next((g for g in app.gangs.values() if _is_of(g, resize)), None)
        if added is None:
            if resize.added is not None:
                self._end(resize.job_id, "its master called it off: its log says why")
            elif resize.began_s + ASK_S <= now_s:
                self._end(resize.job_id, "its master does not ask for more: its log says why")
            return
        resize.added = added.job_id
        if not (self._runs(gang.job_id) and self._runs(added.job_id)):
            return
        before = len(gang.members)
        gang.members += added.members
        for member in added.members:
            self.register.job_of[member.container] = gang.job_id
        del app.gangs[added.job_id], self.register.app_of[added.job_id]
        self._done(resize, (added.job_id,))
        yield GangResized(now_s, gang.job_id, tuple(range(before)), (added.job_id,))

    def _shrunk(self, resize: Resize, gang: Gang, now_s: float) -> Iterator[Event]:
        kept = [at for at, member in enumerate(gang.members) if member.exit_status not in _LEFT]
        if len(kept) != resize.workers or not self._runs(gang.job_id):
            return
        for member in gang.members:
            if member.exit_status in _LEFT:
                self.register.job_of.pop(member.container, None)
        gang.members = [gang.members[at] for at in kept]
        self._done(resize, ())
        yield GangResized(now_s, gang.job_id, tuple(kept))

    def _runs(self, job_id: JobId) -> bool:
        job = self.view.jobs.get(job_id)
        return job is not None and job.phase is JobPhase.RUNNING

    def _done(self, resize: Resize, joined: Sequence[JobId]) -> None:
        del self._resizes[resize.job_id]
        self.reshaped(resize.job_id, joined)

    def _end(self, job_id: JobId, reason: str) -> None:
        if self._resizes.pop(job_id, None) is not None:
            self._refused[job_id] = reason


def _is_of(gang: Gang, resize: Resize) -> bool:
    return gang.members[0].key.allocation_request_id == resize.resize_id
