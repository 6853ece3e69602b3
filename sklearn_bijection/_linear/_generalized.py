"""Generalized Procrustes: any number of spaces in one."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Self

from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from .._compat import Interval, checks_parameters, stacklevel_of_caller
from .._moments import ConstantViewError, SpaceMoments, ViewMoments, view_of
from .._solvers import solve_generalized
from ._common_space import CommonSpace
from ._spaces import Labels, Spaces, check_spaces


class GeneralizedProcrustes(CommonSpace):
    """Bring any number of spaces into a common one, each by a rotation, one scale and a shift.

    The one class here whose input is a list: `fit` takes ``[X_0, X_1, ...]``, an array of rows for each
    space, or a mapping of names to arrays, and `transform` is told which space its rows come from.

    With the mapped rows ``Z_k = (X_k - means_[k]) @ rotations_[k] * scales_[k]`` and their mean, the
    *template* ``M = mean_k Z_k``, the rotations make ``sum_k ||Z_k - M||²`` least. Any space can then be
    carried into any other; for equal widths, from a to b and on to c is from a to c.

    Parameters
    ----------
    scale : bool, default=True
        Whether to bring all spaces to one size; if False the scales are 1, and a space counts by its
        variance.
    allow_reflection : bool, default=True
        If False, spaces as wide as the template have proper rotations, of determinant +1.
    max_iter : int, default=100
        Most sweeps over the spaces.
    tol : float, default=1e-10
        Stop when a sweep lowers the objective, a share of the whole variance, by no more than this.

    Attributes
    ----------
    maps_ : list of AffineMap
        One per space, from it into the common one, with `forward` and `inverse`.
    rotations_ : list of ndarray of shape (width_k, template_width)
        Orthogonal; for a space narrower than the widest, of orthonormal rows.
    scales_ : ndarray of shape (n_spaces,)
    means_ : list of ndarray of shape (width_k,)
    disparity_ : ndarray of shape (n_spaces,)
        Share of the variance of each space that is missing when the template is mapped back into it, on
        the rows of `fit`; 0 is perfect. Each space is part of the template, so that K unrelated ones
        are near 1 - 1/K rather than 1: `score` leaves that part out.
    loss_curve_ : ndarray of shape (n_sweeps + 1,)
        ``sum_k ||Z_k - M||² / sum_k ||Z_k||²`` at the start and after each sweep. Never rises.
        With `scale` it is that of spaces brought to one size, whatever their widths.
    n_iter_ : int
        Sweeps.
    n_spaces_ : int
    widths_ : list of int
        Columns of each space; the template has the largest number.
    names_ : list of str or None
        Names of the spaces, if a mapping was fitted.

    See Also
    --------
    ProcrustesAligner : Two spaces. Between two of equal width this class finds the same map, its scale the
        symmetric one, as far as the rows of `fit` span them: the two differ in what they do with the rest,
        on new rows where there were fewer rows than columns.

    Notes
    -----
    *Exactness.* For equal widths every round trip is exact, for every row, also where the data span less
    than the space. A space narrower than the template is laid into it:
    ``inverse_transform(transform(X, k), k) == X``, while ``transform(inverse_transform(T, k), k)`` is a
    projection. Between two spaces `translate` is undone on the narrower side. It is
    ``inverse_transform(transform(X, source), target)`` where one of the two is as wide as the template;
    between two narrower ones it is the rotation nearest to that, which loses nothing on the way.

    *What the rows do not span* of a space is turned into what is left of the template. Nothing in the data
    says how: the choice depends on the two subspaces alone, so that spaces which span the same are completed
    alike. Spanned is what varies by more than about 1e-8 of the largest deviation, and by more than the
    precision of the data.

    *Scale.* Spaces of equal width all have the same size in the template, a variance of 1 per coordinate on
    average, so that between any two the scale is the symmetric one. Scales that maximise the agreement
    (ten Berge 1977) would shrink a space the more the less it agrees with the rest, and going into it
    from another would blow rows up as much. For unequal widths, what two spaces have in each other's
    image gets equal variance, in the least squares of its logarithm over all pairs.

    *Frame.* Template coordinates are the principal axes of the template, the largest variance first. On
    each, the loading of greatest magnitude over the columns of all spaces is positive, or most of them
    where several are equal; without reflections the last axis may be turned. For three spaces or more
    the optimum is a local one.

    *Order.* The start is the widest space, of several the one with the largest linear CKA with the rest,
    and the others join it in that order. The order in which the spaces are listed plays no part, on new rows
    either, as long as the data decide: not between spaces that are equally near to the rest and lead to
    different optima, axes of equal variance, the sign of an axis for which the spaces are evenly divided
    (X and -X alone), and directions that have no covariance with any other space.

    *Cost.* For K spaces ``n K² width²`` multiplications for their cross products, of which each block of rows
    is read once; then per sweep, whatever n is, ``2 K² width³`` and K singular value decompositions.
    ``K (K + 1) / 2`` cross products lie in memory, 1.5 GB for 25 spaces of width 768. With fewer rows than
    columns the number of rows takes the place of the width. Spaces that agree take a few sweeps, noisy
    ones up to a hundred, the later of which hardly change a map: ``tol=1e-7`` is often enough.

    *Rows held out.* There is no single X to split: pass ``[X[train] for X in Xs]``.

    References
    ----------
    Gower, "Generalized Procrustes analysis", Psychometrika 40 (1975).

    ten Berge, "Orthogonal Procrustes rotation for two or more matrices", Psychometrika 42 (1977).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_bijection import GeneralizedProcrustes
    >>> rng = np.random.default_rng(0)
    >>> meaning = rng.normal(size=(200, 4))
    >>> turns = [np.linalg.qr(rng.normal(size=(4, 4))).Q for _ in range(5)]
    >>> Xs = [meaning @ turn + 0.3 * rng.normal(size=(200, 4)) for turn in turns]
    >>> spaces = GeneralizedProcrustes().fit([X[:100] for X in Xs])
    >>> round(spaces.score([X[100:] for X in Xs]), 2)
    0.89
    >>> spaces.translate(Xs[0][100:], source=0, target=3).shape
    (100, 4)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "scale": ["boolean"],
        "allow_reflection": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        *,
        scale: bool = True,
        allow_reflection: bool = True,
        max_iter: int = 100,
        tol: float = 1e-10,
    ) -> None:
        self.scale = scale
        self.allow_reflection = allow_reflection
        self.max_iter = max_iter
        self.tol = tol

    @checks_parameters
    def fit(self, Xs: Spaces, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn a map of each space into a common one.

        Parameters
        ----------
        Xs : list of arrays of shape (n_samples, width_k), or mapping of names to such arrays
            Two spaces or more. Row i of each belongs to the same sample. Memory maps are read in blocks.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative; 2 counts a row twice, 0 leaves it out.

        Returns
        -------
        self : object

        Raises
        ------
        TypeError
            If `Xs` is a single array, or the keys of a mapping are not text.
        ValueError
            If there are fewer than two spaces, their rows are not finite numbers or not equally many, or
            all rows of a space are equal.

        Warns
        -----
        ConvergenceWarning
            If the last of `max_iter` sweeps still lowered the objective by more than `tol`.
        """
        labels, arrays, weight = check_spaces(self, Xs, sample_weight)
        views = [view_of(X, weight) for X in arrays]
        _require_variance(views, labels, len(arrays[0]) if weight is None else float(weight.sum()))
        moments = SpaceMoments.from_arrays(arrays, views, weight)
        found = solve_generalized(
            moments,
            scale=self.scale,
            allow_reflection=self.allow_reflection,
            max_iter=self.max_iter,
            tol=self.tol,
        )
        self._labels, self._reflects = labels, self.allow_reflection
        self.means_ = list(moments.means)
        self.rotations_, self.scales_ = found.rotations, found.scales
        self.disparity_, self.loss_curve_ = found.disparity, found.losses
        self.n_iter_ = len(found.losses) - 1
        if not found.converged:
            self._warn(found.losses)
        return self

    def _warn(self, losses: NDArray[Any]) -> None:
        fall = losses[-min(3, len(losses))] - losses[-1]
        warnings.warn(
            f"GeneralizedProcrustes has not converged in max_iter={self.max_iter} sweeps: the last two "
            f"lowered the objective by {fall:.1e}, to {losses[-1]:.3g}; tol={self.tol:g} a sweep. The "
            "maps can be walked back all the same. Raise max_iter, or tol.",
            ConvergenceWarning,
            stacklevel=stacklevel_of_caller(),
        )


def _require_variance(views: Sequence[ViewMoments], labels: Labels, weight: float) -> None:
    for number, view in enumerate(views):
        if view.constant_columns(weight).all():
            raise ConstantViewError(
                f"{labels.of(number)} has no variance: all its rows are equal, so that nothing says how to "
                "turn it. Leave the space out, or pass rows that differ from one another."
            )
