"""The one place where the time of day enters a live core."""

from __future__ import annotations

import time
from collections.abc import Callable

Clock = Callable[[], float]
"""The time in seconds; never goes back."""


def live_clock() -> Clock:
    """Seconds since 1970 as of now, carried on by the monotonic clock: a clock that is set moves no timer."""
    begun_s = time.time() - time.monotonic()
    return lambda: begun_s + time.monotonic()
