"""How far CCA shrinks: by a formula, by cross-validation on the moments, or as it is told."""

import numpy as np
import pytest
from conftest import noisy_pair
from sklearn.covariance import oas

from sklearn_bijection import CCAAligner, ProcrustesAligner
from sklearn_bijection._linalg import variance_explained
from sklearn_bijection._moments import row_hash
from sklearn_bijection.datasets import load_sentence_pair, load_word_pair

WIDTHS = [(6, 6), (4, 9), (9, 4)]
#: From textbook CCA to Procrustes.
FIXED = (0.0, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 1.0)


def oas_of_equation_23(A):
    """The formula as it is printed, on the covariance itself."""
    S, n, d = np.cov(A.T, bias=True), *A.shape
    square, trace = np.trace(S @ S), np.trace(S)
    share = ((1 - 2 / d) * square + trace**2) / ((n + 1 - 2 / d) * (square - trace**2 / d))
    return min(1.0, share)


@pytest.mark.parametrize(("n", "widths"), [(30, (20, 12)), (300, (6, 6)), (50, (2, 3))])
def test_oas_is_the_formula(n, widths):
    X, y = noisy_pair(n, *widths)
    found = CCAAligner(shrinkage="oas").fit(X, y).shrinkage_
    assert found == pytest.approx((oas_of_equation_23(X), oas_of_equation_23(y)), rel=1e-9)


@pytest.mark.parametrize("d", [10, 40])
def test_oas_is_scikit_learns_up_to_the_term_that_it_leaves_out(d):
    X, y = noisy_pair(150, d, d)
    found = CCAAligner(shrinkage="oas").fit(X, y).shrinkage_
    assert found == pytest.approx((oas(X)[1], oas(y)[1]), rel=2 / d)


def test_oas_is_one_where_all_directions_vary_alike():
    X = np.vstack([np.eye(4), -np.eye(4)])
    assert CCAAligner(shrinkage="oas").fit(X, 3.0 * X[:, :2] + 1.0).shrinkage_ == (1.0, 1.0)


@pytest.mark.parametrize("given", [0, 0.25, 1, (0.1, 0.4), [0.1, 0.4], np.float64(0.25)])
def test_what_is_given_is_used(pair, given):
    aligner = CCAAligner(shrinkage=given).fit(*pair)
    expected = tuple(given) if isinstance(given, (tuple, list)) else (given, given)
    assert aligner.shrinkage_ == expected
    assert aligner.shrinkage_path_ is None


@pytest.mark.parametrize("widths", WIDTHS)
def test_shrunk_all_the_way_it_is_procrustes_up_to_one_scale(widths):
    X, y = noisy_pair(200, *widths)
    coef = CCAAligner(shrinkage=1).fit(X, y).coef_
    rotation = ProcrustesAligner().fit(X, y).rotation_
    scale = np.linalg.norm(coef) / np.linalg.norm(rotation)
    np.testing.assert_allclose(coef, scale * rotation, atol=1e-10 * scale)


def cross_validated(X, y, shrinkage, **options):
    """Errors of both ways as shares of the variance, fold by fold on the rows themselves."""
    fold = (row_hash(X) + row_hash(y)) % np.uint64(3)
    errors, totals = np.zeros(2), np.zeros(2)
    for i in range(3):
        train, test = fold != i, fold == i
        aligner = CCAAligner(shrinkage=shrinkage, **options).fit(X[train], y[train])
        for side, truth, found in (
            (0, y, aligner.transform(X[test])),
            (1, X, aligner.inverse_transform(y[test])),
        ):
            errors[side] += np.square(truth[test] - found).sum()
            totals[side] += np.square(truth[test] - truth[train].mean(axis=0)).sum()
    return errors / totals


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"direction": "forward"},
        {"direction": "backward"},
        {"n_components": 2},
        {"explained_variance": 0.9},
    ],
    ids=str,
)
@pytest.mark.parametrize("widths", WIDTHS)
def test_the_path_is_cross_validation_without_a_second_pass(widths, options):
    X, y = noisy_pair(150, *widths, noise=1.5)
    # So that the folds differ from the whole in the rank that a share of the variance leaves.
    X[:, 1], y[:, 2], y = 3.0, y[:, 0], y + 100.0
    path = CCAAligner(**options).fit(X, y).shrinkage_path_
    expected = [cross_validated(X, y, shrinkage, **options) for shrinkage in path.shrinkage]
    np.testing.assert_allclose(
        np.c_[path.forward_error, path.inverse_error], expected, rtol=1e-6, atol=1e-8
    )


@pytest.mark.parametrize("direction", ["symmetric", "forward", "backward"])
def test_the_choice_has_the_least_error_of_those_tried_in_its_direction(direction):
    X, y = noisy_pair(80, 12, 12, noise=1.5)
    aligner = CCAAligner(direction=direction).fit(X, y)
    path = aligner.shrinkage_path_
    judged = {
        "forward": path.forward_error,
        "backward": path.inverse_error,
        "symmetric": path.forward_error + path.inverse_error,
    }[direction]
    best = path.shrinkage[judged.argmin()]
    assert aligner.shrinkage_ == (best, best)
    assert (np.diff(path.shrinkage) > 0).all()
    assert 5 <= len(path.shrinkage) <= 10


@pytest.mark.parametrize(
    "change",
    {
        "order of rows": lambda X, y, order: (X[order], y[order]),
        "order of columns": lambda X, y, order: (X[:, ::-1], y[:, [2, 0, 1, 3, 4, 5]]),
        "every row twice": lambda X, y, order: (np.repeat(X, 2, axis=0), np.repeat(y, 2, axis=0)),
    }.items(),
    ids=lambda change: change[0],
)
def test_the_choice_is_that_of_the_rows_as_a_set(pair, change):
    X, y = pair
    path = CCAAligner().fit(X, y).shrinkage_path_
    changed = CCAAligner().fit(*change[1](X, y, np.random.default_rng(0).permutation(300)))
    np.testing.assert_array_equal(changed.shrinkage_path_.shrinkage, path.shrinkage)
    np.testing.assert_allclose(changed.shrinkage_path_.forward_error, path.forward_error, rtol=1e-9)


@pytest.mark.parametrize(
    ("load", "direction"),
    [
        (load_sentence_pair, "symmetric"),
        (load_word_pair, "symmetric"),
        (load_word_pair, "forward"),
        (load_word_pair, "backward"),
    ],
)
def test_on_real_embeddings_auto_is_as_good_as_the_best_fixed_shrinkage(load, direction):
    X, y = load(return_X_y=True)
    rows = np.random.default_rng(0).permutation(len(X))
    train, test = np.split(rows, [len(X) * 4 // 5])

    def held_out(shrinkage):
        aligner = CCAAligner(shrinkage=shrinkage, direction=direction).fit(X[train], y[train])
        forward = variance_explained(y[test], aligner.transform(X[test]))
        inverse = variance_explained(X[test], aligner.inverse_transform(y[test]))
        return {"forward": forward, "backward": inverse}.get(direction, (forward + inverse) / 2)

    auto, scores = held_out("auto"), {shrinkage: held_out(shrinkage) for shrinkage in FIXED}
    assert auto >= max(scores.values()) - 0.005
    if direction == "symmetric":
        assert auto > scores[0.0] + 0.005
        assert auto > scores[1.0] + 0.005


def two_rows_many_times():
    rows = np.random.default_rng(0).normal(size=(2, 3))
    return np.repeat(rows, 20, axis=0), np.repeat(rows[:, :2], 20, axis=0)


@pytest.mark.filterwarnings("ignore:.*rows are too few:UserWarning")
@pytest.mark.parametrize(
    "pair_of",
    [lambda: noisy_pair(3, 2, 2), lambda: noisy_pair(4, 6, 6), two_rows_many_times],
    ids=["three rows", "four rows", "two rows, often"],
)
def test_auto_is_oas_where_the_folds_cannot_vary(pair_of):
    X, y = pair_of()
    auto, formula = CCAAligner().fit(X, y), CCAAligner(shrinkage="oas").fit(X, y)
    assert auto.shrinkage_path_ is None
    assert auto.shrinkage_ == pytest.approx(formula.shrinkage_, rel=1e-10)
    np.testing.assert_allclose(auto.coef_, formula.coef_, atol=1e-10)


def test_from_a_fixed_shrinkage_to_auto_is_a_clear_error(pair):
    X, y = pair
    aligner = CCAAligner(shrinkage=0.1).fit(X, y).set_params(shrinkage="auto")
    with pytest.raises(ValueError, match=r"shrinkage='auto' needs folds.*Call fit"):
        aligner.partial_fit(X, y).transform(X)
    assert aligner.fit(X, y).shrinkage_path_ is not None


@pytest.mark.parametrize("later", [0, 0.3, "oas", (0.1, 0.2)])
def test_from_auto_to_any_other_the_stream_goes_on(pair, later):
    X, y = pair
    aligner = CCAAligner().partial_fit(X[:100], y[:100]).set_params(shrinkage=later)
    aligner.partial_fit(X[100:], y[100:])
    expected = CCAAligner(shrinkage=later).fit(X, y)
    np.testing.assert_allclose(aligner.coef_, expected.coef_, atol=1e-10)
