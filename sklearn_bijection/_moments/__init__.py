"""Paired moments: all that a closed form needs to know about the data, in memory that ignores n.

Moments are additive, so a fit can be streamed, merged and distributed. Everything is accumulated in
float64 about the mean; large squares are never subtracted from each other.
"""

from ._pair import MomentSum, PairMoments, Sums, ViewMoments, add_rows, fold_moments, moment_sums
from ._rows import row_hash

__all__ = [
    "MomentSum",
    "PairMoments",
    "Sums",
    "ViewMoments",
    "add_rows",
    "fold_moments",
    "moment_sums",
    "row_hash",
]
