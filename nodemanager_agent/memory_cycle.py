"""Length of a mini-batch from the cycle of a process's memory, for jobs without our hook (G-41; FACTS §7). Pure.

Autocorrelation, gated on its peak: crossing of minima alone erred by up to 95 %, and swings below 18 MB drown in noise.
"""

from __future__ import annotations

from collections.abc import Sequence

PEAK_MIN = 0.2
"""Of the autocorrelation: good cycles had 0.26 to 0.5, wrong ones 0.12 to 0.17."""
CYCLES_MIN = 3
"""As many whole cycles must be in the samples."""


def cycle_s(samples_mib: Sequence[float], interval_s: float) -> float | None:
    """The period of evenly spaced samples; None where there is none to be trusted."""
    lags = len(samples_mib) // CYCLES_MIN
    if lags < 2:
        return None
    mean_mib = sum(samples_mib) / len(samples_mib)
    swings = [each - mean_mib for each in samples_mib]
    power = sum(each * each for each in swings)
    if power <= 0:
        return None
    curve = [_at(swings, lag) / power for lag in range(lags + 1)]
    first = next((lag for lag, value in enumerate(curve) if value <= 0), None)
    if first is None:
        return None
    lag = max(range(first, lags + 1), key=curve.__getitem__)
    if curve[lag] < PEAK_MIN or lag in (first, lags):
        return None
    return (lag + _vertex(curve[lag - 1], curve[lag], curve[lag + 1])) * interval_s


def _at(swings: Sequence[float], lag: int) -> float:
    return sum(one * other for one, other in zip(swings, swings[lag:], strict=False))


def _vertex(before: float, at: float, after: float) -> float:
    """Where a parabola through three points has its top, from the middle one."""
    bend = before - 2 * at + after
    return 0.0 if bend == 0 else (before - after) / (2 * bend)
