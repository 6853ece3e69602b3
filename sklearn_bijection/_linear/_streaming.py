"""The shell of every aligner that is solved from moments."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, Self

from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from .._base import BaseAligner, all_or_nothing
from .._compat import checks_parameters
from .._moments import MomentSum, PairMoments, fold_moments, require_variance
from .._validation import Pair, check_pair

if TYPE_CHECKING:
    from .._flow import Invertible

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

    #: The setting that asks for folds, in the words of an error.
    _cross_validates = ""

    _sums: tuple[MomentSum, ...]
    _settings: dict[str, Any]
    _solution: Any

    @property
    def _n_folds(self) -> int:
        """Parts of the rows whose moments are kept apart."""
        return 1

    def _diagonal_will_do(self, n_features: int, n_targets: int) -> bool:
        """Whether the solution needs no more than the diagonals of the scatters."""
        return False

    def _solve(self, whole: PairMoments, folds: Moments, **settings: Any) -> Any:
        """Find the solution: an object with `map` and whatever the attributes name.

        `whole` are the moments of all folds together; the settings are the parameters as they were when
        the rows came in.
        """
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
        with all_or_nothing(self):
            pair = check_pair(self, X, y, sample_weight)
            self._sums = tuple(MomentSum() for _ in range(self._n_folds))
            self._add(pair)
            self._solution = self._solve_checked()
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
            If the arrays are not paired finite numbers of the widths seen before, or the parameters now
            need folds that were not kept.
        """
        first = not self.__sklearn_is_fitted__()
        with all_or_nothing(self):
            self._validate_params()
            pair = check_pair(self, X, y, sample_weight, reset=first, min_rows=1)
            if first:
                self._sums = tuple(MomentSum() for _ in range(self._n_folds))
            self._add(pair)
            self._solution = None
        return self

    def _as_module(self) -> Invertible:
        import torch

        from .._flow import AffineModule

        there, back = self.map_.there, self.map_.back
        parts = (there.centre, back.centre, there.coef, back.coef)
        return AffineModule(*(torch.from_numpy(part.copy()) for part in parts))

    def _add(self, pair: Pair) -> None:
        if len(self._sums) < self._n_folds:
            raise ValueError(
                f"{self._cross_validates} needs folds, but the rows seen so far came in under other "
                "parameters and were kept in one. Call fit, or start the stream like this."
            )
        X, y, weight = pair
        diagonal = self._diagonal_will_do(X.shape[1], y.shape[1])
        batch = fold_moments(X, y, weight, n_folds=len(self._sums), diagonal=diagonal)
        self._settings = {
            name: value
            for name, value in vars(self).items()
            if not (name[0] == "_" or name[-1] == "_")
        }
        for fold, part in zip(self._sums, batch, strict=True):
            fold.add(part, owned=True)

    def _solved(self) -> Any:
        check_is_fitted(self)
        if self._solution is None:
            try:
                self._solution = self._solve_checked()
            except ValueError as error:
                raise UnsolvableError(str(error)) from error
        return self._solution

    def _solve_checked(self) -> Any:
        empty = PairMoments.empty(self.n_features_in_, self.n_targets_)
        folds = tuple(fold.moments() or empty for fold in self._sums)
        whole = PairMoments.merge_all(folds)
        require_variance(whole)
        return self._solve(whole, folds, **self._settings)

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        if "_sums" in state:
            # A copy goes on by itself: from now on neither writes to arrays that the other may hold.
            state = state | {"_sums": tuple(fold.fork() for fold in self._sums)}
        return state

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_sums")
