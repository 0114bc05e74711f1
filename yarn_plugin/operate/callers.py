"""Who asks: an administrator has the secret, a user a token that the secret and the user's name give. Pure.

A token is told to a user once, by an administrator (`gandiva job token`), and kept nowhere: the core computes it again.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from hashlib import sha256

import msgspec

from gandiva_core.site.tokens import TOKEN_KEY

_SEPARATOR = ":"


class Caller(msgspec.Struct, frozen=True):
    """Who asks; an empty user is an administrator."""

    user: str = ""

    @property
    def is_administrator(self) -> bool:
        """Whether it may do everything."""
        return not self.user

    def may(self, user: str) -> bool:
        """Whether it may act on this user's jobs."""
        return self.is_administrator or self.user == user


def token_of(user: str, secret: str) -> str:
    """A user's token: the name, and a code that only the secret's owner can make.

    Raises:
        ValueError: a name that is empty or has the separator in it.
    """
    if not user or _SEPARATOR in user or not user.isprintable():
        raise ValueError(f"{user!r} is no user's name")
    code = hmac.new(secret.encode(), b"user\0" + user.encode(), sha256).hexdigest()
    return f"{user}{_SEPARATOR}{code}"


def caller_of(metadata: Iterable[tuple[str, str | bytes]] | None, secret: str) -> Caller | None:
    """Who shows what in a call's metadata; None for nobody. Compared in constant time."""
    text = next((str(value) for key, value in metadata or () if key == TOKEN_KEY), "")
    token = text.removeprefix("Bearer ")
    if not secret or token == text:
        return None
    user, separator, _ = token.partition(_SEPARATOR)
    if not separator:
        return Caller() if hmac.compare_digest(token.encode(), secret.encode()) else None
    try:
        expected = token_of(user, secret)
    except ValueError:
        return None
    return Caller(user) if hmac.compare_digest(token.encode(), expected.encode()) else None
