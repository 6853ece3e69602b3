"""Moments of one view, and which of its columns are more than rounding."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ._scatter import Array

_LOST = np.finfo(float).tiny / np.finfo(float).eps


@dataclass(frozen=True, eq=False)
class ViewMoments:
    """Mean and scatter of one view.

    Parameters
    ----------
    mean : ndarray of shape (n_features,)
        Weighted mean, in the units of the data.
    scatter : ndarray of shape (n_features, n_features) or (n_features,)
        Weighted sum of the outer products of the centred rows, in units of ``unit**2``; only its
        diagonal where no more was asked for.
    unit : float
        A power of two near the size of the data where their squares would overflow or underflow,
        else 1.
    precision : float
        Machine epsilon of the coarsest type the data came in, which bounds what their rank can mean.
    """

    mean: Array
    scatter: Array
    unit: float = 1.0
    precision: float = 0.0

    @property
    def n_features(self) -> int:
        """Width of the view."""
        return len(self.mean)

    @property
    def total(self) -> float:
        """Trace of the scatter."""
        return float(self.squares.sum())

    def in_unit(self, unit: float) -> ViewMoments:
        """The same moments with the scatter in another unit."""
        return (
            self
            if unit == self.unit
            else replace(self, scatter=self.scatter * (self.unit / unit) ** 2, unit=unit)
        )

    @property
    def squares(self) -> Array:
        """Diagonal of the scatter."""
        return self.scatter if self.scatter.ndim == 1 else self.scatter.diagonal()

    def rounding_variance(self, weight: float) -> Array:
        """Variance that the precision of the data may put into each column, in units of ``unit**2``.

        A column without any variance has been read exactly: it has none of this either.
        """
        live = self.squares > 0
        mean = np.divide(self.mean, self.unit, out=np.zeros(self.n_features), where=live)
        noise: Array = (
            np.where(live, self.squares / weight + np.square(mean), 0.0) * self.precision**2
        )
        return noise

    def constant_columns(self, weight: float) -> NDArray[np.bool_]:
        """Which columns have the same value in all rows, up to the precision of the data."""
        threshold = weight * self.n_features * self.rounding_variance(weight)
        # Squares as small as this have lost their digits to underflow.
        constant: NDArray[np.bool_] = self.squares <= np.maximum(threshold, _LOST)
        return constant
