"""Continuity proof: a job goes on exactly where it stopped, or says that it does not (DESIGN §5).

What is held against each other is one `Fingerprint` of before and one of after: mini-batches done, where the loaders
stand, the state of every random generator, and a checksum of the state in device memory.
"""

import hashlib
import os
import random
import sys
from typing import Any, Callable, List, NamedTuple

SAMPLED = 8192
"""Bytes of a storage that the sampled checksum reads; ``GANDIVA_CONTINUITY=full`` reads all of them."""


class Fingerprint(NamedTuple):
    """Where a training process stands.

    Attributes:
        minibatches: done so far, over all lives of the rank.
        position: of the loaders, in batches drawn; empty where no loader is known.
        generators: hash of the states of Python's, numpy's and the framework's random generators.
        state: checksum of what lies in device memory.
    """

    minibatches: int
    position: str
    generators: str
    state: str

    def differences(self, after: "Fingerprint") -> List[str]:
        """The fields that are not as before, by name; empty where the job goes on where it was."""
        return [name for name in self._fields if getattr(self, name) != getattr(after, name)]


def is_full() -> bool:
    """Whether the checksum reads every word."""
    return os.environ.get("GANDIVA_CONTINUITY") == "full"


class Generators:
    """The states of Python's and numpy's global generators; numpy only where the job has loaded it."""

    def __init__(self) -> None:
        self._python = random.getstate()
        numpy = sys.modules.get("numpy.random")
        self._numpy: Any = numpy.get_state() if numpy is not None else None

    def restore(self) -> None:
        """Put the generators back to where they were."""
        random.setstate(self._python)
        if self._numpy is not None:
            sys.modules["numpy.random"].set_state(self._numpy)

    def feed(self, take: Callable[[bytes], None]) -> None:
        """Give the states to a hash."""
        take(repr(self._python).encode())
        if self._numpy is not None:
            name, keys, *rest = self._numpy
            take(name.encode() + keys.tobytes() + repr(rest).encode())


def digest() -> "hashlib.blake2b":
    """A hash for fingerprints: 16 bytes, quick."""
    return hashlib.blake2b(digest_size=16)
