"""Matrices of all pairs of rows: distances, centring, and the unit vector of one triangle."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from .._pairs import unit_rows
from ._measure import Array, UnfitError
from ._spaces import Space, centred

Metric = Literal["correlation", "cosine", "euclidean"]
METRICS: tuple[str, ...] = get_args(Metric)

_EPS = float(np.finfo(float).eps)


def gram(X: Space) -> Array:
    """Inner products of all pairs of centred rows, relative to the sum of squares."""
    rows = centred(X, diagonal=True).unit_rows
    # numpy sees that both factors are one buffer and computes one triangle only.
    products: Array = rows @ rows.T
    return products


def unit_vector(matrix: Array, *, diagonal: bool, what: str) -> Array:
    """One triangle of a symmetric matrix as a vector of unit length, whose products are those of matrices.

    Parameters
    ----------
    matrix : ndarray of shape (n_samples, n_samples)
    diagonal : bool
        Whether the diagonal takes part.
    what : str
        What is lost if the triangle is zero, for the error.
    """
    vector = matrix[np.tri(len(matrix), k=0 if diagonal else -1, dtype=bool)]
    if diagonal:
        # Entries beside the diagonal stand for two.
        vector *= np.sqrt(2)
        vector[np.cumsum(np.arange(1, len(matrix) + 1)) - 1] /= np.sqrt(2)
    return normalised(vector, float(np.abs(matrix).max(initial=0.0)), what)


def normalised(vector: Array, size: float, what: str) -> Array:
    """A vector of unit length; `size` is that of the entries it was computed from."""
    length = float(np.linalg.norm(vector))
    if not length > _EPS * size * np.sqrt(len(vector)):
        raise UnfitError(f"leaves nothing to compare: {what}.")
    vector /= length
    return vector


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


def rows_by(X: Space, metric: str) -> Array:
    """Rows whose squared Euclidean distances are twice the dissimilarities, or the squared distances."""
    if metric == "euclidean":
        return centred(X, diagonal=True).unit_rows
    rows = X.astype(np.float64)
    if metric == "correlation":
        rows -= rows.mean(axis=1, keepdims=True)
    lengths = np.abs(rows).max(axis=1)
    flat = lengths <= 4 * _EPS * np.abs(X).max(axis=1)
    if flat.any():
        raise UnfitError(_flat(int(flat.argmax()), metric))
    return centred(unit_rows(rows), diagonal=True).rows


def _flat(row: int, metric: str) -> str:
    if metric == "cosine":
        return f"has zeros only in row {row}, which has no cosine with others. Leave such rows out."
    return (
        f"has equal values only in row {row}, which has no correlation with others. Leave such rows "
        "out, or pass metric='euclidean'."
    )


def squared_distances(rows: Array) -> tuple[Array, Array]:
    """Squared distances of all pairs, and the rounding of each row's; what is rounding alone is zero."""
    lengths = np.einsum("ij,ij->i", rows, rows)
    noise = 8 * _EPS * lengths
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
