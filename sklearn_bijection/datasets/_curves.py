"""A non-linear bijection of R^d, exact both ways: rotations and a curve on each coordinate."""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from ._views import Array, random_frame

MAX_STEPS = 60


def bend(u: Array, strength: float) -> Array:
    """Return ``(u + s tanh(u)) / sqrt(1 + s)``, which is odd and strictly increasing.

    Its slope falls from sqrt(1 + s) at zero to 1 / sqrt(1 + s) far out.
    """
    bent: Array = (u + strength * np.tanh(u)) / math.sqrt(1.0 + strength)
    return bent


def unbend(v: Array, strength: float) -> Array:
    """Return the ``u`` for which ``bend(u, strength)`` is ``v``, to rounding, by Newton's method.

    On the positive half line ``u + s tanh(u)`` is concave and increasing. From a start at or below
    the root, each Newton step therefore rises towards the root and cannot pass it, so that no
    safeguard is needed.
    """
    target = np.abs(v) * math.sqrt(1.0 + strength)
    u = np.maximum(target - strength, target / (1.0 + strength))
    for _ in range(MAX_STEPS):
        curve = np.tanh(u)
        step = (target - u - strength * curve) / (1.0 + strength * (1.0 - curve**2))
        u = u + step
        if not np.any(np.abs(step) > 4 * np.finfo(float).eps * u):
            break
    signed: Array = np.copysign(u, v)
    return signed


@dataclass(frozen=True, eq=False)
class Curves:
    """Layers ``h -> bend(h @ rotation + shift)``, applied one after the other.

    Parameters
    ----------
    rotations : ndarray of shape (n_layers, rank, rank)
        Orthogonal matrices.
    shifts : ndarray of shape (n_layers, rank)
        Where each coordinate's curve is centred.
    strength : float
        Strength of the curve; 0 leaves an isometry.
    """

    rotations: Array
    shifts: Array
    strength: float

    @classmethod
    def draw(cls, rng: np.random.Generator, n_layers: int, rank: int, strength: float) -> Self:
        """Draw random rotations and shifts."""
        rotations = np.stack([random_frame(rng, rank, rank) for _ in range(n_layers)])
        return cls(rotations, 0.5 * rng.standard_normal((n_layers, rank)), strength)

    def forward(self, h: Array) -> Array:
        """Apply the layers to rows of shape (n_samples, rank)."""
        for rotation, shift in zip(self.rotations, self.shifts, strict=True):
            h = bend(h @ rotation + shift, self.strength)
        return h

    def inverse(self, h: Array) -> Array:
        """Undo the layers, last one first."""
        for rotation, shift in zip(self.rotations[::-1], self.shifts[::-1], strict=True):
            h = (unbend(h, self.strength) - shift) @ rotation.T
        return h
