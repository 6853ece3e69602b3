"""Canonical coordinates of whole spaces, and the ridge regressions that are diagonal in them."""

import numpy as np
import pytest
from conftest import assert_close, noisy_pair
from sklearn.linear_model import LinearRegression, Ridge

from sklearn_bijection._linalg import completed
from sklearn_bijection._moments import PairMoments, fold_moments, fold_of
from sklearn_bijection._solvers import Standard, ridge_shrinkage, solve_frame
from sklearn_bijection._solvers._ridge import RIDGE_GRID


def rank_deficient():
    X, y = noisy_pair(200, 7, 6)
    mix = np.random.default_rng(5).normal(size=(3, 7))
    X = X[:, :3] @ mix + 2.0
    y[:, 4] = y[:, 1] - 2 * y[:, 0]
    return X, y


def with_constant_columns():
    X, y = noisy_pair(200, 6, 8)
    X[:, [0, 4]], y[:, 2] = (3.0, 0.0), -5.0
    return X, y


def in_extreme_units():
    X, y = noisy_pair(200, 6, 4)
    return X * 1e-150, y * 1e150


PAIRS = {
    "equal widths": lambda: noisy_pair(200, 6, 6),
    "wider": lambda: noisy_pair(200, 4, 8),
    "narrower": lambda: noisy_pair(200, 8, 4),
    "one column": lambda: noisy_pair(200, 1, 3),
    "rank deficient": rank_deficient,
    "constant columns": with_constant_columns,
    "fewer rows than columns": lambda: noisy_pair(6, 9, 8),
    "exact": lambda: noisy_pair(200, 5, 5, noise=0.0),
    "extreme units": in_extreme_units,
    "far from zero": lambda: tuple(part + 1e4 for part in noisy_pair(200, 6, 5)),
}
SHRINKAGES = [(0.0, 0.0), (0.02, 0.02), (0.4, 0.3)]


@pytest.fixture(params=PAIRS)
def pair(request):
    return PAIRS[request.param]()


def frame_of(X, y, shrinkage=(0.2, 0.1), weight=None):
    return solve_frame(PairMoments.from_arrays(X, y, weight), shrinkage)


def coordinates(frame, X, y):
    """Rows of both views in the canonical coordinates of the frame."""
    return (
        frame.source.arrange(X, frame.width) @ frame.x.there,
        frame.target.arrange(y, frame.width) @ frame.y.there,
    )


def rank_of(rows):
    return np.linalg.matrix_rank(rows - rows.mean(axis=0), tol=1e-9 * np.ptp(rows))


def ridge(X, y, shrinkage, weight=None):
    """scikit-learn's, with the penalty that the shrinkage stands for."""
    weight = np.ones(len(X)) if weight is None else weight
    # In units of order 1; the fit says the same in any.
    centred = X - np.average(X, axis=0, weights=weight)
    unit = np.abs(centred).max()
    spread = weight @ np.square(centred / unit).sum(axis=1) / rank_of(X[weight > 0])
    alpha = shrinkage / (1 - shrinkage) * spread
    model = Ridge(alpha) if shrinkage else LinearRegression()
    model.fit(centred / unit, y, sample_weight=weight)
    return lambda rows: model.predict((rows - (X - centred)[0]) / unit).reshape(len(rows), -1)


# Coordinates of the whole space.


@pytest.mark.parametrize("shrinkage", SHRINKAGES, ids=str)
def test_both_bases_are_bases_of_the_whole_space(pair, shrinkage):
    frame = frame_of(*pair, shrinkage)
    for basis in (frame.x, frame.y):
        assert basis.there.shape == basis.back.shape == (frame.width, frame.width)
        np.testing.assert_allclose(basis.back @ basis.there, np.eye(frame.width), atol=1e-9)
        np.testing.assert_allclose(basis.there @ basis.back, np.eye(frame.width), atol=1e-9)


def test_the_width_is_the_larger_number_of_columns_that_vary(pair):
    frame = frame_of(*pair)
    live = [np.flatnonzero(np.ptp(part, axis=0)) for part in pair]
    assert frame.width == max(map(len, live))
    for found, expected in zip((frame.source.columns, frame.target.columns), live, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_without_shrinkage_coordinates_are_white_and_correlated_in_pairs(pair):
    X, y = pair
    frame = frame_of(X, y, (0.0, 0.0))
    z, w = coordinates(frame, X, y)
    expected = np.eye(frame.width)
    for rows, part in ((z, X), (w, y)):
        alive = np.arange(frame.width) < rank_of(part)
        np.testing.assert_allclose(rows.T @ rows / len(rows), expected * alive, atol=1e-6)
    np.testing.assert_allclose(z.T @ w / len(z), np.diag(frame.gain), atol=1e-6)


@pytest.mark.parametrize("shrinkage", SHRINKAGES, ids=str)
def test_gains_are_shares_and_zero_beyond_the_pairs(pair, shrinkage):
    frame = frame_of(*pair, shrinkage)
    pairs = min(map(rank_of, pair))
    assert (frame.gain >= 0).all()
    assert (frame.gain <= 1).all()
    assert (np.diff(frame.gain) <= 0).all()
    assert not frame.gain[pairs:].any()


def test_directions_without_variance_are_scaled_like_the_least_of_the_others():
    X, y = rank_deficient()
    frame = frame_of(X, y, (0.0, 0.0))
    least = np.sqrt(np.linalg.eigvalsh(np.cov(X.T, bias=True))[-3]) / frame.source.unit
    lengths = np.linalg.norm(frame.x.back, axis=1)
    np.testing.assert_allclose(lengths[3:], least, rtol=1e-6)


def test_swapping_the_views_swaps_the_frame(pair):
    moments = PairMoments.from_arrays(*pair)
    frame, swapped = solve_frame(moments, (0.2, 0.1)), solve_frame(moments.swap(), (0.1, 0.2))
    np.testing.assert_allclose(swapped.gain, frame.gain, atol=1e-9)
    np.testing.assert_array_equal(swapped.source.mean, frame.target.mean)
    assert swapped.target.unit == frame.source.unit


# The rows of a view as coordinates of order 1.


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_come_back_from_standard_coordinates(pair, dtype):
    for part, side in zip(pair, ("x", "y"), strict=True):
        rows = part.astype(dtype if np.abs(part).max() < 1e30 and np.ptp(part) > 1e-30 else float)
        kept = rows.copy()
        standard = Standard.of(getattr(PairMoments.from_arrays(rows, rows), side), len(rows))
        found = standard.arrange(rows, width=12)
        assert found.dtype == standard.restore(found).dtype == rows.dtype
        assert np.square(found).mean(axis=0).sum() == pytest.approx(len(standard.columns), rel=1e-3)
        assert not found[:, len(standard.columns) :].any()
        resolution = 1e-6 if rows.dtype == np.float32 else 1e-12
        np.testing.assert_allclose(
            standard.restore(found), rows, rtol=resolution, atol=resolution * np.ptp(rows)
        )
        np.testing.assert_array_equal(rows, kept)


def test_constant_columns_come_back_as_their_constants():
    X, y = with_constant_columns()
    standard = frame_of(X, y).source
    rows = standard.restore(np.random.default_rng(0).normal(size=(5, 8)))
    assert (rows[:, 0] == 3.0).all()
    assert (rows[:, 4] == 0.0).all()
    assert standard.columns.tolist() == [1, 2, 3, 5]


def test_another_type_is_given_on_request():
    X, y = noisy_pair(20)
    standard = frame_of(X, y).source
    assert standard.arrange(X, 6, np.float32).dtype == np.float32
    assert standard.restore(X.astype(np.float32), np.float64).dtype == np.float64


# The ridge regressions.


def assert_two_ridges(X, y, shrinkage, weight=None):
    frame = frame_of(X, y, shrinkage, weight)
    z, w = coordinates(frame, X, y)
    there = frame.target.restore(z * frame.gain @ frame.y.back)
    back = frame.source.restore(w * frame.gain @ frame.x.back)
    assert_close(there, ridge(X, y, shrinkage[0], weight)(X), 1e-7)
    assert_close(back, ridge(y, X, shrinkage[1], weight)(y), 1e-7)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shrinkage", SHRINKAGES, ids=str)
def test_the_gains_are_two_ridge_regressions(pair, shrinkage, weighted):
    assert_two_ridges(*pair, shrinkage, np.arange(len(pair[0])) % 3.0 + 0.5 if weighted else None)


@pytest.mark.parametrize("shrinkage", [(0.02, 0.05), (0.3, 0.0), (0.01, 0.5)], ids=str)
@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_so_they_are_where_one_view_is_shrunk_more_than_the_other(noise, shrinkage):
    assert_two_ridges(*noisy_pair(200, 6, 6, noise=noise), shrinkage)


def searched(X, y, weight=None):
    """The shrinkage of least error in an explicit search, fold by fold on the rows themselves."""
    weight = np.ones(len(X)) if weight is None else weight
    fold, errors = fold_of(X, y, 3), np.zeros(len(RIDGE_GRID))
    for i in range(3):
        train, test = fold != i, fold == i
        for j, shrinkage in enumerate(RIDGE_GRID):
            found = ridge(X[train], y[train], shrinkage, weight[train])(X[test])
            errors[j] += weight[test] @ np.square(y[test] - found).sum(axis=1)
    return RIDGE_GRID[errors.argmin()]


NOISY = {
    "few rows": lambda: noisy_pair(60, 12, 12, noise=1.5),
    "wider": lambda: noisy_pair(60, 5, 12, noise=3.0),
    "narrower": lambda: noisy_pair(60, 12, 5, noise=0.7),
    "fewer rows than columns": lambda: noisy_pair(30, 40, 30, noise=1.0),
    "rank deficient": lambda: (noisy_pair(90)[0] @ np.ones((6, 2)), noisy_pair(90, noise=5.0)[1]),
    "constant column": lambda: (
        np.c_[noisy_pair(60, 12, 5)[0], np.full(60, 3.0)],
        noisy_pair(60, 12, 5, noise=3.0)[1],
    ),
    "far from zero": lambda: tuple(part + 1e3 for part in noisy_pair(60, 12, 12, noise=1.5)),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", NOISY)
def test_the_penalty_is_that_of_a_search_over_the_grid(name, weighted):
    X, y = NOISY[name]()
    weight = np.arange(len(X)) % 3.0 + 0.5 if weighted else None
    folds = fold_moments(X, y, weight, n_folds=3)
    assert ridge_shrinkage(folds) == searched(X, y, weight)
    assert ridge_shrinkage(tuple(fold.swap() for fold in folds)) == searched(y, X, weight)


def test_the_searches_do_not_all_end_at_one_penalty():
    found = {ridge_shrinkage(fold_moments(*build(), n_folds=3)) for build in NOISY.values()}
    assert len(found) > 3
    assert 0.0 not in found


@pytest.mark.parametrize("widths", [(5, 5), (8, 3)])
def test_exact_pairs_are_not_shrunk(widths):
    folds = fold_moments(*noisy_pair(200, *widths, noise=0.0), n_folds=3)
    assert ridge_shrinkage(folds) == 0.0


@pytest.mark.parametrize("units", [(1e-150, 1e150), (1e6, 1e-6), (2.0**400, 2.0**-300)], ids=str)
def test_the_penalty_does_not_depend_on_units(units):
    folds = fold_moments(*noisy_pair(60, 12, 12, noise=1.5), n_folds=3)
    # Folds are a hash of the values, so that the rows of each are scaled after they are chosen.
    X, y = noisy_pair(60, 12, 12, noise=1.5)
    fold = fold_of(X, y, 3)
    scaled = [
        PairMoments.from_arrays(X[fold == i] * units[0], y[fold == i] * units[1]) for i in range(3)
    ]
    assert ridge_shrinkage(tuple(scaled)) == ridge_shrinkage(folds) > 0


def test_the_grid_starts_at_least_squares_and_ascends():
    assert RIDGE_GRID[0] == 0
    assert RIDGE_GRID[-1] < 1
    assert (np.diff(RIDGE_GRID) > 0).all()


# Completing a linear map to one of the whole space.


def there_and_back(n_columns, rank, seed=0):
    """A map onto `rank` coordinates, and a way back that is not its pseudo-inverse."""
    rng = np.random.default_rng(seed)
    there = rng.normal(size=(n_columns, rank))
    inverse = np.linalg.pinv(there)
    outside = np.eye(n_columns) - there @ inverse
    return there, inverse + rng.normal(size=(rank, n_columns)) @ outside


@pytest.mark.parametrize("unit", [1e-3, 1.0, 7.0])
@pytest.mark.parametrize(
    ("n_columns", "rank", "width"),
    [(6, 6, 6), (6, 2, 6), (6, 2, 9), (6, 6, 9), (1, 1, 2), (5, 0, 5)],
)
def test_a_completed_map_is_invertible_and_keeps_what_it_was(n_columns, rank, width, unit):
    there, back = there_and_back(n_columns, rank)
    kept = there.copy(), back.copy()
    whole, whole_back = completed(there, back, width, unit)
    np.testing.assert_allclose(whole @ whole_back, np.eye(width), atol=1e-9)
    np.testing.assert_allclose(whole_back @ whole, np.eye(width), atol=1e-9)
    np.testing.assert_array_equal(whole[:n_columns, :rank], there)
    np.testing.assert_array_equal(whole_back[:rank, :n_columns], back)
    assert not whole[n_columns:, :rank].any()
    for given, before in zip((there, back), kept, strict=True):
        np.testing.assert_array_equal(given, before)


@pytest.mark.parametrize("unit", [1e-3, 1.0, 7.0])
def test_what_a_map_leaves_of_a_row_is_divided_by_the_unit(unit):
    there, back = there_and_back(6, 2)
    whole, _ = completed(there, back, 9, unit)
    rows = np.random.default_rng(1).normal(size=(10, 9))
    left = rows[:, :6] - rows[:, :6] @ there @ back
    found = rows @ whole
    np.testing.assert_allclose(
        np.linalg.norm(found[:, 2:6], axis=1), np.linalg.norm(left, axis=1) / unit, rtol=1e-9
    )
    np.testing.assert_array_equal(found[:, 6:], rows[:, 6:])
