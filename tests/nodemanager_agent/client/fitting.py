"""A TensorFlow program as a user would write one: `fit`, a loop of its own with `tf.function`, and one without."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import keras
import tensorflow as tf

EPOCHS, STEPS = 3, 24


class Losses(keras.callbacks.Callback):  # type: ignore[misc]
    """Each batch's loss in every bit."""

    def __init__(self, out: Any) -> None:
        super().__init__()
        self.out = out

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.out.write(f"fit {batch} {float(logs['loss']).hex()}\n")


def main() -> None:
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    keras.utils.set_random_seed(1)
    tf.config.experimental.enable_op_determinism()
    inputs = tf.random.normal([128, 16])
    labels = tf.cast(tf.reduce_mean(inputs, 1) > 0, tf.int32)
    model = keras.Sequential(
        [
            keras.layers.Dense(2048, activation="relu"),
            keras.layers.BatchNormalization(),
            keras.layers.Dropout(0.2),
            keras.layers.Dense(4096),
            keras.layers.Dense(2),
        ]
    )
    measure = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(0.01), measure, metrics=["accuracy"])
    with Path(sys.argv[1]).open("w", buffering=1) as out:
        model.fit(
            inputs,
            labels,
            batch_size=16,
            epochs=EPOCHS,
            verbose=0,
            callbacks=[Losses(out)],
            validation_data=(inputs[:32], labels[:32]),
        )
        own_loop(model, measure, inputs, labels, out)
        out.write(f"{float(sum(tf.reduce_sum(w) for w in model.trainable_variables)).hex()}\n")


def own_loop(model: Any, measure: Any, inputs: Any, labels: Any, out: Any) -> None:
    """With `tf.function`, then eagerly."""
    optimizer = keras.optimizers.SGD(0.05, momentum=0.9)

    def step(images: Any, targets: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = measure(targets, model(images, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    compiled = tf.function(step)
    data = tf.data.Dataset.from_tensor_slices((inputs, labels)).shuffle(128).batch(16).repeat()
    for number, (images, targets) in enumerate(data.take(STEPS)):
        loss = (compiled if number < STEPS // 2 else step)(images, targets)
        out.write(f"own {number} {float(loss).hex()}\n")


if __name__ == "__main__":
    main()
