"""What a comparison of many spaces found: one value per pair, labelled on both sides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._compat import require
from .._tables import aligned, as_csv, number_format

_LINE_WIDTH = 100
# Rows and columns printed in full; of more, so many from each end.
_MOST, _END = 13, 5
_GAP = -1


@dataclass(frozen=True, eq=False, repr=False)
class SimilarityMatrix:
    """Similarity of every pair of spaces, with the names of the spaces.

    ``print(matrix)`` shows a table; of many spaces it shows the first and the last.

    Attributes
    ----------
    values : ndarray of shape (n_spaces_a, n_spaces_b)
        What the measure says about the space of the row and that of the column.
    labels : tuple of str
        Names of the rows.
    columns : tuple of str
        Names of the columns; those of the rows, unless other spaces were compared with.
    metric : str
        Name of the measure.
    """

    values: NDArray[np.float64]
    labels: tuple[str, ...]
    columns: tuple[str, ...]
    metric: str

    def to_frame(self) -> Any:
        """Return the values as a pandas DataFrame, one row and one column per space.

        Returns
        -------
        frame : pandas.DataFrame of shape (n_spaces_a, n_spaces_b)
            With `labels` as index and `columns` as columns.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        frame = require("pandas", "io").DataFrame
        return frame(self.values, index=list(self.labels), columns=list(self.columns))

    def to_csv(self, path: str | PathLike[str] | None = None) -> str | None:
        """Write the values as comma-separated text with both names, without the need for pandas.

        Parameters
        ----------
        path : str or path-like, default=None
            File to write; an existing one is replaced. None returns the text.

        Returns
        -------
        text : str or None
            None if a file was written.
        """
        records = [
            {"": label, **dict(zip(self.columns, row, strict=True))}
            for label, row in zip(self.labels, self.values.tolist(), strict=True)
        ]
        return as_csv(records, path)

    def __repr__(self) -> str:
        n_rows, n_columns = self.values.shape
        return f"<SimilarityMatrix of {n_rows} x {n_columns} spaces: {self.metric}>"

    def __str__(self) -> str:
        rows, columns = _shown(len(self.labels)), _shown(len(self.columns))
        body = [[_cell(self.values, row, column) for column in columns] for row in rows]
        heads = [_name(self.columns, column) for column in columns]
        names = [_name(self.labels, row) for row in rows]
        lines = _lines(self.metric, heads, names, body)
        if len(lines[0]) <= _LINE_WIDTH:
            return "\n".join(lines)
        numbers = ["..." if column == _GAP else str(column) for column in columns]
        if heads != numbers and self.labels == self.columns:
            names = [_name(self.labels, row, numbered=True) for row in rows]
        legend = [] if heads == numbers else self._legend(columns)
        return "\n".join([*_lines(self.metric, numbers, names, body), *legend])

    def _legend(self, shown: Sequence[int]) -> list[str]:
        """Say what the numbers of the columns mean."""
        if self.labels == self.columns:
            return ["", "Columns: the spaces of the rows, by their numbers."]
        return ["", "Columns:", *(_name(self.columns, column, numbered=True) for column in shown)]


def _shown(count: int) -> list[int]:
    """Numbers of the rows to print, with a mark where some are left out."""
    if count <= _MOST:
        return list(range(count))
    return [*range(_END), _GAP, *range(count - _END, count)]


def _name(labels: Sequence[str], number: int, *, numbered: bool = False) -> str:
    if number == _GAP:
        return "..."
    return f"{number:>3}  {labels[number]}" if numbered else labels[number]


def _cell(values: NDArray[np.float64], row: int, column: int) -> str:
    if _GAP in (row, column):
        return "..."
    value = float(values[row, column])
    return f"{value:{number_format(value)}}"


def _lines(
    title: str, heads: Sequence[str], names: Sequence[str], body: Sequence[Sequence[str]]
) -> list[str]:
    rows = ([name, *cells] for name, cells in zip(names, body, strict=True))
    return aligned([[title, *heads], *rows])
