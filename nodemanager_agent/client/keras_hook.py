"""Keras, which may come after TensorFlow, or run on another framework: its optimizers, where TensorFlow is hooked."""

import sys


def install() -> None:
    """Let TensorFlow's hook see the optimizers."""
    if "tensorflow" in sys.modules:
        from nodemanager_agent.client import tensorflow_hook  # noqa: PLC0415 - loads TensorFlow

        tensorflow_hook.install()
