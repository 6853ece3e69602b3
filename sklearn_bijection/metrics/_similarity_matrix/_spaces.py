"""The spaces to compare: where they lie, what they are called, and what they must agree on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._compat import release_pages
from .._pairs import as_columns, as_floats


@dataclass(frozen=True)
class Spaces:
    """Arrays, each still where it lies, and their labels."""

    argument: str
    labels: tuple[str, ...]
    arrays: tuple[Any, ...]

    def __len__(self) -> int:
        return len(self.arrays)

    @property
    def n_samples(self) -> int:
        """Number of rows of the first space, and after `check_spaces` of every one."""
        return int(self.arrays[0].shape[0])

    @property
    def widths(self) -> list[int]:
        """Number of columns of every space."""
        return [int(array.shape[1]) for array in self.arrays]

    def title(self, number: int) -> str:
        """How messages call a space."""
        return f"{self.argument}[{self.labels[number]!r}]"

    def read(self, number: int) -> NDArray[Any]:
        """Return a space as an array of floats: a view where it is one already."""
        array = np.asarray(self.arrays[number])
        return array if array.dtype in (np.float64, np.float32) else array.astype(np.float64)


def read_spaces(Hs: Any, argument: str) -> Spaces:
    """Spaces of a mapping, a sequence or an array, with stacks taken apart."""
    if not isinstance(Hs, Iterable):
        raise TypeError(
            f"{argument}={Hs!r} is not a collection of spaces. Pass a mapping of names to arrays, a "
            "sequence of arrays, or a stack of layers."
        )
    found = [
        labelled
        for name, value in (Hs.items() if isinstance(Hs, Mapping) else enumerate(Hs))
        for labelled in _labelled(name, _as_space(Hs, value), argument)
    ]
    if not found:
        raise ValueError(f"{argument} has no spaces. Pass at least one array (n_samples, width).")
    labels, arrays = zip(*found, strict=True)
    label, count = Counter(labels).most_common(1)[0]
    if count > 1:
        raise ValueError(
            f"{argument} has {count} spaces called {label!r}. Give each a name of its own."
        )
    return Spaces(argument, labels, arrays)


def _as_space(Hs: Any, value: Any) -> Any:
    """An array of one dimension as one column, unless it is a row of a single space."""
    alone = isinstance(Hs, Mapping) or (hasattr(value, "shape") and not hasattr(Hs, "shape"))
    return as_columns(value) if alone and _n_dimensions(value) == 1 else value


def _labelled(name: Any, value: Any, argument: str) -> Iterator[tuple[str, Any]]:
    """Label of every array in one entry, and the array: one, or the layers of a stack."""
    is_stack = _n_dimensions(value) == 3
    arrays = [_opened(layer) for layer in value] if is_stack else [_opened(value)]
    for array in arrays:
        if len(array.shape) != 2:
            raise ValueError(
                f"{argument}[{name!r}] has shape {tuple(array.shape)}, but {argument} holds arrays "
                "(n_samples, width) or stacks of layers (n_layers, n_samples, width). "
                f"Pass [{argument}] if it is a single space."
            )
    if not arrays:
        raise ValueError(
            f"{argument}[{name!r}] is a stack without layers. Leave it out, or pass at least one."
        )
    for number, array in enumerate(arrays):
        yield f"{name} / {number}" if is_stack else str(name), array


def _n_dimensions(value: Any) -> int:
    """Dimensions of an array, or of a list whose layers may have unequal widths."""
    if isinstance(value, list | tuple) and len(value):
        return 1 + _n_dimensions(value[0])
    return np.ndim(value)


def _opened(value: Any) -> Any:
    return value if hasattr(value, "shape") else np.asarray(value)


def check_spaces(*sides: Spaces) -> None:
    """Raise a ValueError that names the space with other rows or less than two, or with values that are none.

    Every space is read once, so that a NaN in the last one is not found after hours.
    """
    n_samples = sides[0].n_samples
    if n_samples < 2:
        raise ValueError(
            f"{sides[0].title(0)} has {n_samples} row(s), but similarity needs at least 2: it is about how "
            "rows differ."
        )
    for spaces in sides:
        for number, array in enumerate(spaces.arrays):
            if array.shape[0] != n_samples:
                raise ValueError(
                    f"{spaces.title(number)} has {array.shape[0]} rows but {sides[0].title(0)} has "
                    f"{n_samples}. Row i of every space belongs to the same sample: drop those that "
                    "a space lacks."
                )
    for spaces in sides:
        for number in range(len(spaces)):
            _check_values(spaces, number)


def _check_values(spaces: Spaces, number: int) -> None:
    array = spaces.arrays[number]
    try:
        as_floats(array, spaces.title(number))
    except ValueError as error:
        error.add_note(f"Raised by {spaces.title(number)}.")
        raise
    release_pages(array)
