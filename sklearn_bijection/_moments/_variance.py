"""Whether the rows of both views differ at all."""

from __future__ import annotations

from ._pair import PairMoments


class ConstantViewError(ValueError):
    """All rows of a view are equal."""


def varies(moments: PairMoments) -> bool:
    """Whether there are rows, and they differ from one another in both views."""
    views = (moments.x, moments.y)
    return moments.weight > 0 and not any(v.constant_columns(moments.weight).all() for v in views)


def require_variance(moments: PairMoments) -> None:
    """Raise an error that names a view whose rows are all equal."""
    for name, view in (("X", moments.x), ("y", moments.y)):
        if view.constant_columns(moments.weight).all():
            raise ConstantViewError(
                f"{name} has no variance: its {moments.n_rows} row(s) are all equal. "
                "An aligner needs rows that differ from one another in both spaces."
            )
