"""Synthetic pairs joined by a known non-linear bijection."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from sklearn.utils import Bunch, check_array

from ._checks import RandomState, as_count, as_generator, as_number, as_pair, as_rank, as_units
from ._curves import Curves
from ._views import Array, View, add_noise, draw_latent

# Steepest over flattest path through the layers. It amplifies rounding, here to 1e-10 at most.
MAX_STEEPNESS = 1e4


@dataclass(frozen=True, eq=False)
class TrueMap:
    """The bijection behind a pair of :func:`make_invertible_pair`.

    It pickles, and so do its two methods.

    Parameters
    ----------
    x_view, y_view : View
        The affine subspaces that the two views lie in.
    curves : Curves
        The non-linear map between their coordinates.
    """

    x_view: View
    y_view: View
    curves: Curves

    def forward(self, X: npt.ArrayLike) -> Array:
        """Map X space (n_samples, n_features) to y space (n_samples, n_targets), in float64."""
        return self.y_view.embed(self.curves.forward(self.x_view.read(_rows(X, self.x_view, "X"))))

    def inverse(self, y: npt.ArrayLike) -> Array:
        """Map y space (n_samples, n_targets) to X space (n_samples, n_features), in float64."""
        return self.x_view.embed(self.curves.inverse(self.y_view.read(_rows(y, self.y_view, "y"))))


def make_invertible_pair(
    n_samples: int = 1000,
    n_features: int = 20,
    n_targets: int | None = None,
    *,
    n_layers: int = 4,
    nonlinearity: float = 2.0,
    noise: float = 0.0,
    rank: int | None = None,
    offset: float | tuple[float, float] = 0.5,
    units: float | tuple[float, float] = 1.0,
    random_state: RandomState = None,
) -> Bunch:
    r"""Make a pair of embedding-like views joined by a known non-linear bijection.

    X is drawn as by :func:`make_linear_pair`: normal, a mean away from zero, the k-th principal
    variance proportional to 1 / k. Its `rank` coordinates h, of mean variance 1, pass through
    `n_layers` layers, each a random rotation R, a random shift c and a strictly increasing curve on
    each coordinate,

    .. math:: h \leftarrow \frac{u + s \tanh u}{\sqrt{1 + s}}, \qquad u = h R + c,

    where s is `nonlinearity`, and an orthonormal frame carries them into y space.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of rows, at least 2.
    n_features : int, default=20
        Width of X.
    n_targets : int, default=None
        Width of y, at least the rank of X. None means `n_features`.
    n_layers : int, default=4
        Number of layers, at least 1.
    nonlinearity : float, default=2.0
        Strength s of the curves, at least 0. At 0 the map is an isometry in the views' units, which
        Procrustes recovers; at the defaults the best affine map has an R² of about 0.84 both ways.
    noise : float, default=0.0
        Standard deviation of the noise added to each column of y, as a fraction of the (root mean
        square) standard deviation of y's columns. No map can be expected to predict y with an R²
        above ``1 / (1 + noise**2)``.
    rank : int, default=None
        Number of directions in which X varies, 1 .. `n_features`. None means `n_features`.
    offset : float or tuple of two floats, default=0.5
        Distance of the mean from zero (of y's: before the curves move it), in multiples of
        ``units * sqrt(n_features)``, which is the root mean square distance of X's rows from their
        mean; one number, or one for X and one for y.
    units : float or tuple of two floats, default=1.0
        Units of the views, larger than 0: the root mean square standard deviation of X's columns; y
        is multiplied by its own. One number, or one for X and one for y.
    random_state : int, Generator, RandomState or None, default=None
        Decides everything. None takes fresh entropy. numpy's global generator is never touched.

    Returns
    -------
    pair : :class:`~sklearn.utils.Bunch`
        With the fields

        X : ndarray of shape (n_samples, n_features)
            The first view, float64.
        y : ndarray of shape (n_samples, n_targets)
            The second view, float64.
        forward : callable
            The true map, rows of X space to rows of y space; ``forward(X)`` is y without its noise.
        inverse : callable
            Its inverse, rows of y space to rows of X space.

    Raises
    ------
    ValueError
        If a parameter is of the wrong kind or out of its range, `rank` exceeds `n_features`,
        `n_targets` is below the rank of X (no bijection exists), or the layers are so many and so
        steep that rounding would spoil the inverse.

    See Also
    --------
    make_linear_pair : The same with an affine map, also onto fewer targets than the rank.

    Notes
    -----
    With ``noise=0``, ``y == forward(X)`` and ``X == inverse(y)``. The curves are inverted by
    Newton's method to rounding, so that round trips are exact to 1e-10 of the spread, times
    ``1 + offset``; a layer stretches by at most sqrt(1 + s) in either direction.

    The bijection is between affine subspaces of dimension `rank`. ``inverse(forward(x)) == x`` for
    every x if the rank is `n_features`, and ``forward(inverse(y)) == y`` for every y if it is
    `n_targets`; otherwise these compositions project orthogonally on the subspace that the
    noise-free rows lie in, and are exact on it.

    The same `random_state` gives the same X and the same map at every level of noise. A call of
    `forward` or `inverse` costs ``n_layers * n_samples * rank**2`` multiplications and a few
    hyperbolic tangents per number. Both pickle.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> from sklearn_bijection.datasets import make_invertible_pair
    >>> pair = make_invertible_pair(n_features=5, random_state=0)
    >>> bool(abs(pair.inverse(pair.y) - pair.X).max() < 1e-10)
    True
    >>> round(LinearRegression().fit(pair.X, pair.y).score(pair.X, pair.y), 2)
    0.84
    """
    n_samples, p = as_count(n_samples, "n_samples", low=2), as_count(n_features, "n_features")
    q = p if n_targets is None else as_count(n_targets, "n_targets")
    r, noise = _checked_rank(rank, p, q), as_number(noise, "noise")
    (x_offset, y_offset), (x_unit, y_unit) = as_pair(offset, "offset"), as_units(units)
    n_layers = as_count(n_layers, "n_layers")
    nonlinearity = _checked_strength(nonlinearity, n_layers)
    rng = as_generator(random_state)

    root = np.sqrt(p)
    truth = TrueMap(
        View.draw(rng, p, r, n_latent=r, spread=x_unit * root, offset=x_offset),
        View.draw(rng, q, r, n_latent=r, spread=y_unit * root, offset=y_offset),
        Curves.draw(rng, n_layers, r, nonlinearity),
    )
    latent = draw_latent(rng, n_samples, r)
    y = truth.y_view.embed(truth.curves.forward(latent))
    return Bunch(
        X=truth.x_view.embed(latent),
        y=add_noise(rng, y, noise),
        forward=truth.forward,
        inverse=truth.inverse,
    )


def _checked_rank(rank: int | None, n_features: int, n_targets: int) -> int:
    """Return the rank of X, which must fit into y."""
    found = as_rank(rank, n_features)
    if found > n_targets:
        raise ValueError(
            f"n_targets={n_targets} is below the rank {found} of X, so that no bijection exists. "
            f"Raise n_targets to at least {found}, or pass rank={n_targets} or lower."
        )
    return found


def _checked_strength(nonlinearity: float, n_layers: int) -> float:
    """Return the strength of the curves, unless rounding would spoil the inverse of so many."""
    found = as_number(nonlinearity, "nonlinearity")
    if n_layers * np.log1p(found) > np.log(MAX_STEEPNESS) + 1e-9:
        raise ValueError(
            f"nonlinearity={found:g} with n_layers={n_layers} is too steep for an inverse exact to "
            f"1e-10: (1 + nonlinearity) ** n_layers must not exceed {MAX_STEEPNESS:g}. "
            "Lower one of the two."
        )
    return found


def _rows(rows: npt.ArrayLike, view: View, name: str) -> Array:
    """Return ``rows`` as a finite float64 array of the view's width."""
    found: Array = check_array(rows, dtype=np.float64, input_name=name)
    if found.shape[1] != len(view.mean):
        raise ValueError(
            f"{name} has {found.shape[1]} columns, but this map takes {len(view.mean)}. "
            f"Pass rows as wide as the pair's {name}."
        )
    return found
