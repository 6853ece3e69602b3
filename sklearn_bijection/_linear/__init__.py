"""Aligners with a closed form."""

from ._cca import CCAAligner
from ._generalized import GeneralizedProcrustes
from ._permutation import PermutationAligner
from ._procrustes import ProcrustesAligner

__all__ = ["CCAAligner", "GeneralizedProcrustes", "PermutationAligner", "ProcrustesAligner"]
