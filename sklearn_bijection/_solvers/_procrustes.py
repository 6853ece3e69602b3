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
    c = _procrustes_scale(moments, R, direction) * units if scale else 1.0
    return ProcrustesSolution(AffineMap.about_means(x.mean, y.mean, R * c, R.T / c), R, c)


def _procrustes_scale(moments: PairMoments, R: Array, direction: Direction) -> float:
    """Scale in the units of the moments."""
    a, b = _carried(moments.x, R), _carried(moments.y, R.T)
    shared = float(np.vdot(R, moments.cross))
    return {"forward": shared / a, "symmetric": float(np.sqrt(b / a)), "backward": b / shared}[
        direction
    ]


def _carried(view: ViewMoments, frame: Array) -> float:
    """Scatter of a view along the columns of a (semi-)orthogonal `frame`."""
    if frame.shape[0] <= frame.shape[1]:
        return view.total
    return float(np.vdot(frame, view.scatter @ frame))
