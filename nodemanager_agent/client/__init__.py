"""What runs inside a job. Imports the standard library and the framework only, on Python 3.8 and later.

For scripts that want more than a script without a changed line has (docs/CLIENT.md, "API"). Outside of a job, and where
nothing is hooked, all of it does nothing, and `Minibatches` is a plain loop.
"""

from typing import Any

from nodemanager_agent.client.kept import Load, Pair, Save, kept
from nodemanager_agent.client.loop import Minibatches

__all__ = ["Minibatches", "checkpoint", "keep", "minibatch", "report"]


def minibatch() -> None:
    """A mini-batch begins here, at the top of the loop. From the first call on this is the boundary, and no step is."""
    hooked = _hooked()
    if hooked is not None:
        hooked.mark()


def keep(**things: Any) -> None:
    """Name what makes up the training's state, so that it can move: `state_dict` and `load_state_dict`, or `variables`.

    Models, optimizers, schedulers, scalers, `Minibatches`; call it once all of them are built, before the loop.

    Raises:
        TypeError: one has not.
    """
    for name, thing in things.items():
        kept.add(name, thing)


def checkpoint(save: Save, load: Load) -> None:
    """Keep what the script itself saves and loads: `save` gives tensors and plain values, `load` takes them over."""
    kept.add("checkpoint", Pair(save, load))


def report(step: int, metric: float) -> None:
    """Tell how good the model is by now, for policies that look at it."""
    hooked = _hooked()
    if hooked is not None:
        hooked.rank.report(int(step), float(metric))


def _hooked() -> Any:
    """The hook of the framework that this process has loaded; None for none."""
    import sys  # noqa: PLC0415 - no name of ours for scripts

    for name in ("torch_hook", "tensorflow_hook"):
        module = sys.modules.get("{}.{}".format(__name__, name))
        boundaries = getattr(module, "boundaries", None)
        if boundaries is not None:
            return boundaries
    return None
