"""The invertible core: couplings in the axes of either space, and what joins the two spaces between them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import torch

from ._chain import Chain, Inverted, Invertible
from ._coupling import COUPLINGS, CouplingName
from ._gate import GateCoupling, groups_of
from ._linear import LearnedLinear, Linear, Permutation, Rotation

Mixing = Literal["none", "permutation", "rotation", "orthogonal"]


@dataclass(frozen=True)
class Architecture:
    """Everything that decides the modules of a core, apart from their parameters.

    Parameters
    ----------
    width : int
        Coordinates.
    n_blocks : int
        Pairs of couplings; the first half of them acts in the axes of the source, the rest in those of
        the target.
    coupling : {"affine", "additive"}
    clamp : float
        Bound on the log-scales of affine couplings; with more than two blocks they share twice of it, so that
        depth does not add to what a round trip amplifies.
    hidden_size, n_hidden : int
        Units and number of the hidden layers of a coupling's net.
    activation : str
    dropout : float
    mixing : {"none", "permutation", "rotation", "orthogonal"}
        How the coordinates are mixed around each block: not at all, by a random order, by a random fixed
        rotation, by a learned one.
    n_gates : int
        Groups of the gates between the spaces; 0 for none.
    learn_linear : bool
        Whether a learned linear layer follows after the fixed one.
    """

    width: int
    n_blocks: int = 4
    coupling: CouplingName = "affine"
    clamp: float = 1.0
    hidden_size: int = 256
    n_hidden: int = 1
    activation: str = "gelu"
    dropout: float = 0.0
    mixing: Mixing = "none"
    n_gates: int = 0
    learn_linear: bool = False

    def build(self) -> Chain:
        """A core that is the identity; random parts come from torch's generator."""
        first = (self.n_blocks + 1) // 2
        layers: dict[str, Invertible] = {
            "source_blocks": self._blocks(first),
            "enter": self._identity(),
        }
        if self.n_gates:
            groups = groups_of(self.width, self.n_gates)
            layers["gates"] = Chain([GateCoupling(groups, i) for i in range(self.n_gates)])
        layers["leave"] = self._identity()
        if self.learn_linear:
            layers["learned"] = LearnedLinear(self.width)
        layers["target_blocks"] = self._blocks(self.n_blocks - first)
        return Chain(layers)

    def _identity(self) -> Linear:
        eye = torch.eye(self.width, dtype=torch.float64)
        return Linear(eye, eye.clone())

    def _blocks(self, n_blocks: int) -> Chain:
        if not n_blocks or self.width < 2:
            return Chain([])
        order = Permutation.alternating(self.width)
        return Chain([order, *(self._block() for _ in range(n_blocks)), Inverted(order)])

    def _block(self) -> Invertible:
        couplings = [self._coupling(moves_first) for moves_first in (False, True)]
        mixing = self._mixing()
        return Chain(couplings if mixing is None else [mixing, *couplings, Inverted(mixing)])

    def _coupling(self, moves_first: bool) -> Invertible:
        clamp = self.clamp * min(1.0, 2 / self.n_blocks)
        options: dict[str, Any] = {"clamp": clamp} if self.coupling == "affine" else {}
        return COUPLINGS[self.coupling](
            self.width,
            moves_first,
            hidden_size=self.hidden_size,
            n_hidden=self.n_hidden,
            activation=self.activation,
            dropout=self.dropout,
            **options,
        )

    def _mixing(self) -> Invertible | None:
        if self.mixing == "none":
            return None
        if self.mixing == "permutation":
            return Permutation.random(self.width)
        return Rotation.random(self.width, learn=self.mixing == "orthogonal")

    def as_dict(self) -> dict[str, object]:
        """The fields by name."""
        return asdict(self)
