"""An orthonormal basis of what a space spans over its samples, cut at its numerical rank.

Two ways to the same numbers: from arrays, where a basis is prepared once for each space, and from two
passes over blocks of rows, which hold moments only. In the second pass the rows are whitened already, so
that weak directions keep half the digits they would lose to the squares of the first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..._moments import MomentSum, PairMoments, ViewMoments
from ..._moments._rows import row_blocks
from ..._solvers._cca import Axes, view_axes
from ._measure import Array, naming
from ._spaces import Centred, Space, centred, constant, require_variance

Make = Callable[[Space, Space], tuple[Array, Array]]


@dataclass(frozen=True, eq=False)
class Basis:
    """Orthonormal basis of a centred space over its samples, along its principal directions.

    Parameters
    ----------
    scores : ndarray of shape (n_samples, rank)
        With orthonormal columns.
    deviations : ndarray of shape (rank,)
        Singular values of the centred space, in its own units.
    """

    scores: Array
    deviations: Array

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return len(self.scores)

    @property
    def rank(self) -> int:
        """Number of directions."""
        return len(self.deviations)

    @classmethod
    def of(cls, space: Centred, explained_variance: float | None = None) -> Basis:
        """With `explained_variance`, of the fewest principal directions that explain that share."""
        n_samples = len(space.rows)
        axes = resolved_axes(space.view, n_samples, explained_variance)
        scores = np.linalg.qr(space.rows @ whitening(axes, n_samples)).Q
        return cls(scores, deviations(axes, n_samples))


def basis(X: Space, explained_variance: float | None = None) -> Basis:
    """Basis of an array."""
    return Basis.of(centred(X), explained_variance)


@dataclass(frozen=True, eq=False)
class Overlap:
    """How the bases of two spaces lie to each other.

    Parameters
    ----------
    cross : ndarray of shape (rank_x, rank_y)
        Inner products of their columns: the singular values are the canonical correlations.
    loadings : ndarray of shape (rank_x, width_x)
        Inner products of the columns of x's basis with those of centred x, up to a common factor.
    deviations : pair of ndarray
        Singular values of each space, of shape (rank_x,) and (rank_y,).
    n_samples : int
    """

    cross: Array
    loadings: Array
    deviations: tuple[Array, Array]
    n_samples: int


def streamed_overlap(X: Space, Y: Space, explained_variance: float | None = None) -> Overlap:
    """Overlap of the bases of two spaces from two passes over their rows."""
    moments = pair_moments(X, Y)
    weight = moments.weight
    axes = named_axes(moments.x, weight, "X", explained_variance)
    others = named_axes(moments.y, weight, "Y", explained_variance)
    white, other = whitening(axes, weight), whitening(others, weight)

    def whiten(x: Space, y: Space) -> tuple[Array, Array]:
        return about(moments.x, x) @ white, about(moments.y, y) @ other

    again = block_moments(X, Y, whiten)
    left, right = (np.linalg.cholesky(view.scatter * view.unit**2) for view in (again.x, again.y))
    half = np.linalg.solve(left, again.cross * (again.x.unit * again.y.unit))
    return Overlap(
        np.linalg.solve(right, half.T).T,
        np.linalg.solve(left, white.T @ moments.x.scatter),
        (deviations(axes, weight), deviations(others, weight)),
        moments.n_rows,
    )


def about(view: ViewMoments, rows: Space) -> Array:
    """Rows about the mean of their view, in its unit."""
    centred: Array = (rows - view.mean) / view.unit
    return centred


def pair_moments(X: Space, Y: Space, *, diagonal: bool = False) -> PairMoments:
    """Moments of two spaces that both vary."""
    moments = PairMoments.from_arrays(X, Y, diagonal=diagonal)
    for view, name in ((moments.x, "X"), (moments.y, "Y")):
        with naming(name):
            require_variance(view, moments.n_rows)
    return moments


def named_axes(
    view: ViewMoments, weight: float, name: str, explained_variance: float | None = None
) -> Axes:
    """Principal axes, or an error that names the array."""
    with naming(name):
        return resolved_axes(view, weight, explained_variance)


def resolved_axes(view: ViewMoments, weight: float, explained_variance: float | None) -> Axes:
    """Principal axes of a view, of which there is at least one."""
    axes = view_axes(view, weight, explained_variance)
    if not axes.rank:
        raise constant(int(weight))
    return axes


def whitening(axes: Axes, weight: float) -> Array:
    """Matrix that turns centred rows, in the unit of their view, into a basis."""
    white: Array = axes.vectors / np.sqrt(axes.variances * weight)
    return white


def deviations(axes: Axes, weight: float) -> Array:
    """Singular values of the centred rows, in the units of the data."""
    values: Array = np.sqrt(axes.variances * weight) * axes.unit
    return values


def block_moments(X: Space, Y: Space, make: Make) -> PairMoments:
    """Moments of what is made of both spaces, block by block of their rows."""
    total = MomentSum()
    for x, y, _ in row_blocks(X, Y, None):
        total.add(PairMoments.from_arrays(*make(x, y)), owned=True)
    moments = total.moments()
    assert moments is not None
    return moments
