"""Centred sums of squares and products of one block, in a unit in which they are safe."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

NO_SPREAD = 2.0**-1000
_SAFE = (1e-120, 1e120)


def centre(
    rows: NDArray[Any], weight: Array | None, total: float, out: Array
) -> tuple[Array, Array]:
    """Weighted mean, and in `out` the centred rows times the root of their weight."""
    # Shifting by a row first makes constant columns exactly zero and spares a large offset the
    # rounding of a long sum.
    shift = rows[0].astype(np.float64)
    centred = np.subtract(rows, shift, out=out, dtype=np.float64)
    mean = _mean(centred, weight, total)
    centred -= mean
    if weight is not None:
        centred *= np.sqrt(weight)[:, np.newaxis]
    return shift + mean, centred


def _mean(rows: Array, weight: Array | None, total: float) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):
        mean: Array = (rows.sum(axis=0) if weight is None else weight @ rows) / total
    if np.isfinite(mean).all():
        return mean
    # The sum has left the range of floats, where a mean of its terms is in it.
    return (np.ones(len(rows)) if weight is None else weight) / total @ rows


def scatter_of(centred: Array, *, diagonal: bool) -> tuple[Array, float]:
    """Sums of squares and products of the columns, and their unit, in which `centred` is left."""
    own = squares if diagonal else gram
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        scatter = own(centred)
    if _SAFE[0] < (scatter if diagonal else scatter.diagonal()).sum() < _SAFE[1]:
        return scatter, 1.0
    unit = unit_of(centred)
    centred /= unit
    return own(centred), unit


def gram(centred: Array) -> Array:
    # numpy sees that both factors are one buffer and computes one triangle only.
    return centred.T @ centred


def squares(centred: Array) -> Array:
    squares: Array = np.einsum("ij,ij->j", centred, centred)
    return squares


def unit_of(values: Array) -> float:
    """1 where squares of the values are safe, else the power of two just above the largest of them."""
    with np.errstate(over="ignore", under="ignore"):
        energy = np.einsum("ij,ij->", values, values)
    if _SAFE[0] < energy < _SAFE[1]:
        return 1.0
    peak = float(np.abs(values).max(initial=0.0))
    return 2.0 ** float(np.frexp(peak)[1]) if peak else NO_SPREAD


def precision_of(array: NDArray[Any]) -> float:
    """Machine epsilon of a floating type, 0 for whole numbers."""
    return float(np.finfo(array.dtype).eps) if np.issubdtype(array.dtype, np.floating) else 0.0


def between(weights: Array, means: Array) -> tuple[Array, Array]:
    """Mean of the means, and the steps to them times the root of their weights."""
    # About the first of them, so that equal means have steps of exactly zero.
    steps = means - means[0]
    mean = weights @ steps / weights.sum()
    return means[0] + mean, (steps - mean) * np.sqrt(weights)[:, np.newaxis]
