"""A cross-validated comparison as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..metrics import Comparison
from ._figure import (
    FORWARD,
    GREY,
    INVERSE,
    Direction,
    FigureDisplay,
    add_legend,
    brief,
    figure_of,
    two_axes,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LANE = 0.17


class ComparisonDisplay(FigureDisplay):
    """Held-out R² and retrieval of several aligners, both ways.

    Parameters
    ----------
    comparison : Comparison
        What `metrics.compare_aligners` returned.

    Attributes
    ----------
    figure_ : matplotlib.figure.Figure
        The picture; ``figure_.savefig("comparison.png")`` writes it.
    axes_ : tuple of two matplotlib Axes
        R² on the left, precision@1 on the right.

    See Also
    --------
    sklearn_bijection.metrics.compare_aligners : Makes the comparison.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_bijection import ProcrustesAligner
    >>> from sklearn_bijection.displays import ComparisonDisplay
    >>> from sklearn_bijection.metrics import compare_aligners
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> comparison = compare_aligners({"turn": ProcrustesAligner()}, X, X[:, ::-1], progress=False)
    >>> display = ComparisonDisplay.from_comparison(comparison)
    >>> [label.get_text() for label in display.axes_[0].get_yticklabels()]
    ['turn', 'mean', 'identity']
    """

    def __init__(self, comparison: Comparison) -> None:
        self.comparison = comparison

    @classmethod
    def from_comparison(
        cls,
        comparison: Comparison,
        *,
        lowest: float = -0.5,
        axes: Sequence[Axes] | None = None,
    ) -> ComparisonDisplay:
        """Draw a comparison.

        Parameters
        ----------
        comparison : Comparison
            What `metrics.compare_aligners` returned.
        lowest : float, default=-0.5
            Where the R² axis ends at the latest, see `plot`.
        axes : sequence of two matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : ComparisonDisplay
        """
        return cls(comparison).plot(lowest=lowest, axes=axes)

    def plot(
        self, *, lowest: float = -0.5, axes: Sequence[Axes] | None = None
    ) -> ComparisonDisplay:
        """Draw the two panels: a small dot per split, a large one at the mean.

        Parameters
        ----------
        lowest : float, default=-0.5
            R² below this is drawn as an arrow at the edge, with its value written beside it.
        axes : sequence of two matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        self : ComparisonDisplay
        """
        names = self.comparison.names
        self.axes_ = left, right = two_axes(axes, (10, 1.7 + 0.6 * len(names)), share_rows=True)
        self.figure_ = figure_of(left)
        self._panel(left, "r2", lowest)
        self._panel(right, "precision_at_1", 0.0)
        left.set(title="R² on held-out rows", xlabel="0 is the mean predictor, 1 is perfect")
        right.set(title="Precision@1 on held-out rows", xlabel="share that find their partner")
        right.set_xticks([tick for tick in right.get_xticks() if -0.01 < tick < 1.01])
        left.set_yticks(range(len(names)), names)
        add_legend(self.axes_, outside=axes is None)
        return self

    def _panel(self, ax: Axes, name: str, lowest: float) -> None:
        """One row per aligner, in it one lane per direction."""
        lanes = [
            (row + lane, way, np.array(self.comparison.values(aligner, f"{name}_{way.name}")))
            for row, aligner in enumerate(self.comparison.names)
            for way, lane in ((FORWARD, -_LANE), (INVERSE, _LANE))
        ]
        edges = _limits([values for _, _, values in lanes], lowest)
        for height, way, values in lanes:
            _draw_lane(ax, values, height, way, edges[0])
        for way in (FORWARD, INVERSE):
            ax.plot([], [], way.marker, color=way.colour, label=way.meaning)
        for row in range(0, len(self.comparison.names), 2):
            ax.axhspan(row - 0.5, row + 0.5, color="#f4f4f4", linewidth=0, zorder=-1)
        ax.axvline(0, color=GREY, linewidth=1, zorder=0)
        ax.set(xlim=edges, ylim=(len(self.comparison.names) - 0.5, -0.5), axisbelow=True)
        ax.grid(axis="x", color="#dddddd", linewidth=0.8)
        ax.tick_params(axis="y", length=0, pad=9)
        ax.spines[["top", "right", "left"]].set_visible(False)


def _limits(columns: list[NDArray[np.float64]], lowest: float) -> tuple[float, float]:
    """Return the ends of an axis that holds the means from `lowest` on, and room for their text."""
    low = min(0.0, max(lowest, min(float(values.mean()) for values in columns)))
    high = max(0.1, *(float(values.max()) for values in columns))
    return low - 0.08 * (high - low), high + 0.27 * (high - low)


def _draw_lane(
    ax: Axes, values: NDArray[np.float64], height: float, way: Direction, edge: float
) -> None:
    """Draw the splits of one aligner in one direction, or an arrow if their mean is off the axis."""
    mean, colour = float(values.mean()), way.colour
    if mean < edge:
        ax.plot(edge, height, "<", color=colour, markersize=8, clip_on=False)
        _write(ax, brief(mean), (edge, height), colour)
        return
    ax.plot(
        values, np.full(len(values), height), way.marker, color=colour, alpha=0.35, markersize=4
    )
    ax.plot([values.min(), values.max()], [height, height], color=colour, linewidth=1.5)
    ax.plot(mean, height, way.marker, color=colour, markersize=7, markeredgecolor="white")
    _write(ax, brief(mean), (float(values.max()), height), colour)


def _write(ax: Axes, text: str, place: tuple[float, float], colour: str) -> None:
    ax.annotate(
        text,
        place,
        (8, 0),
        textcoords="offset points",
        va="center",
        color=colour,
        fontsize=9,
    )
