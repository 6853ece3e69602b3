"""Couplings: one part of the coordinates is moved by what the rest says, so that it can be moved back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor, nn

from ._chain import Invertible

Activation = Callable[[], nn.Module]

ACTIVATIONS: dict[str, Activation] = {
    "gelu": nn.GELU,
    "relu": nn.ReLU,
    "silu": nn.SiLU,
    "tanh": nn.Tanh,
}


def conditioner(
    n_in: int,
    n_out: int,
    *,
    hidden_size: int,
    n_hidden: int = 1,
    activation: str = "gelu",
    dropout: float = 0.0,
) -> nn.Sequential:
    """The net inside a coupling: a perceptron that starts by saying nothing, its last layer being zero.

    Parameters
    ----------
    n_in, n_out : int
        Widths of its input and output.
    hidden_size : int
        Units of each hidden layer.
    n_hidden : int, default=1
        Number of hidden layers.
    activation : {"gelu", "relu", "silu", "tanh"}, default="gelu"
    dropout : float, default=0.0
        Share of the hidden units that are silenced in training, in [0, 1).
    """
    layers: list[nn.Module] = []
    for width in [n_in] + [hidden_size] * (n_hidden - 1):
        layers += [
            nn.Linear(width, hidden_size, dtype=torch.float32),
            ACTIVATIONS[activation](),
            nn.Dropout(dropout),
        ]
    last = nn.Linear(hidden_size, n_out, dtype=torch.float32)
    nn.init.zeros_(last.weight)
    nn.init.zeros_(last.bias)
    return nn.Sequential(*layers, last)


def soft_clamp(value: Tensor, bound: float | Tensor) -> Tensor:
    """`value` where it is small, and never beyond `bound`: ``bound tanh(value / bound)``."""
    return bound * torch.tanh(value / bound)


class Coupling(Invertible):
    """Base of the couplings between two halves of the coordinates.

    Parameters
    ----------
    width : int
        Number of coordinates, at least 2.
    moves_first : bool
        Whether the leading half is moved and the rest looks on, or the other way round.
    n_outputs : int
        Numbers that the conditioner gives for each moved coordinate.
    **net
        Of the `conditioner`.
    """

    def __init__(self, width: int, moves_first: bool, n_outputs: int, **net: Any) -> None:
        super().__init__()
        self.cut = (width + 1) // 2
        self.moves_first = moves_first
        moved = self.cut if moves_first else width - self.cut
        self.net = conditioner(width - moved, n_outputs * moved, **net)

    def forward(self, z: Tensor) -> Tensor:
        """Move one half as the other one says."""
        still, moved = self._split(z)
        return self._join(still, self.move(moved, still))

    def inverse(self, w: Tensor) -> Tensor:
        """Move it back: the half that looked on is as it was."""
        still, moved = self._split(w)
        return self._join(still, self.move_back(moved, still))

    def move(self, moved: Tensor, still: Tensor) -> Tensor:
        """Forward map of the moved half."""
        raise NotImplementedError

    def move_back(self, moved: Tensor, still: Tensor) -> Tensor:
        """Inverse map of the moved half."""
        raise NotImplementedError

    def _split(self, z: Tensor) -> tuple[Tensor, Tensor]:
        first, second = z[:, : self.cut], z[:, self.cut :]
        return (second, first) if self.moves_first else (first, second)

    def _join(self, still: Tensor, moved: Tensor) -> Tensor:
        return torch.cat((moved, still) if self.moves_first else (still, moved), dim=1)


class AdditiveCoupling(Coupling):
    """``moved + shift(still)``; volumes are kept.

    References
    ----------
    Dinh, Krueger and Bengio, "NICE: non-linear independent components estimation", ICLR workshop (2015).
    """

    def __init__(self, width: int, moves_first: bool, **net: Any) -> None:
        super().__init__(width, moves_first, n_outputs=1, **net)

    def move(self, moved: Tensor, still: Tensor) -> Tensor:
        """Add the shift."""
        shift: Tensor = self.net(still)
        return moved + shift

    def move_back(self, moved: Tensor, still: Tensor) -> Tensor:
        """Subtract it."""
        shift: Tensor = self.net(still)
        return moved - shift


class AffineCoupling(Coupling):
    """``moved * exp(log_scale(still)) + shift(still)``, the log-scale softly clamped.

    Parameters
    ----------
    clamp : float, default=1.0
        Bound on the absolute log-scale. It bounds what a round trip can amplify rounding by.

    References
    ----------
    Dinh, Sohl-Dickstein and Bengio, "Density estimation using real NVP", ICLR (2017).
    """

    def __init__(self, width: int, moves_first: bool, clamp: float = 1.0, **net: Any) -> None:
        super().__init__(width, moves_first, n_outputs=2, **net)
        self.clamp = clamp

    def move(self, moved: Tensor, still: Tensor) -> Tensor:
        """Scale, then shift."""
        log_scale, shift = self._say(still)
        return moved * log_scale.exp() + shift

    def move_back(self, moved: Tensor, still: Tensor) -> Tensor:
        """Shift back, then scale back."""
        log_scale, shift = self._say(still)
        return (moved - shift) * (-log_scale).exp()

    def _say(self, still: Tensor) -> tuple[Tensor, Tensor]:
        log_scale, shift = self.net(still).chunk(2, dim=1)
        return soft_clamp(log_scale, self.clamp), shift


CouplingName = Literal["affine", "additive"]

COUPLINGS: dict[CouplingName, type[Coupling]] = {
    "affine": AffineCoupling,
    "additive": AdditiveCoupling,
}
