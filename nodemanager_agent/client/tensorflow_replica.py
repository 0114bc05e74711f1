"""TensorFlow and Keras: values to files and back, for `replica.py`: numpy's format, without pickles."""

import json
import zipfile
from typing import Any, Dict, Iterator, List

import numpy as np
import tensorflow as tf

from nodemanager_agent.client.continuity import SAMPLED, is_full
from nodemanager_agent.client.framework import Refusal
from nodemanager_agent.client.generators import set_states, states

_TREE = "tree"
_MARK = "$array"


class TensorFlowCodec:
    """As `replica.Codec`. Keras' own generators are variables, and saved with the model that has them."""

    name = "tensorflow"
    suffix = ".npz"

    def dump(self, value: Any, file: Any) -> None:
        """Arrays as they lie in memory, and one JSON text that says where each belongs."""
        arrays: List[Any] = []
        text = json.dumps(_flat(value, arrays)).encode()
        named = {"a{}".format(number): each for number, each in enumerate(arrays)}
        named[_TREE] = np.frombuffer(text, np.uint8)
        with zipfile.ZipFile(
            file, "w", allowZip64=True
        ) as archive:  # as `savez`, which wants to read
            for name, array in named.items():
                with archive.open(name + ".npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, array, allow_pickle=False)

    def load(self, path: str) -> Any:
        """What `dump` wrote; nothing of it is run.

        Raises:
            Refusal: UNSAFE.
        """
        try:
            with np.load(path, allow_pickle=False) as file:
                return _whole(json.loads(file[_TREE].tobytes().decode()), file)
        except Exception as error:  # whatever numpy makes of a file that is not what it wrote
            raise Refusal("UNSAFE", "{}: {}".format(type(error).__name__, error)) from error

    def generators(self) -> Dict[str, Any]:
        """Python's and numpy's."""
        return states()

    def set_generators(self, state: Dict[str, Any]) -> None:
        """Put them to where they were."""
        set_states(state)

    def parts(self, value: Any) -> Iterator[bytes]:
        """Of a large array bytes at an odd distance, as in `continuity`."""
        if isinstance(value, np.ndarray):
            yield "{}{}".format(value.shape, value.dtype).encode()
            flat = _bytes(value)
            yield flat[:: 1 if is_full() else flat.size // SAMPLED | 1].tobytes()
        elif isinstance(value, dict):
            for key in value:
                yield repr(key).encode()
                yield from self.parts(value[key])
        elif isinstance(value, (list, tuple)):
            yield "[{}]".format(len(value)).encode()
            for each in value:
                yield from self.parts(each)
        else:
            yield repr(value).encode()


def obstacle(loader: Any) -> str:
    """Why a loader would not give the same batches in another process; empty where nothing is known against it."""
    found, left = [], [loader] if isinstance(loader, tf.data.Dataset) else []
    while left:
        dataset = left.pop()
        found.append(type(dataset).__name__)
        left.extend(dataset._inputs())
    if any("Shuffle" in each for each in found):
        return "tf.data shuffles by a generator of its own, which begins anew in another process"
    return ""


def _flat(value: Any, arrays: List[Any]) -> Any:
    if isinstance(value, np.generic):
        value = np.asarray(value)
    if isinstance(value, np.ndarray):
        arrays.append(_bytes(value))
        return {_MARK: len(arrays) - 1, "dtype": value.dtype.name, "shape": list(value.shape)}
    if isinstance(value, dict):
        if any(not isinstance(key, str) for key in value):
            raise Refusal("NOT_MOVABLE", "a state with keys that are no text")
        return {key: _flat(each, arrays) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_flat(each, arrays) for each in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise Refusal("NOT_MOVABLE", "a state with a {}".format(type(value).__name__))


def _whole(value: Any, file: Any) -> Any:
    if isinstance(value, dict) and _MARK in value:
        dtype = tf.as_dtype(value["dtype"]).as_numpy_dtype
        return file["a{}".format(value[_MARK])].view(dtype).reshape(value["shape"])
    if isinstance(value, dict):
        return {key: _whole(each, file) for key, each in value.items()}
    if isinstance(value, list):
        return [_whole(each, file) for each in value]
    return value


def _bytes(array: Any) -> Any:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)
