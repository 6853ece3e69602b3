"""The invertible network, in torch alone: every module has its inverse beside it."""

from ._affine import AffineModule
from ._chain import Chain, Inverted, Invertible, in_precision
from ._core import Architecture, Mixing
from ._coupling import (
    ACTIVATIONS,
    COUPLINGS,
    AdditiveCoupling,
    AffineCoupling,
    CouplingName,
    conditioner,
    soft_clamp,
)
from ._gate import GateCoupling, GateStart, Group, groups_of
from ._linear import LearnedLinear, Linear, Permutation, Rotation
from ._monomial import MonomialModule
from ._network import End, Network

__all__ = [
    "ACTIVATIONS",
    "COUPLINGS",
    "AdditiveCoupling",
    "AffineCoupling",
    "AffineModule",
    "Architecture",
    "Chain",
    "CouplingName",
    "End",
    "GateCoupling",
    "GateStart",
    "Group",
    "Inverted",
    "Invertible",
    "LearnedLinear",
    "Linear",
    "Mixing",
    "MonomialModule",
    "Network",
    "Permutation",
    "Rotation",
    "conditioner",
    "groups_of",
    "in_precision",
    "soft_clamp",
]
