"""Input that cannot be right: a clear error, and an estimator that works as before it."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from conftest import noisy_pair
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils._param_validation import InvalidParameterError

from sklearn_bijection import CCAAligner, PermutationAligner, ProcrustesAligner

ONE_OF_EACH = {
    "cca": CCAAligner(),
    "procrustes": ProcrustesAligner(),
    "permutation": PermutationAligner(),
}
X, Y = noisy_pair(40, 6, 4)
for _array in (X, Y):
    _array.setflags(write=False)

#: Calls that read X, and those that read y, on a fitted aligner; the other argument is in order.
READS_X = {
    "fit": lambda aligner, a: aligner.fit(a, Y),
    "partial_fit": lambda aligner, a: aligner.partial_fit(a, Y),
    "transform": lambda aligner, a: aligner.transform(a),
    "predict": lambda aligner, a: aligner.predict(a),
    "score": lambda aligner, a: aligner.score(a, Y),
}
READS_Y = {
    "fit": lambda aligner, a: aligner.fit(X, a),
    "partial_fit": lambda aligner, a: aligner.partial_fit(X, a),
    "inverse_transform": lambda aligner, a: aligner.inverse_transform(a),
    "score": lambda aligner, a: aligner.score(X, a),
}
READS = [
    *(("X", X, call) for call in READS_X.values()),
    *(("y", Y, call) for call in READS_Y.values()),
]
READ_IDS = [*(f"X-{name}" for name in READS_X), *(f"y-{name}" for name in READS_Y)]
READS_WEIGHT = {
    "fit": lambda aligner, w: aligner.fit(X, Y, sample_weight=w),
    "partial_fit": lambda aligner, w: aligner.partial_fit(X, Y, sample_weight=w),
    "score": lambda aligner, w: aligner.score(X, Y, sample_weight=w),
}


@pytest.fixture(params=ONE_OF_EACH)
def fitted(request):
    """Each aligner at its defaults, fitted."""
    return clone(ONE_OF_EACH[request.param]).fit(X, Y)


@pytest.fixture(params=ONE_OF_EACH)
def unfitted(request):
    return clone(ONE_OF_EACH[request.param])


def state(aligner):
    """All that a user can see of a fitted aligner."""
    return {
        "transform": aligner.transform(X),
        "inverse_transform": aligner.inverse_transform(Y),
        "predict": aligner.predict(X),
        "score": aligner.score(X, Y),
        "names": list(aligner.get_feature_names_out()),
        "widths": (aligner.n_features_in_, aligner.n_targets_),
        "names in": getattr(aligner, "feature_names_in_", None),
    }


def assert_refused(aligner, call, error, match):
    """The call raises, and leaves everything as it was."""
    before = state(aligner)
    with pytest.raises(error, match=match):
        call()
    after = state(aligner)
    for name, value in before.items():
        np.testing.assert_array_equal(after[name], value, err_msg=f"{name} changed")


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    ("value", "kind"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")]
)
@pytest.mark.parametrize(("name", "rows", "call"), READS, ids=READ_IDS)
def test_what_is_not_finite_is_located(fitted, name, rows, call, value, kind, dtype):
    rows = rows.astype(dtype)
    rows[7, 2], rows[9, 1] = value, value
    where = f"Input {name} contains {kind} .*first at row 7, column 2"
    assert_refused(fitted, lambda: call(fitted, rows), ValueError, where)


def test_opposite_infinities_do_not_cancel(fitted):
    rows = X.copy()
    rows[7, 2], rows[7, 3] = np.inf, -np.inf
    with pytest.raises(ValueError, match="row 7, column 2"):
        fitted.transform(rows)


def test_large_finite_rows_are_finite(fitted):
    assert fitted.transform(np.full((3, 6), 1e305)).shape == (3, 4)


@pytest.mark.parametrize(("name", "rows", "call"), READS, ids=READ_IDS)
@pytest.mark.parametrize(
    ("spoil", "error", "match"),
    [
        (lambda a: sp.csr_array(a), TypeError, "Sparse data was passed"),
        (lambda a: a * 1j, ValueError, "Complex data not supported"),
        (lambda a: np.full(a.shape, "word"), ValueError, "could not convert string"),
        (lambda a: a[:, :, np.newaxis], ValueError, "dim 3"),
        (lambda a: a[:0], ValueError, "0 sample"),
        (lambda a: a[:, :0], ValueError, "0 feature"),
        (lambda a: [[1.0, 2.0], [3.0]], ValueError, "inhomogeneous"),
        (lambda a: 1.0, (ValueError, TypeError), "scalar|single value"),
    ],
    ids=["sparse", "complex", "words", "3-D", "no rows", "no columns", "ragged", "scalar"],
)
def test_what_is_no_such_matrix_is_refused(fitted, name, rows, call, spoil, error, match):
    assert_refused(fitted, lambda: call(fitted, spoil(rows)), error, match)


@pytest.mark.parametrize("name", ["partial_fit", "transform", "predict", "score"])
def test_another_width_of_X_is_refused(fitted, name):
    call = READS_X[name]
    match = r"X has 5 features, but .* is expecting 6"
    assert_refused(fitted, lambda: call(fitted, X[:, :5]), ValueError, match)


@pytest.mark.parametrize("name", ["partial_fit", "inverse_transform", "score"])
def test_another_width_of_y_is_refused(fitted, name):
    call = READS_Y[name]
    match = r"y has 3 columns, but .* was fitted with 4\. Pass rows of the second space"
    assert_refused(fitted, lambda: call(fitted, Y[:, :3]), ValueError, match)


@pytest.mark.parametrize("call", READS_X.values(), ids=READS_X)
def test_rows_of_X_are_no_vector(fitted, call):
    assert_refused(
        fitted, lambda: call(fitted, X[0]), ValueError, "Expected 2D array, got 1D array"
    )


def test_a_row_of_y_alone_is_no_matrix(fitted):
    match = r"y has 1 columns, but .* was fitted with 4"
    assert_refused(fitted, lambda: fitted.inverse_transform(Y[0]), ValueError, match)


@pytest.mark.parametrize("method", ["fit", "partial_fit", "score"])
def test_row_counts_that_differ_are_named(fitted, method):
    call = getattr(fitted, method)
    assert_refused(fitted, lambda: call(X, Y[:-1]), ValueError, r"inconsistent .*\[40, 39\]")


@pytest.mark.parametrize("method", ["fit", "partial_fit", "score"])
def test_y_is_needed(fitted, method):
    match = "requires y to be passed, but the target y is None. Pass the rows"
    assert_refused(fitted, lambda: getattr(fitted, method)(X, None), ValueError, match)


def test_one_row_is_too_few_to_fit(fitted):
    match = "1 sample.* while a minimum of 2 is required"
    assert_refused(fitted, lambda: fitted.fit(X[:1], Y[:1]), ValueError, match)
    assert_refused(fitted, lambda: fitted.score(X[:1], Y[:1]), ValueError, match)


@pytest.mark.parametrize("view", ["X", "y"])
def test_a_view_without_variance_is_named_and_forgotten(fitted, view):
    flat_x, flat_y = (
        (np.full((30, 3), 0.1), Y[:30]) if view == "X" else (X[:30, :5], np.ones((30, 2)))
    )
    match = rf"{view} has no variance: its 30 row\(s\) are all equal"
    assert_refused(fitted, lambda: fitted.fit(flat_x, flat_y), ValueError, match)


def test_a_score_needs_variance_in_y(fitted):
    match = "y.* has no variance over its 40 rows, so R² is undefined"
    assert_refused(fitted, lambda: fitted.score(X, np.ones_like(Y)), ValueError, match)


@pytest.mark.parametrize("call", READS_WEIGHT.values(), ids=READS_WEIGHT)
@pytest.mark.parametrize(
    ("weight", "match"),
    [
        (
            np.where(np.arange(40) == 3, -1.0, 1.0),
            "Negative values in data passed to `sample_weight`",
        ),
        (np.zeros(40), "non-zero"),
        (np.full(40, np.nan), "sample_weight contains NaN"),
        (np.full(40, np.inf), "sample_weight contains infinity"),
        (np.ones(39), r"sample_weight.shape == \(39,\), expected \(40,\)"),
        (np.ones((40, 1)), "Sample weights must be 1D"),
        (["heavy"] * 40, "could not convert string"),
        (np.ones(40) * 1j, "Complex data not supported"),
    ],
    ids=["negative", "zero", "NaN", "infinite", "length", "2-D", "words", "complex"],
)
def test_weights_are_one_number_for_each_row(fitted, call, weight, match):
    assert_refused(fitted, lambda: call(fitted, weight), ValueError, match)


def test_a_fit_needs_two_rows_that_count(fitted):
    match = "sample_weight is positive for 1 of 40 rows, but at least 2 must count"
    alone = (np.arange(40) == 5).astype(float)
    assert_refused(fitted, lambda: fitted.fit(X, Y, sample_weight=alone), ValueError, match)
    assert_refused(fitted, lambda: fitted.score(X, Y, sample_weight=alone), ValueError, match)


WRONG_PARAMETERS = [
    *(CCAAligner(value) for value in (0, -1, 2.0, "all")),
    *(
        CCAAligner(shrinkage=value)
        for value in (-0.1, 1.1, np.nan, "best", None, np.array([0.1, 0.2]))
    ),
    *(CCAAligner(direction=value) for value in ("sideways", None, 1)),
    *(CCAAligner(explained_variance=value) for value in (0.0, 1.01, -1, "most")),
    *(ProcrustesAligner(scale=value) for value in (2.0, "yes", None)),
    *(ProcrustesAligner(allow_reflection=value) for value in (1.5, "no", None)),
    *(ProcrustesAligner(direction=value) for value in ("up", None)),
    *(PermutationAligner(scale=value) for value in (True, 1.0, "negative")),
    *(PermutationAligner(signed=value) for value in (2, "yes", None)),
    *(PermutationAligner(matching=value) for value in ("covariance", None)),
    *(PermutationAligner(direction=value) for value in ("up", None)),
]


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize("aligner", WRONG_PARAMETERS, ids=repr)
def test_parameters_of_the_wrong_kind_are_named(aligner, method):
    aligner = clone(aligner)
    wrong = next(
        name
        for name, value in aligner.get_params().items()
        if value is not type(aligner)().get_params()[name]
    )
    with pytest.raises(InvalidParameterError, match=f"The '{wrong}' parameter of .* must be"):
        getattr(aligner, method)(X, Y)
    with pytest.raises(NotFittedError):
        aligner.transform(X)


@pytest.mark.parametrize(
    "shrinkage",
    [
        (),
        (0.1,),
        (0.1, 0.2, 0.3),
        (0.1, 1.2),
        [-0.1, 0.5],
        ("auto", 0.1),
        (0.1, None),
        (np.nan, 0.1),
    ],
    ids=repr,
)
def test_a_pair_of_shrinkages_is_two_numbers_in_the_unit_interval(shrinkage):
    fitted = CCAAligner().fit(X, Y).set_params(shrinkage=shrinkage)
    match = r"shrinkage=.* is not a pair of numbers in \[0, 1\]\. Pass one for X and one for y"
    assert_refused(fitted, lambda: fitted.fit(X[:, :5], Y), ValueError, match)


@pytest.mark.parametrize(
    ("pair", "match"),
    [
        (
            (X, Y),
            r"n_components=5 exceeds the shared rank 4 \(X has rank 6 in 6 features, y rank 4 in 4\)",
        ),
        ((X[:, [0, 0, 1, 1]], Y), r"shared rank 2 \(X has rank 2 in 4 features, y rank 4 in 4\)"),
    ],
    ids=["width", "rank"],
)
@pytest.mark.parametrize("shrinkage", ["auto", "oas", 0])
def test_components_beyond_the_rank_are_refused(pair, match, shrinkage):
    fitted = CCAAligner(shrinkage=shrinkage).fit(X, Y).set_params(n_components=5)
    assert_refused(fitted, lambda: fitted.fit(*pair), ValueError, f"{match}.*Lower it or pass None")
    stream = CCAAligner(5, shrinkage=shrinkage).partial_fit(*pair)
    with pytest.raises(ValueError, match=match):
        stream.transform(pair[0])


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize(
    "parameter", [{"direction": "sideways"}, {"direction": "forward"}], ids=str
)
def test_parameters_set_later_wait_for_the_next_fit(unfitted, parameter, streaming):
    expected = clone(unfitted).fit(X, Y).transform(X)
    (unfitted.partial_fit if streaming else unfitted.fit)(X, Y)
    unfitted.set_params(**parameter)
    np.testing.assert_allclose(unfitted.transform(X), expected, atol=1e-12)


FRAME = pd.DataFrame(X, columns=list("abcdef")), pd.DataFrame(Y, columns=list("uvwx"))


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_a_failed_call_leaves_the_first_fit_to_come(unfitted, method):
    spoilt = Y.copy()
    spoilt[3, 1] = np.nan
    with pytest.raises(ValueError, match="Input y contains NaN"):
        getattr(unfitted, method)(X[:, :3], spoilt)
    with pytest.raises(NotFittedError):
        unfitted.transform(X)
    np.testing.assert_array_equal(
        getattr(unfitted, method)(X, Y).transform(X), clone(unfitted).fit(X, Y).transform(X)
    )


@pytest.mark.parametrize(
    "pair",
    {
        "another width of X": (X[:, :3], np.where(np.arange(4) == 1, np.nan, Y)),
        "another width of y": (X, np.ones((40, 2))),
        "y of one dimension": (X, np.ones(40)),
        "arrays without names": (X, np.ones((40, 4))),
        "other names": (FRAME[0].add_suffix("_new"), np.where(np.arange(4) == 1, np.nan, Y)),
    }.items(),
    ids=lambda pair: pair[0],
)
@pytest.mark.parametrize("names", [False, True])
def test_a_failed_fit_changes_nothing(unfitted, pair, names):
    first = FRAME if names else (X, Y[:, :1] if "dimension" in pair[0] else Y)
    unfitted.fit(*first)
    before = dict(vars(unfitted))
    predicted = unfitted.predict(first[0])
    with pytest.raises(ValueError, match=r"NaN|no variance"):
        unfitted.fit(*pair[1])
    np.testing.assert_array_equal(unfitted.predict(first[0]), predicted)
    assert vars(unfitted).keys() == before.keys()
    for name, value in before.items():
        assert vars(unfitted)[name] is value or np.array_equal(vars(unfitted)[name], value), name


def test_a_failed_partial_fit_adds_no_rows(fitted):
    spoilt = Y.copy()
    spoilt[39, 3] = np.inf
    with pytest.raises(ValueError, match="row 39, column 3"):
        fitted.partial_fit(X, spoilt)
    expected = clone(fitted).fit(np.vstack([X, X[:9] + 1.0]), np.vstack([Y, Y[:9]]))
    fitted.partial_fit(X[:9] + 1.0, Y[:9])
    np.testing.assert_allclose(fitted.transform(X), expected.transform(X), atol=1e-10)
