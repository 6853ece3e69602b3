"""Errors, round trips, the report and the scorers, against scikit-learn and by their laws."""

import dataclasses
import pickle

import numpy as np
import pandas as pd
import pytest
from conftest import noisy_pair
from scipy import sparse
from scipy.stats import ortho_group
from sklearn.base import BaseEstimator
from sklearn.decomposition import PCA
from sklearn.metrics import mean_squared_error, r2_score
from sklearn.metrics.pairwise import paired_cosine_distances
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_bijection import CCAAligner, ProcrustesAligner
from sklearn_bijection.metrics import (
    alignment_report,
    forward_r2,
    inverse_r2,
    inverse_roundtrip_error,
    max_row_error,
    mean_cosine,
    mse,
    r2,
    relative_error,
    retrieval,
    retrieval_scores,
    roundtrip_error,
    symmetric_r2,
)

ERRORS = [r2, mse, relative_error, max_row_error, mean_cosine]
RELATIVE = [r2, relative_error, max_row_error]
SCORERS = [forward_r2, inverse_r2, symmetric_r2, retrieval]


def guesses(seed=0, shape=(40, 5)):
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=shape) * 3 + 2
    return truth, truth + rng.normal(size=shape)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", [(40, 5), (40, 1), (40,)])
@pytest.mark.parametrize(
    "ours, theirs, options",
    [(r2, r2_score, {"multioutput": "variance_weighted"}), (mse, mean_squared_error, {})],
)
def test_agrees_with_scikit_learn(ours, theirs, options, shape, weighted):
    truth, guess = guesses(shape=shape)
    weight = np.random.default_rng(1).uniform(size=40) if weighted else None
    # scikit-learn weighs columns by their unweighted variance where rows are weighted.
    if weighted and ours is r2 and len(shape) == 2:
        centred = truth - np.average(truth, axis=0, weights=weight)
        expected = 1 - (weight @ (truth - guess) ** 2).sum() / (weight @ centred**2).sum()
    else:
        expected = theirs(truth, guess, sample_weight=weight, **options)
    assert ours(truth, guess, sample_weight=weight) == pytest.approx(expected, rel=1e-12)


def test_row_errors_agree_with_loops():
    truth, guess = guesses()
    centre = truth.mean(axis=0)
    sizes = [np.linalg.norm(row - other) for row, other in zip(truth, guess, strict=True)]
    spread = np.sqrt(np.mean([np.linalg.norm(row - centre) ** 2 for row in truth]))
    assert max_row_error(truth, guess) == pytest.approx(max(sizes) / spread)
    total = np.linalg.norm(truth - guess) / np.linalg.norm(truth - centre)
    assert relative_error(truth, guess) == pytest.approx(total)
    cosines = 1 - paired_cosine_distances(truth, guess)
    assert mean_cosine(truth, guess) == pytest.approx(cosines.mean())


def test_relative_error_is_the_root_of_what_r2_leaves():
    truth, guess = guesses()
    assert relative_error(truth, guess) ** 2 == pytest.approx(1 - r2(truth, guess))
    nearly = truth.copy()
    nearly[0, 0] += 1e-12
    assert 0 < relative_error(truth, nearly) < 1e-12


def test_the_mean_predictor_is_the_zero_point():
    truth, _ = guesses()
    guess = np.broadcast_to(truth.mean(axis=0), truth.shape)
    assert r2(truth, guess) == pytest.approx(0.0, abs=1e-12)
    assert relative_error(truth, guess) == pytest.approx(1.0)


@pytest.mark.parametrize(
    "metric, best", [(r2, 1), (mse, 0), (relative_error, 0), (max_row_error, 0)]
)
def test_a_perfect_guess(metric, best):
    truth, _ = guesses()
    assert metric(truth, truth) == best
    assert mean_cosine(truth, truth) == pytest.approx(1.0, abs=1e-15)


@pytest.mark.parametrize("metric", ERRORS)
def test_rotating_both_changes_nothing(metric):
    truth, guess = guesses()
    turn = ortho_group.rvs(5, random_state=0)
    assert metric(truth @ turn, guess @ turn) == pytest.approx(metric(truth, guess), rel=1e-10)


@pytest.mark.parametrize("metric", RELATIVE)
@pytest.mark.parametrize("unit, shift", [(1e-6, 0.0), (1e6, 0.0), (1.0, 1e3)])
def test_units_and_origin_change_nothing(metric, unit, shift):
    truth, guess = guesses()
    moved = metric(truth * unit + shift, guess * unit + shift)
    assert moved == pytest.approx(metric(truth, guess), rel=1e-9)


@pytest.mark.parametrize("metric", [r2, mse])
def test_a_weight_counts_rows(metric):
    truth, guess = guesses()
    weight = np.arange(40) % 3
    repeated = np.repeat(np.arange(40), weight)
    expected = metric(truth[repeated], guess[repeated])
    assert metric(truth, guess, sample_weight=weight) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("metric", ERRORS)
def test_inputs_of_every_kind_are_read_and_left_alone(metric):
    truth, guess = guesses()
    kept = truth.copy(), guess.copy()
    expected = metric(truth, guess)
    assert metric(truth.tolist(), pd.DataFrame(guess)) == pytest.approx(expected)
    assert metric(truth.astype("float32"), guess.astype("float32")) == pytest.approx(
        expected, rel=1e-4
    )
    assert metric(np.asfortranarray(truth), guess[::-1][::-1]) == pytest.approx(expected)
    np.testing.assert_array_equal((truth, guess), kept)
    assert type(expected) is float


def test_float32_with_an_offset_is_summed_in_float64():
    truth, guess = (side.astype("float32") for side in guesses(shape=(20_000, 2)))
    exact = r2(truth.astype(float) + 4096, guess.astype(float) + 4096)
    assert r2(truth + np.float32(4096), guess + np.float32(4096)) == pytest.approx(exact, rel=1e-3)


def test_cosine_of_zero_tiny_and_huge_rows():
    rows = np.array([[3.0, 4.0], [0.0, 0.0], [3e-200, 4e-200], [3e200, 4e200]])
    assert mean_cosine(rows, np.tile([3.0, 4.0], (4, 1))) == pytest.approx(0.75)


@pytest.mark.parametrize("metric", ERRORS)
def test_shapes_that_differ(metric):
    with pytest.raises(
        ValueError, match=r"y_true has shape \(3, 2\) but y_pred has shape \(3, 1\)"
    ):
        metric(np.eye(3)[:, :2], np.ones(3))


@pytest.mark.parametrize("metric", RELATIVE)
@pytest.mark.parametrize("rows", [1, 4])
def test_no_variance(metric, rows):
    with pytest.raises(ValueError, match=f"y_true has no variance over its {rows} rows"):
        metric(np.full((rows, 2), 3.0), np.zeros((rows, 2)))


@pytest.mark.parametrize("metric", ERRORS)
@pytest.mark.parametrize(
    "bad, error, message",
    [
        ([[np.nan], [1.0]], ValueError, "y_pred contains NaN"),
        ([[np.inf], [1.0]], ValueError, "y_pred contains infinity"),
        ([["a"], ["b"]], ValueError, "could not convert"),
        (np.zeros((2, 1, 1)), ValueError, "dim 3"),
        (np.array([[1j], [0]]), ValueError, "Complex"),
        (sparse.csr_array(np.eye(2)[:, :1]), TypeError, "[Ss]parse"),
    ],
)
def test_values_that_are_no_numbers(metric, bad, error, message):
    with pytest.raises(error, match=message):
        metric([[0.0], [1.0]], bad)


@pytest.mark.parametrize("metric", [r2, mse])
def test_weights_that_are_no_weights(metric):
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        metric([0.0, 1.0], [0.0, 1.0], sample_weight=[1.0, -1.0])
    with pytest.raises(ValueError, match=r"sample_weight\.shape"):
        metric([0.0, 1.0], [0.0, 1.0], sample_weight=[1.0])


def test_round_trips_measure_what_is_lost():
    X = np.random.default_rng(0).normal(size=(60, 4)) + 5
    pca = PCA(n_components=2).fit(X)
    lost = 1 - pca.explained_variance_ratio_.sum()
    assert roundtrip_error(pca, X) == pytest.approx(np.sqrt(lost))
    assert inverse_roundtrip_error(pca, X[:, :2]) < 1e-14


@pytest.mark.parametrize("widths", [(5, 5), (3, 6), (6, 3)])
def test_round_trips_are_exact_from_the_narrower_side(widths):
    X, y = noisy_pair(200, *widths)
    aligner = ProcrustesAligner().fit(X, y)
    assert (roundtrip_error(aligner, X) < 1e-12) == (widths[0] <= widths[1])
    assert (inverse_roundtrip_error(aligner, y) < 1e-12) == (widths[0] >= widths[1])


def test_report_is_the_plain_functions(aligner):
    X, y = noisy_pair(n_features=5, n_targets=7)
    fitted = aligner.fit(X[:200], y[:200])
    X, y = X[200:], y[200:]
    report = alignment_report(fitted, X, y, similarity="centred cosine")
    assert report.n_samples == 100
    assert report.r2_symmetric == (report.r2_forward + report.r2_inverse) / 2
    assert report.roundtrip_error_x == roundtrip_error(fitted, X)
    assert report.roundtrip_error_y == inverse_roundtrip_error(fitted, y)
    ways = {"forward": (y, fitted.transform(X)), "inverse": (X, fitted.inverse_transform(y))}
    for way, (truth, guess) in ways.items():
        plain = {"r2": r2, "mse": mse, "relative_error": relative_error}
        plain |= {"cosine": mean_cosine, "max_row_error": max_row_error}
        for name, metric in plain.items():
            assert getattr(report, f"{name}_{way}") == metric(truth, guess)
        found = retrieval_scores(guess, truth, similarity="centred cosine")
        assert getattr(report, f"precision_at_1_{way}") == found.precision_at[1]
        assert getattr(report, f"precision_at_10_{way}") == found.precision_at[10]
        assert getattr(report, f"mean_reciprocal_rank_{way}") == found.mean_reciprocal_rank


def test_report_swaps_with_the_spaces():
    X, y = noisy_pair()
    there = alignment_report(ProcrustesAligner().fit(X, y), X, y).to_dict()
    back = alignment_report(ProcrustesAligner().fit(y, X), y, X).to_dict()
    for name, value in there.items():
        other = name.translate(str.maketrans("xy", "yx")) if name.startswith("roundtrip") else name
        if name.endswith(("_forward", "_inverse")):
            stem, way = name.rsplit("_", 1)
            other = f"{stem}_{'inverse' if way == 'forward' else 'forward'}"
        assert value == pytest.approx(back[other], abs=1e-10), name


def test_report_reads_as_a_table():
    X, y = noisy_pair()
    report = alignment_report(CCAAligner().fit(X, y), X, y)
    lines = str(report).splitlines()
    assert lines[0].split() == ["300", "pairs", "forward", "inverse"]
    assert {len(line) for line in lines} == {44}
    table = {line[:22].strip(): line[22:].split() for line in lines}
    assert table["R²"] == [f"{report.r2_forward:.3f}", f"{report.r2_inverse:.3f}"]
    assert len(table) == 11
    with pytest.raises(dataclasses.FrozenInstanceError):
        report.r2_forward = 1.0
    assert pickle.loads(pickle.dumps(report)) == report


class Constant(BaseEstimator):
    """Answers with one value, to see how numbers are written."""

    def __init__(self, value):
        self.value = value

    def transform(self, X):
        return np.full_like(X, self.value)

    inverse_transform = transform


@pytest.mark.parametrize("value, text", [(1e8, "e+16"), (0.0, "0.000"), (30.0, "9")])
def test_report_writes_numbers_short(value, text):
    X = np.random.default_rng(0).normal(size=(9, 2))
    assert text in str(alignment_report(Constant(value), X, X))


@pytest.mark.parametrize("kind", ["pipeline", "search", "frames", "lists", "float32", "one column"])
def test_report_takes_whatever_maps_both_ways(kind):
    X, y = noisy_pair(n_targets=1) if kind == "one column" else noisy_pair()
    aligner = ProcrustesAligner()
    expected = alignment_report(aligner.fit(X, y), X, y).to_dict()
    if kind == "pipeline":
        aligner = make_pipeline(StandardScaler(with_std=False), aligner)
    elif kind == "search":
        aligner = GridSearchCV(aligner, {"scale": [True]}, scoring=symmetric_r2)
    elif kind == "frames":
        X, y = pd.DataFrame(X).add_prefix("x"), pd.DataFrame(y).add_prefix("y")
        aligner = aligner.set_output(transform="pandas")
    elif kind == "lists":
        X, y = X.tolist(), y.tolist()
    elif kind == "float32":
        X, y = X.astype("float32"), y.astype("float32")
    else:
        y = y[:, 0]
    found = alignment_report(aligner.fit(X, y), X, y).to_dict()
    assert found == pytest.approx(expected, abs=1e-5 if kind == "float32" else 1e-10)


def test_report_names_row_counts_that_differ():
    X, y = noisy_pair()
    with pytest.raises(ValueError, match=r"X has 300 rows but y has 299.*drop the rows"):
        alignment_report(CCAAligner().fit(X, y), X, y[:-1])


@pytest.mark.parametrize("scorer", SCORERS)
def test_scorers_are_the_numbers_of_the_report(scorer):
    X, y = noisy_pair()
    aligner = CCAAligner().fit(X, y)
    report = alignment_report(aligner, X, y)
    found = (report.precision_at_1_forward + report.precision_at_1_inverse) / 2
    expected = {
        "forward_r2": report.r2_forward,
        "inverse_r2": report.r2_inverse,
        "symmetric_r2": report.r2_symmetric,
        "retrieval": found,
    }
    assert scorer(aligner, X, y) == expected[scorer.__name__]
    assert pickle.loads(pickle.dumps(scorer)) is scorer


@pytest.mark.parametrize("scorer", SCORERS[:3])
def test_scorers_take_weights(scorer):
    X, y = noisy_pair()
    aligner = CCAAligner().fit(X, y)
    weight = np.arange(300) % 2
    expected = scorer(aligner, X[1::2], y[1::2])
    assert scorer(aligner, X, y, sample_weight=weight) == pytest.approx(expected)


@pytest.mark.parametrize("scorer", SCORERS)
def test_scorers_take_a_single_target(scorer):
    X, y = noisy_pair(n_targets=1)
    aligner = CCAAligner().fit(X, y[:, 0])
    assert scorer(aligner, X, y[:, 0]) == scorer(aligner, X, y)


def test_inverse_is_judged_in_the_units_of_the_pipeline():
    X, y = noisy_pair()
    pipe = make_pipeline(StandardScaler(), ProcrustesAligner()).fit(X, y)
    assert inverse_r2(pipe, X, y) == r2(X, pipe.inverse_transform(y))
    inner = inverse_r2(pipe[-1], pipe[0].transform(X), y)
    assert abs(inverse_r2(pipe, X, y) - inner) > 0.01


class Dimmed(ProcrustesAligner):
    """A rotation whose answers are spoilt by a known factor: 1 is best."""

    def __init__(self, dim=1.0):
        super().__init__()
        self.dim = dim

    def transform(self, X):
        return super().transform(X) * self.dim

    def inverse_transform(self, y):
        return super().inverse_transform(y) * self.dim


def test_the_best_model_wins_a_search():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5))
    y = X @ ortho_group.rvs(5, random_state=0) + 0.3 * rng.normal(size=X.shape)
    grid = {"dimmed__dim": [-1.0, 0.4, 1.0, 5.0]}
    pipe = make_pipeline(StandardScaler(), Dimmed())
    scoring = {
        "forward": forward_r2,
        "inverse": inverse_r2,
        "both": symmetric_r2,
        "found": retrieval,
    }
    search = GridSearchCV(pipe, grid, scoring=scoring, refit="both", cv=3).fit(X, y)
    assert search.best_params_ == {"dimmed__dim": 1.0}
    results = search.cv_results_
    for name in ("forward", "inverse", "both"):
        assert np.argmin(results[f"rank_test_{name}"]) == 2
        assert np.argmin(results[f"mean_test_{name}"]) in (0, 3)
    assert results["mean_test_found"][0] < results["mean_test_found"][2]
    np.testing.assert_array_equal(
        search.inverse_transform(y), search.best_estimator_.inverse_transform(y)
    )


@pytest.mark.parametrize("scorer", SCORERS)
def test_scorers_serve_cross_validation(scorer):
    X, y = noisy_pair()
    scores = cross_val_score(CCAAligner(), X, y, scoring=scorer, cv=3)
    splits = [np.arange(100), np.arange(100, 200), np.arange(200, 300)]
    for score, test in zip(scores, splits, strict=True):
        train = np.setdiff1d(np.arange(300), test)
        assert score == scorer(CCAAligner().fit(X[train], y[train]), X[test], y[test])
