"""Orthogonal Procrustes as an aligner."""

from __future__ import annotations

from typing import Any, ClassVar

from .._moments import PairMoments
from .._solvers import Direction, ProcrustesSolution, solve_procrustes
from .._validation import DIRECTION
from ._streaming import MomentAligner, Moments, Solved


class ProcrustesAligner(MomentAligner):
    """Align two spaces by a rotation, one scale and a shift.

    With the cross-covariance ``Cxy = U S V'`` the rotation is ``R = U V'``, the orthogonal matrix that
    carries X nearest to y, and::

        transform(X)         = (X - mean_x_) @ R * scale_ + mean_y_
        inverse_transform(y) = (y - mean_y_) @ R' / scale_ + mean_x_

    Angles and ratios of distances are kept.

    Parameters
    ----------
    scale : bool, default=True
        Whether to fit the scale; if False it is 1.
    allow_reflection : bool, default=True
        If False and the widths are equal, R is a proper rotation, of determinant +1.
    direction : {"symmetric", "forward", "backward"}, default="symmetric"
        What the scale is fitted for: least squares to y, least squares back to X, or, symmetric, equal
        variance on both sides, which is its own mirror image.

    Attributes
    ----------
    map_ : AffineMap
        The fitted map, with `forward` and `inverse`.
    rotation_ : ndarray of shape (n_features, n_targets)
        ``X @ rotation_`` is in the space of y. Orthogonal; for unequal widths its rows or its columns are
        orthonormal, whichever are fewer.
    scale_ : float
    mean_x_ : ndarray of shape (n_features,)
    mean_y_ : ndarray of shape (n_targets,)
    n_features_in_ : int
    n_targets_ : int
    feature_names_in_, target_names_in_ : ndarray of str
        Where the array was a frame with string names.

    See Also
    --------
    CCAAligner : An affine map that also fits the covariances.

    Notes
    -----
    *Exactness.* For equal widths both round trips are exact for every row, also where the data span less
    than the space: null directions are matched with each other. For n_features < n_targets,
    ``inverse_transform(transform(X)) == X``; for n_features > n_targets,
    ``transform(inverse_transform(y)) == y``; the other round trip is a projection.

    *Scale.* With ``a = tr(R' Cxx R)``, ``b = tr(R Cyy R')`` and ``t = tr(R' Cxy)`` it is ``t / a`` forward,
    ``b / t`` backward and ``sqrt(b / a)`` symmetric. Where t is not positive, so that no rotation brings
    X any nearer to y, the forward and backward maps are the means, both ways.

    *Cost.* ``2 n p q`` multiplications for the moments of equal widths, then one singular value
    decomposition.

    References
    ----------
    Schönemann, "A generalized solution of the orthogonal Procrustes problem", Psychometrika 31 (1966).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_bijection import ProcrustesAligner
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(50, 3))
    >>> Q, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    >>> aligner = ProcrustesAligner().fit(X, 2.0 * X @ Q + 5.0)
    >>> round(aligner.scale_, 6)
    2.0
    >>> bool(np.allclose(aligner.rotation_, Q))
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "scale": ["boolean"],
        "allow_reflection": ["boolean"],
        "direction": DIRECTION,
    }

    rotation_ = Solved("rotation")
    scale_ = Solved("scale")

    def __init__(
        self,
        *,
        scale: bool = True,
        allow_reflection: bool = True,
        direction: Direction = "symmetric",
    ) -> None:
        self.scale = scale
        self.allow_reflection = allow_reflection
        self.direction = direction

    def _diagonal_will_do(self, n_features: int, n_targets: int) -> bool:
        return n_features == n_targets

    def _solve(self, whole: PairMoments, folds: Moments, **settings: Any) -> ProcrustesSolution:
        names = ("scale", "allow_reflection", "direction")
        return solve_procrustes(whole, **{name: settings[name] for name in names})
