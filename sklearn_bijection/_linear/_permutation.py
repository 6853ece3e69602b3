"""One-to-one matching of coordinates as an aligner."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from .._compat import StrOptions, stacklevel_of_caller
from .._moments import PairMoments
from .._solvers import Direction, Matching, PermutationSolution, Scale, solve_permutation
from .._validation import DIRECTION
from ._streaming import MomentAligner, Moments, Solved

if TYPE_CHECKING:
    from .._flow import Invertible


class PermutationAligner(MomentAligner):
    """Align two spaces by pairing their coordinates one to one, with a positive scale for each pair.

    The Hungarian algorithm finds the matching of the greatest total score, and::

        transform(X)                          = (X - mean_x_)[:, permutation_] * scales_ + mean_y_
        inverse_transform(y)[:, permutation_] = (y - mean_y_) / scales_ + mean_x_[permutation_]

    Reordering and positive scales are what ReLU units allow without a change of the function that a network
    computes; with signs, they are what odd activations such as tanh allow (without the scales).

    Parameters
    ----------
    scale : {"positive"} or None, default="positive"
        A positive scale for each pair, or None: all are 1.
    signed : bool, default=False
        If True a coordinate may be matched with the negative of another one: scores are absolute values, and
        the scale takes the sign of the correlation.
    matching : {"correlation", "inner product"}, default="correlation"
        Score of a pair of coordinates: their correlation, whatever their units, or their covariance, in which
        coordinates of large variance count for more.
    direction : {"symmetric", "forward", "backward"}, default="symmetric"
        What the scales are fitted for: least squares to y, least squares back to X, or, symmetric, equal
        variance of both coordinates of a pair, which is its own mirror image.

    Attributes
    ----------
    map_ : AffineMap
        The fitted map, with `forward` and `inverse`. It holds no matrix; ``map_.there.coef`` makes one.
    permutation_ : ndarray of int of shape (n_targets,)
        Index of the X coordinate that is matched with each y coordinate, -1 for none: about the means,
        ``X[:, permutation_] * scales_`` is near y. For equal widths a permutation, whose inverse is
        ``np.argsort(permutation_)``.
    scales_ : ndarray of shape (n_targets,)
        Scale of each pair, with its sign; 0 where the image is the mean (see Notes).
    scores_ : ndarray of shape (n_targets,)
        Correlation of each pair, in [-1, 1]; 0 where the scale is.
    mean_x_ : ndarray of shape (n_features,)
    mean_y_ : ndarray of shape (n_targets,)
    n_features_in_ : int
    n_targets_ : int
    feature_names_in_, target_names_in_ : ndarray of str
        Where the array was a frame with string names.

    Warns
    -----
    UserWarning
        If a one-way direction meets pairs without a positive covariance, for which no positive scale is least
        squares. They take the symmetric one. With `signed` only pairs without any covariance are meant.
        Otherwise, if more than half of the pairs have a negative covariance: a positive scale carries each
        of their coordinates away from its partner.

    See Also
    --------
    ProcrustesAligner : A rotation and one scale.

    Notes
    -----
    *Exactness.* For equal widths both round trips are exact for every row, up to rounding: one way multiplies
    by the scales, the other divides by them. For unequal widths the narrower space is injected into the wider
    one, where coordinates without a partner are their mean: for n_features < n_targets,
    ``inverse_transform(transform(X)) == X``; for n_features > n_targets,
    ``transform(inverse_transform(y)) == y``; the other round trip is a projection.

    *Constant columns* have no correlation. They are matched last, with each other as far as they go, so that
    none takes a partner from a coordinate that varies. Whatever is matched with one is mapped to the mean,
    both ways: constants come back exactly in their own space and are ignored in the other. Their coordinates,
    and those that had to be matched with them, take no part in the round trip. Columns whose standard
    deviation is rounding beside the largest one of their space count as constant: 1.2e-7 of it for float32,
    2.2e-16 for float64. Units that have died in a network are of this kind. Bring columns whose units lie
    further apart to like ones beforehand.

    *What is least.* Without constant columns, symmetric scales and matching by correlation have the least
    sum of squared errors, each relative to the variance of its column, in both directions at once. For equal
    widths and ``scale=None``, matching by inner product is least squares among all (signed) permutations.

    *Scales.* With standard deviations sx, sy and correlation r they are ``r sy / sx`` forward,
    ``sy / (r sx)`` backward and ``sy / sx`` symmetric; with `signed`, r without its sign, which they take.

    *Ties.* They are broken by the order of the columns; the same arrays give the same matching.

    *Cost.* ``n p q`` multiplications for the moments and one assignment, at most ``O(min(p, q)² max(p, q))``
    and far less where partners stand out. Two arrays of p q numbers are held.

    References
    ----------
    Kuhn, "The Hungarian method for the assignment problem", Naval Research Logistics Quarterly 2 (1955).

    Li, Yosinski, Clune, Lipson and Hopcroft, "Convergent learning: do different neural networks learn the
    same representations?", ICLR (2016), for the matching of units by correlation.

    Godfrey, Brown, Emerson and Kvinge, "On the symmetries of deep learning models and their internal
    representations", NeurIPS (2022), for the maps that an activation allows.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_bijection import PermutationAligner
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> aligner = PermutationAligner().fit(X, X[:, [2, 0, 1]] * [1.0, 2.0, 3.0] + 5.0)
    >>> aligner.permutation_
    array([2, 0, 1])
    >>> aligner.scales_.round(6)
    array([1., 2., 3.])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "scale": [StrOptions({"positive"}), None],
        "signed": ["boolean"],
        "matching": [StrOptions({"correlation", "inner product"})],
        "direction": DIRECTION,
    }

    permutation_ = Solved("permutation")
    scales_ = Solved("scales")
    scores_ = Solved("scores")

    def __init__(
        self,
        *,
        scale: Scale | None = "positive",
        signed: bool = False,
        matching: Matching = "correlation",
        direction: Direction = "symmetric",
    ) -> None:
        self.scale = scale
        self.signed = signed
        self.matching = matching
        self.direction = direction

    def _diagonal_will_do(self, n_features: int, n_targets: int) -> bool:
        return True

    def _solve(self, whole: PairMoments, folds: Moments, **settings: Any) -> PermutationSolution:
        names = ("scale", "signed", "matching", "direction")
        solution = solve_permutation(whole, **{name: settings[name] for name in names})
        _warn_of_poor_pairs(solution, **settings)
        return solution

    def _as_module(self) -> Invertible:
        import torch

        from .._flow import MonomialModule

        ways = self.map_.there, self.map_.back
        pairs = ((way.index.clip(0), way.scale) for way in ways)
        parts = (*(way.centre for way in ways), *(part for pair in pairs for part in pair))
        return MonomialModule(*(torch.from_numpy(part.copy()) for part in parts))


def _warn_of_poor_pairs(
    solution: PermutationSolution, *, signed: bool, direction: Direction, **settings: Any
) -> None:
    n_pairs = int(np.count_nonzero(solution.scales))
    if solution.n_unscaled:
        kind, change = ("", "") if signed else ("positive ", ", or signed=True")
        _warn(
            f"{solution.n_unscaled} of {n_pairs} matched pairs have no {kind}covariance, so that no scale "
            f"fits them with direction={direction!r}: they take the symmetric one, the ratio of their "
            f"standard deviations. Pass direction='symmetric'{change}."
        )
    elif 2 * solution.n_opposed > n_pairs:
        _warn(
            f"{solution.n_opposed} of {n_pairs} matched pairs have a negative covariance, so that a positive "
            "scale carries each of their coordinates away from its partner. Pass signed=True."
        )


def _warn(message: str) -> None:
    warnings.warn(message, UserWarning, stacklevel=stacklevel_of_caller())
