"""Who may ask (DESIGN §10): administrators by the secret, users by a token of their own, nobody else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gandiva_core.site.tokens import TOKEN_KEY, shown
from yarn_plugin.operate.callers import Caller, caller_of, token_of

SECRET = "0123456789abcdef"


def test_the_secret_makes_an_administrator() -> None:
    caller = caller_of(shown(SECRET), SECRET)
    assert caller == Caller()
    assert caller is not None
    assert caller.may("ann")


def test_a_users_token_is_good_for_that_users_jobs_alone() -> None:
    caller = caller_of(shown(token_of("ann", SECRET)), SECRET)
    assert caller == Caller("ann")
    assert caller is not None
    assert (caller.may("ann"), caller.may("bob"), caller.is_administrator) == (True, False, False)


@pytest.mark.parametrize(
    "metadata",
    [
        None,
        (),
        ((TOKEN_KEY, SECRET),),
        ((TOKEN_KEY, "Bearer "),),
        shown(SECRET + "0"),
        shown("bob:" + token_of("ann", SECRET).partition(":")[2]),
        shown(token_of("ann", "another secret")),
        shown(":" + SECRET),
        shown("é:ü"),
        ((TOKEN_KEY, b"Bearer \xff"),),
    ],
)
def test_nobody_else_is_let_in(metadata: tuple[tuple[str, str | bytes], ...] | None) -> None:
    assert caller_of(metadata, SECRET) is None


def test_without_a_secret_nobody_is() -> None:
    assert caller_of(shown(""), "") is None
    assert caller_of(shown(token_of("ann", "")), "") is None


@pytest.mark.parametrize("name", ["", "a:b", "a\nb"])
def test_what_is_no_name_has_no_token(name: str) -> None:
    with pytest.raises(ValueError, match="name"):
        token_of(name, SECRET)


@given(text=st.text(max_size=80))
def test_whatever_is_shown_is_nobody(text: str) -> None:
    """FAULTS E16: what comes over the wire raises nothing."""
    assert caller_of(((TOKEN_KEY, text),), SECRET) is None
