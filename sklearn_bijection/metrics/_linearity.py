"""How much of a function an affine map explains, on rows that it was not fitted on."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._compat import check_sample_weight
from ._affine_fit import Array, Rows, Split, judge
from ._folds import Split as Indices
from ._folds import splits
from ._pairs import as_floats, check_row_counts
from ._tables import aligned

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
        Mean cosine of the rows of y and their predictions. Here and below rows of zeros are left out,
        which point nowhere.
    baseline : float
        Mean cosine of the rows of y and the best constant, which is the mean direction of the rows
        fitted on.
    cone : float
        Mean cosine of two different rows of y. About the square of `baseline`. NaN where a split has
        fewer than two rows that point anywhere.
    r2_splits, gamma_splits : tuple of float
        The first two for each split.
    shrinkage_splits : tuple of float
        How far the covariance of X was shrunk in each split, in [0, 1]. 1, which only the formula for
        few rows can give, predicts the mean alone.
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
        of X. 0 is least squares. "auto" tries 41 values on three folds of the training rows; where
        these are too few to vary in each, a formula decides.
    cv : int, splitter or iterable of (train, test) indices, default=5
        An int is the number of shuffled folds. Pass splits by group where rows are not independent, such
        as tokens of one text: ``GroupKFold(5).split(X, groups=text)``.
    random_state : int, RandomState or None, default=0
        Shuffles the folds of an int `cv`.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows, in the fit and in the scores; None weighs them alike. Only their ratios
        count, and a row of weight 0 is as if it were left out.

    Returns
    -------
    found : Linearity
        With the fields `r2` and `gamma`, and what they are made of; prints as a table.

    Raises
    ------
    ValueError
        If the numbers of rows differ, a value is not finite, `shrinkage` is out of range, `cv` gives no
        split, all weights are 0, or X or y has no variance in a split; a note says in which.

    See Also
    --------
    r2, mean_cosine : The two measures, on predictions of any kind.

    Notes
    -----
    *Which to read.* For a given `shrinkage`, `r2` depends neither on where the origin is nor on the scale;
    for "auto" see below. A cosine does: rows of
    hidden states lie in a narrow cone, where any constant points about the right way, and so `gamma`
    counts from there. With ``u_i`` the rows of y at unit length, the best constant reaches ``||mean u||``,
    the root of the cone and not the cone itself.

    *Residual connections.* Where y contains X, as in ``y = x + g(x)``, almost any g looks linear. Judge g,
    by passing ``y - X``.

    *The folds of "auto"* go by the values of the rows and not by their order, their text or the splits of
    `cv`. Equal rows share a fold, but near copies within a group do not, and favour too little shrinkage:
    pass a number where rows of one group are near copies. Another origin or scale cuts other folds, so
    that with few noisy rows another shrinkage may be chosen, and `r2` moves with it.

    *Exactness.* An affine function of X has `r2` and `gamma` 1 up to rounding, with at least a few more
    training rows than the rank of X. With fewer rows than that every function looks less linear than
    it is. Columns of X whose spread is less than about 1e-7 of the widest one's lie below what the
    covariance resolves, and count as constant: bring columns to one scale first.

    *Cost.* For each split ``n (p² + q² + 2 p q)`` multiplications for the moments, one eigen-decomposition of
    width p for each of the three folds of "auto", and one more.

    References
    ----------
    S. Zhao et al., "Of non-linearity and commutativity in BERT", 2021, arXiv 2101.04547. Their linearity
    score is `cosine`, of an approximator that is trained for it by gradient descent, where the map here is
    the closed-form one, which has the least squared error: theirs may reach a slightly greater cosine. Their
    cone size is `cone`, and they correct the one for the other. `gamma` has the best constant in the place
    of the cone, so that a constant is worth 0.

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
    _require_rows(X, y)
    _check_shrinkage(shrinkage)
    rows = Rows(as_floats(X, "X"), as_floats(y, "y"))
    if sample_weight is not None:
        rows = rows._replace(weight=_weights(sample_weight, rows.X))
    parts = [
        judge(rows.take(train), rows.take(test), shrinkage, number)
        for number, (train, test) in enumerate(_splits(cv, rows, random_state))
    ]
    return Linearity.of(parts)


def _check_shrinkage(shrinkage: object) -> None:
    number = isinstance(shrinkage, Real) and not isinstance(shrinkage, bool)
    if shrinkage != "auto" and not (number and 0 <= shrinkage < 1):  # type: ignore[operator]
        raise ValueError(
            f"shrinkage={shrinkage!r} must be 'auto', or a number of at least 0 and below 1."
        )


def _require_rows(X: ArrayLike, y: ArrayLike) -> None:
    for name, array in (("X", X), ("y", y)):
        if np.ndim(array) == 0:
            raise ValueError(f"{name}={array!r} is no array. Pass one with a row for each sample.")
    check_row_counts(X, y)


def _weights(sample_weight: ArrayLike, X: NDArray[Any]) -> Array:
    """Weights with a mean of 1 over the rows that have any."""
    if not np.any(sample_weight):
        raise ValueError("sample_weight is 0 for every row. Give some rows a weight above 0.")
    weight = check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    # Divided by the greatest first, for a sum of huge ones is not finite.
    weight = np.asarray(weight) / np.max(weight)
    scaled: Array = weight / weight[weight > 0].mean()
    return scaled


def _splits(cv: Any, rows: Rows, random_state: Any) -> list[Indices]:
    if hasattr(cv, "split") and "Group" in type(cv).__name__:
        raise ValueError(
            f"cv={cv!r} needs groups. Pass the splits that it makes: cv.split(X, groups=groups)."
        )
    found = splits(cv, rows.X, rows.y, random_state)
    if not found:
        raise ValueError(f"cv={cv!r} gives no split. Pass a number of folds, or some splits.")
    return found
