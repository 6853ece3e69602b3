"""Debiased linear CKA of spaces with many rows, which are read block by block."""

from __future__ import annotations

from itertools import product
from math import sqrt

import numpy as np
from sklearn.utils import gen_batches

from ..._compat import release_pages
from ..._moments import PairMoments, ViewMoments
from ..._moments._rows import row_blocks
from ._basis import about, pair_moments
from ._gram import ROUNDING, nothing_left
from ._measure import Array, UnfitError, naming, settled
from ._spaces import Space

Products = tuple[float, float, float]

#: What is lost where a debiased linear kernel leaves nothing.
UNBIASED_NOTHING = "without its bias the Gram matrix is zero"

_LEAST_ROWS = 4
_BLOCK_ROWS = 1024
# A difference below this share of what was subtracted has lost too many digits.
_CANCELLED = 1e-4


def check_debiased(n_samples: int, debiased: bool) -> None:
    """Raise an error if there are too few rows to debias."""
    if debiased and n_samples < _LEAST_ROWS:
        raise UnfitError(
            f"has {n_samples} rows, but debiased=True needs at least {_LEAST_ROWS}. Pass more rows, or "
            "debiased=False."
        )


def streamed_debiased_cka(X: Space, Y: Space) -> float:
    """Debiased linear CKA from moments; where these cancel, from blocks of the Gram matrices."""
    check_debiased(len(X), debiased=True)
    moments = pair_moments(X, Y)
    # Products of the squared lengths of the rows, which the diagonals of the Gram matrices hold.
    diagonals = _diagonal_products(X, Y, moments)
    xx, yy, xy = _from_moments(moments, diagonals)
    if cancelled(xx, diagonals[0]) or cancelled(yy, diagonals[1]):
        xx, yy, xy = _from_blocks(X, Y, moments)
    # The root of a square is exact, and so a space has a similarity of 1 with itself.
    return settled(xy / sqrt(xx * yy), -1.0, 1.0)


def cancelled(square: float, diagonal: float) -> bool:
    """Whether the square of a debiased Gram matrix is little beside that of its former diagonal."""
    return bool(square < _CANCELLED * diagonal)


def require_unbiased(square: float, largest: float, n_samples: int) -> None:
    """Raise an error if the square of a debiased Gram matrix is that of rounding.

    `largest` is the size of its entries beside the diagonal before means were taken off.
    """
    if not square > (ROUNDING * largest) ** 2 * n_samples * (n_samples - 1):
        raise nothing_left(UNBIASED_NOTHING)


def _from_moments(moments: PairMoments, diagonals: Products) -> Products:
    """Inner products of the debiased Gram matrices, for spaces of unit size."""
    x, y, n = moments.x.total, moments.y.total, moments.n_rows
    scatters = moments.x.scatter / x, moments.y.scatter / y, moments.cross / sqrt(x) / sqrt(y)
    xx, yy, xy = (
        float(np.square(scatter).sum()) - diagonal * n / (n - 2) + 1 / ((n - 1) * (n - 2))
        for scatter, diagonal in zip(scatters, diagonals, strict=True)
    )
    return xx, yy, xy


def _diagonal_products(X: Space, Y: Space, moments: PairMoments) -> Products:
    """Sums over the samples of a², b² and a b, with a and b the shares of the rows in all squares."""
    total = np.zeros(3)
    for x, y, _ in row_blocks(X, Y, None):
        of_x, of_y = (
            np.square(about(view, rows)).sum(axis=1) / view.total
            for rows, view in ((x, moments.x), (y, moments.y))
        )
        total += of_x @ of_x, of_y @ of_y, of_x @ of_y
    return float(total[0]), float(total[1]), float(total[2])


def _from_blocks(X: Space, Y: Space, moments: PairMoments) -> Products:
    """The inner products, entry by entry: no large terms cancel, for n_samples² entries."""
    total, largest = np.zeros(3), np.zeros(2)
    batches = list(gen_batches(len(X), _BLOCK_ROWS))
    for rows, columns in product(batches, batches):
        if rows.start < columns.start:
            continue
        (k, of_k), (m, of_m) = (
            _debiased_block(space, view, rows, columns)
            for space, view in ((X, moments.x), (Y, moments.y))
        )
        times = 1 if rows == columns else 2
        total += times * np.array([np.vdot(k, k), np.vdot(m, m), np.vdot(k, m)])
        largest = np.maximum(largest, (of_k, of_m))
    for name, square, size in zip("XY", total, largest, strict=False):
        with naming(name):
            require_unbiased(float(square), float(size), len(X))
    return float(total[0]), float(total[1]), float(total[2])


def _debiased_block(
    space: Space, view: ViewMoments, rows: slice, columns: slice
) -> tuple[Array, float]:
    """A block of a debiased Gram matrix, and its largest entry beside the diagonal before that."""
    left, right = (about(view, space[part]) / sqrt(view.total) for part in (rows, columns))
    release_pages(space)
    block = left @ right.T
    within = rows == columns
    if within:
        np.fill_diagonal(block, 0.0)
    largest = float(np.abs(block).max())
    down, across = (np.einsum("ij,ij->i", part, part) for part in (left, right))
    debias(block, down, across, len(space))
    if within:
        np.fill_diagonal(block, 0.0)
    return block, largest


def debias(block: Array, down: Array, across: Array, n_samples: int) -> None:
    """Take the bias off entries beside the diagonal of a Gram matrix of trace 1, in place.

    `down` and `across` are the diagonal's entries in the rows and in the columns of the block.
    """
    block += (across + down[:, np.newaxis]) / (n_samples - 2)
    block -= 1 / ((n_samples - 1) * (n_samples - 2))
