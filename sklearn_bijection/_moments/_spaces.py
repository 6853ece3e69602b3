"""Moments of many views of the same rows: what every one of them shares with every other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._compat import release_pages
from ._pair import PairMoments
from ._scatter import Array
from ._view import ViewMoments

_MIN_BLOCK_ROWS = 512
_MAX_BLOCK_BYTES = 2**27


@dataclass(frozen=True, eq=False)
class SpaceMoments:
    """Means, sizes and cross products of many spaces with one row per sample each.

    Parameters
    ----------
    weight : float
        Sum of the sample weights.
    means : tuple of ndarray, each of shape (width,)
    sizes : ndarray of shape (n_spaces,)
        Root of the weighted sum of squares about the mean, in the units of the space.
    axes : tuple of (ndarray of shape (width, n_samples) or None)
        Orthonormal columns that the rows of a space lie in, where it has more columns than there are
        rows: its products are in these coordinates. None are its own columns.
    products : dict of (int, int) to ndarray
        ``X_k' X_l / (size_k size_l)`` of the centred rows, for ``k <= l``.
    noise : tuple of ndarray
        Share of the sum of squares of a space that the precision of the data alone may put into each of
        the coordinates of its products.
    """

    weight: float
    means: tuple[Array, ...]
    sizes: Array
    axes: tuple[Array | None, ...]
    products: dict[tuple[int, int], Array]
    noise: tuple[Array, ...]

    @classmethod
    def from_arrays(
        cls,
        Xs: Sequence[NDArray[Any]],
        views: Sequence[ViewMoments],
        sample_weight: Array | None = None,
    ) -> SpaceMoments:
        """From spaces of shape (n_samples, width_k), none of them constant, and what `view_of` says of each.

        Blocks of rows are read from all spaces at a time, so that memory maps never lie in memory whole.
        """
        if sample_weight is not None and not (kept := sample_weight > 0).all():
            Xs, sample_weight = [X[kept] for X in Xs], sample_weight[kept]
        spaces = [_Space.of(X, view) for X, view in zip(Xs, views, strict=True)]
        weight = float(len(Xs[0]) if sample_weight is None else sample_weight.sum())
        return cls(
            weight,
            tuple(space.view.mean for space in spaces),
            np.array([space.size for space in spaces]),
            tuple(space.axes for space in spaces),
            _products(spaces, len(Xs[0]), sample_weight),
            tuple(space.noise(weight) for space in spaces),
        )

    @property
    def n_spaces(self) -> int:
        """Number of spaces."""
        return len(self.means)

    @property
    def widths(self) -> list[int]:
        """Columns of each space."""
        return [len(mean) for mean in self.means]

    def between(self, k: int, other: int) -> Array:
        """``X_k' X_other`` of the centred rows, each divided by its size."""
        return self.products[k, other] if k <= other else self.products[other, k].T

    def cka(self) -> Array:
        """Linear centred kernel alignment of every two spaces: ``||X_k' X_l||²``, normalised."""
        squares = np.zeros((self.n_spaces, self.n_spaces))
        for (k, other), product in self.products.items():
            squares[k, other] = squares[other, k] = np.vdot(product, product)
        own = np.sqrt(squares.diagonal())
        alignment: Array = squares / np.outer(own, own)
        return alignment


def view_of(X: NDArray[Any], sample_weight: Array | None = None) -> ViewMoments:
    """Mean and sums of squares of one space of shape (n_samples, width), block by block."""
    return PairMoments.from_arrays(X, X[:, :0], sample_weight, diagonal=True).x


@dataclass(frozen=True, eq=False)
class _Space:
    """One space that is read in blocks of rows."""

    X: NDArray[Any]
    view: ViewMoments
    size: float
    axes: Array | None = None
    coordinates: Array | None = None

    @classmethod
    def of(cls, X: NDArray[Any], view: ViewMoments) -> _Space:
        size = view.unit * float(np.sqrt(view.total))
        space = cls(X, view, size)
        if len(X) >= X.shape[1]:
            return space
        # n rows span n dimensions at most: products of the widths would be mostly rounding.
        axes, triangle = np.linalg.qr(space.read(slice(None)).T)
        return cls(X, view, size, axes, triangle.T)

    @property
    def width(self) -> int:
        return min(len(self.X), self.view.n_features)

    def noise(self, weight: float) -> Array:
        """Share of the sum of squares that rounding may put into each coordinate of the products."""
        noise = self.view.rounding_variance(weight) * (weight / self.view.total)
        return noise if self.axes is None else noise @ np.square(self.axes)

    def read(self, rows: slice) -> Array:
        """Centred rows, divided by the size, in the coordinates of the products."""
        if self.coordinates is not None:
            return self.coordinates[rows]
        centred: Array = np.subtract(self.X[rows], self.view.mean, dtype=np.float64)
        centred /= self.size
        release_pages(self.X)
        return centred


def _products(
    spaces: Sequence[_Space], n_samples: int, weight: Array | None
) -> dict[tuple[int, int], Array]:
    products: dict[tuple[int, int], Array] = {}
    for block in _blocks(spaces, n_samples, weight):
        for k, first in enumerate(block):
            for other, second in enumerate(block[k:], start=k):
                part = first.T @ second
                if (k, other) in products:
                    products[k, other] += part
                else:
                    products[k, other] = part
    return products


def _blocks(
    spaces: Sequence[_Space], n_samples: int, weight: Array | None
) -> Iterator[list[Array]]:
    """Rows of all spaces, times the root of their weight, a block of samples at a time."""
    step = max(_MIN_BLOCK_ROWS, _MAX_BLOCK_BYTES // (8 * sum(space.width for space in spaces)))
    for start in range(0, n_samples, step):
        rows = slice(start, start + step)
        block = [space.read(rows) for space in spaces]
        yield (
            block
            if weight is None
            else [part * np.sqrt(weight[rows])[:, np.newaxis] for part in block]
        )
