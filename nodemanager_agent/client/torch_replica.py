"""PyTorch: one replica of a gang's state in files, and back (G-68 B): for moves, resizes and checkpoints.

Rank 0 writes the replica, whatever the number of ranks; every rank writes its own few kilobytes. All ranks read the
replica, side by side.
"""

import ctypes
import os
import random
import sys
from typing import Any, Dict, Iterator, NamedTuple, Optional

import torch

from nodemanager_agent.client.checkpoints import Checkpoint, CheckpointError, CheckpointStore
from nodemanager_agent.client.continuity import SAMPLED, Fingerprint, digest, is_full
from nodemanager_agent.client.framework import Framework, Refusal
from nodemanager_agent.client.kept import Kept

SAFE_TORCH = (2, 10)
"""The first torch whose `torch.load(weights_only=True)` has no known hole."""

_REPLICA = "replica.pt"
_OWN = "own.pt"


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

    def __init__(self, framework: Framework, kept: Kept) -> None:
        self._framework = framework
        self._kept = kept

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
            with store.write(step, "torch", self._framework.world_size, continuity) as draft:
                with draft.open(_OWN) as file:
                    torch.save({"kept": self._kept.own(), "generators": generators()}, file)
                if self._framework.rank == 0:
                    with draft.open(_REPLICA) as file:
                        torch.save(replica, file)
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
        replica = load(found.zero.path(_REPLICA))
        own = load((found.mine or found.zero).path(_OWN))
        names = tuple(sorted([*replica, *own["kept"]]))
        if names != self._kept.names():
            raise Refusal("OTHER_SCRIPT", "{} saved, {} kept".format(names, self._kept.names()))
        return Loaded(replica, own, found.mine is not None)

    def put(self, loaded: Loaded) -> None:
        """Into what the script keeps, in place; a rank that is new has random generators of its own."""
        self._kept.load(loaded.replica)
        self._kept.load(loaded.own["kept"])
        if loaded.has_generators:
            set_generators(loaded.own["generators"])

    def fingerprint(self, step: int, replica: Optional[Dict[str, Any]] = None) -> Fingerprint:
        """Where this process stands."""
        state, random_state = digest(), digest()
        for part in _parts(self._kept.replica() if replica is None else replica):
            state.update(part)
        for part in _parts(generators()):
            random_state.update(part)
        return Fingerprint(step, self._kept.position(), random_state.hexdigest(), state.hexdigest())


def _part(folder: str, rank: int) -> str:
    return os.path.join(folder, "rank-{}".format(rank))


def obstacle() -> str:
    """Why this torch cannot take a state over; empty where it can."""
    version = tuple(int(part) for part in torch.__version__.split(".")[:2])
    if version < SAFE_TORCH:
        return "torch {} reads what was saved unsafely; 2.10 does not".format(torch.__version__)
    return ""


def load(path: str) -> Any:
    """What `torch.save` wrote: tensors and plain values; anything else is not run but refused (E14).

    Raises:
        Refusal: UNSAFE.
    """
    reason = obstacle()
    if reason:
        raise Refusal("UNSAFE", reason)
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # whatever torch makes of a file that is not what it wrote
        first = str(error).strip().splitlines()[0] if str(error).strip() else ""
        raise Refusal("UNSAFE", "{}: {}".format(os.path.basename(path), first)) from error


def generators() -> Dict[str, Any]:
    """States of Python's, numpy's (where loaded) and torch's random generators, as plain values and tensors."""
    version, words, gauss = random.getstate()
    numpy = sys.modules.get("numpy.random")
    state: Dict[str, Any] = {
        "python": [version, list(words), gauss],
        "torch": torch.get_rng_state(),
        "cuda": [],
        "numpy": None,
    }
    if numpy is not None:
        name, keys, *rest = numpy.get_state()
        state["numpy"] = [str(name), [int(key) for key in keys], *[_plain(each) for each in rest]]
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        state["cuda"] = torch.cuda.get_rng_state_all()
    return state


def set_generators(state: Dict[str, Any]) -> None:
    """Put them to where they were."""
    version, words, gauss = state["python"]
    random.setstate((version, tuple(words), gauss))
    torch.set_rng_state(state["torch"])
    numpy = sys.modules.get("numpy.random")
    if numpy is not None and state["numpy"] is not None:
        numpy.set_state(tuple(state["numpy"]))
    for number, each in enumerate(state["cuda"][: torch.cuda.device_count()]):
        torch.cuda.set_rng_state(each, number)


def _parts(value: Any) -> Iterator[bytes]:
    """Bytes that stand for a nested value; of a large tensor bytes at an odd distance, as in `continuity`."""
    if isinstance(value, torch.Tensor):
        yield "{}{}".format(tuple(value.shape), value.dtype).encode()
        flat = value.detach().contiguous().flatten().view(torch.uint8)
        step = 1 if is_full() else flat.numel() // SAMPLED | 1
        words = flat[::step].cpu().contiguous()
        yield ctypes.string_at(words.data_ptr(), words.numel()) if words.numel() else b""
    elif isinstance(value, dict):
        for key in value:
            yield repr(key).encode()
            yield from _parts(value[key])
    elif isinstance(value, (list, tuple)):
        yield "[{}]".format(len(value)).encode()
        for each in value:
            yield from _parts(each)
    else:
        yield repr(value).encode()


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value
