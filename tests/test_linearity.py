"""How linear a function is: exact cases, independent implementations, what it must not depend on."""

import numpy as np
import pandas as pd
import pytest
from conftest import noisy_pair
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.metrics import r2_score
from sklearn.metrics.pairwise import cosine_similarity
from sklearn.model_selection import GroupKFold, GroupShuffleSplit, KFold, ShuffleSplit

from sklearn_bijection._moments import fold_moments
from sklearn_bijection._solvers import ridge_shrinkage
from sklearn_bijection.metrics import linearity, r2

RNG = np.random.default_rng(0)
SCORES = ["r2", "gamma", "cosine", "baseline", "cone"]


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def scores(found, names=SCORES):
    return [getattr(found, name) for name in names]


def rotation(n, seed=0):
    return np.linalg.qr(normal(n, n, seed=seed))[0]


# Functions whose linearity is known.


@pytest.mark.parametrize("widths", [(4, 4), (3, 6), (6, 3), (5, 1)])
@pytest.mark.parametrize("shrinkage", ["auto", 0])
@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_what_is_affine_is_explained_in_full(widths, shrinkage, offset):
    X = normal(120, widths[0]) + offset
    found = linearity(X, X @ normal(*widths, seed=1) - 3.0, shrinkage=shrinkage)
    assert scores(found, ["r2", "cosine"]) == pytest.approx([1, 1], abs=1e-9)
    if widths[1] > 1:
        assert found.gamma == pytest.approx(1, abs=1e-9)


def test_single_precision_costs_single_precision():
    X = normal(200, 5).astype("float32")
    found = linearity(X, (X @ normal(5, 5, seed=1)).astype("float32"))
    assert scores(found, ["r2", "gamma", "cosine"]) == pytest.approx([1, 1, 1], abs=1e-6)


@pytest.mark.parametrize("function", [np.abs, np.square, np.cos], ids=lambda f: f.__name__)
def test_what_has_no_linear_part_is_worth_a_constant(function):
    X = normal(3000, 4)
    found = linearity(X, function(X))
    assert abs(found.r2) < 0.02 and abs(found.gamma) < 0.05
    assert found.cosine == pytest.approx(found.baseline, abs=0.02)


def test_half_of_a_function_is_half():
    """y = x + h with h uncorrelated with x, of the same variance."""
    X = normal(5000, 3)
    found = linearity(X, X + (np.square(X) - 1) / np.sqrt(2))
    assert found.r2 == pytest.approx(0.5, abs=0.03)


def test_a_cone_raises_the_cosine_of_anything_and_nothing_else():
    X, y = normal(800, 5), normal(800, 5, seed=1)
    for offset, least in ((0.0, -0.2), (10.0, 0.98)):
        found = linearity(X, y + offset)
        assert found.cosine > least and found.baseline > least
        assert abs(found.r2) < 0.02 and abs(found.gamma) < 0.1


def test_the_best_constant_reaches_the_root_of_the_cone():
    found = linearity(normal(2000, 4), normal(2000, 4, seed=1) + 1.5 * np.eye(4)[0])
    assert 0.2 < found.cone < 0.5
    assert found.baseline == pytest.approx(np.sqrt(found.cone), abs=2e-3)


def test_a_residual_connection_hides_what_is_not_linear():
    X = normal(1000, 4)
    part = 0.3 * np.abs(X)
    assert linearity(X, X + part).r2 > 0.95
    assert linearity(X, X + part - X).r2 < 0.02


@pytest.mark.parametrize("shrinkage", ["auto", 0, 0.5])
def test_rows_are_held_out(shrinkage):
    X, y = normal(60, 40), normal(60, 3, seed=1)
    assert r2(y, LinearRegression().fit(X, y).predict(X)) > 0.5
    assert linearity(X, y, shrinkage=shrinkage).r2 < 0.05


def test_shrinkage_is_chosen_where_rows_are_few():
    X, y = noisy_pair(80, 40, 5, noise=1.0)
    plain, chosen = (linearity(X, y, shrinkage=shrinkage) for shrinkage in (0, "auto"))
    assert chosen.r2 > plain.r2 + 0.1
    assert all(s > 0 for s in chosen.shrinkage_splits) and plain.shrinkage_splits == (0.0,) * 5


def test_a_chosen_shrinkage_is_that_of_the_training_rows():
    X, y = noisy_pair(90, 20, 4, noise=2.0)
    spoilt = y.copy()
    spoilt[:20] = 1e3 * normal(20, 4)
    split = [(np.arange(20, 90), np.arange(20))]
    found, other = (linearity(X, target, cv=split) for target in (y, spoilt))
    assert found.shrinkage_splits == other.shrinkage_splits and found.r2 != other.r2


# Against independent implementations.


def by_hand(X, y, model, cv):
    """All scores of a fitted model of scikit-learn, split by split."""
    rows = []
    for train, test in cv.split(X):
        guess = model.fit(X[train], y[train]).predict(X[test])
        units = [row / np.linalg.norm(row) for row in y[train]]
        constant = np.mean(units, axis=0, keepdims=True)
        cosine = np.diag(cosine_similarity(y[test], guess)).mean()
        baseline = cosine_similarity(y[test], constant).mean()
        pairs = cosine_similarity(y[test])[~np.eye(len(test), dtype=bool)]
        explained = r2_score(y[test], guess, multioutput="variance_weighted")
        gamma = (cosine - baseline) / (1 - baseline)
        rows.append([explained, gamma, cosine, baseline, pairs.mean()])
    return np.array(rows)


@pytest.mark.parametrize("shrinkage", [0, 0.3])
@pytest.mark.parametrize("shape", [(90, 6, 4), (60, 3, 7)])
def test_agrees_with_scikit_learn(shrinkage, shape):
    X, y = noisy_pair(*shape)
    penalties = shrinkage / (1 - shrinkage)

    class Shrunk(Ridge):
        def fit(self, X, y):
            self.alpha = penalties * len(X) * X.var(axis=0).mean()
            return super().fit(X, y)

    expected = by_hand(X, y, Shrunk(), KFold(4, shuffle=True, random_state=3))
    found = linearity(X, y, shrinkage=shrinkage, cv=4, random_state=3)
    np.testing.assert_allclose(scores(found), expected.mean(axis=0), rtol=1e-9)
    np.testing.assert_allclose(found.r2_splits, expected[:, 0], rtol=1e-9)
    np.testing.assert_allclose(found.gamma_splits, expected[:, 1], rtol=1e-9)


SPLITTERS = {
    "number": (3, KFold(3, shuffle=True, random_state=0)),
    "splitter": (ShuffleSplit(4, random_state=0), ShuffleSplit(4, random_state=0)),
    "pairs": (list(KFold(2).split(np.arange(80))), KFold(2)),
}


@pytest.mark.parametrize("kind", SPLITTERS)
def test_takes_splits_of_every_kind(kind):
    X, y = noisy_pair(80)
    cv, same = SPLITTERS[kind]
    expected = by_hand(X, y, LinearRegression(), same)
    found = linearity(X, y, cv=cv, shrinkage=0)
    np.testing.assert_allclose(found.r2_splits, expected[:, 0], rtol=1e-9)


def test_groups_are_held_out_whole():
    """Four copies of each row, with noise that they share."""
    X, y = (np.repeat(array, 4, axis=0) for array in (normal(20, 15), normal(20, 2, seed=1)))
    groups = GroupKFold(5).split(X, groups=np.arange(80) // 4)
    assert linearity(X, y, shrinkage=0).r2 > 0.2 > linearity(X, y, cv=groups, shrinkage=0).r2


# What it must not depend on.


@pytest.mark.parametrize("size", [1e-150, 1e-3, 1e150])
def test_units_and_turns_do_not_matter(size):
    X, y = noisy_pair(100, 5, 4)
    expected = linearity(X, y, shrinkage=0.1)
    turned = linearity(size * X @ rotation(5) + size, y @ rotation(4) / size, shrinkage=0.1)
    np.testing.assert_allclose(scores(turned), scores(expected), rtol=1e-8)


def test_any_affine_change_of_X_does_not_matter_to_least_squares():
    X, y = noisy_pair(100, 5, 4)
    expected, found = (
        linearity(source, y, shrinkage=0) for source in (X, X @ normal(5, 5, seed=3) + 7)
    )
    np.testing.assert_allclose(scores(found), scores(expected), rtol=1e-9)


def test_a_shift_of_y_matters_to_cosines_only():
    X, y = noisy_pair(100, 5, 4)
    here, there = (linearity(X, target, shrinkage=0.1) for target in (y, y + 50))
    assert there.r2 == pytest.approx(here.r2, rel=1e-9)
    assert there.cosine > here.cosine + 0.05 and there.cone > here.cone + 0.05


@pytest.mark.parametrize("shrinkage", ["auto", 0.1])
def test_a_weight_of_two_is_two_rows(shrinkage):
    X, y = noisy_pair(60, 4, 3)
    weight = RNG.integers(0, 4, size=60)
    split = [(np.arange(20, 60), np.arange(20)), (np.arange(30), np.arange(30, 60))]
    index = [np.repeat(np.arange(60), weight)]
    ends = np.repeat(np.arange(60), weight)
    repeated = [tuple(np.flatnonzero(np.isin(ends, part)) for part in pair) for pair in split]
    found = linearity(X, y, cv=split, sample_weight=weight, shrinkage=shrinkage)
    expected = linearity(X[index[0]], y[index[0]], cv=repeated, shrinkage=shrinkage)
    # A row is no pair with itself, but with its copies.
    names = SCORES[:-1]
    np.testing.assert_allclose(scores(found, names), scores(expected, names), rtol=1e-9)
    assert found.shrinkage_splits == expected.shrinkage_splits


def test_rows_of_weight_zero_are_as_if_left_out():
    X, y = noisy_pair(60, 4, 3)
    weight = np.r_[np.ones(50), np.zeros(10)]
    cv = [(np.r_[0:30, 50:55], np.r_[30:50, 55:60])]
    found = linearity(X, y, cv=cv, sample_weight=weight)
    expected = linearity(X, y, cv=[(np.arange(30), np.arange(30, 50))])
    np.testing.assert_allclose(scores(found), scores(expected), rtol=1e-9)


@pytest.mark.parametrize("size", [1e-300, 1e-200, 1e-9, 1e9, 1e300])
@pytest.mark.parametrize("n_rows", [6, 60], ids=["by formula", "by folds"])
def test_the_unit_of_weights_does_not_matter(size, n_rows):
    X, y = noisy_pair(n_rows, 4, 3)
    weight = np.random.default_rng(0).uniform(0.5, 2, n_rows)
    found, expected = (linearity(X, y, cv=2, sample_weight=w) for w in (size * weight, weight))
    np.testing.assert_allclose(scores(found), scores(expected), rtol=1e-9)
    assert found.shrinkage_splits == pytest.approx(expected.shrinkage_splits)


def test_rows_of_zeros_have_no_direction():
    """They count for the fit and for the variance, and not for cosines."""
    X, y = noisy_pair(200, 4, 3)
    X[:60], y[:60] = 0, 0
    found = linearity(X, X @ normal(4, 3), shrinkage=0)
    assert scores(found, ["r2", "gamma", "cosine"]) == pytest.approx([1, 1, 1], abs=1e-9)
    train, test = np.arange(100), np.arange(100, 200)
    dead = np.r_[test, np.arange(60)]
    one, other = (linearity(X, y, shrinkage=0, cv=[(train, rows)]) for rows in (test, dead))
    names = ["gamma", "cosine", "baseline", "cone"]
    np.testing.assert_allclose(scores(other, names), scores(one, names), rtol=1e-9)
    assert other.r2 != pytest.approx(one.r2, rel=1e-6)


def test_one_direction_makes_no_cone():
    X, y = noisy_pair(60, 3, 3)
    y[50:59] = 0
    assert np.isnan(linearity(X, y, cv=[(np.arange(50), np.arange(50, 60))]).cone)


@pytest.mark.parametrize("offset", [1e2, 1e5, 3e6])
def test_gamma_keeps_its_digits_in_a_narrow_cone(offset):
    X = normal(300, 3)
    train, test = np.arange(200), np.arange(200, 300)
    y = np.abs(X) + 0.5 * X + offset
    guess = LinearRegression().fit(X[train], y[train]).predict(X[test])
    # Across an offset along all ones, angles are what is left of y without that direction.
    across = np.eye(3) - np.full((3, 3), 1 / 3)
    missed, most = (
        np.square((y[test] - other) @ across).sum() for other in (guess, y[train].mean(axis=0))
    )
    found = linearity(X, y, shrinkage=0, cv=[(train, test)]).gamma
    assert found == pytest.approx(1 - missed / most, abs=0.1 / offset**0.5)
    far = linearity(X, y + 1e6, shrinkage=0, cv=[(train, test)]).gamma
    assert far == pytest.approx(1 - missed / most, abs=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_that_point_one_way_leave_gamma_open(dtype):
    lengths = 1 + np.abs(normal(200, 1))
    y = (lengths * normal(1, 300, seed=1)).astype(dtype)
    assert np.isnan(linearity(normal(200, 3, seed=2), y).gamma)


@pytest.mark.parametrize("kind", ["lists", "frames", "memory map", "integers"])
def test_takes_arrays_of_every_kind(kind, tmp_path):
    X, y = np.round(np.array(noisy_pair(60, 4, 4)) * 10)

    def as_kind(array, name):
        if kind == "memory map":
            np.save(tmp_path / name, array)
            return np.load(tmp_path / f"{name}.npy", mmap_mode="r")
        return {
            "lists": np.ndarray.tolist,
            "frames": lambda array: pd.DataFrame(array).add_prefix("unit"),
            "integers": lambda array: array.astype(int),
        }[kind](array)

    assert linearity(as_kind(X, "x"), as_kind(y, "y")) == linearity(X, y)


def test_arrays_and_generators_are_left_as_they_were():
    X, y = noisy_pair(60)
    copies, state = (X.copy(), y.copy()), np.random.get_state()[1].copy()
    first = linearity(X, y)
    assert linearity(X, y) == first != linearity(X, y, random_state=1)
    np.testing.assert_array_equal([X, y], copies)
    np.testing.assert_array_equal(np.random.get_state()[1], state)


# Edges.


def test_one_column_has_no_directions():
    x = normal(50)
    above = linearity(x, np.abs(x) + 1)
    assert np.isnan(above.gamma) and above.cosine == above.baseline == above.cone == 1
    assert linearity(x, 3 * x).r2 == pytest.approx(1)


@pytest.mark.parametrize("n_dead", [0, 2])
def test_fewer_rows_than_columns_and_dead_columns(n_dead):
    X, y = normal(30, 50), normal(30, 4, seed=1)
    X[:, :n_dead], y[:, 0] = 3.0, 1.0
    for shrinkage in ("auto", 0):
        found = linearity(X, y, shrinkage=shrinkage)
        assert np.isfinite(scores(found)).all() and found.r2 < 0.2


def test_where_rows_are_too_few_for_folds_a_formula_shrinks():
    X, y = noisy_pair(8, 3, 3, noise=0.1)
    assert np.isfinite(scores(linearity(X, y, cv=2))).all()


def test_prints_a_table():
    lines = str(linearity(*noisy_pair(80))).splitlines()
    assert lines[0].endswith("mean of 5 splits") and len({*map(len, lines)}) == 1
    assert [line.split("  ")[0] for line in lines[2:]] == [
        "R²",
        "gamma",
        "cosine",
        "cosine of the best constant",
        "cone, mean cosine of two rows",
    ]
    split = [(np.arange(40), np.arange(40, 80))]
    assert "1 split" in str(linearity(*noisy_pair(80), cv=split))


# What is refused.

X60, Y60 = noisy_pair(60, 3, 3)


def with_nan(array):
    spoilt = array.copy()
    spoilt[5, 1] = np.nan
    return spoilt


@pytest.mark.parametrize(
    ("arguments", "options", "rule"),
    [
        ((X60, Y60[:50]), {}, "X has 60 rows but y has 50"),
        ((with_nan(X60), Y60), {}, "X contains NaN"),
        ((X60, with_nan(Y60)), {}, "y contains NaN"),
        ((X60, Y60), {"shrinkage": 1}, "shrinkage=1 must be 'auto', or a number"),
        ((X60, Y60), {"shrinkage": -0.1}, "shrinkage=-0.1 must be"),
        ((X60, Y60), {"shrinkage": "oas"}, "shrinkage='oas' must be"),
        ((X60, Y60), {"shrinkage": True}, "shrinkage=True must be"),
        ((np.ones((60, 3)), Y60), {}, "X has no variance"),
        ((X60, np.ones((60, 3))), {}, "y has no variance"),
        ((X60, Y60), {"sample_weight": -np.ones(60)}, "[Nn]egative"),
        ((X60, Y60), {"sample_weight": np.zeros(60)}, "sample_weight is 0 for every row"),
        ((X60, Y60), {"cv": 1}, "n_splits"),
        ((X60, Y60), {"cv": []}, r"cv=\[\] gives no split. Pass a number of folds"),
        ((X60, Y60), {"cv": GroupKFold(3)}, r"cv=GroupKFold.* needs groups. Pass .*cv.split\(X"),
        ((X60, Y60), {"cv": GroupShuffleSplit(3)}, r"(?s)cv=GroupShuffleSplit.* needs groups"),
        ((3.0, 4.0), {}, "X=3.0 is no array. Pass one with a row for each sample"),
        ((X60, None), {}, "y=None is no array"),
    ],
    ids=str,
)
def test_what_cannot_be_measured_is_refused(arguments, options, rule):
    with pytest.raises(ValueError, match=rule):
        linearity(*arguments, **options)


def test_an_error_says_in_which_split_it_was():
    split = [(np.arange(40), np.arange(40, 60)), (np.arange(59), [59])]
    with pytest.raises(ValueError, match="y_true has no variance over its 1 rows") as error:
        linearity(X60, Y60, cv=split)
    assert error.value.__notes__ == ["Raised on split 1."]


@pytest.mark.parametrize(
    ("there", "rule"),
    [
        (slice(0, 40), "cv gives no test row whose weight is above 0"),
        (slice(40, 60), "cv gives no train row whose weight is above 0"),
        (slice(0, 41), "y_true has no variance over its 1 rows"),
    ],
)
def test_a_split_without_weight_is_named(there, rule):
    weight = np.zeros(60)
    weight[there] = 1
    cv = [(np.arange(40), np.arange(30)), (np.arange(40), np.arange(40, 60))]
    if there.start:
        cv = [(np.arange(60), np.arange(60)), cv[1]]
    with pytest.raises(ValueError, match=rule) as error:
        linearity(X60, Y60, cv=cv, sample_weight=weight)
    assert error.value.__notes__ == ["Raised on split 1."]


def test_errors_that_vanish_choose_no_shrinkage():
    folds = fold_moments(X60, Y60, np.full(60, 1e-200), n_folds=3)
    with (
        np.errstate(all="ignore"),
        pytest.raises(ValueError, match="not finite for some shrinkage"),
    ):
        ridge_shrinkage(folds)
