"""Synthetic pairs joined by a known affine map."""

import numpy as np
from sklearn.utils import Bunch

from ._checks import RandomState, as_count, as_generator, as_number, as_pair, as_rank, as_units
from ._views import Array, View, add_noise, draw_latent, random_frame


def make_linear_pair(
    n_samples: int = 1000,
    n_features: int = 20,
    n_targets: int | None = None,
    *,
    rank: int | None = None,
    noise: float = 0.0,
    condition: float | None = None,
    orthogonal: bool = False,
    offset: float | tuple[float, float] = 0.5,
    units: float | tuple[float, float] = 1.0,
    random_state: RandomState = None,
) -> Bunch:
    """Make a pair of embedding-like views joined by a known affine map.

    ``y = X @ coef + intercept + noise``

    X is normal with a mean away from zero and a spectrum that decays as that of text embeddings
    does: the k-th principal variance is proportional to 1 / k, in randomly rotated directions.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of rows, at least 2.
    n_features : int, default=20
        Width of X.
    n_targets : int, default=None
        Width of y, smaller or larger than that of X. None means `n_features`.
    rank : int, default=None
        Number of directions in which X varies, 1 .. `n_features`. None means `n_features`.
    noise : float, default=0.0
        Standard deviation of the noise added to each column of y, as a fraction of the (root mean
        square) standard deviation of y's columns. No map can be expected to predict y with an R²
        above ``1 / (1 + noise**2)``.
    condition : float, default=None
        Ratio, at least 1, of the largest to the smallest non-zero singular value of `coef`. None
        means 10, or 1 with `orthogonal`. Their geometric mean is ``units[1] / units[0]``.
    orthogonal : bool, default=False
        Make all non-zero singular values equal. With equal widths, full rank and units, `coef` is
        then an orthogonal matrix, which Procrustes recovers.
    offset : float or tuple of two floats, default=0.5
        Distance of the mean from zero, in multiples of ``units * sqrt(n_features)``, which is the
        root mean square distance of X's rows from their mean; one number, or one for X and one for
        y. Real embeddings have 0.25 .. 1.2.
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
        coef : ndarray of shape (n_features, n_targets)
            The true map, of rank ``min(rank, n_targets)``.
        intercept : ndarray of shape (n_targets,)
            Its intercept.
        inverse_coef : ndarray of shape (n_targets, n_features)
            The Moore-Penrose inverse of `coef`.
        inverse_intercept : ndarray of shape (n_features,)
            Its intercept, so that ``y @ inverse_coef + inverse_intercept`` is in X space.

    Raises
    ------
    ValueError
        If a parameter is of the wrong kind or out of its range, `rank` exceeds `n_features`, or
        `orthogonal` comes with a `condition` other than 1.

    See Also
    --------
    make_invertible_pair : The same with a non-linear map.

    Notes
    -----
    With ``noise=0``, all to rounding (``eps * condition * (1 + offset)`` relative to the spread):

    * ``y == X @ coef + intercept``, always;
    * ``X == y @ inverse_coef + inverse_intercept`` if `n_targets` is at least the rank of X;
    * every point of y space comes back from ``inverse_coef`` and ``coef`` if `n_targets` is at most
      the rank.

    `coef` is zero across the directions in which X does not vary, so that it is what minimum-norm
    least squares finds: also with a deficient rank, a fitted map can be compared with it entry by
    entry (given more rows than the rank). The same `random_state` gives the same X and the same map
    at every level of noise.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_bijection.datasets import make_linear_pair
    >>> pair = make_linear_pair(n_samples=50, n_features=4, n_targets=6, random_state=0)
    >>> pair.X.shape, pair.y.shape
    ((50, 4), (50, 6))
    >>> bool(np.allclose(pair.y @ pair.inverse_coef + pair.inverse_intercept, pair.X))
    True
    >>> round(float(np.linalg.cond(pair.coef)), 6)
    10.0
    """
    n_samples, p = as_count(n_samples, "n_samples", low=2), as_count(n_features, "n_features")
    q = p if n_targets is None else as_count(n_targets, "n_targets")
    r, noise = as_rank(rank, p), as_number(noise, "noise")
    (x_offset, y_offset), (x_unit, y_unit) = as_pair(offset, "offset"), as_units(units)
    ratio = _checked_condition(condition, orthogonal)
    rng = as_generator(random_state)

    m, root = min(q, r), np.sqrt(p)
    x_view = View.draw(rng, p, r, n_latent=r, spread=x_unit * root, offset=x_offset)
    y_view = View.draw(rng, q, m, n_latent=r, spread=y_unit * root, offset=y_offset)
    turn, gains = random_frame(rng, r, m), _singular_values(m, ratio)
    latent = draw_latent(rng, n_samples, r)
    coef, intercept = _affine(x_view, y_view, turn * gains)
    inverse_coef, inverse_intercept = _affine(y_view, x_view, (turn / gains).T)
    return Bunch(
        X=x_view.embed(latent),
        y=add_noise(rng, y_view.embed(latent @ (turn * gains)), noise),
        coef=coef,
        intercept=intercept,
        inverse_coef=inverse_coef,
        inverse_intercept=inverse_intercept,
    )


def _checked_condition(condition: float | None, orthogonal: bool) -> float:
    """Return the ratio of the extreme singular values that the two parameters ask for."""
    if not isinstance(orthogonal, bool | np.bool_):
        raise ValueError(f"orthogonal={orthogonal!r} must be True or False. Pass one of the two.")
    if condition is None:
        return 1.0 if orthogonal else 10.0
    found = as_number(condition, "condition", low=1.0)
    if orthogonal and found != 1.0:
        raise ValueError(
            f"condition={condition} contradicts orthogonal=True, whose condition is 1. "
            "Drop one of the two."
        )
    return found


def _singular_values(n: int, condition: float) -> Array:
    """Return ``n`` geometrically spaced values around one, from largest to smallest."""
    return np.geomspace(np.sqrt(condition), 1 / np.sqrt(condition), n) if n > 1 else np.ones(1)


def _affine(source: View, target: View, gain: Array) -> tuple[Array, Array]:
    """Write "read, multiply by gain, embed" as one matrix and one intercept."""
    coef = (source.frame @ gain @ target.frame.T) * (target.scale / source.scale)
    return coef, target.mean - source.mean @ coef
