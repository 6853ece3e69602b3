"""Many spaces in one: what is refused."""

import numpy as np
import pandas as pd
import pytest
from _worlds import worlds

from sklearn_bijection import GeneralizedProcrustes


def with_nan(X):
    X = X.copy()
    X[3, 1] = np.nan
    return X


X, Y = worlds(2, 20, 3)
REFUSED = {
    "one array": (X, TypeError, r"Xs is one ndarray.*Pass \[X_0, X_1"),
    "a frame": (pd.DataFrame(X), TypeError, "Xs is one DataFrame"),
    "text": ("abc", TypeError, "Xs is one str"),
    "a number": (3, TypeError, "Xs is one int"),
    "one space": ([X], ValueError, r"Xs has 1 space\(s\).* at least two arrays"),
    "none": ([], ValueError, r"Xs has 0 space\(s\)"),
    "numbered names": ({0: X, 1: Y}, TypeError, r"keys \[0, 1\].*Pass a list"),
    "one dimension": ([X, Y[:, 0]], ValueError, r"Xs\[1\] has shape \(20,\)"),
    "three dimensions": ([X, Y[None]], ValueError, r"Xs\[1\] has shape \(1, 20, 3\)"),
    "no columns": ([X, Y[:, :0]], ValueError, r"Xs\[1\] has shape \(20, 0\)"),
    "one row": ([X[:1], Y[:1]], ValueError, r"Xs\[0\] has 1 row\(s\), but at least 2"),
    "rows": ([X, Y[:18]], ValueError, r"Xs\[1\] has 18 rows but Xs\[0\] has 20.*drop those"),
    "named rows": (
        {"a": X, "b": Y[:18]},
        ValueError,
        r"Xs\['b'\] has 18 rows but Xs\['a'\] has 20",
    ),
    "nan": ([X, with_nan(Y)], ValueError, r"Xs\[1\] contains NaN \(first at row 3, column 1"),
    "named nan": ({"a": with_nan(X), "b": Y}, ValueError, r"Xs\['a'\] contains NaN"),
    "constant": (
        [X, np.full((20, 3), 0.1)],
        ValueError,
        r"Xs\[1\] has no variance.*Leave the space out",
    ),
    "named constant": ({"a": X, "b": 0 * Y + 1e5}, ValueError, r"Xs\['b'\] has no variance"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_list_of_spaces_is_refused(name):
    Xs, kind, message = REFUSED[name]
    with pytest.raises(kind, match=message):
        GeneralizedProcrustes().fit(Xs)


def test_a_failed_fit_leaves_the_last_one():
    spaces = GeneralizedProcrustes().fit([X, Y])
    before = spaces.translate(X, 0, 1)
    with pytest.raises(ValueError, match="contains NaN"):
        spaces.fit([X, Y, with_nan(X)])
    np.testing.assert_array_equal(spaces.translate(X, 0, 1), before)


@pytest.mark.parametrize(
    "parameter",
    [
        {"max_iter": 0},
        {"max_iter": 2.5},
        {"tol": -1.0},
        {"scale": "all"},
        {"allow_reflection": None},
    ],
)
def test_parameters_are_checked(parameter):
    (name,) = parameter
    with pytest.raises(
        ValueError, match=f"The '{name}' parameter of GeneralizedProcrustes must be"
    ):
        GeneralizedProcrustes(**parameter).fit([X, Y])


def test_too_few_rows_of_positive_weight_are_refused():
    with pytest.raises(ValueError, match=r"sample_weight is positive for 1 of 20 rows"):
        GeneralizedProcrustes().fit([X, Y], sample_weight=np.eye(20)[0])


def test_spaces_that_are_not_there_are_refused():
    spaces = GeneralizedProcrustes().fit({"bert": X, "roberta": Y})
    known = r"names 'bert', 'roberta' or a number from 0 to 1, or from -2 to -1"
    for address in ("bort", 2, -3, None, 0.0, True, False, np.True_):
        with pytest.raises(ValueError, match=rf"space={address!r} is none of the 2 .*{known}"):
            spaces.transform(X, address)
    with pytest.raises(ValueError, match="source='x' is none"):
        spaces.translate(X, "x", 0)
    with pytest.raises(ValueError, match="target='x' is none"):
        spaces.map_between(0, "x")
    with pytest.raises(ValueError, match="Pass a number from 0 to 1"):
        GeneralizedProcrustes().fit([X, Y]).transform(X, "bert")


def test_rows_of_another_space_are_refused():
    spaces = GeneralizedProcrustes().fit({"a": X, "b": Y[:, :2]})
    with pytest.raises(ValueError, match=r"X has 2 columns, but Xs\['a'\] had 3 in fit"):
        spaces.transform(Y[:, :2], "a")
    with pytest.raises(ValueError, match="T has 2 columns, but the template has 3"):
        spaces.inverse_transform(Y[:, :2], "b")
    with pytest.raises(ValueError, match=r"Xs\['b'\] has 3 columns, but Xs\['b'\] had 2 in fit"):
        spaces.score({"a": X, "b": Y})
    with pytest.raises(ValueError, match=r"X contains NaN"):
        spaces.translate(with_nan(X), "a", "b")


def test_other_spaces_than_in_fit_are_refused():
    spaces = GeneralizedProcrustes().fit({"a": X, "b": Y})
    with pytest.raises(
        ValueError, match=r"Xs has the spaces \['a', 'c'\], but fit had \['a', 'b'\]"
    ):
        spaces.score({"a": X, "c": Y})
    with pytest.raises(ValueError, match="Xs has 3 spaces, but fit had 2"):
        spaces.template([X, Y, X])
    with pytest.raises(ValueError, match="Xs has names, but the spaces of fit had none"):
        GeneralizedProcrustes().fit([X, Y]).score({"a": X, "b": Y})


def test_columns_of_frames_are_remembered():
    frames = [pd.DataFrame(X, columns=list("uvw")), pd.DataFrame(Y, columns=list("xyz"))]
    spaces = GeneralizedProcrustes().fit(frames)
    np.testing.assert_array_equal(spaces.transform(frames[0], 0), spaces.transform(X, 0))
    with pytest.raises(
        ValueError, match=r"columns of X are \['v', 'u', 'w'\].*Xs\[0\].*in that order"
    ):
        spaces.transform(frames[0][list("vuw")], 0)
