"""An application in the queue: what it still asks for, what it was given, what is reserved for it."""

from __future__ import annotations

from baselines.capacity.nodes import Node
from gandiva_core.model.job import JobSpec, Worker
from gandiva_core.model.units import ServerId

AM_MEMORY_MIB = 1024
AM_VCORES = 1
MAXIMUM_MEMORY_MIB = 1 << 30
MAXIMUM_VCORES = 1 << 20
"""The replay's largest container (its yarn-site.xml); a container's share of it slows down what starvation adds."""


class Ask:
    """Outstanding containers of one size; YARN's scheduler key.

    Attributes:
        pending: containers still wanted; a reservation does not lower it.
        ranks: places in the gang that these containers take, in order.
        reserved: nodes reserved for one of them, with the number that the container will have.
        re_reservations: heartbeats of reserved nodes that still had no room, since the last change of `reserved`.
    """

    __slots__ = ("node_share", "pending", "ranks", "re_reservations", "reserved", "worker")

    def __init__(self, worker: Worker, ranks: list[int]) -> None:
        self.worker = worker
        self.ranks = ranks
        self.pending = len(ranks)
        self.reserved: dict[Node, int] = {}
        self.re_reservations = 0
        self.node_share = max(
            worker.memory_mib / MAXIMUM_MEMORY_MIB, worker.vcores / MAXIMUM_VCORES
        )

    def wants_more_nodes(self) -> bool:
        """Whether another node may be taken or reserved without giving a reservation up.

        A reservation counts as given, but starves: the longer its node has no room, the more of them may be held.
        """
        held = len(self.reserved)
        starvation = 0
        if held:
            starvation = int(self.re_reservations / held * (1.0 - self.node_share))
        return starvation + self.pending - held > 0


class Application:
    """One submitted job. Its master comes first and asks for no GPU; the gang's asks follow when it runs.

    Attributes:
        sequence: order of submission.
        master_node: where its master runs; None while it waits.
        given: size and node of each worker's container, by the container's number.
        reserved_gpus: in all its reservations.
        used_mib: memory of its containers, its master's included: what the fair order compares.
        place: its present place in its queue's order.
    """

    __slots__ = (
        "_containers",
        "asks",
        "given",
        "job",
        "master_node",
        "place",
        "reserved_gpus",
        "sequence",
        "used_mib",
    )

    def __init__(self, job: JobSpec, sequence: int) -> None:
        self.job = job
        self.sequence = sequence
        self.master_node: Node | None = None
        self.given: dict[int, tuple[Ask, Node]] = {}
        self._containers = 0
        self.reserved_gpus = 0
        self.used_mib = 0
        self.place: tuple[int, int] = (0, sequence)
        self.asks = [Ask(Worker(0, AM_MEMORY_MIB, AM_VCORES), [-1])]

    def ask_for_gang(self) -> None:
        """The master runs, or lost its gang: ask for every container, each size under a key of its own."""
        ranks: dict[Worker, list[int]] = {}
        for rank, worker in enumerate(self.job.workers):
            ranks.setdefault(worker, []).append(rank)
        self.asks = [Ask(worker, places) for worker, places in ranks.items()]
        self.given = {}

    def new_container(self) -> int:
        """The next container's number; a reserved one has its number from the reservation on."""
        self._containers += 1
        return self._containers

    def next_ask(self) -> Ask | None:
        """The first size that is not complete; later ones wait for it."""
        for ask in self.asks:
            if ask.pending:
                return ask
        return None

    @property
    def held_gpus(self) -> int:
        """GPUs of the containers it has."""
        return sum(ask.worker.gpus for ask, _ in self.given.values())

    @property
    def gang(self) -> tuple[tuple[str, ServerId], ...]:
        """Container and server of each rank, those of one size in the order of their numbers; only for a whole gang."""
        by_rank: dict[int, tuple[str, ServerId]] = {}
        ranks = {ask: iter(ask.ranks) for ask in self.asks}
        for number in sorted(self.given):
            ask, node = self.given[number]
            by_rank[next(ranks[ask])] = f"{self.job.job_id}_{number:06d}", node.server_id
        return tuple(by_rank[rank] for rank in range(len(by_rank)))
