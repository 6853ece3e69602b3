"""Frames and the names of their columns, in and out."""

import numpy as np
import pandas as pd
import pytest
from conftest import noisy_pair
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_bijection import CCAAligner, PermutationAligner, ProcrustesAligner

ONE_OF_EACH = {
    "cca": CCAAligner(),
    "procrustes": ProcrustesAligner(),
    "permutation": PermutationAligner(),
}


@pytest.fixture(params=ONE_OF_EACH)
def one(request):
    """Each aligner at its defaults, unfitted."""
    return clone(ONE_OF_EACH[request.param])


@pytest.fixture
def frames():
    X, y = noisy_pair(40, 4, 3)
    index = [f"row {i}" for i in range(40)]
    return (
        pd.DataFrame(X, columns=list("abcd"), index=index),
        pd.DataFrame(y, columns=list("uvw"), index=index),
    )


def test_frames_in_frame_out_with_the_index_kept_and_the_names_of_y(one, frames):
    X, y = frames
    found = one.set_output(transform="pandas").fit(X, y).transform(X)
    pd.testing.assert_frame_equal(found, pd.DataFrame(one.predict(X), X.index, y.columns))
    pd.testing.assert_frame_equal(clone(one).fit_transform(X, y), found)


def test_a_pipeline_passes_the_frame_on(one, frames):
    X, y = frames
    chain = make_pipeline(StandardScaler(), one).set_output(transform="pandas").fit(X, y)
    found = chain.transform(X)
    assert list(found.columns) == list(y.columns) == list(chain.get_feature_names_out())
    assert list(found.index) == list(X.index)


def test_lists_in_frame_out_with_numbered_names(one):
    X, y = (a.tolist() for a in noisy_pair(40, 4, 3))
    found = one.set_output(transform="pandas").fit(X, y).transform(X)
    prefix = type(one).__name__.lower()
    assert list(found.columns) == [f"{prefix}{i}" for i in range(3)]
    assert list(found.index) == list(range(40))


def test_only_transform_makes_frames(one, frames):
    X, y = frames
    one.set_output(transform="pandas").fit(X, y)
    assert type(one.predict(X)) is type(one.inverse_transform(y)) is np.ndarray


def test_names_are_remembered_and_forgotten(one, frames):
    X, y = frames
    one.fit(X, y)
    assert list(one.feature_names_in_) == list("abcd")
    assert list(one.target_names_in_) == list(one.get_feature_names_out()) == list("uvw")
    one.fit(X.to_numpy(), y.to_numpy())
    assert not hasattr(one, "feature_names_in_")
    assert not hasattr(one, "target_names_in_")


def test_names_out_belong_to_the_caller(one, frames):
    one.fit(*frames).get_feature_names_out()[0] = "changed"
    assert list(one.get_feature_names_out()) == list("uvw")


def test_other_names_than_in_fit_are_refused(one, frames):
    X, y = frames
    one.fit(X, y)
    for call in (one.transform, one.predict):
        with pytest.raises(ValueError, match="feature names should match"):
            call(X[list("bacd")])
    for call in (one.partial_fit, one.score):
        with pytest.raises(ValueError, match="feature names should match"):
            call(X[list("bacd")], y)
        with pytest.raises(ValueError, match=r"columns of y are \['v', 'u', 'w'\].* in that order"):
            call(X, y[list("vuw")])
    with pytest.raises(ValueError, match="columns of y are"):
        one.inverse_transform(y.rename(columns={"u": "t"}))
    with pytest.raises(ValueError, match="input_features is not equal to feature_names_in_"):
        one.get_feature_names_out(list("bacd"))
