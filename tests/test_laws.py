"""Laws that every closed form obeys: ten objects through one law rather than ten tests."""

import numpy as np
import pytest
from conftest import ALIGNERS, assert_close, assert_same_map, noisy_pair
from sklearn.base import clone

from sklearn_bijection import CCAAligner, ProcrustesAligner

#: Those whose shrinkage does not follow the folds, which are drawn by the digits of the rows.
FIXED = [name for name in ALIGNERS if name != "cca"]

#: Those that look at the axes: a rotation is none of their moves.
TURNABLE = [name for name in FIXED if not name.startswith("permutation")]


def make(name):
    return clone(ALIGNERS[name])


def keeps_all(aligner):
    return (
        getattr(aligner, "n_components", None) is None
        and getattr(aligner, "explained_variance", None) is None
    )


@pytest.mark.filterwarnings("ignore:1 of 1 matched pairs have a negative covariance")
@pytest.mark.parametrize("widths", [(6, 6), (4, 9), (9, 4), (1, 1), (1, 5), (5, 1)])
def test_the_smaller_side_comes_back(aligner, widths):
    X, y = noisy_pair(200, *widths)
    if not keeps_all(aligner):
        pytest.skip("a projection by design")
    aligner.fit(X, y)
    if widths[0] <= widths[1]:
        assert_close(aligner.inverse_transform(aligner.transform(X)), X)
    if widths[0] >= widths[1]:
        assert_close(aligner.transform(aligner.inverse_transform(y)), y)


def test_round_trips_twice_are_round_trips_once(aligner):
    X, y = noisy_pair(200, 8, 5)
    aligner.fit(X, y)
    once = aligner.inverse_transform(aligner.transform(X))
    assert_close(aligner.inverse_transform(aligner.transform(once)), once)


@pytest.mark.parametrize("widths", [(6, 6), (4, 9), (9, 4)])
@pytest.mark.parametrize("seed", range(3))
def test_batches_of_any_size_in_any_order_are_the_whole(aligner, widths, seed):
    X, y = noisy_pair(120, *widths)
    weight = np.random.default_rng(9).integers(0, 3, 120).astype(float)
    whole = clone(aligner).fit(X, y, sample_weight=weight)
    rng = np.random.default_rng(seed)
    rows = rng.permutation(120)
    for batch in np.split(rows, np.sort(rng.choice(np.arange(1, 120), 11, replace=False))):
        if weight[batch].any():
            aligner.partial_fit(X[batch], y[batch], sample_weight=weight[batch])
    assert_same_map(aligner, whole, X, y)


def test_partial_fit_goes_on_after_fit(aligner):
    X, y = noisy_pair(120)
    whole = clone(aligner).fit(X, y)
    assert_same_map(aligner.fit(X[:70], y[:70]).partial_fit(X[70:], y[70:]), whole, X, y)


def test_fit_forgets(aligner):
    X, y = noisy_pair(120)
    expected = clone(aligner).fit(X[60:], y[60:])
    assert_same_map(aligner.fit(X[:60], y[:60]).fit(X[60:], y[60:]), expected, X, y, rtol=0)


def test_weights_are_repetitions(aligner):
    X, y = noisy_pair(150)
    counts = np.random.default_rng(0).integers(0, 4, 150)
    repeated = clone(aligner).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts, axis=0))
    assert_same_map(aligner.fit(X, y, sample_weight=counts), repeated, X, y)


def test_order_of_rows_does_not_matter(aligner):
    X, y = noisy_pair(150)
    order = np.random.default_rng(0).permutation(150)
    assert_same_map(clone(aligner).fit(X[order], y[order]), aligner.fit(X, y), X, y)


@pytest.mark.parametrize("widths", [(6, 6), (4, 9)])
def test_swapping_the_views_swaps_the_ways(aligner, widths):
    X, y = noisy_pair(150, *widths)
    mirrored = clone(aligner)
    mirror = {"forward": "backward", "backward": "forward", "symmetric": "symmetric"}
    mirrored.set_params(direction=mirror[aligner.direction])
    if isinstance(getattr(aligner, "shrinkage", None), tuple):
        mirrored.set_params(shrinkage=aligner.shrinkage[::-1])
    aligner.fit(X, y)
    mirrored.fit(y, X)
    assert_close(mirrored.inverse_transform(X), aligner.transform(X))
    assert_close(mirrored.transform(y), aligner.inverse_transform(y))


@pytest.mark.parametrize("name", FIXED)
def test_shift_of_either_space_carries_through(name):
    X, y = noisy_pair(150)
    plain, shifted = make(name).fit(X, y), make(name).fit(X + 1e4, y - 300.0)
    assert_close(shifted.transform(X + 1e4), plain.transform(X) - 300.0, 1e-9)
    assert_close(shifted.inverse_transform(y - 300.0), plain.inverse_transform(y) + 1e4, 1e-9)


@pytest.mark.parametrize("name", TURNABLE)
def test_rotation_of_either_space_carries_through(name):
    X, y = noisy_pair(150)
    rng = np.random.default_rng(1)
    P, Q = (np.linalg.qr(rng.normal(size=(6, 6)))[0] for _ in range(2))
    if not getattr(make(name), "allow_reflection", True):
        P, Q = (
            rotation * np.sign(np.linalg.det(rotation)) ** (np.arange(6) == 0)
            for rotation in (P, Q)
        )
    plain, turned = make(name).fit(X, y), make(name).fit(X @ P, y @ Q)
    assert_close(turned.transform(X @ P), plain.transform(X) @ Q)
    assert_close(turned.inverse_transform(y @ Q), plain.inverse_transform(y) @ P)


@pytest.mark.parametrize(
    "units", [(1e-6, 1.0), (1.0, 1e9), (1e-150, 1.0), (1e-150, 1e150), (1e120, 1e120)]
)
@pytest.mark.parametrize("name", FIXED)
def test_units_of_either_space_carry_through(name, units):
    X, y = noisy_pair(150)
    a, b = units
    if not getattr(make(name), "scale", True):
        pytest.skip("without a scale the units are taken as they are")
    plain, scaled = make(name).fit(X, y), make(name).fit(X * a, y * b)
    assert_close(scaled.transform(X * a), plain.transform(X) * b)
    assert_close(scaled.inverse_transform(y * b), plain.inverse_transform(y) * a)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_floating_type_is_kept_both_ways(aligner, dtype):
    X, y = (a.astype(dtype) for a in noisy_pair(100))
    aligner.fit(X, y)
    assert aligner.transform(X).dtype == dtype
    assert aligner.inverse_transform(y).dtype == dtype
    assert aligner.predict(X).dtype == dtype


def test_float32_agrees_with_float64(aligner):
    X, y = noisy_pair(200)
    X32, y32 = X.astype(np.float32), y.astype(np.float32)
    aligner.fit(X32, y32)
    exact = clone(aligner).fit(X32.astype(float), y32.astype(float))
    assert_close(aligner.transform(X32), exact.transform(X32.astype(float)), 1e-5)
    assert_close(aligner.inverse_transform(y32), exact.inverse_transform(y32.astype(float)), 1e-5)


def test_inputs_are_untouched(aligner):
    X, y = noisy_pair(100)
    weight = np.ones(100)
    copies = X.copy(), y.copy(), weight.copy()
    aligner.fit(X, y, sample_weight=weight)
    aligner.partial_fit(X, y, sample_weight=weight)
    aligner.transform(X)
    aligner.inverse_transform(y)
    aligner.score(X, y, sample_weight=weight)
    for array, copy in zip((X, y, weight), copies, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_global_generators_are_untouched(aligner):
    np.random.seed(7)
    before = np.random.get_state()[1].copy()
    aligner.fit(*noisy_pair(100))
    np.testing.assert_array_equal(np.random.get_state()[1], before)


def test_fits_are_deterministic(aligner):
    X, y = noisy_pair(100)
    np.testing.assert_array_equal(
        clone(aligner).fit(X, y).transform(X), aligner.fit(X, y).transform(X)
    )


EXACT = {"cca": CCAAligner(), "textbook": CCAAligner(shrinkage=0)}


@pytest.mark.parametrize("units", [1.0, 1e-6, 1e6])
@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("rank", [None, 3])
@pytest.mark.parametrize("widths", [(6, 6), (4, 9), (9, 4)])
@pytest.mark.parametrize("name", EXACT)
def test_linear_data_are_recovered_exactly(name, widths, rank, offset, units):
    rng = np.random.default_rng(0)
    shared = rank or min(widths)
    # Whole numbers, so that the offset itself rounds nothing away.
    latent = rng.integers(-8, 9, size=(400, shared))
    X, y = (latent @ rng.integers(-4, 5, size=(shared, width)) for width in widths)
    X, y = (X + offset) * units, y - offset
    aligner = clone(EXACT[name]).fit(X[:300], y[:300])
    assert_close(aligner.transform(X[300:]), y[300:])
    assert_close(aligner.inverse_transform(y[300:]), X[300:])
    assert aligner.shrinkage_ == (0.0, 0.0)
    assert aligner.rank_x_ == aligner.rank_y_ == aligner.n_components_ == shared


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("widths", [(6, 6), (4, 9), (9, 4)])
@pytest.mark.parametrize("direction", ["symmetric", "forward", "backward"])
def test_scaled_rotations_are_recovered_exactly(direction, widths, offset):
    rng = np.random.default_rng(0)
    frame = np.linalg.qr(rng.normal(size=(max(widths), min(widths))))[0]
    smaller = rng.normal(size=(300, min(widths)))
    larger = smaller @ frame.T
    X, y = (smaller, larger * 3.0) if widths[0] <= widths[1] else (larger, smaller * 3.0)
    y = y + offset
    aligner = ProcrustesAligner(direction=direction).fit(X, y)
    assert aligner.scale_ == pytest.approx(3.0, rel=1e-9)
    assert_close(aligner.transform(X), y, 1e-9)
    assert_close(aligner.inverse_transform(y), X, 1e-9)
