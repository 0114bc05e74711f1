"""What a script has named as its state, and where its loop stands: what a move or a checkpoint carries (G-68 B).

Framework-independent: a thing that is kept has `state_dict` and `load_state_dict`, or `variables` (Keras), or is a pair
of callables.
"""

from typing import Any, Callable, Dict, List, Tuple

Save = Callable[[], Any]
Load = Callable[[Any], Any]


class Kept:
    """Everything kept in this process, by name.

    Of a thing with a true ``is_of_rank`` each rank has its own, such as a place in its data; all else is the same on
    every rank, and one replica of it is enough. A thing with a true ``is_of_any_size`` goes on where it was with
    another number of workers.
    """

    def __init__(self) -> None:
        self._things: Dict[str, Any] = {}

    def __bool__(self) -> bool:
        return bool(self._things)

    def add(self, name: str, thing: Any) -> None:
        """Keep one more; the same name again takes the place of the first.

        Raises:
            TypeError: it has neither `state_dict` and `load_state_dict` nor `variables`.
        """
        has_states = callable(getattr(thing, "state_dict", None)) and callable(
            getattr(thing, "load_state_dict", None)
        )
        if not has_states and not hasattr(thing, "variables"):
            raise TypeError("{}: no state_dict and load_state_dict".format(name))
        self._things[name] = thing if has_states else Variables(thing)

    def replica(self) -> Dict[str, Any]:
        """State that is the same on every rank."""
        return self._states(is_of_rank=False)

    def own(self) -> Dict[str, Any]:
        """State that is this rank's alone."""
        return self._states(is_of_rank=True)

    def load(self, states: Dict[str, Any]) -> None:
        """Load into the things that are there, in place.

        Raises:
            KeyError: the script keeps something of a name that was not saved, or the other way round.
            ValueError: variables are not those that were saved.
        """
        self._build()
        for name, state in states.items():
            _inner(self._things[name]).load_state_dict(state)

    def names(self) -> Tuple[str, ...]:
        """Of all things, in order."""
        return tuple(sorted(self._things))

    def position(self) -> str:
        """Where each loop stands, for the continuity proof."""
        things = sorted(self._things.items())
        return ",".join(thing.position for _, thing in things if getattr(thing, "position", None))

    def is_of_any_size(self) -> bool:
        """Whether the data go on in order with another number of workers."""
        return any(getattr(each, "is_of_any_size", False) for each in self._things.values())

    def loaders(self) -> List[Any]:
        """Of the loops that are kept."""
        return [each.loader for each in self._things.values() if hasattr(each, "loader")]

    def _build(self) -> None:
        """An optimizer of Keras makes its variables in its first step, and here they are loaded before."""
        held = [each.thing for each in self._things.values() if isinstance(each, Variables)]
        trained = [v for thing in held for v in getattr(thing, "trainable_variables", ())]
        for thing in held:
            if hasattr(thing, "apply") and not getattr(thing, "built", True):
                thing.build(trained)

    def _states(self, is_of_rank: bool) -> Dict[str, Any]:
        return {
            name: _inner(thing).state_dict()
            for name, thing in sorted(self._things.items())
            if bool(getattr(thing, "is_of_rank", False)) == is_of_rank
        }


class Pair:
    """A script's own callables as a thing that is kept."""

    def __init__(self, save: Save, load: Load) -> None:
        self.state_dict = save
        self.load_state_dict = load


class Variables:
    """A model or an optimizer of Keras, or whatever has `variables`, as their values; metrics begin anew."""

    def __init__(self, thing: Any) -> None:
        self.thing = thing

    def state_dict(self) -> Dict[str, Any]:
        """Of all variables, in order."""
        return {"values": [each.numpy() for each in self._all()]}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """In place.

        Raises:
            ValueError: there are others.
        """
        variables, values = self._all(), state["values"]
        here = [tuple(each.shape) for each in variables]
        if here != [tuple(each.shape) for each in values]:
            text = "variables of shapes {} were saved, here are {}: is it built before the loop?"
            raise ValueError(text.format([tuple(each.shape) for each in values], here))
        for number, variable in enumerate(variables):
            variable.assign(values[number])

    def _all(self) -> List[Any]:
        metrics = {id(each) for each in getattr(self.thing, "metrics_variables", ())}
        return [each for each in self.thing.variables if id(each) not in metrics]


def _inner(thing: Any) -> Any:
    """A model without its wrapper, whose keys would depend on the number of workers."""
    is_wrapped = type(thing).__name__ in ("DistributedDataParallel", "DataParallel")
    return thing.module if is_wrapped else thing


kept = Kept()
"""Of this process."""
