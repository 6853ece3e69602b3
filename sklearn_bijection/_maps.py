"""Maps that can be walked back: the protocol, and the affine map every closed form ends in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray


@runtime_checkable
class Bijection(Protocol):
    """Anything with a way forward and, beside it, the way back."""

    def forward(self, X: NDArray[Any]) -> NDArray[Any]:
        """Map rows of the first space into the second."""

    def inverse(self, y: NDArray[Any]) -> NDArray[Any]:
        """Map rows of the second space into the first."""


@dataclass(frozen=True, eq=False)
class Affine:
    """One way of a map: ``(X - centre) @ coef + offset``.

    The rows are centred before they are multiplied: ``X @ coef + intercept`` loses every digit that
    the offset of the data takes.

    Parameters
    ----------
    centre : ndarray of shape (n_in,)
    coef : ndarray of shape (n_in, n_out)
    offset : ndarray of shape (n_out,)
    """

    centre: NDArray[np.float64]
    coef: NDArray[np.float64]
    offset: NDArray[np.float64]

    def __call__(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Map `rows`, keeping their floating type; centring is done in float64 for both."""
        kind = rows.dtype if _fits(self.coef, rows.dtype) else np.dtype(np.float64)
        centred = np.empty(rows.shape, dtype=kind)
        np.subtract(rows, self.centre, out=centred, casting="same_kind")
        image: NDArray[Any] = centred @ self.coef.astype(kind, copy=False)
        np.add(image, self.offset, out=image, casting="same_kind")
        return image.astype(rows.dtype, copy=False)

    def then(self, other: Affine) -> Affine:
        """The map that does this one first and `other` after it."""
        offset = (self.offset - other.centre) @ other.coef + other.offset
        return Affine(self.centre, self.coef @ other.coef, offset)


def _fits(coef: NDArray[np.float64], kind: np.dtype[Any]) -> bool:
    """Whether `kind` can hold the coefficients, with room for a sum: units may be 1e20 and 1e-20."""
    largest = float(np.abs(coef).max(initial=0.0))
    return kind == np.float64 or not largest or 1e-25 < largest < 1e25


@dataclass(frozen=True, eq=False)
class AffineMap:
    """An affine map and its inverse, side by side.

    Parameters
    ----------
    there : Affine
        From the first space into the second.
    back : Affine
        From the second space into the first. Where the widths or ranks differ it undoes `there` on the
        smaller side only.

    Examples
    --------
    >>> import numpy as np
    >>> doubling = AffineMap.about_means(np.zeros(1), np.ones(1), np.array([[2.0]]), np.array([[0.5]]))
    >>> doubling.forward(np.array([[3.0]])), doubling.inverse(np.array([[7.0]]))
    (array([[7.]]), array([[3.]]))
    """

    there: Affine
    back: Affine

    @classmethod
    def about_means(
        cls,
        mean_x: NDArray[np.float64],
        mean_y: NDArray[np.float64],
        coef: NDArray[np.float64],
        inverse_coef: NDArray[np.float64],
    ) -> AffineMap:
        """The map that takes `mean_x` to `mean_y`, and back."""
        return cls(Affine(mean_x, coef, mean_y), Affine(mean_y, inverse_coef, mean_x))

    def forward(self, X: NDArray[Any]) -> NDArray[Any]:
        """Map `X` of shape (n_samples, n_features) into the second space."""
        return self.there(X)

    def inverse(self, y: NDArray[Any]) -> NDArray[Any]:
        """Map `y` of shape (n_samples, n_targets) into the first space."""
        return self.back(y)

    def swap(self) -> AffineMap:
        """The same map seen from the other side."""
        return AffineMap(self.back, self.there)

    def compose(self, other: AffineMap) -> AffineMap:
        """The map that does this one first and `other` after it; its inverse undoes `other` first."""
        return AffineMap(self.there.then(other.there), other.back.then(self.back))
