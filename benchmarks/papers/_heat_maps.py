"""Many small matrices in one picture, on one scale of colours."""

import textwrap
from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

Array = npt.NDArray[np.floating]

#: Colours end here; the number in the cell is the value itself.
LOWEST = -0.5
COLUMNS = 7
#: Letters in a line of a heading.
WIDTH = 24
#: As many layers on a side as leave room for a number in every cell.
MOST_NUMBERED = 13


def heat_maps(panels: Mapping[str, Mapping[str, Array]], label: str) -> Any:
    """Draw matrices by layer, one column for each method, one row for each kind of models.

    Parameters
    ----------
    panels : dict of dict of ndarray
        By method, then by kind; NaN is a grey cell.
    label : str
        What the colours mean.
    """
    kinds = list(dict.fromkeys(kind for found in panels.values() for kind in found))
    depth = max(len(values) for found in panels.values() for values in found.values())
    n_columns, side = min(COLUMNS, len(panels)), max(1.9, 0.33 * depth)
    n_rows = len(kinds) * -(-len(panels) // n_columns)
    figure = Figure((side * n_columns + 1, (side + 0.35) * n_rows), layout="constrained")
    axes = figure.subplots(n_rows, n_columns, squeeze=False)
    for (place, (name, found)), (k, kind) in product(enumerate(panels.items()), enumerate(kinds)):
        ax = axes[len(kinds) * (place // n_columns) + k, place % n_columns]
        image = _heat_map(ax, found[kind])
        if k == 0:
            ax.set_title(_in_lines(name), fontsize=8)
        if place % n_columns == 0:
            ax.set_ylabel(f"{kind}\nlayer of the first model", fontsize=8)
    for ax in axes.flat:
        ax.set_visible(ax.has_data())
    figure.supxlabel("layer of the second model", fontsize=8)
    figure.colorbar(image, ax=axes, label=label, extend="min", aspect=40)
    return figure


def _in_lines(name: str) -> str:
    """Break a name that is too long where it can be broken."""
    if len(name) <= WIDTH:
        return name
    return "\n".join(
        textwrap.fill(part, WIDTH, break_long_words=False)
        for part in name.replace("Aligner(", "Aligner\n(").split("\n")
    )


def _heat_map(ax: Any, values: Array) -> Any:
    image = ax.imshow(values, vmin=LOWEST, vmax=1)
    rows, columns = (range(0, n, -(-n // MOST_NUMBERED)) for n in values.shape)
    ax.set(xticks=columns, yticks=rows, facecolor="#e6e6e6")
    ax.tick_params(length=0, labelsize=7)
    ax.spines[:].set_visible(False)
    if max(values.shape) > MOST_NUMBERED:
        return image
    for i, j in np.argwhere(~np.isnan(values)):
        # The middle of the colours: black reads on the lighter half, white on the darker.
        colour = "black" if values[i, j] > (LOWEST + 1) / 2 else "white"
        digits = 2 if values[i, j] > -9.95 else 0
        ax.text(
            j, i, f"{values[i, j]:.{digits}f}", color=colour, ha="center", va="center", fontsize=6
        )
    return image
