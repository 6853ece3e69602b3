"""Retrieval against brute force: full matrices, all ways to break ties, CSLS by its definition."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ortho_group
from sklearn.metrics.pairwise import cosine_similarity

from sklearn_bijection.metrics import _retrieval, retrieval_scores

SIMILARITIES = ["cosine", "centred cosine", "csls"]


def near_pair(n_samples=80, width=6, noise=1.0, dtype=float):
    rng = np.random.default_rng(0)
    targets = rng.normal(size=(n_samples, width)) + 1
    queries = targets + noise * rng.normal(size=targets.shape)
    return queries.astype(dtype), targets.astype(dtype)


def full_similarity(queries, targets, similarity, n_neighbors=10):
    """The whole matrix, straight from the definition."""
    if similarity == "centred cosine":
        queries, targets = queries - targets.mean(axis=0), targets - targets.mean(axis=0)
    cosine = cosine_similarity(queries, targets)
    if similarity != "csls":
        return cosine
    to_targets = np.sort(cosine, axis=1)[:, -n_neighbors:].mean(axis=1)
    to_queries = np.sort(cosine, axis=0)[-n_neighbors:].mean(axis=0)
    return 2 * cosine - to_targets[:, None] - to_queries[None, :]


def possible_ranks(matrix):
    """For each query all ranks that its target can take when ties are broken somehow."""
    for i, row in enumerate(matrix):
        better, equal = np.sum(row > row[i]), np.sum(row == row[i])
        yield np.arange(better + 1, better + equal + 1)


def numbers(scores):
    """All scores in a row."""
    precisions = scores.precision_at.values()
    means = scores.mean_reciprocal_rank, scores.mean_rank, scores.median_rank
    return [scores.n_samples, *precisions, *means]


def assert_scores(scores, matrix, depths=(1, 10)):
    ranks = list(possible_ranks(matrix))
    mean = [rank.mean() for rank in ranks]
    assert scores.n_samples == len(matrix)
    assert scores.mean_rank == pytest.approx(np.mean(mean))
    assert scores.median_rank == pytest.approx(np.median(mean))
    assert scores.mean_reciprocal_rank == pytest.approx(np.mean([(1 / r).mean() for r in ranks]))
    for depth in depths:
        assert scores.precision_at[depth] == pytest.approx(
            np.mean([(r <= depth).mean() for r in ranks])
        )


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("block_size", [1, 7, 80, None])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_agrees_with_the_full_matrix(similarity, block_size, dtype):
    queries, targets = near_pair(dtype=dtype)
    scores = retrieval_scores(queries, targets, similarity=similarity, block_size=block_size)
    assert 0.1 < scores.precision_at[1] < 0.9
    assert_scores(scores, full_similarity(queries.astype(float), targets.astype(float), similarity))


@pytest.mark.parametrize("n_neighbors", [1, 3, 200])
def test_csls_neighbourhoods(n_neighbors):
    queries, targets = near_pair()
    scores = retrieval_scores(queries, targets, similarity="csls", n_neighbors=n_neighbors)
    assert_scores(scores, full_similarity(queries, targets, "csls", n_neighbors))


def test_csls_helps_against_hubs():
    rng = np.random.default_rng(0)
    targets = rng.normal(size=(200, 8))
    targets[:5] = 1.0 + 0.1 * targets[:5]
    queries = targets + 1.0 + 0.3 * rng.normal(size=targets.shape)
    plain, csls = (retrieval_scores(queries, targets, similarity=s) for s in ("cosine", "csls"))
    assert csls.precision_at[1] > plain.precision_at[1] + 0.1


# In one dimension cosines are -1, 0 or 1 exactly, so that brute force sees the same ties.
integer_pairs = st.lists(st.tuples(st.integers(-2, 2), st.integers(-2, 2)), min_size=1, max_size=9)


@given(integer_pairs, st.integers(1, 4))
def test_ties_are_broken_at_random_on_average(pairs, block_size):
    queries, targets = np.array(pairs, dtype=float).T[:, :, None]
    scores = retrieval_scores(queries, targets, k=(1, 2, 5), block_size=block_size)
    assert_scores(scores, np.sign(queries) * np.sign(targets).T, depths=(1, 2, 5))


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("constant", [0.0, 1.0])
def test_a_constant_answer_gets_chance(similarity, constant):
    _, targets = near_pair()
    scores = retrieval_scores(np.full_like(targets, constant), targets, similarity=similarity)
    assert scores.precision_at == pytest.approx({1: 1 / 80, 10: 10 / 80})
    assert scores.mean_rank == pytest.approx(81 / 2)
    assert scores.mean_reciprocal_rank == pytest.approx(np.mean(1 / np.arange(1, 81)))


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_identical_targets_tie_whatever_the_product_rounds_to(similarity, dtype):
    rng = np.random.default_rng(0)
    # 67 rows three times over: edges of BLAS blocks fall between the copies.
    targets = np.tile(rng.normal(size=(67, 33)), (3, 1)).astype(dtype)
    scores = retrieval_scores(targets, targets, k=(1, 2, 3), similarity=similarity)
    assert scores.precision_at == pytest.approx({1: 1 / 3, 2: 2 / 3, 3: 1.0})
    assert scores.mean_rank == scores.median_rank == 2
    negative_zeros = np.where(np.arange(6)[:, None] % 2, -0.0, 0.0)
    assert retrieval_scores(np.ones((6, 1)), negative_zeros).mean_rank == 3.5


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_order_rotation_and_length_of_rows_do_not_matter(similarity):
    queries, targets = near_pair()
    expected = numbers(retrieval_scores(queries, targets, similarity=similarity))
    turn, order = ortho_group.rvs(6, random_state=0), np.random.default_rng(1).permutation(80)
    pairs = [(queries[order], targets[order]), (queries @ turn, targets @ turn)]
    if similarity != "centred cosine":
        pairs.append((queries * np.geomspace(1e-200, 1e200, 80)[:, None], targets * 1e-200))
    for pair in pairs:
        assert numbers(retrieval_scores(*pair, similarity=similarity)) == pytest.approx(expected)


def test_centring_forgives_a_common_offset():
    queries, targets = near_pair(noise=0.3)
    offset = 1e3 * np.ones(6)
    expected = retrieval_scores(queries, targets, similarity="centred cosine")
    found = retrieval_scores(queries + offset, targets + offset, similarity="centred cosine")
    assert numbers(found) == pytest.approx(numbers(expected))
    moved = retrieval_scores(queries + offset, targets, similarity="centred cosine")
    assert moved.precision_at[1] < 0.5 * expected.precision_at[1]


def test_perfect_and_single_rows():
    _, targets = near_pair()
    perfect = retrieval_scores(targets, targets, k=[1])
    assert perfect.precision_at == {1: 1.0} and perfect.mean_reciprocal_rank == 1.0
    assert retrieval_scores([[1.0, 2.0]], [[-1.0, 0.0]], k=3).precision_at == {3: 1.0}


def test_inputs_are_left_alone():
    queries, targets = near_pair()
    kept = queries.copy(), targets.copy()
    for similarity in SIMILARITIES:
        retrieval_scores(queries, targets, similarity=similarity)
    np.testing.assert_array_equal((queries, targets), kept)


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("copies", [1, 2])
def test_the_full_matrix_is_never_held(similarity, copies):
    n_samples = 5000
    targets = np.random.default_rng(0).normal(size=(n_samples // copies, 3)).astype("float32")
    targets = np.tile(targets, (copies, 1))
    tracemalloc.start()
    retrieval_scores(targets, targets, similarity=similarity)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 64e6 < 4 * n_samples**2


def test_float32_is_multiplied_in_float32(monkeypatch):
    seen = []
    standing = _retrieval._standing
    monkeypatch.setattr(
        _retrieval,
        "_standing",
        lambda scores, start: seen.append(scores.dtype) or standing(scores, start),
    )
    for similarity in SIMILARITIES:
        retrieval_scores(*near_pair(dtype="float32"), similarity=similarity)
    assert seen == ["float32"] * 3


@pytest.mark.parametrize(
    "options, message",
    [
        ({"similarity": "dot"}, r"similarity='dot' is not one of \('cosine'"),
        ({"k": 0}, "k=0 is not a whole number of at least 1"),
        ({"k": (1, 2.5)}, "k=2.5 is not"),
        ({"k": True}, "k=True is not"),
        ({"n_neighbors": -1}, "n_neighbors=-1 is not"),
        ({"block_size": 0}, "block_size=0 is not"),
    ],
)
def test_parameters_out_of_range(options, message):
    with pytest.raises(ValueError, match=message):
        retrieval_scores(np.eye(3), np.eye(3), **options)


def test_arrays_that_do_not_pair():
    with pytest.raises(
        ValueError, match=r"queries has shape \(3, 3\) but targets has shape \(2, 3\)"
    ):
        retrieval_scores(np.eye(3), np.eye(3)[:2])
    with pytest.raises(ValueError, match="queries contains NaN"):
        retrieval_scores([[np.nan]], [[1.0]])
