"""Cross-validate several aligners on the same splits, next to baselines."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils.parallel import delayed

from ._comparison import Comparison, SplitResult
from ._folds import Split, run, splits, take_rows
from ._pairs import as_columns, check_maps_both_ways, check_row_counts
from ._report import alignment_report
from ._retrieval import Similarity


class MeanPredictor(BaseEstimator):
    """The baseline that answers every row with the training mean, both ways."""

    def fit(self, X: Any, y: Any) -> MeanPredictor:
        """Store both means."""
        self.mean_x_, self.mean_y_ = (
            np.mean(np.asarray(as_columns(side)), axis=0, dtype=np.float64, keepdims=True)
            for side in (X, y)
        )
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        """Answer with the mean of y."""
        return np.repeat(self.mean_y_, len(X), axis=0)

    def inverse_transform(self, y: Any) -> NDArray[Any]:
        """Answer with the mean of X."""
        return np.repeat(self.mean_x_, len(y), axis=0)


class IdentityMap(BaseEstimator):
    """The baseline that hands rows through, for spaces of equal width."""

    def fit(self, X: Any, y: Any) -> IdentityMap:
        """Do nothing."""
        return self

    def transform(self, X: Any) -> Any:
        """Return the rows of X as a guess at y."""
        return np.asarray(as_columns(X))

    def inverse_transform(self, y: Any) -> Any:
        """Return the rows of y as a guess at X."""
        return np.asarray(as_columns(y))


def compare_aligners(
    aligners: Mapping[str, Any],
    X: Any,
    y: Any,
    *,
    cv: Any = 5,
    similarity: Similarity = "cosine",
    baselines: bool = True,
    random_state: Any = 0,
    n_jobs: int | None = None,
    progress: bool = True,
) -> Comparison:
    """Fit every aligner on every split, and judge it on the rows held out.

    Parameters
    ----------
    aligners : mapping of str to estimator
        Unfitted aligners, or Pipelines that end in one, by the name they shall have in the table.
        They are cloned.
    X : array-like of shape (n_samples, n_features)
        Rows in X space. A memory map is read split by split.
    y : array-like of shape (n_samples, n_targets) or (n_samples,)
        Their partners in y space.
    cv : int, splitter or iterable of (train, test) indices, default=5
        An int is the number of shuffled folds.
    similarity : {"cosine", "centred cosine", "csls"}, default="cosine"
        How `retrieval_scores` compares rows.
    baselines : bool, default=True
        Add "mean", the training mean both ways, and for equal widths "identity".
    random_state : int, RandomState or None, default=0
        Shuffles the folds of an int `cv`.
    n_jobs : int, default=None
        Fits run at a time, as in scikit-learn.
    progress : bool, default=True
        Show a progress bar on stderr.

    Returns
    -------
    comparison : Comparison
        One record per aligner and split; prints as a table, becomes a DataFrame.

    Raises
    ------
    ValueError
        If there is nothing to compare, the numbers of rows differ, or a name is that of a baseline.
    TypeError
        If an aligner cannot map both ways.

    Notes
    -----
    An error in a fit is raised as it is, with a note that names the aligner.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_bijection import CCAAligner, ProcrustesAligner
    >>> from sklearn_bijection.metrics import compare_aligners
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 4))
    >>> y = X @ rng.normal(size=(4, 4)) + 0.1 * rng.normal(size=(300, 4))
    >>> aligners = {"cca": CCAAligner(), "procrustes": ProcrustesAligner()}
    >>> comparison = compare_aligners(aligners, X, y, progress=False)
    >>> for row in comparison.summary():
    ...     print(row["aligner"], round(row["r2_forward_mean"], 2))
    cca 1.0
    procrustes 0.64
    mean -0.03
    identity -0.87
    """
    check_row_counts(X, y)
    X, y = (side if hasattr(side, "shape") else np.asarray(side) for side in (X, y))
    entrants = {**_checked(aligners, baselines), **(_baselines(X, y) if baselines else {})}
    folds = splits(cv, X, y, random_state)
    jobs = (
        delayed(_judge)(name, aligner, X, y, number, split, similarity)
        for name, aligner in entrants.items()
        for number, split in enumerate(folds)
    )
    total = len(entrants) * len(folds)
    return Comparison(tuple(run(jobs, total, "comparing", n_jobs=n_jobs, progress=progress)))


def _checked(aligners: Mapping[str, Any], baselines: bool) -> Mapping[str, Any]:
    if not aligners:
        raise ValueError("aligners is empty. Pass at least one, as {'name': estimator}.")
    taken = sorted({"mean", "identity"} & aligners.keys()) if baselines else []
    if taken:
        raise ValueError(
            f"aligners has the name {taken[0]!r}, which is that of a baseline. "
            "Choose another name or pass baselines=False."
        )
    for name, aligner in aligners.items():
        check_maps_both_ways(aligner, f"aligners[{name!r}]")
    return aligners


def _baselines(X: Any, y: Any) -> dict[str, Any]:
    same = as_columns(X[:1]).shape[1] == as_columns(y[:1]).shape[1]
    return {"mean": MeanPredictor(), **({"identity": IdentityMap()} if same else {})}


def _judge(
    name: str, aligner: Any, X: Any, y: Any, number: int, split: Split, similarity: Similarity
) -> SplitResult:
    train, test = split
    try:
        model, source, target = clone(aligner), take_rows(X, train), take_rows(y, train)
        start = time.perf_counter()
        model.fit(source, target)
        seconds = time.perf_counter() - start
        report = alignment_report(
            model, take_rows(X, test), take_rows(y, test), similarity=similarity
        )
    except Exception as error:
        error.add_note(f"Raised by the aligner {name!r} on split {number}.")
        raise
    return SplitResult(name, number, len(source), seconds, report)
