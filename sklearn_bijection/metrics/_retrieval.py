"""Find each row's partner among all rows, in blocks that never hold the full matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from numbers import Integral
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import digamma
from sklearn.utils import gen_batches

from ._pairs import as_pair, unit_rows

Similarity = Literal["cosine", "centred cosine", "csls"]
Counts = NDArray[np.int64]

# A block of similarities and the copy made where targets repeat stay below 64 MB together.
_BLOCK_BYTES = 24_000_000


@dataclass(frozen=True)
class RetrievalScores:
    """How well queries find their own target among all targets.

    Attributes
    ----------
    n_samples : int
        Number of queries, and of targets.
    precision_at : mapping of int to float
        For each asked k, the share of queries whose target is among the k most similar, 0 to 1.
    mean_reciprocal_rank : float
        Mean of 1 / rank, above 0 and up to 1.
    mean_rank, median_rank : float
        Rank of the right target: 1 is best, `n_samples` worst, ``(n_samples + 1) / 2`` is chance.
    """

    n_samples: int
    precision_at: Mapping[int, float]
    mean_reciprocal_rank: float
    mean_rank: float
    median_rank: float


def retrieval_scores(
    queries: ArrayLike,
    targets: ArrayLike,
    *,
    k: int | Sequence[int] = (1, 10),
    similarity: Similarity = "cosine",
    n_neighbors: int = 10,
    block_size: int | None = None,
) -> RetrievalScores:
    """Rank all targets by similarity to each query, and look where the right one stands.

    Row i of `queries` has row i of `targets` as its one right answer. Its rank is
    ``1 + (number of targets more similar) + (number of other targets exactly as similar) / 2``.

    Parameters
    ----------
    queries, targets : array-like of shape (n_samples, n_features)
        Rows of one space, for example ``aligner.transform(X)`` and ``y``.
    k : int or sequence of int, default=(1, 10)
        Depths at which precision is reported, each at least 1. From `n_samples` on it is 1.
    similarity : {"cosine", "centred cosine", "csls"}, default="cosine"
        "centred cosine" takes the mean of the targets off both sides first. "csls" lowers the
        similarity of targets that are near to many queries [1]_.
    n_neighbors : int, default=10
        Neighbours over which "csls" averages; all rows where there are fewer.
    block_size : int, default=None
        Queries compared at a time. None chooses it so that a block stays below 64 MB.

    Returns
    -------
    scores : RetrievalScores

    Raises
    ------
    ValueError
        If the shapes differ, a value is not finite, or a parameter is out of range.

    Notes
    -----
    Every score is its expectation when ties are broken at random, so a constant prediction gets no
    more than chance. Identical targets tie exactly; a row of zeros has cosine 0 with everything.

    CSLS is ``2 cos(q, t) - r_T(q) - r_Q(t)``, where r is the mean cosine of a row with its
    `n_neighbors` nearest rows on the other side. ``r_T(q)`` is the same for all targets of a query;
    it cannot change a rank and is not computed.

    Cost is ``n_samples² n_features`` products, twice that for CSLS; memory is a copy of both arrays
    and one block. float32 is multiplied in float32.

    References
    ----------
    .. [1] A. Conneau, G. Lample, M. Ranzato, L. Denoyer and H. Jégou, "Word translation without
       parallel data", ICLR 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_bijection.metrics import retrieval_scores
    >>> rng = np.random.default_rng(0)
    >>> targets = rng.normal(size=(1000, 16))
    >>> scores = retrieval_scores(targets + 0.5 * rng.normal(size=(1000, 16)), targets)
    >>> round(scores.precision_at[1], 3), round(scores.mean_reciprocal_rank, 3)
    (0.967, 0.981)
    """
    if similarity not in get_args(Similarity):
        raise ValueError(f"similarity={similarity!r} is not one of {get_args(Similarity)}.")
    depths, nearest = _depths(k), _positive("n_neighbors", n_neighbors)
    size = None if block_size is None else _positive("block_size", block_size)
    pair = as_pair(queries, targets, ("queries", "targets"))
    better, ties = _rank_counts(*pair, similarity, nearest, size)
    rank = 1 + better + ties / 2
    return RetrievalScores(
        n_samples=len(rank),
        precision_at={depth: _precision(better, ties, depth) for depth in depths},
        mean_reciprocal_rank=_mean_reciprocal_rank(better, ties),
        mean_rank=float(rank.mean()),
        median_rank=float(np.median(rank)),
    )


def _depths(k: int | Sequence[int]) -> tuple[int, ...]:
    depths = k if isinstance(k, Sequence) else (k,)
    return tuple(_positive("k", depth) for depth in depths)


def _positive(name: str, value: Any) -> int:
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name}={value!r} is not a whole number of at least 1.")
    return int(value)


def _precision(better: Counts, ties: Counts, depth: int) -> float:
    """Chance that the right target is within `depth` when ties are broken at random."""
    return float(np.clip((depth - better) / (1 + ties), 0.0, 1.0).mean())


def _mean_reciprocal_rank(better: Counts, ties: Counts) -> float:
    """Mean of 1 / rank over the ranks that random tie-breaking can give."""
    harmonic = (digamma(better + ties + 2) - digamma(better + 1)) / (1 + ties)
    # The difference of digammas rounds; a target that stands alone has its reciprocal exactly.
    return float(np.where(ties == 0, 1 / (1 + better), harmonic).mean())


def _rank_counts(
    queries: NDArray[Any],
    targets: NDArray[Any],
    similarity: Similarity,
    n_neighbors: int,
    block_size: int | None,
) -> tuple[Counts, Counts]:
    """For each query, how many targets are more similar than the right one, and how many tie."""
    # Each distinct target is multiplied once: BLAS may round equal columns differently, and then
    # equal targets would not tie.
    rows, member = _distinct(targets)
    if similarity == "centred cosine":
        centre = targets.mean(axis=0)
        queries, rows = queries - centre, rows - centre
    queries, rows = unit_rows(queries), unit_rows(rows)
    size = block_size or max(1, _BLOCK_BYTES // (rows.itemsize * len(queries)))
    penalty = _hubness(rows, queries, n_neighbors, size) if similarity == "csls" else None
    counts = [
        _standing(_similarities(queries[block], rows, member, penalty), block.start)
        for block in gen_batches(len(queries), size)
    ]
    better, ties = np.concatenate(counts, axis=1)
    return better, ties


def _distinct(rows: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Find the rows that differ from one another, and for every row its place among them."""
    seen: dict[bytes, int] = {}
    # Adding zero makes -0.0 and 0.0 the same bytes.
    digests = (blake2b(row + 0.0, digest_size=16).digest() for row in rows)
    member = np.array([seen.setdefault(digest, len(seen)) for digest in digests], dtype=np.intp)
    _, first = np.unique(member, return_index=True)
    return rows[first], member


def _hubness(
    rows: NDArray[Any], queries: NDArray[Any], n_neighbors: int, block_size: int
) -> NDArray[Any]:
    """Mean cosine of every row with its nearest queries."""
    nearest = min(n_neighbors, len(queries))
    means = []
    for block in gen_batches(len(rows), block_size):
        cosines = rows[block] @ queries.T
        cosines.partition(len(queries) - nearest, axis=1)
        means.append(cosines[:, -nearest:].mean(axis=1))
    return np.concatenate(means)


def _similarities(
    queries: NDArray[Any],
    rows: NDArray[Any],
    member: NDArray[np.intp],
    penalty: NDArray[Any] | None,
) -> NDArray[Any]:
    scores: NDArray[Any] = queries @ rows.T
    if penalty is not None:
        scores *= 2
        scores -= penalty
    return scores if len(rows) == len(member) else scores[:, member]


def _standing(scores: NDArray[Any], start: int) -> Counts:
    """Count better and equally similar targets, for queries `start`, `start` + 1, ..."""
    own = np.arange(len(scores))
    # The right answer's score comes from the same product as its rivals', so that rounding cannot
    # decide between them.
    right = scores[own, start + own, np.newaxis]
    better = np.count_nonzero(scores > right, axis=1)
    return np.stack([better, np.count_nonzero(scores == right, axis=1) - 1])
