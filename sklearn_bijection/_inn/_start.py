"""Epoch zero: the closed form that the network starts from, as a core that does the same."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from .._flow import Architecture, Chain, GateCoupling, GateStart, Linear, groups_of
from .._linalg import completed
from .._maps import AffineMap
from .._moments import PairMoments, fold_moments, fold_of, require_variance, varies
from .._solvers import (
    CanonicalFrame,
    CCAProblem,
    Direction,
    Standard,
    all_but_one,
    choose_shrinkage,
    ridge_shrinkage,
    solve_frame,
)
from ._gates import (
    LARGEST_REACH,
    Fold,
    GateSettings,
    fit_for_gates,
    fit_gates,
    gain_of,
    interleaved,
    ungated_error,
)
from ._map import NetworkMap
from ._pairs import RawPairs

_N_FOLDS = 3
_HELD_OUT_ROWS = 600
_LEAST_FOLD_ROWS = 8

#: Widest pair that is judged on every fold, and for which the best linear start is searched for too: a
#: decomposition of 4,096 columns takes a minute, and all of that takes some thirty.
_SEARCHED_WIDTH = 1024

#: For rows too few to find a penalty by.
_BLIND_SHRINKAGE = (0.5, 0.5)


@dataclass(frozen=True, eq=False)
class Start:
    """Where training starts.

    Parameters
    ----------
    source, target : Standard
    enter, leave : pair of ndarray
        Matrix and inverse matrix of the linear layers before and after the gates.
    gates : list of GateStart
        Empty where the start is linear.
    recipe : Recipe or None
        How it was found, if anything was searched for.
    """

    source: Standard
    target: Standard
    enter: tuple[NDArray[np.float64], NDArray[np.float64]]
    leave: tuple[NDArray[np.float64], NDArray[np.float64]]
    gates: list[GateStart]
    recipe: Recipe | None = None

    @property
    def width(self) -> int:
        """Coordinates of the core."""
        return len(self.enter[0])

    def as_map(self, architecture: Architecture, device: str) -> NetworkMap:
        """The start as a network of this architecture, whose couplings say nothing yet."""
        fitting = replace(architecture, width=self.width, n_gates=len(self.gates))
        core = fitting.build()
        layers = core.layers
        layers["enter"] = _linear(self.enter)
        layers["leave"] = _linear(self.leave)
        if self.gates:
            groups = groups_of(self.width, len(self.gates))
            layers["gates"] = Chain(
                [GateCoupling(groups, i, start) for i, start in enumerate(self.gates)]
            )
        return NetworkMap(self.source, self.target, fitting, core, device)


def _linear(matrices: tuple[NDArray[np.float64], NDArray[np.float64]]) -> Linear:
    return Linear(*(torch.from_numpy(np.ascontiguousarray(matrix)) for matrix in matrices))


class Recipe(NamedTuple):
    """What a gated start was found by, to make another one with more of the same rows.

    Parameters
    ----------
    shrinkage : pair of float
    settings : GateSettings or None
        None where the start has no gates.
    """

    shrinkage: tuple[float, float]
    settings: GateSettings | None


def gated_start(raw: RawPairs, direction: Direction, recipe: Recipe | None = None) -> Start:
    """Two ridge regressions, one each way, joined by gates into one bijection.

    The penalties are cross-validated on the moments; the gates are fitted on rows that the frame of their
    fold has not seen. With too few rows for folds, and where gates do not help, the start is the linear
    map of the frame. With a `recipe` nothing is searched for again.
    """
    folds = fold_moments(raw.X, raw.y, raw.weight_of_all(), n_folds=_N_FOLDS)
    whole = PairMoments.merge_all(folds)
    require_variance(whole)
    if recipe is None:
        folds = tuple(fold.in_units(whole.x.unit, whole.y.unit) for fold in folds)
        recipe = _search(raw, folds, direction)
    frame = solve_frame(whole, recipe.shrinkage)
    return _ungated(frame, recipe, direction) if recipe.settings is None else _gated(frame, recipe)


def _search(raw: RawPairs, folds: tuple[PairMoments, ...], direction: Direction) -> Recipe:
    """Penalties and gates, unless the best linear start errs less on the same held-out rows."""
    if min(fold.n_rows for fold in folds) < _LEAST_FOLD_ROWS or not all(map(varies, folds)):
        return Recipe(_BLIND_SHRINKAGE, None)
    wide = max(raw.X.shape[1], raw.y.shape[1]) > _SEARCHED_WIDTH
    rests = all_but_one(folds)[: 1 if wide else _N_FOLDS]
    problems = [CCAProblem.from_moments(rest) for rest in rests]
    swapped = tuple(fold.swap() for fold in folds)
    shrinkage = (
        ridge_shrinkage(folds, [problem.x for problem in problems]),
        ridge_shrinkage(swapped, [problem.y for problem in problems]),
    )
    if direction != "symmetric":
        return Recipe(shrinkage, None)
    rows = _some_of_each_fold(raw, len(rests))
    gated = _held_out(raw, rows, _frames(rests, problems, shrinkage))
    if not fit_for_gates(gated):
        return Recipe(shrinkage, None)
    linear, both = gated, shrinkage
    if not wide:
        both = (choose_shrinkage(folds, problems=problems)[0],) * 2
        linear = _held_out(raw, rows, _frames(rests, problems, both))
    fitted = fit_gates(gated)
    if fitted.error < ungated_error(linear):
        return Recipe(shrinkage, fitted.settings)
    return Recipe(both, None)


def _frames(
    rests: list[PairMoments], problems: list[CCAProblem], shrinkage: tuple[float, float]
) -> list[CanonicalFrame]:
    """Frames of the rest of each fold."""
    return [solve_frame(r, shrinkage, p) for r, p in zip(rests, problems, strict=True)]


def _held_out(
    raw: RawPairs, rows_of_folds: list[NDArray[np.intp]], frames: list[CanonicalFrame]
) -> list[Fold]:
    """Some rows of each fold, in the coordinates of the frame that was made without them."""
    found = []
    for rows, frame in zip(rows_of_folds, frames, strict=True):
        x = frame.source.arrange(raw.X[rows], frame.width, np.float32)
        y = frame.target.arrange(raw.y[rows], frame.width, np.float32)
        weight = (raw.weight[rows] / raw.weight[rows].mean()).astype(np.float32)
        tensors = [torch.from_numpy(part) for part in (x, y, weight)]
        found.append(Fold(tensors[0], tensors[1], tensors[2], frame))
    return found


def _some_of_each_fold(raw: RawPairs, n_folds: int) -> list[NDArray[np.intp]]:
    """Places of at most `_HELD_OUT_ROWS` rows of the first folds, spread over all that take part."""
    most = _HELD_OUT_ROWS // n_folds
    step = max(1, len(raw) // (4 * _N_FOLDS * most))
    rows = raw.rows[::step]
    fold = fold_of(raw.X[rows], raw.y[rows], _N_FOLDS)
    return [rows[fold == i][:most] for i in range(n_folds)]


def _gated(frame: CanonicalFrame, recipe: Recipe) -> Start:
    settings = recipe.settings
    assert settings is not None
    n_gates = len(settings.offset)
    order = interleaved(frame.width, n_gates)
    starts = settings.starts(groups_of(frame.width, n_gates), gain_of(frame, n_gates))
    return Start(
        frame.source,
        frame.target,
        (frame.x.there[:, order], frame.x.back[order]),
        (frame.y.back[order], frame.y.there[:, order]),
        starts,
        recipe,
    )


def _ungated(frame: CanonicalFrame, recipe: Recipe, direction: Direction) -> Start:
    """The linear map of the frame: least squares one way, or the symmetric one."""
    least = np.maximum(frame.gain, np.exp(-LARGEST_REACH))
    gain = {
        "symmetric": np.ones(frame.width),
        "forward": least,
        "backward": 1 / least,
    }[direction]
    return Start(
        frame.source,
        frame.target,
        (frame.x.there * gain, frame.x.back / gain[:, np.newaxis]),
        (frame.y.back, frame.y.there),
        [],
        recipe,
    )


def affine_start(fitted: AffineMap, whole: PairMoments) -> Start:
    """The map of a fitted closed form, completed to a bijection of the whole of both spaces."""
    source, target = (Standard.of(view, whole.weight) for view in (whole.x, whole.y))
    width = max(len(source.columns), len(target.columns))
    units = target.unit / source.unit
    there = fitted.there.coef[np.ix_(source.columns, target.columns)] / units
    back = fitted.back.coef[np.ix_(target.columns, source.columns)] * units
    coef, inverse = _completed_map(there, back, width)
    eye = np.eye(width)
    return Start(source, target, (coef, inverse), (eye, eye), [])


def _completed_map(
    there: NDArray[np.float64], back: NDArray[np.float64], width: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """An invertible matrix that agrees with `there` and `back` on what these keep."""
    U, s, Vt = np.linalg.svd(there, full_matrices=False)
    rank = int((s > s.max(initial=0.0) * max(there.shape) * np.finfo(float).eps).sum())
    root = np.sqrt(s[:rank])
    # there = into @ out, through coordinates of the rank; back undoes either part.
    into, out = U[:, :rank] * root, Vt[:rank] * root[:, np.newaxis]
    from_x, from_y = out @ back, back @ into
    x, x_back = completed(into, from_x, width)
    y_back, y = completed(from_y, out, width)
    return x @ y, y_back @ x_back


def standard_start(whole: PairMoments) -> Start:
    """Centre and scale each view by one number, and nothing else: ``init=None``."""
    source, target = (Standard.of(view, whole.weight) for view in (whole.x, whole.y))
    eye = np.eye(max(len(source.columns), len(target.columns)))
    return Start(source, target, (eye, eye), (eye, eye), [])
