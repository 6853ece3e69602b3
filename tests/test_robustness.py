"""Data as they come: constants, dead and near-dead columns, duplicates, offsets and units."""

import numpy as np
import pytest
from conftest import ALIGNERS, assert_close, noisy_pair
from sklearn.base import clone

from sklearn_bijection import CCAAligner, PermutationAligner, ProcrustesAligner
from sklearn_bijection._linalg import variance_explained

ONE_OF_EACH = {
    "cca": CCAAligner(),
    "procrustes": ProcrustesAligner(),
    "permutation": PermutationAligner(),
}
TEXTBOOK = CCAAligner(shrinkage=0)
#: Those that can leave a column out, which a rotation cannot.
SELECTIVE = [name for name in ALIGNERS if not name.startswith("procrustes")]


@pytest.fixture(params=ONE_OF_EACH)
def one(request):
    """Each aligner at its defaults, unfitted."""
    return clone(ONE_OF_EACH[request.param])


@pytest.fixture(params=SELECTIVE)
def selective(request):
    """One after the other of those that can leave a column out, unfitted."""
    return clone(ALIGNERS[request.param])


def finite(aligner, X, y):
    maps = aligner.transform(X), aligner.inverse_transform(y)
    return all(np.isfinite(rows).all() for rows in maps) and np.isfinite(aligner.score(X, y))


# 0.1 is no sum of powers of two: the standard deviation that numpy computes for it is not zero.
@pytest.mark.parametrize("value", [0.0, 0.1, -1e-7, 1e9])
def test_a_constant_column_comes_back_exactly_and_is_ignored_where_it_comes_from(selective, value):
    X, y = noisy_pair(60, 7, 7)
    X[:, 3], y[:, 5] = value, value
    selective.fit(X, y)
    assert finite(selective, X, y)
    assert (selective.transform(X)[:, 5] == value).all()
    assert (selective.inverse_transform(y)[:, 3] == value).all()
    other_x, other_y = X.copy(), y.copy()
    other_x[:, 3], other_y[:, 5] = 17.0, 17.0
    np.testing.assert_array_equal(selective.transform(other_x), selective.transform(X))
    np.testing.assert_array_equal(
        selective.inverse_transform(other_y), selective.inverse_transform(y)
    )


def test_a_constant_column_is_ignored_also_in_a_stream(selective):
    X, y = noisy_pair(60, 7, 7)
    X[:, 3], y[:, 5] = 0.1, 0.1
    for rows in np.array_split(np.arange(60), 7):
        selective.partial_fit(X[rows], y[rows])
    assert not selective.map_.there.coef[3].any()
    assert (selective.transform(X)[:, 5] == 0.1).all()


def test_a_rotation_cannot_ignore_a_constant_column_but_stays_a_bijection():
    X, y = noisy_pair(60, 7, 7)
    X[:, 3], y[:, 5] = 0.1, 0.1
    aligner = ProcrustesAligner().fit(X, y)
    assert finite(aligner, X, y)
    np.testing.assert_allclose(aligner.transform(X)[:, 5], 0.1, atol=1e-12)
    assert_close(aligner.inverse_transform(aligner.transform(X)), X)


@pytest.mark.parametrize("value", [0.1, 7.0, 1e4])
@pytest.mark.parametrize(("dtype", "units"), [(np.float32, 1e-6), (np.float64, 1e-20)])
def test_a_constant_far_larger_than_the_spread_of_the_others_hides_nothing(
    one, dtype, units, value
):
    X, y = (a * units for a in noisy_pair(200))
    plain = clone(one).fit(X.astype(dtype), y.astype(dtype))
    X, y = (np.c_[a, np.full(200, value)].astype(dtype) for a in (X, y))
    one.fit(X, y)
    assert getattr(one, "rank_x_", 6) == getattr(one, "rank_y_", 6) == 6
    coef = [aligner.map_.there.coef[:6, :6] for aligner in (plain, one)]
    np.testing.assert_allclose(coef[1], coef[0], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("constant", [0.0, 0.1, 1e8])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, int])
@pytest.mark.parametrize("view", ["X", "y"])
def test_a_view_without_variance_is_named(aligner, view, dtype, constant):
    X, y = (a.astype(dtype) for a in noisy_pair(40))
    (X if view == "X" else y)[:] = constant
    for call in (aligner.fit, lambda X, y: aligner.partial_fit(X, y).transform(X)):
        with pytest.raises(ValueError, match=f"{view} has no variance: its 40 row.* all equal"):
            call(X, y)


@pytest.mark.parametrize("n", [2, 3, 5, 12, 40])
@pytest.mark.filterwarnings("ignore:.*rows are too few:UserWarning")
def test_few_rows_give_a_finite_map_that_is_exact_on_them(n):
    X, y = noisy_pair(n, 50, 50)
    textbook = CCAAligner(shrinkage=0).fit(X, y)
    assert textbook.rank_x_ == textbook.rank_y_ == n - 1
    assert_close(textbook.transform(X), y, 1e-8)
    for aligner in ALIGNERS.values():
        if aligner.get_params().get("n_components") is None:
            assert finite(clone(aligner).fit(X, y), X, y)


@pytest.mark.parametrize("length", [1e-9, 1e4, 1e9])
def test_rows_far_from_unit_norm_are_predicted_in_the_units_of_y(one, length):
    X, y = noisy_pair(200, noise=0.1)
    X, y = X * length, y / length
    one.fit(X, y)
    assert np.linalg.norm(one.transform(X)) == pytest.approx(np.linalg.norm(y), rel=0.05)
    assert np.linalg.norm(one.inverse_transform(y)) == pytest.approx(np.linalg.norm(X), rel=0.05)


@pytest.mark.parametrize(
    "units",
    [(1e15, 1.0), (1.0, 1e15), (1e15, 1e-15), (1e-15, 1e15), (1e30, 1e30), (1e-20, 1e20)],
)
def test_float32_of_any_size_is_the_same_map_up_to_units(aligner, units):
    if not getattr(aligner, "scale", True):
        pytest.skip("without a scale the units are taken as they are")
    X, y = (a.astype(np.float32) for a in noisy_pair(200))
    # Powers of two, so that the digits of the rows, and with them the folds, are the same.
    a, b = (np.float32(2.0 ** np.round(np.log2(unit))) for unit in units)
    plain, scaled = clone(aligner).fit(X, y), aligner.fit(X * a, y * b)
    assert_close(scaled.transform(X * a) / b, plain.transform(X), 1e-4)
    assert_close(scaled.inverse_transform(y * b) / a, plain.inverse_transform(y), 1e-4)


def layer_norm(rows):
    """Rows in a hyperplane, as every LayerNorm leaves them."""
    rows = rows - rows.mean(axis=1, keepdims=True)
    return rows / rows.std(axis=1, keepdims=True)


#: Spreads about a constant that real encoders show in single precision.
NEAR_DEAD = {0.0: 0.0, 1e-32: 0.0, 1e-20: 0.0, 1e-9: -1e-7, 1e-7: 0.5}


def hidden_states(n=600, width=24, seed=0):
    """Two encoders of the same things in float32; the first has dead, near-dead and doubled columns."""
    rng = np.random.default_rng(seed)
    latent = rng.normal(size=(n, width))
    live, y = (
        layer_norm(latent @ rng.normal(size=(width, width)) + 0.5 * rng.normal(size=(n, width)))
        for _ in range(2)
    )
    dead = [offset + std * rng.normal(size=(n, 1)) for std, offset in NEAR_DEAD.items()]
    X = np.hstack([live, *dead, live[:, :2]])
    return X.astype(np.float32), y.astype(np.float32), live.astype(np.float32)


def test_hidden_states_have_the_rank_of_their_hyperplane():
    X, y, live = hidden_states()
    aligner = clone(TEXTBOOK).fit(X, y)
    assert aligner.rank_x_ == aligner.rank_y_ == aligner.n_components_ == 23
    assert (clone(TEXTBOOK).fit(live, y)).rank_x_ == 23


def test_hidden_states_are_aligned_as_their_live_columns_are():
    X, y, live = hidden_states()
    full, part = clone(TEXTBOOK).fit(X[:400], y[:400]), clone(TEXTBOOK).fit(live[:400], y[:400])
    assert_close(full.transform(X[400:]), part.transform(live[400:]), 1e-4)
    back = full.inverse_transform(y[400:])
    assert_close(back[:, :24], part.inverse_transform(y[400:]), 1e-4)
    assert_close(back[:, -2:], back[:, :2], 1e-5)
    np.testing.assert_allclose(back[:, 24:-2], X[400:, 24:-2], rtol=0, atol=1e-6)


def test_hidden_states_leave_every_aligner_finite_and_useful(aligner):
    X, y, _ = hidden_states()
    aligner.fit(X[:400], y[:400])
    assert finite(aligner, X[400:], y[400:])
    assert np.abs(aligner.map_.there.coef).max() < 100
    assert np.abs(aligner.map_.back.coef).max() < 100
    if isinstance(aligner, PermutationAligner):
        # Nothing here is a matter of the axes.
        return
    if getattr(aligner, "scale", True) and getattr(aligner, "n_components", None) is None:
        forward = variance_explained(y[400:], aligner.transform(X[400:]))
        inverse = variance_explained(X[400:], aligner.inverse_transform(y[400:]))
        assert (inverse if aligner.direction == "backward" else forward) > 0.1


@pytest.mark.parametrize("std", [std for std in NEAR_DEAD if std])
def test_a_near_dead_column_takes_no_part_in_single_precision(std):
    X, y = (a.astype(np.float32) for a in noisy_pair(300))
    rng = np.random.default_rng(1)
    noisy = np.c_[X, NEAR_DEAD[std] + std * rng.normal(size=300)].astype(np.float32)
    plain, aligner = clone(TEXTBOOK).fit(X, y), clone(TEXTBOOK).fit(noisy, y)
    assert aligner.rank_x_ == 6
    assert_close(aligner.transform(noisy), plain.transform(X), 1e-5)


@pytest.mark.parametrize("change", ["offset", "units", "both", "duplicate", "zeros"])
def test_hidden_states_keep_their_map_under_harmless_changes(change):
    X, y, _ = hidden_states()
    X, y = X.astype(float), y.astype(float)
    plain = clone(TEXTBOOK).fit(X, y)
    changed = {
        "offset": lambda: X + 1e4,
        "units": lambda: X * 1e-6,
        "both": lambda: (X + 1e4) * 1e-6,
        "duplicate": lambda: np.c_[X, X[:, 5]],
        "zeros": lambda: np.c_[np.zeros(len(X)), X],
    }[change]()
    aligner = clone(TEXTBOOK).fit(changed, y)
    assert_close(aligner.transform(changed), plain.transform(X), 1e-6)
