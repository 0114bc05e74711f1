"""The order of the data, whatever the number of workers: a place in it is a count of samples (case G05; G-80 … G-84).

The global batch stays; how it is cut into ranks and micro-batches may change at any step, and no sample is seen twice
or left out. Pure arithmetic; no framework.
"""

import random
from typing import Any, Dict, Iterator, List


class DataOrder:
    """The same permutation for all ranks, drawn anew for each epoch, and this rank's part of each global batch.

    Iterating gives, for each optimizer step of the epoch, this rank's micro-batches, each a list of sample numbers. The
    last samples of an epoch that make no whole global batch are left out, as a loader with ``drop_last`` does.

    Args:
        samples: of the data set.
        global_batch: samples per optimizer step, over all ranks.
        micro_batch: samples per forward pass of one rank.
        rank, world_size: of this process.
        seed: of the permutations; None keeps the order as it is.

    Raises:
        ValueError: the global batch is not a whole number of micro-batches for every rank, or larger than the data.
    """

    is_of_any_size = True

    def __init__(
        self,
        samples: int,
        global_batch: int,
        micro_batch: int,
        rank: int = 0,
        world_size: int = 1,
        seed: "int | None" = 0,
    ) -> None:
        if not 0 < global_batch <= samples:
            raise ValueError("a global batch of {} of {} samples".format(global_batch, samples))
        if micro_batch < 1 or global_batch % (micro_batch * world_size):
            raise ValueError(
                "a global batch of {} in micro-batches of {} on {} workers".format(
                    global_batch, micro_batch, world_size
                )
            )
        self.samples = samples
        self.global_batch = global_batch
        self.micro_batch = micro_batch
        self.accumulation = global_batch // (micro_batch * world_size)
        self.seed = seed
        self.samples_done = 0
        self._rank = rank
        self._world_size = world_size
        self._permutation: List[int] = []
        self._drawn = -1

    @property
    def samples_per_epoch(self) -> int:
        """Those that make whole global batches."""
        return self.samples - self.samples % self.global_batch

    @property
    def epoch(self) -> int:
        """Of the next sample."""
        return self.samples_done // self.samples_per_epoch

    @property
    def position(self) -> str:
        """For the continuity proof."""
        return str(self.samples_done)

    def __iter__(self) -> Iterator[List[List[int]]]:
        epoch = self.epoch
        while self.epoch == epoch:
            batches = self.step()
            self.samples_done += self.global_batch
            yield batches

    def step(self) -> List[List[int]]:
        """This rank's micro-batches of the next optimizer step; does not go on by itself."""
        batch = self._batch()
        stride = self.micro_batch * self._world_size
        first = self._rank * self.micro_batch
        return [
            batch[begin : begin + self.micro_batch]
            for begin in range(first, self.global_batch, stride)
        ]

    def state_dict(self) -> Dict[str, Any]:
        """Where it stands, and in what order."""
        return {
            "samples_done": self.samples_done,
            "samples": self.samples,
            "global_batch": self.global_batch,
            "seed": self.seed,
        }

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Stand where another one stood, with whatever number of workers.

        Raises:
            ValueError: it is another order: samples would be seen twice.
        """
        mine = self.state_dict()
        others = [name for name in mine if name != "samples_done" and mine[name] != state[name]]
        if others:
            raise ValueError("another order of the data: {} differs".format(", ".join(others)))
        self.samples_done = int(state["samples_done"])

    def _batch(self) -> List[int]:
        epoch = self.epoch
        if self._drawn != epoch:
            self._permutation = list(range(self.samples))
            if self.seed is not None:
                random.Random("{}:{}".format(self.seed, epoch)).shuffle(self._permutation)
            self._drawn = epoch
        begin = self.samples_done - epoch * self.samples_per_epoch
        return self._permutation[begin : begin + self.global_batch]
