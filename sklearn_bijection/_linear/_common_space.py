"""What fitted maps into a common space give: there, back, from any space to any other, and a score."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from .._linalg import polar_factor, variance_explained
from .._maps import AffineMap
from ._spaces import Labels, Spaces, check_rows, check_spaces

if TYPE_CHECKING:
    import torch

    from .._flow import Invertible


class CommonSpace(BaseEstimator):
    """Base of an estimator of a common space: a subclass fits what is declared here.

    A space is asked for by its number in the list that was fitted, or by its name.
    """

    rotations_: list[NDArray[np.float64]]
    scales_: NDArray[np.float64]
    means_: list[NDArray[np.float64]]
    _labels: Labels
    _reflects: bool

    def transform(self, X: ArrayLike, space: int | str) -> NDArray[Any]:
        """Map rows of one space into the common one.

        Parameters
        ----------
        X : array-like of shape (n_samples, width_k)
        space : int or str
            Number of the space in the list that was fitted, or its name.

        Returns
        -------
        T : ndarray of shape (n_samples, template_width)
            float32 if `X` is, else float64.

        Raises
        ------
        NotFittedError
            Before `fit`.
        ValueError
            If there is no such space, or it has another width, or `X` contains NaN or infinity.
        """
        check_is_fitted(self)
        number = self._labels.number(space, "space")
        return self._map(number).forward(self._rows_of(X, number))

    def inverse_transform(self, T: ArrayLike, space: int | str) -> NDArray[Any]:
        """Map rows of the common space into one of the others.

        Parameters
        ----------
        T : array-like of shape (n_samples, template_width)
        space : int or str
            Number of the space in the list that was fitted, or its name.

        Returns
        -------
        X : ndarray of shape (n_samples, width_k)
            In the units of the space; float32 if `T` is, else float64.

        Raises
        ------
        NotFittedError
            Before `fit`.
        ValueError
            If there is no such space, or `T` has not the width of the template.
        """
        check_is_fitted(self)
        number = self._labels.number(space, "space")
        rows = check_rows(self, T, "T", min_rows=1)
        if rows.shape[1] != (width := max(self.widths_)):
            raise ValueError(
                f"T has {rows.shape[1]} columns, but the template has {width}. Pass what transform "
                "returns, or use translate for rows of another space."
            )
        return self._map(number).inverse(rows)

    def translate(self, X: ArrayLike, source: int | str, target: int | str) -> NDArray[Any]:
        """Map rows of one space into another.

        Parameters
        ----------
        X : array-like of shape (n_samples, width of the source)
        source, target : int or str
            Numbers of the spaces in the list that was fitted, or their names.

        Returns
        -------
        X_target : ndarray of shape (n_samples, width of the target)
            In the units of the target; float32 if `X` is, else float64.

        Raises
        ------
        NotFittedError
            Before `fit`.
        ValueError
            If there is no such space, or it has another width, or `X` contains NaN or infinity.
        """
        there = self.map_between(source, target)
        return there.forward(self._rows_of(X, self._labels.number(source, "source")))

    def map_between(self, source: int | str, target: int | str) -> AffineMap:
        """The map from one space into another, and the way back, to be kept and used many times.

        Parameters
        ----------
        source, target : int or str
            Numbers of the spaces in the list that was fitted, or their names.

        Returns
        -------
        map : AffineMap
            ``map.forward(X)`` is `translate`, ``map.inverse`` the way back.
        """
        check_is_fitted(self)
        i, j = self._labels.number(source, "source"), self._labels.number(target, "target")
        R = self.rotations_[i] @ self.rotations_[j].T
        if max(R.shape) < max(self.widths_):
            R = polar_factor(R, allow_reflection=self._reflects)
        return _similarity(self.means_[i], self.means_[j], R, self.scales_[i] / self.scales_[j])

    def template(self, Xs: Spaces) -> NDArray[np.float64]:
        """The mean of the mapped spaces, for rows of all of them.

        Parameters
        ----------
        Xs : list of arrays of shape (n_samples, width_k), or mapping of names to such arrays
            The spaces of `fit`, with these or other rows; a single one will do.

        Returns
        -------
        T : ndarray of shape (n_samples, template_width)
        """
        check_is_fitted(self)
        _, arrays, _ = check_spaces(self, Xs, None, self._labels, min_rows=1)
        return self._sum(arrays) / self.n_spaces_

    def score(self, Xs: Spaces, y: Any = None, sample_weight: ArrayLike | None = None) -> float:
        """R² with which the other spaces together predict each space, on average over the spaces.

        The mean of the mapped others, mapped back into a space, is compared with its rows, pooled over the
        columns. The space itself has no part in it: spaces without anything in common do not reach 0.

        Parameters
        ----------
        Xs : list of arrays of shape (n_samples, width_k), or mapping of names to such arrays
            The spaces of `fit`, best with rows that were not fitted; at least two of them.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        r2 : float
            At most 1; higher is better.
        """
        check_is_fitted(self)
        _, arrays, weight = check_spaces(self, Xs, sample_weight, self._labels)
        total, others = self._sum(arrays), self.n_spaces_ - 1
        scores = [
            variance_explained(X, there.inverse((total - _mapped(there, X)) / others), weight)
            for there, X in zip(self.maps_, arrays, strict=True)
        ]
        return float(np.mean(scores))

    def to_torch(
        self, source: int | str, target: int | str, dtype: torch.dtype | None = None
    ) -> Invertible:
        """The map between two spaces as a plain torch module.

        Parameters
        ----------
        source, target : int or str
            Numbers of the spaces in the list that was fitted, or their names.
        dtype : torch.dtype, default=None
            Of its buffers; None is torch's default.

        Returns
        -------
        module : torch.nn.Module
            ``module(x)`` is `translate`, ``module.inverse(y)`` the way back. It shares nothing with this
            object, and is in evaluation mode.

        Raises
        ------
        NotFittedError
            Before `fit`.
        ValueError
            If `dtype` cannot hold the numbers of the map.

        Examples
        --------
        >>> import numpy as np, torch
        >>> from sklearn_bijection import GeneralizedProcrustes
        >>> X = np.random.default_rng(0).normal(size=(50, 3))
        >>> module = GeneralizedProcrustes().fit({"a": X, "b": 2 * X + 1}).to_torch("a", "b")
        >>> module(torch.zeros(1, 3))
        tensor([[1., 1., 1.]])
        """
        found = self.map_between(source, target)
        import torch

        from .._flow import AffineModule, in_precision

        parts = (found.there.centre, found.back.centre, found.there.coef, found.back.coef)
        module = AffineModule(*(torch.from_numpy(part.copy()) for part in parts))
        return in_precision(module, dtype or torch.get_default_dtype())

    @property
    def maps_(self) -> list[AffineMap]:
        """One map per space, made when it is asked for."""
        check_is_fitted(self)
        return [self._map(number) for number in range(self.n_spaces_)]

    @property
    def n_spaces_(self) -> int:
        """Number of spaces."""
        check_is_fitted(self)
        return len(self.rotations_)

    @property
    def widths_(self) -> list[int]:
        """Columns of each space."""
        check_is_fitted(self)
        return [len(mean) for mean in self.means_]

    @property
    def names_(self) -> list[str] | None:
        """Names of the spaces, if they have any."""
        check_is_fitted(self)
        return self._labels.names

    def _map(self, number: int) -> AffineMap:
        R = self.rotations_[number]
        return _similarity(self.means_[number], np.zeros(R.shape[1]), R, self.scales_[number])

    def _rows_of(self, X: ArrayLike, number: int) -> NDArray[Any]:
        rows = check_rows(self, X, "X", min_rows=1)
        self._labels.compare(X, rows, number, "X")
        return rows

    def _sum(self, arrays: list[NDArray[Any]]) -> NDArray[np.float64]:
        total = np.zeros((len(arrays[0]), max(self.widths_)))
        for there, X in zip(self.maps_, arrays, strict=True):
            total += _mapped(there, X)
        return total

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        return tags


def _similarity(
    mean_x: NDArray[np.float64], mean_y: NDArray[np.float64], R: NDArray[np.float64], scale: float
) -> AffineMap:
    return AffineMap.about_means(mean_x, mean_y, R * scale, R.T / scale)


def _mapped(there: AffineMap, X: NDArray[Any]) -> NDArray[np.float64]:
    return there.forward(X.astype(np.float64, copy=False))
