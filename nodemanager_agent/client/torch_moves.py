"""PyTorch: the state of one replica out of a process and into another, at the top of the loop (G-68 B, G-69).

The source stops where the script says that a mini-batch begins, and writes what the script keeps and all random
generators. The destination has run the same script up to the same line, with everything built, waits there, loads in
place, proves that it stands where the source stood, and does one mini-batch before it says so.

Rank 0 writes the replica, whatever the number of ranks; every rank writes its own few kilobytes. All ranks read the
replica, side by side.
"""

import ctypes
import os
import random
import sys
import time
from typing import Any, Dict, Iterator, List, Optional, Tuple

import torch

from nodemanager_agent.client.checkpoints import Checkpoint, CheckpointError, CheckpointStore
from nodemanager_agent.client.continuity import SAMPLED, Fingerprint, digest, is_full
from nodemanager_agent.client.framework import Figures, Framework, Message, Refusal
from nodemanager_agent.client.kept import Kept
from nodemanager_agent.client.rank import Rank
from nodemanager_agent.client.wire import start_ticks

WARM = "GANDIVA_WARM"
"""Environment: this process is the destination of a move, and does no mini-batch before it has the source's state."""

SAFE_TORCH = (2, 10)
"""The first torch whose `torch.load(weights_only=True)` has no known hole."""

_REPLICA = "replica.pt"
_OWN = "own.pt"


class TorchMoves:
    """The legs of a move, for one rank."""

    def __init__(self, framework: Framework, rank: Rank, kept: Kept) -> None:
        self._framework = framework
        self._rank = rank
        self._kept = kept
        self._is_warm = bool(os.environ.get(WARM))
        self._restored: Optional[Message] = None
        self._figures: Figures = {}
        self._stopped_at_s = 0.0
        rank.handlers["save"] = self.save

    @property
    def is_awaited(self) -> bool:
        """Whether this process still has to get its state before it may train."""
        return self._is_warm

    def save(self, order: Message) -> Figures:
        """Write this rank's part below ``folder``.

        Returns:
            ``save_s`` and ``saved_mib``.

        Raises:
            Refusal: NOT_MOVABLE, NO_SPACE.
        """
        limits = self._framework.limits()
        if not limits.can_move:
            raise Refusal("NOT_MOVABLE", limits.reason)
        began_s, at_s = time.perf_counter(), time.time()
        store = CheckpointStore(_folder(order, self._framework.rank), keep=1)
        replica = self._kept.replica()
        where = self._fingerprint(replica)
        continuity = {**where._asdict(), "stopped_at_s": at_s}
        try:
            with store.write(
                self._rank.minibatches, "torch", self._framework.world_size, continuity
            ) as draft:
                with draft.open(_OWN) as file:
                    torch.save({"kept": self._kept.own(), "generators": generators()}, file)
                if self._framework.rank == 0:
                    with draft.open(_REPLICA) as file:
                        torch.save(replica, file)
        except CheckpointError as error:
            raise Refusal(error.code, error.detail) from error
        size = sum(seal.size for seal in draft.files.values())
        return {"save_s": time.perf_counter() - began_s, "saved_mib": size / 2.0**20}

    def warm_up(self, is_marked: bool = True) -> None:
        """Wait at the top of the first mini-batch for the state; does not return without it.

        Args:
            is_marked: whether the script is at a top: one that is elsewhere never gets a state, and is ended.
        """
        warm_s = _age_s()
        self._rank.join(is_warm=is_marked)
        while self._is_warm:
            message = self._rank.receive()
            if message is None:  # whoever wanted this process is gone, and the job runs elsewhere
                os._exit(1)
            if message["op"] == "restore" and is_marked:
                self._try(message, warm_s)
            elif message["op"] not in ("joined", "cancel"):
                self._rank.refuse(message, Refusal("NOT_WARM", "it waits for its state"))

    def confirm(self) -> None:
        """After each mini-batch: the first one after a restore is what the restore's answer waited for."""
        if self._restored is None:
            return
        message, self._restored = self._restored, None
        now_s = time.time()
        self._figures["first_minibatch_s"] = time.perf_counter() - self._figures.pop("ready")
        self._figures["frozen_s"] = now_s - self._stopped_at_s
        self._rank.answer(message, self._figures)

    # ------------------------------------------------------------------ restoring

    def _try(self, message: Message, warm_s: float) -> None:
        try:
            self._figures = {"warm_s": warm_s, **self._restore(message)}
        except Refusal as refusal:
            self._rank.refuse(message, refusal)
        except Exception as error:
            text = "{}: {}".format(type(error).__name__, error)
            self._rank.refuse(message, Refusal("FAILED", text))
        else:
            self._is_warm = False
            self._restored = message

    def _restore(self, message: Message) -> Figures:
        began_s, at_s = time.perf_counter(), time.time()
        zero, mine = self._read(message)
        verified_s = time.perf_counter()
        replica = load(zero.path(_REPLICA))
        own = load((mine or zero).path(_OWN))
        names = tuple(sorted([*replica, *own["kept"]]))
        if names != self._kept.names():
            raise Refusal("OTHER_SCRIPT", "{} saved, {} kept".format(names, self._kept.names()))
        self._kept.load(replica)
        self._kept.load(own["kept"])
        if mine is not None:  # a rank that is new in a gang that grew has generators of its own
            set_generators(own["generators"])
        source = (mine or zero).continuity
        self._rank.adopt(zero.step)
        # of buffers that a rank has to itself, such as batch norm's, rank 0's are what the next forward gives to all
        self._prove({**source, "state": zero.continuity["state"]}, mine is not None)
        self._stopped_at_s = float(source["stopped_at_s"])
        ready_s = time.perf_counter()
        return {
            "since_stop_s": at_s - self._stopped_at_s,
            "verify_s": verified_s - began_s,
            "load_s": ready_s - verified_s,
            "restore_s": ready_s - began_s,
            "ready": ready_s,
        }

    def _read(self, message: Message) -> Tuple[Checkpoint, Optional[Checkpoint]]:
        """Rank 0's part, and this rank's where it had one."""
        rank = self._framework.rank
        try:
            zero = CheckpointStore(_folder(message, 0)).read()
            is_known = rank < zero.world_size
            mine = CheckpointStore(_folder(message, rank)).read(zero.step) if is_known else None
        except CheckpointError as error:
            raise Refusal(error.code, error.detail) from error
        return zero, mine

    def _prove(self, source: Dict[str, Any], is_mine: bool) -> None:
        before = Fingerprint(*[source[name] for name in Fingerprint._fields])
        now = self._fingerprint(self._kept.replica())
        if not is_mine:
            before = before._replace(generators=now.generators)
        if not self._rank.prove("move", before, now):
            differences = ", ".join(before.differences(now))
            raise Refusal("CONTINUITY", "not as at the source: {}".format(differences))

    def _fingerprint(self, replica: Dict[str, Any]) -> Fingerprint:
        state, random_state = digest(), digest()
        for part in _parts(replica):
            state.update(part)
        for part in _parts(generators()):
            random_state.update(part)
        return Fingerprint(
            self._rank.minibatches,
            self._kept.position(),
            random_state.hexdigest(),
            state.hexdigest(),
        )


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
    except Exception as error:
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


def _folder(message: Message, rank: int) -> str:
    return os.path.join(str(message["folder"]), "rank-{}".format(rank))


def _age_s() -> float:
    """Seconds since this process began."""
    ticks: List[int] = [start_ticks(os.getpid()) or 0]
    return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks[0] / os.sysconf("SC_CLK_TCK")
