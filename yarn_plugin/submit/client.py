"""Where the Java client is that submits, and what calls it."""

from __future__ import annotations

from pathlib import Path

from gandiva_core.model.errors import InputError
from yarn_plugin.bridge.jvm import TARGET_DIR

CLIENT_JAR = "gandiva-client.jar"


def client_jar(target: Path = TARGET_DIR) -> Path:
    """The jar of client and master.

    Raises:
        InputError: it was not built.
    """
    jar = target / CLIENT_JAR
    if not jar.is_file():
        raise InputError(str(target), f"no {CLIENT_JAR}", "the client's jar: run `make plugin`")
    return jar
