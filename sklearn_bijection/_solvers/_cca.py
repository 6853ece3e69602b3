"""Canonical correlation analysis as a map: whiten both views, one SVD, colour back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from .._linalg import principal_axes, signed_svd
from .._maps import AffineMap
from .._moments import PairMoments, ViewMoments

Array = NDArray[np.float64]
Direction = Literal["forward", "symmetric", "backward"]


@dataclass(frozen=True, eq=False)
class Axes:
    """Principal axes of one view, cut at its numerical rank.

    Parameters
    ----------
    vectors : ndarray of shape (n_features, rank)
    variances : ndarray of shape (rank,)
        Variances along them, descending, in units of ``unit**2``.
    unit : float
        Unit of the view.
    """

    vectors: Array
    variances: Array
    unit: float

    @property
    def rank(self) -> int:
        """Number of axes kept."""
        return len(self.variances)

    def deviations(self, shrinkage: float) -> Array:
        """Standard deviations after shrinking the variances towards their mean."""
        target = self.variances.mean()
        deviations: Array = np.sqrt((1 - shrinkage) * self.variances + shrinkage * target)
        return deviations


def view_axes(view: ViewMoments, weight: float, explained_variance: float | None = None) -> Axes:
    """Principal axes of a view; with `explained_variance`, the fewest that explain that share of it.

    A share of 1 keeps them all.
    """
    values, vectors = principal_axes(view.scatter / weight, noise=view.rounding_variance(weight))
    # Sums of shares round to 1 before the last of them.
    if explained_variance is not None and explained_variance < 1 and len(values):
        share = np.cumsum(values) / values.sum()
        kept = 1 + int(np.searchsorted(share[:-1], explained_variance))
        values, vectors = values[:kept], vectors[:, :kept]
    return Axes(vectors, values, view.unit)


@dataclass(frozen=True, eq=False)
class ShrinkagePath:
    """Held-out error of every shrinkage tried, as a fraction of each view's variance.

    Parameters
    ----------
    shrinkage : ndarray of shape (n_tried,)
        Intensities, ascending.
    forward_error, inverse_error : ndarray of shape (n_tried,)
        ``1 - R²`` of each direction, over all folds together.
    """

    shrinkage: Array
    forward_error: Array
    inverse_error: Array


@dataclass(frozen=True, eq=False)
class CCASolution:
    """What `solve_cca` finds; the estimator's fitted attributes are its fields."""

    map: AffineMap
    correlations: Array
    x_weights: Array
    y_weights: Array
    rank_x: int
    rank_y: int
    shrinkage: tuple[float, float]
    shrinkage_path: ShrinkagePath | None = None

    @property
    def n_components(self) -> int:
        """Canonical pairs kept."""
        return len(self.correlations)


@dataclass(frozen=True, eq=False)
class CCAProblem:
    """The pair in the principal axes of its views, where every shrinkage is a diagonal.

    Parameters
    ----------
    x, y : Axes
    cross : ndarray of shape (rank_x, rank_y)
        Cross-covariance between the axes.
    """

    x: Axes
    y: Axes
    cross: Array

    @classmethod
    def from_moments(
        cls, moments: PairMoments, explained_variance: float | None = None
    ) -> CCAProblem:
        """Find the axes of both views and the cross-covariance between them."""
        x, y = (
            view_axes(view, moments.weight, explained_variance) for view in (moments.x, moments.y)
        )
        return cls(x, y, x.vectors.T @ (moments.cross / moments.weight) @ y.vectors)

    @property
    def widths(self) -> tuple[int, int]:
        """Columns of each view."""
        return len(self.x.vectors), len(self.y.vectors)

    def whitened(self, shrinkage: tuple[float, float]) -> Array:
        """Cross-covariance of the whitened axes: its singular values are the canonical correlations."""
        sx, sy = self.x.deviations(shrinkage[0]), self.y.deviations(shrinkage[1])
        return self.cross / sx[:, np.newaxis] / sy


def gains(rho: Array, shrinkage: tuple[float, float], direction: Direction) -> tuple[Array, Array]:
    """Gain of each canonical pair forwards and back; 0 back where a gain of zero has no inverse.

    The cross-covariance shrinks with the covariance of the view that predicts, so that one way of the
    map is ridge regression: without it a shrunk covariance would make the predictions too large.
    """
    if direction == "symmetric":
        return np.ones_like(rho), np.ones_like(rho)
    if direction == "forward":
        gain = rho * (1 - shrinkage[0])
        return gain, _reciprocal(gain)
    back = rho * (1 - shrinkage[1])
    return _reciprocal(back), back


def _reciprocal(rho: Array) -> Array:
    resolved = rho > len(rho) * np.finfo(float).eps
    return np.divide(1.0, rho, out=np.zeros_like(rho), where=resolved)


def solve_cca(
    moments: PairMoments,
    problem: CCAProblem,
    shrinkage: tuple[float, float],
    *,
    n_components: int,
    direction: Direction = "symmetric",
    path: ShrinkagePath | None = None,
) -> CCASolution:
    """Whiten both views, take one SVD, colour back.

    With ``Zx Cxy Zy = U diag(rho) V'`` the map is ``W = Zx U diag(rho^g) V' Zy^-1`` and its inverse
    ``Zy V diag(rho^-g) U' Zx^-1``, where g is 1 forward (least squares, with ridge-like shrinkage), 0
    symmetric and -1 backward.

    Parameters
    ----------
    moments : PairMoments
    problem : CCAProblem
        Made from the same moments.
    shrinkage : pair of float
        Intensities for x and for y, each in [0, 1].
    n_components : int
        Leading canonical pairs to keep.
    direction : {"forward", "symmetric", "backward"}
    path : ShrinkagePath, default=None
        How the shrinkage was found, to be kept with the solution.

    Returns
    -------
    solution : CCASolution
    """
    x, y = problem.x, problem.y
    sx, sy = x.deviations(shrinkage[0]), y.deviations(shrinkage[1])
    U, rho, V = (part[..., :n_components] for part in signed_svd(problem.whitened(shrinkage)))
    gain, back = gains(rho, shrinkage, direction)
    whiten_x, whiten_y = x.vectors @ (U / sx[:, np.newaxis]), y.vectors @ (V / sy[:, np.newaxis])
    colour_x, colour_y = x.vectors @ (U * sx[:, np.newaxis]), y.vectors @ (V * sy[:, np.newaxis])
    units = y.unit / x.unit
    return CCASolution(
        map=AffineMap.about_means(
            moments.x.mean,
            moments.y.mean,
            (whiten_x * gain) @ colour_y.T * units,
            (whiten_y * back) @ colour_x.T / units,
        ),
        correlations=np.minimum(rho, 1.0),
        x_weights=whiten_x / _variate_deviations(U, x, sx) / x.unit,
        y_weights=whiten_y / _variate_deviations(V, y, sy) / y.unit,
        rank_x=x.rank,
        rank_y=y.rank,
        shrinkage=shrinkage,
        shrinkage_path=path,
    )


def _variate_deviations(directions: Array, axes: Axes, deviations: Array) -> Array:
    """Standard deviations of the canonical variates, below 1 where the covariance was shrunk."""
    found: Array = np.sqrt(axes.variances / np.square(deviations) @ np.square(directions))
    return found
