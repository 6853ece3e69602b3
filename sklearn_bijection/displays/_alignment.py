"""Where an aligner sends rows, in the plane of the two widest directions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.utils import check_random_state

from ..metrics import r2
from ..metrics._pairs import Aligner, as_columns, as_pair, check_row_counts
from ._figure import (
    FORWARD,
    GREY,
    INVERSE,
    Direction,
    FigureDisplay,
    add_legend,
    figure_of,
    two_axes,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.transforms import Bbox, BboxBase

Array = NDArray[np.float64]

# Places for a label around its point, in points, with the side of the text that touches it.
_BESIDE = (((6, 0), "left"), ((-6, 0), "right"), ((0, 9), "center"), ((0, -9), "center"))
_SMALL: dict[str, Any] = {"fontsize": 8, "va": "center"}


class Plane(NamedTuple):
    """One space seen in the plane of its first two principal axes.

    `truth` and `guess` are of shape (n_samples, 2), `share` the part of the variance that each axis
    shows, `r2` that of the guess in the whole space.
    """

    truth: Array
    guess: Array
    share: Array
    r2: float


class AlignmentDisplay(FigureDisplay):
    """Rows of both spaces, and where the aligner puts their partners.

    Parameters
    ----------
    forward, inverse : Plane
        y space with ``transform(X)``, and X space with ``inverse_transform(y)``.
    shown : ndarray of int
        Rows whose pairs are joined by a line.
    labels : sequence of str, default=None
        A text for every row.

    Attributes
    ----------
    figure_ : matplotlib.figure.Figure
        The picture; ``figure_.savefig("alignment.png")`` writes it.
    axes_ : tuple of two matplotlib Axes
        y space on the left, X space on the right.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_bijection import ProcrustesAligner
    >>> from sklearn_bijection.displays import AlignmentDisplay
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> aligner = ProcrustesAligner().fit(X[:40], X[:40, ::-1])
    >>> display = AlignmentDisplay.from_aligner(aligner, X[40:], X[40:, ::-1])
    >>> display.axes_[0].get_title()
    'forward: transform(X) against y, R² = 1.000'
    """

    def __init__(
        self,
        forward: Plane,
        inverse: Plane,
        *,
        shown: NDArray[np.intp],
        labels: Sequence[str] | None = None,
    ) -> None:
        self.forward = forward
        self.inverse = inverse
        self.shown = shown
        self.labels = labels

    @classmethod
    def from_aligner(
        cls,
        aligner: Aligner,
        X: Any,
        y: Any,
        *,
        labels: Sequence[str] | None = None,
        n_lines: int = 60,
        random_state: int | np.random.RandomState | None = 0,
        axes: Sequence[Axes] | None = None,
    ) -> AlignmentDisplay:
        """Map rows both ways and draw them.

        Parameters
        ----------
        aligner : fitted object with `transform` and `inverse_transform`
            An aligner, or a Pipeline or grid search that ends in one.
        X : array-like of shape (n_samples, n_features)
            Rows in X space, best not those of the fit.
        y : array-like of shape (n_samples, n_targets) or (n_samples,)
            Their partners in y space.
        labels : sequence of str of length n_samples, default=None
            A text for every row. It is written where it overlaps no other.
        n_lines : int, default=60
            Number of pairs joined by a line, drawn at random; all rows where there are fewer.
        random_state : int, RandomState or None, default=0
            Draws those pairs.
        axes : sequence of two matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : AlignmentDisplay

        Raises
        ------
        ValueError
            If the numbers of rows or labels differ, or a side has no variance.
        """
        check_row_counts(X, y)
        forward = _plane(y, aligner.transform(X))
        inverse = _plane(X, aligner.inverse_transform(as_columns(y)))
        n_samples = len(forward.truth)
        if labels is not None and len(labels) != n_samples:
            raise ValueError(
                f"labels has {len(labels)} texts for {n_samples} rows. Pass one for every row."
            )
        shown = check_random_state(random_state).permutation(n_samples)[:n_lines]
        return cls(forward, inverse, shown=shown, labels=labels).plot(axes=axes)

    def plot(self, *, axes: Sequence[Axes] | None = None) -> AlignmentDisplay:
        """Draw y space on the left and X space on the right.

        Parameters
        ----------
        axes : sequence of two matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        self : AlignmentDisplay
        """
        self.axes_ = two_axes(axes, (10.5, 5.8))
        self.figure_ = figure_of(self.axes_[0])
        sides = ((self.forward, FORWARD), (self.inverse, INVERSE))
        for ax, (plane, way) in zip(self.axes_, sides, strict=True):
            _draw_plane(ax, plane, way, self.shown)
            first, second = (f"principal axis {i + 1} of {way.space}" for i in range(2))
            ax.set(
                title=f"{way.meaning}, R² = {plane.r2:.3f}",
                xlabel=f"{first} ({plane.share[0]:.0%} of the variance)",
                ylabel=f"{second} ({plane.share[1]:.0%} of the variance)",
            )
        add_legend(self.axes_, outside=axes is None)
        if self.labels is not None:
            self.figure_.draw_without_rendering()
            for ax, (plane, _) in zip(self.axes_, sides, strict=True):
                _write_labels(ax, plane, self.shown, self.labels)
        return self


def _plane(truth: Any, guess: Any) -> Plane:
    actual, predicted = as_pair(truth, guess)
    pca = PCA(min(2, *actual.shape), random_state=0).fit(actual)
    return Plane(
        truth=_padded(pca.transform(actual)),
        guess=_padded(pca.transform(predicted)),
        share=_padded(pca.explained_variance_ratio_[np.newaxis])[0],
        r2=r2(actual, predicted),
    )


def _padded(rows: Array) -> Array:
    """Return two columns: a space that has only one gets a column of zeros."""
    return np.pad(rows, ((0, 0), (0, 2 - rows.shape[1])))


def _draw_plane(ax: Axes, plane: Plane, way: Direction, shown: NDArray[np.intp]) -> None:
    truth, guess = plane.truth[shown], plane.guess[shown]
    ax.plot(*plane.truth.T, "o", color="#d4d4d4", ms=2.4, mew=0)
    # One broken line is drawn far faster than a line per pair.
    joined = np.stack([truth, guess, np.full_like(truth, np.nan)], axis=1).reshape(-1, 2)
    ax.plot(*joined.T, color=way.colour, lw=0.7, alpha=0.5)
    ax.plot(*truth.T, "o", mfc="white", mec="#444444", mew=0.9, ms=4.5, label="actual")
    ax.plot(*guess.T, way.marker, color=way.colour, mec="white", mew=0.4, ms=5, label=way.call)
    _frame(ax, plane.truth, guess)


def _frame(ax: Axes, truth: Array, guess: Array) -> None:
    """Show the square that holds the actual rows, and count the predictions that it misses."""
    low, high = truth.min(axis=0), truth.max(axis=0)
    middle, half = (low + high) / 2, 0.56 * float((high - low).max())
    ax.set(xlim=middle[0] + [-half, half], ylim=middle[1] + [-half, half], aspect="equal")
    ax.spines[:].set_color("#bbbbbb")
    ax.tick_params(color="#bbbbbb")
    missed = np.count_nonzero(np.abs(guess - middle).max(axis=1) > half)
    if missed:
        note = f"{missed} of {len(guess)} predictions lie outside"
        ax.text(0.02, 0.02, note, transform=ax.transAxes, color=GREY, fontsize=9)


def _write_labels(ax: Axes, plane: Plane, shown: NDArray[np.intp], labels: Sequence[str]) -> None:
    """Write labels beside the actual rows, each where it covers no point and no other label."""
    marks = ax.transData.transform(np.concatenate([plane.truth[shown], plane.guess[shown]]))
    taken = [text.get_window_extent() for text in ax.texts]
    for row in shown:
        for offset, side in _BESIDE:
            text = ax.annotate(
                labels[row], plane.truth[row], offset, textcoords="offset points", ha=side, **_SMALL
            )
            box = text.get_window_extent()
            if _is_free(box, ax.bbox, marks, taken):
                taken.append(box)
                break
            text.remove()


def _is_free(box: Bbox, frame: BboxBase, marks: Array, taken: list[Bbox]) -> bool:
    low, high = np.asarray(box.min), np.asarray(box.max)
    inside = frame.fully_contains(*low) and frame.fully_contains(*high)
    covers = ((marks > low - 2) & (marks < high + 2)).all(axis=1).any()
    return inside and not covers and not any(box.overlaps(other) for other in taken)
