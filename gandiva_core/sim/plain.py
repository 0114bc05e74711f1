"""A substrate that only keeps books: it commits at once what fits (policy arms of the simulator)."""

from __future__ import annotations

from collections.abc import Sequence

from gandiva_core.messages.effects import CloseMove, CommitGang, ContainerEffect, OpenMove
from gandiva_core.messages.events import (
    Event,
    GangCommitted,
    GangRefused,
    JobFailed,
    JobFinished,
    JobSubmitted,
    MoveCommitted,
    MoveFailed,
    QueuesConfigured,
    ServerJoined,
)
from gandiva_core.model.cluster import Cluster, Server
from gandiva_core.model.job import JobSpec, Worker
from gandiva_core.model.units import JobId, ServerId

Resources = tuple[int, int, int]
"""GPUs, MiB of memory, vcores."""


_Taken = tuple[tuple[ServerId, Worker], ...]


class Room:
    """What a server may still hand out; its GPUs counted `height` times over, memory and vcores once (DESIGN §4)."""

    def __init__(self, server: Server, height_max: int) -> None:
        height = height_max if server.can_suspend else 1
        self.whole: Resources = (server.gpus * height, server.memory_mib, server.vcores)
        self.free: Resources = self.whole

    def lacks(self, worker: Worker) -> str:
        """What there is too little of, with both figures; empty where it fits."""
        needs = (worker.gpus, worker.memory_mib, worker.vcores)
        for name, need, free in zip(("GPUs", "MiB", "vcores"), needs, self.free, strict=True):
            if need > free:
                return f"{need} {name} asked, {free} free"
        return ""

    def take(self, worker: Worker, sign: int = 1) -> None:
        """Book a container, or with -1 give it back."""
        gpus, memory_mib, vcores = self.free
        self.free = (
            gpus - sign * worker.gpus,
            memory_mib - sign * worker.memory_mib,
            vcores - sign * worker.vcores,
        )


class PlainSubstrate:
    """Implements `gandiva_core.runtime.ports.Substrate` without a scheduler of its own.

    Args:
        cluster: servers and queues.
        height_max: H_max (G-21).
    """

    def __init__(self, cluster: Cluster, height_max: int) -> None:
        self._cluster = cluster
        self._rooms = {server.server_id: Room(server, height_max) for server in cluster.servers}
        parents = {queue.parent for queue in cluster.queues} | {"root"}
        self._leaves = {queue.name for queue in cluster.queues if queue.name not in parents}
        self._gangs: dict[JobId, _Taken] = {}
        self._moves: dict[int, _Taken] = {}
        #: Second containers of gangs that move, by move.
        self._containers = 0

    def begin(self, now_s: float) -> Sequence[Event]:
        """Servers, and queues where the cluster has any."""
        events: list[Event] = [ServerJoined(now_s, server) for server in self._cluster.servers]
        if self._cluster.queues:
            events.append(QueuesConfigured(now_s, self._cluster.queues))
        return events

    def submit(self, now_s: float, jobs: Sequence[JobSpec]) -> Sequence[Event]:
        """Pass jobs on; one of a queue that is not there fails, as a ResourceManager rejects it."""
        return [self._submitted(now_s, job) for job in jobs]

    def _submitted(self, now_s: float, job: JobSpec) -> Event:
        if self._leaves and job.queue not in self._leaves:
            return JobFailed(now_s, job.job_id, f"queue {job.queue} does not exist")
        return JobSubmitted(now_s, job)

    def finish(self, now_s: float, job_ids: Sequence[JobId]) -> Sequence[Event]:
        """Jobs leave; what they had is free."""
        for job_id in job_ids:
            self._release(job_id)
        return [JobFinished(now_s, job_id) for job_id in job_ids]

    def apply(self, now_s: float, effects: Sequence[ContainerEffect]) -> Sequence[Event]:
        """Commit each gang whole or not at all; give gangs back."""
        events: list[Event] = []
        for effect in effects:
            if isinstance(effect, CommitGang):
                events.append(self._commit(now_s, effect))
            elif isinstance(effect, OpenMove):
                events.append(self._open_move(now_s, effect))
            elif isinstance(effect, CloseMove):
                self._close_move(effect)
            else:
                self._release(effect.job_id)
        return events

    def next_at_s(self) -> float | None:
        """Nothing happens by itself."""
        return None

    def advance(self, now_s: float) -> Sequence[Event]:
        """Nothing happens by itself."""
        del now_s
        return ()

    def close(self) -> None:
        """Nothing to end."""

    def free(self) -> dict[ServerId, Resources]:
        """Room left by server: GPUs (each counted as often as the height allows), MiB, vcores."""
        return {server_id: room.free for server_id, room in self._rooms.items()}

    def _commit(self, now_s: float, effect: CommitGang) -> Event:
        taken = self._take(effect)
        if isinstance(taken, str):
            return GangRefused(now_s, effect.job_id, "NO_ROOM", taken)
        self._gangs[effect.job_id] = taken
        return GangCommitted(now_s, effect.job_id, self._named(len(taken)))

    def _open_move(self, now_s: float, effect: OpenMove) -> Event:
        taken = self._take(effect)
        if isinstance(taken, str):
            return MoveFailed(now_s, effect.move_id, effect.job_id, "NO_ROOM", taken)
        self._moves[effect.move_id] = taken
        return MoveCommitted(now_s, effect.move_id, effect.job_id, self._named(len(taken)))

    def _close_move(self, effect: CloseMove) -> None:
        arrived = self._moves.pop(effect.move_id, ())
        if not effect.is_done:
            self._give_back(arrived)
        elif effect.job_id in self._gangs:
            self._give_back(self._gangs[effect.job_id])
            self._gangs[effect.job_id] = arrived

    def _take(self, effect: CommitGang | OpenMove) -> _Taken | str:
        """Book all containers of a gang, or none; what is lacking."""
        taken: list[tuple[ServerId, Worker]] = []
        for server_id, worker in zip(effect.servers, effect.workers, strict=True):
            room = self._rooms.get(server_id)
            lack = "no such server" if room is None else room.lacks(worker)
            if room is None or lack:
                self._give_back(taken)
                return f"{server_id}: {lack}"
            room.take(worker)
            taken.append((server_id, worker))
        return tuple(taken)

    def _named(self, count: int) -> tuple[str, ...]:
        first = self._containers + 1
        self._containers += count
        return tuple(f"container_{number}" for number in range(first, self._containers + 1))

    def _release(self, job_id: JobId) -> None:
        self._give_back(self._gangs.pop(job_id, ()))

    def _give_back(self, taken: Sequence[tuple[ServerId, Worker]]) -> None:
        for server_id, worker in taken:
            self._rooms[server_id].take(worker, -1)
