"""A loop over a loader that knows where it stands, so that it can go on in another process in the same order (G-69)."""

import sys
from typing import Any, Dict, Iterator, List, Tuple

from nodemanager_agent.client.generators import set_states, states


class Minibatches:
    """Numbers and batches of a loader, over as many epochs as the steps take. Each begins at a mini-batch boundary.

    ``for step, (inputs, labels) in Minibatches(loader, steps): …`` draws what nested loops over epochs and the loader
    would draw. After a move it opens the loader as at the epoch's start and passes over the batches that were done.

    Args:
        loader: anything that can be iterated again and again; a torch `DataLoader` with whatever samplers.
        steps: mini-batches in all.

    Raises:
        ValueError: the loader has no batch.
    """

    is_of_rank = True

    def __init__(self, loader: Any, steps: int) -> None:
        self.loader = loader
        self.steps = steps
        self.step = 0
        self.epoch = 0
        self.index = 0
        self._iterator: Any = None
        self._began: Dict[str, Any] = {}

    @property
    def position(self) -> str:
        """Epoch, and batches drawn in it."""
        return "{}:{}".format(self.epoch, self.index)

    def __iter__(self) -> Iterator[Tuple[int, Any]]:
        return self

    def __next__(self) -> Tuple[int, Any]:
        from nodemanager_agent.client import minibatch  # noqa: PLC0415 - which imports this

        minibatch()
        if self.step >= self.steps:
            raise StopIteration
        batch = self._draw()
        self.step += 1
        return self.step - 1, batch

    def state_dict(self) -> Dict[str, Any]:
        """Where it stands, and the generators at the epoch's start."""
        return {
            "step": self.step,
            "epoch": self.epoch,
            "index": self.index,
            "began": self._began,
        }

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Stand where another one stood. Leaves the random generators in a state to be set afterwards."""
        self.step, self.epoch = int(state["step"]), int(state["epoch"])
        self.index, self._began = 0, dict(state["began"])
        self._iterator = None
        if state["index"]:
            _set_generators(self._began, self.loader)
            self._open()
            while self.index < int(state["index"]):
                self._next()

    def _draw(self) -> Any:
        if self._iterator is None:
            self._begin()
        try:
            return self._next()
        except StopIteration:
            self.epoch, self.index = self.epoch + 1, 0
            self._begin()
        try:
            return self._next()
        except StopIteration:
            raise ValueError("the loader has no batch") from None

    def _begin(self) -> None:
        self._began = _generators(self.loader)
        self._open()

    def _open(self) -> None:
        sampler: Any = getattr(self.loader, "sampler", None)
        if hasattr(sampler, "set_epoch"):
            sampler.set_epoch(self.epoch)
        self._iterator = iter(self.loader)

    def _next(self) -> Any:
        batch = next(self._iterator)
        self.index += 1
        return batch


def _generators(loader: Any) -> Dict[str, Any]:
    """Of the process, and those that the loader and its sampler have of their own."""
    state: Dict[str, Any] = {"process": {}, "loader": [each.get_state() for each in _own(loader)]}
    if "torch" in sys.modules:
        from nodemanager_agent.client.torch_replica import generators  # noqa: PLC0415 - loads torch

        state["process"] = generators()
    else:
        state["process"] = states()
    return state


def _set_generators(state: Dict[str, Any], loader: Any) -> None:
    if "torch" in sys.modules:
        from nodemanager_agent.client.torch_replica import (  # noqa: PLC0415 - loads torch
            set_generators,
        )

        set_generators(state["process"])
    else:
        set_states(state["process"])
    for number, generator in enumerate(_own(loader)):
        generator.set_state(state["loader"][number])


def _own(loader: Any) -> Iterator[Any]:
    seen: List[Any] = []
    for holder in (loader, getattr(loader, "sampler", None)):
        generator = getattr(holder, "generator", None)
        if hasattr(generator, "get_state") and all(generator is not each for each in seen):
            seen.append(generator)
            yield generator
