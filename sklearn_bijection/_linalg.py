"""Dense linear algebra that the solvers share: the rank cut, the signs of an SVD, the polar factor.

All of it through numpy: scipy carries a BLAS of its own, and two pools of threads that wait for each
other cost more than any routine gains.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class SVD(NamedTuple):
    """``A = U diag(s) V'``, with ``V`` stored by columns."""

    U: Array
    s: Array
    V: Array


def resolved(values: Array, vectors: Array, noise: Array) -> NDArray[np.bool_]:
    """Which principal directions of a covariance are more than rounding.

    Two sources of rounding are told apart: that of the covariance itself, relative to its largest
    eigenvalue, and that of the data it was made from, which put at most `noise` into each column.
    """
    own = np.finfo(float).eps * float(values.max(initial=0.0))
    keep: NDArray[np.bool_] = values > len(values) * np.maximum(own, noise @ np.square(vectors))
    return keep


def principal_axes(covariance: Array, noise: Array | None = None) -> tuple[Array, Array]:
    """Eigenvalues, descending, and eigenvectors of a covariance, cut at its numerical rank.

    Parameters
    ----------
    covariance : ndarray of shape (n_features, n_features)
        Symmetric and positive semi-definite up to rounding.
    noise : ndarray of shape (n_features,), default=None
        Variance that the precision of the data alone may put into each column; None is none.

    Returns
    -------
    values : ndarray of shape (rank,)
    vectors : ndarray of shape (n_features, rank)
    """
    noise = np.zeros(len(covariance)) if noise is None else noise
    live = covariance.diagonal() > 0
    if not live.all():
        # Cut out beforehand, a dead column takes exactly no part in any direction.
        values, within = principal_axes(covariance[np.ix_(live, live)], noise[live])
        vectors = np.zeros((len(live), len(values)))
        vectors[live] = within
        return values, vectors
    values, vectors = np.linalg.eigh(covariance)
    keep = resolved(values, vectors, noise)
    return values[keep][::-1], vectors[:, keep][:, ::-1]


def signed_svd(A: Array) -> SVD:
    """Thin SVD in which the largest entry of every left singular vector is positive.

    An SVD fixes its vectors only up to a common sign; fixing the sign makes fits comparable.
    """
    U, s, Vt = np.linalg.svd(A, full_matrices=False)
    sign = np.sign(U[np.abs(U).argmax(axis=0), np.arange(U.shape[1])])
    return SVD(U * sign, s, Vt.T * sign)


def gram_svd(A: Array) -> SVD:
    """Thin SVD through the eigen-decomposition of the smaller Gram matrix.

    About twice as fast as an SVD and only half as precise: singular values below 1e-8 of the largest
    are rounding, and are left out. Made for scoring many candidates, not for the map that is kept.
    """
    if A.shape[0] < A.shape[1]:
        V, s, U = gram_svd(A.T)
        return SVD(U, s, V)
    values, V = principal_axes(A.T @ A)
    s = np.sqrt(values)
    return SVD(A @ (V / s), s, V)


def polar_factor(A: Array, *, allow_reflection: bool = True) -> Array:
    """The (semi-)orthogonal matrix nearest to `A`: ``U V'`` of its SVD.

    Where `A` is rank deficient the null directions are matched to each other, so that a square `A`
    always gives a full orthogonal matrix.

    Parameters
    ----------
    A : ndarray of shape (n_features, n_targets)
    allow_reflection : bool, default=True
        If False and `A` is square, the nearest matrix among those of determinant +1.

    Returns
    -------
    R : ndarray of shape (n_features, n_targets)
    """
    U, _, Vt = np.linalg.svd(A, full_matrices=False)
    if (
        not allow_reflection
        and A.shape[0] == A.shape[1]
        and np.linalg.det(U) * np.linalg.det(Vt) < 0
    ):
        # The last pair has the smallest singular value, so turning it costs least.
        U[:, -1] *= -1
    factor: Array = U @ Vt
    return factor


def variance_explained(
    y_true: NDArray[Any], y_pred: NDArray[Any], sample_weight: NDArray[Any] | None = None
) -> float:
    """Share of the total variance of `y_true` that `y_pred` explains, over all columns together.

    ``1 - sum ||y_i - p_i||² / sum ||y_i - mean(y)||²``: columns weigh by their variance, so the value
    does not change when both arrays are rotated. 1 is perfect, 0 is the mean, below 0 is worse.

    Parameters
    ----------
    y_true, y_pred : ndarray of shape (n_samples,) or (n_samples, n_targets)
    sample_weight : ndarray of shape (n_samples,), default=None

    Returns
    -------
    r2 : float

    Raises
    ------
    ValueError
        If `y_true` has no variance, where the ratio means nothing.

    Examples
    --------
    >>> import numpy as np
    >>> variance_explained(np.array([0.0, 1.0, 2.0]), np.array([0.0, 1.0, 1.0]))
    0.5
    """
    truth = np.asarray(y_true, dtype=np.float64).reshape(len(y_true), -1)
    guess = np.asarray(y_pred, dtype=np.float64).reshape(len(y_pred), -1)
    weight = (
        np.ones(len(truth))
        if sample_weight is None
        else np.asarray(sample_weight, dtype=np.float64)
    )
    centred = truth - np.average(truth, axis=0, weights=weight)
    # Squares of very small or very large numbers would leave the range of floats.
    size = np.abs(centred).max(initial=0.0)
    if not size > 0:
        raise ValueError(
            f"y_true has no variance over its {len(truth)} rows, so R² is undefined. "
            "Score on rows that differ from one another."
        )
    unexplained, spread = (
        weight @ np.square(part / size).sum(axis=1) for part in (truth - guess, centred)
    )
    return float(1.0 - unexplained / spread)


def completed(there: Array, back: Array, width: int, unit: float = 1.0) -> tuple[Array, Array]:
    """Complete a linear map onto fewer coordinates to an invertible one of the whole space.

    Parameters
    ----------
    there : ndarray of shape (n_columns, rank)
    back : ndarray of shape (rank, n_columns)
        With ``back @ there == 1``.
    width : int
        Coordinates in all, at least n_columns; those beyond the columns are passed through.
    unit : float, default=1.0
        What is left of a row after ``row @ there @ back`` is divided by it.

    Returns
    -------
    there, back : ndarray of shape (width, width)
        Inverse to each other; their leading coordinates are the given ones.
    """
    n_columns, rank = there.shape
    whole, whole_back = np.eye(width), np.eye(width)
    if rank < n_columns:
        rest = np.linalg.qr(there, mode="complete").Q[:, rank:]
        whole[:n_columns, rank:n_columns] = (rest - there @ (back @ rest)) / unit
        whole_back[rank:n_columns, :n_columns] = rest.T * unit
    whole[:n_columns, :rank] = there
    whole_back[:rank, :n_columns] = back
    return whole, whole_back
