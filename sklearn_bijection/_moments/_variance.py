"""Whether the rows of both views differ at all."""

from __future__ import annotations

from ._pair import PairMoments


class ConstantViewError(ValueError):
    """All rows of a view are equal."""


def varies(moments: PairMoments) -> bool:
    """Whether there are rows, and they differ from one another in both views."""
    weight = moments.weight
    return weight > 0 and not (moments.x.is_constant(weight) or moments.y.is_constant(weight))


def require_variance(moments: PairMoments) -> None:
    """Raise an error that names a view whose rows are all equal."""
    for name, view in (("X", moments.x), ("y", moments.y)):
        if view.is_constant(moments.weight):
            raise ConstantViewError(
                f"{name} has no variance: its {moments.n_rows} row(s) are all equal. "
                "An aligner needs rows that differ from one another in both spaces."
            )
