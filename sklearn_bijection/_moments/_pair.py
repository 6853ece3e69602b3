"""Moments of a pair of views, and the running sum of a stream of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._rows import block_rows, row_blocks, split_rows
from ._scatter import (
    NO_SPREAD,
    Array,
    between,
    centre,
    gram,
    precision_of,
    scatter_of,
    squares,
    unit_of,
)
from ._view import ViewMoments

_MAX_PARTS = 256


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
        total = MomentSum()
        for part in parts:
            total.add(part)
        return total.moments() or parts[0]

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
    sums = [MomentSum() for _ in range(n_folds)]
    # Memory that every block goes through: touching new pages would cost as much as the products.
    space = tuple(np.empty((block_rows(X, y), side.shape[1])) for side in (X, y))
    precision = precision_of(X), precision_of(y)
    for block in row_blocks(X, y, sample_weight):
        for fold, rows in zip(sums, split_rows(block, n_folds), strict=True):
            if len(rows[0]):
                fold.add(_block_moments(*rows, precision, space, diagonal), owned=True)
    empty = PairMoments.empty(X.shape[1], y.shape[1], diagonal=diagonal)
    return tuple(fold.moments() or empty for fold in sums)


class MomentSum:
    """Running moments of a stream: scatter within its parts, added in place, and between their means.

    The means are kept apart for a while, since a step between two of them would cost a whole update of
    the scatter. Arrays are written to only while nobody else can hold them: after `moments` and `fork`
    the next addition makes new ones.
    """

    def __init__(self) -> None:
        self._within: PairMoments | None = None
        self._means: list[tuple[float, Array, Array]] = []
        self._owned = False

    def add(self, part: PairMoments, *, owned: bool = False) -> None:
        """Add the rows of `part`, whose arrays may be kept and written to if they are `owned`."""
        if not part.weight:
            return
        if self._within is None:
            self._within, self._owned = part, owned
        else:
            self._within, self._owned = _added(self._within, part, in_place=self._owned), True
        self._means.append((part.weight, part.x.mean, part.y.mean))
        if len(self._means) > _MAX_PARTS:
            whole = _with_between(self._within, self._means)
            self._within, self._means = whole, [(whole.weight, whole.x.mean, whole.y.mean)]

    def moments(self) -> PairMoments | None:
        """Moments of all rows added, if there are any."""
        self._owned = False
        if self._within is None or len(self._means) == 1:
            return self._within
        return _with_between(self._within, self._means)

    def fork(self) -> MomentSum:
        """Make a second sum that goes on from here by itself."""
        other = MomentSum()
        other._within, other._means = self._within, self._means.copy()
        self._owned = False
        return other


def _added(within: PairMoments, part: PairMoments, *, in_place: bool) -> PairMoments:
    """Sum of the scatters within both, with the means of neither."""
    units = max(within.x.unit, part.x.unit), max(within.y.unit, part.y.unit)
    a, b = within.in_units(*units), part.in_units(*units)

    def add(total: Array, addend: Array) -> Array:
        return np.add(total, addend, out=total if in_place else None)

    x = replace(
        a.x, scatter=add(a.x.scatter, b.x.scatter), precision=max(a.x.precision, b.x.precision)
    )
    y = replace(
        a.y, scatter=add(a.y.scatter, b.y.scatter), precision=max(a.y.precision, b.y.precision)
    )
    return PairMoments(a.weight + b.weight, a.n_rows + b.n_rows, x, y, add(a.cross, b.cross))


def _with_between(within: PairMoments, means: list[tuple[float, Array, Array]]) -> PairMoments:
    """Complete the scatter within the parts by that between their means."""
    weights, means_x, means_y = (np.array(column) for column in zip(*means, strict=True))
    mean_x, step_x = between(weights, means_x)
    mean_y, step_y = between(weights, means_y)
    units = max(within.x.unit, unit_of(step_x)), max(within.y.unit, unit_of(step_y))
    moments = within.in_units(*units)
    step_x, step_y = step_x / units[0], step_y / units[1]
    own = squares if moments.x.scatter.ndim == 1 else gram
    return replace(
        moments,
        x=replace(moments.x, mean=mean_x, scatter=moments.x.scatter + own(step_x)),
        y=replace(moments.y, mean=mean_y, scatter=moments.y.scatter + own(step_y)),
        cross=moments.cross + step_x.T @ step_y,
    )


def _block_moments(
    X: NDArray[Any],
    y: NDArray[Any],
    weight: Array | None,
    precision: tuple[float, float],
    space: tuple[Array, ...],
    diagonal: bool,
) -> PairMoments:
    """Moments of a block that fits in `space`."""
    total = float(len(X) if weight is None else weight.sum())
    (mean_x, cx), (mean_y, cy) = (
        centre(rows, weight, total, out[: len(rows)])
        for rows, out in zip((X, y), space, strict=True)
    )
    (xx, unit_x), (yy, unit_y) = (scatter_of(centred, diagonal=diagonal) for centred in (cx, cy))
    of_x = ViewMoments(mean_x, xx, unit_x, precision[0])
    of_y = ViewMoments(mean_y, yy, unit_y, precision[1])
    return PairMoments(total, len(X), of_x, of_y, cx.T @ cy)
