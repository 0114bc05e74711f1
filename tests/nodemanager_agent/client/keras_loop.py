"""A Keras program that names its state and where its mini-batches begin; told that it has a GPU, if asked."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import keras
import numpy as np
import tensorflow as tf

from nodemanager_agent import client


class Loader:
    """Batches in an order and with a noise that numpy's and Python's generators draw."""

    def __init__(self) -> None:
        rng = np.random.default_rng(3)
        self.inputs = rng.standard_normal((96, 16), dtype=np.float32)
        self.labels = (self.inputs.mean(1) > 0).astype(np.int32)

    def __iter__(self) -> Iterator[Any]:
        order = np.random.permutation(len(self.inputs)).reshape(-1, 16)
        for rows in order:
            noise = np.float32(0.01 * random.random())  # noqa: TID251 - the generator that scripts use
            yield self.inputs[rows] + noise, self.labels[rows]


def as_on_a_gpu() -> None:
    """The hook is to find what it would find beside a GPU: nothing else here depends on one."""
    from nodemanager_agent.client import tensorflow_hook

    if tensorflow_hook.boundaries is not None:
        tensorflow_hook.boundaries.framework._gpus = [tensorflow_hook.Gpu(True, None)]


def main() -> None:
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    keras.utils.set_random_seed(1)
    tf.config.experimental.enable_op_determinism()
    as_on_a_gpu()
    model = keras.Sequential(
        [
            keras.Input((16,)),
            keras.layers.Dense(64, activation="relu"),
            keras.layers.BatchNormalization(),
            keras.layers.Dropout(0.2),
            keras.layers.Dense(2),
        ]
    )
    optimizer = keras.optimizers.Adam(0.01)
    measure = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def step(images: Any, targets: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = measure(targets, model(images, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    compiled = tf.function(step)
    batches = client.Minibatches(Loader(), int(sys.argv[2]))
    client.keep(model=model, optimizer=optimizer, batches=batches)
    with Path(sys.argv[1]).open("a", buffering=1) as out:
        for number, (images, targets) in batches:
            out.write(f"{number} {float(compiled(images, targets)).hex()}\n")


if __name__ == "__main__":
    main()
