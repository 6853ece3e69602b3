"""Matrices of all pairs of rows: distances, centring, and the unit vector of one triangle."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from .._pairs import unit_rows
from ._measure import Array, UnfitError
from ._spaces import Space, centred

Distance = Literal["correlation", "cosine", "euclidean"]
DISTANCES: tuple[str, ...] = get_args(Distance)

_EPS = float(np.finfo(float).eps)

#: Rounding of an entry from which means are taken off, relative to the largest entry.
ROUNDING = 16 * _EPS


def gram(X: Space) -> Array:
    """Inner products of all pairs of centred rows, relative to the sum of squares."""
    rows = centred(X, diagonal=True).unit_rows
    # numpy sees that both factors are one buffer and computes one triangle only.
    products: Array = rows @ rows.T
    return products


def centred_vector(matrix: Array, *, debiased: bool, what: str) -> Array:
    """One triangle of a centred symmetric matrix as a unit vector, whose products are those of matrices.

    Parameters
    ----------
    matrix : ndarray of shape (n_samples, n_samples)
        Not yet centred; it is overwritten.
    debiased : bool
        Whether it is debiased, which leaves its diagonal out.
    what : str
        What is lost if nothing but rounding remains, for the error.
    """
    if debiased:
        np.fill_diagonal(matrix, 0.0)
    # The size before means are taken off: that of the rounding, where little is left.
    size = float(max(matrix.max(), -matrix.min()))
    if not size > 0:
        raise nothing_left(what)
    matrix /= size
    centred_matrix = double_centred(matrix, debiased=debiased)
    return normalised(_triangle(centred_matrix, diagonal=not debiased), ROUNDING, what)


def _triangle(matrix: Array, *, diagonal: bool) -> Array:
    """Entries whose inner products are those of the matrices, up to a factor where the diagonal is zero."""
    vector: Array = matrix[np.tri(len(matrix), k=0 if diagonal else -1, dtype=bool)]
    if diagonal:
        # Entries beside the diagonal stand for two.
        vector *= np.sqrt(2)
        vector[np.cumsum(np.arange(1, len(matrix) + 1)) - 1] /= np.sqrt(2)
    return vector


def normalised(vector: Array, rounding: float, what: str) -> Array:
    """A vector of unit length, unless it is no longer than the rounding of its entries makes it."""
    length = float(np.linalg.norm(vector))
    if not length > rounding * np.sqrt(len(vector)):
        raise nothing_left(what)
    vector /= length
    return vector


def nothing_left(what: str) -> UnfitError:
    """The error about a space of which a measure leaves only rounding."""
    return UnfitError(f"leaves nothing to compare: {what}.")


def double_centred(matrix: Array, *, debiased: bool) -> Array:
    """Take the means of rows and columns off a symmetric matrix, in place.

    Debiased, the diagonal becomes zero, and what is taken off makes the inner product of two such
    matrices an unbiased estimate.
    """
    n = len(matrix)
    if not debiased:
        means = matrix.mean(axis=0)
        matrix -= means
        matrix -= (means - means.mean())[:, np.newaxis]
        return matrix
    np.fill_diagonal(matrix, 0.0)
    sums = matrix.sum(axis=0)
    share = (sums - sums.sum() / (2 * (n - 1))) / (n - 2)
    matrix -= share
    matrix -= share[:, np.newaxis]
    np.fill_diagonal(matrix, 0.0)
    return matrix


def rows_by(X: Space, distance: str) -> Array:
    """Rows whose squared Euclidean distances are twice the dissimilarities, or the squared distances."""
    if distance == "euclidean":
        return centred(X, diagonal=True).unit_rows
    rows = X.astype(np.float64)
    if distance == "correlation":
        rows -= rows.mean(axis=1, keepdims=True)
    lengths = np.abs(rows).max(axis=1)
    flat = lengths <= 4 * _EPS * np.abs(X).max(axis=1)
    if flat.any():
        raise UnfitError(_flat(int(flat.argmax()), distance))
    try:
        return centred(unit_rows(rows), diagonal=True).rows
    except UnfitError:
        # Where the rows themselves are equal, this says so.
        centred(X, diagonal=True)
        raise UnfitError(_parallel(len(X), distance)) from None


def _flat(row: int, distance: str) -> str:
    if distance == "cosine":
        return f"has zeros only in row {row}, which has no cosine with others. Leave such rows out."
    return (
        f"has equal values only in row {row}, which has no correlation with others. Leave such rows "
        "out, or pass distance='euclidean'."
    )


def _parallel(n_samples: int, distance: str) -> str:
    added = ", after a number of its own is added," if distance == "correlation" else ""
    return (
        f"has no two rows that differ by {distance}: each of the {n_samples}{added} is a positive "
        "multiple of the first. Pass distance='euclidean'."
    )


def squared_distances(rows: Array) -> tuple[Array, Array]:
    """Squared distances of all pairs, and the rounding of each row's; what is rounding alone is zero."""
    lengths = np.einsum("ij,ij->i", rows, rows)
    # Rounding in a sum of so many terms, with some room.
    noise = 4 * np.sqrt(rows.shape[1] + 4) * _EPS * lengths
    distances = rows @ rows.T
    distances *= -2
    distances += lengths
    distances += lengths[:, np.newaxis]
    distances[distances <= noise + noise[:, np.newaxis]] = 0.0
    np.fill_diagonal(distances, 0.0)
    return distances, noise


def lower_triangle(matrix: Array) -> Array:
    """Entries below the diagonal."""
    entries: Array = matrix[np.tri(len(matrix), k=-1, dtype=bool)]
    return entries
