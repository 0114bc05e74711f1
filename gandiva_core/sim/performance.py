"""How fast a gang runs where it runs, and what a suspend costs (C-3, G-44, G-70 to G-72).

A model's rate is stated for the job at its requested size and at its best placement. So every factor here is taken
relative to the best that this many GPUs can have at all: a 4-GPU gang on a 4-GPU server of two sockets spans both
wherever it runs, and that is its full rate; eight GPUs on 4-GPU servers need two servers, and that is theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from gandiva_core.model.cluster import Server
from gandiva_core.model.errors import InputError
from gandiva_core.model.job import JobSpec
from gandiva_core.model.placement import Binding, LocalityLevel, level_within
from gandiva_core.model.profile import ModelProfile
from gandiva_core.model.units import ServerId

BUS_BYTES_PER_S = 10e9
"""B_pcie of G-44."""

SUSPEND_FIXED_S = 0.030
"""t_fixed of G-44: whatever the memory, the process stops, synchronises and continues."""

SUSPEND_MAX_S = 1.0
"""The worst case of G-43 and G-44."""

BYTES_PER_MIB = 1 << 20


def suspend_resume_s(profile: ModelProfile) -> float:
    """Seconds that one suspend and the resume after it take together (G-44).

    The GPUs of a gang copy side by side, so the figure is that of one GPU.
    """
    copied = 2.0 * profile.memory_min_mib * BYTES_PER_MIB / BUS_BYTES_PER_S
    return min(SUSPEND_MAX_S, copied + SUSPEND_FIXED_S)


def level_factor(profile: ModelProfile, level: LocalityLevel) -> float:
    """Rate at `level` relative to the best one (G-70); a missing level counts as the next better one that is there."""
    for known in sorted(profile.locality_factor, reverse=True):
        if known <= level:
            return profile.locality_factor[known]
    return 1.0


def spread_factor(profile: ModelProfile, servers: int) -> float:
    """Rate over `servers` servers relative to one (G-71); a missing count takes the largest known one below it."""
    known = [count for count in profile.spread_factor if count <= servers]
    return profile.spread_factor[max(known)] if known else 1.0


def nic_factor(profile: ModelProfile, split_jobs: int) -> float:
    """Rate beside `split_jobs` split jobs, itself included, on the worst server (G-72); the last value holds on."""
    factors = profile.nic_factor
    if not factors or split_jobs <= 0:
        return 1.0
    return factors[min(split_jobs, len(factors)) - 1]


class Performance:
    """Rates on one set of servers, remembered by placement.

    Args:
        servers: all servers that may ever host a job; `add` brings later ones.
    """

    def __init__(self, servers: Iterable[Server]) -> None:
        self._servers: dict[ServerId, Server] = {}
        self._largest = 1
        self._levels: dict[Binding, tuple[LocalityLevel, LocalityLevel]] = {}
        for server in servers:
            self.add(server)

    def add(self, server: Server) -> None:
        """Know a server, or its new description."""
        self._servers[server.server_id] = server
        self._largest = max(self._largest, server.gpus)
        self._levels.clear()

    def check(self, profile: ModelProfile, place: str) -> None:
        """Refuse a profile that would never end or run backwards.

        Raises:
            InputError: naming `place`.
        """
        values = {f"rate_per_s[{key!r}]": rate for key, rate in profile.rate_per_s.items()}
        values |= {
            f"locality_factor[{key}]": value for key, value in profile.locality_factor.items()
        }
        values |= {f"spread_factor[{key}]": value for key, value in profile.spread_factor.items()}
        values |= {f"nic_factor[{key}]": value for key, value in enumerate(profile.nic_factor, 1)}
        for name, value in values.items():
            if not 0.0 < value < float("inf"):
                raise InputError(
                    f"{place}: model {profile.name}, {name}", repr(value), "a number above 0"
                )
        if "" not in profile.rate_per_s:
            found = ", ".join(sorted(profile.rate_per_s)) or "nothing"
            raise InputError(
                f"{place}: model {profile.name}, rate_per_s", found, 'an entry "" for any type'
            )

    def rate_per_s(self, spec: JobSpec, profile: ModelProfile, run: Sequence[Binding]) -> float:
        """Mini-batches per second of a gang on `run`, other jobs' use of the network left out.

        A gang over servers of different types runs at the slowest type's rate (synchronous training).
        """
        if len(run) == 1:
            binding = run[0]
            rate = profile.rate(self._servers[binding.server_id].accelerator_type)
            if len(binding.gpus) <= 1 and spec.gpus <= 1:
                return rate
        else:
            rate = min(
                profile.rate(self._servers[binding.server_id].accelerator_type) for binding in run
            )
        return rate * self._inside(profile, run) * self._spread(spec, profile, run)

    def _inside(self, profile: ModelProfile, run: Sequence[Binding]) -> float:
        """The worst server's level, relative to what so many GPUs can have there (G-70)."""
        if not profile.locality_factor:
            return 1.0
        worst = 1.0
        for binding in run:
            level, best = self._level(binding)
            worst = min(worst, level_factor(profile, level) / level_factor(profile, best))
        return worst

    def _level(self, binding: Binding) -> tuple[LocalityLevel, LocalityLevel]:
        """(level, best level for so many GPUs) of a binding."""
        found = self._levels.get(binding)
        if found is None:
            sockets = self._servers[binding.server_id].sockets
            found = level_within(sockets, binding.gpus), best_level(sockets, len(binding.gpus))
            self._levels[binding] = found
        return found

    def _spread(self, spec: JobSpec, profile: ModelProfile, run: Sequence[Binding]) -> float:
        """The price of k servers, relative to the fewest that can hold the gang (G-71)."""
        if not profile.spread_factor:
            return 1.0
        fewest = -(-spec.gpus // self._largest)
        servers = len({binding.server_id for binding in run})
        return min(1.0, spread_factor(profile, servers) / spread_factor(profile, fewest))


def best_level(sockets: Sequence[Sequence[Sequence[int]]], gpus: int) -> LocalityLevel:
    """The best level that `gpus` devices of a server can have (G-6)."""
    if gpus <= max((len(switch) for socket in sockets for switch in socket), default=0):
        return LocalityLevel.SAME_SWITCH
    if gpus <= max(sum(len(switch) for switch in socket) for socket in sockets):
        return LocalityLevel.SAME_SOCKET
    return LocalityLevel.DIFF_SOCKET


def split_servers(run: Sequence[Binding]) -> tuple[ServerId, ...]:
    """Servers of a gang that spans more than one, in rank order without repeats; empty for any other."""
    servers: Mapping[ServerId, None] = dict.fromkeys(binding.server_id for binding in run)
    return tuple(servers) if len(servers) > 1 else ()
