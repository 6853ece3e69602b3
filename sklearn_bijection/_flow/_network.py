"""The whole network between two spaces: ends in the units of the data, an invertible core between them."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ._chain import Invertible


class End(nn.Module):
    """Between the rows of one space and the coordinates of the core.

    Rows are centred and divided by one unit; constant columns stay outside, and zeros fill up the width
    of the core. On the way out the constant columns are their constants again.

    Parameters
    ----------
    mean : Tensor of shape (n_columns,)
    unit : float
        Positive.
    columns : Tensor of int of shape (n_live,)
        Columns of the data, in the order in which the core sees them.
    width : int
        Width of the core, at least n_live.
    """

    mean: Tensor
    unit: Tensor
    entry: Tensor
    exit: Tensor

    def __init__(self, mean: Tensor, unit: float, columns: Tensor, width: int) -> None:
        super().__init__()
        n_columns, n_live = len(mean), len(columns)
        # One further column, of zeros, is where everything that is missing is read from.
        entry = torch.full((width,), n_columns)
        entry[:n_live] = columns
        leave = torch.full((n_columns,), width)
        leave[columns] = torch.arange(n_live)
        self.register_buffer("mean", mean)
        self.register_buffer("unit", torch.tensor(unit, dtype=mean.dtype))
        self.register_buffer("entry", entry)
        self.register_buffer("exit", leave)

    def enter(self, rows: Tensor) -> Tensor:
        """Coordinates of rows, of shape (n_samples, width)."""
        return self.arrange((rows - self.mean) / self.unit)

    def leave(self, coordinates: Tensor) -> Tensor:
        """Rows of shape (n_samples, n_columns)."""
        return self.restore(coordinates) * self.unit + self.mean

    def arrange(self, standard: Tensor) -> Tensor:
        """Coordinates of rows that are centred and scaled already."""
        return _select(standard, self.entry)

    def restore(self, coordinates: Tensor) -> Tensor:
        """Rows, still centred and scaled."""
        return _select(coordinates, self.exit)


def _select(rows: Tensor, columns: Tensor) -> Tensor:
    return nn.functional.pad(rows, (0, 1)).index_select(1, columns)


class Network(Invertible):
    """A map between rows of two spaces, through an invertible core.

    Parameters
    ----------
    source, target : End
        Of the first and of the second space.
    core : Invertible
        Between their coordinates.
    """

    def __init__(self, source: End, core: Invertible, target: End) -> None:
        super().__init__()
        self.source, self.core, self.target = source, core, target

    def forward(self, z: Tensor) -> Tensor:
        """Map rows of shape (n_samples, n_features) to (n_samples, n_targets)."""
        return self.target.leave(self.core(self.source.enter(z)))

    def inverse(self, w: Tensor) -> Tensor:
        """Map rows of shape (n_samples, n_targets) to (n_samples, n_features)."""
        return self.source.leave(self.core.inverse(self.target.enter(w)))

    def frozen(self) -> Network:
        """The same ends around a frozen core."""
        return Network(self.source, self.core.frozen(), self.target)
