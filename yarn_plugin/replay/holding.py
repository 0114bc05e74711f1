"""What a stock arm's job was given of its gang so far. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from gandiva_core.model.job import JobSpec
from yarn_plugin.replay.cluster import ranks
from yarn_plugin.replay.wire import Ended, Placed


@dataclass(slots=True)
class Holding:
    """A job whose AM has asked, and its containers."""

    spec: JobSpec
    placed: dict[str, Placed] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        """Whether the gang is complete."""
        return len(self.placed) == len(self.spec.workers)

    @property
    def gpus(self) -> int:
        """GPUs of the containers it has."""
        return sum(placed.gpus for placed in self.placed.values())

    def take(self, containers: Iterable[Placed]) -> tuple[str, ...]:
        """Keep containers; what is more than the gang wants is returned, to be given back.

        An AM that asks again may still be handed what it asked for before.
        """
        wanted = Counter({priority: len(found) for priority, found in ranks(self.spec).items()})
        wanted.subtract(placed.priority for placed in self.placed.values())
        excess: list[str] = []
        for container in containers:
            if wanted[container.priority] > 0:
                wanted[container.priority] -= 1
                self.placed[container.container] = container
            else:
                excess.append(container.container)
        return tuple(excess)

    def lose(self, ended: Iterable[Ended]) -> str:
        """Forget containers that ended; why the gang is broken, or nothing where they ended well."""
        why = ""
        for container in ended:
            placed = self.placed.pop(container.container, None)
            if placed is not None and container.exit_status != 0 and not why:
                why = f"{container.container} on {placed.host}: status {container.exit_status}"
        return why

    def give_back(self) -> tuple[str, ...]:
        """Forget all containers and return their ids."""
        held = tuple(self.placed)
        self.placed.clear()
        return held

    def by_rank(self) -> Sequence[Placed]:
        """Containers of a whole gang in rank order: those of one size in the order of their ids."""
        chosen: dict[int, Placed] = {}
        free = {priority: list(found) for priority, found in ranks(self.spec).items()}
        for placed in sorted(self.placed.values(), key=lambda placed: placed.container):
            chosen[free[placed.priority].pop(0)] = placed
        return [chosen[rank] for rank in sorted(chosen)]
