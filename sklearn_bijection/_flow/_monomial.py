"""A map that pairs coordinates, both ways, as a module."""

from __future__ import annotations

from torch import Tensor

from ._chain import Invertible


class MonomialModule(Invertible):
    """``(rows - mean_x)[:, index] * scale + mean_y``, and back with the inverse beside it.

    Parameters
    ----------
    mean_x : Tensor of shape (n_features,)
    mean_y : Tensor of shape (n_targets,)
    index : Tensor of int of shape (n_targets,)
        Coordinate that each one of the image comes from; any, with a scale of 0, where it is the mean.
    scale : Tensor of shape (n_targets,)
    inverse_index : Tensor of int of shape (n_features,)
    inverse_scale : Tensor of shape (n_features,)
    """

    mean_x: Tensor
    mean_y: Tensor
    index: Tensor
    scale: Tensor
    inverse_index: Tensor
    inverse_scale: Tensor

    def __init__(
        self,
        mean_x: Tensor,
        mean_y: Tensor,
        index: Tensor,
        scale: Tensor,
        inverse_index: Tensor,
        inverse_scale: Tensor,
    ) -> None:
        super().__init__()
        self.register_buffer("mean_x", mean_x)
        self.register_buffer("mean_y", mean_y)
        self.register_buffer("index", index)
        self.register_buffer("scale", scale)
        self.register_buffer("inverse_index", inverse_index)
        # Not left to a division: a type that cannot hold the reciprocals is then found out.
        self.register_buffer("inverse_scale", inverse_scale)

    def forward(self, z: Tensor) -> Tensor:
        """Map rows of shape (n_samples, n_features)."""
        return (z - self.mean_x).index_select(1, self.index) * self.scale + self.mean_y

    def inverse(self, w: Tensor) -> Tensor:
        """Map rows of shape (n_samples, n_targets) back."""
        centred = (w - self.mean_y).index_select(1, self.inverse_index)
        return centred * self.inverse_scale + self.mean_x
