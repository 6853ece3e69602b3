"""Canonical correlation analysis as an aligner."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any, ClassVar

from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from .._compat import Interval, StrOptions, stacklevel_of_caller
from .._moments import PairMoments
from .._solvers import CCAProblem, CCASolution, Direction, resolve_shrinkage, solve_cca
from .._validation import DIRECTION, check_source, check_target
from ._streaming import MomentAligner, Moments, Solved

_N_FOLDS = 3


class CCAAligner(MomentAligner):
    """Align two spaces through their canonical correlations, in either direction.

    Both views are whitened, one singular value decomposition pairs their directions, and the pairs are
    coloured back into the units of the other view. With covariances ``Cxx``, ``Cyy`` and ``Cxy``::

        Cxx^(-1/2) Cxy Cyy^(-1/2) = U diag(rho) V'
        coef_         = Cxx^(-1/2) U diag(rho^g)  V' Cyy^(1/2)
        inverse_coef_ = Cyy^(-1/2) V diag(rho^-g) U' Cxx^(1/2)

    where g is 0 for the symmetric map, 1 for the forward and -1 for the backward one. With shrinkage s the
    one-way maps take ``(1 - s) rho`` for rho, which makes them ridge regressions.

    Parameters
    ----------
    n_components : int, default=None
        Leading canonical pairs to keep, at most the smaller rank of the two views; None keeps all.
    shrinkage : "auto", "oas", float or pair of float, default="auto"
        How far each covariance is shrunk towards a multiple of the identity, in [0, 1]: 0 is textbook CCA,
        1 is Procrustes up to a scale. A pair gives one for X and one for y. "auto" cross-validates one value
        for both in three folds, on the moments alone; "oas" is the oracle-approximating formula. With too
        few different rows to fill three folds "auto" is "oas".
    direction : {"symmetric", "forward", "backward"}, default="symmetric"
        Whose error the map is fitted for. "forward" is least squares from X to y (ridge regression with
        shrinkage), whose inverse may be useless on noisy pairs; "backward" is its mirror image; "symmetric"
        serves both, and is its own mirror image.
    explained_variance : float, default=None
        If given, only the leading principal directions of each view that explain this share of its
        variance, in (0, 1], are used: 0.99 is SVCCA.

    Attributes
    ----------
    map_ : AffineMap
        The fitted map, with `forward` and `inverse`.
    coef_ : ndarray of shape (n_features, n_targets)
        ``transform(X)`` is ``(X - mean_x_) @ coef_ + mean_y_``.
    inverse_coef_ : ndarray of shape (n_targets, n_features)
        ``inverse_transform(y)`` is ``(y - mean_y_) @ inverse_coef_ + mean_x_``.
    mean_x_ : ndarray of shape (n_features,)
    mean_y_ : ndarray of shape (n_targets,)
    canonical_correlations_ : ndarray of shape (n_components,)
        Descending, in [0, 1]; those of the shrunk covariances.
    x_weights_ : ndarray of shape (n_features, n_components)
        ``(X - mean_x_) @ x_weights_`` are the canonical variates of X, each of variance 1 (divisor n).
    y_weights_ : ndarray of shape (n_targets, n_components)
        The same for y.
    shrinkage_ : tuple of (float, float)
        Intensities used for X and for y.
    shrinkage_path_ : ShrinkagePath or None
        For "auto", the values tried as `shrinkage`, and the held-out errors ``1 - R²`` of both ways as
        `forward_error` and `inverse_error`.
    rank_x_, rank_y_ : int
        Principal directions of each view that are used: its numerical rank, or fewer by
        `explained_variance`.
    n_components_ : int
        Canonical pairs kept.
    n_features_in_ : int
    n_targets_ : int
    feature_names_in_, target_names_in_ : ndarray of str
        Where the array was a frame with string names.

    See Also
    --------
    ProcrustesAligner : A rotation and one scale; distances are kept.

    Notes
    -----
    *Exactness.* The map acts on the affine span of the training rows: directions without variance come
    out at their mean. Within it, ``inverse_transform(transform(X)) == X`` if all pairs are kept and
    ``rank_x_ <= rank_y_``; ``transform(inverse_transform(y)) == y`` if ``rank_y_ <= rank_x_``; both, where
    they are equal. With fewer components each round trip is a projection.

    *Cost.* ``n (p² + q² + 2 p q)`` multiplications for the moments, then two eigen-decompositions and one
    singular value decomposition; "auto" adds about seven more for each fold. Memory is a few matrices
    of the widths, whatever n is.

    *Streaming.* ``partial_fit`` gives the map of all rows seen so far. The folds of "auto" are drawn by the
    content of each row, so neither order nor batch sizes change the choice.

    References
    ----------
    Hotelling, "Relations between two sets of variates", Biometrika 28 (1936).

    Chen, Wiesel, Eldar and Hero, "Shrinkage algorithms for MMSE covariance estimation", IEEE Transactions
    on Signal Processing 58 (2010).

    Raghu, Gilmer, Yosinski and Sohl-Dickstein, "SVCCA: singular vector canonical correlation analysis for
    deep learning dynamics and interpretability", NeurIPS (2017).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_bijection import CCAAligner
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 4))
    >>> y = X @ rng.normal(size=(4, 4)) + 10.0
    >>> aligner = CCAAligner().fit(X, y)
    >>> round(aligner.score(X, y), 6)
    1.0
    >>> bool(np.allclose(aligner.inverse_transform(y), X))
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "shrinkage": [
            StrOptions({"auto", "oas"}),
            Interval(Real, 0, 1, closed="both"),
            tuple,
            list,
        ],
        "direction": DIRECTION,
        "explained_variance": [Interval(Real, 0, 1, closed="right"), None],
    }

    coef_ = Solved("map.there.coef")
    inverse_coef_ = Solved("map.back.coef")
    canonical_correlations_ = Solved("correlations")
    x_weights_ = Solved("x_weights")
    y_weights_ = Solved("y_weights")
    shrinkage_ = Solved("shrinkage")
    shrinkage_path_ = Solved("shrinkage_path")
    rank_x_ = Solved("rank_x")
    rank_y_ = Solved("rank_y")
    n_components_ = Solved("n_components")

    def __init__(
        self,
        n_components: int | None = None,
        *,
        shrinkage: str | float | tuple[float, float] = "auto",
        direction: Direction = "symmetric",
        explained_variance: float | None = None,
    ) -> None:
        self.n_components = n_components
        self.shrinkage = shrinkage
        self.direction = direction
        self.explained_variance = explained_variance

    def canonical_variates(
        self, X: ArrayLike | None = None, y: ArrayLike | None = None
    ) -> NDArray[Any] | tuple[NDArray[Any], NDArray[Any]]:
        """Coordinates in which the two views are most correlated, pair by pair.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), default=None
        y : array-like of shape (n_samples, n_targets), default=None

        Returns
        -------
        variates : ndarray of shape (n_samples, n_components), or a pair of them
            Of `X`, of `y`, or of both where both are given.

        Raises
        ------
        ValueError
            If neither is given.
        """
        check_is_fitted(self)
        if X is None and y is None:
            raise ValueError("canonical_variates needs rows: pass X, y or both.")
        variates = []
        if X is not None:
            variates.append((check_source(self, X) - self.mean_x_) @ self.x_weights_)
        if y is not None:
            variates.append((check_target(self, y) - self.mean_y_) @ self.y_weights_)
        return variates[0] if len(variates) == 1 else (variates[0], variates[1])

    _cross_validates = "shrinkage='auto'"

    @property
    def _n_folds(self) -> int:
        return _N_FOLDS if isinstance(self.shrinkage, str) and self.shrinkage == "auto" else 1

    def _solve(self, whole: PairMoments, folds: Moments, **settings: Any) -> CCASolution:
        problem = CCAProblem.from_moments(whole, settings["explained_variance"])
        _warn_of_few_rows(whole, problem)
        n_components = _pairs_to_keep(settings["n_components"], problem)
        shrinkage, path = resolve_shrinkage(
            folds,
            problem,
            _requested(settings["shrinkage"]),
            n_components=settings["n_components"],
            direction=settings["direction"],
            explained_variance=settings["explained_variance"],
        )
        return solve_cca(
            whole,
            problem,
            shrinkage,
            n_components=n_components,
            direction=settings["direction"],
            path=path,
        )


def _pairs_to_keep(n_components: int | None, problem: CCAProblem) -> int:
    shared = min(problem.x.rank, problem.y.rank)
    if not shared:
        raise ValueError(
            f"{'y' if problem.x.rank else 'X'} has no variance beyond the rounding of its numbers. "
            "Subtract a large common offset in float64 before you fit."
        )
    if n_components is not None and n_components > shared:
        (p, q), (rank_x, rank_y) = problem.widths, (problem.x.rank, problem.y.rank)
        raise ValueError(
            f"n_components={n_components} exceeds the shared rank {shared} (X has rank {rank_x} in {p} "
            f"features, y rank {rank_y} in {q}). Lower it or pass None."
        )
    return n_components or shared


def _requested(shrinkage: Any) -> str | tuple[float, float]:
    """The parameter as a word or as a pair."""
    if isinstance(shrinkage, str):
        return shrinkage
    pair = tuple(shrinkage) if isinstance(shrinkage, (tuple, list)) else (shrinkage, shrinkage)
    if len(pair) != 2 or not all(isinstance(s, Real) and 0 <= float(s) <= 1 for s in pair):
        raise ValueError(
            f"shrinkage={shrinkage!r} is not a pair of numbers in [0, 1]. Pass one for X and one for y, "
            "one number for both, 'auto' or 'oas'."
        )
    return float(pair[0]), float(pair[1])


def _warn_of_few_rows(moments: PairMoments, problem: CCAProblem) -> None:
    for name, axes, view in (("X", problem.x, moments.x), ("y", problem.y, moments.y)):
        if axes.rank >= moments.n_rows - 1 and view.n_features > 1:
            warnings.warn(
                f"{moments.n_rows} rows are too few for {view.n_features} columns: {name} fills its rank "
                f"{axes.rank}, so the map knows only the span of these rows, and without shrinkage every "
                "correlation is 1 whatever the data. Fit on more rows, or read held-out scores only.",
                UserWarning,
                stacklevel=stacklevel_of_caller(),
            )
            return
