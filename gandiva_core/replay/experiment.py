"""The A/B: every arm, shape and seed a run, each in a process of its own, as many at a time as there are CPUs.

Ctrl-C ends all of them in order: each closes its journal and leaves what it has, and the experiment returns what came.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import queue
import signal
import time
import traceback
from collections.abc import Callable, Sequence
from multiprocessing.context import SpawnProcess
from multiprocessing.queues import Queue
from pathlib import Path
from types import FrameType

import msgspec

from gandiva_core.model.errors import GandivaError, InputError
from gandiva_core.replay.details import RunDetails, read
from gandiva_core.replay.run import RunOrder, run_one

DEBUG = "GANDIVA_DEBUG"
"""Environment variable: 1 shows tracebacks."""

POLL_S = 0.1
GRACE_S = 60.0
"""How long an interrupted run may take to close its journal."""

PROGRESS_EVERY_S = 0.1


class Progress(msgspec.Struct, frozen=True):
    """Where a run is."""

    run: str
    jobs_done: int
    jobs: int
    now_s: float


class _Done(msgspec.Struct, frozen=True):
    run: str
    path: str


class _Failed(msgspec.Struct, frozen=True):
    """An exception in a run's process, to be raised again here."""

    run: str
    is_input: bool
    place: str
    found: str
    expected: str
    trace: str


_Message = Progress | _Done | _Failed


class Result(msgspec.Struct, frozen=True):
    """What the experiment came to.

    Attributes:
        runs: finished ones and interrupted ones that left figures, in the order asked for.
        is_interrupted: whether somebody ended it.
    """

    runs: tuple[RunDetails, ...]
    is_interrupted: bool


def run_all(
    orders: Sequence[RunOrder],
    at_once: int | None = None,
    on_progress: Callable[[Progress], None] = lambda _progress: None,
) -> Result:
    """Play every order.

    Args:
        orders: runs with different names.
        at_once: processes at a time; None takes as many as this process may use CPUs.
        on_progress: called from this thread.

    Raises:
        InputError: the first run's that ended with one; the others are ended first.
        GandivaError: where a run ended by a fault of our own.
    """
    pool = _Pool(orders, at_once or len(os.sched_getaffinity(0)), on_progress)
    interrupted = False
    previous = signal.getsignal(signal.SIGTERM)
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        pool.play()
    except KeyboardInterrupt:
        interrupted = True
        pool.stop()
    except BaseException:
        pool.stop()
        raise
    finally:
        signal.signal(signal.SIGTERM, previous)
        pool.close()
    return Result(runs=pool.results(), is_interrupted=interrupted)


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


class _Pool:
    """Processes of the runs, and what they say."""

    def __init__(
        self, orders: Sequence[RunOrder], at_once: int, on_progress: Callable[[Progress], None]
    ) -> None:
        self._orders = {order.name: order for order in orders}
        self._waiting = list(self._orders)
        self._at_once = max(1, at_once)
        self._on_progress = on_progress
        self._context = multiprocessing.get_context("spawn")
        self._messages: Queue[_Message] = self._context.Queue()
        self._processes: dict[str, SpawnProcess] = {}
        self._paths: dict[str, str] = {}

    def play(self) -> None:
        """Until every run is done; raises what a run raised."""
        while self._waiting or self._processes:
            while self._waiting and len(self._processes) < self._at_once:
                self._start(self._waiting.pop(0))
            self._listen(POLL_S)
            self._reap()

    def _start(self, name: str) -> None:
        process = self._context.Process(
            target=play_one, args=(self._orders[name], self._messages), name=name
        )
        # Held back until the process is ready for it: else an early Ctrl-C meets it among its imports.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        self._processes[name] = process

    def _listen(self, wait_s: float) -> None:
        try:
            message = self._messages.get(timeout=wait_s)
        except queue.Empty:
            return
        while True:
            self._take(message)
            try:
                message = self._messages.get_nowait()
            except queue.Empty:
                return

    def _take(self, message: _Message) -> None:
        if isinstance(message, Progress):
            self._on_progress(message)
        elif isinstance(message, _Done):
            self._paths[message.run] = message.path
        else:
            raise raised(message)

    def _reap(self) -> None:
        for name, process in list(self._processes.items()):
            if process.exitcode is None:
                continue
            self._listen(POLL_S)
            del self._processes[name]
            process.join()
            if name not in self._paths:
                raise GandivaError(
                    f"run {name} ended without a result, exit code {process.exitcode}"
                )

    def stop(self) -> None:
        """End every process in order: each closes its journal first. A second Ctrl-C ends them at once."""
        try:
            for process in self._processes.values():
                interrupt(process)
            deadline_s = time.monotonic() + GRACE_S
            while any(process.is_alive() for process in self._processes.values()):
                if time.monotonic() > deadline_s:
                    break
                self._gather()
        except KeyboardInterrupt:
            pass
        for process in self._processes.values():
            if process.is_alive():
                process.kill()
            process.join()
        self._gather()

    def _gather(self) -> None:
        """Take results that are on their way; a fault counts no more once all is being ended."""
        try:
            self._listen(POLL_S)
        except GandivaError:
            return

    def close(self) -> None:
        """No process and no queue is left."""
        self._messages.close()
        self._messages.cancel_join_thread()

    def results(self) -> tuple[RunDetails, ...]:
        """Of the runs that left one, in the order asked for."""
        return tuple(read(Path(self._paths[name])) for name in self._orders if name in self._paths)


def raised(message: _Failed) -> GandivaError:
    """The error of a run's process, as one of this process."""
    if message.is_input:
        return InputError(message.place, message.found, message.expected)
    if os.environ.get(DEBUG) == "1":
        return GandivaError(f"run {message.run}: {message.found}\n{message.trace}")
    return GandivaError(f"run {message.run}: {message.found}")


def interrupt(process: SpawnProcess) -> None:
    """Ctrl-C for one run, as the driver expects it."""
    if process.pid is not None and process.is_alive():
        os.kill(process.pid, signal.SIGINT)


def play_one(order: RunOrder, messages: Queue[_Message]) -> None:
    """A run's process, in a process group of its own: the terminal's Ctrl-C reaches the parent only.

    The parent passes it on to this process, not to the JVM that it may have started, so that the run can
    still end that one in order.
    """
    os.setpgid(0, 0)
    if os.environ.get(DEBUG) != "1":
        # Libraries log an interrupt with its traceback; what matters reaches the parent as a message.
        logging.getLogger().addHandler(logging.NullHandler())
    signal.signal(signal.SIGINT, signal.default_int_handler)
    parent = os.getppid()
    last_s = 0.0

    def report(jobs_done: int, jobs: int, now_s: float) -> None:
        nonlocal last_s
        if os.getppid() != parent:
            raise KeyboardInterrupt  # nobody is left to report to
        if jobs_done < jobs and time.monotonic() - last_s < PROGRESS_EVERY_S:
            return
        last_s = time.monotonic()
        messages.put(Progress(order.name, jobs_done, jobs, now_s))

    message: _Message | None = None
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        message = _Done(order.name, str(run_one(order, report)))
    except KeyboardInterrupt:
        message = None
    except Exception as error:  # whatever it is, the parent process tells it, in its own words
        message = told(order.name, error)
    finally:
        # From here on there is nothing left to interrupt, only a message to hand over.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    if message is not None:
        messages.put(message)


def told(run: str, error: Exception) -> _Failed:
    """An exception as a message to the parent."""
    if isinstance(error, InputError):
        return _Failed(run, True, error.place, error.found, error.expected, "")
    if isinstance(error, OSError) and error.filename:
        found = error.strerror or type(error).__name__
        return _Failed(run, True, str(error.filename), found, "a place that can be used", "")
    said = str(error) if isinstance(error, GandivaError) else f"{type(error).__name__}: {error}"
    return _Failed(run, False, "", said, "", "".join(traceback.format_exception(error)))
