"""One split of `linearity`: a ridge regression, and what it is worth on the rows held out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._linalg import variance_explained
from .._moments import PairMoments, fold_moments, require_variance, varies
from .._solvers import oas_shrinkage, ridge_shrinkage
from .._solvers._cca import view_axes
from ._pairs import unit_rows

Array = NDArray[np.float64]

#: Parts of the training rows on which the shrinkage is cross-validated.
_N_FOLDS = 3
#: Unit vectors that differ by no more than so many times the rounding of y may be one direction.
_ROUNDINGS = 16


class Rows(NamedTuple):
    """Some pairs of rows, with their weights if they have any."""

    X: NDArray[Any]
    y: NDArray[Any]
    weight: Array | None = None

    def take(self, index: NDArray[np.intp]) -> Rows:
        """Those at some positions, without those of weight zero."""
        if self.weight is None:
            return Rows(self.X[index], self.y[index])
        index = np.arange(len(self.X))[index]
        index = index[self.weight[index] > 0]
        return Rows(self.X[index], self.y[index], self.weight[index])

    def directions(self) -> tuple[Array, Array]:
        """Rows of y at unit length, and their weights; rows of zeros have no direction."""
        units = unit_rows(np.asarray(self.y, dtype=np.float64))
        weight = np.ones(len(units)) if self.weight is None else self.weight
        return units, weight * units.any(axis=1)


class Split(NamedTuple):
    """What `linearity` finds on one split."""

    r2: Any
    gamma: Any
    cosine: Any
    baseline: Any
    cone: Any
    shrinkage: Any


def judge(train: Rows, test: Rows, shrinkage: float | str, number: int) -> Split:
    """Fit on some rows and judge on others; an error says on which split it was."""
    try:
        return _judge(train, test, shrinkage)
    except ValueError as error:
        error.add_note(f"Raised on split {number}.")
        raise


def _judge(train: Rows, test: Rows, shrinkage: float | str) -> Split:
    for name, rows in (("train", train), ("test", test)):
        if not len(rows.X):
            raise ValueError(
                f"cv gives no {name} row whose weight is above 0. Pass splits that have such rows."
            )
    fit = _Ridge.fit(train, shrinkage)
    guess = fit.predict(test.X)
    r2 = variance_explained(test.y, guess, test.weight)
    units, weight = test.directions()
    missed = _missing(units, unit_rows(guess), weight)
    most = _missing(units, _best_constant(train), weight)
    no_room = np.square(_ROUNDINGS * np.finfo(test.y.dtype).eps) / 2
    gamma = 1 - missed / most if most > no_room else np.nan
    return Split(r2, gamma, 1 - missed, 1 - most, _cone(units, weight), fit.shrinkage)


@dataclass(frozen=True, eq=False)
class _Ridge:
    """A ridge regression of y on X."""

    mean_x: Array
    mean_y: Array
    coef: Array
    shrinkage: float

    @classmethod
    def fit(cls, rows: Rows, shrinkage: float | str) -> _Ridge:
        folds = fold_moments(*rows, n_folds=_N_FOLDS if shrinkage == "auto" else 1)
        whole = PairMoments.merge_all(folds)
        require_variance(whole)
        axes = view_axes(whole.x, whole.weight)
        if shrinkage == "auto":
            few = not all(map(varies, folds))
            shrinkage = oas_shrinkage(axes, whole.weight) if few else ridge_shrinkage(folds)
        s = float(shrinkage)
        gain = (1 - s) / np.square(axes.deviations(s)) / whole.weight * whole.y.unit / whole.x.unit
        coef = (axes.vectors * gain) @ (axes.vectors.T @ whole.cross)
        return cls(whole.x.mean, whole.y.mean, coef, s)

    def predict(self, X: NDArray[Any]) -> Array:
        image: Array = (X - self.mean_x) @ self.coef + self.mean_y
        return image


def _best_constant(rows: Rows) -> Array:
    """The direction whose mean cosine with the rows of y is the greatest, as one row of unit length."""
    units, weight = rows.directions()
    return unit_rows(np.average(units, axis=0, weights=weight)[np.newaxis])


def _missing(units: Array, others: Array, weight: Array) -> float:
    """What the mean cosine lacks to 1.

    From the squared distance ``||u - v||² = 2 - 2 cos``: taken from 1, a cosine near it keeps no digits.
    """
    far = np.square(units - others).sum(axis=1)
    # Where a prediction is zero it points nowhere, and its cosine is 0.
    lacking = (far + ~others.any(axis=1)) / 2
    return float(np.average(lacking, weights=weight))


def _cone(units: Array, weight: Array) -> float:
    """Mean cosine over all pairs of two different rows."""
    if np.count_nonzero(weight) < 2:
        return np.nan
    total, square = weight @ units, np.square(weight)
    own = square @ np.einsum("ij,ij->i", units, units)
    return float((total @ total - own) / (weight.sum() ** 2 - square.sum()))
