"""The shell of every aligner that is solved from moments."""

from __future__ import annotations

from operator import attrgetter
from typing import Any, Self

from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from .._base import BaseAligner
from .._compat import checks_parameters
from .._moments import PairMoments, Sums, add_rows, moment_sums
from .._validation import check_pair

Moments = tuple[PairMoments, ...]


class Solved:
    """A fitted attribute read from the solution, which is found when it is first asked for.

    Parameters
    ----------
    path : str
        Dotted name within the solution.
    """

    def __init__(self, path: str) -> None:
        self._get = attrgetter(path)

    def __get__(self, aligner: MomentAligner | None, owner: type | None = None) -> Any:
        return self if aligner is None else self._get(aligner._solved())


class UnsolvableError(ValueError, AttributeError):
    """The rows seen so far do not determine a map, so that the attributes it would have are missing."""


class MomentAligner(BaseAligner):
    """Base of the aligners that need the data only through its paired moments.

    A stream of batches costs one decomposition, at the first look at the result, however many there are.
    """

    map_ = Solved("map")
    mean_x_ = Solved("map.there.centre")
    mean_y_ = Solved("map.back.centre")

    _sums: Sums
    _solution: Any

    def _start(self, n_features: int, n_targets: int) -> Sums:
        """Start running moments that hold what the solution needs."""
        return moment_sums(n_features, n_targets)

    def _solve(self, moments: Moments) -> Any:
        """Find the solution from the moments: an object with `map` and whatever the attributes name."""
        raise NotImplementedError

    @checks_parameters
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the map from paired rows, forgetting what was learnt before.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of the first space. A memory map is read in blocks.
        y : array-like of shape (n_samples, n_targets) or (n_samples,)
            The rows of the second space that belong to those of `X`.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative; 2 counts a row twice, 0 leaves it out.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If the arrays are not paired finite numbers, or a whole view is constant.
        """
        X, y, weight = check_pair(self, X, y, sample_weight)
        sums = self._start(X.shape[1], y.shape[1])
        add_rows(sums, X, y, weight)
        self._solution = self._solve_checked(sums)
        self._sums = sums
        return self

    @checks_parameters
    def partial_fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Add a batch of paired rows; batches in any order and size give the same map as the whole.

        The map is solved when it is next needed, so that a long stream costs one decomposition.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of the first space; a single row will do.
        y : array-like of shape (n_samples, n_targets) or (n_samples,)
            The rows of the second space that belong to those of `X`.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative; 2 counts a row twice, 0 leaves it out.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If the arrays are not paired finite numbers of the widths seen before.
        """
        first = not self.__sklearn_is_fitted__()
        X, y, weight = check_pair(self, X, y, sample_weight, reset=first, min_rows=1)
        if first:
            self._sums = self._start(X.shape[1], y.shape[1])
        self._solution = None
        add_rows(self._sums, X, y, weight)
        return self

    def _solved(self) -> Any:
        check_is_fitted(self)
        if self._solution is None:
            self._validate_params()
            try:
                self._solution = self._solve_checked(self._sums)
            except ValueError as error:
                raise UnsolvableError(str(error)) from error
        return self._solution

    def _solve_checked(self, sums: Sums) -> Any:
        moments = tuple(fold.moments() for fold in sums)
        whole = PairMoments.merge_all(moments)
        for name, view in (("X", whole.x), ("y", whole.y)):
            if view.is_constant(whole.weight):
                raise ValueError(
                    f"{name} has no variance: its {whole.n_rows} row(s) are all equal. "
                    "An aligner needs rows that differ from one another in both spaces."
                )
        return self._solve(moments)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_sums")
