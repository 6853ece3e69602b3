"""A stream of batches: what it costs, and that nobody else's rows come in."""

import copy

import numpy as np
import pytest
from conftest import assert_same_map, noisy_pair
from sklearn.base import clone

from sklearn_bijection import CCAAligner, ProcrustesAligner


@pytest.fixture
def decompositions(monkeypatch):
    """Names of the decompositions that numpy is asked for, as they come."""
    asked = []

    def counted(name, decompose):
        return lambda *args, **options: asked.append(name) or decompose(*args, **options)

    for name in ("cholesky", "eig", "eigh", "eigvalsh", "qr", "svd", "svdvals"):
        monkeypatch.setattr(np.linalg, name, counted(name, getattr(np.linalg, name)))
    return asked


@pytest.mark.parametrize(
    "aligner", [CCAAligner(), CCAAligner(shrinkage=0.1), ProcrustesAligner()], ids=repr
)
def test_a_thousand_batches_are_decomposed_once(aligner, decompositions):
    X, y = noisy_pair(2000, 4, 4)
    clone(aligner).fit(X, y).transform(X)
    at_once = list(decompositions)
    assert at_once
    decompositions.clear()
    aligner = clone(aligner)
    for rows in np.array_split(np.arange(2000), 1000):
        aligner.partial_fit(X[rows], y[rows])
    assert not decompositions
    for _ in range(2):
        aligner.transform(X)
        aligner.inverse_transform(y)
        aligner.score(X, y)
    assert decompositions == at_once


def test_every_look_sees_all_rows_so_far(aligner):
    X, y = noisy_pair(120)
    for start, stop in ((0, 60), (60, 90), (90, 120)):
        aligner.partial_fit(X[start:stop], y[start:stop])
        assert_same_map(aligner, clone(aligner).fit(X[:stop], y[:stop]), X, y)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
@pytest.mark.parametrize("looked", [False, True])
def test_a_copy_and_its_original_learn_apart(aligner, copied, looked):
    X, y = noisy_pair(120)
    aligner.partial_fit(X[:60], y[:60])
    if looked:
        aligner.transform(X)
    other = copied(aligner).partial_fit(X[60:90], y[60:90])
    aligner.partial_fit(X[90:], y[90:])
    assert_same_map(other, clone(aligner).fit(X[:90], y[:90]), X, y)
    rows = np.r_[:60, 90:120]
    assert_same_map(aligner, clone(aligner).fit(X[rows], y[rows]), X, y)


def test_rows_given_to_a_stream_may_be_overwritten(aligner):
    X, y = noisy_pair(120)
    whole = clone(aligner).fit(X, y)
    buffers = np.empty((30, 6)), np.empty((30, 6))
    for start in range(0, 120, 30):
        for buffer, rows in zip(buffers, (X, y), strict=True):
            buffer[:] = rows[start : start + 30]
        aligner.partial_fit(*buffers)
    assert_same_map(aligner, whole, X, y)
