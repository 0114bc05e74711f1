"""A virtual device as its jobs feel it: what it computes for one of them, it does not compute for another (C-8; G-55).

A mini-batch is taken apart by its process's own use of the processor: as large a part of it as that counts as computed
on the device, the rest as waiting, for input or for others. Where a nominal time is given, the mini-batch is stretched
to it in these proportions. Who has a device alone feels nothing of this but the nominal time; who shares one waits
until the device had time for both, in turns of a few milliseconds, as a GPU's driver gives them.

All processes on a device share a file of two little-endian doubles: the seconds that it has computed, and until when
it is taken (CLOCK_MONOTONIC). It never computes for more than passes.
"""

import fcntl
import mmap
import os
import struct
import time
from typing import List, Mapping, NamedTuple, Optional, Tuple

STEP_S = "GANDIVA_VIRTUAL_STEP_S"
"""Environment: a mini-batch takes no less than this, so that many jobs share few cores as they would devices."""
DEVICES = "GANDIVA_VIRTUAL_DEVICES"
"""Environment: the files of this worker's devices, with colons between."""

TURN_S = 0.005
_BOOK = struct.Struct("<dd")
BOOK_BYTES = _BOOK.size
_AHEAD_S = 5.0
_LOCK_TRIES = 50
_LOCK_S = 0.001


class Processor:
    """What this process computes, by the kernel's count, and what its calling thread waits for a core."""

    def __init__(self) -> None:
        self._used_s = 0.0
        self._delayed_s = 0.0
        self.take()

    def take(self) -> Tuple[float, float]:
        """Seconds used, by all threads, and seconds without a core, since the last call."""
        used_s, delayed_s = time.process_time(), _delayed_s()
        taken = used_s - self._used_s, max(0.0, delayed_s - self._delayed_s)
        self._used_s, self._delayed_s = used_s, delayed_s
        return taken

    def ratio(self, took_s: float) -> float:
        """Part of a time that was computed; a busy machine is no slower device, and its queues count for nothing."""
        used_s, delayed_s = self.take()
        ran_s = took_s - delayed_s
        return min(1.0, used_s / ran_s) if ran_s > 0 else 1.0


def _delayed_s() -> float:
    """Of the calling thread, so far: runnable without a core; 0 where the kernel does not tell."""
    try:
        with open("/proc/thread-self/schedstat", encoding="ascii") as file:
            return int(file.read().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


class Token:
    """The book of one device, shared with other processes.

    Raises:
        OSError, ValueError: there is no such file.
    """

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            self._map = mmap.mmap(self._file, _BOOK.size)
        except BaseException:
            os.close(self._file)
            raise

    def computed_s(self, now_s: float) -> float:
        """All that the device has computed until now."""
        total_s, taken_until_s = _BOOK.unpack_from(self._map, 0)
        return float(total_s) - (_sane(taken_until_s, now_s) - now_s)

    def fill(self, used_s: float) -> None:
        """It computed this in time that is past, when it had nothing else to do."""
        is_locked = self._lock()
        total_s, taken_until_s = _BOOK.unpack_from(self._map, 0)
        _BOOK.pack_into(self._map, 0, total_s + used_s, taken_until_s)
        self._unlock(is_locked)

    def book(self, now_s: float, turn_s: float) -> float:
        """Take it for one turn, behind whoever has; when the turn is over."""
        is_locked = self._lock()
        total_s, taken_until_s = _BOOK.unpack_from(self._map, 0)
        ends_s = _sane(taken_until_s, now_s) + turn_s
        _BOOK.pack_into(self._map, 0, total_s + turn_s, ends_s)
        self._unlock(is_locked)
        return ends_s

    def close(self) -> None:
        """Let go of the file."""
        self._map.close()
        os.close(self._file)

    def _lock(self) -> bool:
        """Never for long: one that was stopped with the lock in hand would stop all others; an odd count does not."""
        for _ in range(_LOCK_TRIES):
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            except OSError:
                time.sleep(_LOCK_S)
        return False

    def _unlock(self, is_locked: bool) -> None:
        if is_locked:
            fcntl.flock(self._file, fcntl.LOCK_UN)


def _sane(taken_until_s: float, now_s: float) -> float:
    """From now on; what lies far ahead is of another boot, or nonsense."""
    return taken_until_s if now_s < taken_until_s < now_s + _AHEAD_S else now_s


class Minibatch(NamedTuple):
    """One as it was done.

    Attributes:
        began_s: monotonic.
        lasts_s: with the nominal time, without others.
        computes_s: of that, on the device.
    """

    began_s: float
    lasts_s: float
    computes_s: float


class VirtualDevice:
    """The devices of one process, which it uses at the same time; without any it has a nominal time only.

    Attributes:
        tokens: of its devices.
        utilisation_ratio: mean part of the last mini-batches that was computed on it, by the time they took without
            others; None without a device.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.utilisation_ratio: Optional[float] = None
        self._step_s = _number(environment.get(STEP_S))
        self.tokens = _tokens(environment)
        self._processor = Processor()
        self._began_s = 0.0
        self._computed_s: List[float] = []
        self._is_timed = bool(self.tokens)
        self.begin()

    def begin(self) -> None:
        """The next mini-batch begins now."""
        self._began_s = time.monotonic()
        if self._is_timed:
            self._processor.take()
            self._computed_s = [each.computed_s(self._began_s) for each in self.tokens]

    def done(self, now_s: float) -> "Turns":
        """The mini-batch is done as far as the script can tell; what of it is still to come."""
        took_s = max(0.0, now_s - self._began_s)
        lasts_s = max(took_s, self._step_s)
        ratio = 0.0
        if self._is_timed:
            ratio = self._processor.ratio(took_s)
            before = ratio if self.utilisation_ratio is None else self.utilisation_ratio
            self.utilisation_ratio = 0.9 * before + 0.1 * ratio
        minibatch = Minibatch(self._began_s, lasts_s, ratio * lasts_s)
        return Turns(self.tokens, minibatch, self._computed_s)

    def close(self) -> None:
        """Let go of the devices."""
        for token in self.tokens:
            token.close()


class Turns:
    """What is left of a mini-batch: first the waiting that the nominal time adds, then turns on the devices.

    Args:
        before_s: what each device had computed when the mini-batch began.
    """

    def __init__(self, tokens: List[Token], minibatch: Minibatch, before_s: List[float]) -> None:
        self._tokens = tokens
        self._minibatch = minibatch
        self._before_s = before_s
        self._due_s = minibatch.began_s + minibatch.lasts_s - minibatch.computes_s
        self._left_s = minibatch.computes_s
        self._is_fresh = True
        self._was_held = False

    def put_off(self, held_s: float, device: VirtualDevice) -> None:
        """The process stood still for so long, and goes on with these devices."""
        self._due_s += held_s
        self._tokens = device.tokens
        self._was_held = True

    def next_due_s(self, now_s: float) -> Optional[float]:
        """Until when to wait; asked again then. None once the mini-batch is over."""
        if not self._tokens:
            due_s = self._due_s + self._left_s
            return due_s if due_s > now_s else None
        if self._due_s > now_s:
            return self._due_s
        if self._is_fresh:
            self._is_fresh = False
            self._take_past(now_s)
        if self._left_s <= 0:
            return None
        turn_s = min(TURN_S, self._left_s)
        self._left_s -= turn_s
        self._due_s = max(token.book(now_s, turn_s) for token in self._tokens)
        return self._due_s

    def _take_past(self, now_s: float) -> None:
        """What was computed already fits into time in which the devices were idle, or has to be done now."""
        past_s = min(self._left_s, now_s - self._due_s)
        if not self._was_held:
            passed_s = now_s - self._minibatch.began_s
            for index, token in enumerate(self._tokens):
                others_s = token.computed_s(now_s) - self._before_s[index]
                past_s = min(past_s, max(0.0, passed_s - others_s))
        for token in self._tokens:
            token.fill(past_s)
        self._left_s -= past_s


def _number(text: Optional[str]) -> float:
    try:
        return float(text or 0)
    except ValueError:
        return 0.0


def _tokens(environment: Mapping[str, str]) -> List[Token]:
    """Of several processes of one worker each has a device of its own; a lone one has all of them."""
    paths = [each for each in environment.get(DEVICES, "").split(":") if each]
    processes = int(_number(environment.get("LOCAL_WORLD_SIZE")) or 1)
    if paths and processes > 1:
        paths = [paths[int(_number(environment.get("LOCAL_RANK"))) % len(paths)]]
    tokens: List[Token] = []
    for path in paths:
        try:
            tokens.append(Token(path))
        except (OSError, ValueError):
            continue  # the nominal time counts all the same
    return tokens
