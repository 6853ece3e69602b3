"""What "auto" means: how much freedom so many rows of such a width can bear."""

from __future__ import annotations

from math import ceil, log10
from typing import Literal, TypeVar

Auto = Literal["auto"]
Value = TypeVar("Value", int, float)

_N_STEPS = 1500


def chosen(value: Value | Auto, automatic: Value) -> Value:
    """A parameter, or what was decided for it."""
    return automatic if isinstance(value, str) else value


def hidden_size(width: int) -> int:
    """Four times the width, from 32 to 512 units: wider nets cost time and gained nothing."""
    return min(max(4 * width, 32), 512)


def dropout(n_rows: int, width: int) -> float:
    """From 0.7 with six rows for each coordinate, by a quarter less for ten times as many, to none."""
    return min(max(0.9 - 0.25 * log10(max(n_rows, 1) / width), 0.0), 0.7)


def batch_size(n_rows: int) -> int:
    """A fiftieth of the rows, from 64 to 512."""
    return min(max(n_rows // 50, 64), 512)


def max_epochs(n_rows: int, batch: int) -> int:
    """Passes that make about 1,500 steps, from 3 to 60."""
    return min(max(round(_N_STEPS / ceil(n_rows / batch)), 3), 60)


def refit(n_rows: int, width: int) -> bool:
    """Whether a tenth more rows is worth training twice."""
    return n_rows < 200 * width
