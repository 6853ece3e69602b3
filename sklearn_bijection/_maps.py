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

    def then(self, other: Way) -> Affine:
        """The map that does this one first and `other` after it."""
        offset = (self.offset - other.centre) @ other.coef + other.offset
        return Affine(self.centre, self.coef @ other.coef, offset)


@dataclass(frozen=True, eq=False)
class Monomial:
    """One way of a map whose matrix has at most one entry in each row and column.

    Coordinate j of the image is ``(row[index[j]] - centre[index[j]]) * factor[j] + offset[j]``. No matrix is
    made, and what one way multiplies by the other divides by, so that the way back is exact.

    Parameters
    ----------
    centre : ndarray of shape (n_in,)
    index : ndarray of int of shape (n_out,)
        Coordinate of the row that each one of the image comes from; -1 where it is the offset alone.
    factor : ndarray of shape (n_out,)
        Not zero.
    offset : ndarray of shape (n_out,)
    divides : bool, default=False
        Whether to divide by the factor instead.
    """

    centre: NDArray[np.float64]
    index: NDArray[np.intp]
    factor: NDArray[np.float64]
    offset: NDArray[np.float64]
    divides: bool = False

    def __call__(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Map `rows`, keeping their floating type; all is computed in float64."""
        image = np.empty((len(rows), len(self.index)))
        np.subtract(rows.take(self.index, axis=1), self.centre[self.index], out=image)
        (np.divide if self.divides else np.multiply)(image, self.factor, out=image)
        image += self.offset
        alone = self.index < 0
        image[:, alone] = self.offset[alone]
        return image.astype(rows.dtype, copy=False)

    @property
    def scale(self) -> NDArray[np.float64]:
        """What each coordinate is multiplied by, 0 where the image is the offset alone."""
        scale = 1 / self.factor if self.divides else self.factor
        return np.where(self.index < 0, 0.0, scale)

    @property
    def coef(self) -> NDArray[np.float64]:
        """The matrix, of shape (n_in, n_out), made when it is asked for."""
        matrix = np.zeros((len(self.centre), len(self.index)))
        matrix[self.index, np.arange(len(self.index))] = self.scale
        return matrix

    def then(self, other: Way) -> Affine:
        """The map that does this one first and `other` after it."""
        return Affine(self.centre, self.coef, self.offset).then(other)


#: One way of an affine map.
Way = Affine | Monomial


def _fits(coef: NDArray[np.float64], kind: np.dtype[Any]) -> bool:
    """Whether `kind` can hold the coefficients, with room for a sum: units may be 1e20 and 1e-20."""
    largest = float(np.abs(coef).max(initial=0.0))
    return kind == np.float64 or not largest or 1e-25 < largest < 1e25


@dataclass(frozen=True, eq=False)
class AffineMap:
    """An affine map and its inverse, side by side.

    Parameters
    ----------
    there : Affine or Monomial
        From the first space into the second.
    back : Affine or Monomial
        From the second space into the first. Where the widths or ranks differ it undoes `there` on the
        smaller side only.

    Examples
    --------
    >>> import numpy as np
    >>> doubling = AffineMap.about_means(np.zeros(1), np.ones(1), np.array([[2.0]]), np.array([[0.5]]))
    >>> doubling.forward(np.array([[3.0]])), doubling.inverse(np.array([[7.0]]))
    (array([[7.]]), array([[3.]]))
    """

    there: Way
    back: Way

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

    @classmethod
    def of_pairs(
        cls,
        mean_x: NDArray[np.float64],
        mean_y: NDArray[np.float64],
        index: NDArray[np.intp],
        factor: NDArray[np.float64],
    ) -> AffineMap:
        """The map that pairs coordinates: y's j-th with x's ``index[j]``-th, times ``factor[j]``.

        Those without a partner, whose index is -1, are their mean.
        """
        paired = np.flatnonzero(index >= 0)
        there, back = np.ones(len(mean_y)), np.ones(len(mean_x))
        inverse = np.full(len(mean_x), -1)
        inverse[index[paired]] = paired
        there[paired] = back[index[paired]] = factor[paired]
        return cls(
            Monomial(mean_x, index, there, mean_y), Monomial(mean_y, inverse, back, mean_x, True)
        )

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
