"""Measures of which rows are near: representational dissimilarity, and shared nearest neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._gram import DISTANCES, Distance, lower_triangle, normalised, rows_by, squared_distances
from ._measure import Array, Cosine, UnfitError, compared, registered
from ._spaces import Space, check_choice, check_count, check_spaces

Compare = Literal["spearman", "pearson"]

_EPS = float(np.finfo(float).eps)


def rsa(
    X: ArrayLike,
    Y: ArrayLike,
    *,
    distance: Distance = "correlation",
    compare: Compare = "spearman",
) -> float:
    """Representational similarity analysis: correlate the dissimilarities within two representations.

    The correlation of ``d(x_i, x_j)`` with ``d(y_i, y_j)`` over all pairs of samples ``i < j`` [1]_.

    Parameters
    ----------
    X : array-like of shape (n_samples, width_x)
        A representation; one row per sample.
    Y : array-like of shape (n_samples, width_y)
        Another one of the same samples, row by row. The widths need not be equal.
    distance : {"correlation", "cosine", "euclidean"}, default="correlation"
        Dissimilarity of two rows: 1 minus the Pearson correlation of their entries, 1 minus their
        cosine, or their Euclidean distance.
    compare : {"spearman", "pearson"}, default="spearman"
        Correlation of the dissimilarities: of their ranks, or of their values.

    Returns
    -------
    similarity : float
        Between -1 and 1, and about 0 for unrelated spaces; 1 when the dissimilarities have the same
        order ("spearman"), or are linear in one another ("pearson").

    Raises
    ------
    ValueError
        If the numbers of rows differ, a value is not finite, a space has no variance, all of its
        dissimilarities are equal, a row has no correlation or cosine with others (it is constant, or
        zero), there are fewer than 3 rows, or an option is not known.

    Notes
    -----
    Symmetric. With "correlation" and "cosine" the value does not change when each row is multiplied by
    a positive number of its own, with "correlation" also when a number is added to all entries of a
    row. "cosine" and "euclidean" allow a rotation or reflection of either space, "euclidean" a shift
    and one scale. A shift of the columns changes "correlation" and "cosine", a rotation "correlation".

    Holds matrices of n_samples² floats of 8 bytes, four at the peak. Cost is
    ``n_samples² (width_x + width_y)`` products, and sorting all pairs for "spearman".

    References
    ----------
    .. [1] N. Kriegeskorte, M. Mur and P. Bandettini, "Representational similarity analysis: connecting
       the branches of systems neuroscience", Frontiers in Systems Neuroscience 2, 2008.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_bijection.metrics import rsa
    >>> X = np.random.default_rng(0).normal(size=(100, 8))
    >>> Y = np.sign(X)
    >>> round(rsa(X, Y), 2), round(rsa(X, Y, distance="euclidean", compare="pearson"), 2)
    (0.66, 0.48)
    """
    return compared(_rsa(distance=distance, compare=compare), *check_spaces(X, Y))


def mutual_knn(
    X: ArrayLike, Y: ArrayLike, *, n_neighbors: int = 10, distance: Distance = "cosine"
) -> float:
    """Share of the nearest neighbours of each sample that are its nearest in both representations.

    ``mean_i |N_X(i) & N_Y(i)| / n_neighbors``, where N(i) are the `n_neighbors` samples nearest to
    sample i in a space, without itself [1]_.

    Parameters
    ----------
    X : array-like of shape (n_samples, width_x)
        A representation; one row per sample.
    Y : array-like of shape (n_samples, width_y)
        Another one of the same samples, row by row. The widths need not be equal.
    n_neighbors : int, default=10
        Neighbours of each sample, from 1 to ``n_samples - 1``.
    distance : {"cosine", "correlation", "euclidean"}, default="cosine"
        By what rows are near, as in `rsa`.

    Returns
    -------
    similarity : float
        Between 0 and 1. Unrelated spaces have ``n_neighbors / (n_samples - 1)`` on average.

    Raises
    ------
    ValueError
        If the numbers of rows differ, a value is not finite, a space has no variance, a row has no
        correlation or cosine with others, `n_neighbors` is not a whole number from 1 to
        ``n_samples - 1``, or `distance` is not known.

    Notes
    -----
    Symmetric. With "cosine" the value does not change under a rotation, a reflection or one scale of
    either space, nor when rows are multiplied by positive numbers; a shift changes it. With "euclidean" it
    does not change under a shift either.

    Rows that are equally near share the last places: each counts by its chance to be drawn, so that the
    value is its expectation when ties are broken at random in each space by itself. A space with such
    ties has less than 1 with itself.

    Holds matrices of n_samples² floats of 8 bytes, four at the peak. Cost is
    ``n_samples² (width_x + width_y)`` products.

    References
    ----------
    .. [1] M. Huh, B. Cheung, T. Wang and P. Isola, "The Platonic representation hypothesis", ICML 2024.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_bijection.metrics import mutual_knn
    >>> X = np.random.default_rng(0).normal(size=(100, 8))
    >>> round(mutual_knn(X, np.tanh(X)), 3), round(10 / 99, 3)
    (0.772, 0.101)
    """
    return compared(_mutual_knn(n_neighbors=n_neighbors, distance=distance), *check_spaces(X, Y))


@dataclass(frozen=True)
class _Dissimilarities:
    """Dissimilarities of all pairs of rows, or their ranks, about their mean and of unit length."""

    distance: str
    compare: str

    def __call__(self, X: Space) -> Array:
        if len(X) < 3:
            raise UnfitError(f"has {len(X)} rows, but rsa compares pairs: it needs at least 3.")
        squares, noise = squared_distances(rows_by(X, self.distance))
        values = lower_triangle(squares)
        del squares
        values, rounding = self._told(values, lower_triangle(noise + noise[:, np.newaxis]))
        values -= values.mean()
        what = f"by {self.distance} its rows are all equally far apart"
        return normalised(values, rounding, what)

    def _told(self, values: Array, slack: Array) -> tuple[Array, float]:
        """What is correlated, made of squared distances and their rounding, and the rounding of it."""
        if self.compare == "spearman":
            return tied_ranks(values, slack), _EPS * len(values)
        rounding, peak = float(slack.max()), float(values.max())
        if self.distance != "euclidean" or not peak:
            return values, rounding
        return np.sqrt(values, out=values), rounding / sqrt(peak)


@dataclass(frozen=True)
class _Neighbours:
    """Which rows are the nearest of each, as a vector of unit length but for ties."""

    n_neighbors: int
    distance: str

    def __call__(self, X: Space) -> Array:
        if len(X) <= self.n_neighbors:
            raise UnfitError(
                f"has {len(X)} rows, too few for n_neighbors={self.n_neighbors}: a row's neighbours are "
                f"other rows. Pass at most {len(X) - 1}."
            )
        nearest = nearest_rows(*squared_distances(rows_by(X, self.distance)), self.n_neighbors)
        return nearest.reshape(-1) / sqrt(len(X) * self.n_neighbors)


@registered("rsa")
def _rsa(*, distance: str = "correlation", compare: str = "spearman") -> Cosine:
    check_choice("distance", distance, DISTANCES)
    check_choice("compare", compare, get_args(Compare))
    return Cosine("rsa", _Dissimilarities(distance, compare))


@registered("mutual_knn")
def _mutual_knn(*, n_neighbors: int = 10, distance: str = "cosine") -> Cosine:
    check_choice("distance", distance, DISTANCES)
    return Cosine("mutual_knn", _Neighbours(check_count("n_neighbors", n_neighbors), distance))


def nearest_rows(distances: Array, noise: Array, n_neighbors: int) -> Array:
    """Chance of each column to be among the nearest of each row, when ties are broken at random."""
    np.fill_diagonal(distances, np.inf)
    last = np.partition(distances, n_neighbors - 1, axis=1)[:, n_neighbors - 1, np.newaxis]
    # Equal distances round differently: what lies within rounding of the last one ties with it.
    slack = noise + noise[:, np.newaxis]
    nearer = distances < last - slack
    tied = (distances <= last + slack) & ~nearer
    places = n_neighbors - nearer.sum(axis=1, keepdims=True)
    chance: Array = nearer + tied * (places / tied.sum(axis=1, keepdims=True))
    return chance


def tied_ranks(values: Array, slack: Array) -> Array:
    """Ranks, where values that differ by no more than their rounding share the mean of theirs.

    They are written over the values.
    """
    order = np.argsort(values)
    bounds = _tie_bounds(values[order], slack[order])
    values[order] = np.repeat((bounds[:-1] + bounds[1:] + 1) / 2, np.diff(bounds))
    return values


def _tie_bounds(ordered: Array, slack: Array) -> NDArray[np.intp]:
    """Where each run of tied values begins, and where the last one ends."""
    apart = np.diff(ordered) > np.maximum(slack[1:], slack[:-1])
    return np.concatenate([[0], np.flatnonzero(apart) + 1, [len(ordered)]])
