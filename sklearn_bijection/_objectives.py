"""What the network is trained for: the error of both ways, each as a fraction of its view's variance."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

#: Weight of the forward and of the inverse error, by direction.
DIRECTION_WEIGHTS: dict[str, tuple[float, float]] = {
    "forward": (1.0, 0.0),
    "symmetric": (0.5, 0.5),
    "backward": (0.0, 1.0),
}


class Images(NamedTuple):
    """What a network makes of a batch of pairs; None where nobody asks for it.

    Parameters
    ----------
    forward : Tensor of shape (n_samples, width_y) or None
        Of the x rows.
    inverse : Tensor of shape (n_samples, width_x) or None
        Of the y rows.
    cycle_x, cycle_y : Tensor or None
        Round trips of the x and of the y rows.
    """

    forward: Tensor | None
    inverse: Tensor | None
    cycle_x: Tensor | None = None
    cycle_y: Tensor | None = None


class BijectionLoss(nn.Module):
    """Error of the forward and of the inverse map, each as a fraction of the variance it is to explain.

    For one pair of rows, with weights a and b of the two ways,::

        a ||f(x) - y||² / var(y)  +  b ||g(y) - x||² / var(x)
        + cycle  * (||g(f(x)) - x||² / var(x) + ||f(g(y)) - y||² / var(y)) / 2
        + cosine * (a (1 - cos(f(x), y)) + b (1 - cos(g(y), x)))

    The rows are centred, so that 1 is the error of a map that gives the means.

    Parameters
    ----------
    variance_x, variance_y : float
        Mean square of the centred rows of each view.
    direction : {"symmetric", "forward", "backward"}, default="symmetric"
        The weights: (0.5, 0.5), (1, 0) or (0, 1).
    cycle, cosine : float, default=0.0
        Weights of the optional terms. A round trip is exact where the widths are equal; where they are
        not, the cycle term asks that the smaller space be left and entered at the same place.
    """

    def __init__(
        self,
        variance_x: float = 1.0,
        variance_y: float = 1.0,
        direction: str = "symmetric",
        cycle: float = 0.0,
        cosine: float = 0.0,
    ) -> None:
        super().__init__()
        self.variance_x, self.variance_y = variance_x, variance_y
        self.forward_weight, self.inverse_weight = DIRECTION_WEIGHTS[direction]
        self.cycle, self.cosine = cycle, cosine

    def forward(self, images: Images, pair: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        """Weighted mean over the rows of ``pair = (x, y, weight)``; the weights are of mean 1."""
        x, y, weight = pair
        return (self.by_row(images, x, y) * weight).mean()

    def by_row(self, images: Images, x: Tensor, y: Tensor) -> Tensor:
        """Loss of each pair of rows, of shape (n_samples,)."""
        terms = [
            self._one_way(self.forward_weight, images.forward, y, self.variance_y),
            self._one_way(self.inverse_weight, images.inverse, x, self.variance_x),
        ]
        if self.cycle:
            terms += [
                self.cycle / 2 * _square_error(round_trip, rows) / variance
                for round_trip, rows, variance in (
                    (images.cycle_x, x, self.variance_x),
                    (images.cycle_y, y, self.variance_y),
                )
            ]
        return torch.stack([term for term in terms if term is not None]).sum(dim=0)

    def _one_way(
        self, weight: float, image: Tensor | None, rows: Tensor, variance: float
    ) -> Tensor | None:
        if not weight or image is None:
            return None
        rows = rows[:, : image.shape[1]]
        error = _square_error(image, rows) / variance
        if self.cosine:
            error = error + self.cosine * (1 - nn.functional.cosine_similarity(image, rows))
        return weight * error


def _square_error(image: Tensor | None, rows: Tensor) -> Tensor:
    if image is None:
        raise ValueError("The cycle term needs round trips: the network gave none.")
    # Rows may be filled up with zeros that nobody has to predict.
    return (image - rows[:, : image.shape[1]]).square().sum(dim=1)
