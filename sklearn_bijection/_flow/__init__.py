"""The invertible network, in torch alone: every module has its inverse beside it."""

from ._affine import AffineModule
from ._chain import Chain, Inverted, Invertible
from ._core import Architecture
from ._coupling import ACTIVATIONS, COUPLINGS, AdditiveCoupling, AffineCoupling, conditioner
from ._gate import GateCoupling, GateStart, Group, groups_of
from ._linear import LearnedLinear, Linear, Permutation, Rotation
from ._network import End, Network

__all__ = [
    "ACTIVATIONS",
    "COUPLINGS",
    "AdditiveCoupling",
    "AffineCoupling",
    "AffineModule",
    "Architecture",
    "Chain",
    "End",
    "GateCoupling",
    "GateStart",
    "Group",
    "Inverted",
    "Invertible",
    "LearnedLinear",
    "Linear",
    "Network",
    "Permutation",
    "Rotation",
    "conditioner",
    "groups_of",
]
