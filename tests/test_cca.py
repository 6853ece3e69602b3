"""CCA against independent implementations, its optimality, and traps that other projects fell into."""

import numpy as np
import pytest
from conftest import assert_close, assert_same_map, noisy_pair
from sklearn.cross_decomposition import CCA
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge

from sklearn_bijection import CCAAligner

WIDTHS = [(6, 6), (4, 9), (9, 4)]

#: Power of the correlations in the map of each direction.
POWER = {"forward": 1.0, "symmetric": 0.0, "backward": -1.0}

few_rows = pytest.mark.filterwarnings("ignore:.*rows are too few:UserWarning")


def centred(a, weight=None):
    return a - np.average(a, axis=0, weights=weight)


def covariances(X, y):
    X, y = centred(X), centred(y)
    return X.T @ X / len(X), y.T @ y / len(X), X.T @ y / len(X)


def power_of(C, exponent):
    values, vectors = np.linalg.eigh(C)
    return vectors * values**exponent @ vectors.T


def by_symmetric_roots(X, y, shrinkage, power):
    """Both matrices of the map, with whitening by the symmetric root instead of by principal axes."""
    Cxx, Cyy, Cxy = covariances(X, y)
    Cxx, Cyy = (
        (1 - s) * C + s * np.trace(C) / len(C) * np.eye(len(C))
        for s, C in zip(shrinkage, (Cxx, Cyy), strict=True)
    )
    U, rho, Vt = np.linalg.svd(power_of(Cxx, -0.5) @ Cxy @ power_of(Cyy, -0.5), full_matrices=False)
    # The cross-covariance shrinks like the view that predicts.
    rho = rho * (1 - shrinkage[0 if power > 0 else 1])
    gain, back = (np.where(rho > 0, np.maximum(rho, 1e-300) ** g, 0.0) for g in (power, -power))
    if power == 0:
        gain = back = np.ones_like(rho)
    return (
        power_of(Cxx, -0.5) @ U * gain @ Vt @ power_of(Cyy, 0.5),
        power_of(Cyy, -0.5) @ Vt.T * back @ U.T @ power_of(Cxx, 0.5),
    )


def textbook_correlations(X, y):
    Qx, Qy = (np.linalg.qr(centred(a))[0] for a in (X, y))
    return np.linalg.svd(Qx.T @ Qy, compute_uv=False)


@pytest.mark.parametrize("shrinkage", [(0.0, 0.0), (0.2, 0.2), (0.0, 0.5), (1.0, 0.3)])
@pytest.mark.parametrize(("direction", "power"), POWER.items())
@pytest.mark.parametrize("widths", WIDTHS)
def test_coefficients_are_those_of_symmetric_roots(widths, direction, power, shrinkage):
    X, y = noisy_pair(200, *widths)
    aligner = CCAAligner(shrinkage=shrinkage, direction=direction).fit(X, y)
    coef, inverse_coef = by_symmetric_roots(X, y, shrinkage, power)
    np.testing.assert_allclose(aligner.coef_, coef, atol=1e-9)
    np.testing.assert_allclose(aligner.inverse_coef_, inverse_coef, atol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("widths", WIDTHS)
def test_forward_is_least_squares_and_backward_its_mirror(widths, weighted):
    X, y = noisy_pair(200, *widths)
    weight = np.random.default_rng(3).uniform(size=200) if weighted else None
    root = np.sqrt(np.ones(200) if weight is None else weight)[:, np.newaxis]
    Xc, yc = centred(X, weight) * root, centred(y, weight) * root
    forward = CCAAligner(shrinkage=0, direction="forward").fit(X, y, sample_weight=weight)
    backward = CCAAligner(shrinkage=0, direction="backward").fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(forward.coef_, np.linalg.lstsq(Xc, yc)[0], atol=1e-8)
    np.testing.assert_allclose(backward.inverse_coef_, np.linalg.lstsq(yc, Xc)[0], atol=1e-8)


@pytest.mark.parametrize("shrinkage", [0.01, 0.3, (0.2, 0.7)])
@pytest.mark.parametrize("widths", WIDTHS)
def test_forward_with_shrinkage_is_ridge_regression_and_backward_its_mirror(widths, shrinkage):
    X, y = noisy_pair(200, *widths)
    s, t = shrinkage if isinstance(shrinkage, tuple) else (shrinkage, shrinkage)
    there = Ridge(alpha=s / (1 - s) * centred(X).var(axis=0).mean() * len(X)).fit(X, y)
    back = Ridge(alpha=t / (1 - t) * centred(y).var(axis=0).mean() * len(X)).fit(y, X)
    forward = CCAAligner(shrinkage=shrinkage, direction="forward").fit(X, y)
    backward = CCAAligner(shrinkage=shrinkage, direction="backward").fit(X, y)
    assert_close(forward.transform(X), there.predict(X))
    assert_close(backward.inverse_transform(y), back.predict(y))


def test_shrunk_all_the_way_a_regression_gives_the_mean(pair):
    X, y = pair
    found = CCAAligner(shrinkage=1, direction="forward").fit(X, y).transform(X)
    np.testing.assert_allclose(found, np.broadcast_to(y.mean(axis=0), y.shape), atol=1e-12)


@pytest.mark.parametrize("widths", [(8, 8), *WIDTHS])
def test_correlations_are_the_singular_values_between_orthonormal_bases(widths):
    X, y = noisy_pair(300, *widths, noise=2.0)
    found = CCAAligner(shrinkage=0).fit(X, y).canonical_correlations_
    assert (np.diff(found) <= 0).all()
    np.testing.assert_allclose(found, textbook_correlations(X, y), atol=1e-10)


def test_correlations_agree_with_scikit_learn():
    rng = np.random.default_rng(0)
    shared = rng.normal(size=(400, 3))
    X, y = (np.c_[shared + s * rng.normal(size=(400, 3)), rng.normal(size=400)] for s in (0.3, 0.6))
    theirs = CCA(n_components=3, max_iter=5000, tol=1e-12).fit(X, y)
    expected = [
        np.corrcoef(a, b)[0, 1] for a, b in zip(*(t.T for t in theirs.transform(X, y)), strict=True)
    ]
    found = CCAAligner(3, shrinkage=0).fit(X, y).canonical_correlations_
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_of_two_columns_the_correlation_is_pearsons_without_sign():
    X, y = noisy_pair(100, 1, 1, noise=2.0)
    aligner = CCAAligner(shrinkage=0).fit(X, -y)
    r = np.corrcoef(X[:, 0], -y[:, 0])[0, 1]
    assert aligner.canonical_correlations_ == pytest.approx([abs(r)], abs=1e-12)
    assert np.sign(aligner.coef_[0, 0]) == np.sign(r)


@pytest.mark.parametrize("shrinkage", [0, 0.3, "oas", "auto", 1.0])
@pytest.mark.parametrize("widths", WIDTHS)
def test_canonical_variates_have_unit_variance_at_any_shrinkage(widths, shrinkage):
    X, y = noisy_pair(200, *widths)
    aligner = CCAAligner(shrinkage=shrinkage).fit(X, y)
    for variates in aligner.canonical_variates(X, y):
        assert_close(variates.mean(axis=0), np.zeros(min(widths)), 1e-10)
        np.testing.assert_allclose(variates.var(axis=0), 1.0, rtol=1e-10)


@pytest.mark.parametrize("widths", WIDTHS)
def test_canonical_variates_correlate_pair_by_pair_and_with_no_other(widths):
    X, y = noisy_pair(200, *widths)
    aligner = CCAAligner(shrinkage=0).fit(X, y)
    a, b = aligner.canonical_variates(X, y)
    np.testing.assert_allclose(a.T @ b / 200, np.diag(aligner.canonical_correlations_), atol=1e-10)
    np.testing.assert_allclose(a.T @ a / 200, np.eye(min(widths)), atol=1e-10)
    np.testing.assert_allclose(b.T @ b / 200, np.eye(min(widths)), atol=1e-10)


def test_canonical_variates_of_one_view_are_those_of_the_pair(pair):
    X, y = pair
    aligner = CCAAligner().fit(X, y)
    a, b = aligner.canonical_variates(X, y)
    np.testing.assert_array_equal(aligner.canonical_variates(X), a)
    np.testing.assert_array_equal(aligner.canonical_variates(y=y), b)
    with pytest.raises(ValueError, match="pass X, y or both"):
        aligner.canonical_variates()


@pytest.mark.parametrize("kept", [0.8, 0.95])
def test_explained_variance_is_pca_of_both_views_before_cca(kept):
    X, y = (a * np.geomspace(1, 20, a.shape[1]) for a in noisy_pair(300, 8, 7))
    pca_x, pca_y = PCA(kept).fit(X), PCA(kept).fit(y)
    between = CCAAligner(shrinkage=0).fit(pca_x.transform(X), pca_y.transform(y))
    aligner = CCAAligner(shrinkage=0, explained_variance=kept).fit(X, y)
    assert (
        (aligner.rank_x_, aligner.rank_y_) == (pca_x.n_components_, pca_y.n_components_) != (8, 7)
    )
    np.testing.assert_allclose(
        aligner.canonical_correlations_, between.canonical_correlations_, atol=1e-10
    )
    assert_close(
        aligner.transform(X), pca_y.inverse_transform(between.transform(pca_x.transform(X)))
    )
    assert_close(
        aligner.inverse_transform(y),
        pca_x.inverse_transform(between.inverse_transform(pca_y.transform(y))),
    )


def test_explained_variance_of_one_keeps_everything(pair):
    whole = CCAAligner(shrinkage=0).fit(*pair)
    assert_same_map(CCAAligner(shrinkage=0, explained_variance=1).fit(*pair), whole, *pair)


@pytest.mark.parametrize("widths", WIDTHS)
def test_n_components_keeps_the_leading_pairs(widths):
    X, y = noisy_pair(200, *widths)
    whole, part = CCAAligner(shrinkage=0.1).fit(X, y), CCAAligner(2, shrinkage=0.1).fit(X, y)
    np.testing.assert_allclose(part.canonical_correlations_, whole.canonical_correlations_[:2])
    np.testing.assert_allclose(part.x_weights_, whole.x_weights_[:, :2])
    np.testing.assert_allclose(part.y_weights_, whole.y_weights_[:, :2])
    assert np.linalg.matrix_rank(part.coef_) == np.linalg.matrix_rank(part.inverse_coef_) == 2


@pytest.mark.parametrize("direction", ["symmetric", "forward", "backward"])
@pytest.mark.parametrize("aligner", [CCAAligner(), CCAAligner(2, shrinkage=0.1)])
def test_transform_and_its_inverse_are_the_coefficients_about_the_means(pair, direction, aligner):
    X, y = pair
    aligner.set_params(direction=direction).fit(X, y)
    np.testing.assert_allclose(aligner.mean_x_, X.mean(axis=0))
    np.testing.assert_allclose(aligner.mean_y_, y.mean(axis=0))
    assert_close(aligner.transform(X), (X - aligner.mean_x_) @ aligner.coef_ + aligner.mean_y_)
    assert_close(
        aligner.inverse_transform(y),
        (y - aligner.mean_y_) @ aligner.inverse_coef_ + aligner.mean_x_,
    )


@pytest.mark.parametrize("seed", range(3))
def test_no_direction_correlates_more_than_the_first_pair(pair, seed):
    X, y = pair
    rng = np.random.default_rng(seed)
    first = CCAAligner(shrinkage=0).fit(X, y).canonical_correlations_[0]
    for _ in range(50):
        a, b = X @ rng.normal(size=6), y @ rng.normal(size=6)
        assert abs(np.corrcoef(a, b)[0, 1]) <= first


@pytest.mark.parametrize("widths", WIDTHS)
def test_each_direction_has_the_least_error_that_it_is_fitted_for(widths):
    X, y = noisy_pair(200, *widths, noise=1.0)
    errors = {}
    for direction in ("forward", "symmetric", "backward"):
        aligner = CCAAligner(shrinkage=0, direction=direction).fit(X, y)
        errors[direction] = (
            np.square(y - aligner.transform(X)).mean(),
            np.square(X - aligner.inverse_transform(y)).mean(),
        )
    assert errors["forward"][0] < errors["symmetric"][0] < errors["backward"][0]
    assert errors["forward"][1] > errors["symmetric"][1] > errors["backward"][1]


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_no_change_of_the_map_lowers_the_error_that_it_is_fitted_for(pair, direction):
    source, target = (centred(rows) for rows in pair)
    aligner = CCAAligner(shrinkage=0, direction=direction).fit(*pair)
    coef = aligner.coef_
    if direction == "backward":
        source, target, coef = target, source, aligner.inverse_coef_
    least = np.square(target - source @ coef).sum()
    rng = np.random.default_rng(0)
    for _ in range(20):
        changed = coef + 1e-3 * rng.normal(size=coef.shape)
        assert np.square(target - source @ changed).sum() > least


def test_the_symmetric_map_carries_the_covariance_of_one_space_to_the_other(pair):
    X, y = pair
    aligner = CCAAligner(shrinkage=0).fit(X, y)
    np.testing.assert_allclose(np.cov(aligner.transform(X).T), np.cov(y.T), atol=1e-8)
    np.testing.assert_allclose(np.cov(aligner.inverse_transform(y).T), np.cov(X.T), atol=1e-8)


@pytest.mark.parametrize("direction", POWER)
@pytest.mark.parametrize("widths", WIDTHS)
def test_the_inverse_of_the_fit_is_the_fit_of_the_inverse(widths, direction):
    X, y = noisy_pair(200, *widths)
    mirror = {"forward": "backward", "backward": "forward"}.get(direction, direction)
    fit = CCAAligner(direction=direction).fit(X, y)
    mirrored = CCAAligner(direction=mirror).fit(y, X)
    np.testing.assert_allclose(mirrored.inverse_coef_, fit.coef_, atol=1e-9)
    np.testing.assert_allclose(mirrored.coef_, fit.inverse_coef_, atol=1e-9)
    assert mirrored.shrinkage_ == fit.shrinkage_


@pytest.mark.parametrize(
    ("n", "widths", "view"), [(6, (6, 2), "X"), (6, (2, 6), "y"), (7, (6, 6), "X")]
)
def test_too_few_rows_for_the_width_is_a_warning_that_names_the_view(n, widths, view):
    with pytest.warns(UserWarning, match=rf"{n} rows are too few for 6 columns: {view} "):
        CCAAligner(shrinkage=0.1).fit(*noisy_pair(n, *widths))


def test_two_rows_more_than_columns_are_no_warning():
    CCAAligner(shrinkage=0.1).fit(*noisy_pair(8, 6, 6))


@few_rows
@pytest.mark.parametrize("n", range(2, 24))
def test_any_number_of_rows_will_do(n):
    X, y = noisy_pair(n, 6, 4)
    for direction in POWER:
        aligner = CCAAligner(direction=direction).fit(X, y)
        assert np.isfinite(aligner.transform(X)).all()
        assert np.isfinite(aligner.inverse_transform(y)).all()


@pytest.mark.parametrize("shrinkage", [0, 0.2, "auto", "oas"])
def test_permuted_targets_give_the_permuted_map_even_where_rows_are_too_few(shrinkage):
    rng = np.random.default_rng(0)
    X, y, order = rng.normal(size=(10, 10)), rng.normal(size=(10, 5)), rng.permutation(5)
    maps = []
    for target in (y, y[:, order]):
        with pytest.warns(
            UserWarning, match=r"10 rows are too few for 10 columns: X fills its rank 9"
        ):
            maps.append(CCAAligner(shrinkage=shrinkage).fit(X, target))
    np.testing.assert_allclose(maps[1].coef_, maps[0].coef_[:, order], atol=1e-8)
    np.testing.assert_allclose(maps[1].inverse_coef_, maps[0].inverse_coef_[order], atol=1e-8)


@pytest.mark.parametrize("shape", [(10,), (10, 1)])
def test_a_single_target_that_is_a_feature(shape):
    X = np.random.default_rng(0).normal(size=(10, 3))
    y = X[:, 0].reshape(shape)
    aligner = CCAAligner(shrinkage=0).fit(X, y)
    assert aligner.rank_y_ == aligner.n_components_ == 1
    assert aligner.predict(X).shape == shape
    np.testing.assert_allclose(aligner.predict(X), y, atol=1e-12)
    assert np.isfinite(aligner.inverse_transform(y)).all()
    message = r"n_components=2 exceeds the shared rank 1 .*Lower it or pass None"
    with pytest.raises(ValueError, match=message):
        CCAAligner(2, shrinkage=0).fit(X, y)


@few_rows
def test_a_space_aligned_with_itself_stays_where_it_is():
    X = np.random.default_rng(0).normal(size=(64, 64))
    aligner = CCAAligner(shrinkage=0).fit(X, X)
    np.testing.assert_allclose(aligner.transform(X), X, atol=1e-8)
    np.testing.assert_allclose(aligner.inverse_transform(X), X, atol=1e-8)


def test_a_space_with_rows_to_spare_aligned_with_itself_is_the_identity():
    X = np.random.default_rng(0).normal(size=(200, 64))
    np.testing.assert_allclose(CCAAligner(shrinkage=0).fit(X, X).coef_, np.eye(64), atol=1e-8)


@pytest.mark.parametrize("shrinkage", [0, "auto"])
def test_a_duplicated_column_lowers_the_rank_and_nothing_else(shrinkage):
    X, y = noisy_pair(600, 50, 50)
    X[:, 7] = X[:, 31]
    aligner = CCAAligner(shrinkage=shrinkage).fit(X, y)
    assert (aligner.rank_x_, aligner.rank_y_, aligner.n_components_) == (49, 50, 49)
    back = aligner.inverse_transform(aligner.transform(X))
    assert_close(back, X)
    np.testing.assert_allclose(back[:, 7], back[:, 31], atol=1e-8)


def test_none_keeps_all_pairs_and_every_attribute_agrees():
    X, y = noisy_pair(100, 5, 3)
    aligner = CCAAligner().fit(X, y)
    shapes = {
        "canonical_correlations_": (3,),
        "x_weights_": (5, 3),
        "y_weights_": (3, 3),
        "coef_": (5, 3),
        "inverse_coef_": (3, 5),
        "mean_x_": (5,),
        "mean_y_": (3,),
    }
    assert aligner.n_components_ == aligner.n_targets_ == 3
    assert {name: getattr(aligner, name).shape for name in shapes} == shapes
    assert [v.shape for v in aligner.canonical_variates(X, y)] == [(100, 3), (100, 3)]


def test_three_dimensions_hidden_in_ten():
    rng = np.random.default_rng(0)
    latent = rng.normal(size=(200, 3))
    X, y = latent @ rng.normal(size=(3, 10)), latent @ rng.normal(size=(3, 10))
    aligner = CCAAligner(shrinkage=0).fit(X, y)
    assert aligner.rank_x_ == aligner.rank_y_ == aligner.n_components_ == 3
    np.testing.assert_allclose(aligner.canonical_correlations_, 1.0, atol=1e-10)
    assert_close(aligner.transform(X), y)
    assert_close(aligner.inverse_transform(y), X)


@pytest.mark.parametrize("shrinkage", ["auto", "oas", 0, 0.2])
@pytest.mark.parametrize("direction", POWER)
def test_three_dimensions_noisily_tied_to_ten_come_back(direction, shrinkage):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3)) @ rng.normal(size=(3, 10))
    y = X @ rng.normal(size=(10, 10)) + rng.normal(size=(100, 10))
    aligner = CCAAligner(shrinkage=shrinkage, direction=direction).fit(X, y)
    assert (aligner.rank_x_, aligner.rank_y_, aligner.n_components_) == (3, 10, 3)
    assert_close(aligner.inverse_transform(aligner.transform(X)), X, 1e-9)


@pytest.mark.parametrize("direction", POWER)
def test_spaces_without_correlation_are_finite_both_ways(direction):
    square = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]] * 10)
    X, y = square[:, :1], square[:, 1:]
    aligner = CCAAligner(direction=direction).fit(X, y)
    there, back = aligner.transform(X), aligner.inverse_transform(y)
    assert np.isfinite(there).all()
    assert np.isfinite(back).all()
    if direction != "symmetric":
        np.testing.assert_allclose(there if direction == "forward" else back, 0.0, atol=1e-12)


def test_exact_linear_data_are_predicted_both_ways():
    rng = np.random.default_rng(0)
    X, A = rng.normal(size=(200, 6)), rng.normal(size=(6, 6))
    forward = CCAAligner(shrinkage=0).fit(X, X @ A)
    assert forward.score(X, X @ A) > 1 - 1e-10
    assert CCAAligner(shrinkage=0).fit(X @ A, X).score(X @ A, X) > 1 - 1e-10
    assert_close(forward.inverse_transform(X @ A), X)


@pytest.mark.parametrize("shrinkage", [0.1, "auto"])
def test_a_long_stream_costs_one_solve(monkeypatch, shrinkage):
    X, y = noisy_pair(1000, 4, 4)
    counted, decompose = [], np.linalg.eigh
    monkeypatch.setattr(np.linalg, "eigh", lambda a: counted.append(1) or decompose(a))
    CCAAligner(shrinkage=shrinkage).fit(X, y)
    whole = len(counted)
    counted.clear()
    aligner = CCAAligner(shrinkage=shrinkage)
    for i in range(1000):
        aligner.partial_fit(X[i : i + 1], y[i : i + 1])
    assert counted == []
    aligner.transform(X)
    aligner.inverse_transform(y)
    aligner.score(X, y)
    assert len(counted) == whole > 0
