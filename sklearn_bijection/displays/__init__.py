"""Pictures of alignments and comparisons, as scikit-learn Displays; they need matplotlib."""

from ._alignment import AlignmentDisplay
from ._comparison import ComparisonDisplay
from ._layers import LayerDisplay
from ._similarity import SimilarityDisplay

__all__ = ["AlignmentDisplay", "ComparisonDisplay", "LayerDisplay", "SimilarityDisplay"]
