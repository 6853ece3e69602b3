"""An affine map, both ways, as a module."""

from __future__ import annotations

from torch import Tensor

from ._chain import Invertible


class AffineModule(Invertible):
    """``(rows - mean_x) @ coef + mean_y``, and back with the inverse beside it.

    Parameters
    ----------
    mean_x : Tensor of shape (n_features,)
    mean_y : Tensor of shape (n_targets,)
    coef : Tensor of shape (n_features, n_targets)
    inverse_coef : Tensor of shape (n_targets, n_features)
    """

    mean_x: Tensor
    mean_y: Tensor
    coef: Tensor
    inverse_coef: Tensor

    def __init__(self, mean_x: Tensor, mean_y: Tensor, coef: Tensor, inverse_coef: Tensor) -> None:
        super().__init__()
        self.register_buffer("mean_x", mean_x)
        self.register_buffer("mean_y", mean_y)
        self.register_buffer("coef", coef)
        self.register_buffer("inverse_coef", inverse_coef)

    def forward(self, z: Tensor) -> Tensor:
        """Map rows of shape (n_samples, n_features)."""
        return (z - self.mean_x) @ self.coef + self.mean_y

    def inverse(self, w: Tensor) -> Tensor:
        """Map rows of shape (n_samples, n_targets) back."""
        return (w - self.mean_y) @ self.inverse_coef + self.mean_x
