"""Measures that see a representation up to the symmetries of a ReLU layer: units permuted and rescaled."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment
from sklearn.utils import gen_batches

from ._debiased import check_debiased
from ._gram import centred_vector
from ._measure import Array, Cosine, Prepared, compared, registered, settled
from ._spaces import Space, centred, check_flag, check_spaces

_BLOCK_ROWS = 64


def relu_procrustes(X: ArrayLike, Y: ArrayLike) -> float:
    """Similarity of two representations after the best one-to-one matching of their units.

    ``1 - min_P ||A P - B||_F / (2 sqrt(width))`` over all permutations P, where A and B are X and Y with
    every column divided by its Euclidean norm [1]_. For columns that are not zero this is
    ``1 - sqrt((1 - c) / 2)``, with c the mean cosine of the matched columns.

    Parameters
    ----------
    X : array-like of shape (n_samples, width_x)
        Activations of a layer, one column per unit.
    Y : array-like of shape (n_samples, width_y)
        Those of another layer for the same samples. The narrower one is filled up with units that are
        zero; ``width`` is the larger width.

    Returns
    -------
    similarity : float
        Between 0 and 1; 1 when the units of one are those of the other, permuted and rescaled. Between
        spaces of one width, one minus it is a metric, up to these symmetries.

    Raises
    ------
    ValueError
        If the numbers of rows differ, a value is not finite, or a space has no variance.

    See Also
    --------
    relu_cka : The same symmetries, through all pairs of samples.
    orthogonal_procrustes_similarity : Any rotation.
    sklearn_bijection.PermutationAligner : The matching itself.

    Notes
    -----
    Symmetric. Does not change when units are permuted and multiplied by positive numbers, which a ReLU
    layer and the next one can undo. It does under a rotation, and under a shift: columns are not centred,
    since the point where a ReLU switches is theirs.

    Activations after a ReLU are never negative, so that all cosines are: unrelated layers have values well
    above those of unrelated normal spaces. Compare with untrained networks. A unit that is always zero
    matches another such exactly, and a live one with cosine 0.

    Holds both spaces in float64. Cost is ``n_samples width²`` products, and an assignment of up to
    ``width³`` steps.

    References
    ----------
    .. [1] C. Godfrey, D. Brown, T. Emerson and H. Kvinge, "On the symmetries of deep learning models and
       their internal representations", NeurIPS 2022; the normalisation is that of the authors' code.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_bijection.metrics import relu_procrustes
    >>> X, Z = np.maximum(np.random.default_rng(0).normal(size=(2, 200, 16)), 0)
    >>> round(relu_procrustes(X, 3 * X[:, ::-1]), 2), round(relu_procrustes(X, Z), 2)
    (1.0, 0.45)
    """
    return compared(_relu_procrustes(), *check_spaces(X, Y))


def relu_cka(X: ArrayLike, Y: ArrayLike, *, debiased: bool = True) -> float:
    """Kernel alignment of two representations, with a kernel that sees units up to order and scale.

    The centred kernel alignment of ``K_ij = max_u a_iu a_ju``, where the columns of A are those of X,
    centred and divided by their Euclidean norm [1]_.

    Parameters
    ----------
    X : array-like of shape (n_samples, width_x)
        Activations of a layer, one column per unit.
    Y : array-like of shape (n_samples, width_y)
        Those of another layer for the same samples. The widths need not be equal.
    debiased : bool, default=True
        Whether inner products are replaced by their unbiased estimates, see `linear_cka`; that is what
        the authors do.

    Returns
    -------
    similarity : float
        Between -1 and 1, and about 0 for unrelated layers; not debiased it is above 0 as a rule. 1 when
        the units of one are those of the other, permuted and rescaled.

    Raises
    ------
    ValueError
        If the numbers of rows differ, a value is not finite, a space has no variance, or there are
        fewer than 4 rows to debias.

    See Also
    --------
    relu_procrustes : The same symmetries, by a matching of the units.
    linear_cka : Any rotation.

    Notes
    -----
    Symmetric. Does not change when units are permuted and multiplied by positive numbers, nor under a
    shift; nor when the sign of a unit is turned, which no ReLU allows. It does under a rotation. The
    kernel need not be positive, which the alignment does not ask for. A unit that is constant, up to
    the precision of the data, is a column of zeros.

    Cost is ``n_samples² (width_x + width_y) / 2`` products, not as a matrix product; holds two matrices
    of n_samples² floats of 8 bytes and both spaces in float64.

    References
    ----------
    .. [1] C. Godfrey, D. Brown, T. Emerson and H. Kvinge, "On the symmetries of deep learning models and
       their internal representations", NeurIPS 2022; centring and estimator are those of the authors'
       code.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_bijection.metrics import relu_cka
    >>> X, Z = np.maximum(np.random.default_rng(0).normal(size=(2, 200, 16)), 0)
    >>> round(relu_cka(X, 3 * X[:, ::-1]), 2), round(relu_cka(X, Z), 2)
    (1.0, 0.0)
    """
    return compared(_relu_cka(debiased=debiased), *check_spaces(X, Y))


@dataclass(frozen=True)
class _MaxKernel:
    """Unit vector of the centred matrix of largest products of two rows."""

    debiased: bool

    def __call__(self, X: Space) -> Array:
        check_debiased(len(X), self.debiased)
        space = centred(X, diagonal=True)
        live = ~space.view.constant_columns(len(X))
        return centred_vector(
            largest_products(unit_columns(space.rows * live)),
            debiased=self.debiased,
            what="the largest products of its rows are all equal",
        )


def largest_products(units: Array) -> Array:
    """Largest product of the entries of two rows, for all pairs of rows."""
    columns, n_samples = np.ascontiguousarray(units.T), len(units)
    largest = np.full((n_samples, n_samples), -np.inf)
    for block in gen_batches(n_samples, _BLOCK_ROWS):
        # Up to the diagonal, and in a buffer that stays in the cache from one unit to the next.
        below = largest[block, : block.stop]
        products = np.empty(below.shape)
        for column in columns:
            np.multiply(column[block, np.newaxis], column[: block.stop], out=products)
            np.maximum(below, products, out=below)
    symmetric: Array = np.maximum(largest, largest.T)
    return symmetric


@registered("relu_procrustes")
def _relu_procrustes() -> Prepared:
    return Prepared("relu_procrustes", _units, _matched)


@registered("relu_cka")
def _relu_cka(*, debiased: bool = True) -> Cosine:
    return Cosine("relu_cka", _MaxKernel(check_flag("debiased", debiased)))


def _units(X: Space) -> Array:
    # Only for its error about a space without variance.
    centred(X, diagonal=True)
    return unit_columns(X.astype(np.float64))


def unit_columns(columns: Array) -> Array:
    """Columns divided by their Euclidean norm; a column of zeros stays zero."""
    peak = np.abs(columns).max(axis=0)
    scaled = columns / np.where(peak > 0, peak, 1.0)
    norms = np.sqrt(np.einsum("ij,ij->j", scaled, scaled))
    units: Array = scaled / np.where(norms > 0, norms, 1.0)
    return units


def _matched(a: Array, b: Array) -> float:
    """One minus the distance of the units after the best matching, in shares of the largest possible."""
    width = max(a.shape[1], b.shape[1])
    cosines = np.zeros((width, width))
    cosines[: a.shape[1], : b.shape[1]] = a.T @ b
    shared = float(cosines[linear_sum_assignment(cosines, maximize=True)].sum())
    live = np.count_nonzero(a.any(axis=0)) + np.count_nonzero(b.any(axis=0))
    return 1 - sqrt(settled((live - 2 * shared) / (4 * width), 0.0, 1.0))
