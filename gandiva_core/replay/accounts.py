"""Running accounts behind the metrics: what one job has had so far, and who is resident where."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from gandiva_core.model.cluster import height
from gandiva_core.model.job import JobSpec
from gandiva_core.model.units import JobId, ServerId
from gandiva_core.replay.figures import UNFINISHED, JobRecord, Moment

STORY_MAX = 40
"""Lines kept of a job's story; the last two places are for how it ended."""


class JobAccount:
    """One job, while its journal is read."""

    __slots__ = (
        "arrival_s",
        "computed_s",
        "ended_s",
        "first_100_s",
        "first_run_s",
        "partial_gpus",
        "partial_since_s",
        "resident_since_s",
        "restarts",
        "run_since_s",
        "servers",
        "shares",
        "skipped",
        "spec",
        "story",
        "suspends",
        "utilization",
        "wait_code",
    )

    def __init__(self, spec: JobSpec, arrival_s: float, utilization: float) -> None:
        self.spec = spec
        self.arrival_s = arrival_s
        self.utilization = utilization
        self.first_run_s: float | None = None
        self.first_100_s: float | None = None
        self.ended_s: float | None = None
        self.run_since_s: float | None = None
        self.resident_since_s: float | None = None
        self.computed_s = 0.0
        self.suspends = 0
        self.restarts = 0
        self.servers: tuple[ServerId, ...] = ()
        self.shares: Mapping[ServerId, int] = {}
        self.partial_gpus = 0
        self.partial_since_s = 0.0
        self.wait_code = ""
        self.story: list[Moment] = [Moment(arrival_s, "arrived")]
        self.skipped = 0

    def tell(self, at_s: float, text: str) -> None:
        """Add a line to the story; beyond the bound it is counted only."""
        if len(self.story) < STORY_MAX - 2:
            self.story.append(Moment(at_s, text))
        else:
            self.skipped += 1

    def end(self, at_s: float, text: str) -> None:
        """The last line, for which there is always room."""
        if self.skipped:
            self.story.append(Moment(at_s, f"… {self.skipped} more lines …"))
        self.ended_s = at_s
        self.story.append(Moment(at_s, text))

    def record(self, outcome: str = UNFINISHED) -> JobRecord:
        """The account closed."""
        spec = self.spec
        return JobRecord(
            job_id=spec.job_id,
            name=spec.name or spec.job_id,
            model=spec.model,
            gpus=spec.gpus,
            queue=spec.queue,
            user=spec.user,
            arrival_s=self.arrival_s,
            first_run_s=self.first_run_s,
            first_100_s=self.first_100_s,
            ended_s=self.ended_s,
            outcome=outcome,
            computed_s=self.computed_s,
            suspends=self.suspends,
            restarts=self.restarts,
            servers=tuple(dict.fromkeys(self.servers)),
            held_gpus=sum(self.shares.values()) + self.partial_gpus,
            story=tuple(self.story),
        )


def shares_of(spec: JobSpec, servers: Iterable[ServerId]) -> dict[ServerId, int]:
    """GPUs of a gang on each server, from the server of each worker in rank order (G-1)."""
    shares: dict[ServerId, int] = {}
    for worker, server_id in zip(spec.workers, servers, strict=False):
        shares[server_id] = shares.get(server_id, 0) + worker.gpus
    return shares


class Residency:
    """M of every server (G-1), and over the whole cluster.

    Attributes:
        height: the highest server's now (G-2); `height_max` is the highest ever.
        residents_gpus: ΣM.
    """

    def __init__(self, gpus: Mapping[ServerId, int]) -> None:
        self.gpus = dict(gpus)
        self.total_gpus = sum(gpus.values())
        self.allocated: dict[ServerId, int] = dict.fromkeys(gpus, 0)
        self.residents_gpus = 0
        self.height = 0
        self.height_max = 0

    def add(self, shares: Mapping[ServerId, int]) -> None:
        """A gang becomes resident."""
        for server_id, count in shares.items():
            self.allocated[server_id] = self.allocated.get(server_id, 0) + count
            self.residents_gpus += count
            self.height = max(self.height, self.height_of(server_id))
        self.height_max = max(self.height_max, self.height)

    def remove(self, shares: Mapping[ServerId, int]) -> None:
        """A gang leaves."""
        was_highest = any(self.height_of(server_id) == self.height for server_id in shares)
        for server_id, count in shares.items():
            self.allocated[server_id] -= count
            self.residents_gpus -= count
        if was_highest:
            self.height = max(map(self.height_of, self.allocated), default=0)

    def height_of(self, server_id: ServerId) -> int:
        """⌈M/N⌉ of one server (G-2)."""
        return height(self.allocated[server_id], self.gpus.get(server_id, 0))


class JobTable(dict[JobId, JobAccount]):
    """Accounts by job, in order of submission."""


def listed(servers: Sequence[str]) -> str:
    """Servers without repeats, the first few by name."""
    distinct = list(dict.fromkeys(servers))
    shown = ", ".join(distinct[:4])
    return shown if len(distinct) <= 4 else f"{shown} and {len(distinct) - 4} more"
