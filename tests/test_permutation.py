"""Matching of coordinates: what was planted, all permutations by brute force, and constants."""

import pickle
from dataclasses import replace
from itertools import permutations, product

import numpy as np
import pytest
import torch
from conftest import assert_close, assert_same_map, noisy_pair
from sklearn.base import clone

from sklearn_bijection import PermutationAligner
from sklearn_bijection._moments import PairMoments
from sklearn_bijection._solvers import _permutation

DIRECTIONS = ["symmetric", "forward", "backward"]
MATCHINGS = ["correlation", "inner product"]
#: Its columns, and their product, are orthogonal to each other.
DESIGN = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
MIRROR = {"forward": "backward", "backward": "forward", "symmetric": "symmetric"}


def planted(n_samples=400, width=8, *, noise=0.0, signed=False, seed=0):
    """A pair, and for each column of y the column of X that it is and its scale."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, width)) * rng.uniform(0.5, 2, width) + rng.normal(size=width)
    order, scales = rng.permutation(width), rng.uniform(0.5, 2, width)
    if signed:
        scales *= np.where(np.arange(width) % 2, 1, -1)
    y = (X[:, order] + noise * X.std(axis=0)[order] * rng.normal(size=X.shape)) * scales
    return X, y + 3.0, order, scales


def correlations(X, y):
    """Of every column of X with every column of y, by numpy."""
    return np.corrcoef(X.T, y.T)[: X.shape[1], X.shape[1] :]


def covariances(X, y):
    return np.cov(X.T, y.T, bias=True)[: X.shape[1], X.shape[1] :]


def injections(p, q):
    """All lists of pairs that give every coordinate of the narrower side a partner of its own."""
    narrow, wide = min(p, q), max(p, q)
    for images in permutations(range(wide), narrow):
        pairs = list(zip(range(narrow), images, strict=True))
        yield pairs if p <= q else [(j, i) for i, j in pairs]


def pairs_of(aligner):
    return [(int(i), j) for j, i in enumerate(aligner.permutation_) if i >= 0]


@pytest.mark.parametrize("matching", MATCHINGS)
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("signed", [False, True])
def test_planted_pairs_and_scales_are_recovered_exactly(signed, direction, matching):
    X, y, order, scales = planted(signed=signed)
    aligner = PermutationAligner(signed=signed, direction=direction, matching=matching).fit(X, y)
    np.testing.assert_array_equal(aligner.permutation_, order)
    np.testing.assert_allclose(aligner.scales_, scales, rtol=1e-12)
    np.testing.assert_allclose(aligner.scores_, np.sign(scales), rtol=1e-12)
    assert_close(aligner.transform(X), y, 1e-12)
    assert_close(aligner.inverse_transform(y), X, 1e-12)


@pytest.mark.parametrize("signed", [False, True])
def test_under_noise_the_pairs_are_right_and_the_scales_are_within_their_standard_error(signed):
    X, y, order, scales = planted(2000, 60, noise=0.7, signed=signed)
    aligner = PermutationAligner(signed=signed, direction="forward").fit(X, y)
    np.testing.assert_array_equal(aligner.permutation_, order)
    error = (aligner.scales_ / scales - 1) / (0.7 / np.sqrt(2000))
    assert 0.7 < np.sqrt(np.square(error).mean()) < 1.3
    assert np.abs(error).max() < 5


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("widths", [(6, 6), (4, 7), (7, 4)])
def test_transform_is_what_the_attributes_say(widths, direction):
    X, y = noisy_pair(100, *widths)
    aligner = PermutationAligner(signed=True, direction=direction).fit(X, y)
    centred = X - aligner.mean_x_
    there = centred[:, aligner.permutation_] * aligner.scales_ + aligner.mean_y_
    np.testing.assert_allclose(aligner.transform(X), there, atol=1e-12)
    back = np.tile(aligner.mean_x_, (100, 1))
    for i, j in pairs_of(aligner):
        back[:, i] += (y[:, j] - aligner.mean_y_[j]) / aligner.scales_[j]
    np.testing.assert_allclose(aligner.inverse_transform(y), back, atol=1e-12)
    np.testing.assert_allclose(centred @ aligner.map_.there.coef + aligner.mean_y_, there)


@pytest.mark.parametrize("widths", [(5, 5), (4, 5), (5, 4), (1, 5), (5, 1)])
@pytest.mark.parametrize("matching", MATCHINGS)
@pytest.mark.parametrize("signed", [False, True])
def test_of_all_matchings_it_has_the_greatest_total_score(signed, matching, widths):
    X, y = noisy_pair(50, *widths, noise=2.0)
    scores = (correlations if matching == "correlation" else covariances)(X, y)
    scores = np.abs(scores) if signed else scores
    best = max(injections(*widths), key=lambda pairs: sum(scores[pair] for pair in pairs))
    aligner = PermutationAligner(signed=signed, matching=matching).fit(X, y)
    assert sorted(pairs_of(aligner)) == sorted(best)
    found = [correlations(X, y)[i, j] if i >= 0 else 0 for j, i in enumerate(aligner.permutation_)]
    np.testing.assert_allclose(aligner.scores_, found, atol=1e-12)


@pytest.mark.parametrize("signed", [False, True])
def test_without_scales_no_permutation_is_nearer(signed):
    X, y = noisy_pair(50, 4, 4, noise=2.0)
    plain = PermutationAligner(scale=None, signed=signed, matching="inner product").fit(X, y)
    X, y = X - X.mean(axis=0), y - y.mean(axis=0)
    signs = product([1, -1], repeat=4) if signed else [(1, 1, 1, 1)]
    errors = {
        (order, sign): np.square(y - X[:, order] * sign).sum()
        for sign in signs
        for order in permutations(range(4))
    }
    found = tuple(plain.permutation_), tuple(plain.scales_)
    assert found == min(errors, key=errors.get)


def test_with_symmetric_scales_no_matching_has_less_relative_error_in_either_direction():
    X, y = noisy_pair(50, 4, 4, noise=2.0)
    aligner = PermutationAligner().fit(X, y)
    unit_x, unit_y = ((a - a.mean(axis=0)) / a.std(axis=0) for a in (X, y))
    least = min(
        np.square(unit_y - unit_x[:, order]).mean(axis=0).sum() for order in permutations(range(4))
    )
    there = np.square(y - aligner.transform(X)).mean(axis=0) / y.var(axis=0)
    back = np.square(X - aligner.inverse_transform(y)).mean(axis=0) / X.var(axis=0)
    assert there.sum() == pytest.approx(least)
    assert back.sum() == pytest.approx(least)


@pytest.mark.parametrize("weighted", [False, True])
def test_scales_are_the_slopes_of_the_regression_in_their_direction(weighted):
    X, y, order, _ = planted(noise=1.0, signed=True)
    root = np.sqrt(np.random.default_rng(3).uniform(size=400) if weighted else np.ones(400))
    fits = {d: PermutationAligner(signed=True, direction=d) for d in DIRECTIONS}
    for aligner in fits.values():
        aligner.fit(X, y, sample_weight=root**2)
    for j, i in enumerate(order):
        slopes = [np.polyfit(*ab, 1, w=root)[0] for ab in ((X[:, i], y[:, j]), (y[:, j], X[:, i]))]
        assert fits["forward"].scales_[j] == pytest.approx(slopes[0])
        assert fits["backward"].scales_[j] == pytest.approx(1 / slopes[1])
        geometric = np.sign(slopes[0]) * np.sqrt(slopes[0] / slopes[1])
        assert fits["symmetric"].scales_[j] == pytest.approx(geometric)


def test_units_of_the_columns_count_for_inner_products_alone():
    a, b = np.random.default_rng(0).normal(size=(2, 200))
    # The two large ones are weakly correlated.
    X, y = np.c_[100 * a, b], np.c_[a, 100 * (a + 3 * b)]
    found = {m: list(PermutationAligner(matching=m).fit(X, y).permutation_) for m in MATCHINGS}
    assert found == {"correlation": [0, 1], "inner product": [1, 0]}


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("widths", [(6, 6), (4, 7), (7, 4)])
def test_reordered_columns_are_matched_in_the_new_order(widths, signed):
    X, y = noisy_pair(100, *widths)
    rng = np.random.default_rng(0)
    of_x, of_y = (rng.permutation(width) for width in widths)
    plain = PermutationAligner(signed=signed).fit(X, y)
    moved = PermutationAligner(signed=signed).fit(X[:, of_x], y[:, of_y])
    assert_close(moved.transform(X[:, of_x]), plain.transform(X)[:, of_y])
    assert_close(moved.inverse_transform(y[:, of_y]), plain.inverse_transform(y)[:, of_x])
    expected = plain.permutation_[of_y]
    found = np.where(moved.permutation_ >= 0, of_x[moved.permutation_], -1)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_the_fit_of_the_swapped_pair_is_the_inverse(direction):
    X, y, *_ = planted(noise=1.0)
    there = PermutationAligner(direction=direction).fit(X, y)
    back = PermutationAligner(direction=MIRROR[direction]).fit(y, X)
    np.testing.assert_array_equal(back.permutation_, np.argsort(there.permutation_))
    np.testing.assert_allclose(back.scales_[there.permutation_] * there.scales_, 1.0)
    assert_close(back.transform(y), there.inverse_transform(y), 1e-12)
    assert_close(back.inverse_transform(X), there.transform(X), 1e-12)


@pytest.mark.parametrize(("axis", "seed"), [("y", 0), ("X", 1)])
def test_the_narrower_space_is_injected_and_the_rest_is_its_mean(axis, seed):
    narrow, wide, order, scales = planted(width=8, seed=seed)
    kept = np.flatnonzero(order != order[3])
    narrow = narrow[:, np.delete(np.arange(8), order[3])]
    X, y = (narrow, wide) if axis == "y" else (wide, narrow)
    aligner = PermutationAligner().fit(X, y)
    image = aligner.transform(X) if axis == "y" else aligner.inverse_transform(y)
    assert_close(image[:, kept], wide[:, kept], 1e-12)
    assert (image[:, 3] == (aligner.mean_y_ if axis == "y" else aligner.mean_x_)[3]).all()
    if axis == "y":
        assert aligner.permutation_[3] == -1
        assert aligner.scales_[3] == aligner.scores_[3] == 0
        np.testing.assert_allclose(aligner.scales_[kept], scales[kept])
        assert_close(aligner.inverse_transform(image), X, 1e-12)
    else:
        assert sorted(aligner.permutation_) == list(kept)
        assert_close(aligner.transform(image), y, 1e-12)


def test_a_coordinate_that_varies_never_loses_its_partner_to_a_constant():
    a = np.random.default_rng(0).normal(size=50)
    constant = np.full(50, 0.1)
    # Any score of the constant above -1 would separate the two that vary.
    with pytest.warns(UserWarning, match="1 of 1 matched pairs have a negative covariance"):
        aligner = PermutationAligner().fit(np.c_[a, constant], np.c_[constant, -a])
    np.testing.assert_array_equal(aligner.permutation_, [1, 0])
    np.testing.assert_allclose(aligner.scores_, [0, -1])
    np.testing.assert_allclose(aligner.scales_, [0, 1])


@pytest.mark.parametrize("matching", MATCHINGS)
@pytest.mark.parametrize("scale", ["positive", None])
def test_what_is_matched_with_a_constant_is_the_mean_both_ways(scale, matching):
    a, b = np.random.default_rng(0).normal(size=(2, 50)) + 5.0
    X = np.c_[a, b, np.full(50, 0.1)]
    y = np.c_[np.full(50, 0.3), np.full(50, -7.0), 2 * b]
    aligner = PermutationAligner(scale=scale, matching=matching).fit(X, y)
    np.testing.assert_array_equal(aligner.permutation_, [2, 0, 1])
    np.testing.assert_allclose(aligner.scales_, [0, 0, 2 if scale else 1])
    np.testing.assert_allclose(aligner.scores_, [0, 0, 1])
    there, back = aligner.transform(X), aligner.inverse_transform(y)
    assert (there[:, :2] == [0.3, -7.0]).all()
    assert (back[:, 2] == 0.1).all()
    assert (back[:, 0] == aligner.mean_x_[0]).all()
    if scale:
        assert_close(back[:, 1], b, 1e-12)


def test_a_coordinate_too_small_beside_the_others_for_its_squares_counts_as_constant():
    X, y, *_ = planted()
    aligner = PermutationAligner().fit(X * np.where(np.arange(8) == 2, 1e-160, 1.0), y)
    assert np.count_nonzero(aligner.scales_) == 7
    assert np.isfinite(aligner.transform(X)).all()


def test_units_of_single_columns_carry_through_the_correlations():
    X, y = noisy_pair(100)
    units = np.geomspace(1e-6, 1e6, 6)
    plain = PermutationAligner().fit(X, y)
    scaled = PermutationAligner().fit(X * units, y * units[::-1])
    np.testing.assert_array_equal(scaled.permutation_, plain.permutation_)
    np.testing.assert_allclose(scaled.scores_, plain.scores_, atol=1e-12)
    expected = plain.scales_ * units[::-1] / units[plain.permutation_]
    np.testing.assert_allclose(scaled.scales_, expected)
    back = scaled.inverse_transform(scaled.transform(X * units))
    np.testing.assert_allclose(back / units, X, atol=1e-12)


def with_dead_units(dtype, deviations, seed=0):
    """A planted pair, its partners, and X with more columns of hardly any deviation."""
    X, y, order, _ = planted(200, noise=0.3, seed=seed)
    rng = np.random.default_rng(seed)
    dead = rng.normal(size=(200, len(deviations))) * deviations
    X, y = np.c_[X, dead], np.c_[y, rng.normal(size=(200, len(deviations)))]
    return X.astype(dtype), y.astype(dtype), order


@pytest.mark.parametrize("matching", MATCHINGS)
@pytest.mark.parametrize(
    ("dtype", "deviations"),
    [(np.float32, [1e-32, 2e-9, 1e-8]), (np.float64, [1e-32, 1e-20, 5e-17])],
)
def test_units_that_vary_by_rounding_beside_the_others_are_dead(dtype, deviations, matching):
    X, y, order = with_dead_units(dtype, deviations)
    aligner = PermutationAligner(matching=matching).fit(X, y)
    np.testing.assert_array_equal(aligner.permutation_[:8], order)
    np.testing.assert_array_equal(aligner.scales_[8:], 0)
    np.testing.assert_array_equal(aligner.scores_[8:], 0)
    noisy = X.copy()
    noisy[:, 8:] += np.random.default_rng(1).normal(size=(200, 3))
    np.testing.assert_array_equal(aligner.transform(noisy), aligner.transform(X))
    back = PermutationAligner(matching=matching).fit(y, X)
    np.testing.assert_array_equal(np.argsort(back.permutation_)[:8], order)


@pytest.mark.parametrize(("dtype", "deviation"), [(np.float32, 1e-6), (np.float64, 1e-14)])
def test_units_that_vary_by_more_than_rounding_are_live(dtype, deviation):
    X, y, order = with_dead_units(dtype, [deviation])
    aligner = PermutationAligner().fit(X, y)
    np.testing.assert_array_equal(aligner.permutation_, [*order, 8])
    assert aligner.scales_[8] == pytest.approx(y[:, 8].std() / X[:, 8].std(), rel=1e-4)


@pytest.mark.parametrize("signed", [False, True])
def test_scores_are_correlations_also_where_rounding_would_carry_them_beyond_one(signed):
    for seed in range(50):
        X = np.random.default_rng(seed).normal(size=(20, 5))
        y = X[:, ::-1] * [1, 3, 0.3, 7, 0.1] * (-1 if signed else 1)
        scores = PermutationAligner(signed=signed).fit(X, y).scores_
        assert np.abs(scores).max() <= 1


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("scale", ["positive", None])
def test_coordinates_that_mostly_run_against_their_partners_are_reported(scale, direction):
    X = np.random.default_rng(0).normal(size=(50, 1))
    fitted_to_errors = scale is not None and direction != "symmetric"
    match = "no positive covariance" if fitted_to_errors else "1 of 1 .* negative .*signed=True"
    with pytest.warns(UserWarning, match=match) as caught:
        PermutationAligner(scale=scale, direction=direction).fit(X, -X)
    assert [warning.filename for warning in caught] == [__file__]
    aligner = PermutationAligner(scale=scale, direction=direction, signed=True).fit(X, -X)
    assert_close(aligner.transform(X), -X, 1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_numbers_whose_sum_leaves_the_range_of_floats_are_matched(weighted):
    X, y, order, scales = planted()
    weight = np.full(400, 3.0) if weighted else None
    aligner = PermutationAligner().fit(X * 1e306, y, sample_weight=weight)
    np.testing.assert_array_equal(aligner.permutation_, order)
    np.testing.assert_allclose(aligner.scales_ * 1e306, scales)
    assert_close(aligner.transform(X * 1e306), y, 1e-12)


@pytest.mark.parametrize(("above", "n_unscaled"), [(0.5, 1), (2.0, 0)])
def test_a_correlation_counts_once_it_is_above_rounding(above, n_unscaled):
    a, b = np.tile(DESIGN, (16, 1)).T
    r = above * 64 * np.finfo(float).eps
    X, y = a[:, np.newaxis], (r * a + b)[:, np.newaxis]
    moments = PairMoments.from_arrays(X, y)
    exact = replace(moments, cross=np.array([[64 * r]]))
    found = _permutation.solve_permutation(exact, direction="forward")
    assert found.n_unscaled == n_unscaled
    assert found.scales[0] == pytest.approx(1.0 if n_unscaled else r)


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_pairs_without_a_positive_covariance_take_the_symmetric_scale_and_are_counted(direction):
    a, b = DESIGN.T
    X, y = np.c_[a, b], np.c_[3 * a, 2 * a * b - b]
    match = (
        rf"^1 of 2 matched pairs have no positive covariance, .* direction='{direction}'"
        r".*Pass direction='symmetric', or signed=True"
    )
    with pytest.warns(UserWarning, match=match) as caught:
        aligner = PermutationAligner(direction=direction).fit(X, y)
    assert [warning.filename for warning in caught] == [__file__]
    assert aligner.scales_[0] == pytest.approx(3.0)
    assert aligner.scales_[1] == pytest.approx(np.sqrt(5.0))
    stream = PermutationAligner(direction=direction).partial_fit(X, y)
    with pytest.warns(UserWarning, match="1 of 2"):
        stream.transform(X)
    # Nothing to warn of: neither where signs are allowed nor where no scale is fitted to an error.
    PermutationAligner(direction=direction, signed=True).fit(X, y)
    PermutationAligner(direction=direction, scale=None).fit(X, y)
    PermutationAligner().fit(X, y)


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_pairs_without_any_covariance_are_counted_also_with_signs(direction):
    match = "^1 of 1 matched pairs have no covariance,.*symmetric'\\.$"
    with pytest.warns(UserWarning, match=match):
        aligner = PermutationAligner(signed=True, direction=direction).fit(
            0.1 * DESIGN[:, :1], 0.3 * DESIGN[:, 1:]
        )
    np.testing.assert_allclose(aligner.scales_, [3.0])


def test_equal_columns_are_matched_the_same_way_every_time():
    X, _, *_ = planted(width=4)
    X = X[:, [0, 0, 1, 2, 2, 2]]
    first, second = (PermutationAligner().fit(X, X) for _ in range(2))
    np.testing.assert_array_equal(first.permutation_, second.permutation_)
    assert sorted(first.permutation_) == list(range(6))
    assert_close(first.transform(X), X, 1e-12)


@pytest.mark.parametrize("n", [2, 3, 10])
def test_with_fewer_rows_than_columns_it_is_still_a_bijection(n):
    X, y = noisy_pair(n, 20, 20)
    aligner = PermutationAligner(signed=True).fit(X, y)
    anywhere = np.random.default_rng(0).normal(size=(50, 20))
    assert sorted(aligner.permutation_) == list(range(20))
    assert_close(aligner.inverse_transform(aligner.transform(anywhere)), anywhere, 1e-12)


def test_a_thousand_batches_cost_one_assignment(monkeypatch):
    solve, calls = _permutation.linear_sum_assignment, []
    monkeypatch.setattr(
        _permutation, "linear_sum_assignment", lambda costs: calls.append(1) or solve(costs)
    )
    X, y, order, _ = planted(2000, 4, noise=0.5)
    aligner = PermutationAligner()
    for rows in np.array_split(np.arange(2000), 1000):
        aligner.partial_fit(X[rows], y[rows])
    assert not calls
    np.testing.assert_array_equal(aligner.permutation_, order)
    assert_same_map(aligner, clone(aligner).fit(X, y), X, y)
    assert len(calls) == 2


def test_the_sums_of_a_stream_outlive_the_matching():
    X, y, *_ = planted(200, noise=0.5, signed=True)
    aligner = PermutationAligner(signed=True).partial_fit(X, y)
    before = aligner._sums[0].moments().cross.copy()
    aligner.transform(X)
    np.testing.assert_array_equal(aligner._sums[0].moments().cross, before)


def test_the_map_holds_no_matrix():
    X, y, *_ = planted(20, 500)
    assert len(pickle.dumps(PermutationAligner().fit(X, y).map_)) < 100 * 500


def test_the_module_selects_with_whole_numbers_in_any_precision():
    X, y, order, _ = planted()
    module = PermutationAligner().fit(X, y).to_torch(torch.float16)
    state = module.state_dict()
    np.testing.assert_array_equal(state["index"], order)
    np.testing.assert_array_equal(state["inverse_index"], np.argsort(order))
    assert {value.dtype for value in state.values()} == {torch.int64, torch.float16}
    assert not list(module.parameters())


def test_a_scale_that_cannot_be_divided_by_in_that_precision_is_refused():
    X, y, *_ = planted()
    aligner = PermutationAligner().fit(X, y * 1e-45)
    with pytest.raises(ValueError, match=r"float32 cannot hold inverse_scale.*float64"):
        aligner.to_torch(torch.float32)
    rows = torch.from_numpy(X)
    module = aligner.to_torch(torch.float64)
    assert_close(module.inverse(module(rows)).numpy(), X, 1e-12)
