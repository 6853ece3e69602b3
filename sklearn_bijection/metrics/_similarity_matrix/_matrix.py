"""Similarity of every pair of many spaces."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _similarity
from .._similarity import MEASURES, Cosine, Prepared
from .._similarity._measure import settled
from ._frame import SimilarityMatrix
from ._linear import gram_products
from ._pairs import comparisons, cosines
from ._spaces import Spaces, check_spaces, read_spaces
from ._work import Work

Array = NDArray[np.float64]


def similarity_matrix(
    Hs: Any,
    metric: str | Callable[..., float] = "linear_cka",
    *,
    Hs_b: Any = None,
    n_jobs: int | None = None,
    progress: bool = True,
    **options: Any,
) -> SimilarityMatrix:
    r"""Compare every space with every other: models, layers, or layers of many models.

    The values are those of the function of two arrays that has the name `metric`. What a space needs for
    all its pairs is computed once.

    Parameters
    ----------
    Hs : mapping of str to array-like, sequence of array-like, or array-like
        Representations of the same samples. Each is an array of shape (n_samples, width), or
        (n_samples,) for one column, or a stack of layers of shape (n_layers, n_samples, width), whose
        layers become spaces of their own, called "name / layer". In a sequence the names are numbers.
        Layers of unequal widths come as a list of arrays. A memory map is read space by space, as often
        as memory asks for.
    metric : str or callable, default="linear_cka"
        Name of a measure in `sklearn_bijection.metrics`, such as "rbf_cka", "svcca", "mutual_knn" or
        "procrustes_distance", or the function itself, also with options that `functools.partial` has
        bound; or any other function that takes two arrays of shape (n_samples, width) and returns a
        number.
    Hs_b : mapping, sequence or array-like, default=None
        Other spaces, which become the columns: only pairs of one space of `Hs` and one of these are
        compared. None compares the spaces of `Hs` among themselves.
    n_jobs : int, default=None
        Spaces or pairs that are worked on at a time, as in scikit-learn: in threads for a named measure,
        in processes for a function.
    progress : bool, default=True
        Show a progress bar on stderr.
    **options
        Passed to the measure, such as ``n_neighbors=5`` of "mutual_knn". One that has the name of a
        parameter here, of a function of your own, is bound instead: ``functools.partial(own, metric=1)``.

    Returns
    -------
    matrix : SimilarityMatrix
        Values with the names of the spaces; prints as a table, becomes a DataFrame. Entry (i, j) is
        what the measure says about space i as X and space j as Y.

    Raises
    ------
    ValueError
        If there are no spaces, one is not an array of two dimensions, has another number of rows, or has
        NaN or infinity; if there is one row only; or if the name of the measure is not known.
    TypeError
        If the spaces are no collection, or the measure does not take one of the options.

    Warns
    -----
    UserWarning
        If the measure has to say something about some pairs, such as that there are too few rows: once,
        with the number of such pairs.

    See Also
    --------
    compare_layers : How well one space predicts another, on rows held out.
    sklearn_bijection.displays.SimilarityDisplay : The result as a picture.

    Notes
    -----
    Measures of one kind are the cosine of two long vectors, one per space: CKA, RSA and mutual nearest
    neighbours. All their values are one matrix product. For linear CKA not even the vectors are made:
    it costs :math:`n^2 \sum_i d_i` for n rows and widths d_i, or where this is less
    :math:`n (\sum_i d_i)^2`, instead of about :math:`n d^2` for each of the pairs.

    The other measures prepare each space, and compare what they prepared. One that is not symmetric is
    evaluated both ways, and so is every function; any other once for a pair.

    What is kept of the spaces stays within scikit-learn's `working_memory`, a GiB unless
    `sklearn.set_config` says otherwise; beside it there is what the measure needs for a single space.
    Where all spaces take more than that, they are prepared again, tile by tile. The values do not depend
    on it, nor on `n_jobs`, up to rounding.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_bijection.metrics import similarity_matrix
    >>> rng = np.random.default_rng(0)
    >>> H = np.cumsum(rng.normal(size=(3, 200, 8)), axis=0)
    >>> matrix = similarity_matrix({"a": H, "b": H[2] @ rng.normal(size=(8, 5))}, progress=False)
    >>> print(matrix)
    linear_cka  a / 0  a / 1  a / 2      b
    --------------------------------------
    a / 0       1.000  0.491  0.313  0.208
    a / 1       0.491  1.000  0.668  0.401
    a / 2       0.313  0.668  1.000  0.586
    b           0.208  0.401  0.586  1.000

    The angle after the best rotation, for the layers of the one alone:

    >>> angles = similarity_matrix(H, "angular_shape_distance", progress=False)
    >>> angles.values.round(2).tolist()
    [[0.0, 0.81, 0.99], [0.81, 0.0, 0.62], [0.99, 0.62, 0.0]]
    """
    first = read_spaces(Hs, "Hs")
    second = first if Hs_b is None else read_spaces(Hs_b, "Hs_b")
    metric, options = _without_partial(metric, options)
    measure = _measure(metric, options)
    check_spaces(*([first] if first is second else [first, second]))
    with Work.of(n_jobs, progress) as work:
        values = _values(measure, first, second, work, options)
    return SimilarityMatrix(values, first.labels, second.labels, measure.name)


def _without_partial(metric: Any, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """A function whose options `functools.partial` has bound, and all options."""
    if isinstance(metric, partial) and not metric.args:
        return metric.func, {**metric.keywords, **options}
    return metric, options


def _measure(metric: Any, options: dict[str, Any]) -> Cosine | Prepared:
    """The measure with its options; a function of the caller is one that prepares nothing."""
    name = metric if isinstance(metric, str) else getattr(metric, "__name__", repr(metric))
    if callable(metric) and getattr(_similarity, name, None) is not metric:
        return Prepared(name, _as_it_is, _OnCopies(partial(metric, **options)), symmetric=False)
    if name not in MEASURES:
        raise ValueError(
            f"metric={metric!r} is not known. Pass one of {', '.join(sorted(MEASURES))}, or a function "
            "of two arrays."
        )
    known = signature(MEASURES[name]).parameters
    unknown = [option for option in options if option not in known]
    if unknown:
        takes = f"It takes {', '.join(known)}." if known else "It takes none."
        raise TypeError(f"{name} has no option {unknown[0]!r}. {takes}")
    return MEASURES[name](**options)


def _as_it_is(X: Array) -> Array:
    return X


@dataclass(frozen=True)
class _OnCopies:
    """A function of the caller, which may write to what it gets."""

    function: Callable[..., float]

    def __call__(self, X: Array, Y: Array) -> float:
        return self.function(X.copy(), Y.copy())


def _values(
    measure: Cosine | Prepared, first: Spaces, second: Spaces, work: Work, options: dict[str, Any]
) -> Array:
    if isinstance(measure, Prepared):
        return comparisons(measure, first, second, work, threads=measure.prepare is not _as_it_is)
    # With fewer rows than these there is an error to raise, or little to gain.
    if measure.name == "linear_cka" and first.n_samples >= 4:
        values = _linear_cka(first, second, work, **options)
    else:
        values = cosines(measure, first, second, work)
    return np.asarray(np.vectorize(settled, otypes=[float])(values, -1.0, 1.0))


def _linear_cka(first: Spaces, second: Spaces, work: Work, *, debiased: bool = False) -> Array:
    """Linear CKA without vectors."""
    products, *squares = gram_products(first, second, work, debiased=debiased)
    # The root of a square is exact, and so every space has a similarity of 1 with itself.
    return np.asarray(products / np.sqrt(np.outer(*squares)))
