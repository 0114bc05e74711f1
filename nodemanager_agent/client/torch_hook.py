"""PyTorch: every mini-batch boundary by the global optimizer-step hook; no changed line in the script (FACTS §5).

The boundary is the step of the optimizer that stepped first: with gradient accumulation that is every
k-th backward, and a job of two optimizers has one boundary a round.
"""

import sys
import weakref
from typing import Any, Callable, List, Optional

import torch

from nodemanager_agent.client import peers
from nodemanager_agent.client.continuity import Fingerprint, Generators, digest
from nodemanager_agent.client.framework import Figures, Framework, Limits, Refusal
from nodemanager_agent.client.kept import kept
from nodemanager_agent.client.moves import Moves
from nodemanager_agent.client.rank import Rank
from nodemanager_agent.client.replica import Replica
from nodemanager_agent.client.ring import Memory
from nodemanager_agent.client.torch_device import device_of
from nodemanager_agent.client.torch_gang import Alone, gang_of
from nodemanager_agent.client.torch_periodic import Periodic
from nodemanager_agent.client.torch_replica import TorchCodec, obstacle
from nodemanager_agent.client.torch_state import DeviceState, LiveTensors


class TorchFramework(Framework):
    """What `Rank` needs of PyTorch.

    Attributes:
        positions: further answers to "where does the data stand", of iterators that know (`iterator.py`).
        kept: what the script keeps, which alone can move.
        is_marked: whether the script says itself where its mini-batches begin: its loop can go on elsewhere.
    """

    name = "torch"

    def __init__(self) -> None:
        self.positions: List[Callable[[], str]] = []
        self.kept = kept
        self.is_marked = False
        self._gang = Alone()
        self._tensors = LiveTensors()
        self._state: Optional[DeviceState] = None
        self._generators = Generators()
        self._torch_generators: List[Any] = []

    def begin(self, optimizer: Any) -> None:
        """At each boundary: the first one finds the device; a process group that came or changed makes a new gang."""
        self.meet()
        if self._state is None:
            parameters = [each for group in optimizer.param_groups for each in group["params"]]
            self._state = DeviceState(device_of(parameters[0]), self._tensors)
            self._state.prepare()

    def meet(self) -> None:
        """Find the gang this process is in; all its ranks do so at the same boundary."""
        self._gang = gang_of(self._gang)
        self.rank, self.world_size = self._gang.rank, self._gang.world_size

    def limits(self) -> Limits:
        """Sharded jobs stop in place only: no replica has the whole state."""
        if self._tensors.has_graphs:
            can_move = not self._move_reason()  # to a process that captures graphs of its own
            return Limits(
                [], can_move=can_move, reason="CUDA graphs hold addresses of device memory"
            )
        if self._gang.reason:
            return Limits([], reason=self._gang.reason)
        if self._tensors.sharded:
            return Limits(
                ["framework"],
                reason="sharded ({}): suspended in place only".format(self._tensors.sharded),
            )
        reason = self._move_reason()
        can_resize = not reason and self.kept.is_of_any_size()
        return Limits(["framework"], True, not reason, can_resize, reason)

    def _move_reason(self) -> str:
        if not self.kept:
            return "it keeps no state that could move (docs/CLIENT.md)"
        if not self.is_marked:
            return "it does not say where its mini-batches begin (docs/CLIENT.md)"
        return obstacle()

    def offload(self) -> Figures:
        """As `DeviceState.offload`."""
        limits = self.limits()
        if not limits.methods:
            raise Refusal("NOT_SUSPENDABLE", limits.reason)
        return self._present().offload()

    def reload(self) -> Figures:
        """As `DeviceState.reload`."""
        return self._state.reload() if self._state is not None else {}

    def let_go(self) -> None:
        """As `DeviceState.let_go`."""
        if self._state is not None:
            self._state.let_go()

    def fingerprint(self, minibatches: int) -> Fingerprint:
        """Of tensors, loaders and generators, as they are now."""
        state = self._present()
        if not state.is_held:
            state.look()
            self._generators = Generators()
            self._torch_generators = _torch_generators()
        total = digest()
        Generators().feed(total.update)
        for each in _torch_generators():
            total.update(each.numpy().tobytes() if "numpy" in sys.modules else bytes(each.tolist()))
        drawn = sorted(loader._num_yielded for loader in self._tensors.loaders)
        position = ",".join([str(each) for each in drawn] + [each() for each in self.positions])
        return Fingerprint(minibatches, position, total.hexdigest(), state.checksum())

    def repair(self) -> bool:
        """Copy back again what the host still has, and set the generators back."""
        self._generators.restore()
        first, *others = self._torch_generators
        torch.set_rng_state(first)
        if others:
            torch.cuda.set_rng_state_all(others)
        return self._present().copy_back()

    def memory(self) -> Optional[Memory]:
        """Live tensors now, and the peak since the last look."""
        state = self._present()
        memory = state.memory()
        state.forget()
        return memory

    def is_same(self, number: int) -> bool:
        """As `Gang.is_same`."""
        return self._gang.is_same(number)

    def agree(self, is_wanted: bool) -> bool:
        """As `Gang.agree`."""
        return self._gang.agree(is_wanted)

    def settle(self, is_stopped: bool) -> bool:
        """As `Gang.settle`."""
        return self._gang.settle(is_stopped)

    def is_resuming(self) -> bool:
        """As `Gang.is_resuming`."""
        return self._gang.is_resuming()

    def regather(self) -> None:
        """As `Gang.regather`."""
        self._gang.regather()

    def _present(self) -> DeviceState:
        if self._state is None:
            raise Refusal("NO_BOUNDARY", "no mini-batch was done yet")
        return self._state


class Boundaries:
    """The hook itself: tells the leading optimizer's steps from the others', and heeds a script's own marks."""

    def __init__(self, framework: TorchFramework, rank: Rank) -> None:
        self.framework = framework
        self.rank = rank
        replica = Replica(framework, framework.kept, TorchCodec())
        self._moves = Moves(framework, rank, replica)
        self._checkpoints = Periodic(framework, rank, framework.kept, replica)
        self._leading: Optional[weakref.ref[Any]] = None
        self._has_stepped = False

    def __call__(self, optimizer: Any, _args: Any, _kwargs: Any) -> None:
        """After an optimizer's step."""
        leading = self._leading() if self._leading is not None else None
        if leading is None:
            self._leading = weakref.ref(optimizer)
        elif leading is not optimizer:
            return
        if self.framework.is_marked:
            self._has_stepped = True
            return
        self._checkpoints.unmarked()
        if (
            self._moves.is_awaited
        ):  # a script without marks was warmed up: it must not train beside the job
            self._moves.warm_up(is_marked=False)
        self.rank.boundary(lambda: self.framework.begin(optimizer))

    def mark(self) -> None:
        """At the top of a mini-batch, by the script: the boundary, where an optimizer has stepped since the last."""
        self.framework.is_marked = True
        if self._moves.is_awaited:
            self.framework.meet()
            self._moves.warm_up()
            self._checkpoints.go_on(self.rank.minibatches)
            return
        self._checkpoints.begin()
        leading = self._leading() if self._leading is not None else None
        if self._has_stepped and leading is not None:
            self._has_stepped = False
            self.rank.boundary(lambda: self.framework.begin(leading))
            self._moves.confirm()
            self._checkpoints.boundary()


Boundaries.__call__._torchdynamo_disable = True  # type: ignore[attr-defined]  # run, not compiled, in a compiled step

boundaries: Optional[Boundaries] = None
"""Of this process, once torch is loaded: what else knows more of the job (iterator, checkpoint) tells it here."""


def install() -> None:
    """Hook torch's optimizers; called once torch is loaded."""
    global boundaries  # noqa: PLW0603 - one hook a process
    if boundaries is None:
        from torch.optim.optimizer import (  # noqa: PLC0415 - torch is half loaded before
            register_optimizer_step_post_hook,
        )

        peers.bind()
        framework = TorchFramework()
        boundaries = Boundaries(framework, Rank(framework))
        register_optimizer_step_post_hook(boundaries)


def _torch_generators() -> List[Any]:
    states = [torch.get_rng_state()]
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        states += torch.cuda.get_rng_state_all()
    return states
