"""Pictures in files: a comparison alone, or below what its best aligner does to new rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from .._compat import require
from ..displays import AlignmentDisplay, ComparisonDisplay
from ..metrics import Comparison
from ._writing import check_target, replacing

_DPI = 144


class HeldOut(NamedTuple):
    """A fitted aligner, and pairs that it has not seen with a text for each."""

    name: str
    aligner: Any
    X: Any
    y: Any
    texts: Sequence[str]


def check_picture(place: str) -> Path:
    """Find out before the work begins whether a picture can be written there."""
    canvas = require("matplotlib.figure", "plot").Figure().canvas
    return check_target(place, [f".{ending}" for ending in canvas.get_supported_filetypes()])


def draw_comparison(comparison: Comparison, target: Path) -> None:
    """Write a comparison as a picture."""
    _save(ComparisonDisplay.from_comparison(comparison).figure_, target)


def draw_both(comparison: Comparison, held_out: HeldOut, title: str, target: Path) -> None:
    """Write the two directions of one aligner above the scores of all."""
    below = 1.2 + 0.52 * len(comparison.names)
    figure = require("matplotlib.figure", "plot").Figure((10, 5.6 + below), layout="constrained")
    upper, (left, right) = figure.subplots(2, 2, height_ratios=[5.6, below])
    figure.suptitle(title, fontsize=13, fontweight="bold")
    figure.get_layout_engine().set(h_pad=0.1, w_pad=0.08)
    # The scores first: labels look for free places in axes that no longer move.
    ComparisonDisplay.from_comparison(comparison, axes=(left, right))
    right.tick_params(labelleft=False)
    _share_legend(figure, [left, right])
    AlignmentDisplay.from_aligner(
        held_out.aligner, held_out.X, held_out.y, labels=held_out.texts, axes=upper
    )
    for ax in upper:
        ax.get_legend().remove()
    for ax in figure.axes:
        ax.title.set_fontsize(11)
    _save(figure, target)


def _share_legend(figure: Any, axes: Sequence[Any]) -> None:
    """One legend below all panels in the place of one in each."""
    for ax in axes:
        ax.get_legend().remove()
    handles, labels = axes[0].get_legend_handles_labels()
    actual = require("matplotlib.lines", "plot").Line2D(
        [], [], ls="", marker="o", mfc="white", mec="#444444", label="actual row"
    )
    figure.legend(
        [actual, *handles],
        ["actual row", *labels],
        loc="outside lower center",
        ncols=3,
        frameon=False,
    )


def _save(figure: Any, target: Path) -> None:
    with replacing(target) as scratch:
        figure.savefig(scratch, dpi=_DPI)
