"""Moments of one view and of a pair, and the running sum of a stream of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._rows import row_blocks, split_rows
from ._scatter import NO_SPREAD, Array, between, centre, gram, precision_of, squares, unit_of

_MAX_PARTS = 256


@dataclass(frozen=True, eq=False)
class ViewMoments:
    """Mean and scatter of one view.

    Parameters
    ----------
    mean : ndarray of shape (n_features,)
        Weighted mean, in the units of the data.
    scatter : ndarray of shape (n_features, n_features) or (n_features,)
        Weighted sum of the outer products of the centred rows, in units of ``unit**2``; only its
        diagonal where no more was asked for.
    unit : float
        A power of two near the size of the data where their squares would overflow or underflow,
        else 1.
    precision : float
        Machine epsilon of the coarsest type the data came in, which bounds what their rank can mean.
    """

    mean: Array
    scatter: Array
    unit: float = 1.0
    precision: float = 0.0

    @property
    def n_features(self) -> int:
        """Width of the view."""
        return len(self.mean)

    @property
    def total(self) -> float:
        """Trace of the scatter."""
        return float((self.scatter if self.scatter.ndim == 1 else self.scatter.diagonal()).sum())

    def in_unit(self, unit: float) -> ViewMoments:
        """The same moments with the scatter in another unit."""
        return (
            self
            if unit == self.unit
            else replace(self, scatter=self.scatter * (self.unit / unit) ** 2, unit=unit)
        )

    def is_constant(self, weight: float) -> bool:
        """Whether all rows are equal up to the precision of the data."""
        return not self.total or self.total <= weight * self.n_features**2 * self.rounding_variance(
            weight
        )

    def rounding_variance(self, weight: float) -> float:
        """Variance that the precision of the data may put into a column, in units of ``unit**2``."""
        variance = (self.scatter if self.scatter.ndim == 1 else self.scatter.diagonal()) / weight
        return float((variance + np.square(self.mean / self.unit)).max()) * self.precision**2


@dataclass(frozen=True, eq=False)
class PairMoments:
    """Weight, means and centred second moments of paired rows.

    Parameters
    ----------
    weight : float
        Sum of the sample weights: a row of weight 2 counts as two rows.
    n_rows : int
        Rows of positive weight that went in.
    x, y : ViewMoments
        Moments of each view.
    cross : ndarray of shape (n_features, n_targets)
        Weighted sum of the outer products of centred x rows with centred y rows, in units of
        ``x.unit * y.unit``.

    Notes
    -----
    ``merge`` is associative and commutative up to rounding, and ``from_arrays`` of stacked rows is the
    merge of its parts. Building costs ``n (p² + q² + 2 p q)`` multiplications and holds a block of rows
    beside the result.

    References
    ----------
    Chan, Golub and LeVeque, "Algorithms for computing the sample variance", The American Statistician
    37 (1983), for the merge of centred sums.

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.array([[0.0], [2.0], [4.0]]), np.array([[1.0], [1.0], [4.0]])
    >>> moments = PairMoments.from_arrays(X, y)
    >>> float(moments.x.mean[0]), float(moments.cross[0, 0])
    (2.0, 6.0)
    """

    weight: float
    n_rows: int
    x: ViewMoments
    y: ViewMoments
    cross: Array

    @classmethod
    def from_arrays(
        cls,
        X: NDArray[Any],
        y: NDArray[Any],
        sample_weight: NDArray[Any] | None = None,
        *,
        diagonal: bool = False,
    ) -> PairMoments:
        """Moments of the rows of `X` and `y`, of shape (n_samples, n_features) and (n_samples, n_targets).

        With `diagonal` the scatter within each view is kept, and computed, on its diagonal alone.
        """
        return fold_moments(X, y, sample_weight, diagonal=diagonal)[0]

    @classmethod
    def empty(cls, n_features: int, n_targets: int, *, diagonal: bool = False) -> PairMoments:
        """Moments of no rows at all."""
        p, q = n_features, n_targets
        x, y = (
            ViewMoments(np.zeros(d), np.zeros(d if diagonal else (d, d)), unit=NO_SPREAD)
            for d in (p, q)
        )
        return cls(0.0, 0, x, y, np.zeros((p, q)))

    def merge(self, other: PairMoments) -> PairMoments:
        """Moments of the rows of both."""
        return PairMoments.merge_all((self, other))

    @staticmethod
    def merge_all(parts: Sequence[PairMoments]) -> PairMoments:
        """Moments of the rows of all `parts`, of which there is at least one."""
        total = MomentSum(parts[0])
        for part in parts[1:]:
            total.add(part)
        return total.moments()

    def swap(self) -> PairMoments:
        """The same moments with the roles of x and y exchanged."""
        return replace(self, x=self.y, y=self.x, cross=self.cross.T)

    def in_units(self, unit_x: float, unit_y: float) -> PairMoments:
        """The same moments with each view in the unit given."""
        if (unit_x, unit_y) == (self.x.unit, self.y.unit):
            return self
        cross = self.cross * ((self.x.unit / unit_x) * (self.y.unit / unit_y))
        return replace(self, x=self.x.in_unit(unit_x), y=self.y.in_unit(unit_y), cross=cross)


def fold_moments(
    X: NDArray[Any],
    y: NDArray[Any],
    sample_weight: NDArray[Any] | None = None,
    *,
    n_folds: int = 1,
    diagonal: bool = False,
) -> tuple[PairMoments, ...]:
    """Moments of each of `n_folds` parts of the rows, in one pass over blocks of rows.

    A row's fold is a hash of its content: it depends neither on the order of rows or columns nor on
    the batches the rows come in, and equal rows share a fold. A memory-mapped array is read block by block
    and its pages are handed back.
    """
    sums = moment_sums(X.shape[1], y.shape[1], n_folds=n_folds, diagonal=diagonal)
    add_rows(sums, X, y, sample_weight)
    return tuple(fold.moments() for fold in sums)


def moment_sums(
    n_features: int, n_targets: int, *, n_folds: int = 1, diagonal: bool = False
) -> Sums:
    """Start the running moments of each of `n_folds` parts of the rows."""
    return tuple(
        MomentSum(PairMoments.empty(n_features, n_targets, diagonal=diagonal))
        for _ in range(n_folds)
    )


def add_rows(
    sums: Sums, X: NDArray[Any], y: NDArray[Any], sample_weight: NDArray[Any] | None = None
) -> None:
    """Add each row to the running moments of its fold, in one pass over blocks of rows."""
    precision = precision_of(X), precision_of(y)
    for block in row_blocks(X, y, sample_weight):
        for fold, rows in zip(sums, split_rows(block, len(sums)), strict=True):
            if len(rows[0]):
                fold.add(_block_moments(*rows, precision, fold.diagonal))


class MomentSum:
    """Running moments of a stream: scatter within its parts, added in place, and between their means.

    The means are kept apart for a while, since a step between two of them would cost a whole update of
    the scatter.

    Parameters
    ----------
    start : PairMoments
        Moments to go on from; their arrays are not written to.
    """

    def __init__(self, start: PairMoments) -> None:
        self.diagonal = start.x.scatter.ndim == 1
        self._within = self._empty(start)
        self._parts: list[tuple[float, Array, Array]] = []
        self.add(start)

    def _empty(self, like: PairMoments) -> PairMoments:
        return PairMoments.empty(like.x.n_features, like.y.n_features, diagonal=self.diagonal)

    def _restart(self, whole: PairMoments) -> None:
        """Keep one part instead of many; the arrays of `whole` become those of the sum."""
        self._within, self._parts = whole, [(whole.weight, whole.x.mean, whole.y.mean)]

    def add(self, part: PairMoments) -> None:
        """Add the rows of `part`."""
        if not part.weight:
            return
        units = max(self._within.x.unit, part.x.unit), max(self._within.y.unit, part.y.unit)
        within, more = self._within.in_units(*units), part.in_units(*units)
        for total, addend in (
            (within.x.scatter, more.x.scatter),
            (within.y.scatter, more.y.scatter),
            (within.cross, more.cross),
        ):
            np.add(total, addend, out=total)
        self._within = replace(
            within,
            weight=within.weight + more.weight,
            n_rows=within.n_rows + more.n_rows,
            x=replace(within.x, precision=max(within.x.precision, more.x.precision)),
            y=replace(within.y, precision=max(within.y.precision, more.y.precision)),
        )
        self._parts.append((part.weight, part.x.mean, part.y.mean))
        if len(self._parts) > _MAX_PARTS:
            self._restart(self.moments())

    def moments(self) -> PairMoments:
        """Moments of all rows added, in arrays of their own."""
        if not self._parts:
            return self._empty(self._within)
        weights, means_x, means_y = (np.array(column) for column in zip(*self._parts, strict=True))
        mean_x, step_x = between(weights, means_x)
        mean_y, step_y = between(weights, means_y)
        units = (
            max(self._within.x.unit, unit_of(step_x)),
            max(self._within.y.unit, unit_of(step_y)),
        )
        within = self._within.in_units(*units)
        step_x, step_y = step_x / units[0], step_y / units[1]
        own = squares if self.diagonal else gram
        return replace(
            within,
            x=replace(within.x, mean=mean_x, scatter=within.x.scatter + own(step_x)),
            y=replace(within.y, mean=mean_y, scatter=within.y.scatter + own(step_y)),
            cross=within.cross + step_x.T @ step_y,
        )


Sums = tuple[MomentSum, ...]


def _block_moments(
    X: NDArray[Any],
    y: NDArray[Any],
    weight: Array | None,
    precision: tuple[float, float],
    diagonal: bool,
) -> PairMoments:
    """Moments of a block that fits in memory."""
    total = float(len(X) if weight is None else weight.sum())
    (mean_x, cx, unit_x), (mean_y, cy, unit_y) = (centre(rows, weight, total) for rows in (X, y))
    within = squares if diagonal else gram
    x = ViewMoments(mean_x, within(cx), unit_x, precision[0])
    y_moments = ViewMoments(mean_y, within(cy), unit_y, precision[1])
    return PairMoments(total, len(X), x, y_moments, cx.T @ cy)
