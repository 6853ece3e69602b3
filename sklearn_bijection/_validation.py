"""Checks of a pair of arrays and of one array, and the constraints that parameters share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.validation import validate_data

from ._compat import StrOptions, check_sample_weight, column_names, release_pages

FLOATS = (np.float64, np.float32)

#: Constraint of the parameter `direction`, the same for every aligner.
DIRECTION = [StrOptions({"forward", "symmetric", "backward"})]

Pair = tuple[NDArray[Any], NDArray[Any], NDArray[np.float64] | None]

_BLOCK_BYTES = 2**25


def check_pair(
    estimator: BaseEstimator,
    X: ArrayLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    reset: bool = True,
    min_rows: int = 2,
) -> Pair:
    """Validate a pair to fit, and remember its widths and names on the estimator.

    Sets ``n_features_in_``, ``feature_names_in_``, ``n_targets_`` and ``target_names_in_`` if `reset`, else
    compares with them. Arrays of float64 and float32 come back uncopied, everything else as float64.

    Parameters
    ----------
    estimator : BaseEstimator
    X : array-like of shape (n_samples, n_features)
    y : array-like of shape (n_samples,) or (n_samples, n_targets)
    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative.
    reset : bool, default=True
    min_rows : int, default=2
        Least number of rows, and of rows of positive weight.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
    y : ndarray of shape (n_samples, n_targets)
    sample_weight : ndarray of shape (n_samples,) or None

    Raises
    ------
    ValueError
        If the arrays are not numeric and finite, if their lengths differ, or if there are too few rows.
    TypeError
        If an array is sparse.
    """
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None. "
            "Pass the rows of the second space that belong to those of X."
        )
    source: NDArray[Any] = validate_data(
        estimator,
        X,
        reset=reset,
        dtype=FLOATS,
        ensure_all_finite=False,
        ensure_min_samples=min_rows,
    )
    names, values = column_names(y), _check_target(estimator, y)
    check_consistent_length(source, values)
    target = values.reshape(len(values), -1)
    check_finite(source, "X")
    check_finite(target, "y")
    weight = None if sample_weight is None else _check_weight(sample_weight, source, min_rows)
    if reset:
        _remember_target(estimator, target.shape[1], names, one_column=values.ndim == 1)
    else:
        _compare_target(estimator, target.shape[1], names)
    return source, target, weight


def check_source(estimator: BaseEstimator, X: ArrayLike) -> NDArray[Any]:
    """Validate rows of the first space for a fitted estimator."""
    array: NDArray[Any] = validate_data(
        estimator, X, reset=False, dtype=FLOATS, ensure_all_finite=False
    )
    check_finite(array, "X")
    return array


def check_target(estimator: Any, y: ArrayLike) -> NDArray[Any]:
    """Validate rows of the second space for a fitted estimator, 1-D if it has one column."""
    names, values = column_names(y), _check_target(estimator, y)
    target = values.reshape(len(values), -1)
    _compare_target(estimator, target.shape[1], names)
    check_finite(target, "y")
    return target


def check_finite(array: NDArray[Any], name: str) -> None:
    """Raise a ValueError that says where the first NaN or infinity stands.

    Reads blocks of rows, so that a memory map is never resident as a whole.
    """
    step = max(64, _BLOCK_BYTES // max(1, array.itemsize * array.shape[1]))
    for start in range(0, len(array), step):
        block = array[start : start + step]
        with np.errstate(over="ignore", invalid="ignore"):
            suspect = not np.isfinite(block.sum(dtype=np.float64))
        if suspect and not np.isfinite(block).all():
            row, column = np.argwhere(~np.isfinite(block))[0]
            kind = "NaN" if np.isnan(block[row, column]) else "infinity"
            raise ValueError(
                f"Input {name} contains {kind} (first at row {start + row}, column {column}; NaN and inf are "
                "not supported). Impute it, or remove such rows, together with their partners."
            )
        release_pages(array)


def _check_target(estimator: BaseEstimator, y: ArrayLike) -> NDArray[Any]:
    """`y` as a float array of one or two dimensions."""
    array: NDArray[Any] = check_array(
        y,
        dtype=FLOATS,
        ensure_all_finite=False,
        ensure_2d=False,
        input_name="y",
        estimator=estimator,
    )
    if array.ndim == 0:
        raise ValueError(
            f"y must have one row for each row of X, but it is the single value {y!r}."
        )
    return array


def _check_weight(sample_weight: ArrayLike, X: NDArray[Any], min_rows: int) -> NDArray[np.float64]:
    weight: NDArray[np.float64] = check_sample_weight(
        sample_weight, X, dtype=np.float64, ensure_non_negative=True
    )
    if (kept := np.count_nonzero(weight)) < min_rows:
        raise ValueError(
            f"sample_weight is positive for {kept} of {len(weight)} rows, but at least {min_rows} must "
            "count. A weight of 0 leaves the row out."
        )
    return weight


def _remember_target(
    estimator: Any, n_targets: int, names: NDArray[np.object_] | None, one_column: bool
) -> None:
    estimator.n_targets_ = n_targets
    estimator._y_is_1d = one_column
    if names is not None:
        estimator.target_names_in_ = names
    elif hasattr(estimator, "target_names_in_"):
        del estimator.target_names_in_


def _compare_target(estimator: Any, n_targets: int, names: NDArray[np.object_] | None) -> None:
    if n_targets != estimator.n_targets_:
        raise ValueError(
            f"y has {n_targets} columns, but {type(estimator).__name__} was fitted with "
            f"{estimator.n_targets_}. Pass rows of the second space."
        )
    known = getattr(estimator, "target_names_in_", None)
    if names is not None and known is not None and list(names) != list(known):
        raise ValueError(
            f"The columns of y are {list(names)[:5]}, but {type(estimator).__name__} was fitted with "
            f"{list(known)[:5]}, in that order. Reorder or rename them."
        )
