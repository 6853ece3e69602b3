"""All numbers on one alignment, both ways."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ._errors import max_row_error, mean_cosine, mse, r2, relative_error
from ._pairs import Aligner, as_columns, check_row_counts, walk_there
from ._retrieval import Similarity, retrieval_scores

_TABLE = {
    "R²": "r2",
    "mean squared error": "mse",
    "relative error": "relative_error",
    "mean cosine": "cosine",
    "precision@1": "precision_at_1",
    "precision@10": "precision_at_10",
    "mean reciprocal rank": "mean_reciprocal_rank",
    "largest row error": "max_row_error",
}


@dataclass(frozen=True)
class AlignmentReport:
    """Numbers on one alignment: ``_forward`` from X space to y space, ``_inverse`` the other way.

    Attributes
    ----------
    n_samples : int
        Number of pairs judged.
    r2_forward, r2_inverse, r2_symmetric : float
        Explained share of the variance, see `r2`; symmetric is the mean of both.
    mse_forward, mse_inverse : float
        See `mse`.
    relative_error_forward, relative_error_inverse : float
        See `relative_error`.
    cosine_forward, cosine_inverse : float
        See `mean_cosine`.
    precision_at_1_forward, precision_at_1_inverse : float
        Share of rows whose partner is the most similar of all, see `retrieval_scores`.
    precision_at_10_forward, precision_at_10_inverse : float
        Share of rows whose partner is among the ten most similar.
    mean_reciprocal_rank_forward, mean_reciprocal_rank_inverse : float
        See `retrieval_scores`.
    max_row_error_forward, max_row_error_inverse : float
        See `max_row_error`.
    roundtrip_error_x, roundtrip_error_y : float
        Relative error of X -> y -> X and of y -> X -> y, see `roundtrip_error`.
    """

    n_samples: int
    r2_forward: float
    r2_inverse: float
    r2_symmetric: float
    mse_forward: float
    mse_inverse: float
    relative_error_forward: float
    relative_error_inverse: float
    cosine_forward: float
    cosine_inverse: float
    precision_at_1_forward: float
    precision_at_1_inverse: float
    precision_at_10_forward: float
    precision_at_10_inverse: float
    mean_reciprocal_rank_forward: float
    mean_reciprocal_rank_inverse: float
    max_row_error_forward: float
    max_row_error_inverse: float
    roundtrip_error_x: float
    roundtrip_error_y: float

    def to_dict(self) -> dict[str, float]:
        """All fields by name, in order."""
        return asdict(self)

    def __str__(self) -> str:
        values = self.to_dict()
        lines = [
            f"{f'{self.n_samples:,} pairs':<22}{'forward':>11}{'inverse':>11}",
            f"{'R², mean of both':<22}{_short(self.r2_symmetric):>22}",
            *(
                _line(label, values[f"{name}_forward"], values[f"{name}_inverse"])
                for label, name in _TABLE.items()
            ),
            _line("round trip error", self.roundtrip_error_x, self.roundtrip_error_y),
        ]
        return "\n".join(lines)


def alignment_report(
    aligner: Aligner, X: Any, y: Any, *, similarity: Similarity = "cosine"
) -> AlignmentReport:
    """Judge a fitted aligner in both directions.

    Forward compares ``transform(X)`` with `y` and looks for each row's partner among the rows of
    `y`; inverse compares ``inverse_transform(y)`` with `X` and searches there.

    Parameters
    ----------
    aligner : fitted object with `transform` and `inverse_transform`
        An aligner, or a Pipeline or grid search that ends in one.
    X : array-like of shape (n_samples, n_features)
        Rows in X space, best not those of the fit.
    y : array-like of shape (n_samples, n_targets) or (n_samples,)
        Their partners in y space; 1-D is one column.
    similarity : {"cosine", "centred cosine", "csls"}, default="cosine"
        How `retrieval_scores` compares rows.

    Returns
    -------
    report : AlignmentReport
        ``print(report)`` shows a table.

    Raises
    ------
    ValueError
        If the numbers of rows differ, a value is not finite, or a side has no variance.

    Notes
    -----
    Four passes of the aligner over the rows, and ``n_samples² (n_features + n_targets)`` products
    for retrieval, in blocks.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_bijection import ProcrustesAligner
    >>> from sklearn_bijection.metrics import alignment_report
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 8))
    >>> y = X[:, ::-1] + 0.5 * rng.normal(size=(200, 8))
    >>> report = alignment_report(ProcrustesAligner().fit(X[:150], y[:150]), X[150:], y[150:])
    >>> round(report.r2_forward, 2), round(report.precision_at_1_forward, 2)
    (0.76, 0.88)
    """
    check_row_counts(X, y)
    source, target = as_columns(X), as_columns(y)
    forward, inverse = aligner.transform(X), aligner.inverse_transform(target)
    ways = {
        "forward": _one_way(target, forward, similarity),
        "inverse": _one_way(source, inverse, similarity),
    }
    return AlignmentReport(
        n_samples=len(target),
        r2_symmetric=(ways["forward"]["r2"] + ways["inverse"]["r2"]) / 2,
        roundtrip_error_x=relative_error(source, aligner.inverse_transform(forward)),
        roundtrip_error_y=relative_error(target, walk_there(aligner, inverse)),
        **{f"{name}_{way}": value for way, row in ways.items() for name, value in row.items()},
    )


def _one_way(truth: Any, guess: Any, similarity: Similarity) -> dict[str, float]:
    found = retrieval_scores(guess, truth, similarity=similarity)
    return {
        "r2": r2(truth, guess),
        "mse": mse(truth, guess),
        "relative_error": relative_error(truth, guess),
        "cosine": mean_cosine(truth, guess),
        "precision_at_1": found.precision_at[1],
        "precision_at_10": found.precision_at[10],
        "mean_reciprocal_rank": found.mean_reciprocal_rank,
        "max_row_error": max_row_error(truth, guess),
    }


def _line(label: str, forward: float, inverse: float) -> str:
    return f"{label:<22}{_short(forward):>11}{_short(inverse):>11}"


def _short(value: float) -> str:
    """Three decimals where they say something, else two digits."""
    size = abs(value)
    if size == 0 or 0.001 <= size < 10:
        return f"{value:.3f}"
    return f"{value:.1f}" if 10 <= size < 1000 else f"{value:.1e}"
