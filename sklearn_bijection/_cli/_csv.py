"""Comma-separated numbers, with or without a line of names above them."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._terminal import InputError

# Spreadsheets put a byte order mark in front.
_ENCODING = "utf-8-sig"


class _Head(NamedTuple):
    """What the first line says: the names of the columns if it has them, and where the data begin."""

    names: list[str] | None
    width: int
    skip: int

    @property
    def labelled(self) -> bool:
        """Whether the first column has no name, as where pandas writes its row labels."""
        return self.names is not None and self.width > 1 and not self.names[0]


def read_csv(path: Path) -> NDArray[np.float64]:
    """Read numbers, skipping a line of names and an unnamed column of row labels below it.

    Parameters
    ----------
    path : Path
        Columns separated by commas, lines of equal length; quotes are allowed.

    Returns
    -------
    rows : ndarray of shape (n_rows, width)

    Raises
    ------
    InputError
        If a cell is not a number or the lines differ in length. The message says in which line.
    """
    head = _read_head(path)
    label: Any = {0: lambda _: 0.0} if head.labelled else None
    try:
        with warnings.catch_warnings():
            # An empty table is reported by the caller.
            warnings.filterwarnings("ignore", "loadtxt: input contained no data")
            rows = np.loadtxt(
                path,
                delimiter=",",
                skiprows=head.skip,
                converters=label,
                comments=None,
                quotechar='"',
                ndmin=2,
                encoding=_ENCODING,
            )
    except ValueError as error:
        raise InputError(_first_fault(path, head) or f"{path}: {error}") from error
    return rows[:, 1:] if head.labelled else rows


def _lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Cells of each line that is not empty, and its number in the file."""
    with path.open(encoding=_ENCODING, newline="") as file:
        reader = csv.reader(file)
        yield from ((reader.line_num, [cell.strip() for cell in row]) for row in reader if row)


def _read_head(path: Path) -> _Head:
    number, cells = next(_lines(path), (0, []))
    if not cells:
        raise InputError(f"{path} is empty.")
    columns = cells if cells[0] else cells[1:]
    counted = len(columns) > 1 and columns == [str(i) for i in range(len(columns))]
    if counted and cells[0]:
        warnings.warn(
            f"{path}: the first line counts 0, 1, 2, ... and was taken for the names of the columns.",
            stacklevel=2,
        )
    if counted or any(cell and not _is_number(cell) for cell in columns):
        return _Head(cells, len(cells), number)
    return _Head(None, len(cells), 0)


def _first_fault(path: Path, head: _Head) -> str | None:
    for number, cells in _lines(path):
        if number <= head.skip:
            continue
        if len(cells) != head.width:
            return (
                f"{path}, line {number}: {len(cells)} columns, but the first line has {head.width}."
            )
        for place in range(int(head.labelled), head.width):
            if not _is_number(cells[place]):
                column = repr(head.names[place]) if head.names else f"{place} (counted from 0)"
                return (
                    f"{path}, line {number}, column {column}: {cells[place]!r} is not a number. "
                    "Keep numeric columns only, separated by commas."
                )
    return None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
