"""Invertible linear layers: fixed matrices, permutations, learned rotations."""

from __future__ import annotations

from copy import deepcopy

import torch
from torch import Tensor, nn

from ._chain import Invertible
from ._coupling import soft_clamp


class Linear(Invertible):
    """``z @ matrix``, and back with the inverse beside it; nothing is learned.

    Parameters
    ----------
    matrix : Tensor of shape (width, width)
    inverse_matrix : Tensor of shape (width, width)
    """

    matrix: Tensor
    inverse_matrix: Tensor

    def __init__(self, matrix: Tensor, inverse_matrix: Tensor) -> None:
        super().__init__()
        self.register_buffer("matrix", matrix)
        self.register_buffer("inverse_matrix", inverse_matrix)

    def forward(self, z: Tensor) -> Tensor:
        """Multiply by the matrix."""
        return z @ self.matrix

    def inverse(self, w: Tensor) -> Tensor:
        """Multiply by its inverse."""
        return w @ self.inverse_matrix


class LearnedLinear(Invertible):
    """``z @ (1 + lower) @ (diag(exp(log_diagonal)) + upper)``, which starts as the identity.

    Parameters
    ----------
    width : int
    clamp : float, default=1.0
        Bound on the logarithms of the diagonal.

    References
    ----------
    Kingma and Dhariwal, "Glow: generative flow with invertible 1x1 convolutions", NeurIPS (2018).
    """

    def __init__(self, width: int, clamp: float = 1.0) -> None:
        super().__init__()
        self.triangles = nn.Parameter(torch.zeros(width, width, dtype=torch.float32))
        self.log_diagonal = nn.Parameter(torch.zeros(width, dtype=torch.float32))
        self.clamp = clamp

    def factors(self) -> tuple[Tensor, Tensor]:
        """The unit lower and the upper triangular factor."""
        diagonal = soft_clamp(self.log_diagonal, self.clamp).exp()
        eye = torch.eye(len(diagonal), dtype=diagonal.dtype, device=diagonal.device)
        lower = self.triangles.tril(-1) + eye
        return lower, self.triangles.triu(1) + torch.diag(diagonal)

    def forward(self, z: Tensor) -> Tensor:
        """Multiply by both factors."""
        lower, upper = self.factors()
        return z @ lower @ upper

    def inverse(self, w: Tensor) -> Tensor:
        """Solve for both, the last one first."""
        lower, upper = self.factors()
        solved = torch.linalg.solve_triangular(upper, w, upper=True, left=False)
        image: Tensor = torch.linalg.solve_triangular(
            lower, solved, upper=False, left=False, unitriangular=True
        )
        return image

    def frozen(self) -> Invertible:
        """The product of the factors, and its inverse."""
        eye = torch.eye(len(self.log_diagonal), dtype=torch.float64)
        exact = deepcopy(self).cpu().double()
        with torch.no_grad():
            return _as_linear(exact(eye), exact.inverse(eye), like=self.log_diagonal)


class Permutation(Invertible):
    """Reorder the coordinates: the i-th of the result is the ``order[i]``-th of the input.

    Parameters
    ----------
    order : Tensor of int of shape (width,)
    """

    order: Tensor
    inverse_order: Tensor

    def __init__(self, order: Tensor) -> None:
        super().__init__()
        self.register_buffer("order", order)
        self.register_buffer("inverse_order", torch.argsort(order))

    def forward(self, z: Tensor) -> Tensor:
        """Reorder."""
        return z.index_select(1, self.order)

    def inverse(self, w: Tensor) -> Tensor:
        """Put back in order."""
        return w.index_select(1, self.inverse_order)

    @classmethod
    def alternating(cls, width: int) -> Permutation:
        """Even coordinates first, then the odd ones."""
        return cls(torch.cat((torch.arange(0, width, 2), torch.arange(1, width, 2))))

    @classmethod
    def random(cls, width: int) -> Permutation:
        """A random order, from torch's generator."""
        return cls(torch.randperm(width))


class Rotation(Invertible):
    """An orthogonal matrix, learned or fixed; its inverse is its transpose.

    The learned part is Cayley's: ``Q = base (1 - A)(1 + A)^-1`` with A skew-symmetric, zero at the start.

    Parameters
    ----------
    base : Tensor of shape (width, width)
        Orthogonal.
    learn : bool, default=True
    """

    base: Tensor

    def __init__(self, base: Tensor, *, learn: bool = True) -> None:
        super().__init__()
        self.register_buffer("base", base)
        self.skew = nn.Parameter(torch.zeros(base.shape, dtype=torch.float32)) if learn else None

    def matrix(self) -> Tensor:
        """The orthogonal matrix, of shape (width, width)."""
        if self.skew is None:
            return self.base
        skew = self.skew.triu(1).to(self.base.dtype)
        skew = skew - skew.T
        eye = torch.eye(len(skew), dtype=skew.dtype, device=skew.device)
        turned: Tensor = torch.linalg.solve(eye + skew, eye - skew)
        return self.base @ turned

    def forward(self, z: Tensor) -> Tensor:
        """Rotate."""
        return z @ self.matrix()

    def inverse(self, w: Tensor) -> Tensor:
        """Rotate back."""
        return w @ self.matrix().T

    def frozen(self) -> Invertible:
        """The matrix and its transpose."""
        with torch.no_grad():
            matrix = deepcopy(self).cpu().double().matrix()
        return _as_linear(matrix, matrix.T.contiguous(), like=self.base)

    @classmethod
    def random(cls, width: int, *, learn: bool = False) -> Rotation:
        """A rotation drawn from torch's generator."""
        # In float64, so that its transpose is its inverse to that precision too.
        base, triangle = torch.linalg.qr(torch.randn(width, width, dtype=torch.float64))
        return cls(base * torch.sign(torch.diagonal(triangle)), learn=learn)


def _as_linear(matrix: Tensor, inverse_matrix: Tensor, like: Tensor) -> Linear:
    return Linear(*(part.to(like.device, like.dtype) for part in (matrix, inverse_matrix)))
