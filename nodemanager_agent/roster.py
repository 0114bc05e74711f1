"""Which workers this node has: whom the core expects, and whose launcher came up and may be believed."""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Callable, Iterable

from gandiva_core.messages.agents import Expected, WorkerState
from nodemanager_agent.ports import Admission, Admitted, Refused, Registration
from nodemanager_agent.processes import ancestors
from nodemanager_agent.state import KnownWorker
from nodemanager_agent.workers import Worker

_CONTAINER = re.compile(r"container_[0-9A-Za-z_-]{1,100}")


class Roster:
    """Workers by container.

    Args:
        is_alive: whether a process of this number and start is there.
    """

    def __init__(self, is_alive: Callable[[int, int | None], bool]) -> None:
        self.workers: dict[str, Worker] = {}
        self._is_alive = is_alive

    def recall(self, known: Iterable[KnownWorker]) -> list[Worker]:
        """Workers noted by an agent before this one; who is gone meanwhile is given back."""
        gone = []
        for each in known:
            worker = Worker(
                each.container_id,
                each.state,
                pid=each.pid,
                start_ticks=each.start_ticks,
                uid=each.uid,
                token=each.token,
            )
            self.workers[each.container_id] = worker
            if each.pid and not self._is_alive(each.pid, each.start_ticks):
                gone.append(worker)
        return gone

    def expect(self, expected: Iterable[Expected]) -> list[Worker]:
        """The core's list; workers that it no longer has are given back."""
        named = {each.container_id: each for each in expected}
        for container_id, each in named.items():
            worker = self.workers.setdefault(container_id, Worker(container_id))
            worker.expected = each
        unexpected = [w for c, w in self.workers.items() if c not in named]
        for worker in unexpected:
            worker.expected = None
        return unexpected

    def admit(self, registration: Registration) -> Admission:
        """Whether a launcher is who it says (contract: peer credentials, its own environment, its token)."""
        container_id = registration.container_id
        if _CONTAINER.fullmatch(container_id) is None:
            return Refused("IDENTITY", "no container id")
        if registration.claimed is not None and registration.claimed != container_id:
            return Refused("IDENTITY", "the process belongs to another container")
        worker = self.workers.get(container_id)
        if worker is None:
            return None
        if worker.state is WorkerState.ENDED:
            return Refused("ENDED", "this container has ended")
        if not self._is_same(worker, registration):
            return Refused("TAKEN", "another process registered for this container")
        worker.pid, worker.uid = registration.pid, registration.uid
        worker.start_ticks = registration.start_ticks
        worker.ancestors = ancestors(registration.pid)
        worker.token = worker.token or secrets.token_hex(16)
        never = () if worker.expected is None else worker.expected.never
        return Admitted(worker.token, never)

    def _is_same(self, worker: Worker, registration: Registration) -> bool:
        """Whoever holds the token, or the same process again; a new one only where the old is gone."""
        if not worker.token:
            return True
        if registration.token:
            return hmac.compare_digest(registration.token.encode(), worker.token.encode())
        if worker.uid not in (-1, registration.uid):
            return False
        if worker.pid == registration.pid and worker.start_ticks == registration.start_ticks:
            return True
        return not self._is_alive(worker.pid, worker.start_ticks)
