"""What the arguments of the functions here may be."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import DTypeLike

Layers: TypeAlias = Literal["all"] | int | Sequence[int]


def choose_layer(layer: int, n_layers: int, name: str = "layer") -> int:
    """Position from 0 of the one layer that the argument `name` asks for."""
    if isinstance(layer, bool) or not isinstance(layer, Integral):
        raise TypeError(f"{name}={layer!r} is not a layer. Pass an int.")
    return choose_layers(int(layer), n_layers, "hidden states", name)[0]


def choose_layers(layers: Layers, n_layers: int, what: str, name: str = "layers") -> list[int]:
    """Positions from 0 of the layers that were asked for."""
    if isinstance(layers, str):
        if layers != "all":
            raise ValueError(f"layers={layers!r} is not known. Pass 'all', an int or several.")
        return list(range(n_layers))
    asked = np.atleast_1d(np.asarray(layers))
    if not asked.size:
        raise ValueError("layers is empty. Pass 'all', an int or several.")
    if asked.ndim > 1 or asked.dtype.kind not in "iu":
        raise TypeError(f"layers={layers!r} is not understood. Pass 'all', an int or several.")
    chosen = [int(layer) for layer in asked]
    for layer in chosen:
        if not -n_layers <= layer < n_layers:
            raise ValueError(
                f"{name}={layers!r} is out of range: this model has {n_layers} {what}, "
                f"0 .. {n_layers - 1} or -{n_layers} .. -1."
            )
    return [layer % n_layers for layer in chosen]


def check_count(value: Any, name: str) -> None:
    """Refuse what is no number of texts or tokens."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name}={value!r} is not a whole number. Pass an int.")
    if value < 1:
        raise ValueError(f"{name}={value} must be at least 1.")


def floating(dtype: DTypeLike) -> np.dtype[Any]:
    """The type of the result, which must hold fractions."""
    try:
        kind = np.dtype(dtype)
    except TypeError as error:
        raise TypeError(f"dtype={dtype!r} is no type of numpy. Pass float32 or float16.") from error
    if kind.kind != "f":
        raise ValueError(f"dtype={kind.name!r} is not a floating type. Pass float32 or float16.")
    return kind
