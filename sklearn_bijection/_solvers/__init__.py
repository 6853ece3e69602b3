"""Moments in, map and spectrum out."""

from ._cca import CCAProblem, CCASolution, Direction, ShrinkagePath, solve_cca
from ._procrustes import ProcrustesSolution, solve_procrustes
from ._shrinkage import choose_shrinkage, oas_shrinkage, resolve_shrinkage

__all__ = [
    "CCAProblem",
    "CCASolution",
    "Direction",
    "ProcrustesSolution",
    "ShrinkagePath",
    "choose_shrinkage",
    "oas_shrinkage",
    "resolve_shrinkage",
    "solve_cca",
    "solve_procrustes",
]
