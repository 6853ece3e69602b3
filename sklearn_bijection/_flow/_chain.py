"""Invertible modules in a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn


class Invertible(nn.Module):
    """A module with a way back: ``inverse(forward(z)) == z`` for rows z of shape (n_samples, width)."""

    def forward(self, z: Tensor) -> Tensor:
        """Map rows forwards."""
        raise NotImplementedError

    def inverse(self, w: Tensor) -> Tensor:
        """Map rows back."""
        raise NotImplementedError

    def inverted(self) -> Invertible:
        """The same map seen from the other side, with shared parameters."""
        return Inverted(self)

    def frozen(self) -> Invertible:
        """The same map with nothing left to be solved for: what can be exported."""
        return self


class Inverted(Invertible):
    """The inverse of a module, as a module.

    Parameters
    ----------
    original : Invertible
    """

    def __init__(self, original: Invertible) -> None:
        super().__init__()
        self.original = original
        self.training = original.training

    def forward(self, z: Tensor) -> Tensor:
        """Go back through the original."""
        return self.original.inverse(z)

    def inverse(self, w: Tensor) -> Tensor:
        """Go forwards through the original."""
        image: Tensor = self.original(w)
        return image

    def inverted(self) -> Invertible:
        """The original itself."""
        return self.original

    def frozen(self) -> Invertible:
        """The inverse of the frozen original."""
        return Inverted(self.original.frozen())


class Chain(Invertible):
    """Modules one after the other; the inverse runs through them in the other order.

    Parameters
    ----------
    layers : sequence of Invertible, or mapping of their names to them
    """

    def __init__(self, layers: Sequence[Invertible] | Mapping[str, Invertible]) -> None:
        super().__init__()
        named = layers if isinstance(layers, Mapping) else {str(i): m for i, m in enumerate(layers)}
        self.layers = nn.ModuleDict(named)

    def forward(self, z: Tensor) -> Tensor:
        """Map rows of shape (n_samples, width) through every layer."""
        for layer in self.layers.values():
            z = layer(z)
        return z

    def inverse(self, w: Tensor) -> Tensor:
        """Undo the layers, the last one first."""
        for layer in reversed(list(self.layers.values())):
            w = layer.inverse(w)  # type: ignore[operator]
        return w

    def frozen(self) -> Invertible:
        """A chain of frozen layers."""
        return Chain({name: layer.frozen() for name, layer in self.layers.items()})  # type: ignore[operator]


def in_precision(module: Invertible, dtype: torch.dtype) -> Invertible:
    """The module in evaluation mode and another precision, if that can hold its numbers."""
    largest = torch.finfo(dtype).max
    for name, value in module.state_dict().items():
        if value.is_floating_point() and value.numel() and value.abs().max() > largest:
            raise ValueError(
                f"dtype={dtype} cannot hold {name}, which reaches {value.abs().max().item():.1e}. "
                "Pass torch.float64, or rescale the data."
            )
        if value.is_floating_point() and value.any() and not value.to(dtype).any():
            raise ValueError(
                f"dtype={dtype} turns {name} into zero. Pass torch.float64, or rescale the data."
            )
    return module.to(dtype).eval()
