"""Numbers as text: cells, aligned columns, comma-separated values."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any


def number_format(value: float) -> str:
    """Return the format of a score: three digits, fewer for a large number."""
    # Beyond six digits before the point a column would grow out of the table.
    digits = 3 if abs(value) < 10 else 1
    return f"z.{digits}f" if abs(value) < 1e6 else ".1e"


def aligned(cells: Sequence[Sequence[str]]) -> list[str]:
    """Return lines of equal length with a rule below the first; the first column is flush left."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    head, *lines = (
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in cells
    )
    return [head, "-" * len(head), *lines]


def as_csv(
    records: Sequence[Mapping[str, Any]], path: str | PathLike[str] | None = None
) -> str | None:
    """Return a header and a line per record, or write them to a file and return nothing."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(records[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    if path is None:
        return text.getvalue()
    Path(path).write_text(text.getvalue(), encoding="utf-8")
    return None
