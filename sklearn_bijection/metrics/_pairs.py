"""What every metric starts from: two arrays of one shape, and rows of unit length."""

from __future__ import annotations

import warnings
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array


class Aligner(Protocol):
    """Anything fitted that maps both ways: an aligner, a Pipeline that ends in one, a grid search."""

    def transform(self, X: Any, /) -> Any:
        """Map X space to y space."""

    def inverse_transform(self, y: Any, /) -> Any:
        """Map y space to X space."""


def as_columns(y: Any) -> Any:
    """`y` as it came, or as one column if it is 1-D."""
    return np.asarray(y).reshape(-1, 1) if np.ndim(y) == 1 else y


def as_floats(array: ArrayLike, name: str) -> NDArray[Any]:
    """Return a finite 2-D float array: float32 stays float32, everything else becomes float64."""
    checked = check_array(
        array,
        dtype=[np.float64, np.float32],
        ensure_2d=False,
        ensure_min_samples=1,
        input_name=name,
    )
    return np.asarray(as_columns(checked))


def as_pair(
    first: ArrayLike, second: ArrayLike, names: tuple[str, str] = ("y_true", "y_pred")
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Two finite float arrays of one shape, or a ValueError that names both shapes."""
    left, right = as_floats(first, names[0]), as_floats(second, names[1])
    if left.shape != right.shape:
        raise ValueError(
            f"{names[0]} has shape {left.shape} but {names[1]} has shape {right.shape}. "
            "They are compared row by row and column by column: pass arrays of the same shape."
        )
    return left, right


def walk_there(aligner: Aligner, X: Any) -> Any:
    """Transform rows that the aligner itself brought back to X space."""
    with warnings.catch_warnings():
        # They are in the order of the fitted columns, only without their names.
        warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        return aligner.transform(X)


def check_maps_both_ways(aligner: Any, name: str) -> None:
    """Raise a TypeError unless `aligner` has a way there and a way back."""
    if not (hasattr(aligner, "transform") and hasattr(aligner, "inverse_transform")):
        raise TypeError(
            f"{name} is {aligner!r}, which lacks transform or inverse_transform. "
            "Pass an estimator that maps both ways."
        )


def check_row_counts(X: Any, y: Any) -> None:
    """Raise a ValueError unless `X` and `y` have equally many rows."""
    counts = [array.shape[0] if hasattr(array, "shape") else len(array) for array in (X, y)]
    if counts[0] != counts[1]:
        raise ValueError(
            f"X has {counts[0]} rows but y has {counts[1]}. Row i of X is paired with row i of y: "
            "drop the rows that have no partner."
        )


def unit_rows(rows: NDArray[Any]) -> NDArray[Any]:
    """Rows divided by their Euclidean norm; a row of zeros stays zero."""
    # Dividing by the largest entry first keeps the squares of tiny and huge rows representable.
    scaled = _divide(rows, np.maximum(rows.max(axis=1), -rows.min(axis=1)))
    return _divide(scaled, np.sqrt(np.einsum("ij,ij->i", scaled, scaled)))


def _divide(rows: NDArray[Any], size: NDArray[Any]) -> NDArray[Any]:
    return rows / np.where(size > 0, size, size.dtype.type(1))[:, np.newaxis]
