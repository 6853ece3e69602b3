"""Coordinates of both spaces in which a ridge regression there and one back are both diagonal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._linalg import completed
from .._moments import PairMoments, ViewMoments
from ._cca import Array, Axes, CCAProblem


class Standard(NamedTuple):
    """How the rows of one view become coordinates of order 1.

    Parameters
    ----------
    mean : ndarray of shape (n_columns,)
    unit : float
        Root mean square standard deviation of the columns that vary.
    columns : ndarray of int of shape (n_live,)
        Columns that vary.
    """

    mean: Array
    unit: float
    columns: NDArray[np.intp]

    @classmethod
    def of(cls, view: ViewMoments, weight: float) -> Standard:
        """From the moments of the view."""
        columns = np.flatnonzero(view.squares > 0)
        unit = view.unit * float(np.sqrt(view.total / weight / max(len(columns), 1)))
        return cls(view.mean, unit, columns)

    def arrange(self, rows: NDArray[Any], width: int, dtype: Any = None) -> NDArray[Any]:
        """Coordinates of rows: centred, scaled, the columns that vary, and zeros up to `width`.

        Computed in float64 and returned as `dtype`, by default that of the rows.
        """
        coordinates = np.zeros((len(rows), width), dtype=dtype or rows.dtype)
        live = rows[:, self.columns].astype(np.float64, copy=False)
        coordinates[:, : len(self.columns)] = (live - self.mean[self.columns]) / self.unit
        return coordinates

    def restore(self, coordinates: NDArray[Any], dtype: Any = None) -> NDArray[Any]:
        """Rows of the view, in its own units, from coordinates."""
        rows = np.tile(self.mean, (len(coordinates), 1))
        rows[:, self.columns] += coordinates[:, : len(self.columns)].astype(np.float64) * self.unit
        return rows.astype(dtype or coordinates.dtype, copy=False)


@dataclass(frozen=True, eq=False)
class Basis:
    """A basis of the whole space, and the way back.

    Parameters
    ----------
    there : ndarray of shape (width, width)
        ``standard_rows[:, columns] @ there`` are the coordinates; missing columns are zeros.
    back : ndarray of shape (width, width)
        Its inverse.
    """

    there: Array
    back: Array


@dataclass(frozen=True, eq=False)
class CanonicalFrame:
    """Canonical coordinates of both views, completed to the whole of both spaces.

    Parameters
    ----------
    source, target : Standard
    x, y : Basis
        Whitened with shrinkage and turned so that the i-th coordinates belong together. Directions without
        a partner, without variance or without a column follow after the pairs.
    gain : ndarray of shape (width,)
        A ridge regression of y on x multiplies the coordinates of x by it to get those of y, and one of x on
        y the coordinates of y to get those of x. In [0, 1], zero beyond the pairs.
    level : float
        What CCA with the same intensities multiplies every coordinate of x by to get that of y; 1 where the
        two intensities are equal.
    """

    source: Standard
    target: Standard
    x: Basis
    y: Basis
    gain: Array
    level: float

    @property
    def width(self) -> int:
        """Number of coordinates: the larger number of columns that vary."""
        return len(self.gain)


def solve_frame(
    moments: PairMoments, shrinkage: tuple[float, float], problem: CCAProblem | None = None
) -> CanonicalFrame:
    """Whiten both views, take one SVD, and complete it.

    Parameters
    ----------
    moments : PairMoments
        Of rows that differ, in both views.
    shrinkage : pair of float
        Intensities for x and for y, each in [0, 1).
    problem : CCAProblem, default=None
        Made from the same moments, if it is there already.

    Returns
    -------
    frame : CanonicalFrame
    """
    problem = problem or CCAProblem.from_moments(moments)
    source, target = (Standard.of(view, moments.weight) for view in (moments.x, moments.y))
    width = max(len(source.columns), len(target.columns))
    U, rho, Vt = np.linalg.svd(problem.whitened(shrinkage))
    gain = np.zeros(width)
    gain[: len(rho)] = np.minimum(np.sqrt(np.prod(1 - np.array(shrinkage))) * rho, 1.0)
    return CanonicalFrame(
        source,
        target,
        _basis(problem.x, U, shrinkage[0], source, width),
        _basis(problem.y, Vt.T, shrinkage[1], target, width),
        gain,
        level=float(np.sqrt((1 - shrinkage[1]) / (1 - shrinkage[0]))),
    )


def _basis(axes: Axes, turn: Array, shrinkage: float, standard: Standard, width: int) -> Basis:
    # With the penalty in units of the variances themselves both regressions have the same gains.
    deviations = axes.deviations(shrinkage) / np.sqrt(1 - shrinkage)
    deviations *= axes.unit / standard.unit
    vectors = axes.vectors[standard.columns]
    there = vectors @ (turn / deviations[:, np.newaxis])
    back = (vectors @ (turn * deviations[:, np.newaxis])).T
    # A direction that the rows do not vary in is scaled like the least of those they do.
    return Basis(*completed(there, back, width, unit=float(deviations.min())))
