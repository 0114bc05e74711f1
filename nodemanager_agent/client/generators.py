"""The states of Python's and numpy's global random generators as plain values, for files; numpy where it is loaded."""

import random
import sys
from typing import Any, Dict


def states() -> Dict[str, Any]:
    """As they are now."""
    version, words, gauss = random.getstate()
    numpy = sys.modules.get("numpy.random")
    state: Dict[str, Any] = {"python": [version, list(words), gauss], "numpy": None}
    if numpy is not None:
        name, keys, *rest = numpy.get_state()
        state["numpy"] = [str(name), [int(key) for key in keys], *[_plain(each) for each in rest]]
    return state


def set_states(state: Dict[str, Any]) -> None:
    """Put them to where they were."""
    version, words, gauss = state["python"]
    random.setstate((version, tuple(words), gauss))
    numpy = sys.modules.get("numpy.random")
    if numpy is not None and state["numpy"] is not None:
        numpy.set_state(tuple(state["numpy"]))


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value
