"""Any measure on many spaces: what each space needs is done once, while it fits into memory."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._compat import stacklevel_of_caller
from .._similarity import Cosine, Prepared
from ._spaces import Spaces
from ._tiles import Loader, Tile, as_list, as_rows
from ._work import Work

Array = NDArray[np.float64]


def cosines(measure: Cosine, first: Spaces, second: Spaces, work: Work) -> Array:
    """Inner products of the vectors of all spaces, one matrix product for a pair of tiles."""
    load, walk = Loader.measured(measure.vector, as_rows, (first, second), work)
    work.expect(walk.n_loads())
    values = np.empty((len(first), len(second)))
    for left, right in walk.visit(load):
        products = left.states @ right.states.T
        values[left.places, right.places] = products
        if walk.within and left is not right:
            values[right.places, left.places] = products.T
    return values


def comparisons(
    measure: Prepared, first: Spaces, second: Spaces, work: Work, *, threads: bool = True
) -> Array:
    """What `compare` says about all pairs, both ways where the order matters."""
    load, walk = Loader.measured(measure.prepare, as_list, (first, second), work)
    mirrored = walk.within and measure.symmetric
    n_pairs = len(first) * (len(first) + 1) // 2 if mirrored else len(first) * len(second)
    work.expect(walk.n_loads() + n_pairs)
    values, cautions = np.empty((len(first), len(second))), Cautions(first, second, n_pairs)
    compare = partial(_compared, measure)
    for left, right in walk.visit(load):
        pairs = list(_pairs(left, right, within=walk.within, mirrored=mirrored))
        arguments = ((a, b, _note(first, second, place)) for place, a, b in pairs)
        found = work.run(compare, arguments, threads=threads)
        for (place, _, _), (value, caution) in zip(pairs, found, strict=True):
            values[place] = value
            if mirrored:
                values[place[::-1]] = value
            cautions.add(place, caution)
    cautions.warn(measure.name)
    return values


def _pairs(
    left: Tile, right: Tile, *, within: bool, mirrored: bool
) -> Iterator[tuple[tuple[int, int], Any, Any]]:
    """Place in the matrix, and the two states, of every value that a pair of tiles gives."""
    for i, a in zip(left.numbers, left.states, strict=True):
        for j, b in zip(right.numbers, right.states, strict=True):
            if not (mirrored and i > j):
                yield (i, j), a, b
            if within and not mirrored and left is not right:
                yield (j, i), b, a


def _compared(measure: Prepared, a: Any, b: Any, note: str) -> tuple[float, str | None]:
    try:
        return float(measure.compare(a, b)), measure.caution(a, b)
    except Exception as error:
        error.add_note(note)
        raise


def _note(first: Spaces, second: Spaces, place: tuple[int, int]) -> str:
    return f"Raised by {first.title(place[0])} with {second.title(place[1])}."


@dataclass
class Cautions:
    """Why some values are worth little: told once for all pairs."""

    first: Spaces
    second: Spaces
    n_pairs: int
    told: list[tuple[tuple[int, int], str]] = field(default_factory=list)

    def add(self, place: tuple[int, int], caution: str | None) -> None:
        """Remember what was said about a pair."""
        if caution is not None:
            self.told.append((place, caution))

    def warn(self, name: str) -> None:
        """Say it, with the first pair as an example."""
        if not self.told:
            return
        place, caution = self.told[0]
        which = " with ".join(
            spaces.title(number)
            for spaces, number in zip((self.first, self.second), place, strict=True)
        )
        warnings.warn(
            f"{caution} So it is for {len(self.told)} of the {self.n_pairs} pairs of this {name}; "
            f"the first is {which}.",
            stacklevel=stacklevel_of_caller(),
        )
