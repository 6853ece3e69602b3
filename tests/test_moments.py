"""Laws of the paired moments."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_bijection._moments import MomentSum, PairMoments, _rows, fold_moments, row_hash


def rows(n=60, p=4, q=3, seed=0):
    rng = np.random.default_rng(seed)
    return (
        rng.normal(size=(n, p)) + 5.0,
        rng.normal(size=(n, q)) * 3.0,
        rng.integers(0, 4, n).astype(float),
    )


def assert_equal_moments(a, b, rtol=1e-11):
    assert a.weight == pytest.approx(b.weight)
    assert a.n_rows == b.n_rows
    b = b.in_units(a.x.unit, a.y.unit)
    for found, expected in (
        (a.x.mean, b.x.mean),
        (a.y.mean, b.y.mean),
        (a.x.scatter, b.x.scatter),
        (a.y.scatter, b.y.scatter),
        (a.cross, b.cross),
    ):
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol * np.abs(expected).max())


def test_a_long_stream_of_rows_is_the_whole():
    X, y, weight = rows(n=1000)
    stream = MomentSum()
    for i in np.flatnonzero(weight):
        stream.add(PairMoments.from_arrays(X[i : i + 1], y[i : i + 1], weight[i : i + 1]))
    assert_equal_moments(stream.moments(), PairMoments.from_arrays(X, y, weight))


def test_a_sum_writes_to_no_array_that_another_may_hold():
    parts = [PairMoments.from_arrays(*rows(seed=seed)) for seed in range(4)]
    stream = MomentSum()
    assert stream.moments() is None
    held = []
    for part in parts:
        stream.add(part)
        fork, seen = stream.fork(), stream.moments()
        held.append((fork, seen, seen.cross.copy()))
    for fork, seen, before in held:
        np.testing.assert_array_equal(seen.cross, before)
        assert_equal_moments(fork.moments(), seen)
        fork.add(parts[0])
    assert_equal_moments(stream.moments(), PairMoments.merge_all(parts))


def test_merging_leaves_the_parts_alone():
    a, b = (PairMoments.from_arrays(*rows(seed=seed)) for seed in range(2))
    before = a.cross.copy(), a.x.scatter.copy()
    a.merge(b)
    np.testing.assert_array_equal(a.cross, before[0])
    np.testing.assert_array_equal(a.x.scatter, before[1])


def test_moments_are_those_of_numpy():
    X, y, weight = rows()
    moments = PairMoments.from_arrays(X, y, weight)
    joint = np.cov(np.hstack([X, y]).T, aweights=weight, ddof=0) * weight.sum()
    np.testing.assert_allclose(moments.x.mean, np.average(X, axis=0, weights=weight))
    np.testing.assert_allclose(moments.x.scatter, joint[:4, :4])
    np.testing.assert_allclose(moments.y.scatter, joint[4:, 4:])
    np.testing.assert_allclose(moments.cross, joint[:4, 4:])
    assert moments.n_rows == np.count_nonzero(weight)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(1, 59), max_size=6, unique=True), st.permutations(range(7)), st.booleans()
)
def test_batches_in_any_order_are_the_whole(cuts, order, diagonal):
    X, y, weight = rows()
    pieces = [
        PairMoments.from_arrays(*batch, diagonal=diagonal)
        for batch in zip(*(np.split(a, sorted(cuts)) for a in (X, y, weight)), strict=True)
        if batch[2].any()
    ]
    merged = PairMoments.merge_all([pieces[i] for i in order if i < len(pieces)])
    assert_equal_moments(merged, PairMoments.from_arrays(X, y, weight, diagonal=diagonal))


def test_merge_is_associative_and_commutative():
    a, b, c = (PairMoments.from_arrays(*rows(seed=seed)) for seed in range(3))
    assert_equal_moments(a.merge(b).merge(c), a.merge(b.merge(c)))
    assert_equal_moments(a.merge(b), b.merge(a))


def test_empty_is_neutral():
    moments, empty = PairMoments.from_arrays(*rows()), PairMoments.empty(4, 3)
    assert_equal_moments(moments.merge(empty), moments, rtol=0)
    assert_equal_moments(empty.merge(moments), moments, rtol=0)
    assert empty.merge(empty).weight == 0


def test_swap_is_the_moments_of_the_swapped_pair():
    X, y, weight = rows()
    assert_equal_moments(
        PairMoments.from_arrays(X, y, weight).swap(), PairMoments.from_arrays(y, X, weight)
    )


def test_weight_two_is_the_row_twice_and_weight_zero_the_row_left_out():
    X, y, weight = rows()
    counts = weight.astype(int)
    weighted = PairMoments.from_arrays(X, y, weight)
    repeated = PairMoments.from_arrays(np.repeat(X, counts, axis=0), np.repeat(y, counts, axis=0))
    np.testing.assert_allclose(weighted.cross, repeated.cross, rtol=1e-11)
    np.testing.assert_allclose(weighted.x.scatter, repeated.x.scatter, rtol=1e-11, atol=1e-11)
    assert weighted.weight == repeated.weight


def test_blocks_of_rows_are_the_whole(monkeypatch):
    X, y, weight = rows(n=500)
    whole = PairMoments.from_arrays(X, y, weight)
    monkeypatch.setattr(_rows, "_MIN_BLOCK_ROWS", 7)
    monkeypatch.setattr(_rows, "_MAX_BLOCK_BYTES", 1)
    assert_equal_moments(PairMoments.from_arrays(X, y, weight), whole)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64])
def test_any_type_is_accumulated_in_float64(dtype, order):
    X, y, _ = rows()
    X, y = (np.asarray(10 * a, dtype=dtype, order=order) for a in (X, y))
    found = PairMoments.from_arrays(X, y)
    assert_equal_moments(found, PairMoments.from_arrays(X.astype(float), y.astype(float)))
    assert found.cross.dtype == np.float64
    assert found.x.precision == (np.finfo(dtype).eps if dtype != np.int64 else 0.0)


@pytest.mark.parametrize("size", [1e-300, 1e-150, 1e-20, 1.0, 1e20, 1e150, 1e300])
def test_extreme_units_are_kept_apart_from_the_scatter(size):
    X, y, _ = rows()
    found, expected = PairMoments.from_arrays(X * size, y), PairMoments.from_arrays(X, y)
    correlation = found.cross / np.sqrt(
        np.outer(found.x.scatter.diagonal(), found.y.scatter.diagonal())
    )
    reference = expected.cross / np.sqrt(
        np.outer(expected.x.scatter.diagonal(), expected.y.scatter.diagonal())
    )
    np.testing.assert_allclose(correlation, reference, rtol=1e-10)


def test_batches_of_different_units_merge():
    X, y, _ = rows()
    X = X * np.where(np.arange(60) < 30, 1e-150, 1e-140)[:, np.newaxis]
    halves = [PairMoments.from_arrays(X[half], y[half]) for half in (slice(30), slice(30, 60))]
    assert halves[0].x.unit != halves[1].x.unit
    assert_equal_moments(PairMoments.merge_all(halves), PairMoments.from_arrays(X, y))


def test_constant_columns_have_exactly_no_scatter():
    X, y, _ = rows(n=1000)
    X[:, 1] = 0.1
    moments = PairMoments.merge_all([PairMoments.from_arrays(X[i::3], y[i::3]) for i in range(3)])
    assert not moments.x.scatter[1].any()
    assert moments.x.mean[1] == 0.1


def test_a_large_offset_costs_no_digits():
    X, y, _ = rows()
    X = np.round(X * 2**20) / 2**20  # so that the sum with the offset is exact
    expected = PairMoments.from_arrays(X, y)
    shifted = PairMoments.from_arrays(X + 2.0**30, y)
    np.testing.assert_allclose(shifted.x.scatter, expected.x.scatter, rtol=1e-12, atol=1e-11)


def test_folds_follow_the_content_of_rows():
    X, y, _ = rows(n=300)
    order = np.random.default_rng(1).permutation(300)
    folds = fold_moments(X, y, n_folds=3)
    assert sum(fold.n_rows for fold in folds) == 300
    assert min(fold.n_rows for fold in folds) > 60
    shuffled = fold_moments(X[order], y[order], n_folds=3)
    columns = fold_moments(X[:, ::-1], y, n_folds=3)
    swapped = fold_moments(y, X, n_folds=3)
    assert [f.n_rows for f in folds] == [f.n_rows for f in shuffled] == [f.n_rows for f in columns]
    for fold, other, mirrored in zip(folds, shuffled, swapped, strict=True):
        assert_equal_moments(fold, other)
        assert_equal_moments(fold, mirrored.swap())
    assert_equal_moments(PairMoments.merge_all(folds), PairMoments.from_arrays(X, y))


def test_row_hash_ignores_the_sign_of_zero_and_spreads():
    assert row_hash(np.array([[0.0, 1.0]])) == row_hash(np.array([[-0.0, 1.0]]))
    halves = np.random.default_rng(0).normal(size=(3000, 5)).astype(np.float16).astype(float)
    counts = np.bincount((row_hash(halves) % np.uint64(3)).astype(int))
    assert counts.min() > 900


def test_a_memory_map_is_read_and_left_as_it_was(tmp_path):
    X, y, _ = rows(n=400)
    np.save(tmp_path / "X.npy", X)
    for mode in ("r", "r+", "c"):
        mapped = np.load(tmp_path / "X.npy", mmap_mode=mode)
        if mode == "c":
            mapped[0] = 7.0
        changed = np.array(mapped)
        assert_equal_moments(
            PairMoments.from_arrays(mapped, y), PairMoments.from_arrays(changed, y)
        )
        np.testing.assert_array_equal(mapped, changed)
