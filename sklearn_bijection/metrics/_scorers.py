"""Scorers for ``scoring=`` in scikit-learn's searches and cross-validation: higher is better."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from ._errors import r2
from ._pairs import Aligner, as_columns
from ._retrieval import retrieval_scores


def forward_r2(estimator: Aligner, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
    """R² of ``estimator.transform(X)`` against `y`, for use as ``scoring=``.

    Parameters
    ----------
    estimator : fitted object with `transform` and `inverse_transform`
        An aligner, or a Pipeline that ends in one.
    X : array-like of shape (n_samples, n_features)
        Rows in X space.
    y : array-like of shape (n_samples, n_targets) or (n_samples,)
        Their partners in y space.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows; None weighs them alike.

    Returns
    -------
    score : float
        At most 1, see `r2`.

    Examples
    --------
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn_bijection import ProcrustesAligner
    >>> from sklearn_bijection.metrics import forward_r2
    >>> X = [[0.0, 1.0], [1.0, 0.0], [2.0, 5.0], [3.0, 1.0], [4.0, 0.0], [5.0, 2.0]]
    >>> cross_val_score(ProcrustesAligner(), X, X, scoring=forward_r2, cv=2)
    array([1., 1.])
    """
    return r2(as_columns(y), estimator.transform(X), sample_weight=sample_weight)


def inverse_r2(estimator: Aligner, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
    """R² of ``estimator.inverse_transform(y)`` against `X`, for use as ``scoring=``.

    For a Pipeline both are in the units that `X` came in, not in those of an inner step.

    Parameters
    ----------
    estimator : fitted object with `transform` and `inverse_transform`
        An aligner, or a Pipeline that ends in one.
    X : array-like of shape (n_samples, n_features)
        Rows in X space.
    y : array-like of shape (n_samples, n_targets) or (n_samples,)
        Their partners in y space.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows; None weighs them alike.

    Returns
    -------
    score : float
        At most 1, see `r2`.

    Examples
    --------
    >>> from sklearn_bijection import ProcrustesAligner
    >>> from sklearn_bijection.metrics import inverse_r2
    >>> X, y = [[0.0, 1.0], [1.0, 0.0], [2.0, 5.0]], [[1.0, 0.0], [0.0, 1.0], [5.0, 2.0]]
    >>> inverse_r2(ProcrustesAligner().fit(X, y), X, y)
    1.0
    """
    return r2(X, estimator.inverse_transform(as_columns(y)), sample_weight=sample_weight)


def symmetric_r2(
    estimator: Aligner, X: Any, y: Any, sample_weight: ArrayLike | None = None
) -> float:
    """Mean of `forward_r2` and `inverse_r2`, for use as ``scoring=``.

    Parameters
    ----------
    estimator : fitted object with `transform` and `inverse_transform`
        An aligner, or a Pipeline that ends in one.
    X : array-like of shape (n_samples, n_features)
        Rows in X space.
    y : array-like of shape (n_samples, n_targets) or (n_samples,)
        Their partners in y space.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows; None weighs them alike.

    Returns
    -------
    score : float
        At most 1, see `r2`.

    Examples
    --------
    >>> from sklearn_bijection import ProcrustesAligner
    >>> from sklearn_bijection.metrics import symmetric_r2
    >>> X, y = [[0.0, 1.0], [1.0, 0.0], [2.0, 5.0]], [[1.0, 0.0], [0.0, 1.0], [5.0, 2.0]]
    >>> symmetric_r2(ProcrustesAligner().fit(X, y), X, y)
    1.0
    """
    forward = forward_r2(estimator, X, y, sample_weight)
    return (forward + inverse_r2(estimator, X, y, sample_weight)) / 2


def retrieval(estimator: Aligner, X: Any, y: Any) -> float:
    """Mean precision@1 of retrieval in both spaces, for use as ``scoring=``.

    Half the share of rows of ``transform(X)`` whose most similar row of `y` is their own, plus half
    the share of rows of ``inverse_transform(y)`` that find theirs in `X`, by cosine.

    Parameters
    ----------
    estimator : fitted object with `transform` and `inverse_transform`
        An aligner, or a Pipeline that ends in one.
    X : array-like of shape (n_samples, n_features)
        Rows in X space.
    y : array-like of shape (n_samples, n_targets) or (n_samples,)
        Their partners in y space.

    Returns
    -------
    score : float
        Between 0 and 1; ``1 / n_samples`` is chance.

    See Also
    --------
    retrieval_scores : The numbers from two arrays, with other similarities and depths.

    Examples
    --------
    >>> from sklearn_bijection import ProcrustesAligner
    >>> from sklearn_bijection.metrics import retrieval
    >>> X, y = [[0.0, 1.0], [1.0, 0.0], [2.0, 5.0]], [[1.0, 0.0], [0.0, 1.0], [5.0, 2.0]]
    >>> retrieval(ProcrustesAligner().fit(X, y), X, y)
    1.0
    """
    target = as_columns(y)
    there = retrieval_scores(estimator.transform(X), target, k=1)
    back = retrieval_scores(estimator.inverse_transform(target), X, k=1)
    return (there.precision_at[1] + back.precision_at[1]) / 2
