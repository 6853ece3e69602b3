"""Paired moments: all that a closed form needs to know about the data, in memory that ignores n.

Moments are additive, so a fit can be streamed, merged and distributed. Everything is accumulated in
float64 about the mean; large squares are never subtracted from each other.
"""

from ._pair import MomentSum, PairMoments, fold_moments
from ._rows import fold_of, row_hash
from ._spaces import SpaceMoments, view_of
from ._variance import ConstantViewError, require_variance, varies
from ._view import ViewMoments

__all__ = [
    "ConstantViewError",
    "MomentSum",
    "PairMoments",
    "SpaceMoments",
    "ViewMoments",
    "fold_moments",
    "fold_of",
    "require_variance",
    "row_hash",
    "varies",
    "view_of",
]
