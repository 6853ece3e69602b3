"""The way over all pairs of many spaces when not everything that was prepared fits into memory.

A *tile* is a run of consecutive spaces that lie in memory together. Pairs are visited tile by tile: the
states of the one side stay while those of the other come and go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sized
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from .._similarity import applied
from ._spaces import Spaces
from ._work import Work, memory_budget, size_in_bytes

Prepare = Callable[[Any], Any]


@dataclass(frozen=True)
class Tile:
    """Numbers of some spaces, and what was prepared of each."""

    numbers: range
    states: Any

    @property
    def places(self) -> slice:
        """Where they stand in the matrix."""
        return slice(self.numbers.start, self.numbers.stop)


@dataclass(frozen=True)
class Walk:
    """All pairs of tiles of two sides; of one side with itself, each pair once."""

    first: Sized
    second: Sized
    size: int

    @property
    def within(self) -> bool:
        """Whether the spaces are compared among themselves."""
        return self.first is self.second

    def pairs(self) -> list[tuple[range, range]]:
        """Numbers of the spaces in both tiles, in the order in which they are visited."""
        every = product(tiles(len(self.first), self.size), tiles(len(self.second), self.size))
        return [(a, b) for a, b in every if not self.within or a.start <= b.start]

    def n_loads(self) -> int:
        """How often a space is prepared, all together."""
        left = sum(map(len, tiles(len(self.first), self.size)))
        return left + sum(len(b) for a, b in self.pairs() if not (self.within and a == b))

    def visit(self, load: Callable[[Any, range], Any]) -> Iterator[tuple[Tile, Tile]]:
        """Pairs of tiles with their states; the same tile twice is one object."""
        left = Tile(range(0), None)
        for a, b in self.pairs():
            if a != left.numbers:
                left = Tile(a, load(self.first, a))
            yield left, left if self.within and a == b else Tile(b, load(self.second, b))


def tiles(count: int, size: int) -> list[range]:
    """Consecutive numbers, `size` at a time."""
    return [range(start, min(start + size, count)) for start in range(0, count, size)]


@dataclass(frozen=True)
class Loader:
    """Prepares the spaces of a tile, and collects what comes."""

    prepare: Prepare
    collect: Callable[[Iterator[Any], int], Any]
    work: Work
    ready: dict[str, Any]

    @classmethod
    def measured(
        cls,
        prepare: Prepare,
        collect: Callable[[Iterator[Any], int], Any],
        sides: tuple[Spaces, Spaces],
        work: Work,
    ) -> tuple[Loader, Walk]:
        """With a walk whose tiles fit into memory, judged by the first space, which is then ready."""
        first, second = sides
        state = prepared(prepare, first, 0)
        fitting = memory_budget() // size_in_bytes(state)
        count = len(first) + (0 if first is second else len(second))
        # The tile before is still there while the next one is prepared.
        size = count if count <= fitting else max(1, fitting // 3)
        return cls(prepare, collect, work, {first.title(0): state}), Walk(first, second, size)

    def __call__(self, spaces: Spaces, numbers: range) -> Any:
        places = ((spaces, number) for number in numbers)
        return self.collect(self.work.run(self._load, places, threads=True), len(numbers))

    def _load(self, spaces: Spaces, number: int) -> Any:
        known = self.ready.pop(spaces.title(number), None)
        return prepared(self.prepare, spaces, number) if known is None else known


def prepared(prepare: Prepare, spaces: Spaces, number: int) -> Any:
    """What `prepare` makes of a space; an error names it."""
    try:
        return applied(prepare, spaces.read(number), spaces.title(number))
    except Exception as error:
        error.add_note(f"Raised by {spaces.title(number)}.")
        raise


def as_list(states: Iterator[Any], count: int) -> list[Any]:
    """States of any kind."""
    return list(states)


def as_rows(vectors: Iterator[Any], count: int) -> Any:
    """Vectors as the rows of one matrix, which are not held twice."""
    first = next(vectors)
    rows = np.empty((count, len(first)))
    rows[0] = first
    for place, vector in enumerate(vectors, start=1):
        rows[place] = vector
    return rows
