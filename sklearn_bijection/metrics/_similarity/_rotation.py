"""The cosine of two spaces after partial whitening and the best rotation, and what is made of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import acos, sqrt

import numpy as np

from ._basis import basis, pair_moments, streamed_overlap
from ._chance import too_few_for_rotations
from ._measure import Array, Prepared, compared, settled, warn
from ._spaces import Space, centred, streams


@dataclass(frozen=True, eq=False)
class Shape:
    """A centred space, whitened by as much as asked for, of unit size, up to a rotation.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, at most n_samples)
    """

    rows: Array

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return len(self.rows)

    @property
    def most(self) -> int:
        """The most directions that there can be."""
        return int(min(self.rows.shape[1], self.n_samples - 1))

    @cached_property
    def rank(self) -> int:
        """Number of directions."""
        return int(np.linalg.matrix_rank(self.rows))


@dataclass(frozen=True)
class Told:
    """How a measure tells the cosine.

    Parameters
    ----------
    name : str
        Of the measure.
    kind : {"similarity", "distance", "angle"}
    convert : callable
        From the cosine to the value.
    """

    name: str
    kind: str
    convert: Callable[[float], float]


SIMILARITY = Told("orthogonal_procrustes_similarity", "similarity", float)
DISTANCE = Told("procrustes_distance", "distance", lambda cosine: sqrt(2 - 2 * cosine))
SQUARED_DISTANCE = Told("procrustes_distance", "distance", lambda cosine: 2 - 2 * cosine)
ANGLE = Told("angular_shape_distance", "angle", acos)


@dataclass(frozen=True)
class Whitened:
    """Makes the shape of a space, whitened by ``1 - alpha``."""

    alpha: float

    def __call__(self, X: Space) -> Shape:
        if self.alpha == 1:
            rows = centred(X, diagonal=True).unit_rows
            if rows.shape[1] > rows.shape[0]:
                # The same up to a rotation, in as many columns as there are rows.
                triangle: Array = np.linalg.qr(rows.T).R
                rows = triangle.T
            return Shape(rows)
        own = basis(X)
        return Shape(own.scores * weights(own.deviations, self.alpha))


@dataclass(frozen=True)
class Rotated(Prepared):
    """A measure of the cosine after the best rotation."""

    told: Told = SIMILARITY
    alpha: float = 1.0


def rotated(told: Told, alpha: float) -> Rotated:
    """Measure of two spaces whitened by ``1 - alpha``."""

    def compare(a: Shape, b: Shape) -> float:
        return told.convert(rotated_cosine(a.rows.T @ b.rows))

    def caution(a: Shape, b: Shape) -> str | None:
        # The ranks cost a decomposition of each, and are asked for only where they matter.
        if too_few_for_rotations(a.n_samples, a.most, b.most, told.kind) is None:
            return None
        return too_few_for_rotations(a.n_samples, a.rank, b.rank, told.kind)

    return Rotated(told.name, Whitened(alpha), compare, caution=caution, told=told, alpha=alpha)


def after_rotation(X: Space, Y: Space, measure: Rotated) -> float:
    """Value of a measure, from moments where these are smaller than the arrays."""
    if not streams(X, Y):
        return compared(measure, X, Y)
    cosine, ranks = _streamed_cosine(X, Y, measure.alpha)
    warn(too_few_for_rotations(len(X), *ranks, measure.told.kind))
    return measure.told.convert(cosine)


def _streamed_cosine(X: Space, Y: Space, alpha: float) -> tuple[float, tuple[int, int]]:
    """Cosine and the ranks."""
    if alpha == 1:
        moments = pair_moments(X, Y, diagonal=True)
        size = sqrt(moments.x.total) * sqrt(moments.y.total)
        return rotated_cosine(moments.cross / size), (X.shape[1], Y.shape[1])
    found = streamed_overlap(X, Y)
    left, right = (weights(own, alpha) for own in found.deviations)
    cross = left[:, np.newaxis] * found.cross * right
    return rotated_cosine(cross), (len(left), len(right))


def weights(deviations: Array, alpha: float) -> Array:
    """Singular values after whitening by ``1 - alpha``, of unit size together."""
    gains = alpha * deviations + (1 - alpha)
    gains /= gains.max()
    unit: Array = gains / np.linalg.norm(gains)
    return unit


def rotated_cosine(cross: Array) -> float:
    """Nuclear norm of the inner products of the columns of two spaces of unit size."""
    return settled(float(np.linalg.svd(cross, compute_uv=False).sum()), 0.0, 1.0)
