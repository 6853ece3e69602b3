"""A comparison layer by layer as two heat maps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..metrics import LayerComparison
from ._figure import (
    FORWARD,
    INVERSE,
    MIDDLE_GREY,
    MOST_NUMBERED,
    FigureDisplay,
    brief,
    figure_of,
    luminance,
    two_axes,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage


class LayerDisplay(FigureDisplay):
    """Held-out R² of every pair of layers of two models, both ways.

    Parameters
    ----------
    comparison : LayerComparison
        What `metrics.compare_layers` returned.

    Attributes
    ----------
    figure_ : matplotlib.figure.Figure
        The picture; ``figure_.savefig("layers.png")`` writes it.
    axes_ : tuple of two matplotlib Axes
        Forward on the left, inverse on the right.
    colorbar_ : matplotlib.colorbar.Colorbar
        The scale that both share.

    See Also
    --------
    sklearn_bijection.metrics.compare_layers : Makes the comparison.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_bijection import ProcrustesAligner
    >>> from sklearn_bijection.displays import LayerDisplay
    >>> from sklearn_bijection.metrics import compare_layers
    >>> H = np.random.default_rng(0).normal(size=(2, 60, 3))
    >>> layers = compare_layers(H, H[:, :, ::-1], ProcrustesAligner(), pairs="same", progress=False)
    >>> display = LayerDisplay.from_comparison(layers)
    >>> [text.get_text() for text in display.axes_[0].texts]
    ['1.00', '1.00']
    """

    def __init__(self, comparison: LayerComparison) -> None:
        self.comparison = comparison

    @classmethod
    def from_comparison(
        cls,
        comparison: LayerComparison,
        *,
        lowest: float = -0.5,
        axes: Sequence[Axes] | None = None,
    ) -> LayerDisplay:
        """Draw a comparison.

        Parameters
        ----------
        comparison : LayerComparison
            What `metrics.compare_layers` returned.
        lowest : float, default=-0.5
            Where the colours end at the latest, see `plot`.
        axes : sequence of two matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : LayerDisplay
        """
        return cls(comparison).plot(lowest=lowest, axes=axes)

    def plot(self, *, lowest: float = -0.5, axes: Sequence[Axes] | None = None) -> LayerDisplay:
        """Draw the two heat maps on one scale of colours.

        Up to 13 layers on a side the mean is written into each cell. A pair that was not asked for
        is a grey cell.

        Parameters
        ----------
        lowest : float, default=-0.5
            Means below this have the colour of this one; the number in the cell is their own.
        axes : sequence of two matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        self : LayerDisplay
        """
        maps = (self.comparison.forward_mean, self.comparison.inverse_mean)
        self.axes_ = two_axes(axes, _size(*maps[0].shape))
        self.figure_ = figure_of(self.axes_[0])
        low, high = _limits(np.stack(maps), lowest)
        for ax, way, means in zip(self.axes_, (FORWARD, INVERSE), maps, strict=True):
            image = ax.imshow(means, vmin=low, vmax=high, aspect="auto")
            _finish(ax, image, means)
            ax.set_title(f"{way.name}, by {way.call.partition('(')[0]}")
        self.colorbar_ = self.figure_.colorbar(
            image,
            ax=self.axes_,
            label="R² on held-out rows",
            pad=0.02,
            aspect=30,
            extend="min" if np.nanmin(maps) < low else "neither",
        )
        return self


def _size(n_rows: int, n_columns: int) -> tuple[float, float]:
    """Width and height of a figure with cells wide enough for a number, within a page."""
    height, width = np.clip([0.55 * n_rows, 0.55 * n_columns], 2.2, 7.15)
    return 2 * float(width) + 2.3, float(height) + 0.9


def _limits(means: NDArray[np.float64], lowest: float) -> tuple[float, float]:
    """Ends of the scale; never one point, which would have no colours between."""
    low = max(lowest, float(np.nanmin(means)))
    return low, max(float(np.nanmax(means)), low + 0.01)


def _finish(ax: Axes, image: AxesImage, means: NDArray[np.float64]) -> None:
    """Number the layers, and write the means into their cells where there is room."""
    n_rows, n_columns = means.shape
    ax.set(xlabel="layer of the second model", ylabel="layer of the first model")
    ax.set(xticks=_ticks(n_columns), yticks=_ticks(n_rows), facecolor="#e6e6e6")
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    if max(means.shape) > MOST_NUMBERED:
        return
    dark = luminance(image.to_rgba(means)) < MIDDLE_GREY
    for row, column in np.argwhere(~np.isnan(means)):
        colour = "white" if dark[row, column] else "black"
        text = brief(float(means[row, column]), digits=2)
        ax.text(column, row, text, color=colour, ha="center", va="center", fontsize=8)


def _ticks(count: int) -> range:
    return range(0, count, -(-count // MOST_NUMBERED))
