"""Rows of a pair, block by block and fold by fold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._compat import release_pages

_MIN_BLOCK_ROWS = 512
_MAX_BLOCK_BYTES = 2**26

Rows = tuple[NDArray[Any], NDArray[Any], NDArray[np.float64] | None]


def block_rows(X: NDArray[Any], y: NDArray[Any]) -> int:
    """Rows of a block: enough that adding the products up is cheap beside computing them."""
    width = X.shape[1] + y.shape[1]
    rows = max(_MIN_BLOCK_ROWS, min(2 * width, _MAX_BLOCK_BYTES // (8 * width)))
    return int(min(rows, len(X)))


def row_blocks(X: NDArray[Any], y: NDArray[Any], weight: NDArray[Any] | None) -> Iterator[Rows]:
    """Blocks of rows, without those of weight zero."""
    step = block_rows(X, y)
    for start in range(0, len(X), step):
        rows = slice(start, start + step)
        if weight is None:
            yield X[rows], y[rows], None
        else:
            kept = weight[rows] > 0
            yield X[rows][kept], y[rows][kept], np.asarray(weight[rows][kept], dtype=np.float64)
        release_pages(X)
        release_pages(y)


def split_rows(block: Rows, n_folds: int) -> Iterator[Rows]:
    """Split a block into the rows of each fold."""
    if n_folds == 1:
        yield block
        return
    X, y, weight = block
    fold = fold_of(X, y, n_folds)
    for i in range(n_folds):
        rows = fold == i
        yield X[rows], y[rows], None if weight is None else weight[rows]


def fold_of(X: NDArray[Any], y: NDArray[Any], n_folds: int) -> NDArray[np.uint64]:
    """Fold of each row of a pair, by its content."""
    fold: NDArray[np.uint64] = (row_hash(X) + row_hash(y)) % np.uint64(n_folds)
    return fold


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
