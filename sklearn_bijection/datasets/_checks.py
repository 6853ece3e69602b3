"""Parameters of the data sets: an error names the parameter, shows it and states the rule."""

import math
from contextlib import suppress
from numbers import Integral, Real
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

RandomState: TypeAlias = int | np.random.Generator | np.random.RandomState | None


def as_count(value: object, name: str, *, low: int = 1) -> int:
    """Return ``value`` as an int of at least ``low``."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < low:
        raise ValueError(
            f"{name}={value!r} must be a whole number of at least {low}. Pass such an int."
        )
    return int(value)


def as_number(value: object, name: str, *, low: float = 0.0, above: bool = False) -> float:
    """Return ``value`` as a finite float of at least ``low``, or with ``above`` larger than it."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    found = float(value) if is_number else math.nan  # type: ignore[arg-type]
    if not math.isfinite(found) or found < low or (above and found == low):
        rule = f"larger than {low:g}" if above else f"of at least {low:g}"
        raise ValueError(f"{name}={value!r} must be a finite number {rule}. Pass such a float.")
    return found


def as_units(value: object) -> tuple[float, float]:
    """Return the units of the two views, both larger than zero."""
    return as_pair(value, "units", above=True)


def as_pair(value: object, name: str, *, above: bool = False) -> tuple[float, float]:
    """Return ``value``, one number for both views or an ``(X, y)`` pair, as two floats."""
    if not isinstance(value, tuple | list):
        one = as_number(value, name, above=above)
        return one, one
    if len(value) != 2:
        raise ValueError(
            f"{name}={value!r} has {len(value)} entries. Pass one number, or two: (for X, for y)."
        )
    first, second = (as_number(v, f"{name}[{i}]", above=above) for i, v in enumerate(value))
    return first, second


def as_rank(rank: object, n_features: int) -> int:
    """Return the rank of X: ``n_features`` for None, else a count that does not exceed it."""
    found = n_features if rank is None else as_count(rank, "rank")
    if found > n_features:
        raise ValueError(
            f"rank={rank} exceeds n_features={n_features}. Lower rank or pass None for full rank."
        )
    return found


def as_generator(random_state: RandomState) -> np.random.Generator:
    """Return a generator for ``random_state``; numpy's global one is neither read nor advanced.

    ``None`` takes fresh entropy. A ``RandomState`` is advanced by one draw and seeds the generator.
    """
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**32, size=4, dtype=np.uint32))
    if random_state is None or isinstance(random_state, np.random.Generator):
        return np.random.default_rng(random_state)
    return np.random.default_rng(as_count(random_state, "random_state", low=0))


def as_served_dtype(dtype: npt.DTypeLike | None) -> np.dtype[np.floating]:
    """Return ``dtype`` if it is float32 or float64, which the packaged pairs are served in."""
    served: tuple[np.dtype[np.floating], ...] = (np.dtype(np.float32), np.dtype(np.float64))
    # numpy reads None as float64.
    if dtype is not None:
        with suppress(TypeError, ValueError):
            return served[served.index(np.dtype(dtype))]
    raise ValueError(f"dtype={dtype!r} is not served. Pass np.float32 (the default) or np.float64.")
