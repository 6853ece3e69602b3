"""What a comparison layer by layer found: scores of every pair of layers, printed as two tables."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._compat import require
from ._tables import aligned, as_csv, number_format

_LEGEND = """\
Row: layer of the first model; column: layer of the second. Mean over {} of rows held out.
forward: from the first model to the second; inverse: the same fits, back."""


@dataclass(frozen=True, eq=False, repr=False)
class LayerComparison:
    """Held-out R² of every pair of layers, both ways.

    ``print(layers)`` shows the means as two tables.

    Attributes
    ----------
    forward : ndarray of shape (n_layers_a, n_layers_b, n_splits)
        R² of the second model's layer, predicted from the first's by `transform`. At most 1; NaN for
        a pair that was not asked for.
    inverse : ndarray of shape (n_layers_a, n_layers_b, n_splits)
        R² of the first model's layer, brought back from the second's by `inverse_transform` of the
        same fits.
    """

    forward: NDArray[np.float64]
    inverse: NDArray[np.float64]

    @property
    def forward_mean(self) -> NDArray[np.float64]:
        """Mean of `forward` over the splits, of shape (n_layers_a, n_layers_b)."""
        return np.asarray(self.forward.mean(axis=2))

    @property
    def inverse_mean(self) -> NDArray[np.float64]:
        """Mean of `inverse` over the splits, of shape (n_layers_a, n_layers_b)."""
        return np.asarray(self.inverse.mean(axis=2))

    @property
    def symmetric_mean(self) -> NDArray[np.float64]:
        """Mean of both directions and all splits, of shape (n_layers_a, n_layers_b)."""
        return (self.forward_mean + self.inverse_mean) / 2

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One dict per pair of layers asked for and split."""
        return [
            {
                **dict(zip(("layer_a", "layer_b", "split"), map(int, place), strict=True)),
                "r2_forward": float(self.forward[*place]),
                "r2_inverse": float(self.inverse[*place]),
            }
            for place in np.argwhere(~np.isnan(self.forward))
        ]

    def to_frame(self) -> Any:
        """Return the rows as a pandas DataFrame, one per pair of layers and split.

        Returns
        -------
        frame : pandas.DataFrame
            With the columns layer_a, layer_b, split, r2_forward and r2_inverse.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        return require("pandas", "io").DataFrame(self.rows)

    def to_csv(self, path: str | PathLike[str] | None = None) -> str | None:
        """Write the rows as comma-separated text, without the need for pandas.

        Parameters
        ----------
        path : str or path-like, default=None
            File to write; an existing one is replaced. None returns the text.

        Returns
        -------
        text : str or None
            None if a file was written.
        """
        return as_csv(self.rows, path)

    def __repr__(self) -> str:
        n_layers_a, n_layers_b, n_splits = self.forward.shape
        n_pairs = len(self.rows) // n_splits
        return (
            f"<LayerComparison of {n_layers_a} x {n_layers_b} layers: "
            f"{n_pairs} pairs, {n_splits} splits>"
        )

    def __str__(self) -> str:
        n_splits = self.forward.shape[2]
        legend = _LEGEND.format("1 split" if n_splits == 1 else f"{n_splits} splits")
        if np.isnan(self.forward).any():
            legend += " -: not asked for."
        tables = (
            _table("R² forward", self.forward_mean),
            _table("R² inverse", self.inverse_mean),
        )
        return "\n\n".join([*tables, legend])


def _table(title: str, means: NDArray[np.float64]) -> str:
    head = [title, *map(str, range(means.shape[1]))]
    body = ([str(number), *map(_cell, row)] for number, row in enumerate(means))
    return "\n".join(aligned([head, *body]))


def _cell(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:{number_format(value)}}"
