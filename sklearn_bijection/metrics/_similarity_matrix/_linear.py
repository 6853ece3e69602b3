r"""Linear CKA of many spaces at once, without the vector of a whole Gram matrix.

With the Gram matrices K of centred rows X, and L of Y, it is the cosine between K and L, and

.. math:: \langle K, L\rangle = \sum_{I,J} \langle K_{IJ}, L_{IJ}\rangle = \|X^\top Y\|_F^2 .

*By rows*: the block of rows I and J of every space's K is one row of a matrix, whose products with itself
add up to all inner products. *By columns*: the columns of many spaces side by side are one matrix, whose
products with itself hold X'Y of all pairs. The first costs n² for each space, the second n for each pair.

The debiased K has zeros on its diagonal and beside it
:math:`K_{ij} + (K_{ii} + K_{jj})/(n-2) - \mathrm{tr}(K)/((n-1)(n-2))`, as the rows of K sum to zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._compat import release_pages
from ..._moments import PairMoments
from .._similarity._debiased import cancelled, debias, require_unbiased
from .._similarity._measure import naming
from .._similarity._spaces import require_variance
from ._spaces import Spaces
from ._tiles import Walk, prepared, tiles
from ._work import Work, memory_budget

Array = NDArray[np.float64]

_PASS_BYTES = 2**26


@dataclass(frozen=True, eq=False)
class Centred:
    """One space, centred and scaled to length 1 block by block.

    Parameters
    ----------
    array : ndarray of shape (n_samples, width)
    mean : ndarray of shape (width,)
    length : float
        Root of the sum of squares about the mean.
    diagonal : ndarray of shape (n_samples,)
        Of its Gram matrix, whose trace is 1.
    """

    array: NDArray[Any]
    mean: Array
    length: float
    diagonal: Array

    @classmethod
    def of(cls, array: NDArray[Any]) -> Centred:
        """From two passes over the rows."""
        n_samples, width = array.shape
        view = PairMoments.from_arrays(array, array[:, :0], diagonal=True).x
        require_variance(view, n_samples)
        space = cls(array, view.mean, view.unit * float(np.sqrt(view.total)), np.empty(n_samples))
        for numbers in _row_blocks(n_samples, width, _PASS_BYTES):
            rows = space.rows(numbers)
            np.einsum("ij,ij->i", rows, rows, out=space.diagonal[numbers.start : numbers.stop])
            release_pages(array)
        return space

    @property
    def width(self) -> int:
        """Number of columns."""
        return int(self.array.shape[1])

    def rows(self, numbers: range) -> Array:
        """Some consecutive rows."""
        centred: Array = self.array[numbers.start : numbers.stop] - self.mean
        centred /= self.length
        return centred


def gram_products(
    first: Spaces, second: Spaces, work: Work, *, debiased: bool
) -> tuple[Array, Array, Array]:
    """Inner products of the Gram matrices of all pairs, by the way that costs less.

    Returns
    -------
    products : ndarray of shape (n_first, n_second)
    squares : ndarray of shape (n_first,)
        Inner product of each Gram matrix on the first side with itself.
    squares : ndarray of shape (n_second,)
        The same of the second side.
    """
    work.expect(len(first) + (0 if first is second else len(second)))
    left = _centred(first, work)
    right = left if first is second else _centred(second, work)
    everything = left if first is second else [*left, *right]
    width = sum(space.width for space in everything)
    cheap = width**2 < first.n_samples * (width + len(everything) ** 2 / 2)
    found = _by_columns(left, right, work, debiased) if cheap else None
    if found is None or (debiased and _any_cancelled(everything, found[1])):
        whole = _by_rows(everything, work, debiased)
        found = whole[: len(left), -len(right) :], whole.diagonal()
    products, squares = found
    if debiased:
        _require_unbiased([first] if first is second else [first, second], everything, squares)
    return products, squares[: len(left)], squares[-len(right) :]


def _any_cancelled(spaces: Sequence[Centred], squares: Array) -> bool:
    """Whether some squares, as differences, have lost their digits."""
    pairs = zip(spaces, squares, strict=True)
    return any(
        cancelled(square, float(np.vdot(each.diagonal, each.diagonal))) for each, square in pairs
    )


def _require_unbiased(sides: Sequence[Spaces], spaces: Sequence[Centred], squares: Array) -> None:
    """Raise an error that names a space of which nothing is left without its bias."""
    titles = [side.title(number) for side in sides for number in range(len(side))]
    for title, space, square in zip(titles, spaces, squares, strict=True):
        # No entry beside the diagonal is larger than the two rows it belongs to.
        largest = float(np.sqrt(np.partition(space.diagonal, -2)[-2:].prod()))
        with naming(title):
            require_unbiased(float(square), largest, len(space.diagonal))


def _centred(spaces: Spaces, work: Work) -> list[Centred]:
    places = ((Centred.of, spaces, number) for number in range(len(spaces)))
    return list(work.run(prepared, places, threads=True))


def _by_rows(spaces: Sequence[Centred], work: Work, debiased: bool) -> Array:
    """Add up the inner products of the Gram matrices over their blocks."""
    n_samples = len(spaces[0].diagonal)
    most = max(1, isqrt(memory_budget() // (8 * len(spaces))))
    # Blocks of about equal size, where the last would else be a sliver.
    size = -(-n_samples // -(-n_samples // most))
    pairs = list(combinations_with_replacement(tiles(n_samples, size), 2))
    work.expect(len(pairs) * len(spaces))
    memory, products = np.empty((len(spaces), size**2)), np.zeros((len(spaces), len(spaces)))
    for rows, columns in pairs:
        block = memory[:, : len(rows) * len(columns)]
        places = zip(spaces, block, strict=True)
        arguments = ((space, rows, columns, debiased, out) for space, out in places)
        for _ in work.run(_write_gram_block, arguments, threads=True):
            pass
        products += (1 if rows == columns else 2) * (block @ block.T)
    return products


def _write_gram_block(
    space: Centred, rows: range, columns: range, debiased: bool, out: Array
) -> None:
    block = out.reshape(len(rows), len(columns))
    left = space.rows(rows)
    # The same object twice: numpy then computes one half and mirrors it.
    np.matmul(left, (left if rows == columns else space.rows(columns)).T, out=block)
    release_pages(space.array)
    if not debiased:
        return
    across, down = (space.diagonal[part.start : part.stop] for part in (columns, rows))
    debias(block, down, across, len(space.diagonal))
    if rows == columns:
        np.fill_diagonal(block, 0)


def _by_columns(
    first: Sequence[Centred], second: Sequence[Centred], work: Work, debiased: bool
) -> tuple[Array, Array]:
    """Take the inner products of the Gram matrices from X'Y of all pairs, and those with themselves."""
    widest = max(space.width for space in [*first, *second])
    # At a time there are the products of two tiles, their sum, and rows of that size.
    side = isqrt(memory_budget() // (4 * 8))
    walk = Walk(first, second, max(1, side // widest))
    products = np.zeros((len(first), len(second)))
    work.expect(len(walk.pairs()))
    for a, b in walk.pairs():
        left, right = first[a.start : a.stop], second[b.start : b.stop]
        found = _tile_products(left, right, debiased, same=walk.within and a == b)
        products[a.start : a.stop, b.start : b.stop] = found
        work.bar.update()
    if walk.within:
        # Mirrored as a whole: within a tile, sums over rows and over columns round differently.
        products = np.triu(products) + np.triu(products, 1).T
        return products, products.diagonal()
    alone = [_tile_products([each], [each], debiased, same=True) for each in [*first, *second]]
    return products, np.ravel(alone)


def _tile_products(
    left: Sequence[Centred], right: Sequence[Centred], debiased: bool, *, same: bool
) -> Array:
    """Inner products of the Gram matrices of two tiles, in one pass over the rows."""
    starts = [np.cumsum([0, *(space.width for space in side)]) for side in (left, right)]
    total = np.zeros([places[-1] for places in starts])
    n_samples = len(left[0].diagonal)
    for rows in _row_blocks(n_samples, sum(total.shape), memory_budget() // 4):
        a = np.hstack([space.rows(rows) for space in left])
        total += a.T @ (a if same else np.hstack([space.rows(rows) for space in right]))
        for space in [*left, *right]:
            release_pages(space.array)
    np.square(total, out=total)
    sums = np.add.reduceat(total, starts[0][:-1], axis=0)
    products: Array = np.add.reduceat(sums, starts[1][:-1], axis=1)
    if debiased:
        a, b = (np.stack([space.diagonal for space in side]) for side in (left, right))
        products -= n_samples / (n_samples - 2) * (a @ b.T)
        products += 1 / ((n_samples - 1) * (n_samples - 2))
    return products


def _row_blocks(n_samples: int, width: int, n_bytes: int) -> list[range]:
    """Consecutive rows, of about so many bytes in float64."""
    return tiles(n_samples, max(1, n_bytes // (8 * width)))
