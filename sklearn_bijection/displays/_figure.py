"""What the displays share: figures that leave pyplot alone, and colours that all eyes can part."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._compat import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class Direction(NamedTuple):
    """How one direction is drawn and called."""

    name: str
    call: str
    space: str
    colour: str
    marker: str

    @property
    def meaning(self) -> str:
        """What is compared with what."""
        return f"{self.name}: {self.call} against {self.space}"


# Blue and vermilion of the palette of Okabe and Ito, which colour-blind readers can tell apart.
FORWARD = Direction("forward", "transform(X)", "y", "#0072B2", "o")
INVERSE = Direction("inverse", "inverse_transform(y)", "X", "#D55E00", "D")
GREY = "#666666"

#: As many cells on a side as leave room for a number in each: a base model's layers and its embedding.
MOST_NUMBERED = 13
#: Luminance at which black and white text have the same contrast.
MIDDLE_GREY = 0.179


class FigureDisplay:
    """A drawn picture: `figure_`, its two `axes_`, and what a notebook shows."""

    figure_: Figure
    axes_: tuple[Axes, Axes]

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self.figure_.savefig(buffer, format="png", dpi=110)
        return buffer.getvalue()


def two_axes(
    axes: Sequence[Axes] | None, size: tuple[float, float], *, share_rows: bool = False
) -> tuple[Axes, Axes]:
    """Return the two axes given, or those of a new figure that pyplot does not know."""
    if axes is not None:
        if len(axes) != 2:
            raise ValueError(f"axes has {len(axes)} axes, but this draws two panels. Pass two.")
        return axes[0], axes[1]
    figure = require("matplotlib.figure", "plot").Figure(figsize=size, layout="constrained")
    left, right = figure.subplots(1, 2, sharey=share_rows)
    return left, right


def figure_of(ax: Axes) -> Figure:
    """Return the whole figure, also for axes in a part of it."""
    return ax.figure.figure


def brief(value: float, digits: int = 3) -> str:
    """Write a score beside its mark, with a proper minus sign."""
    form = f"z.{digits}f" if value > -10 else ",.0f" if value > -1e6 else ".1e"
    return f"{value:{form}}".replace("-", "\N{MINUS SIGN}")


def luminance(colours: NDArray[np.float64]) -> NDArray[np.float64]:
    """Relative luminance of sRGB colours, from 0 (black) to 1 (white)."""
    linear = np.where(colours <= 0.04045, colours / 12.92, ((colours + 0.055) / 1.055) ** 2.4)
    return np.asarray(linear[..., :3] @ [0.2126, 0.7152, 0.0722])


def add_legend(axes: Sequence[Axes], *, outside: bool) -> None:
    """Explain the marks once above the panels, or inside each of the axes that a caller brought."""
    if not outside:
        for ax in axes:
            ax.legend(fontsize=9)
        return
    handles = {
        label: handle
        for ax in axes
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)
    }
    figure_of(axes[0]).legend(
        handles.values(), handles.keys(), loc="outside upper center", ncols=3, frameon=False
    )
