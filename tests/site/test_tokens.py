"""Secrets in files are read where nobody else may read them (DESIGN §5)."""

from __future__ import annotations

from pathlib import Path

import pytest

from gandiva_core.model.errors import InputError
from gandiva_core.site.tokens import read_token


def test_one_line_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("t\n")
    file.chmod(0o600)
    assert read_token(file, "here") == "t"


@pytest.mark.parametrize(
    ("content", "mode", "told"),
    [
        ("t", 0o644, "mode 0644"),
        ("\n", 0o600, "without a secret"),
        ("é", 0o600, "without a secret"),
    ],
)
def test_what_others_may_read_or_cannot_be_shown_is_refused(
    tmp_path: Path, content: str, mode: int, told: str
) -> None:
    file = tmp_path / "token"
    file.write_text(content)
    file.chmod(mode)
    with pytest.raises(InputError, match=told):
        read_token(file, "here")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"here: .*nothing"):
        read_token(tmp_path / "nothing", "here")
