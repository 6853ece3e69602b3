"""Similarity of two representations of the same samples, measure by measure."""

from ._affine import affine_alignment_error
from ._canonical import mean_cca, pwcca, svcca
from ._kernels import linear_cka, rbf_cka
from ._measure import MEASURES, Cosine, Measure, Prepared, applied
from ._neighbours import mutual_knn, rsa
from ._relu import relu_cka, relu_procrustes
from ._shapes import (
    angular_shape_distance,
    orthogonal_procrustes_similarity,
    procrustes_distance,
)

__all__ = [
    "MEASURES",
    "Cosine",
    "Measure",
    "Prepared",
    "affine_alignment_error",
    "angular_shape_distance",
    "applied",
    "linear_cka",
    "mean_cca",
    "mutual_knn",
    "orthogonal_procrustes_similarity",
    "procrustes_distance",
    "pwcca",
    "rbf_cka",
    "relu_cka",
    "relu_procrustes",
    "rsa",
    "svcca",
]
