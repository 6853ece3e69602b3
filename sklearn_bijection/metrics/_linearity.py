"""How much of a function an affine map explains, on rows that it was not fitted on."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._compat import check_sample_weight
from .._linalg import variance_explained
from .._moments import PairMoments, fold_moments, require_variance, varies
from .._solvers import oas_shrinkage, ridge_shrinkage
from .._solvers._cca import view_axes
from ._folds import splits
from ._pairs import as_floats, check_row_counts, unit_rows
from ._tables import aligned

Array = NDArray[np.float64]

#: Parts of the training rows on which the shrinkage is cross-validated.
_N_FOLDS = 3
#: Where the best constant is as near as this to every row, nothing is left to explain.
_NO_ROOM = 1e-12

_TABLE = {
    "R²": "r2",
    "gamma": "gamma",
    "cosine": "cosine",
    "cosine of the best constant": "baseline",
    "cone, mean cosine of two rows": "cone",
}


@dataclass(frozen=True)
class Linearity:
    """How far a function is affine: means over the splits, on the rows held out.

    ``print(found)`` shows a table.

    Attributes
    ----------
    r2 : float
        Share of the variance of y that the affine map explains, see `r2`. At most 1, and 0 for the
        mean, whatever the scale and the offset of y.
    gamma : float
        ``(cosine - baseline) / (1 - baseline)``: 1 where every prediction points the right way, 0 where
        they point no better than the best constant, below 0 where they point worse. NaN where all rows
        of y point one way.
    cosine : float
        Mean cosine of the rows of y and their predictions.
    baseline : float
        Mean cosine of the rows of y and the best constant, which is the mean direction of the rows
        fitted on.
    cone : float
        Mean cosine of two different rows of y. About the square of `baseline`.
    r2_splits, gamma_splits : tuple of float
        The first two for each split.
    shrinkage_splits : tuple of float
        How far the covariance of X was shrunk in each split.
    """

    r2: float
    gamma: float
    cosine: float
    baseline: float
    cone: float
    r2_splits: tuple[float, ...]
    gamma_splits: tuple[float, ...]
    shrinkage_splits: tuple[float, ...]

    @classmethod
    def of(cls, parts: list[Split]) -> Linearity:
        """Means over the splits."""
        columns = Split(*zip(*parts, strict=True))
        means = {name: float(np.mean(getattr(columns, name))) for name in _TABLE.values()}
        return cls(
            **means,
            r2_splits=columns.r2,
            gamma_splits=columns.gamma,
            shrinkage_splits=columns.shrinkage,
        )

    def __str__(self) -> str:
        n_splits = len(self.r2_splits)
        title = "1 split" if n_splits == 1 else f"mean of {n_splits} splits"
        rows = [[label, f"{getattr(self, name):z.3f}"] for label, name in _TABLE.items()]
        return "\n".join(aligned([["affine, on rows held out", title], *rows]))


class Split(NamedTuple):
    """What `linearity` finds on one split."""

    r2: Any
    gamma: Any
    cosine: Any
    baseline: Any
    cone: Any
    shrinkage: Any


def linearity(
    X: ArrayLike,
    y: ArrayLike,
    *,
    shrinkage: float | Literal["auto"] = "auto",
    cv: Any = 5,
    random_state: Any = 0,
    sample_weight: ArrayLike | None = None,
) -> Linearity:
    """Measure how well the best affine map explains y by X.

    Meant for ``y = f(X)``, a layer of a network or a part of it: what is missing to 1 is not linear. On
    each split the map is fitted by least squares, with the covariance of X shrunk as far as
    cross-validation on the training rows asks for, and judged on the rows held out.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features) or (n_samples,)
        What goes into the function.
    y : array-like of shape (n_samples, n_targets) or (n_samples,)
        What comes out, row by row.
    shrinkage : float or "auto", default="auto"
        Intensity s in [0, 1): ridge regression with the penalty ``s / (1 - s)`` times the mean variance
        of X. 0 is least squares. "auto" tries 41 values on three folds of the training rows.
    cv : int, splitter or iterable of (train, test) indices, default=5
        An int is the number of shuffled folds. Pass splits by group where rows are not independent, such
        as tokens of one text: ``GroupKFold(5).split(X, groups=text)``.
    random_state : int, RandomState or None, default=0
        Shuffles the folds of an int `cv`.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows, in the fit and in the scores; None weighs them alike.

    Returns
    -------
    found : Linearity
        With the fields `r2` and `gamma`, and what they are made of; prints as a table.

    Raises
    ------
    ValueError
        If the numbers of rows differ, a value is not finite, `shrinkage` is out of range, or X or y has no
        variance in a split.

    See Also
    --------
    r2, mean_cosine : The two measures, on predictions of any kind.

    Notes
    -----
    *Which to read.* `r2` depends neither on where the origin is nor on the scale. A cosine does: rows of
    hidden states lie in a narrow cone, where any constant points about the right way, and so `gamma`
    counts from there. With ``u_i`` the rows of y at unit length, the best constant reaches ``||mean u||``,
    the root of the cone and not the cone itself.

    *Residual connections.* Where y contains X, as in ``y = x + g(x)``, almost any g looks linear. Judge g,
    by passing ``y - X``.

    *Exactness.* An affine function of X has `r2` and `gamma` 1 up to rounding, with at least a few more
    training rows than the rank of X. With fewer rows than that every function looks less linear than
    it is.

    *Cost.* For each split ``n (p² + q² + 2 p q)`` multiplications for the moments, one eigen-decomposition of
    width p for each of the three folds of "auto", and one more.

    References
    ----------
    S. Zhao et al., "Of non-linearity and commutativity in BERT", 2021, arXiv 2101.04547. Their linearity
    score is `cosine`, of an approximator that is trained for it by gradient descent, where the map here is
    the closed-form one; their cone size is `cone`, and they correct the one for the other. `gamma` has the
    best constant in the place of the cone, so that a constant is worth 0.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_bijection.metrics import linearity
    >>> X = np.random.default_rng(0).normal(size=(500, 4))
    >>> print(linearity(X, 5.0 + np.maximum(X, 0)))
    affine, on rows held out       mean of 5 splits
    -----------------------------------------------
    R²                                        0.713
    gamma                                     0.694
    cosine                                    0.999
    cosine of the best constant               0.996
    cone, mean cosine of two rows             0.993
    """
    check_row_counts(X, y)
    _check_shrinkage(shrinkage)
    rows = Rows(as_floats(X, "X"), as_floats(y, "y"))
    if sample_weight is not None:
        rows = rows._replace(weight=_weights(sample_weight, rows.X))
    parts = [
        _judge(rows.take(train), rows.take(test), shrinkage, number)
        for number, (train, test) in enumerate(splits(cv, rows.X, rows.y, random_state))
    ]
    return Linearity.of(parts)


class Rows(NamedTuple):
    """Some pairs of rows, with their weights if they have any."""

    X: NDArray[Any]
    y: NDArray[Any]
    weight: Array | None = None

    def take(self, index: NDArray[np.intp]) -> Rows:
        """Those at some positions."""
        weight = None if self.weight is None else self.weight[index]
        return Rows(self.X[index], self.y[index], weight)


def _check_shrinkage(shrinkage: object) -> None:
    number = isinstance(shrinkage, Real) and not isinstance(shrinkage, bool)
    if shrinkage != "auto" and not (number and 0 <= shrinkage < 1):  # type: ignore[operator]
        raise ValueError(
            f"shrinkage={shrinkage!r} must be 'auto', or a number of at least 0 and below 1."
        )


def _weights(sample_weight: ArrayLike, X: NDArray[Any]) -> Array:
    weight = check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    return np.asarray(weight, dtype=np.float64)


def _judge(train: Rows, test: Rows, shrinkage: float | str, number: int) -> Split:
    try:
        fit = _Ridge.fit(train, shrinkage)
        guess = fit.predict(test.X)
        r2 = variance_explained(test.y, guess, test.weight)
    except ValueError as error:
        error.add_note(f"Raised on split {number}.")
        raise
    directions = unit_rows(np.asarray(test.y, dtype=np.float64))
    cosine = _mean_cosine(directions, unit_rows(guess), test.weight)
    baseline = _mean_cosine(directions, _best_constant(train), test.weight)
    room = 1 - baseline
    gamma = (cosine - baseline) / room if room > _NO_ROOM else np.nan
    return Split(r2, gamma, cosine, baseline, _cone(directions, test.weight), fit.shrinkage)


@dataclass(frozen=True, eq=False)
class _Ridge:
    """A ridge regression of y on X."""

    mean_x: Array
    mean_y: Array
    coef: Array
    shrinkage: float

    @classmethod
    def fit(cls, rows: Rows, shrinkage: float | str) -> _Ridge:
        folds = fold_moments(*rows, n_folds=_N_FOLDS if shrinkage == "auto" else 1)
        whole = PairMoments.merge_all(folds)
        require_variance(whole)
        axes = view_axes(whole.x, whole.weight)
        if shrinkage == "auto":
            few = not all(map(varies, folds))
            shrinkage = oas_shrinkage(axes, whole.weight) if few else ridge_shrinkage(folds)
        s = float(shrinkage)
        gain = (1 - s) / np.square(axes.deviations(s)) / whole.weight * whole.y.unit / whole.x.unit
        coef = (axes.vectors * gain) @ (axes.vectors.T @ whole.cross)
        return cls(whole.x.mean, whole.y.mean, coef, s)

    def predict(self, X: NDArray[Any]) -> Array:
        image: Array = (X - self.mean_x) @ self.coef + self.mean_y
        return image


def _best_constant(rows: Rows) -> Array:
    """The direction whose mean cosine with the rows of y is the greatest, as one row of unit length."""
    directions = unit_rows(np.asarray(rows.y, dtype=np.float64))
    return unit_rows(np.average(directions, axis=0, weights=rows.weight)[np.newaxis])


def _mean_cosine(directions: Array, others: Array, weight: Array | None) -> float:
    return float(np.average((directions * others).sum(axis=1), weights=weight))


def _cone(directions: Array, weight: Array | None) -> float:
    """Mean cosine over all pairs of two different rows."""
    weight = np.ones(len(directions)) if weight is None else weight
    total, square = weight @ directions, np.square(weight)
    own = square @ np.einsum("ij,ij->i", directions, directions)
    return float((total @ total - own) / (weight.sum() ** 2 - square.sum()))
