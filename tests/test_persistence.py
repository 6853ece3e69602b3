"""Copies, files, other processes and other memory: the map is the same everywhere."""

import joblib
import numpy as np
import pandas as pd
import pytest
from conftest import CARRIERS, assert_same_map, noisy_pair
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV

from sklearn_bijection import CCAAligner, PermutationAligner, ProcrustesAligner

ONE_OF_EACH = {
    "cca": CCAAligner(),
    "procrustes": ProcrustesAligner(),
    "permutation": PermutationAligner(),
}


def test_clone_is_unfitted_with_the_same_parameters(aligner, pair):
    copy = clone(aligner.fit(*pair))
    assert copy.get_params() == aligner.get_params()
    with pytest.raises(NotFittedError):
        copy.transform(pair[0])


@pytest.mark.parametrize("solved", [True, False])
@pytest.mark.parametrize("carry", CARRIERS)
def test_carried_away_it_maps_the_same_and_goes_on_learning(aligner, pair, tmp_path, carry, solved):
    X, y = pair
    aligner.partial_fit(X[:200], y[:200])
    if solved:
        aligner.transform(X)
    arrived = carry(aligner, tmp_path)
    assert_same_map(arrived, aligner, X, y, rtol=0)
    arrived.partial_fit(X[200:], y[200:])
    assert_same_map(arrived, aligner.partial_fit(X[200:], y[200:]), X, y, rtol=0)


@pytest.mark.parametrize("estimator", ONE_OF_EACH.values(), ids=ONE_OF_EACH)
@pytest.mark.parametrize("target", [["u", "v", "w"], "u"], ids=["names", "one dimension"])
def test_carried_away_it_keeps_names_and_shapes(estimator, tmp_path, target):
    X, y = noisy_pair(40, 4, 3)
    X = pd.DataFrame(X, columns=list("abcd"))
    one = clone(estimator).fit(X, pd.DataFrame(y, columns=list("uvw"))[target])
    for carry in CARRIERS:
        arrived = carry(one, tmp_path)
        assert list(arrived.get_feature_names_out()) == list(one.get_feature_names_out())
        assert arrived.predict(X).shape == one.predict(X).shape


def test_two_processes_share_memory_maps_and_find_the_same(pair):
    X, y = pair
    grid = {"shrinkage": [0, 0.3, "oas", (0.1, 0.6)]}
    # So small a limit that every array a worker is sent is a memory map.
    with joblib.parallel_config("loky", n_jobs=2, max_nbytes=1):
        mapped = joblib.Parallel()(joblib.delayed(isinstance)(a, np.memmap) for a in (X, y))
        found = joblib.Parallel()(
            joblib.delayed(clone(estimator).fit)(X, y) for estimator in ONE_OF_EACH.values()
        )
        search = GridSearchCV(CCAAligner(), grid, cv=3, n_jobs=2).fit(X, y)
    assert mapped == [True, True]
    for there, here in zip(found, ONE_OF_EACH.values(), strict=True):
        assert_same_map(there, clone(here).fit(X, y), X, y)
    alone = GridSearchCV(CCAAligner(), grid, cv=3, n_jobs=1).fit(X, y)
    np.testing.assert_allclose(
        search.cv_results_["mean_test_score"], alone.cv_results_["mean_test_score"], rtol=1e-10
    )
    assert search.best_params_ == alone.best_params_


def test_arrays_that_cannot_be_written_will_do(aligner, pair):
    X, y = pair
    weight = np.ones(len(X))
    for array in (X, y, weight):
        array.setflags(write=False)
    aligner.fit(X, y, sample_weight=weight).partial_fit(X, y, sample_weight=weight)
    assert aligner.transform(X).flags.writeable
    assert aligner.inverse_transform(y).flags.writeable


@pytest.mark.parametrize("order", ["F", "strided", "reversed"])
def test_memory_layout_does_not_matter(aligner, pair, order):
    X, y = pair
    laid_out = {
        "F": np.asfortranarray,
        "strided": lambda a: np.repeat(np.repeat(a, 2, axis=0), 2, axis=1)[::2, ::2],
        "reversed": lambda a: a[::-1].copy()[::-1],
    }[order]
    expected = clone(aligner).fit(X, y)
    assert_same_map(aligner.fit(laid_out(X), laid_out(y)), expected, laid_out(X), laid_out(y))
