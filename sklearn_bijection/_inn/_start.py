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
    resolve_shrinkage,
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
    held_out_errors,
    interleaved,
)
from ._map import NetworkMap
from ._pairs import RawPairs

#: Folds that the start is searched with. Where there are hardly more rows than columns a map made of two
#: thirds of them is far worse than that of all, so that more folds of fewer rows are left out then.
_N_FOLDS = 3
_N_FOLDS_OF_FEW = 10
_FEW_ROWS_PER_COLUMN = 3
_FOLD_ROWS_OF_FEW = 8
_HELD_OUT_ROWS = 600

#: Rows below which the start is the linear one, and the largest penalty then: a frame needs less than 1.
_LEAST_ROWS = 28
_LARGEST_SHRINKAGE = 1 - 1e-6

#: Standard errors by which gates must be better than the best linear start. That many, since the linear one
#: gains more from the rows that the folds leave out.
_N_STANDARD_ERRORS = 3.0

#: Widest pair that is judged on every fold, and for which the best linear start is searched for too: a
#: decomposition of 4,096 columns takes a minute, and all of that takes some thirty.
_SEARCHED_WIDTH = 1024


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
    """

    source: Standard
    target: Standard
    enter: tuple[NDArray[np.float64], NDArray[np.float64]]
    leave: tuple[NDArray[np.float64], NDArray[np.float64]]
    gates: list[GateStart]

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


class Found(NamedTuple):
    """Penalties of the two regressions, and settings of the gates: None where there are to be none."""

    shrinkage: tuple[float, float]
    settings: GateSettings | None


@dataclass(frozen=True, eq=False)
class Recipe:
    """What was found in some rows, to make the start of these and of parts of them.

    Parameters
    ----------
    raw : RawPairs
    moments : PairMoments
        Of all these rows.
    direction : str
    found : Found
    """

    raw: RawPairs
    moments: PairMoments
    direction: Direction
    found: Found

    def start(self, raw: RawPairs) -> Start:
        """Two ridge regressions of these rows, one each way, joined into one bijection.

        By gates, or where these do not help by the linear map of the frame.
        """
        whole = self.moments if raw is self.raw else _moments(raw, 1)[0]
        require_variance(whole)
        frame, settings = solve_frame(whole, self.found.shrinkage), self.found.settings
        # A part of the rows may have lost coordinates.
        if settings is None or frame.width < len(settings.offset):
            return _ungated(frame, self.direction)
        return _gated(frame, settings)


def gated_recipe(raw: RawPairs, direction: Direction) -> Recipe:
    """Search the penalties and the gates of a start.

    The penalties are cross-validated on the moments; the gates are fitted on rows that the frame of their
    fold has not seen. With too few rows for folds, and where gates do not help for sure, there are none.
    """
    folds = _folds(raw)
    whole = PairMoments.merge_all(folds)
    require_variance(whole)
    folds = tuple(fold.in_units(whole.x.unit, whole.y.unit) for fold in folds)
    return Recipe(raw, whole, direction, _search(raw, folds, direction))


def _moments(raw: RawPairs, n_folds: int) -> tuple[PairMoments, ...]:
    return fold_moments(raw.X, raw.y, raw.weight_of_all(), n_folds=n_folds)


def _wide(raw: RawPairs) -> bool:
    return bool(max(raw.X.shape[1], raw.y.shape[1]) > _SEARCHED_WIDTH)


def _folds(raw: RawPairs) -> tuple[PairMoments, ...]:
    """More of them where rows are few for the columns, if there is something to see in each."""
    width = max(raw.X.shape[1], raw.y.shape[1])
    n_folds = min(_N_FOLDS_OF_FEW, len(raw) // _FOLD_ROWS_OF_FEW)
    if n_folds > _N_FOLDS and len(raw) < _FEW_ROWS_PER_COLUMN * width and not _wide(raw):
        folds = _moments(raw, n_folds)
        if all(map(varies, folds)):
            return folds
    return _moments(raw, _N_FOLDS)


def _search(raw: RawPairs, folds: tuple[PairMoments, ...], direction: Direction) -> Found:
    """Penalties and gates, unless these are not surely better than the best linear start."""
    if len(raw) < _LEAST_ROWS or not all(map(varies, folds)):
        problem = CCAProblem.from_moments(PairMoments.merge_all(folds))
        intensities = resolve_shrinkage(folds, problem, "auto", direction=direction)[0]
        x, y = (min(intensity, _LARGEST_SHRINKAGE) for intensity in intensities)
        return Found((x, y), None)
    wide = _wide(raw)
    rests = all_but_one(folds)[: 1 if wide else None]
    problems = [CCAProblem.from_moments(rest) for rest in rests]
    swapped = tuple(fold.swap() for fold in folds)
    shrinkage = (
        ridge_shrinkage(folds, [problem.x for problem in problems]),
        ridge_shrinkage(swapped, [problem.y for problem in problems]),
    )
    if direction != "symmetric":
        return Found(shrinkage, None)
    both = shrinkage if wide else (choose_shrinkage(folds, problems=problems)[0],) * 2
    rows = _some_of_each_fold(raw, len(folds), len(rests))
    gated = _held_out(raw, rows, _frames(rests, problems, shrinkage))
    if not fit_for_gates(gated):
        return Found(both, None)
    linear = gated if wide else _held_out(raw, rows, _frames(rests, problems, both))
    settings = fit_gates(gated, len(raw))
    if _surely_less(held_out_errors(gated, settings), held_out_errors(linear, None)):
        return Found(shrinkage, settings)
    return Found(both, None)


def _surely_less(errors: NDArray[np.float64], others: NDArray[np.float64]) -> bool:
    """Whether errors are less than others of the same rows, by some standard errors of the difference."""
    gain = others - errors
    spread = np.std(gain, ddof=1) / np.sqrt(len(gain))
    return bool(np.mean(gain) > _N_STANDARD_ERRORS * spread)


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


def _some_of_each_fold(raw: RawPairs, n_folds: int, n_judged: int) -> list[NDArray[np.intp]]:
    """Places of at most `_HELD_OUT_ROWS` rows of the first folds, spread over all that take part."""
    most = _HELD_OUT_ROWS // n_judged
    rows = raw.rows[:: max(1, len(raw) // (4 * n_folds * most))]
    fold = fold_of(raw.X[rows], raw.y[rows], n_folds)
    members = [rows[fold == i] for i in range(n_judged)]
    return [
        some[np.linspace(0, len(some) - 1, min(len(some), most)).astype(int)] for some in members
    ]


def _gated(frame: CanonicalFrame, settings: GateSettings) -> Start:
    n_gates = len(settings.offset)
    order = interleaved(frame.width, n_gates)
    starts = settings.starts(groups_of(frame.width, n_gates), gain_of(frame, n_gates))
    return Start(
        frame.source,
        frame.target,
        (frame.x.there[:, order], frame.x.back[order]),
        (frame.y.back[order], frame.y.there[:, order]),
        starts,
    )


def _ungated(frame: CanonicalFrame, direction: Direction) -> Start:
    """The linear map of the frame: least squares one way, or the symmetric one."""
    level, least = frame.level, np.exp(-LARGEST_REACH)
    gain = (
        level
        * {
            "symmetric": np.ones(frame.width),
            "forward": np.maximum(frame.gain / level, least),
            "backward": 1 / np.maximum(frame.gain * level, least),
        }[direction]
    )
    return Start(
        frame.source,
        frame.target,
        (frame.x.there * gain, frame.x.back / gain[:, np.newaxis]),
        (frame.y.back, frame.y.there),
        [],
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
