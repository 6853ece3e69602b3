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
from ._linearity import Linearity, linearity
from ._report import AlignmentReport, alignment_report
from ._retrieval import RetrievalScores, retrieval_scores
from ._scorers import forward_r2, inverse_r2, retrieval, symmetric_r2
from ._similarity import (
    affine_alignment_error,
    angular_shape_distance,
    linear_cka,
    mean_cca,
    mutual_knn,
    orthogonal_procrustes_similarity,
    procrustes_distance,
    pwcca,
    rbf_cka,
    relu_cka,
    relu_procrustes,
    rsa,
    svcca,
)
from ._similarity_matrix import SimilarityMatrix, similarity_matrix

__all__ = [
    "AlignmentReport",
    "Comparison",
    "LayerComparison",
    "Linearity",
    "RetrievalScores",
    "SimilarityMatrix",
    "SplitResult",
    "affine_alignment_error",
    "alignment_report",
    "angular_shape_distance",
    "compare_aligners",
    "compare_layers",
    "forward_r2",
    "inverse_r2",
    "inverse_roundtrip_error",
    "linear_cka",
    "linearity",
    "max_row_error",
    "mean_cca",
    "mean_cosine",
    "mse",
    "mutual_knn",
    "orthogonal_procrustes_similarity",
    "procrustes_distance",
    "pwcca",
    "r2",
    "rbf_cka",
    "relative_error",
    "relu_cka",
    "relu_procrustes",
    "retrieval",
    "retrieval_scores",
    "roundtrip_error",
    "rsa",
    "similarity_matrix",
    "svcca",
    "symmetric_r2",
]
