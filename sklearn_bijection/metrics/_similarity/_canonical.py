"""Measures of canonical correlations: mean CCA, SVCCA and PWCCA."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ._basis import Basis, Overlap, basis, streamed_overlap
from ._chance import too_few_for_correlations
from ._measure import Array, Prepared, compared, registered, settled, warn
from ._spaces import Space, centred, check_real, check_spaces, streams


def mean_cca(X: ArrayLike, Y: ArrayLike) -> float:
    """Mean canonical correlation of two representations.

    ``sum(rho) / min(rank(X), rank(Y))``, where the canonical correlations rho are the singular values
    of ``Qx' Qy`` for orthonormal bases Qx, Qy of the centred columns [1]_ [2]_.

    Parameters
    ----------
    X : array-like of shape (n_samples, width_x)
        A representation; one row per sample.
    Y : array-like of shape (n_samples, width_y)
        Another one of the same samples, row by row. The widths need not be equal.

    Returns
    -------
    similarity : float
        Between 0 and 1; 1 when the smaller of the two spans lies within the other.

    Raises
    ------
    ValueError
        If the numbers of rows differ, a value is not finite, or a space has no variance.

    Warns
    -----
    UserWarning
        If ``n_samples - 1`` is below twice the larger rank. The mean of rho² over rows paired at
        random is ``max(rank) / (n_samples - 1)``, and where the ranks add up to more than
        ``n_samples - 1`` some correlations are 1 whatever the data.

    See Also
    --------
    svcca : The same without the directions of least variance.
    pwcca : Weighs the correlations by how much of X they account for.

    Notes
    -----
    Symmetric. Does not change under a shift, scale, rotation or any invertible linear map of either
    space, whose weak directions count as much as the strong ones. The rank leaves out directions that
    are rounding: in float64 those below about 1e-7 of the strongest, as it is read from squares.

    Where ``n_samples > width_x + width_y`` the rows are read in blocks, twice, so that a memory map
    is never in memory as a whole; the cost is ``2 n_samples (width_x + width_y)²`` products.

    References
    ----------
    .. [1] H. Hotelling, "Relations between two sets of variates", Biometrika 28, 1936.
    .. [2] M. Raghu, J. Gilmer, J. Yosinski and J. Sohl-Dickstein, "SVCCA: singular vector canonical
       correlation analysis for deep learning dynamics and interpretability", NeurIPS 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_bijection.metrics import mean_cca
    >>> X = np.random.default_rng(0).normal(size=(500, 4))
    >>> Y = np.column_stack([X[:, :2], np.random.default_rng(1).normal(size=(500, 2))])
    >>> round(mean_cca(X, Y), 2)
    0.52
    """
    return _canonical(*check_spaces(X, Y), _mean_cca(), _mean, None)


def svcca(X: ArrayLike, Y: ArrayLike, *, explained_variance: float = 0.99) -> float:
    """Mean canonical correlation of the leading principal directions of two representations.

    Of each space only the fewest principal directions that explain the share `explained_variance` of
    its variance are kept; the value is the `mean_cca` of what is left [1]_.

    Parameters
    ----------
    X : array-like of shape (n_samples, width_x)
        A representation; one row per sample.
    Y : array-like of shape (n_samples, width_y)
        Another one of the same samples, row by row. The widths need not be equal.
    explained_variance : float, default=0.99
        Share of the variance of each space to keep, above 0 and up to 1, which keeps every direction
        that is not rounding, as `mean_cca` does.

    Returns
    -------
    similarity : float
        Between 0 and 1; the mean is over the smaller number of directions kept.

    Raises
    ------
    ValueError
        If the numbers of rows differ, a value is not finite, a space has no variance, or
        `explained_variance` is out of range.

    Warns
    -----
    UserWarning
        If ``n_samples - 1`` is below twice the larger number of directions kept, see `mean_cca`.

    See Also
    --------
    mean_cca : All directions.
    sklearn_bijection.CCAAligner : The map behind it, with ``explained_variance=0.99``.

    Notes
    -----
    Symmetric. Does not change under a shift, one scale or a rotation of either space. It does under
    other linear maps, which change what the leading directions are.

    Cost and memory are those of `mean_cca`.

    References
    ----------
    .. [1] M. Raghu, J. Gilmer, J. Yosinski and J. Sohl-Dickstein, "SVCCA: singular vector canonical
       correlation analysis for deep learning dynamics and interpretability", NeurIPS 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_bijection.metrics import svcca
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 4))
    >>> Y = X + 0.01 * rng.normal(size=(500, 4)) * [0, 0, 10, 100]
    >>> round(svcca(X, Y), 3)
    0.929
    """
    measure = _svcca(explained_variance=explained_variance)
    return _canonical(*check_spaces(X, Y), measure, _mean, explained_variance)


def pwcca(X: ArrayLike, Y: ArrayLike) -> float:
    """Mean canonical correlation, weighted by how much of `X` each canonical direction accounts for.

    ``sum(alpha * rho) / sum(alpha)`` with ``alpha_i = sum_j |<h_i, x_j>|``, where h_i are the canonical
    directions of X over the samples, of unit length, and x_j the centred columns of X [1]_.

    Parameters
    ----------
    X : array-like of shape (n_samples, width_x)
        The representation that weighs; one row per sample.
    Y : array-like of shape (n_samples, width_y)
        Another one of the same samples, row by row. The widths need not be equal.

    Returns
    -------
    similarity : float
        Between 0 and 1.

    Raises
    ------
    ValueError
        If the numbers of rows differ, a value is not finite, or a space has no variance.

    Warns
    -----
    UserWarning
        If ``n_samples - 1`` is below twice the larger rank, see `mean_cca`: the correlations, and with
        them their mean by whatever weights, come near 1 whatever the data.

    See Also
    --------
    mean_cca : All directions weigh the same.

    Notes
    -----
    Not symmetric: the first space weighs. (The authors' code lets the space of smaller rank weigh,
    whichever comes first.) Does not change under a shift or one scale of X, nor under a shift or any
    invertible linear map of Y, within the limits of `mean_cca`. It does change under a rotation of X,
    since the weights add up absolute values over its columns, and under a scale for each column.

    Where canonical correlations are equal, the directions are any basis of what they share, and the
    weights are not unique. Cost and memory are those of `mean_cca`.

    References
    ----------
    .. [1] A. Morcos, M. Raghu and S. Bengio, "Insights on representational similarity in neural
       networks with canonical correlation", NeurIPS 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_bijection.metrics import mean_cca, pwcca
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 4)) * [10, 10, 1, 1]
    >>> Y = np.column_stack([X[:, :2], rng.normal(size=(500, 2))])
    >>> round(mean_cca(X, Y), 3), round(pwcca(X, Y), 3), round(pwcca(Y, X), 3)
    (0.534, 0.921, 0.902)
    """
    return _canonical(*check_spaces(X, Y), _pwcca(), _weighted, None)


@dataclass(frozen=True, eq=False)
class _Weighing:
    """A basis, and how the columns of its space lie to it."""

    basis: Basis
    loadings: Array

    @classmethod
    def of(cls, X: Space) -> _Weighing:
        space = centred(X)
        own = Basis.of(space)
        return cls(own, own.scores.T @ space.unit_rows)


@registered("mean_cca")
def _mean_cca() -> Prepared:
    return Prepared("mean_cca", basis, _compare_means, caution=_caution)


@registered("svcca")
def _svcca(*, explained_variance: float = 0.99) -> Prepared:
    share = check_real("explained_variance", explained_variance, 0.0, 1.0, _SHARE)
    if not share:
        raise ValueError(f"explained_variance={explained_variance!r} is not {_SHARE}.")
    return Prepared("svcca", _Leading(share), _compare_means, caution=_caution)


@registered("pwcca")
def _pwcca() -> Prepared:
    return Prepared(
        "pwcca",
        _Weighing.of,
        lambda a, b: _weighted(a.basis.scores.T @ b.basis.scores, a.loadings),
        symmetric=False,
        caution=lambda a, b: _caution(a.basis, b.basis),
    )


_SHARE = "a share of the variance above 0 and up to 1"


@dataclass(frozen=True)
class _Leading:
    """Basis of the leading directions of a space."""

    explained_variance: float

    def __call__(self, X: Space) -> Basis:
        return basis(X, self.explained_variance)


def _canonical(
    X: Space,
    Y: Space,
    measure: Prepared,
    summarise: Callable[[Array, Array], float],
    explained_variance: float | None,
) -> float:
    if not streams(X, Y):
        return compared(measure, X, Y)
    found: Overlap = streamed_overlap(X, Y, explained_variance)
    warn(too_few_for_correlations(found.n_samples, *found.cross.shape))
    return summarise(found.cross, found.loadings)


def _compare_means(a: Basis, b: Basis) -> float:
    return _mean(a.scores.T @ b.scores)


def _mean(cross: Array, loadings: Array | None = None) -> float:
    return settled(float(np.linalg.svd(cross, compute_uv=False).mean()), 0.0, 1.0)


def _weighted(cross: Array, loadings: Array) -> float:
    directions, rho, _ = np.linalg.svd(cross, full_matrices=False)
    weights = np.abs(directions.T @ loadings).sum(axis=1)
    return settled(float(weights @ rho / weights.sum()), 0.0, 1.0)


def _caution(a: Basis, b: Basis) -> str | None:
    return too_few_for_correlations(a.n_samples, a.rank, b.rank)
