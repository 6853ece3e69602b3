"""Aligners with a closed form."""

from ._cca import CCAAligner
from ._procrustes import ProcrustesAligner

__all__ = ["CCAAligner", "ProcrustesAligner"]
