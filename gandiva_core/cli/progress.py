"""A progress bar on a terminal, silence in a pipe (USERS B9)."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

    from gandiva_core.replay.experiment import Progress
    from gandiva_core.replay.run import RunOrder

Follower = Callable[["Progress"], None]


class ProgressMode(StrEnum):
    """When to show a bar."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


@contextmanager
def following(mode: ProgressMode, orders: Sequence[RunOrder]) -> Iterator[Follower]:
    """A follower of runs' progress, drawn on stderr while the context lasts.

    Args:
        mode: AUTO draws only where stderr is a terminal.
        orders: what will run.
    """
    is_shown = mode is ProgressMode.ALWAYS or (mode is ProgressMode.AUTO and sys.stderr.isatty())
    if not is_shown:
        yield lambda _progress: None
        return
    with bars(is_forced=mode is ProgressMode.ALWAYS) as drawn:
        yield Drawing(drawn, orders).update


def bars(is_forced: bool) -> Bars:
    """Bar, jobs, virtual time, jobs a second, time left."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    return Bars(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("jobs"),
        TextColumn("{task.fields[virtual]}"),
        TextColumn("{task.fields[speed]}"),
        TimeRemainingColumn(compact=True),
        console=Console(stderr=True, force_terminal=True if is_forced else None),
        refresh_per_second=5,
    )


class Drawing:
    """One line a run that has begun, and one for all."""

    def __init__(self, drawn: Bars, orders: Sequence[RunOrder]) -> None:
        self._bars = drawn
        self._began_s = time.monotonic()
        self._done: dict[str, int] = {}
        self._tasks: dict[str, TaskID] = {}
        self._runs = len(orders)
        jobs = sum(len(order.plan.jobs) for order in orders)
        self._all = drawn.add_task(f"all {self._runs} runs", total=jobs, virtual="", speed="")

    def update(self, progress: Progress) -> None:
        """Draw where a run is; a finished run's line goes."""
        from gandiva_core.replay.wording import instant

        name = progress.run
        task = self._tasks.get(name)
        if task is None:
            task = self._bars.add_task(name, total=progress.jobs, virtual="", speed="")
            self._tasks[name] = task
        self._done[name] = progress.jobs_done
        at = f"at {instant(progress.now_s)}"
        self._bars.update(task, completed=progress.jobs_done, virtual=at)
        if progress.jobs_done >= progress.jobs:
            self._bars.update(task, visible=False)
        done = sum(self._done.values())
        elapsed_s = max(1e-9, time.monotonic() - self._began_s)
        self._bars.update(self._all, completed=done, speed=f"{done / elapsed_s:.0f} jobs/s")
