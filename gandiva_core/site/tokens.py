"""Secrets in files, read where nobody else may, and how they are shown in a call."""

from __future__ import annotations

import stat
from pathlib import Path

from gandiva_core.model.errors import InputError

TOKEN_KEY = "authorization"


def shown(token: str) -> tuple[tuple[str, str], ...]:
    """A call's metadata that shows a token."""
    return ((TOKEN_KEY, f"Bearer {token}"),)


def read_token(file: Path, place: str) -> str:
    """The secret in a file of one line that only its owner may read.

    Args:
        file: to read.
        place: who names it, for the error.

    Raises:
        InputError: there is no such file, or others may read it, or it is empty or not ASCII.
    """
    expected = "a file of mode 0600 with a secret in one line"
    try:
        mode = stat.S_IMODE(file.stat().st_mode)
        text = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(place, f"{file}: {error}", expected) from error
    if mode & 0o077:
        raise InputError(place, f"{file} of mode {mode:04o}", expected)
    if not text or not text.isascii():
        raise InputError(place, f"{file} without a secret", expected)
    return text
