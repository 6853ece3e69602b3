"""Align two embedding spaces with a map that can be walked back."""

from . import datasets, displays, metrics
from ._linear import CCAAligner, ProcrustesAligner

__version__ = "0.1.0"

__all__ = ["CCAAligner", "ProcrustesAligner", "__version__", "datasets", "displays", "metrics"]
