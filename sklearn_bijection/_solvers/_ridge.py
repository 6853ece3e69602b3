"""The penalty of a ridge regression, cross-validated on the moments alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .._moments import PairMoments
from ._cca import Array, Axes, view_axes
from ._shrinkage import all_but_one

#: Shrinkage intensities that are tried. Between folds of one size nothing is gained from a finer grid.
RIDGE_GRID = np.concatenate(([0.0], np.geomspace(1e-4, 0.95, 40)))


@dataclass(frozen=True, eq=False)
class RidgeFold:
    """What the held-out error of every ridge regression of one split is a quadratic form of.

    With the training axes as coordinates a ridge regression is a gain for each axis, ``coef = diag(g) C``,
    and its held-out squared error ``g' Q g - 2 c' g + total``.

    Parameters
    ----------
    variances : ndarray of shape (rank,)
        Of the training rows, along their axes.
    quadratic : ndarray of shape (rank, rank)
    linear : ndarray of shape (rank,)
    total : float
        Held-out squared error of the training mean.
    """

    variances: Array
    quadratic: Array
    linear: Array
    total: float

    @classmethod
    def split(cls, train: PairMoments, test: PairMoments, found: Axes) -> RidgeFold:
        """Prepare y of `test` to be predicted from its x, along the principal axes of `train`."""
        axes = found.vectors
        cross = axes.T @ train.cross / train.weight
        about = np.sqrt(test.weight)
        step_y = about * (test.y.mean - train.y.mean) / train.y.unit
        at = about * ((test.x.mean - train.x.mean) / train.x.unit) @ axes
        held_xx = axes.T @ test.x.scatter @ axes + np.outer(at, at)
        held_xy = axes.T @ test.cross + np.outer(at, step_y)
        return cls(
            found.variances,
            held_xx * (cross @ cross.T),
            np.einsum("ij,ij->i", cross, held_xy),
            test.y.total + float(step_y @ step_y),
        )

    def error(self, shrinkage: float) -> float:
        """Held-out squared error."""
        shrunk = (1 - shrinkage) * self.variances + shrinkage * self.variances.mean()
        gain = (1 - shrinkage) / shrunk
        return float(gain @ self.quadratic @ gain - 2 * self.linear @ gain + self.total)


def ridge_shrinkage(folds: tuple[PairMoments, ...], axes: Sequence[Axes] | None = None) -> float:
    """The shrinkage of the x covariance with which a ridge regression of y on x errs least.

    Ridge with the penalty ``s / (1 - s)`` times the mean variance of x is least squares after shrinking
    the covariances by s. One eigen-decomposition and a few products for each fold; then every intensity
    costs a vector.

    Parameters
    ----------
    folds : tuple of PairMoments
        Moments of disjoint parts of the rows, each with variance in both views.
    axes : sequence of Axes, default=None
        Principal axes of x in the rest of each fold, if they are known already.

    Returns
    -------
    shrinkage : float
        In [0, 1).

    Raises
    ------
    ValueError
        If the errors are not finite, as where weights are so small that their products vanish.
    """
    whole = PairMoments.merge_all(folds)
    folds = tuple(fold.in_units(whole.x.unit, whole.y.unit) for fold in folds)
    rests = all_but_one(folds)
    if axes is None:
        axes = [view_axes(rest.x, rest.weight) for rest in rests]
    splits = list(map(RidgeFold.split, rests, folds, axes))
    errors = [sum(split.error(float(s)) for split in splits) for s in RIDGE_GRID]
    # The smallest of those that are the least up to rounding: exact pairs are not to be shrunk.
    threshold = min(errors) + 1e-12 * sum(split.total for split in splits)
    if not np.isfinite(threshold):
        raise ValueError(
            "The held-out error of a ridge regression is not finite for some shrinkage: values or "
            "weights are too small or too large. Bring them near 1."
        )
    return float(next(s for s, error in zip(RIDGE_GRID, errors, strict=True) if error <= threshold))
