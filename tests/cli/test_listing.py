"""Listings: whole in a pipe, cut on a terminal."""

from __future__ import annotations

import pytest

from gandiva_core.cli.listing import Format, listing

HEAD = ("name", "text")
ROWS = [("a", "x" * 30), ("long-name", "y")]


def test_columns_line_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    lines = listing(HEAD, ROWS, Format.WIDE).splitlines()
    assert lines == ["NAME       TEXT", "a          " + "x" * 30, "long-name  y"]


def test_a_table_is_cut_to_the_terminal_with_an_ellipsis(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    cut = listing(HEAD, ROWS, Format.TABLE).splitlines()
    assert cut[1] == "a          xxxxxxxx…"
    assert len(listing(HEAD, ROWS, Format.WIDE).splitlines()[1]) == 41


def test_programs_get_everything() -> None:
    assert '"name": "a"' in listing(HEAD, ROWS, Format.JSON)
    assert listing(HEAD, ROWS, Format.CSV).splitlines()[0] == "name,text"
