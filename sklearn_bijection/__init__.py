"""Align two embedding spaces with a map that can be walked back."""

from typing import TYPE_CHECKING, Any

from . import datasets, displays, metrics
from ._linear import CCAAligner, GeneralizedProcrustes, PermutationAligner, ProcrustesAligner

if TYPE_CHECKING:
    from ._inn import INNAligner

__version__ = "0.1.0"

__all__ = [
    "CCAAligner",
    "GeneralizedProcrustes",
    "INNAligner",
    "PermutationAligner",
    "ProcrustesAligner",
    "__version__",
    "datasets",
    "displays",
    "metrics",
]


def __getattr__(name: str) -> Any:
    """Import the network when it is first asked for: it brings torch."""
    if name == "INNAligner":
        from ._inn import INNAligner

        return INNAligner
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
