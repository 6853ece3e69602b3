"""Files to rows: .npy through a memory map, .npz, .csv and .parquet."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import gen_batches

from .._compat import release_pages, require
from ._csv import read_csv
from ._terminal import InputError

_BLOCK_BYTES = 2**25


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of a file.

    Parameters
    ----------
    name : str
        The file, as the user called it.
    rows : ndarray or DataFrame of shape (n_rows, width)
        Numeric; a memory map where the format allows one.
    """

    name: str
    rows: Any

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.rows.shape[0])

    @property
    def width(self) -> int:
        """Number of columns."""
        return int(self.rows.shape[1])

    @property
    def shape(self) -> str:
        """The shape in words."""
        return f"{self.n_rows:,} rows, {self.width:,} wide"

    def blocks(self) -> list[slice]:
        """Cut the rows into blocks of bounded size."""
        return list(gen_batches(self.n_rows, max(1, _BLOCK_BYTES // (8 * self.width))))

    def __getitem__(self, block: slice) -> Any:
        """Some of the rows, as they came."""
        return self.rows.iloc[block] if hasattr(self.rows, "iloc") else self.rows[block]

    def checked(self, block: slice) -> Any:
        """A block of the rows, or an error that says where in the file a number is missing."""
        rows = self[block]
        frame = hasattr(rows, "iloc")
        values = rows.to_numpy(np.float64, na_value=np.nan) if frame else rows
        finite = np.isfinite(values)
        if not finite.all():
            row, column = (int(place) for place in np.argwhere(~finite)[0])
            kind = "NaN" if np.isnan(values[row, column]) else "infinity"
            raise InputError(
                f"{self.name} contains {kind}, first at row {block.start + row}, column {column} "
                "(counted from 0). Remove or impute such rows, together with their partners."
            )
        return rows

    def walk(self, blocks: Iterable[slice]) -> Iterator[Any]:
        """Yield checked blocks, and let go of the pages of a memory map behind them."""
        for block in blocks:
            yield self.checked(block)
            release_pages(self.rows)

    def check(self) -> Table:
        """Check every row, block by block."""
        for _ in self.walk(self.blocks()):
            pass
        return self


def read_table(place: str) -> Table:
    """Open the rows that a file holds.

    Parameters
    ----------
    place : str
        Path of a .npy, .npz, .csv or .parquet file; ``file.npz:name`` picks one of several arrays.

    Returns
    -------
    table : Table

    Raises
    ------
    InputError
        If the format is not known or the content is not a table of numbers.
    OSError
        If there is no such file.
    ImportError
        If the format needs a package that is not installed.
    """
    path, name = _split(place)
    suffix = path.suffix.lower()
    if suffix not in _READERS:
        raise InputError(
            f"{place} ends in {suffix!r}, a format that is not read here. Use {', '.join(_READERS)}."
        )
    try:
        rows = _READERS[suffix](path, name)
    except (InputError, OSError, ImportError):
        raise
    # A parser that meets garbage may raise anything.
    except Exception as error:
        raise InputError(f"{place} cannot be read as {suffix}: {error}") from error
    return Table(place, _numeric(rows, place))


def read_pair(x_place: str, y_place: str) -> tuple[Table, Table]:
    """Open two files whose rows belong together, and check every number in them."""
    X, y = read_table(x_place), read_table(y_place)
    _check_partners(
        X, y, "Row i of one belongs to row i of the other: drop rows without a partner."
    )
    return X.check(), y.check()


def read_weight(place: str | None, X: Table) -> NDArray[Any] | None:
    """Read one weight for each row of `X`."""
    if place is None:
        return None
    table = read_table(place)
    if table.width != 1:
        raise InputError(f"{place} has {table.width} columns. Weights are one number per row.")
    _check_partners(X, table, "Give one weight for each row.")
    weight: NDArray[Any] = np.asarray(table.check().rows).ravel()
    if (weight < 0).any() or not weight.any():
        raise InputError(
            f"{place} must hold weights of 0 or more, some of them positive; they lie between "
            f"{weight.min():g} and {weight.max():g}. A weight of 0 leaves a row out."
        )
    return weight


def _check_partners(first: Table, second: Table, advice: str) -> None:
    if first.n_rows != second.n_rows:
        raise InputError(
            f"{first.name} has {first.n_rows} rows but {second.name} has {second.n_rows}. {advice}"
        )


def _split(place: str) -> tuple[Path, str | None]:
    file, colon, name = place.rpartition(":")
    if colon and file.lower().endswith(".npz"):
        return Path(file), name
    return Path(place), None


def _read_npy(path: Path, _: str | None) -> Any:
    with path.open("rb") as file:
        # Says what is wrong with another kind of file; np.load would speak of pickles.
        np.lib.format.read_magic(file)
    return np.load(path, mmap_mode="r", allow_pickle=False)


def _read_npz(path: Path, name: str | None) -> Any:
    with path.open("rb") as file:
        if not zipfile.is_zipfile(file):
            raise InputError(f"{path} is not a .npz archive.")
    with np.load(path, allow_pickle=False) as archive:
        return archive[_pick(archive.files, name, path)]


def _pick(names: list[str], name: str | None, path: Path) -> str:
    """Choose the array asked for, or the only one."""
    if name is None and len(names) == 1:
        return names[0]
    if name in names:
        return name
    found = f"holds {len(names)} arrays" if name is None else f"has no array {name!r}"
    raise InputError(
        f"{path} {found}. Pick one as {path}:NAME, where NAME is one of {', '.join(names)}."
    )


def _read_parquet(path: Path, _: str | None) -> Any:
    require("pyarrow", "io")
    pandas = require("pandas", "io")
    frame = pandas.read_parquet(path)
    # scikit-learn remembers names only if all are text.
    frame.columns = frame.columns.astype(str)
    numeric = pandas.api.types.is_numeric_dtype
    other = [name for name in frame.columns if not numeric(frame[name])]
    if other:
        raise InputError(
            f"{path} has columns that are not numbers: {', '.join(map(repr, other[:5]))}"
            f"{', ...' if len(other) > 5 else ''}. Keep the numeric columns only."
        )
    return frame


_READERS: dict[str, Callable[[Path, str | None], Any]] = {
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".csv": lambda path, _: read_csv(path),
    ".parquet": _read_parquet,
}


def _numeric(rows: Any, place: str) -> Any:
    """Rows in two dimensions, if they are numbers."""
    if isinstance(rows, np.ndarray):
        if rows.dtype.kind not in "biuf":
            raise InputError(f"{place} holds {rows.dtype} values, not real numbers.")
        rows = rows.reshape(-1, 1) if rows.ndim == 1 else rows
    if rows.ndim != 2 or 0 in rows.shape:
        raise InputError(
            f"{place} has shape {rows.shape}. A table has at least one row and one column, and no "
            "third dimension: put what belongs together in one row."
        )
    return rows
