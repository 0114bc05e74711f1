"""Devices of workers that ended: given away again only once no process of theirs is left (FAULTS E19; I2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from nodemanager_agent.binding import Binding
from nodemanager_agent.workers import Worker

BEATS = 3
"""After so many looks what still holds a device is an alarm."""

Holders = Callable[[Worker, tuple[int, ...]], frozenset[int]]
"""Processes that a worker which ended left behind on its devices, as far as can be told."""


@dataclass(slots=True)
class _Ending:
    worker: Worker
    beats: int = 0


class Strays:
    """Looks, once a beat, for what is left of workers that ended.

    Args:
        closed: told of a device that is quarantined, with the reason.
        opened: told of one that came back.
    """

    def __init__(
        self,
        binding: Binding,
        holders: Holders,
        closed: Callable[[int, str], None],
        opened: Callable[[int], None],
    ) -> None:
        self._binding = binding
        self._holders = holders
        self._closed = closed
        self._opened = opened
        self._endings: dict[str, _Ending] = {}

    def watch(self, worker: Worker) -> None:
        """A worker ended; its devices are still its own."""
        self._endings.setdefault(worker.container_id, _Ending(worker))

    @property
    def watched(self) -> Iterable[str]:
        """Containers whose last processes are looked for."""
        return self._endings.keys()

    def beat(self) -> bool:
        """Look; whether a device became free."""
        freed = False
        for container_id, ending in list(self._endings.items()):
            gpus = self._binding.held_by(container_id)
            left = self._holders(ending.worker, gpus)
            if not left:
                self._let_go(container_id, ending, gpus)
                freed = True
                continue
            ending.beats += 1
            if ending.beats == BEATS:
                for gpu in gpus:
                    reason = f"process {min(left)} of {container_id} stays on it after its end"
                    self._closed(gpu, reason)
        return freed

    def _let_go(self, container_id: str, ending: _Ending, gpus: tuple[int, ...]) -> None:
        del self._endings[container_id]
        self._binding.release(container_id)
        if ending.beats >= BEATS:
            for gpu in set(gpus) - self._alarming():
                self._opened(gpu)

    def _alarming(self) -> set[int]:
        """Devices on which somebody who ended stays for too long; packed workers have one together."""
        return {
            gpu
            for container_id, ending in self._endings.items()
            if ending.beats >= BEATS
            for gpu in self._binding.held_by(container_id)
        }
