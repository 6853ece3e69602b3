"""How much of a representation the best affine map from another one misses."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from ..._moments import PairMoments
from ._basis import Basis, about, block_moments, named_axes, pair_moments, whitening
from ._chance import too_few_for_regression
from ._measure import Array, Prepared, compared, registered, warn
from ._spaces import Space, centred, check_choice, check_spaces, streams

Direction = Literal["forward", "backward", "symmetric"]


def affine_alignment_error(
    X: ArrayLike, Y: ArrayLike, *, direction: Direction = "forward"
) -> float:
    """Error that the best affine map leaves between two representations, relative to their spread.

    ``min ||X W + b - Y||_F / ||Y - mean(Y)||_F`` over all W and b forward, the same with X and Y exchanged
    backward. It is the affine alignment of Chan et al. [1]_, ``inf_psi ||h - psi(g)||`` over affine maps psi
    of an encoder g, with the root mean square over the rows for the norm.

    Parameters
    ----------
    X : array-like of shape (n_samples, width_x)
        A representation; one row per sample.
    Y : array-like of shape (n_samples, width_y)
        Another one of the same samples, row by row. The widths need not be equal.
    direction : {"forward", "backward", "symmetric"}, default="forward"
        "forward" maps X to Y, "backward" Y to X. "symmetric" is the larger of both errors: it is 0 only
        if each space determines the other.

    Returns
    -------
    error : float
        Between 0, where the target is an affine function of the source, and 1, where the source says
        nothing about it. Its square is the share of variance missed, ``1 - R²``.

    Raises
    ------
    ValueError
        If the numbers of rows differ, a value is not finite, a space has no variance, or `direction` is
        not known.

    Warns
    -----
    UserWarning
        If ``n_samples - 1`` is below twice the rank of the source. Rows paired at random leave a mean
        squared error of ``1 - rank / (n_samples - 1)``, and none from ``rank + 1`` rows on down.

    See Also
    --------
    sklearn_bijection.CCAAligner : With ``direction="forward"`` and ``shrinkage=0`` it is this map.

    Notes
    -----
    Forward: does not change under a shift or any invertible linear map of X, nor under a shift, one scale,
    rotation or reflection of Y; it does under other linear maps of Y, whose strong directions count more.
    Directions of X that are rounding are left out: in float64 those below about 1e-7 of the strongest.

    Chan et al. take the supremum over all strings for the norm. Over the rows of a sample, and in units of
    the root mean square distance of the target from its mean, their error is not below this one, and not
    above the `max_row_error` of this map. The error is that of the rows fitted: on new rows it is larger.

    Where ``n_samples > width_x + width_y`` the rows are read in blocks, twice, so that a memory map is
    never in memory as a whole; the cost is ``n_samples (width_x + width_y)²`` products.

    References
    ----------
    .. [1] R. Chan, R. Boumasmoud, A. Svete, Y. Ren, Q. Guo, Z. Jin, S. Ravfogel, M. Sachan, B. Schölkopf,
       M. El-Assady and R. Cotterell, "On affine homotopy between language encoders", NeurIPS 2024.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_bijection.metrics import affine_alignment_error
    >>> X = np.random.default_rng(0).normal(size=(200, 4))
    >>> Y = X[:, :2] @ [[1, 2], [3, 4]] + 5
    >>> affine_alignment_error(X, Y) < 1e-14
    True
    >>> round(affine_alignment_error(X, Y, direction="backward"), 2)
    0.73
    """
    first, second = check_spaces(X, Y)
    measure = _affine(direction=direction)
    if not streams(first, second):
        return compared(measure, first, second)
    return _streamed(first, second, direction)


@dataclass(frozen=True, eq=False)
class Regressor:
    """A centred space of unit size, as source and as target.

    Parameters
    ----------
    basis : Basis
    rows : ndarray of shape (n_samples, width)
    """

    basis: Basis
    rows: Array

    @classmethod
    def of(cls, X: Space) -> Regressor:
        """From an array."""
        space = centred(X)
        return cls(Basis.of(space), space.unit_rows)

    def missed(self, target: Regressor) -> float:
        """Length of what is left of the target after regression on this space."""
        scores = self.basis.scores
        return float(np.linalg.norm(target.rows - scores @ (scores.T @ target.rows)))

    def caution(self) -> str | None:
        """What to say about this space as a source."""
        return too_few_for_regression(self.basis.n_samples, self.basis.rank)


@registered("affine_alignment_error")
def _affine(*, direction: str = "forward") -> Prepared:
    check_choice("direction", direction, get_args(Direction))

    def compare(a: Regressor, b: Regressor) -> float:
        return max(source.missed(target) for source, target in _ways(a, b, direction))

    def caution(a: Regressor, b: Regressor) -> str | None:
        told = (source.caution() for source, _ in _ways(a, b, direction))
        return next((text for text in told if text is not None), None)

    return Prepared(
        "affine_alignment_error",
        Regressor.of,
        compare,
        symmetric=direction == "symmetric",
        caution=caution,
    )


def _ways(a: Regressor, b: Regressor, direction: str) -> list[tuple[Regressor, Regressor]]:
    """Source and target of each regression."""
    ways = {"forward": [(a, b)], "backward": [(b, a)], "symmetric": [(a, b), (b, a)]}
    return ways[direction]


def _streamed(X: Space, Y: Space, direction: str) -> float:
    """Errors from one pass for the moments, and one over the residuals of the maps found."""
    moments = pair_moments(X, Y)
    errors = []
    if direction != "backward":
        errors.append(_streamed_error(X, Y, moments, "X"))
    if direction != "forward":
        errors.append(_streamed_error(Y, X, moments.swap(), "Y"))
    return max(errors)


def _streamed_error(source: Space, target: Space, moments: PairMoments, name: str) -> float:
    axes = named_axes(moments.x, moments.weight, name)
    warn(too_few_for_regression(moments.n_rows, axes.rank))
    white = whitening(axes, moments.weight)
    coef = white.T @ moments.cross

    def regress(x: Space, y: Space) -> tuple[Array, Array]:
        scores = about(moments.x, x) @ white
        return scores, about(moments.y, y) - scores @ coef

    left = block_moments(source, target, regress)
    # What the first pass rounded, the second finds in the residuals, where it is small.
    lower = np.linalg.cholesky(left.x.scatter * left.x.unit**2)
    found = np.square(np.linalg.solve(lower, left.cross * left.x.unit)).sum()
    missed = left.y.total - min(float(found), left.y.total)
    return sqrt(missed) * left.y.unit / sqrt(moments.y.total)
