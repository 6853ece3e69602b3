"""Centred kernel alignment: linear and RBF, plain and debiased."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import ArrayLike

from ._basis import pair_moments
from ._debiased import UNBIASED_NOTHING, check_debiased, streamed_debiased_cka
from ._gram import centred_vector, gram, lower_triangle, squared_distances
from ._measure import Array, Cosine, UnfitError, compared, registered, settled
from ._spaces import Space, centred, check_flag, check_real, check_spaces, streams


def linear_cka(X: ArrayLike, Y: ArrayLike, *, debiased: bool = False) -> float:
    """Centred kernel alignment of two representations, with the linear kernel.

    ``||X'Y||_F² / (||X'X||_F ||Y'Y||_F)`` for centred X and Y, which is the cosine between the Gram
    matrices ``X X'`` and ``Y Y'`` [1]_. Debiased, each inner product of Gram matrices is replaced by its
    unbiased estimate [2]_ [3]_::

        HSIC(K, L) = <K~, L~> / (n (n - 3))
        K~_ij = K_ij - (r_i + r_j) / (n - 2) + sum(r) / ((n - 1) (n - 2)) for i != j, else 0

    with r the sums of the rows of K without its diagonal.

    Parameters
    ----------
    X : array-like of shape (n_samples, width_x)
        A representation; one row per sample.
    Y : array-like of shape (n_samples, width_y)
        Another one of the same samples, row by row. The widths need not be equal.
    debiased : bool, default=False
        Whether unrelated spaces have 0 as their expected value, however few the rows are.

    Returns
    -------
    similarity : float
        Between 0 and 1; 1 when one scale and a rotation carry one space into the other. Debiased it is
        between -1 and 1, and about 0 for unrelated spaces.

    Raises
    ------
    ValueError
        If the numbers of rows differ, a value is not finite, a space has no variance, or there are
        fewer than 4 rows to debias. Debiased also if all rows of a space but one are equal, or its Gram
        matrix is zero without its bias for another reason.

    See Also
    --------
    rbf_cka : With a kernel that sees near rows only.
    similarity_matrix : Many spaces at once, faster.

    Notes
    -----
    Symmetric. Does not change under a shift, one scale, rotation or reflection of either space; it
    changes under other linear maps, since strong directions weigh more.

    With few rows and wide spaces the plain value is high whatever the data: 200 rows of two unrelated
    normal spaces of width 800 have 0.80, and 0.00 debiased. No warning is given; debias.

    Where ``n_samples > width_x + width_y`` the value comes from moments, and the rows are read in blocks
    (twice when debiased), so that a memory map is never in memory as a whole:
    ``n_samples (width_x + width_y)²`` products. Otherwise two Gram matrices of n_samples² floats of
    8 bytes are held. Debiased, where a few rows are so large that moments cannot tell the rest, blocks of
    the Gram matrices are made one by one: ``n_samples² (width_x + width_y)`` products.

    References
    ----------
    .. [1] S. Kornblith, M. Norouzi, H. Lee and G. Hinton, "Similarity of neural network representations
       revisited", ICML 2019.
    .. [2] L. Song, A. Smola, A. Gretton, J. Bedo and K. Borgwardt, "Feature selection via dependence
       maximization", Journal of Machine Learning Research 13, 2012.
    .. [3] T. Nguyen, M. Raghu and S. Kornblith, "Do wide and deep networks learn the same things?",
       ICLR 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_bijection.metrics import linear_cka
    >>> X, Y = np.random.default_rng(0).normal(size=(2, 50, 100))
    >>> round(linear_cka(X, Y), 2), round(linear_cka(X, Y, debiased=True), 2)
    (0.65, -0.05)
    """
    first, second = check_spaces(X, Y)
    measure = _linear_cka(debiased=debiased)
    if not streams(first, second):
        return compared(measure, first, second)
    return streamed_debiased_cka(first, second) if debiased else _from_moments(first, second)


def rbf_cka(X: ArrayLike, Y: ArrayLike, *, bandwidth: float = 1.0, debiased: bool = False) -> float:
    """Centred kernel alignment of two representations, with a Gaussian kernel.

    The cosine between the centred matrices of ``K_ij = exp(-||x_i - x_j||² / (2 sigma²))``, where sigma is
    `bandwidth` times the median distance between two different rows [1]_.

    Parameters
    ----------
    X : array-like of shape (n_samples, width_x)
        A representation; one row per sample.
    Y : array-like of shape (n_samples, width_y)
        Another one of the same samples, row by row. The widths need not be equal.
    bandwidth : float, default=1.0
        Width of the kernel as a fraction of the median distance, above 0. The smaller it is, the more
        only near rows count; as it grows, the value comes near `linear_cka`.
    debiased : bool, default=False
        Whether unrelated spaces have 0 as their expected value, see `linear_cka`.

    Returns
    -------
    similarity : float
        Between 0 and 1; debiased between -1 and 1, and about 0 for unrelated spaces.

    Raises
    ------
    ValueError
        If the numbers of rows differ, a value is not finite, a space has no variance, `bandwidth` is
        not above 0, more than half of the pairs of rows are equal, or there are fewer than 4 rows to
        debias.

    See Also
    --------
    linear_cka : Without a bandwidth, and without matrices of all pairs of rows.

    Notes
    -----
    Symmetric. Does not change under a shift, one scale, rotation or reflection of either space.

    With a small bandwidth every row is similar to itself only, in whatever space: the plain value goes
    to 1, and the debiased one means little. The median is over pairs of different rows; where code
    counts the distance of each row to itself too, its sigma is a little smaller.

    Holds matrices of n_samples² floats of 8 bytes, four at the peak. Cost is
    ``n_samples² (width_x + width_y)`` products.

    References
    ----------
    .. [1] S. Kornblith, M. Norouzi, H. Lee and G. Hinton, "Similarity of neural network representations
       revisited", ICML 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_bijection.metrics import linear_cka, rbf_cka
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> Y = np.abs(X)
    >>> round(linear_cka(X, Y), 2), round(rbf_cka(X, Y, bandwidth=0.5), 2)
    (0.02, 0.42)
    """
    return compared(_rbf_cka(bandwidth=bandwidth, debiased=debiased), *check_spaces(X, Y))


@dataclass(frozen=True)
class _Linear:
    """Unit vector of the centred Gram matrix of a space."""

    debiased: bool

    def __call__(self, X: Space) -> Array:
        check_debiased(len(X), self.debiased)
        return centred_vector(gram(X), debiased=self.debiased, what=UNBIASED_NOTHING)


@dataclass(frozen=True)
class _Gaussian:
    """Unit vector of the centred matrix of Gaussian similarities of a space."""

    bandwidth: float
    debiased: bool

    def __call__(self, X: Space) -> Array:
        check_debiased(len(X), self.debiased)
        similarity, _ = squared_distances(centred(X, diagonal=True).unit_rows)
        median = float(np.median(np.sqrt(lower_triangle(similarity))))
        if not median > 0:
            raise UnfitError(
                "has a median distance of 0: more than half of its pairs of rows are equal. Leave out "
                "the repeated rows."
            )
        similarity /= -2 * (min(max(self.bandwidth, _NARROWEST), _WIDEST) * median) ** 2
        # The matrix less one, which centring takes off: in a wide kernel all else is in the last digits.
        (np.expm1 if self.bandwidth > 1 else np.exp)(similarity, out=similarity)
        return centred_vector(
            similarity,
            debiased=self.debiased,
            what=f"with bandwidth={self.bandwidth!r} no two rows are similar",
        )


@registered("linear_cka")
def _linear_cka(*, debiased: bool = False) -> Cosine:
    return Cosine("linear_cka", _Linear(check_flag("debiased", debiased)))


@registered("rbf_cka")
def _rbf_cka(*, bandwidth: float = 1.0, debiased: bool = False) -> Cosine:
    width = check_real("bandwidth", bandwidth, 0.0, np.inf, _BANDWIDTH)
    if not 0 < width < np.inf:
        raise ValueError(f"bandwidth={bandwidth!r} is not {_BANDWIDTH}.")
    return Cosine("rbf_cka", _Gaussian(width, check_flag("debiased", debiased)))


# Beyond these the value stays the same to the last digit.
_NARROWEST, _WIDEST = 1e-100, 1e100
_BANDWIDTH = "a finite number above 0, a fraction of the median distance"


def _from_moments(X: Space, Y: Space) -> float:
    moments = pair_moments(X, Y)
    x, y = moments.x, moments.y
    cross = moments.cross / np.sqrt(x.total) / np.sqrt(y.total)
    sizes = (float(np.linalg.norm(view.scatter / view.total)) for view in (x, y))
    return settled(float(np.square(cross).sum()) / prod(sizes), 0.0, 1.0)
