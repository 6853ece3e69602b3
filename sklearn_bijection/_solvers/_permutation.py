"""Coordinates matched one to one, with a scale and perhaps a sign for each pair."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from .._maps import AffineMap
from .._moments import PairMoments, ViewMoments
from ._cca import Array, Direction

Scale = Literal["positive"]
Matching = Literal["correlation", "inner product"]
Indices = NDArray[np.intp]
Live = tuple[NDArray[np.bool_], NDArray[np.bool_]]

_GAIN = {"forward": 1.0, "symmetric": 0.0, "backward": -1.0}


@dataclass(frozen=True, eq=False)
class PermutationSolution:
    """What `solve_permutation` finds; the arrays have an entry for each coordinate of y."""

    map: AffineMap
    permutation: Indices
    scales: Array
    scores: Array
    n_unscaled: int
    n_opposed: int


def solve_permutation(
    moments: PairMoments,
    *,
    scale: Scale | None = "positive",
    signed: bool = False,
    matching: Matching = "correlation",
    direction: Direction = "symmetric",
) -> PermutationSolution:
    """The one-to-one matching of coordinates of the greatest total score, and a scale for each pair.

    With the correlation r of a pair the scale is ``r^g sd_y / sd_x``, g being 1 forward, 0 symmetric and -1
    backward; with `signed` it is that of ``|r|``, times the sign of r.

    Parameters
    ----------
    moments : PairMoments
        The diagonals of the scatters are enough.
    scale : "positive" or None
        If None the scale is 1.
    signed : bool, default=False
        Whether a coordinate may be reversed.
    matching : {"correlation", "inner product"}
        Score of a pair: its correlation or its covariance; with `signed` the absolute value.
    direction : {"forward", "symmetric", "backward"}

    Returns
    -------
    solution : PermutationSolution
        `n_unscaled` counts the pairs without a positive covariance, which take the symmetric scale;
        `n_opposed` those of negative covariance whose scale is positive.

    References
    ----------
    Kuhn, "The Hungarian method for the assignment problem", Naval Research Logistics Quarterly 2 (1955).
    """
    x, y = moments.x, moments.y
    live = _live(x, moments.weight), _live(y, moments.weight)
    permutation = _match(moments, live, signed=signed, matching=matching)
    to = np.flatnonzero((permutation >= 0) & live[1] & live[0][permutation])
    found = permutation[to]
    norm_x, norm_y = np.sqrt(x.squares[found]), np.sqrt(y.squares[to])
    # Beyond 1 it is carried by rounding alone.
    r = np.clip(moments.cross[found, to] / norm_x / norm_y, -1.0, 1.0)
    rounding = moments.n_rows * np.finfo(float).eps
    scales, n_unscaled = np.ones(len(to)), 0
    if scale is not None:
        gain, n_unscaled = _gain(np.abs(r) if signed else r, rounding, direction)
        scales = norm_y / norm_x * (y.unit / x.unit) * gain
    if signed:
        scales[r < 0] *= -1
    every = _spread(to, scales, y.n_features)
    return PermutationSolution(
        map=AffineMap.of_pairs(x.mean, y.mean, np.where(every != 0, permutation, -1), every),
        permutation=permutation,
        scales=every,
        scores=_spread(to, r, y.n_features),
        n_unscaled=n_unscaled,
        n_opposed=0 if signed else int(np.count_nonzero(r < -rounding)),
    )


def _live(view: ViewMoments, weight: float) -> NDArray[np.bool_]:
    """Which coordinates vary by more than rounding, their own or that of the largest one of the view.

    A unit that has died is often not quite constant: it keeps a deviation of 1e-9 or 1e-32, which any
    scale would blow up to noise of the size of its partner.
    """
    precision = max(view.precision, float(np.finfo(float).eps))
    beside = view.squares > precision**2 * view.squares.max()
    live: NDArray[np.bool_] = beside & ~view.constant_columns(weight)
    return live


def _match(moments: PairMoments, live: Live, *, signed: bool, matching: Matching) -> Indices:
    """Index of the x coordinate matched with each y coordinate, -1 for none."""
    permutation = np.full(moments.y.n_features, -1, dtype=np.intp)
    rows, columns = map(np.flatnonzero, live)
    i, j = linear_sum_assignment(_costs(moments, live, signed=signed, matching=matching))
    permutation[columns[j]] = rows[i]
    # The rest is matched without a score, constants with each other as far as they go.
    left_x, left_y = _left_over(rows[i], live[0]), _left_over(columns[j], live[1])
    n_more = min(len(left_x), len(left_y))
    permutation[left_y[:n_more]] = left_x[:n_more]
    return permutation


def _costs(moments: PairMoments, live: Live, *, signed: bool, matching: Matching) -> Array:
    """Negated scores of the live coordinates of x, by row, with those of y: an array of its own."""
    # A copy of the whole would cost as much as the assignment.
    whole = live[0].all() and live[1].all()
    cross = moments.cross if whole else moments.cross[np.ix_(*live)]
    if matching == "correlation":
        norm_x, norm_y = (
            np.sqrt(view.squares[kept])
            for view, kept in zip((moments.x, moments.y), live, strict=True)
        )
        costs = cross * (-1 / norm_x)[:, np.newaxis]
        costs *= 1 / norm_y
    else:
        costs = -cross
    if signed:
        np.abs(costs, out=costs)
        np.negative(costs, out=costs)
    return costs


def _left_over(taken: Indices, live: NDArray[np.bool_]) -> Indices:
    """Coordinates that are not taken, the constant ones first."""
    left = np.setdiff1d(np.arange(len(live)), taken)
    return left[np.argsort(live[left], kind="stable")]


def _gain(r: Array, rounding: float, direction: Direction) -> tuple[Array, int]:
    """``r^g`` for the direction, 1 where r is not positive beyond rounding, and how many those are."""
    exponent = _GAIN[direction]
    positive = r > rounding
    gain: Array = np.where(positive, r, 1.0) ** exponent
    return gain, int(np.count_nonzero(~positive)) if exponent else 0


def _spread(to: Indices, values: Array, width: int) -> Array:
    """The values in their places, 0 elsewhere."""
    every = np.zeros(width)
    every[to] = values
    return every
