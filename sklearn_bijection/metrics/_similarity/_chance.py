"""What measures are worth where rows are few: the value of rows paired at random.

For centred X and Y and a random order of the rows of Y, the mean of ``||X'Y||_F²`` is
``||X||_F² ||Y||_F² / (n_samples - 1)``, exactly. All bounds below follow from that.
"""

from __future__ import annotations

from math import acos, sqrt

# Where chance explains more than this share, the value says more about n_samples than about the spaces.
_TOO_MUCH = 0.5


def too_few_for_correlations(n_samples: int, rank_x: int, rank_y: int) -> str | None:
    """Caution about canonical correlations."""
    chance = max(rank_x, rank_y) / (n_samples - 1)
    if chance <= _TOO_MUCH:
        return None
    forced = rank_x + rank_y - (n_samples - 1)
    certain = (
        f"{forced} of the {min(rank_x, rank_y)} canonical correlations are 1 whatever the data, and "
        if forced > 0
        else ""
    )
    return (
        f"n_samples={n_samples} is too few for spaces of ranks {rank_x} and {rank_y}: {certain}"
        f"rows paired at random would have a mean correlation of up to {sqrt(min(chance, 1)):.2f}. "
        "Take more rows, keep fewer directions (svcca), or use linear_cka(debiased=True)."
    )


def too_few_for_rotations(n_samples: int, rank_x: int, rank_y: int, kind: str) -> str | None:
    """Caution about the best rotation, told as a "similarity", a "distance" or an "angle"."""
    chance = min(rank_x, rank_y) / (n_samples - 1)
    if chance <= _TOO_MUCH:
        return None
    similarity = sqrt(min(chance, 1))
    worth = {
        "similarity": f"a similarity of up to {similarity:.2f}",
        "distance": f"a distance of as little as {sqrt(2 - 2 * similarity):.2f}",
        "angle": f"a distance of as little as {acos(similarity):.2f}",
    }
    return (
        f"n_samples={n_samples} is too few for spaces of ranks {rank_x} and {rank_y}: rows paired at "
        f"random could have {worth[kind]}. Take more rows, or use linear_cka(debiased=True)."
    )


def too_few_for_regression(n_samples: int, rank: int) -> str | None:
    """Caution about a regression on so many directions."""
    chance = rank / (n_samples - 1)
    if chance <= _TOO_MUCH:
        return None
    return (
        f"n_samples={n_samples} is too few for a regression on a space of rank {rank}: rows paired at "
        f"random would leave an error of {sqrt(max(0.0, 1 - chance)):.2f} only. Take more rows, or "
        "judge an aligner on rows held out."
    )
