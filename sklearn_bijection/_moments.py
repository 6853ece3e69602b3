"""Paired moments: all that a closed form needs to know about the data, in memory that ignores n.

Moments are additive, so a fit can be streamed, merged and distributed. Everything is accumulated in
float64 about the mean; large squares are never subtracted from each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._compat import release_pages

Array = NDArray[np.float64]

_MIN_BLOCK_ROWS = 1024
_MAX_BLOCK_BYTES = 2**26
_MAX_PARTS = 256
_SAFE = (1e-120, 1e120)
_NO_SPREAD = 2.0**-1000


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
            ViewMoments(np.zeros(d), np.zeros(d if diagonal else (d, d)), unit=_NO_SPREAD)
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
    precision = _precision(X), _precision(y)
    for block in _row_blocks(X, y, sample_weight):
        for fold, rows in zip(sums, _split(block, len(sums)), strict=True):
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
        x, y = start.x, start.y
        self.diagonal = x.scatter.ndim == 1
        self._within = PairMoments.empty(x.n_features, y.n_features, diagonal=self.diagonal)
        self._parts: list[tuple[float, Array, Array]] = []
        self.add(start)

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
            return self._within
        weights, means_x, means_y = (np.array(column) for column in zip(*self._parts, strict=True))
        mean_x, step_x = _between(weights, means_x)
        mean_y, step_y = _between(weights, means_y)
        units = (
            max(self._within.x.unit, _unit_of(step_x)),
            max(self._within.y.unit, _unit_of(step_y)),
        )
        within = self._within.in_units(*units)
        step_x, step_y = step_x / units[0], step_y / units[1]
        own = _squares if self.diagonal else _gram
        return replace(
            within,
            x=replace(within.x, mean=mean_x, scatter=within.x.scatter + own(step_x)),
            y=replace(within.y, mean=mean_y, scatter=within.y.scatter + own(step_y)),
            cross=within.cross + step_x.T @ step_y,
        )


Sums = tuple[MomentSum, ...]


def _between(weights: Array, means: Array) -> tuple[Array, Array]:
    """Mean of the means, and the steps to them times the root of their weights."""
    # About the first of them, so that equal means have steps of exactly zero.
    steps = means - means[0]
    mean = weights @ steps / weights.sum()
    return means[0] + mean, (steps - mean) * np.sqrt(weights)[:, np.newaxis]


Rows = tuple[NDArray[Any], NDArray[Any], Array | None]


def _row_blocks(X: NDArray[Any], y: NDArray[Any], weight: NDArray[Any] | None) -> Iterator[Rows]:
    """Blocks of rows, without those of weight zero."""
    # Enough rows that adding the products up is cheap beside computing them, and few enough that the
    # block stays in memory that has been touched before.
    width = X.shape[1] + y.shape[1]
    step = max(_MIN_BLOCK_ROWS, min(2 * width, _MAX_BLOCK_BYTES // (8 * width)))
    for start in range(0, len(X), step):
        rows = slice(start, start + step)
        if weight is None:
            yield X[rows], y[rows], None
        else:
            kept = weight[rows] > 0
            yield X[rows][kept], y[rows][kept], np.asarray(weight[rows][kept], dtype=np.float64)
        release_pages(X)
        release_pages(y)


def _split(block: Rows, n_folds: int) -> Iterator[Rows]:
    """Split a block into the rows of each fold."""
    if n_folds == 1:
        yield block
        return
    X, y, weight = block
    fold = (row_hash(X) + row_hash(y)) % np.uint64(n_folds)
    for i in range(n_folds):
        rows = fold == i
        yield X[rows], y[rows], None if weight is None else weight[rows]


def row_hash(rows: NDArray[Any]) -> NDArray[np.uint64]:
    """A number from the values of each row, whatever their order and their type.

    The bit patterns in float64 are added, the sign bit is dropped so that -0.0 is 0.0, and the sum is
    mixed by one round of multiply and shift.
    """
    bits = np.ascontiguousarray(rows, dtype=np.float64).view(np.uint64)
    mixed: NDArray[np.uint64] = bits.sum(axis=1) << np.uint64(1)
    mixed ^= mixed >> np.uint64(31)
    mixed *= np.uint64(0x9E3779B97F4A7C15)
    return mixed >> np.uint64(33)


def _block_moments(
    X: NDArray[Any],
    y: NDArray[Any],
    weight: Array | None,
    precision: tuple[float, float],
    diagonal: bool,
) -> PairMoments:
    """Moments of a block that fits in memory."""
    total = float(len(X) if weight is None else weight.sum())
    (mean_x, cx, unit_x), (mean_y, cy, unit_y) = (_centre(rows, weight, total) for rows in (X, y))
    within = _squares if diagonal else _gram
    x = ViewMoments(mean_x, within(cx), unit_x, precision[0])
    y_moments = ViewMoments(mean_y, within(cy), unit_y, precision[1])
    return PairMoments(total, len(X), x, y_moments, cx.T @ cy)


def _centre(rows: NDArray[Any], weight: Array | None, total: float) -> tuple[Array, Array, float]:
    """Weighted mean, and the centred rows times the root of their weight, in a unit of safe size."""
    # Shifting by a row first makes constant columns exactly zero and spares a large offset the
    # rounding of a long sum.
    shift = rows[0].astype(np.float64)
    centred = np.subtract(rows, shift, dtype=np.float64, order="C")
    mean = (np.ones(len(rows)) if weight is None else weight) @ centred / total
    centred -= mean
    unit = _unit_of(centred)
    if unit != 1.0:
        centred /= unit
    if weight is not None:
        centred *= np.sqrt(weight)[:, np.newaxis]
    return shift + mean, centred, unit


def _gram(centred: Array) -> Array:
    # numpy sees that both factors are one buffer and computes one triangle only.
    return centred.T @ centred


def _squares(centred: Array) -> Array:
    squares: Array = np.einsum("ij,ij->j", centred, centred)
    return squares


def _unit_of(values: Array) -> float:
    """1 where squares of the values are safe, else the power of two just above the largest of them."""
    with np.errstate(over="ignore", under="ignore"):
        energy = np.vdot(values, values)
    if _SAFE[0] < energy < _SAFE[1]:
        return 1.0
    peak = float(np.abs(values).max(initial=0.0))
    return 2.0 ** float(np.frexp(peak)[1]) if peak else _NO_SPREAD


def _precision(array: NDArray[Any]) -> float:
    """Machine epsilon of a floating type, 0 for whole numbers."""
    return float(np.finfo(array.dtype).eps) if np.issubdtype(array.dtype, np.floating) else 0.0
