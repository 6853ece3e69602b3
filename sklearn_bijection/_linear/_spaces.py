"""A list of spaces as input: their names, their rows, and which one is meant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from operator import index
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_array

from .._compat import check_sample_weight, column_names
from .._validation import FLOATS, check_finite

Spaces = Sequence[ArrayLike] | Mapping[str, ArrayLike]


@dataclass(frozen=True)
class Labels:
    """What the spaces are called, and the columns of each.

    Parameters
    ----------
    names : list of str or None
        None where they came as a list.
    widths : list of int
    columns : list of (list of str or None)
        Names of the columns, where a space was a frame that has them.
    """

    names: list[str] | None
    widths: list[int]
    columns: list[list[str] | None]

    def of(self, number: int) -> str:
        """How messages name a space of `Xs`."""
        return f"Xs[{number if self.names is None else repr(self.names[number])}]"

    def number(self, space: Any, argument: str) -> int:
        """Number of the space that `argument` asks for, by name or by number."""
        count = len(self.widths)
        # True and False are whole numbers to Python, but no numbers of spaces.
        numbered = isinstance(space, Integral) and not isinstance(space, bool)
        if numbered and -count <= index(space) < count:
            return index(space) % count
        if self.names is not None and isinstance(space, str) and space in self.names:
            return self.names.index(space)
        known = (
            "" if self.names is None else f"one of the names {', '.join(map(repr, self.names))} or "
        )
        raise ValueError(
            f"{argument}={space!r} is none of the {count} spaces of fit. Pass {known}a number from 0 "
            f"to {count - 1}, or from -{count} to -1 counted back from the end."
        )

    def compare(self, rows: ArrayLike, array: NDArray[Any], number: int, argument: str) -> None:
        """Refuse rows of another width, or with other column names, than the space had in fit."""
        if array.shape[1] != self.widths[number]:
            raise ValueError(
                f"{argument} has {array.shape[1]} columns, but {self.of(number)} had "
                f"{self.widths[number]} in fit. Pass rows of that space, or name theirs."
            )
        names, known = column_names(rows), self.columns[number]
        if names is not None and known is not None and list(names) != known:
            raise ValueError(
                f"The columns of {argument} are {list(names)[:5]}, but those of {self.of(number)} were "
                f"{known[:5]} in fit, in that order. Reorder or rename them."
            )


def check_spaces(
    estimator: BaseEstimator,
    Xs: Spaces,
    sample_weight: ArrayLike | None = None,
    known: Labels | None = None,
    min_rows: int = 2,
) -> tuple[Labels, list[NDArray[Any]], NDArray[np.float64] | None]:
    """Validate spaces with one row per sample each.

    Parameters
    ----------
    estimator : BaseEstimator
    Xs : sequence of arrays or mapping of str to array, each of shape (n_samples, width_k)
    sample_weight : array-like of shape (n_samples,), default=None
    known : Labels, default=None
        Those of fit, which the spaces are to match. A mapping may list its names in any order.
    min_rows : int, default=2

    Returns
    -------
    labels : Labels
    arrays : list of ndarray of shape (n_samples, width_k)
        Arrays of float64 and float32 uncopied, everything else as float64.
    sample_weight : ndarray of shape (n_samples,) or None
    """
    names, given = _listed(Xs, known)
    labels = Labels(names, [], [])
    arrays = [check_rows(estimator, rows, labels.of(k), min_rows) for k, rows in enumerate(given)]
    for number, array in enumerate(arrays):
        if len(array) != len(arrays[0]):
            raise ValueError(
                f"{labels.of(number)} has {len(array)} rows but {labels.of(0)} has {len(arrays[0])}. "
                "Row i of every space belongs to the same sample: drop those that a space lacks."
            )
        if known is not None:
            known.compare(given[number], array, number, labels.of(number))
    columns = [None if (found := column_names(rows)) is None else list(found) for rows in given]
    weight = None if sample_weight is None else _check_weight(sample_weight, arrays[0])
    return Labels(names, [array.shape[1] for array in arrays], columns), arrays, weight


def check_rows(
    estimator: BaseEstimator, rows: ArrayLike, name: str, min_rows: int = 2
) -> NDArray[Any]:
    """Validate the rows of one space."""
    array: NDArray[Any] = check_array(
        rows,
        dtype=FLOATS,
        ensure_all_finite=False,
        ensure_2d=False,
        allow_nd=True,
        ensure_min_samples=0,
        ensure_min_features=0,
        input_name=name,
        estimator=estimator,
    )
    if array.ndim != 2 or not array.shape[1]:
        raise ValueError(
            f"{name} has shape {array.shape}, but the rows of a space are an array (n_samples, width). "
            "Reshape it."
        )
    if len(array) < min_rows:
        raise ValueError(f"{name} has {len(array)} row(s), but at least {min_rows} are needed.")
    check_finite(array, name)
    return array


def _listed(Xs: Any, known: Labels | None) -> tuple[list[str] | None, list[Any]]:
    """Names, if there are any, and spaces in the order of fit."""
    if isinstance(Xs, Mapping):
        names, given = list(Xs), list(Xs.values())
        if not all(isinstance(name, str) for name in names):
            raise TypeError(
                f"Xs has the keys {names[:5]}, but the names of spaces are text. Pass a list where "
                "numbers are enough."
            )
    elif getattr(Xs, "ndim", 3) != 3 or isinstance(Xs, str) or not isinstance(Xs, Iterable):
        raise TypeError(
            f"Xs is one {type(Xs).__name__}, but a list of arrays (n_samples, width) is fitted, one per "
            "space. Pass [X_0, X_1, ...], or a mapping of names to arrays."
        )
    else:
        names, given = None, list(Xs)
    if len(given) < 2:
        raise ValueError(
            f"Xs has {len(given)} space(s), but only two or more have anything in common. Pass a list "
            "of at least two arrays (n_samples, width)."
        )
    return (names, given) if known is None else _in_order_of_fit(names, given, known)


def _in_order_of_fit(
    names: list[str] | None, given: list[Any], known: Labels
) -> tuple[list[str] | None, list[Any]]:
    if names is not None and known.names is not None:
        if set(names) != set(known.names):
            raise ValueError(
                f"Xs has the spaces {names}, but fit had {known.names}. Pass these, in any order."
            )
        return known.names, [given[names.index(name)] for name in known.names]
    if names is not None:
        raise ValueError(
            "Xs has names, but the spaces of fit had none. Pass a list in their order."
        )
    if len(given) != len(known.widths):
        raise ValueError(
            f"Xs has {len(given)} spaces, but fit had {len(known.widths)}. Pass all of them, in the "
            "same order."
        )
    return known.names, given


def _check_weight(sample_weight: ArrayLike, rows: NDArray[Any]) -> NDArray[np.float64]:
    weight: NDArray[np.float64] = check_sample_weight(
        sample_weight, rows, dtype=np.float64, ensure_non_negative=True
    )
    if (kept := np.count_nonzero(weight)) < 2:
        raise ValueError(
            f"sample_weight is positive for {kept} of {len(weight)} rows, but at least 2 must count. "
            "A weight of 0 leaves the row out."
        )
    return weight
