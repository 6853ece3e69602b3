"""Paired rows as the network sees them: on its device as a whole, or streamed through in pieces."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.random import RandomState
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Dataset

from .._compat import release_pages
from .._moments import row_hash
from .._solvers import Standard
from .._validation import Pair

#: Rows that are read from one place at a time, and pieces that are shuffled together.
_PIECE_ROWS = 2048
_POOL_PIECES = 8

#: Bytes that the rows may take on a CPU before they are streamed, and the share of a GPU's free memory.
_RESIDENT_BYTES = 2**32
_RESIDENT_SHARE = 0.5

NO_ROWS = np.array([], dtype=np.intp)

Batch = tuple[dict[str, Tensor], tuple[Tensor, Tensor, Tensor]]


@dataclass(frozen=True, eq=False)
class RawPairs:
    """The rows to learn from, still as they came.

    Parameters
    ----------
    X, y : ndarray
        Of float32 or float64; memory maps are read piece by piece.
    weight : ndarray of shape (n_samples,)
    rows : ndarray of int, ascending
        Those of them that take part.
    """

    X: NDArray[Any]
    y: NDArray[Any]
    weight: NDArray[np.float64]
    rows: NDArray[np.intp]

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, kept: NDArray[np.intp]) -> RawPairs:
        """Some of the rows, by their place among those that take part."""
        return RawPairs(self.X, self.y, self.weight, self.rows[kept])

    def weight_of_all(self) -> NDArray[np.float64]:
        """Weight of every row of the arrays: zero for those that take no part."""
        weight = np.zeros(len(self.X))
        weight[self.rows] = self.weight[self.rows]
        return weight


def as_raw(pair: Pair) -> RawPairs:
    """A checked pair, without its rows of weight zero."""
    X, y, weight = pair
    weight = np.ones(len(X)) if weight is None else weight
    return RawPairs(X, y, weight, np.flatnonzero(weight))


def split(raw: RawPairs, fraction: float, draws: RandomState) -> tuple[RawPairs, RawPairs]:
    """Random parts of the rows: those to learn from, at least two, and a share to judge by.

    Equal rows stay together: a copy of a row that was learned from would judge too well.
    """
    n_valid = max(min(max(1, round(fraction * len(raw))), len(raw) - 2), 0)
    order = draws.permutation(len(raw))
    kind = _kinds(raw)
    n_kinds = int(kind.max(initial=-1)) + 1
    if 2 < n_kinds < len(raw):
        # Kinds in random order, as many as have the rows that are wanted, and two left to learn from.
        rank = draws.permutation(n_kinds)
        sizes = np.bincount(kind)[np.argsort(rank)]
        n_held = min(int(np.searchsorted(np.cumsum(sizes), n_valid)) + 1, n_kinds - 2)
        held = rank[kind] < n_held
        return raw.take(np.flatnonzero(~held)), raw.take(np.flatnonzero(held))
    return raw.take(np.sort(order[n_valid:])), raw.take(np.sort(order[:n_valid]))


def _kinds(raw: RawPairs) -> NDArray[np.intp]:
    """A number for each row that takes part, the same for equal ones."""
    blocks = (raw.rows[i : i + _PIECE_ROWS] for i in range(0, len(raw), _PIECE_ROWS))
    found = [row_hash(raw.X[rows]) << np.uint64(31) | row_hash(raw.y[rows]) for rows in blocks]
    for view in (raw.X, raw.y):
        release_pages(view)
    if not found:
        return NO_ROWS
    return np.unique(np.concatenate(found), return_inverse=True)[1]


class Pairs(Dataset[Any]):
    """Standardised float32 pairs, and an order to draw them in.

    Batches are drawn by index from tensors that lie on the device already. Where these would not fit,
    random pieces of the rows are read, shuffled together and sent over.

    Parameters
    ----------
    raw : RawPairs
    source, target : Standard
    width : int
        Of the coordinates.
    device : str
    resident_bytes : int, default=None
        Bytes that the rows may take on the device; None decides by the device.
    """

    def __init__(
        self,
        raw: RawPairs,
        source: Standard,
        target: Standard,
        width: int,
        device: str,
        resident_bytes: int | None = None,
    ) -> None:
        self.raw, self.source, self.target = raw, source, target
        self.width, self.device = width, device
        self._mean_weight = float(raw.weight[raw.rows].mean())
        limit = _limit(device) if resident_bytes is None else resident_bytes
        resident = 8 * len(raw) * width <= limit
        self._tensors = self._read(np.arange(len(raw)), device) if resident else None

    def __len__(self) -> int:
        return len(self.raw)

    def __getitem__(self, place: int) -> Any:
        """One pair, for whoever looks into the data set; training does not come by here."""
        x, y, weight = (part[0] for part in self._read(np.array([place]), "cpu"))
        return {"x": x, "y": y}, (x, y, weight)

    def batches(self, batch_size: int, *, shuffled: bool) -> Iterator[Batch]:
        """Batches of all rows, once, shuffled by torch's generator if asked to."""
        pools = [self._tensors] if self._tensors is not None else self._pools(shuffled)
        for pool in pools:
            n_rows = len(pool[0])
            order = torch.randperm(n_rows).to(pool[0].device) if shuffled else None
            for start in range(0, n_rows, batch_size):
                if order is None:
                    x, y, weight = (part[start : start + batch_size] for part in pool)
                else:
                    places = order[start : start + batch_size]
                    x, y, weight = (part.index_select(0, places) for part in pool)
                yield {"x": x, "y": y}, (x, y, weight)

    def _pools(self, shuffled: bool) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Rows of several pieces together, as tensors on the device."""
        starts = np.arange(0, len(self), _PIECE_ROWS)
        if shuffled:
            starts = starts[torch.randperm(len(starts)).numpy()]
        for first in range(0, len(starts), _POOL_PIECES):
            pieces = starts[first : first + _POOL_PIECES]
            yield self._read(
                np.concatenate([np.arange(s, min(s + _PIECE_ROWS, len(self))) for s in pieces]),
                self.device,
            )

    def _read(self, places: NDArray[np.intp], device: str) -> tuple[Tensor, Tensor, Tensor]:
        x, y = (np.empty((len(places), self.width), np.float32) for _ in range(2))
        for start in range(0, len(places), _PIECE_ROWS):
            piece = slice(start, start + _PIECE_ROWS)
            rows = self.raw.rows[places[piece]]
            x[piece] = self.source.arrange(self.raw.X[rows], self.width, np.float32)
            y[piece] = self.target.arrange(self.raw.y[rows], self.width, np.float32)
            release_pages(self.raw.X)
            release_pages(self.raw.y)
        weight = (self.raw.weight[self.raw.rows[places]] / self._mean_weight).astype(np.float32)
        return _send(x, device), _send(y, device), _send(weight, device)


def _send(array: NDArray[np.float32], device: str) -> Tensor:
    tensor = torch.from_numpy(array)
    if device.startswith("cuda"):
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


def _limit(device: str) -> float:
    if device.startswith("cuda"):
        return _RESIDENT_SHARE * float(torch.cuda.mem_get_info(device)[0])
    return _RESIDENT_BYTES
