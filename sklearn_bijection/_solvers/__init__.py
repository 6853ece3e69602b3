"""Moments in, map and spectrum out."""

from ._cca import CCAProblem, CCASolution, Direction, ShrinkagePath, solve_cca
from ._frame import Basis, CanonicalFrame, Standard, solve_frame
from ._generalized import GeneralizedSolution, solve_generalized
from ._permutation import Matching, PermutationSolution, Scale, solve_permutation
from ._procrustes import ProcrustesSolution, solve_procrustes
from ._ridge import ridge_shrinkage
from ._shrinkage import all_but_one, choose_shrinkage, oas_shrinkage, resolve_shrinkage

__all__ = [
    "Basis",
    "CCAProblem",
    "CCASolution",
    "CanonicalFrame",
    "Direction",
    "GeneralizedSolution",
    "Matching",
    "PermutationSolution",
    "ProcrustesSolution",
    "Scale",
    "ShrinkagePath",
    "Standard",
    "all_but_one",
    "choose_shrinkage",
    "oas_shrinkage",
    "resolve_shrinkage",
    "ridge_shrinkage",
    "solve_cca",
    "solve_frame",
    "solve_generalized",
    "solve_permutation",
    "solve_procrustes",
]
