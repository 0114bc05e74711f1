"""The fair share of a server's residents: a water fill by weight, class by class (G-31)."""

from __future__ import annotations

from functools import lru_cache
from itertools import groupby

Claim = tuple[int, float, int]
"""(priority class, weight, GPUs here) of one resident."""


@lru_cache(maxsize=16_384)
def fill(gpus: int, claims: tuple[Claim, ...]) -> tuple[float, ...]:
    """s_i for each resident: the fraction of wall time that its gang should run.

    s_i = min(1, λ·w_i) with Σ g_i·s_i = N. Higher classes are filled first, lower ones share what is left.

    Args:
        gpus: N, physical devices of the server.
        claims: residents in a fixed order; sums follow it, so that equal input gives equal bits.
    """
    if sum(claim[2] for claim in claims) <= gpus:
        return (1.0,) * len(claims)
    shares = [0.0] * len(claims)
    left = float(gpus)
    order = sorted(range(len(claims)), key=lambda i: (-claims[i][0], -claims[i][1], i))
    for _, members in groupby(order, key=lambda i: claims[i][0]):
        left = _fill_class(left, claims, tuple(members), shares)
    return tuple(shares)


@lru_cache(maxsize=16_384)
def fill_in_tiers(
    gpus: int, claims: tuple[Claim, ...], tiers: tuple[tuple[int, float], ...]
) -> tuple[float, ...]:
    """As `fill`, but inside a class the tiers come one after the other, each with the time it is entitled to.

    What the last one leaves is divided by weight among all who could run more.

    Args:
        gpus: N.
        claims: as for `fill`.
        tiers: for each claim the place of its queue, and the fraction of the time that the queue's residents are
            entitled to; together on this server, while among themselves weights count.
    """
    shares = [0.0] * len(claims)
    left = float(gpus)
    classes = sorted({claim[0] for claim in claims}, reverse=True)
    for priority in classes:
        members = [i for i, claim in enumerate(claims) if claim[0] == priority]
        for place in sorted({tiers[i][0] for i in members}):
            here = tuple(
                sorted(
                    (i for i in members if tiers[i][0] == place),
                    key=lambda i: (-claims[i][1], i),
                )
            )
            entitled = min(left, sum(claims[i][2] * tiers[i][1] for i in here))
            left += _fill_class(entitled, claims, here, shares) - entitled
        left = _top_up(left, claims, members, shares)
    return tuple(shares)


def _top_up(
    left: float, claims: tuple[Claim, ...], members: list[int], shares: list[float]
) -> float:
    """Raise shares by weight up to all of the time while something is left."""
    order = sorted(members, key=lambda i: ((1.0 - shares[i]) / claims[i][1], i))
    pressure = sum(claims[i][1] * claims[i][2] for i in order)
    for at, i in enumerate(order):
        _, weight, gpus = claims[i]
        missing = 1.0 - shares[i]
        if missing * pressure > left * weight:
            for j in order[at:]:
                shares[j] += claims[j][1] * left / pressure
            return 0.0
        shares[i] = 1.0
        left -= missing * gpus
        pressure -= weight * gpus
    return max(0.0, left)


def _fill_class(
    left: float, claims: tuple[Claim, ...], members: tuple[int, ...], shares: list[float]
) -> float:
    """Fill one class, heaviest first: who would get more than all the time gets it, the others share the rest."""
    pressure = sum(claims[i][1] * claims[i][2] for i in members)
    for at, i in enumerate(members):
        _, weight, gpus = claims[i]
        if weight * left < pressure:
            level = left / pressure
            for j in members[at:]:
                shares[j] = level * claims[j][1]
            return 0.0
        shares[i] = 1.0
        left -= gpus
        pressure -= weight * gpus
    return max(0.0, left)
