"""The invertible network as an aligner, trained by skorch."""

from ._aligner import INNAligner
from ._net import DivergedError

__all__ = ["DivergedError", "INNAligner"]
