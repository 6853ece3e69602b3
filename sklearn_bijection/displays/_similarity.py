"""A similarity matrix as a heat map."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._compat import require
from ..metrics import SimilarityMatrix
from ._figure import MIDDLE_GREY, MOST_NUMBERED, FigureDisplay, brief, figure_of, luminance

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage

# As many names on a side as can be read below one another.
_MOST_NAMED = 32


class SimilarityDisplay(FigureDisplay):
    """Similarity of every pair of spaces.

    Parameters
    ----------
    matrix : SimilarityMatrix
        What `metrics.similarity_matrix` returned.

    Attributes
    ----------
    figure_ : matplotlib.figure.Figure
        The picture; ``figure_.savefig("similarity.png")`` writes it.
    ax_ : matplotlib Axes
        With the rows of the matrix from the top down.
    colorbar_ : matplotlib.colorbar.Colorbar
        What the colours mean.

    See Also
    --------
    sklearn_bijection.metrics.similarity_matrix : Makes the matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_bijection.displays import SimilarityDisplay
    >>> from sklearn_bijection.metrics import similarity_matrix
    >>> H = np.random.default_rng(0).normal(size=(2, 60, 3))
    >>> matrix = similarity_matrix({"one": H[0], "other": H[1]}, progress=False)
    >>> display = SimilarityDisplay.from_matrix(matrix)
    >>> [text.get_text() for text in display.ax_.texts]
    ['1.00', '0.08', '0.08', '1.00']
    """

    def __init__(self, matrix: SimilarityMatrix) -> None:
        self.matrix = matrix

    @classmethod
    def from_matrix(
        cls,
        matrix: SimilarityMatrix,
        *,
        limits: tuple[float, float] | None = None,
        ax: Axes | None = None,
    ) -> SimilarityDisplay:
        """Draw a matrix.

        Parameters
        ----------
        matrix : SimilarityMatrix
            What `metrics.similarity_matrix` returned.
        limits : tuple of two floats, default=None
            Where the colours begin and end, see `plot`.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : SimilarityDisplay
        """
        return cls(matrix).plot(limits=limits, ax=ax)

    def plot(
        self, *, limits: tuple[float, float] | None = None, ax: Axes | None = None
    ) -> SimilarityDisplay:
        """Draw the heat map, with the names of the spaces.

        Up to 13 spaces on a side the value is written into each cell. Beyond 32, layers of one model
        share one name, "model" for "model / layer", and lines part the models.

        Parameters
        ----------
        limits : tuple of two floats, default=None
            Values beyond have the colour of the nearest; None takes the least and the largest value.
            Pictures to be compared need the same.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        self : SimilarityDisplay
        """
        values = self.matrix.values
        low, high = _limits(values) if limits is None else limits
        self.ax_ = _new_axes(values.shape) if ax is None else ax
        self.figure_ = figure_of(self.ax_)
        image = self.ax_.imshow(values, vmin=low, vmax=high, aspect="auto", interpolation="nearest")
        self.ax_.set(facecolor="#e6e6e6")
        self.ax_.spines[:].set_visible(False)
        self.ax_.tick_params(length=0)
        self.ax_.tick_params(axis="x", labelrotation=90)
        _name_spaces(self.ax_.set_yticks, self.ax_.axhline, self.matrix.labels)
        _name_spaces(self.ax_.set_xticks, self.ax_.axvline, self.matrix.columns)
        _write_values(self.ax_, image, values)
        self.colorbar_ = self.figure_.colorbar(
            image, ax=self.ax_, label=self.matrix.metric, extend=_beyond(values, low, high)
        )
        return self


def _new_axes(shape: tuple[int, ...]) -> Axes:
    """Axes in a new figure that pyplot does not know, with room for a number in each cell."""
    height, width = np.clip(0.55 * np.array(shape), 2.2, 7.15)
    figure = require("matplotlib.figure", "plot").Figure
    axes: Axes = figure((width + 2.0, height + 1.2), layout="constrained").subplots()
    return axes


def _limits(values: NDArray[np.float64]) -> tuple[float, float]:
    """Ends of the scale; never one point, which would have no colours between."""
    low = float(np.nanmin(values))
    return low, max(float(np.nanmax(values)), low + 0.01)


def _beyond(values: NDArray[np.float64], low: float, high: float) -> str:
    """Ends at which the scale goes on, as matplotlib calls them."""
    below, above = bool(np.nanmin(values) < low), bool(np.nanmax(values) > high)
    names = {(False, False): "neither", (True, False): "min", (False, True): "max"}
    return names.get((below, above), "both")


def _name_spaces(name: Callable[..., Any], part: Callable[..., Any], labels: Sequence[str]) -> None:
    """Write the names beside their rows or columns, or those of models beside all their layers."""
    if len(labels) <= _MOST_NAMED:
        name(range(len(labels)), labels)
        return
    models = [(model, len(list(layers))) for model, layers in groupby(labels, _model)]
    ends = np.cumsum([0, *(count for _, count in models)]) - 0.5
    middles = (ends[:-1] + ends[1:]) / 2
    step = -(-len(models) // _MOST_NAMED)
    name(middles[::step], [model for model, _ in models[::step]])
    if len(models) < len(labels):
        for end in ends[1:-1]:
            part(end, color="white", linewidth=0.5)


def _model(label: str) -> str:
    return label.rpartition(" / ")[0] or label


def _write_values(ax: Axes, image: AxesImage, values: NDArray[np.float64]) -> None:
    if max(values.shape) > MOST_NUMBERED:
        return
    dark = luminance(image.to_rgba(values)) < MIDDLE_GREY
    for row, column in np.argwhere(~np.isnan(values)):
        colour = "white" if dark[row, column] else "black"
        text = brief(float(values[row, column]), digits=2)
        ax.text(column, row, text, color=colour, ha="center", va="center", fontsize=8)
