"""Numbers on alignments: errors both ways, round trips, retrieval, scorers, comparisons.

Everything here works on anything fitted that has `transform` and `inverse_transform`: an aligner, a
Pipeline that ends in one, a grid search.
"""

from ._compare import compare_aligners
from ._comparison import Comparison, SplitResult
from ._errors import (
    inverse_roundtrip_error,
    max_row_error,
    mean_cosine,
    mse,
    r2,
    relative_error,
    roundtrip_error,
)
from ._layer_comparison import LayerComparison
from ._layers import compare_layers
from ._report import AlignmentReport, alignment_report
from ._retrieval import RetrievalScores, retrieval_scores
from ._scorers import forward_r2, inverse_r2, retrieval, symmetric_r2

__all__ = [
    "AlignmentReport",
    "Comparison",
    "LayerComparison",
    "RetrievalScores",
    "SplitResult",
    "alignment_report",
    "compare_aligners",
    "compare_layers",
    "forward_r2",
    "inverse_r2",
    "inverse_roundtrip_error",
    "max_row_error",
    "mean_cosine",
    "mse",
    "r2",
    "relative_error",
    "retrieval",
    "retrieval_scores",
    "roundtrip_error",
    "symmetric_r2",
]
