"""Listings for people and for programs: ``--format table|wide|json|csv`` (DESIGN §10)."""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Sequence
from enum import StrEnum


class Format(StrEnum):
    """How a listing is printed."""

    TABLE = "table"
    """Columns, cut to the width of the terminal; whole in a pipe."""
    WIDE = "wide"
    """Columns, never cut."""
    JSON = "json"
    CSV = "csv"


def listing(head: Sequence[str], rows: Sequence[Sequence[str]], form: Format) -> str:
    """Rows as text, without a newline at the end."""
    if form is Format.JSON:
        return json.dumps([dict(zip(head, row, strict=True)) for row in rows], indent=2)
    if form is Format.CSV:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([head, *rows])
        return text.getvalue().rstrip("\n")
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    limit = shutil.get_terminal_size((10_000, 24)).columns if form is Format.TABLE else 10_000
    return "\n".join(line(row, widths, limit) for row in [[h.upper() for h in head], *rows])


def line(row: Sequence[str], widths: Sequence[int], limit: int) -> str:
    """One row, padded; cut with an ellipsis beyond `limit` characters."""
    text = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
    return text if len(text) <= limit else text[: limit - 1] + "…"
