"""Synthetic views that look like embeddings: a mean away from zero and a decaying spectrum."""

import math
from dataclasses import dataclass
from typing import Self, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class View:
    """The affine subspace that the rows of one view lie in.

    ``rows = mean + scale * latent @ frame.T``

    Parameters
    ----------
    mean : ndarray of shape (width,)
        The origin of the subspace, in the view's own units.
    frame : ndarray of shape (width, rank)
        Orthonormal columns that span it.
    scale : float
        Units of the view in one unit of the latent coordinates.
    """

    mean: Array
    frame: Array
    scale: float

    @classmethod
    def draw(
        cls,
        rng: np.random.Generator,
        width: int,
        rank: int,
        *,
        n_latent: int,
        spread: float,
        offset: float,
    ) -> Self:
        """Draw a random subspace for ``n_latent`` coordinates of mean variance one.

        They are scaled to a root mean square distance ``spread`` from their mean, which lies
        ``offset * spread`` away from zero.
        """
        direction = rng.standard_normal(width)
        mean = direction * (offset * spread / np.linalg.norm(direction))
        return cls(mean, random_frame(rng, width, rank), spread / math.sqrt(n_latent))

    def embed(self, latent: Array) -> Array:
        """Map latent coordinates (n_samples, rank) to rows (n_samples, width)."""
        return self.mean + self.scale * (latent @ self.frame.T)

    def read(self, rows: Array) -> Array:
        """Map rows to latent coordinates: the inverse of ``embed``, elsewhere a projection."""
        latent: Array = ((rows - self.mean) @ self.frame) / self.scale
        return latent


def random_frame(rng: np.random.Generator, width: int, rank: int) -> Array:
    """Draw ``rank`` orthonormal columns of length ``width``, uniformly over all such frames."""
    frame, triangle = np.linalg.qr(rng.standard_normal((width, rank)))
    # QR alone is not uniform, and its signs depend on the LAPACK in use.
    return frame * np.where(np.diag(triangle) < 0, -1.0, 1.0)


def draw_latent(rng: np.random.Generator, n_samples: int, rank: int) -> Array:
    """Draw normal rows whose k-th variance is proportional to 1 / k, with mean variance one."""
    variance = 1.0 / np.arange(1, rank + 1)
    latent: Array = rng.standard_normal((n_samples, rank)) * np.sqrt(variance / variance.mean())
    return latent


def add_noise(rng: np.random.Generator, y: Array, noise: float) -> Array:
    """Add normal noise of ``noise`` times the columns' root mean square standard deviation."""
    deviation = math.sqrt(y.var(axis=0).mean())
    noisy: Array = y + (noise * deviation) * rng.standard_normal(y.shape)
    return noisy
