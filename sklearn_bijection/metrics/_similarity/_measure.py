"""Measures in two parts, what each space needs once and what each pair needs, so that many share work."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..._compat import stacklevel_of_caller

Array = NDArray[np.float64]
Result = TypeVar("Result")

# The most that rounding carries a mean or an inner product of long vectors beyond its bound.
_ROUNDING = 1024 * float(np.finfo(float).eps)


class UnfitError(ValueError):
    """A measure has no value for a space, which the text calls X."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"X {reason}")
        self.reason = reason


def _no_caution(first: Any, second: Any) -> str | None:
    return None


@dataclass(frozen=True)
class Cosine:
    """A measure that is the cosine between one long vector per space.

    Parameters
    ----------
    name : str
        Of the public function.
    vector : callable
        Takes a finite float array (n_samples, width) and gives a 1-D float64 array, with as many entries
        for every space of n_samples rows, and of unit length (shorter only where neighbours tie). The
        similarity of two spaces is the inner product of their vectors. Raises an UnfitError where there
        is none.
    """

    name: str
    vector: Callable[[NDArray[Any]], Array]

    @property
    def symmetric(self) -> bool:
        """Whether the order of the two spaces does not matter."""
        return True


@dataclass(frozen=True)
class Prepared:
    """A measure that prepares each space by itself, and then compares what it prepared.

    Parameters
    ----------
    name : str
        Of the public function.
    prepare : callable
        Takes a finite float array (n_samples, width) and gives a state. Raises an UnfitError where
        there is none.
    compare : callable
        Takes two states, of spaces with equally many rows, and gives a float.
    symmetric : bool, default=True
        Whether the order of the two states does not matter.
    caution : callable
        Takes two states and says, in a sentence for a warning, why their comparison is worth little;
        None where nothing is to be said.
    """

    name: str
    prepare: Callable[[NDArray[Any]], Any]
    compare: Callable[[Any, Any], float]
    symmetric: bool = True
    caution: Callable[[Any, Any], str | None] = _no_caution


Measure: TypeAlias = Cosine | Prepared
Factory: TypeAlias = Callable[..., Measure]
SomeFactory = TypeVar("SomeFactory", bound=Factory)

#: For each public name what makes its measure, from the options of the public function.
#: The modules beside this one fill it: import it from their package.
MEASURES: dict[str, Factory] = {}


def registered(name: str) -> Callable[[SomeFactory], SomeFactory]:
    """Enter a factory into `MEASURES`."""

    def enter(factory: SomeFactory) -> SomeFactory:
        MEASURES[name] = factory
        return factory

    return enter


def applied(function: Callable[[NDArray[Any]], Result], space: NDArray[Any], name: str) -> Result:
    """What `function` makes of a space; an UnfitError becomes a ValueError that names the array."""
    with naming(name):
        return function(space)


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Turn an UnfitError into a ValueError that names the array."""
    try:
        yield
    except UnfitError as error:
        raise ValueError(f"{name} {error.reason}") from None


def compared(measure: Measure, X: NDArray[Any], Y: NDArray[Any]) -> float:
    """Value of a measure for two checked arrays, with its warning."""
    if isinstance(measure, Cosine):
        first, second = (
            applied(measure.vector, space, name) for space, name in ((X, "X"), (Y, "Y"))
        )
        return settled(float(first @ second), -1.0, 1.0)
    first, second = (applied(measure.prepare, space, name) for space, name in ((X, "X"), (Y, "Y")))
    warn(measure.caution(first, second))
    return measure.compare(first, second)


def warn(caution: str | None) -> None:
    """Warn the caller of this package, if there is something to say."""
    if caution is not None:
        warnings.warn(caution, UserWarning, stacklevel=stacklevel_of_caller())


def settled(value: float, low: float, high: float) -> float:
    """`value` brought back to its bounds where rounding alone carried it beyond, else as it is."""
    nearest = min(max(value, low), high)
    return nearest if abs(value - nearest) <= _ROUNDING else value
