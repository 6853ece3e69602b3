"""Compare two models layer by layer: every layer of one with every layer of the other."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, Literal

import numpy as np
from sklearn.base import clone
from sklearn.utils.parallel import delayed

from ._folds import Split, run, splits, take_rows
from ._layer_comparison import LayerComparison
from ._pairs import check_maps_both_ways
from ._scorers import forward_r2, inverse_r2

Pairs = Literal["all", "same"] | Sequence[tuple[int, int]]


def compare_layers(
    H_a: Any,
    H_b: Any,
    aligner: Any,
    *,
    pairs: Pairs = "all",
    cv: Any = 5,
    random_state: Any = 0,
    n_jobs: int | None = None,
    progress: bool = True,
) -> LayerComparison:
    """Fit an aligner to every pair of layers of two models, and judge it on the rows held out.

    For layer i of the first model and layer j of the second it is fitted on ``(H_a[i], H_b[j])``.

    Parameters
    ----------
    H_a : array-like of shape (n_layers_a, n_samples, width), or sequence of arrays
        Hidden states of the first model. Layers of unequal widths come as a sequence of arrays of
        shape (n_samples, width). Of a memory map only the rows of one pair and split are read at a
        time.
    H_b : array-like of shape (n_layers_b, n_samples, width), or sequence of arrays
        Those of the second model for the same samples, row by row. Neither the number of layers nor
        the widths need to be those of `H_a`.
    aligner : estimator
        An unfitted aligner, or a Pipeline that ends in one. It is cloned for every fit.
    pairs : {"all", "same"} or sequence of (int, int), default="all"
        The pairs (layer of H_a, layer of H_b) to fit; "same" are those with equal numbers. Negative
        numbers count from the end.
    cv : int, splitter or iterable of (train, test) indices, default=5
        An int is the number of shuffled folds. All pairs have the same splits.
    random_state : int, RandomState or None, default=0
        Shuffles the folds of an int `cv`.
    n_jobs : int, default=None
        Fits run at a time, as in scikit-learn.
    progress : bool, default=True
        Show a progress bar on stderr.

    Returns
    -------
    layers : LayerComparison
        R² of every pair and split, both ways; prints as two tables, becomes a DataFrame.

    Raises
    ------
    ValueError
        If a stack has no layers or other dimensions, the numbers of samples differ, or `pairs` names
        a layer that is not there.
    TypeError
        If the aligner cannot map both ways.

    See Also
    --------
    compare_aligners : Several aligners on one pair of spaces.
    sklearn_bijection.displays.LayerDisplay : The result as a picture.

    Notes
    -----
    There is a fit for each pair and split, and nothing is mirrored: what layer i of one model says
    about layer j of the other is not what layer j of the one says about layer i of the other. Each
    job holds the rows of one fit in memory, next to the stacks as they were passed.

    An error in a fit is raised as it is, with a note that names the layers and the split.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_bijection import ProcrustesAligner
    >>> from sklearn_bijection.metrics import compare_layers
    >>> rng = np.random.default_rng(0)
    >>> H_a = np.cumsum(rng.normal(size=(3, 400, 4)), axis=0)
    >>> H_b = H_a[:, :, ::-1] + 0.5 * rng.normal(size=(3, 400, 4))
    >>> print(compare_layers(H_a, H_b, ProcrustesAligner(), progress=False))
    R² forward       0      1      2
    --------------------------------
    0            0.777  0.298  0.003
    1            0.195  0.871  0.534
    2           -0.065  0.506  0.915
    <BLANKLINE>
    R² inverse       0      1      2
    --------------------------------
    0            0.779  0.295  0.007
    1            0.200  0.870  0.532
    2           -0.061  0.506  0.915
    <BLANKLINE>
    Row: layer of the first model; column: layer of the second. Mean over 5 splits of rows held out.
    forward: from the first model to the second; inverse: the same fits, back.
    """
    layers_a, layers_b = _layers(H_a, "H_a"), _layers(H_b, "H_b")
    _check_samples({"H_a": layers_a, "H_b": layers_b})
    check_maps_both_ways(aligner, "aligner")
    chosen = _chosen(pairs, len(layers_a), len(layers_b))
    folds = splits(cv, layers_a[0], layers_b[0], random_state)
    places = [(i, j, number) for i, j in chosen for number in range(len(folds))]
    jobs = (
        delayed(_judge)(aligner, layers_a[i], layers_b[j], folds[number], (i, j, number))
        for i, j, number in places
    )
    results = run(jobs, len(places), "comparing layers", n_jobs=n_jobs, progress=progress)
    scores = np.full((2, len(layers_a), len(layers_b), len(folds)), np.nan)
    for place, found in zip(places, results, strict=True):
        scores[:, *place] = found
    return LayerComparison(*scores)


def _layers(H: Any, name: str) -> tuple[Any, ...]:
    """Return the layers of one stack, each still where it lies: a view, a memory map, a frame."""
    layers = tuple(layer if hasattr(layer, "shape") else np.asarray(layer) for layer in H)
    if not layers:
        raise ValueError(f"{name} has no layers. Pass at least one array (n_samples, width).")
    for number, layer in enumerate(layers):
        if len(layer.shape) != 2:
            raise ValueError(
                f"{name}[{number}] has shape {tuple(layer.shape)}, but {name} is a stack of layers: "
                "an array (n_layers, n_samples, width) or a sequence of arrays (n_samples, width). "
                f"Pass [{name}] if it is a single layer."
            )
    return layers


def _check_samples(stacks: dict[str, tuple[Any, ...]]) -> None:
    n_samples = stacks["H_a"][0].shape[0]
    for name, layers in stacks.items():
        for number, layer in enumerate(layers):
            if layer.shape[0] != n_samples:
                raise ValueError(
                    f"{name}[{number}] has {layer.shape[0]} rows but H_a[0] has {n_samples}. Row i "
                    "of every layer belongs to the same sample: drop those that a model lacks."
                )


def _chosen(pairs: Pairs, n_layers_a: int, n_layers_b: int) -> list[tuple[int, int]]:
    """Return the pairs as numbers from 0, each once."""
    if isinstance(pairs, str):
        return _chosen_by_name(pairs, n_layers_a, n_layers_b)
    chosen = list(dict.fromkeys(_pair(pair, n_layers_a, n_layers_b) for pair in pairs))
    if not chosen:
        raise ValueError("pairs is empty. Pass at least one (layer of H_a, layer of H_b).")
    return chosen


def _chosen_by_name(pairs: str, n_layers_a: int, n_layers_b: int) -> list[tuple[int, int]]:
    if pairs == "all":
        return list(np.ndindex(n_layers_a, n_layers_b))
    if pairs != "same":
        raise ValueError(
            f"pairs={pairs!r} is not known. Pass 'all', 'same', or a sequence of "
            "(layer of H_a, layer of H_b)."
        )
    if n_layers_a != n_layers_b:
        raise ValueError(
            f"pairs='same' needs equally many layers, but H_a has {n_layers_a} and H_b has "
            f"{n_layers_b}. Pass 'all', or a sequence of (layer of H_a, layer of H_b)."
        )
    return [(number, number) for number in range(n_layers_a)]


def _pair(pair: Any, n_layers_a: int, n_layers_b: int) -> tuple[int, int]:
    if np.shape(pair) != (2,) or not all(isinstance(number, Integral) for number in pair):
        raise ValueError(
            f"pairs has the entry {pair!r}. Each is two whole numbers, "
            "(layer of H_a, layer of H_b)."
        )
    for number, name, count in zip(pair, ("H_a", "H_b"), (n_layers_a, n_layers_b), strict=True):
        if not -count <= number < count:
            raise ValueError(
                f"pairs names layer {number} of {name}, which has {count}. Layers are numbered "
                f"from 0 to {count - 1}, or from -{count} to -1 counted back from the end."
            )
    return int(pair[0]) % n_layers_a, int(pair[1]) % n_layers_b


def _judge(
    aligner: Any, layer_a: Any, layer_b: Any, split: Split, place: tuple[int, int, int]
) -> tuple[float, float]:
    train, test = split
    try:
        model = clone(aligner)
        model.fit(take_rows(layer_a, train), take_rows(layer_b, train))
        source, target = take_rows(layer_a, test), take_rows(layer_b, test)
        return forward_r2(model, source, target), inverse_r2(model, source, target)
    except Exception as error:
        i, j, number = place
        error.add_note(f"Raised by layer {i} of H_a with layer {j} of H_b on split {number}.")
        raise
