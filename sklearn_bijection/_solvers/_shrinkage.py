"""How far to shrink: by a formula, or by cross-validation on the moments alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from .._linalg import gram_svd
from .._moments import PairMoments, varies
from ._cca import Array, Axes, CCAProblem, Direction, ShrinkagePath, gains

#: Intensities that the search walks along before it refines the best of them.
SHRINKAGE_GRID = (0.0, 0.003, 0.01, 0.03, 0.1, 0.3, 0.9)
FIRST_TRIED = 0.1


def oas_shrinkage(axes: Axes, weight: float) -> float:
    """Oracle-approximating shrinkage intensity of one view, within the span of its axes.

    References
    ----------
    Chen, Wiesel, Eldar and Hero, "Shrinkage algorithms for MMSE covariance estimation", IEEE
    Transactions on Signal Processing 58 (2010), equation 23.
    """
    d, trace, square = axes.rank, axes.variances.sum(), np.square(axes.variances).sum()
    denominator = (weight + 1 - 2 / d) * (square - trace**2 / d)
    if denominator <= 0:
        return 1.0
    return float(min(1.0, ((1 - 2 / d) * square + trace**2) / denominator))


@dataclass(frozen=True, eq=False)
class HeldOutFold:
    """One split of the folds: a problem made from the rest, and the moments it is judged by.

    Sums of products are of the held-out rows about the *training* means, along the training axes;
    the totals count all of their variance, also what lies outside those axes.

    Parameters
    ----------
    problem : CCAProblem
        From the training folds.
    xx, yy, xy : ndarray
        Sums of products.
    total_x, total_y : float
        Squared error of predicting the training mean.
    """

    problem: CCAProblem
    xx: Array
    yy: Array
    xy: Array
    total_x: float
    total_y: float

    @classmethod
    def split(cls, train: PairMoments, test: PairMoments, problem: CCAProblem) -> HeldOutFold:
        """Prepare `test` to be predicted from `train`, of which the problem was made.

        Both are in the same units.
        """
        step_x = (test.x.mean - train.x.mean) / train.x.unit
        step_y = (test.y.mean - train.y.mean) / train.y.unit
        about = np.sqrt(test.weight)
        along_x, along_y = problem.x.vectors, problem.y.vectors
        at_x, at_y = about * step_x @ along_x, about * step_y @ along_y
        return cls(
            problem,
            xx=along_x.T @ test.x.scatter @ along_x + np.outer(at_x, at_x),
            yy=along_y.T @ test.y.scatter @ along_y + np.outer(at_y, at_y),
            xy=along_x.T @ test.cross @ along_y + np.outer(at_x, at_y),
            total_x=test.x.total + test.weight * float(step_x @ step_x),
            total_y=test.y.total + test.weight * float(step_y @ step_y),
        )

    def errors(
        self, shrinkage: float, n_components: int | None, direction: Direction
    ) -> tuple[float, float]:
        """Held-out squared error forwards and back."""
        x, y = self.problem.x.deviations(shrinkage), self.problem.y.deviations(shrinkage)
        U, rho, V = (
            part[..., :n_components]
            for part in gram_svd(self.problem.whitened((shrinkage, shrinkage)))
        )
        gain, back = gains(rho, (shrinkage, shrinkage), direction)
        forward = (U * gain) @ V.T / x[:, np.newaxis] * y
        inverse = (V * back) @ U.T / y[:, np.newaxis] * x
        return (
            self.total_y + _error_saved(forward, self.xx, self.xy),
            self.total_x + _error_saved(inverse, self.yy, self.xy.T),
        )


def _error_saved(coef: Array, source: Array, cross: Array) -> float:
    """``sum ||b - a @ coef||² - sum ||b||²`` from the sums of products of a, and of a with b."""
    return float(np.vdot(coef, source @ coef) - 2 * np.vdot(coef, cross))


def resolve_shrinkage(
    folds: tuple[PairMoments, ...],
    problem: CCAProblem,
    shrinkage: str | tuple[float, float],
    *,
    n_components: int | None = None,
    direction: Direction = "symmetric",
    explained_variance: float | None = None,
) -> tuple[tuple[float, float], ShrinkagePath | None]:
    """The two intensities that `shrinkage` stands for, and the path where one was searched.

    ``"auto"`` needs variance in both views of every fold; where a fold has none it is ``"oas"``.
    """
    if isinstance(shrinkage, tuple):
        return shrinkage, None
    if shrinkage == "auto" and all(map(varies, folds)):
        best, path = choose_shrinkage(
            folds,
            n_components=n_components,
            direction=direction,
            explained_variance=explained_variance,
        )
        return (best, best), path
    weight = sum(fold.weight for fold in folds)
    return (oas_shrinkage(problem.x, weight), oas_shrinkage(problem.y, weight)), None


def all_but_one(folds: tuple[PairMoments, ...]) -> list[PairMoments]:
    """Moments of the rest of the rows, for each fold."""
    return [PairMoments.merge_all(folds[:i] + folds[i + 1 :]) for i in range(len(folds))]


def choose_shrinkage(
    folds: tuple[PairMoments, ...],
    *,
    n_components: int | None = None,
    direction: Direction = "symmetric",
    explained_variance: float | None = None,
    problems: Sequence[CCAProblem] | None = None,
) -> tuple[float, ShrinkagePath]:
    """Cross-validate one shrinkage for both views on the moments alone.

    The held-out error of an affine map is a trace of second moments, so no second pass over the data
    is needed. The search walks down a coarse grid, then refines around its best value: about seven
    solves a fold.

    Parameters
    ----------
    folds : tuple of PairMoments
        Moments of disjoint parts of the rows, each with variance in both views.
    n_components : int, default=None
        Canonical pairs that the map will keep.
    direction : {"forward", "symmetric", "backward"}
        Which error decides: that of y, that of x, or the sum of both.
    explained_variance : float, default=None
        Share of each view's variance that the map will keep.
    problems : sequence of CCAProblem, default=None
        Made from the rest of each fold, if they are there already.

    Returns
    -------
    shrinkage : float
    path : ShrinkagePath
    """
    whole = PairMoments.merge_all(folds)
    folds = tuple(fold.in_units(whole.x.unit, whole.y.unit) for fold in folds)
    rests = all_but_one(folds)
    if problems is None:
        problems = [CCAProblem.from_moments(rest, explained_variance) for rest in rests]
    splits = list(map(HeldOutFold.split, rests, folds, problems))
    totals = np.array([(split.total_y, split.total_x) for split in splits]).sum(axis=0)

    def errors(shrinkage: float) -> Array:
        found = np.array([split.errors(shrinkage, n_components, direction) for split in splits])
        fractions: Array = found.sum(axis=0) / totals
        return fractions

    judged_by = np.array({"forward": (1, 0), "symmetric": (1, 1), "backward": (0, 1)}[direction])
    return _search(errors, judged_by)


def _search(errors: Callable[[float], Array], judged_by: Array) -> tuple[float, ShrinkagePath]:
    """Walk down the grid, then try the values between the best one and its neighbours."""
    tried: dict[float, Array] = {}
    best = FIRST_TRIED
    while untried := [value for value in _around(SHRINKAGE_GRID, best) if value not in tried]:
        tried |= {value: errors(value) for value in untried}
        best = _best(tried, judged_by)
    tried |= {value: errors(value) for value in _midpoints(_around(SHRINKAGE_GRID, best))}
    values = sorted(tried)
    forward, inverse = np.array([tried[value] for value in values]).T
    return _best(tried, judged_by), ShrinkagePath(np.array(values), forward, inverse)


def _around(values: tuple[float, ...], value: float) -> tuple[float, ...]:
    """`value` with its neighbours."""
    i = values.index(value)
    return values[max(i - 1, 0) : i + 2]


def _midpoints(values: tuple[float, ...]) -> list[float]:
    """Geometric midpoints; a third of the way up where the lower end is zero."""
    return [float(np.sqrt(low * high)) if low else high / 3 for low, high in pairwise(values)]


def _best(tried: dict[float, Array], judged_by: Array) -> float:
    """The smallest shrinkage whose error is the least, up to rounding."""
    scores = {value: float(judged_by @ error) for value, error in tried.items()}
    least = min(scores.values())
    return min(value for value, score in scores.items() if score <= least + 1e-12)
