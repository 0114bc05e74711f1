"""One replica of a gang's state in files, and back (G-68 B): for moves, resizes and checkpoints, of any framework.

Rank 0 writes the replica, whatever the number of ranks; every rank writes its own few kilobytes. All ranks read the
replica, side by side.
"""

import os
from typing import Any, Dict, Iterator, NamedTuple, Optional, Protocol

from nodemanager_agent.client.checkpoints import Checkpoint, CheckpointError, CheckpointStore
from nodemanager_agent.client.continuity import Fingerprint, digest
from nodemanager_agent.client.framework import Framework, Refusal
from nodemanager_agent.client.kept import Kept


class Codec(Protocol):
    """What a framework knows of values and generators.

    Attributes:
        name: of the framework.
        suffix: of its files.
    """

    name: str
    suffix: str

    def dump(self, value: Any, file: Any) -> None:
        """Write nested plain values and tensors."""

    def load(self, path: str) -> Any:
        """What `dump` wrote; anything else is not run but refused (E14).

        Raises:
            Refusal: UNSAFE.
        """

    def generators(self) -> Dict[str, Any]:
        """States of all random generators."""

    def set_generators(self, state: Dict[str, Any]) -> None:
        """Put them to where they were."""

    def parts(self, value: Any) -> Iterator[bytes]:
        """Bytes that stand for a value."""


class Found(NamedTuple):
    """A gang's state on disk, for one rank.

    Attributes:
        zero: rank 0's part, with the replica.
        mine: this rank's part; None for a rank that is new in a gang that grew.
    """

    zero: Checkpoint
    mine: Optional[Checkpoint]

    @property
    def source(self) -> Dict[str, Any]:
        """Where the rank that wrote it stood."""
        return (self.mine or self.zero).continuity


class Loaded(NamedTuple):
    """The same in memory: nothing was put into place yet."""

    replica: Dict[str, Any]
    own: Dict[str, Any]
    has_generators: bool


class Replica:
    """What a script keeps, written to and read from one folder for all ranks."""

    def __init__(self, framework: Framework, kept: Kept, codec: Codec) -> None:
        self._framework = framework
        self._kept = kept
        self._codec = codec
        self._replica_file = "replica" + codec.suffix
        self._own_file = "own" + codec.suffix

    def write(self, folder: str, step: int, stopped_at_s: float, keep: int = 1) -> int:
        """Write this rank's part.

        Args:
            folder: of all ranks.
            step: mini-batches done.
            stopped_at_s: when the process stopped for it, seconds since 1970.
            keep: generations that stay.

        Returns:
            Bytes written.

        Raises:
            Refusal: NO_SPACE.
        """
        replica = self._kept.replica()
        where = self.fingerprint(step, replica)
        store = CheckpointStore(_part(folder, self._framework.rank), keep)
        continuity = {**where._asdict(), "stopped_at_s": stopped_at_s}
        try:
            with store.write(
                step, self._codec.name, self._framework.world_size, continuity
            ) as draft:
                with draft.open(self._own_file) as file:
                    own = {"kept": self._kept.own(), "generators": self._codec.generators()}
                    self._codec.dump(own, file)
                if self._framework.rank == 0:
                    with draft.open(self._replica_file) as file:
                        self._codec.dump(replica, file)
        except CheckpointError as error:
            raise Refusal(error.code, error.detail) from error
        return sum(seal.size for seal in draft.files.values())

    def find(self, folder: str, step: Optional[int] = None) -> Found:
        """Rank 0's part and this rank's, every file checked: of a step, or the newest of rank 0.

        Raises:
            Refusal: NO_CHECKPOINT, STALE.
        """
        rank = self._framework.rank
        try:
            first = CheckpointStore(_part(folder, 0))
            zero = first.read() if step is None else first.at(step)
            is_known = rank < zero.world_size
            mine = CheckpointStore(_part(folder, rank)).at(zero.step) if is_known else None
        except CheckpointError as error:
            raise Refusal(error.code, error.detail) from error
        return Found(zero, mine)

    def find_whole(self, folder: str) -> Optional[Found]:
        """The newest step of which every rank's part is whole; None for none. All ranks find the same."""
        for step in CheckpointStore(_part(folder, 0)).steps():
            try:
                found = self.find(folder, step)
                for rank in range(found.zero.world_size):
                    CheckpointStore(_part(folder, rank)).at(step)
            except (Refusal, CheckpointError):
                continue
            return found
        return None

    def read(self, found: Found) -> Loaded:
        """Into memory.

        Raises:
            Refusal: UNSAFE, OTHER_SCRIPT.
        """
        replica = self._codec.load(found.zero.path(self._replica_file))
        own = self._codec.load((found.mine or found.zero).path(self._own_file))
        names = tuple(sorted([*replica, *own["kept"]]))
        if names != self._kept.names():
            raise Refusal("OTHER_SCRIPT", "{} saved, {} kept".format(names, self._kept.names()))
        return Loaded(replica, own, found.mine is not None)

    def put(self, loaded: Loaded) -> None:
        """Into what the script keeps, in place; a rank that is new has random generators of its own."""
        self._kept.load(loaded.replica)
        self._kept.load(loaded.own["kept"])
        if loaded.has_generators:
            self._codec.set_generators(loaded.own["generators"])

    def fingerprint(self, step: int, replica: Optional[Dict[str, Any]] = None) -> Fingerprint:
        """Where this process stands."""
        state, random_state = digest(), digest()
        for part in self._codec.parts(self._kept.replica() if replica is None else replica):
            state.update(part)
        for part in self._codec.parts(self._codec.generators()):
            random_state.update(part)
        return Fingerprint(step, self._kept.position(), random_state.hexdigest(), state.hexdigest())


def _part(folder: str, rank: int) -> str:
    return os.path.join(folder, "rank-{}".format(rank))
