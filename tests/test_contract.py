"""What scikit-learn expects of an estimator, with the tools that its users combine it with."""

import numpy as np
import pytest
from conftest import ALIGNERS, assert_close, assert_same_map, noisy_pair
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.metrics import mean_squared_error, r2_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from sklearn_bijection import CCAAligner, PermutationAligner, ProcrustesAligner
from sklearn_bijection._linalg import variance_explained

ONE_OF_EACH = {
    "cca": CCAAligner(),
    "procrustes": ProcrustesAligner(),
    "permutation": PermutationAligner(),
}
FOLDS = KFold(3)

#: The checks fit data of a single column too, where three components are an error.
CHECKED = {**ALIGNERS, "cca-three": CCAAligner(1)}


@pytest.fixture(params=ONE_OF_EACH)
def one(request):
    """Each aligner at its defaults, unfitted."""
    return clone(ONE_OF_EACH[request.param])


@pytest.mark.filterwarnings("ignore:.*rows are too few:UserWarning")
@pytest.mark.filterwarnings("ignore:1 of 1 matched pairs have a negative covariance:UserWarning")
@pytest.mark.parametrize("name", CHECKED)
def test_scikit_learn_finds_no_fault(name):
    results = check_estimator(clone(CHECKED[name]), on_fail=None, on_skip=None)
    assert {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"} == {}
    # scikit-learn itself skips this one wherever SCIPY_ARRAY_API is not set.
    skipped = {r["check_name"] for r in results if r["status"] != "passed"}
    assert skipped <= {"check_array_api_input"}


def test_fit_transform_is_one_array_the_transform_of_the_fit(aligner, pair):
    found = clone(aligner).fit_transform(*pair)
    assert type(found) is np.ndarray
    np.testing.assert_array_equal(found, aligner.fit(*pair).transform(pair[0]))


def test_aligned_features_feed_the_next_step(aligner, pair):
    X, y = pair
    chain = make_pipeline(StandardScaler(), aligner, Ridge()).fit(X, y)
    aligned = clone(aligner).fit_transform(StandardScaler().fit_transform(X), y)
    assert_close(chain.predict(X), Ridge().fit(aligned, y).predict(aligned))


def test_last_in_a_pipeline_it_predicts_scores_and_walks_back(aligner, pair):
    X, y = pair
    chain = make_pipeline(StandardScaler(), aligner).fit(X, y)
    np.testing.assert_array_equal(chain.predict(X), chain.transform(X))
    assert chain.score(X, y) == pytest.approx(variance_explained(y, chain.predict(X)))
    back = chain[0].inverse_transform(aligner.inverse_transform(y))
    np.testing.assert_array_equal(chain.inverse_transform(y), back)
    if getattr(aligner, "n_components", None) is getattr(aligner, "explained_variance", None):
        assert_close(chain.inverse_transform(chain.transform(X)), X)


def shrinkage_search(X, y, **options):
    chain = Pipeline([("scale", StandardScaler()), ("align", CCAAligner())])
    grid = {"align__shrinkage": [0, 0.3, "oas", (0.1, 0.6)]}
    return GridSearchCV(chain, grid, cv=FOLDS, **options).fit(X, y)


def test_grid_search_walks_back_through_its_best_estimator(pair):
    search = shrinkage_search(*pair)
    expected = search.best_estimator_.inverse_transform(pair[1])
    np.testing.assert_array_equal(search.inverse_transform(pair[1]), expected)
    np.testing.assert_array_equal(search.transform(pair[0]), search.predict(pair[0]))


def test_grid_search_names_the_nested_parameter_and_the_best_model_wins():
    # So few rows for the width that textbook CCA over-fits.
    X, y = noisy_pair(60, 12, 12, noise=1.0)
    search = shrinkage_search(X, y)
    assert list(search.cv_results_["param_align__shrinkage"]) == [0, 0.3, "oas", (0.1, 0.6)]
    held_out = [
        np.mean(
            [
                variance_explained(
                    y[test],
                    clone(search.estimator)
                    .set_params(**p)
                    .fit(X[train], y[train])
                    .predict(X[test]),
                )
                for train, test in FOLDS.split(X)
            ]
        )
        for p in search.cv_results_["params"]
    ]
    assert search.best_index_ == np.argmax(held_out) != 0
    assert search.best_score_ == pytest.approx(max(held_out))


def test_cross_val_predict_is_the_prediction_of_each_fold(one, pair):
    X, y = pair
    expected = np.empty_like(y)
    for train, test in FOLDS.split(X):
        expected[test] = clone(one).fit(X[train], y[train]).transform(X[test])
    np.testing.assert_array_equal(cross_val_predict(one, X, y, cv=FOLDS), expected)


@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize(
    ("scoring", "metric"),
    [("r2", r2_score), ("neg_mean_squared_error", lambda y, p: -mean_squared_error(y, p))],
)
def test_scorers_by_name_see_the_prediction(one, pair, scoring, metric, wide):
    X, y = pair[0], pair[1] if wide else pair[1][:, 0]
    expected = [
        metric(y[test], clone(one).fit(X[train], y[train]).predict(X[test]))
        for train, test in FOLDS.split(X)
    ]
    assert cross_val_score(one, X, y, cv=FOLDS, scoring=scoring) == pytest.approx(expected)


@pytest.mark.parametrize("shape", [(50,), (50, 1), (50, 6)])
def test_transformed_targets_come_back_in_their_own_shape_and_units(one, shape):
    X, y = noisy_pair(50)
    y = y[:, : shape[-1] if len(shape) == 2 else 1].reshape(shape)
    scaled = StandardScaler().fit(y.reshape(50, -1))
    model = TransformedTargetRegressor(one, transformer=StandardScaler()).fit(X, y)
    inner = clone(one).fit(X, scaled.transform(y.reshape(50, -1))).transform(X)
    assert model.predict(X).shape == shape
    assert_close(model.predict(X), scaled.inverse_transform(inner).reshape(shape))


@pytest.fixture
def weight():
    return np.random.default_rng(5).integers(0, 3, 300).astype(float)


def test_weights_are_routed_through_a_pipeline(one, pair, weight):
    X, y = pair
    with config_context(enable_metadata_routing=True):
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        routed = clone(one).set_fit_request(sample_weight=True)
        ridge = Ridge().set_fit_request(sample_weight=False)
        last = make_pipeline(scaler, routed).fit(X, y, sample_weight=weight)
        inner = make_pipeline(clone(scaler), clone(routed), ridge).fit(X, y, sample_weight=weight)
    scaled = StandardScaler().fit_transform(X)
    expected = one.fit(scaled, y, sample_weight=weight)
    assert_same_map(last[-1], expected, scaled, y, rtol=0)
    assert_same_map(inner[1], expected, scaled, y, rtol=0)


def test_weights_are_routed_through_a_grid_search_to_fit_and_score(pair, weight):
    X, y = pair
    with config_context(enable_metadata_routing=True):
        routed = CCAAligner().set_fit_request(sample_weight=True)
        routed.set_score_request(sample_weight=True)
        search = GridSearchCV(routed, {"shrinkage": [0.0, 0.2]}, cv=FOLDS)
        search.fit(X, y, sample_weight=weight)
    best = CCAAligner(**search.best_params_).fit(X, y, sample_weight=weight)
    assert_same_map(search.best_estimator_, best, X, y, rtol=0)
    scores = [
        CCAAligner(shrinkage=0.2)
        .fit(X[train], y[train], sample_weight=weight[train])
        .score(X[test], y[test], sample_weight=weight[test])
        for train, test in FOLDS.split(X)
    ]
    assert search.cv_results_["mean_test_score"][1] == pytest.approx(np.mean(scores))


def test_weights_that_nobody_asked_for_are_refused(one, pair, weight):
    with config_context(enable_metadata_routing=True):
        chain = make_pipeline(one)
        with pytest.raises(ValueError, match="sample_weight"):
            chain.fit(*pair, sample_weight=weight)


def test_lists_are_arrays(one, pair, weight):
    X, y = pair
    expected = clone(one).fit(X, y, sample_weight=weight)
    one.fit(X.tolist(), y.tolist(), sample_weight=weight.tolist())
    assert_same_map(one, expected, X, y, rtol=0)
    score = expected.score(X, y, sample_weight=weight)
    assert one.score(X.tolist(), y.tolist(), sample_weight=weight.tolist()) == score


def test_score_weighs_rows(one, pair, weight):
    X, y = pair
    one.fit(X, y)
    counts = weight.astype(int)
    repeated = one.score(np.repeat(X, counts, axis=0), np.repeat(y, counts, axis=0))
    assert one.score(X, y, sample_weight=weight) == pytest.approx(repeated)


@pytest.mark.parametrize("size", [1e-150, 1.0, 1e150])
def test_rows_one_at_a_time_are_the_whole(aligner, size):
    X, y = (size * a for a in noisy_pair(60))
    whole = clone(aligner).fit(X, y)
    for i in range(60):
        aligner.partial_fit(X[i : i + 1], y[i : i + 1])
    assert_same_map(aligner, whole, X, y)


def test_y_of_one_dimension_is_predicted_in_one(one):
    X, y = noisy_pair(100, 4, 1)
    one.fit(X, y[:, 0])
    assert one.predict(X).shape == (100,)
    assert one.transform(X).shape == (100, 1)
    assert one.inverse_transform(y[:, 0]).shape == (100, 4)
    np.testing.assert_array_equal(one.inverse_transform(y), one.inverse_transform(y[:, 0]))
    assert one.score(X, y[:, 0]) == pytest.approx(r2_score(y[:, 0], one.predict(X)))
    assert clone(one).fit(X, y).predict(X).shape == (100, 1)


FITTED = ["map_", "mean_x_", "mean_y_", "n_features_in_", "n_targets_"]
FITTED_OF = {
    ProcrustesAligner: ["rotation_", "scale_"],
    PermutationAligner: ["permutation_", "scales_", "scores_"],
    CCAAligner: [
        "coef_",
        "inverse_coef_",
        "canonical_correlations_",
        "x_weights_",
        "y_weights_",
        "shrinkage_",
        "shrinkage_path_",
        "rank_x_",
        "rank_y_",
        "n_components_",
    ],
}


def documented(aligner):
    return FITTED + FITTED_OF[type(aligner)]


def test_before_fit_there_is_nothing_to_read(one):
    for name in documented(one):
        assert not hasattr(one, name), name
        with pytest.raises(AttributeError):
            getattr(one, name)


def test_after_fit_everything_documented_is_there(aligner, pair):
    streamed = clone(aligner).partial_fit(*pair)
    for fitted in (aligner.fit(*pair), streamed):
        assert [name for name in documented(fitted) if not hasattr(fitted, name)] == []


def test_before_fit_every_use_says_so(one, pair):
    X, y = pair
    calls = [
        lambda: one.transform(X),
        lambda: one.inverse_transform(y),
        lambda: one.predict(X),
        lambda: one.score(X, y),
        lambda: one.get_feature_names_out(),
        lambda: one.mean_x_,
        lambda: one.map_,
    ]
    if isinstance(one, CCAAligner):
        calls += [lambda: one.canonical_variates(X, y), lambda: one.coef_]
    for call in calls:
        with pytest.raises(NotFittedError, match="not fitted yet"):
            call()


STATES = {
    "unfitted": lambda aligner, X, y: aligner,
    "fitted": lambda aligner, X, y: aligner.fit(X, y),
    "streaming": lambda aligner, X, y: aligner.partial_fit(X, y),
    "streaming, one row so far": lambda aligner, X, y: aligner.partial_fit(X[:1], y[:1]),
}


@pytest.mark.parametrize("state", STATES)
def test_it_can_be_shown_in_every_state(aligner, pair, state):
    STATES[state](aligner, *pair)
    assert repr(aligner).startswith(type(aligner).__name__)
    assert type(aligner).__name__ in aligner._repr_html_()
    assert type(aligner).__name__ in aligner._repr_mimebundle_()["text/html"]


def test_one_row_is_no_map_yet(one, pair):
    X, y = pair
    one.partial_fit(X[:1], y[:1])
    with pytest.raises(ValueError, match=r"X has no variance: its 1 row"):
        one.transform(X)
    assert not hasattr(one, "mean_x_")
    assert_same_map(one.partial_fit(X[1:], y[1:]), clone(one).fit(X, y), X, y)
