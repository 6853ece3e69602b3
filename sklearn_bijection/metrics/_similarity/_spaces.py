"""What every measure starts from: two finite arrays with paired rows, and one of them centred."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array

from ..._moments import ViewMoments
from ..._moments._scatter import centre, precision_of, scatter_of
from ..._validation import FLOATS, check_finite
from .._pairs import as_columns
from ._measure import Array, UnfitError

Space = NDArray[Any]


def check_spaces(X: ArrayLike, Y: ArrayLike) -> tuple[Space, Space]:
    """Two finite float arrays with equally many rows, or an error that names the one at fault.

    Memory maps of floats are read block by block and stay where they lie.
    """
    first, second = _check_space(X, "X"), _check_space(Y, "Y")
    if len(first) != len(second):
        raise ValueError(
            f"X has {len(first)} rows but Y has {len(second)}. Row i of both belongs to the same "
            "sample: drop the rows that have no partner."
        )
    return first, second


def _check_space(array: ArrayLike, name: str) -> Space:
    checked = check_array(
        array,
        dtype=FLOATS,
        ensure_2d=False,
        ensure_all_finite=False,
        allow_nd=True,
        ensure_min_samples=2,
        input_name=name,
    )
    space: Space = as_columns(checked)
    if space.ndim != 2:
        raise ValueError(
            f"{name} has shape {space.shape}, but a representation is an array (n_samples, width)."
        )
    check_finite(space, name)
    return space


def streams(X: Space, Y: Space) -> bool:
    """Whether moments are smaller than the arrays, so that these are better read block by block."""
    return bool(len(X) > X.shape[1] + Y.shape[1])


@dataclass(frozen=True, eq=False)
class Centred:
    """A space about its mean.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, width)
        In units of ``view.unit``.
    view : ViewMoments
    """

    rows: Array
    view: ViewMoments

    @property
    def unit_rows(self) -> Array:
        """The rows, divided by the root of the sum of all squares."""
        rows: Array = self.rows / np.sqrt(self.view.total)
        return rows


def centred(X: Space, *, diagonal: bool = False) -> Centred:
    """Take the mean off a space that varies; with `diagonal` its scatter is not computed in full."""
    mean, rows = centre(X, None, float(len(X)), np.empty(X.shape))
    scatter, unit = scatter_of(rows, diagonal=diagonal)
    view = ViewMoments(mean, scatter, unit, precision_of(X))
    require_variance(view, len(X))
    return Centred(rows, view)


def require_variance(view: ViewMoments, n_samples: int) -> None:
    """Raise an error if all rows are equal up to the precision of the data."""
    if view.constant_columns(n_samples).all():
        raise constant(n_samples)


def constant(n_samples: int) -> UnfitError:
    """The error about a space whose rows are all equal."""
    return UnfitError(
        f"has no variance: its {n_samples} rows are all equal. Similarity needs rows that differ from "
        "one another in both spaces."
    )


def check_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    """Raise a ValueError unless `value` is one of the choices."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name}={value!r} is not one of {tuple(choices)}.")


def check_real(name: str, value: Any, low: float, high: float, rule: str) -> float:
    """A number within bounds that are both allowed, or a ValueError that states the rule."""
    if not isinstance(value, Real) or isinstance(value, bool) or not low <= float(value) <= high:
        raise ValueError(f"{name}={value!r} is not {rule}.")
    return float(value)


def check_flag(name: str, value: Any) -> bool:
    """A truth value, or a ValueError."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name}={value!r} is not True or False.")
    return bool(value)


def check_count(name: str, value: Any) -> int:
    """A whole number of at least 1, or a ValueError."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name}={value!r} is not a whole number of at least 1.")
    return int(value)
