"""What every aligner shares: transform, inverse_transform, predict and score through one fitted map."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    MultiOutputMixin,
    RegressorMixin,
    TransformerMixin,
)
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from ._compat import check_feature_names_in
from ._linalg import variance_explained
from ._maps import Bijection
from ._validation import check_pair, check_source, check_target

if TYPE_CHECKING:
    import torch

    from ._flow import Invertible


class BaseAligner(
    ClassNamePrefixFeaturesOutMixin,
    RegressorMixin,
    MultiOutputMixin,
    TransformerMixin,
    BaseEstimator,
):
    """Base of the aligners: a subclass fits ``map_``, everything else goes through it.

    A subclass calls ``check_pair`` in its `fit`, which sets ``n_features_in_``, ``n_targets_`` and, for
    frames, ``feature_names_in_`` and ``target_names_in_``.
    """

    map_: Bijection
    n_features_in_: int
    n_targets_: int
    _y_is_1d: bool

    def transform(self, X: ArrayLike) -> NDArray[Any]:
        """Map rows of the first space into the second.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of the first space, in the units it was fitted with.

        Returns
        -------
        X_aligned : ndarray or frame of shape (n_samples, n_targets)
            Rows of the second space, in its own units; float32 if `X` is, else float64.

        Raises
        ------
        NotFittedError
            Before `fit`.
        ValueError
            If `X` has another width than in `fit`, or contains NaN or infinity.
        """
        check_is_fitted(self)
        return self.map_.forward(check_source(self, X))

    def inverse_transform(self, y: ArrayLike) -> NDArray[Any]:
        """Map rows of the second space back into the first.

        Parameters
        ----------
        y : array-like of shape (n_samples, n_targets), or (n_samples,) for a single target
            Rows of the second space.

        Returns
        -------
        X_back : ndarray of shape (n_samples, n_features)
            Rows of the first space, in its own units; float32 if `y` is, else float64.

        Raises
        ------
        NotFittedError
            Before `fit`.
        ValueError
            If `y` has another width than in `fit`, or contains NaN or infinity.
        """
        check_is_fitted(self)
        return self.map_.inverse(check_target(self, y))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The values of `transform` as a plain array, 1-D if `y` was 1-D in `fit`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of the first space.

        Returns
        -------
        y_pred : ndarray of shape (n_samples, n_targets) or (n_samples,)
        """
        check_is_fitted(self)
        y_pred = self.map_.forward(check_source(self, X))
        return y_pred[:, 0] if self._y_is_1d else y_pred

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """R² of `transform` against `y`, pooled over the columns so that a rotation of y leaves it alone.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples, n_targets) or (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        r2 : float
            ``1 - sum ||y - transform(X)||² / sum ||y - mean(y)||²``: 1 is perfect, 0 the mean of y.
        """
        check_is_fitted(self)
        X, y, weight = check_pair(self, X, y, sample_weight, reset=False)
        return variance_explained(y, self.map_.forward(X), weight)

    def to_torch(self, dtype: torch.dtype | None = None) -> Invertible:
        """The fitted map as a plain torch module, for use inside a model, on a GPU or in an export.

        Parameters
        ----------
        dtype : torch.dtype, default=None
            Of its parameters and buffers; None is torch's default. It stays behind by what that type cannot
            hold: ``torch.float64`` maps as `transform` does.

        Returns
        -------
        module : torch.nn.Module
            ``module(x)`` is `transform`, ``module.inverse(y)`` is `inverse_transform`, for tensors of rows in
            the units of the data; ``module.inverted()`` is a module whose call is the inverse. It shares
            nothing with the aligner, and is in evaluation mode.

        Raises
        ------
        NotFittedError
            Before `fit`.
        ValueError
            If `dtype` cannot hold the numbers of the map.

        Examples
        --------
        >>> import numpy as np, torch
        >>> from sklearn_bijection import ProcrustesAligner
        >>> X = np.random.default_rng(0).normal(size=(50, 3))
        >>> module = ProcrustesAligner().fit(X, 2 * X + 1).to_torch()
        >>> module(torch.zeros(1, 3))
        tensor([[1., 1., 1.]])
        """
        check_is_fitted(self)
        import torch

        from ._flow import in_precision

        return in_precision(self._as_module(), dtype or torch.get_default_dtype())

    def _as_module(self) -> Invertible:
        """The fitted map as a new module in float64."""
        raise NotImplementedError

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[np.object_]:
        """Names of the columns of `transform`: those of `y` in `fit`, else the class name and a number.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Only compared with the names seen in `fit`.

        Returns
        -------
        names : ndarray of str objects, of shape (n_targets,)
        """
        check_is_fitted(self)
        if hasattr(self, "target_names_in_"):
            check_feature_names_in(self, input_features, generate_names=False)
            return self.target_names_in_.copy()  # type: ignore[no-any-return]
        return super().get_feature_names_out(input_features)  # type: ignore[no-any-return]

    @property
    def _n_features_out(self) -> int:
        return self.n_targets_

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


@contextmanager
def all_or_nothing(estimator: BaseAligner) -> Iterator[None]:
    """Leave the estimator as it was if the block fails."""
    before = estimator.__dict__.copy()
    try:
        yield
    except BaseException:
        estimator.__dict__ = before
        raise
