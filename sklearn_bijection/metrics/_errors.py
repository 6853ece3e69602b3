"""How far predictions lie from the truth, and round trips from their start, in one number each."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._compat import check_sample_weight
from .._linalg import variance_explained
from ._pairs import Aligner, as_columns, as_pair, unit_rows, walk_there


def r2(y_true: ArrayLike, y_pred: ArrayLike, *, sample_weight: ArrayLike | None = None) -> float:
    """Share of the variance of `y_true` that `y_pred` explains, over all columns together.

    ``1 - sum ||y_i - p_i||² / sum ||y_i - mean(y)||²``, which is scikit-learn's ``r2_score`` with
    ``multioutput="variance_weighted"``. It does not change when both arrays are rotated.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,) or (n_samples, n_targets)
        Row i of one is compared with row i of the other.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows; None weighs them alike.

    Returns
    -------
    r2 : float
        1 is perfect, 0 is as good as the mean of `y_true`, below 0 is worse. No lower bound.

    Raises
    ------
    ValueError
        If the shapes differ, a value is not finite, or `y_true` has no variance.

    Examples
    --------
    >>> from sklearn_bijection.metrics import r2
    >>> r2([[0.0, 0.0], [2.0, 0.0], [4.0, 0.0]], [[0.0, 0.0], [2.0, 0.0], [4.0, 2.0]])
    0.5
    """
    truth, guess = as_pair(y_true, y_pred)
    return variance_explained(truth, guess, _weights(sample_weight, truth))


def mse(y_true: ArrayLike, y_pred: ArrayLike, *, sample_weight: ArrayLike | None = None) -> float:
    """Mean squared error over all rows and columns.

    ``sum ||y_i - p_i||² / (n_samples * n_targets)``, in the squared units of `y_true`.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,) or (n_samples, n_targets)
        Row i of one is compared with row i of the other.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows; None weighs them alike.

    Returns
    -------
    mse : float
        0 is perfect. No upper bound.

    Raises
    ------
    ValueError
        If the shapes differ or a value is not finite.

    Examples
    --------
    >>> from sklearn_bijection.metrics import mse
    >>> mse([[0.0, 0.0], [0.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]])
    0.5
    """
    truth, guess = as_pair(y_true, y_pred)
    weight = _weights(sample_weight, truth)
    return float(np.average(_squared_residuals(truth, guess), weights=weight) / truth.shape[1])


def relative_error(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """Size of the residual relative to the spread of `y_true`.

    ``||Y - P||_F / ||Y - mean(Y)||_F``: the Frobenius norm of the residual over that of `y_true`
    about its column means. It is ``sqrt(1 - r2)``, exact also where R² rounds to 1.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,) or (n_samples, n_targets)
        Row i of one is compared with row i of the other.

    Returns
    -------
    error : float
        0 is perfect, 1 is as good as the mean of `y_true`. No upper bound.

    Raises
    ------
    ValueError
        If the shapes differ, a value is not finite, or `y_true` has no variance.

    Examples
    --------
    >>> from sklearn_bijection.metrics import relative_error
    >>> relative_error([0.0, 1.0, 2.0], [1.0, 1.0, 1.0])
    1.0
    """
    truth, guess = as_pair(y_true, y_pred)
    return float(np.sqrt(_squared_residuals(truth, guess).mean() / _spread(truth)))


def max_row_error(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """Length of the longest residual of a row, relative to the typical row of `y_true`.

    ``max_i ||y_i - p_i|| / sqrt(mean_i ||y_i - mean(y)||²)``: the worst row, in units of the root
    mean square distance of the rows from their mean.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,) or (n_samples, n_targets)
        Row i of one is compared with row i of the other.

    Returns
    -------
    error : float
        0 is perfect; never below `relative_error`. No upper bound.

    Raises
    ------
    ValueError
        If the shapes differ, a value is not finite, or `y_true` has no variance.

    Examples
    --------
    >>> from sklearn_bijection.metrics import max_row_error
    >>> max_row_error([-1.0, 1.0, -1.0, 1.0], [-1.0, 1.0, -1.0, 4.0])
    3.0
    """
    truth, guess = as_pair(y_true, y_pred)
    return float(np.sqrt(_squared_residuals(truth, guess).max() / _spread(truth)))


def mean_cosine(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """Mean cosine of the angles between paired rows.

    ``mean_i <y_i, p_i> / (||y_i|| ||p_i||)``, about the origin. A row of zeros has cosine 0 with
    everything.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,) or (n_samples, n_targets)
        Row i of one is compared with row i of the other.

    Returns
    -------
    cosine : float
        Between -1 and 1; 1 when every row points the right way, whatever its length.

    Raises
    ------
    ValueError
        If the shapes differ or a value is not finite.

    Notes
    -----
    Embeddings often share a large mean, and then unrelated rows have a high cosine too: compare it
    with that of the mean predictor.

    Examples
    --------
    >>> from sklearn_bijection.metrics import mean_cosine
    >>> mean_cosine([[1.0, 0.0], [0.0, 1.0]], [[5.0, 0.0], [1.0, 0.0]])
    0.5
    """
    truth, guess = as_pair(y_true, y_pred)
    cosines = np.einsum("ij,ij->i", unit_rows(truth), unit_rows(guess))
    return float(np.clip(cosines.mean(dtype=np.float64), -1.0, 1.0))


def roundtrip_error(aligner: Aligner, X: Any) -> float:
    """Relative error of ``inverse_transform(transform(X))`` against `X`.

    It is `relative_error`: 0 when the way back undoes the way there, 1 when only the mean returns.

    Parameters
    ----------
    aligner : fitted object with `transform` and `inverse_transform`
        An aligner, or a Pipeline or grid search that ends in one.
    X : array-like of shape (n_samples, n_features)
        Rows in X space.

    Returns
    -------
    error : float
        0 is exact.

    Raises
    ------
    ValueError
        If `X` has no variance or a value is not finite.

    See Also
    --------
    inverse_roundtrip_error : The same from y space and back.

    Notes
    -----
    A bijection returns exactly. Between unequal widths only the round trip that starts in the
    narrower space can.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.decomposition import PCA
    >>> from sklearn_bijection.metrics import roundtrip_error
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> roundtrip_error(PCA(n_components=3).fit(X), X) < 1e-14
    True
    """
    return relative_error(as_columns(X), aligner.inverse_transform(aligner.transform(X)))


def inverse_roundtrip_error(aligner: Aligner, y: Any) -> float:
    """Relative error of ``transform(inverse_transform(y))`` against `y`.

    It is `relative_error`: 0 when the way there undoes the way back, 1 when only the mean returns.

    Parameters
    ----------
    aligner : fitted object with `transform` and `inverse_transform`
        An aligner, or a Pipeline or grid search that ends in one.
    y : array-like of shape (n_samples,) or (n_samples, n_targets)
        Rows in y space; 1-D is one column.

    Returns
    -------
    error : float
        0 is exact.

    Raises
    ------
    ValueError
        If `y` has no variance or a value is not finite.

    See Also
    --------
    roundtrip_error : The same from X space and back.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.decomposition import PCA
    >>> from sklearn_bijection.metrics import inverse_roundtrip_error
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> inverse_roundtrip_error(PCA(n_components=2).fit(X), X[:, :2]) < 1e-14
    True
    """
    target = as_columns(y)
    return relative_error(target, walk_there(aligner, aligner.inverse_transform(target)))


def _weights(sample_weight: ArrayLike | None, rows: NDArray[Any]) -> NDArray[np.float64] | None:
    if sample_weight is None:
        return None
    weight = check_sample_weight(sample_weight, rows, dtype=np.float64, ensure_non_negative=True)
    return np.asarray(weight, dtype=np.float64)


def _squared_residuals(truth: NDArray[Any], guess: NDArray[Any]) -> NDArray[np.float64]:
    """Squared length of each row's residual."""
    residual = np.subtract(truth, guess, dtype=np.float64)
    return np.asarray(np.einsum("ij,ij->i", residual, residual))


def _spread(truth: NDArray[Any]) -> float:
    """Mean squared distance of the rows from their mean."""
    centre = truth.mean(axis=0, dtype=np.float64, keepdims=True)
    spread = float(_squared_residuals(truth, np.broadcast_to(centre, truth.shape)).mean())
    if not spread > 0:
        raise ValueError(
            f"y_true has no variance over its {len(truth)} rows, so an error relative to it is "
            "undefined. Judge on rows that differ from one another."
        )
    return spread
