"""One number for every pair of many spaces, with the work shared that pairs have in common."""

from ._frame import SimilarityMatrix
from ._matrix import similarity_matrix

__all__ = ["SimilarityMatrix", "similarity_matrix"]
