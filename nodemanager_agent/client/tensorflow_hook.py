"""TensorFlow 2 and Keras: mini-batch boundaries without a changed line in the script (FACTS §6).

A boundary is the end of the outermost call of a `tf.function` that an optimizer was applied in when it was traced,
which is what Keras' `fit` calls for a batch; else an optimizer that is applied eagerly; in graph mode (TensorFlow 1) a
`Session.run` that fetches an operation. Evaluation and prediction apply no optimizer and are none.
"""

import json
import os
import sys
import threading
import weakref
from typing import Any, Callable, List, NamedTuple, Optional

import tensorflow as tf
from tensorflow.python.eager.polymorphic_function.polymorphic_function import Function

from nodemanager_agent.client import peers
from nodemanager_agent.client.continuity import Fingerprint, Generators, digest
from nodemanager_agent.client.framework import Figures, Framework, Limits, Refusal
from nodemanager_agent.client.kept import kept
from nodemanager_agent.client.moves import Moves
from nodemanager_agent.client.rank import Rank
from nodemanager_agent.client.replica import Replica
from nodemanager_agent.client.tensorflow_replica import TensorFlowCodec, obstacle
from nodemanager_agent.client.tensorflow_state import HostState, Variables

KEEPS = "TensorFlow keeps the GPU memory it frees until its process ends"
"""Case C09: nothing in this process gives a GPU's memory back, and nothing here says so."""

_SESSION = "a TensorFlow 1 session frees nothing"
_KEPT = "it keeps no state that could move (docs/CLIENT.md)"
_MARKED = "it does not say where its mini-batches begin (docs/CLIENT.md)"


class Gpu(NamedTuple):
    """How TensorFlow is set to use one GPU: whether it takes memory as it needs it, and at most how many MiB."""

    grows: bool
    limit_mib: Optional[int]


class TensorFlowFramework(Framework):
    """What `Rank` needs of TensorFlow.

    Attributes:
        kept: what the script keeps, which alone can move.
        is_marked: whether the script says itself where its mini-batches begin: its loop can go on elsewhere.
    """

    name = "tensorflow"

    def __init__(self, variables: Variables) -> None:
        self.is_graph_mode = False
        self.is_marked = False
        self.kept = kept
        self._state = HostState(variables)
        self._generators = Generators()
        self.rank, self.world_size = place(os.environ.get("TF_CONFIG"))
        self._gpus: Optional[List[Gpu]] = None

    def limits(self) -> Limits:
        """As `limits_of`; devices do not change once TensorFlow has looked at them."""
        if self._gpus is None:
            self._gpus = _gpus()
        return limits_of(self._gpus, self.world_size, self.is_graph_mode, self._stays())

    def _stays(self) -> str:
        """Why its state cannot go on in another process; empty where it can."""
        if not self.kept:
            return _KEPT
        if not self.is_marked:
            return _MARKED
        return next(filter(None, map(obstacle, self.kept.loaders())), "")

    def offload(self) -> Figures:
        """As `HostState.offload`."""
        limits = self.limits()
        if not limits.methods:
            raise Refusal("NOT_SUSPENDABLE", limits.reason)
        return self._state.offload()

    def reload(self) -> Figures:
        """As `HostState.reload`."""
        self._state.reload()
        return {}

    def let_go(self) -> None:
        """As `HostState.let_go`."""
        self._state.let_go()

    def repair(self) -> bool:
        """Copy back again what the host still has, and set the generators back."""
        self._generators.restore()
        return self._state.reload()

    def fingerprint(self, minibatches: int) -> Fingerprint:
        """Of variables, in which Keras has its random generators too, and of Python's and numpy's generators."""
        if not self._state.is_held:
            self._generators = Generators()
        total = digest()
        Generators().feed(total.update)
        return Fingerprint(minibatches, "", total.hexdigest(), self._state.checksum())


class Boundaries:
    """Knows which calls train."""

    def __init__(self, framework: TensorFlowFramework, rank: Rank) -> None:
        self.framework = framework
        self.rank = rank
        replica = Replica(framework, framework.kept, TensorFlowCodec())
        self._moves = Moves(framework, rank, replica)
        self._training: weakref.WeakSet[Any] = weakref.WeakSet()
        self._depth = 0
        self._has_applied = False
        self._has_trained = False
        self._thread = threading.get_ident()

    def call(self, original: Callable[..., Any], function: Any, args: Any, kwargs: Any) -> Any:
        """A `tf.function` is called."""
        if not self._is_mine() or not tf.executing_eagerly():
            return original(function, *args, **kwargs)
        outer, self._has_applied = self._has_applied, False
        self._depth += 1
        try:
            result = original(function, *args, **kwargs)
        finally:
            self._depth -= 1
            has_applied, self._has_applied = self._has_applied, outer
        if has_applied:
            self._training.add(function)
        if self._depth == 0 and function in self._training:
            self._trained()
        return result

    def apply(self, original: Callable[..., Any], optimizer: Any, args: Any, kwargs: Any) -> Any:
        """An optimizer is applied: while a function is traced, or eagerly, as a mini-batch of its own."""
        result = original(optimizer, *args, **kwargs)
        if self._is_mine():
            self._has_applied = True
            if self._depth == 0 and tf.executing_eagerly():
                self._trained()
        return result

    def run(self, original: Callable[..., Any], session: Any, args: Any, kwargs: Any) -> Any:
        """A session runs."""
        result = original(session, *args, **kwargs)
        fetches = args[0] if args else kwargs.get("fetches")
        flat = tf.nest.flatten(fetches)
        if self._is_mine() and any(isinstance(each, tf.Operation) for each in flat):
            self.framework.is_graph_mode = True
            self._trained()
        return result

    def mark(self) -> None:
        """At the top of a mini-batch, by the script: the boundary, where there was training since the last."""
        self.framework.is_marked = True
        if self._moves.is_awaited:
            self._moves.warm_up()
        elif self._has_trained:
            self._has_trained = False
            self.rank.boundary()
            self._moves.confirm()

    def _trained(self) -> None:
        if self.framework.is_marked:
            self._has_trained = True
            return
        if self._moves.is_awaited:  # a script without marks must not train beside the job
            self._moves.warm_up(is_marked=False)
        self.rank.boundary()

    def _is_mine(self) -> bool:
        return threading.get_ident() == self._thread


boundaries: Optional[Boundaries] = None
"""Of this process, once TensorFlow is loaded."""


def install() -> None:
    """Hook what is loaded of TensorFlow and Keras; called once for each of the two."""
    global boundaries  # noqa: PLW0603 - one hook a process
    if boundaries is None:
        peers.bind()
        framework = TensorFlowFramework(Variables())
        boundaries = Boundaries(framework, Rank(framework))
        _wrap(Function, "__call__", boundaries.call)
        _wrap(tf.compat.v1.Session, "run", boundaries.run)
    keras = sys.modules.get("keras.src.optimizers.base_optimizer")
    optimizer = getattr(keras, "BaseOptimizer", None)
    if optimizer is not None and not hasattr(optimizer.apply, "__wrapped__"):
        _wrap(optimizer, "apply", boundaries.apply)


def limits_of(gpus: List[Gpu], world_size: int, is_graph_mode: bool, stays: str) -> Limits:
    """What a TensorFlow process can do (C09).

    On a GPU it is never stopped in place, and packed only where each GPU it sees has a limit or grows by need.

    Args:
        gpus: that it sees.
        world_size: workers of the job.
        is_graph_mode: whether it runs sessions of TensorFlow 1.
        stays: why its state cannot go on in another process; empty where it can.
    """
    can_move = not stays and world_size == 1 and not is_graph_mode
    if gpus:
        can_pack = all(each.grows or each.limit_mib is not None for each in gpus)
        reason = (
            KEEPS if can_pack else KEEPS + "; it takes all memory, with neither limit nor growth"
        )
        return Limits([], can_pack, can_move, reason="; ".join(filter(None, [reason, stays])))
    if world_size > 1:
        return Limits([], reason="workers of TensorFlow cannot agree on a mini-batch to stop at")
    if is_graph_mode:
        return Limits([], reason=_SESSION)
    return Limits(["framework"], can_move=can_move, reason=stays)


def place(config: Optional[str]) -> "tuple[int, int]":
    """Rank and number of workers by ``TF_CONFIG``; alone where there is none or it says nothing."""
    try:
        told = json.loads(config or "{}")
        workers = [
            (kind, index)
            for kind in ("chief", "worker")
            for index in range(len(told["cluster"].get(kind, ())))
        ]
        task = told["task"]
        return workers.index((task["type"], int(task["index"]))), len(workers)
    except (ValueError, KeyError, TypeError, AttributeError):
        return 0, 1


def _gpus() -> List[Gpu]:
    found = []
    for device in tf.config.get_visible_devices("GPU"):
        parts = tf.config.get_logical_device_configuration(device) or ()
        limits = [each.memory_limit for each in parts if each.memory_limit is not None]
        is_limited = bool(parts) and len(limits) == len(parts)
        grows = bool(tf.config.experimental.get_memory_growth(device))
        found.append(Gpu(grows, sum(limits) if is_limited else None))
    return found


def _wrap(owner: Any, name: str, instead: Callable[..., Any]) -> None:
    original = getattr(owner, name)

    def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
        return instead(original, self, args, kwargs)

    wrapped.__wrapped__ = original  # type: ignore[attr-defined]
    wrapped.__doc__, wrapped.__name__ = original.__doc__, name
    setattr(owner, name, wrapped)
