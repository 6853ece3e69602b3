"""Orthogonal Procrustes: the rotation and the one scale that carry x nearest to y."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._linalg import polar_factor
from .._maps import AffineMap
from .._moments import PairMoments, ViewMoments
from ._cca import Array, Direction


@dataclass(frozen=True, eq=False)
class ProcrustesSolution:
    """What `solve_procrustes` finds."""

    map: AffineMap
    rotation: Array
    scale: float


def solve_procrustes(
    moments: PairMoments,
    *,
    scale: bool = True,
    allow_reflection: bool = True,
    direction: Direction = "symmetric",
) -> ProcrustesSolution:
    """The (semi-)orthogonal matrix and the one scale that carry x nearest to y.

    With ``Cxy = U S V'`` the rotation is ``R = U V'``. The variance that it carries is
    ``a = tr(R' Cxx R)`` on the side of x and ``b = tr(R Cyy R')`` on that of y; the scale is
    ``tr(R' Cxy) / a`` forward, ``b / tr(R' Cxy)`` backward and ``sqrt(b / a)`` symmetric. For equal
    widths a and b are the total variances.

    Parameters
    ----------
    moments : PairMoments
        For equal widths the diagonals of the scatters are enough.
    scale : bool, default=True
        If False the scale is 1.
    allow_reflection : bool, default=True
    direction : {"forward", "symmetric", "backward"}

    Returns
    -------
    solution : ProcrustesSolution

    References
    ----------
    Schönemann, "A generalized solution of the orthogonal Procrustes problem", Psychometrika 31 (1966).
    """
    x, y = moments.x, moments.y
    R = polar_factor(moments.cross, allow_reflection=allow_reflection)
    units = y.unit / x.unit
    there, back = _scales(moments, R, direction) if scale else (1 / units, units)
    there, back = there * units, back / units
    return ProcrustesSolution(
        AffineMap.about_means(x.mean, y.mean, R * there, R.T * back), R, there
    )


def _scales(moments: PairMoments, R: Array, direction: Direction) -> tuple[float, float]:
    """Scale there and back, in the units of the moments; both are 0 where there is nothing to carry."""
    a, b = _carried(moments.x, R), _carried(moments.y, R.T)
    shared = max(0.0, float(np.vdot(R, moments.cross)))
    if not (a and b and (shared or direction == "symmetric")):
        return 0.0, 0.0
    if direction == "symmetric":
        return float(np.sqrt(b / a)), float(np.sqrt(a / b))
    return (shared / a, a / shared) if direction == "forward" else (b / shared, shared / b)


def _carried(view: ViewMoments, frame: Array) -> float:
    """Scatter of a view along the columns of a (semi-)orthogonal `frame`."""
    if frame.shape[0] <= frame.shape[1]:
        return view.total
    return float(np.vdot(frame, view.scatter @ frame))
