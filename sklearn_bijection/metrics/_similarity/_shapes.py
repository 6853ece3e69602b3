"""Measures of shape: how near two representations come by the best rotation."""

from __future__ import annotations

from numpy.typing import ArrayLike

from ._measure import registered
from ._rotation import (
    ANGLE,
    DISTANCE,
    SIMILARITY,
    SQUARED_DISTANCE,
    Rotated,
    after_rotation,
    rotated,
)
from ._spaces import check_flag, check_real, check_spaces


def orthogonal_procrustes_similarity(X: ArrayLike, Y: ArrayLike) -> float:
    """Cosine between two representations after the best rotation or reflection.

    ``||X'Y||_* / (||X||_F ||Y||_F)`` for centred X and Y, where ``||.||_*`` is the nuclear norm, the sum
    of the singular values: the largest cosine between X R and Y over all orthogonal R [1]_.

    Parameters
    ----------
    X : array-like of shape (n_samples, width_x)
        A representation; one row per sample.
    Y : array-like of shape (n_samples, width_y)
        Another one of the same samples, row by row. The narrower one counts as if filled up with
        columns of zeros.

    Returns
    -------
    similarity : float
        Between 0 and 1; 1 when a rotation and one scale carry one space into the other.

    Raises
    ------
    ValueError
        If the numbers of rows differ, a value is not finite, or a space has no variance.

    Warns
    -----
    UserWarning
        If ``n_samples - 1`` is below twice the smaller rank. Rows paired at random have a mean
        similarity of up to ``sqrt(min(rank) / (n_samples - 1))``, less where few directions hold most of
        the variance.

    See Also
    --------
    procrustes_distance : The same as a distance.
    angular_shape_distance : The same as an angle.
    sklearn_bijection.ProcrustesAligner : The rotation itself.

    Notes
    -----
    Symmetric. Does not change under a shift, one scale, rotation or reflection of either space.

    Where ``n_samples > width_x + width_y`` the rows are read in blocks, so that a memory map is never in
    memory as a whole. The cost is ``n_samples width_x width_y`` products and one singular value
    decomposition of the smaller of widths and n_samples.

    References
    ----------
    .. [1] P. Schönemann, "A generalized solution of the orthogonal Procrustes problem",
       Psychometrika 31, 1966.

    Examples
    --------
    >>> from sklearn_bijection.metrics import orthogonal_procrustes_similarity
    >>> square = [[1, 1], [1, -1], [-1, -1], [-1, 1]] * 2
    >>> oblong = [[2, 1], [2, -1], [-2, -1], [-2, 1]] * 2
    >>> round(orthogonal_procrustes_similarity(square, oblong), 3)
    0.949
    """
    return after_rotation(*check_spaces(X, Y), _similarity())


def procrustes_distance(X: ArrayLike, Y: ArrayLike, *, squared: bool = False) -> float:
    """Euclidean distance of two representations of unit size after the best rotation or reflection.

    ``min ||X R - Y||_F`` over all orthogonal R, for X and Y centred and divided by their Frobenius norms.
    Its square is ``||X||_F² + ||Y||_F² - 2 ||X'Y||_* = 2 - 2 s``, where s is the
    `orthogonal_procrustes_similarity`.

    Parameters
    ----------
    X : array-like of shape (n_samples, width_x)
        A representation; one row per sample.
    Y : array-like of shape (n_samples, width_y)
        Another one of the same samples, row by row. The narrower one counts as if filled up with
        columns of zeros.
    squared : bool, default=False
        False gives the distance of Williams et al. [1]_, which obeys the triangle inequality; True gives
        its square, which Ding et al. [2]_ call the orthogonal Procrustes distance.

    Returns
    -------
    distance : float
        From 0, when a rotation and one scale carry one space into the other, to ``sqrt(2)``; from 0 to 2
        if squared.

    Raises
    ------
    ValueError
        If the numbers of rows differ, a value is not finite, or a space has no variance.

    Warns
    -----
    UserWarning
        If ``n_samples - 1`` is below twice the smaller rank, see `orthogonal_procrustes_similarity`.

    Notes
    -----
    Symmetric. Does not change under a shift, one scale, rotation or reflection of either space.

    A distance below 1e-7 is rounding: it is the root of a difference from 1. Cost and memory are those
    of `orthogonal_procrustes_similarity`. The disparity of ``scipy.spatial.procrustes``, where the scale is
    fitted too, is ``1 - s²``.

    References
    ----------
    .. [1] A. Williams, E. Kunz, S. Kornblith and S. Linderman, "Generalized shape metrics on neural
       representations", NeurIPS 2021.
    .. [2] F. Ding, J.-S. Denain and J. Steinhardt, "Grounding representation similarity through
       statistical testing", NeurIPS 2021.

    Examples
    --------
    >>> from sklearn_bijection.metrics import procrustes_distance
    >>> square = [[1, 1], [1, -1], [-1, -1], [-1, 1]] * 2
    >>> oblong = [[2, 1], [2, -1], [-2, -1], [-2, 1]] * 2
    >>> round(procrustes_distance(square, oblong), 3)
    0.320
    """
    return after_rotation(*check_spaces(X, Y), _distance(squared=squared))


def angular_shape_distance(X: ArrayLike, Y: ArrayLike, *, alpha: float = 1.0) -> float:
    """Angle between two representations after partial whitening and the best rotation or reflection.

    ``arccos max <f(X) R, f(Y)>_F / (||f(X)||_F ||f(Y)||_F)`` over all orthogonal R, with
    ``f(X) = X (alpha I + (1 - alpha) (X'X)^(-1/2))`` for centred X [1]_.

    Parameters
    ----------
    X : array-like of shape (n_samples, width_x)
        A representation; one row per sample.
    Y : array-like of shape (n_samples, width_y)
        Another one of the same samples, row by row. The narrower one counts as if filled up with
        columns of zeros.
    alpha : float, default=1.0
        From 0, where both spaces are whitened, to 1, where they are only rotated.

    Returns
    -------
    distance : float
        Between 0 and ``pi / 2``, in radians.

    Raises
    ------
    ValueError
        If the numbers of rows differ, a value is not finite, a space has no variance, or `alpha` is
        out of range.

    Warns
    -----
    UserWarning
        If ``n_samples - 1`` is below twice the smaller rank, see `orthogonal_procrustes_similarity`: with
        alpha below 1 the distance goes to 0 whatever the data.

    See Also
    --------
    mean_cca : With alpha 0 and equal ranks the distance is its arccosine.

    Notes
    -----
    A metric: symmetric, and it obeys the triangle inequality for every alpha. Does not change under a
    shift, rotation or reflection of either space. With ``alpha=1`` it does not change under a scale either,
    with ``alpha=0`` under no invertible linear map. In between, as published, the mixture weighs X in its
    own units against 1, so that the scale and the number of rows matter: bring the spaces to one scale first.

    The inverse root leaves out directions that are rounding. A distance below 1e-7 is rounding. Cost and
    memory are those of `orthogonal_procrustes_similarity` with ``alpha=1``, else those of `mean_cca`.

    References
    ----------
    .. [1] A. Williams, E. Kunz, S. Kornblith and S. Linderman, "Generalized shape metrics on neural
       representations", NeurIPS 2021.

    Examples
    --------
    >>> from sklearn_bijection.metrics import angular_shape_distance
    >>> square = [[1, 1], [1, -1], [-1, -1], [-1, 1]] * 2
    >>> oblong = [[2, 1], [2, -1], [-2, -1], [-2, 1]] * 2
    >>> [round(angular_shape_distance(square, oblong, alpha=alpha), 3) for alpha in (0, 0.5, 1)]
    [0.0, 0.263, 0.322]
    """
    measure = _angle(alpha=alpha)
    return after_rotation(*check_spaces(X, Y), measure)


@registered("orthogonal_procrustes_similarity")
def _similarity() -> Rotated:
    return rotated(SIMILARITY, 1.0)


@registered("procrustes_distance")
def _distance(*, squared: bool = False) -> Rotated:
    return rotated(SQUARED_DISTANCE if check_flag("squared", squared) else DISTANCE, 1.0)


@registered("angular_shape_distance")
def _angle(*, alpha: float = 1.0) -> Rotated:
    return rotated(ANGLE, check_real("alpha", alpha, 0.0, 1.0, "a number from 0 to 1"))
