"""Split gangs share the network of their servers: rates of neighbours change when one starts or stops (G-72)."""

from __future__ import annotations

from collections.abc import Iterator

from gandiva_core.model.units import ServerId
from gandiva_core.sim.performance import nic_factor
from gandiva_core.sim.progress import NEVER, JobRun


class Network:
    """Which split gangs compute on which servers. A gang inside one server is never here."""

    def __init__(self) -> None:
        self._users: dict[ServerId, dict[int, JobRun]] = {}

    def join(self, run: JobRun) -> None:
        """A split gang begins to compute."""
        for server_id in run.split:
            self._users.setdefault(server_id, {})[run.number] = run

    def leave(self, run: JobRun) -> None:
        """It computes no longer; safe to say twice."""
        for server_id in run.split:
            self._users.get(server_id, {}).pop(run.number, None)

    def rate_per_s(self, run: JobRun) -> float:
        """Its rate beside the others on its worst server."""
        crowd = max(len(self._users.get(server_id, ())) for server_id in run.split)
        return run.base_per_s * nic_factor(run.job.profile, crowd)

    def changed(self, run: JobRun) -> Iterator[tuple[JobRun, float]]:
        """Neighbours of `run` whose rate is another now that it came or went, with that rate, by number.

        A gang that was told to stop keeps its rate for the rest of its mini-batch: its stop is promised already.
        """
        neighbours: dict[int, JobRun] = {}
        for server_id in run.split:
            neighbours.update(self._users.get(server_id, {}))
        neighbours.pop(run.number, None)
        for number in sorted(neighbours):
            other = neighbours[number]
            rate_per_s = self.rate_per_s(other)
            if other.stop_at_s == NEVER and rate_per_s != other.rate_per_s:
                yield other, rate_per_s
