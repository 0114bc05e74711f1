"""Where results go is looked at before work begins, so that no hour of it is lost to a mistyped name."""

from __future__ import annotations

import os
from pathlib import Path

from gandiva_core.model.errors import InputError


def check_file(path: Path, place: str) -> None:
    """Whether a file can be written there.

    Args:
        path: the file to be.
        place: how an error begins, as ``--document page.md``.

    Raises:
        InputError: a directory stands there, the folder is missing, or it cannot be written to.
    """
    if path.is_dir():
        found = "a directory"
    elif not path.parent.is_dir():
        found = "a folder that does not exist"
    elif not os.access(path if path.exists() else path.parent, os.W_OK):
        found = "not writable"
    else:
        return
    raise InputError(place, found, "a path to write to")
