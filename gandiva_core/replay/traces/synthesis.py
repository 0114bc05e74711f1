"""The built-in traces by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from gandiva_core.model.errors import InputError
from gandiva_core.replay.traces.nine_days import NINE_DAYS, THREE_HOURS, make_bursty
from gandiva_core.replay.traces.packing_mix import PackingMix, make_packing_mix
from gandiva_core.replay.traces.records import Trace

GENERATORS: Mapping[str, Callable[[int], Trace]] = {
    "gandiva-9d": partial(make_bursty, "gandiva-9d", NINE_DAYS),
    "gandiva-3h": partial(make_bursty, "gandiva-3h", THREE_HOURS),
    "gandiva-180": partial(make_packing_mix, "gandiva-180", PackingMix()),
}
"""Generator by the name of its trace; each takes a seed."""

SEED_MAX = 2**31


def make(name: str, seed: int) -> Trace:
    """A built-in trace.

    Raises:
        InputError: no such name, or a seed out of range.
    """
    if name not in GENERATORS:
        raise InputError("trace", repr(name), f"one of {', '.join(GENERATORS)}")
    if not 0 <= seed < SEED_MAX:
        raise InputError("--seed", str(seed), f"0 to {SEED_MAX - 1}")
    return GENERATORS[name](seed)
