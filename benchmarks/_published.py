"""The recipe of Ren et al. (2023), written anew from its description, with one fault mended at a time.

One pair of affine couplings, which share one net for the log-scales and one for the shifts; two hidden
layers in either; a random start; the rows as they are; the forward squared error alone; Adam with
learning rates that add up to about 1e-4 over the whole run: they begin at 1e-6 and lose a hundredth with each
step. (Where all layers share one map, they do so for each of them.) Here a one-cycle schedule has that sum.
Adam moves no parameter by much more than it, so that the network ends about where it started.

The description leaves open what is chosen here: hidden layers as wide as the rows, leaky rectifiers, and
log-scales that end in a tanh.

Beside it stands the CCA that the recipe was compared with, `PublishedCCA`.

References
----------
Ren et al., "All Roads Lead to Rome? Exploring the Invariance of Transformers' Representations", arXiv
2305.14555 (2023).
"""

from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import torch
from _plain import one_epoch
from torch import Tensor, nn

from sklearn_bijection._flow import Invertible

Array = npt.NDArray[np.floating]

#: What the learning rates of the published schedule add up to.
PUBLISHED_SUM = 1e-4


class SharedCouplings(Invertible):
    """Two affine couplings with the same two nets: each half is moved by what the other one says.

    Parameters
    ----------
    width : int
        Even.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.log_scale = nn.Sequential(*_perceptron(width // 2, width), nn.Tanh())
        self.shift = nn.Sequential(*_perceptron(width // 2, width))

    def forward(self, z: Tensor) -> Tensor:
        """Move the second half, then the first."""
        a, b = z.chunk(2, dim=1)
        b = b * self.log_scale(a).exp() + self.shift(a)
        a = a * self.log_scale(b).exp() + self.shift(b)
        return torch.cat((a, b), dim=1)

    def inverse(self, w: Tensor) -> Tensor:
        """Move the first half back, then the second."""
        a, b = w.chunk(2, dim=1)
        a = (a - self.shift(b)) * (-self.log_scale(b)).exp()
        b = (b - self.shift(a)) * (-self.log_scale(a)).exp()
        return torch.cat((a, b), dim=1)


def _perceptron(n: int, hidden: int) -> list[nn.Module]:
    layers = [nn.Linear(n, hidden), nn.LeakyReLU(), nn.Linear(hidden, hidden), nn.LeakyReLU()]
    return [*layers, nn.Linear(hidden, n)]


class PublishedRecipe:
    """The recipe as an aligner.

    Parameters
    ----------
    peak : float, default=None
        Highest learning rate; None is the published schedule.
    both : bool, default=False
        Whether the inverse error is trained for too.
    epochs : int, default=60
    batch_size : int, default=64
    seed : int, default=0
    device : str, default="cpu"
    """

    def __init__(
        self,
        *,
        peak: float | None = None,
        both: bool = False,
        epochs: int = 60,
        batch_size: int = 64,
        seed: int = 0,
        device: str = "cpu",
    ) -> None:
        self.peak, self.both = peak, both
        self.epochs, self.batch_size = epochs, batch_size
        self.seed, self.device = seed, device

    def fit(self, X: Array, y: Array) -> Self:
        """Train from a random start, for all epochs."""
        self.n_features, self.n_targets = X.shape[1], y.shape[1]
        width = max(X.shape[1], y.shape[1])
        self.width = width + width % 2
        tensors = [self._rows(X), self._rows(y)]
        n_steps = self.epochs * -(-len(X) // self.batch_size)
        # The mean of a one-cycle schedule is half of its peak.
        peak = 2 * PUBLISHED_SUM / n_steps if self.peak is None else self.peak
        with torch.random.fork_rng():
            torch.manual_seed(self.seed)
            self.module = SharedCouplings(self.width).to(self.device)
            optimizer = torch.optim.Adam(self.module.parameters(), lr=peak)
            schedule = torch.optim.lr_scheduler.OneCycleLR(
                optimizer, peak, total_steps=n_steps, cycle_momentum=False
            )
            for _ in range(self.epochs):
                one_epoch(self._loss, tensors, optimizer, schedule, batch_size=self.batch_size)
        return self

    def transform(self, X: Array) -> Array:
        """Map `X` into the space of y."""
        with torch.no_grad():
            image: Array = self.module(self._rows(X)).cpu().numpy()
        return image[:, : self.n_targets]

    def inverse_transform(self, y: Array) -> Array:
        """Map `y` back."""
        with torch.no_grad():
            image: Array = self.module.inverse(self._rows(y)).cpu().numpy()
        return image[:, : self.n_features]

    def _loss(self, x: Tensor, y: Tensor) -> Tensor:
        loss: Tensor = nn.functional.mse_loss(self.module(x), y)
        return loss + nn.functional.mse_loss(self.module.inverse(y), x) if self.both else loss

    def _rows(self, rows: Array) -> Tensor:
        """Rows as a tensor, filled up with zeros."""
        filled = np.zeros((len(rows), self.width), np.float32)
        filled[:, : rows.shape[1]] = rows
        return torch.from_numpy(filled).to(self.device)


class Whitened(NamedTuple):
    """What the published CCA knows of one side."""

    mean: Array
    scale: float
    whitener: Array

    @classmethod
    def of(cls, rows: Array, epsilon: float) -> Self:
        """Divide the covariance by its greatest entry, and take the inverse root."""
        covariance = np.cov(rows, rowvar=False)
        scale = np.abs(covariance).max()
        values, vectors = np.linalg.eigh(covariance / scale + epsilon * np.eye(len(covariance)))
        return cls(rows.mean(axis=0), np.sqrt(scale), (vectors / np.sqrt(values)) @ vectors.T)


class PublishedCCA:
    """The CCA of Ren et al. (2023) as an aligner: a broken map, with its faults left in.

    Whitened sides, one decomposition ``Zx Cxy Zy = U diag(rho) V'``, and the map
    ``(x - mean_x) Zx U (Zy V')^-1 + mean_y``, where ``(Zy V)^-1`` is right. Three faults:

    * The routine gives the transpose of V, which is taken for V: each canonical direction of the one
      side is led to a combination of those of the other side that has nothing to do with it.
    * Each covariance is divided by its greatest entry, and the map does not give the units back.
    * The canonical correlations are dropped. That alone is no fault: it is the symmetric map, which is
      what ``CCAAligner(shrinkage=0)`` gives, with the other two mended.

    Parameters
    ----------
    epsilon : float, default=1e-10
        Added to the diagonals of the divided covariances: no shrinkage worth the name.
    """

    def __init__(self, *, epsilon: float = 1e-10) -> None:
        self.epsilon = epsilon

    def fit(self, X: Array, y: Array) -> Self:
        """Whiten, decompose, and pair what does not belong together."""
        X, y = X.astype(np.float64), y.astype(np.float64)
        self.x, self.y = (Whitened.of(rows, self.epsilon) for rows in (X, y))
        cross = (X - self.x.mean).T @ (y - self.y.mean) / (len(X) - 1)
        cross /= self.x.scale * self.y.scale
        U, _, V_transposed = np.linalg.svd(self.x.whitener @ cross @ self.y.whitener)
        k = min(len(U), len(V_transposed))
        weight_x = self.x.whitener @ U[:, :k]
        weight_y = self.y.whitener @ V_transposed[:, :k]
        self.there = weight_x @ np.linalg.pinv(weight_y)
        self.back = weight_y @ np.linalg.pinv(weight_x)
        return self

    def transform(self, X: Array) -> Array:
        """Map `X` into the space of y."""
        image: Array = (X - self.x.mean) @ self.there + self.y.mean
        return image

    def inverse_transform(self, y: Array) -> Array:
        """Map `y` back."""
        image: Array = (y - self.y.mean) @ self.back + self.x.mean
        return image


def recipes(**options: Any) -> dict[str, PublishedRecipe]:
    """The recipe as published, and with its faults mended one after the other."""
    return {
        "published recipe": PublishedRecipe(**options),
        "+ learning rate 1e-3": PublishedRecipe(peak=1e-3, **options),
        "+ both errors": PublishedRecipe(peak=1e-3, both=True, **options),
    }
