"""Two representations compared by measures and by maps, and again after one of them was turned.

The measures of Godfrey et al. (2022), what their code prints for the orthogonal ones, and aligners on rows
held out.

References
----------
Godfrey, Brown, Emerson and Kvinge, "On the symmetries of deep learning models and their internal
representations", NeurIPS (2022).
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from _judging import CCA, PROCRUSTES, Array, Record, Split, scores
from scipy.optimize import linear_sum_assignment

from sklearn_bijection import CCAAligner, PermutationAligner, ProcrustesAligner
from sklearn_bijection.metrics import linear_cka, procrustes_distance, relu_cka, relu_procrustes

AS_IS, ROTATED, REORDERED = "as is", "rotated", "G_ReLU"
VARIANTS = (AS_IS, ROTATED, REORDERED)

PERMUTATION = "PermutationAligner()"
ALIGNERS: dict[str, Any] = {
    PERMUTATION: PermutationAligner(),
    PROCRUSTES: ProcrustesAligner(),
    CCA: CCAAligner(),
}

Measure = Callable[[Array, Array], float]


def published_procrustes(X: Array, Y: Array) -> float:
    """One minus half the distance after the best rotation, of spaces that are not centred."""
    cosine = np.linalg.norm(X.T @ Y, ord="nuc") / np.linalg.norm(X) / np.linalg.norm(Y)
    return float(1 - np.sqrt(max(2 - 2 * cosine, 0)) / 2)


def published_cka(X: Array, Y: Array) -> float:
    """Debiased linear kernel alignment of spaces each of whose units has been divided by its own norm."""
    first, second = (_units(rows - rows.mean(axis=0, dtype=np.float64)) for rows in (X, Y))
    return linear_cka(first, second, debiased=True)


RELU = "relu_procrustes (matching of the rows judged)"
ELSEWHERE = "relu_procrustes, matching of other rows"
MEASURES: dict[str, Measure] = {
    RELU: relu_procrustes,
    "relu_cka": relu_cka,
    "procrustes_distance": procrustes_distance,
    "linear_cka(debiased=True)": partial(linear_cka, debiased=True),
    "published orthogonal Procrustes (not centred)": published_procrustes,
    "published orthogonal CKA (units rescaled: not orthogonal)": published_cka,
}


def matched_elsewhere(split: Split) -> float:
    """`relu_procrustes` of the test rows, with the units as they were matched on the training rows."""
    pairs = linear_sum_assignment(_units(split.X).T @ _units(split.y), maximize=True)
    X, y = _units(split.X_test), _units(split.y_test)
    distances = np.square(X[:, pairs[0]] - y[:, pairs[1]]).sum()
    return float(1 - np.sqrt(distances / (4 * X.shape[1])))


def _units(rows: Array) -> Array:
    """Columns divided by their norms; zeros stay."""
    norms = np.linalg.norm(rows.astype(np.float64), axis=0)
    return rows / np.where(norms > 0, norms, 1.0)


def rotation(width: int, seed: int) -> Array:
    """A random rotation or reflection, all alike probable."""
    normal = np.random.default_rng(seed).normal(size=(width, width))
    axes, triangle = np.linalg.qr(normal)
    found: Array = (axes * np.sign(np.diag(triangle))).astype(np.float32)
    return found


def reordering(width: int, seed: int) -> Array:
    """A random permutation times positive scales, log-normal as published."""
    random = np.random.default_rng(seed)
    scales = np.exp(random.normal(size=width) - 0.5)
    found: Array = (np.eye(width)[random.permutation(width)] * scales).astype(np.float32)
    return found


MOVES: dict[str, Callable[[int, int], Array]] = {ROTATED: rotation, REORDERED: reordering}


def turned(split: Split, variant: str, seed: int) -> Split:
    """The same with the first space as it is, under a random rotation, or an element of G_ReLU."""
    if variant == AS_IS:
        return split
    matrix = MOVES[variant](split.X.shape[1], seed)
    return split._replace(X=split.X @ matrix, X_test=split.X_test @ matrix)


def compared(split: Split, *, seed: int, n_rows: int) -> Iterator[Record]:
    """All measures, on some of the test rows, and all aligners; for each variant of the first space."""
    for variant in VARIANTS:
        moved = turned(split, variant, seed)
        rows = moved.X_test[:n_rows], moved.y_test[:n_rows]
        facts = {"variant": variant, "rows": "held-out", "way": "both"}
        for name, measure in MEASURES.items():
            yield {**facts, "name": name, "value": measure(*rows)}
        yield {**facts, "name": ELSEWHERE, "value": matched_elsewhere(moved)}
        for name, aligner in ALIGNERS.items():
            yield from _explained(name, aligner.fit(moved.X, moved.y), moved, variant)


def _explained(name: str, fitted: Any, split: Split, variant: str) -> Iterator[Record]:
    """R² on the rows learned from and on those held out, both ways."""
    places = {"train": Split(split.X, split.y, split.X, split.y), "held-out": split}
    for rows, place in places.items():
        found = scores(fitted, place)
        for way in ("forward", "inverse"):
            yield {"variant": variant, "rows": rows, "way": way, "name": name, "value": found[way]}
