"""Many spaces in one: what is done with what their rows do not span."""

import numpy as np
import pytest
from _worlds import pairs, rotation, worlds
from conftest import assert_close

from sklearn_bijection import GeneralizedProcrustes
from sklearn_bijection._linalg import variance_explained


def flawed():
    """Spaces that do not span their coordinates."""
    Xs = worlds(3, 100, 6, noise=0.5)
    dead = [X.copy() for X in Xs]
    dead[0][:, [1, 4]], dead[1][:, 0] = 7.0, 0.0
    plane = [X - X.mean(axis=1, keepdims=True) for X in Xs]
    copies = [np.c_[X[:, :5], X[:, 0]] for X in Xs]
    near = [X * np.where(np.arange(6) == 2, 1e-30, 1) for X in Xs]
    return {
        "dead": dead,
        "layer norm": plane,
        "copies": copies,
        "nearly dead": near,
        "few": [X[:4] for X in Xs],
    }


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("allow_reflection", [True, False])
@pytest.mark.parametrize("name", flawed())
def test_spaces_that_span_less_than_their_width_are_completed(name, allow_reflection, dtype):
    Xs = [X.astype(dtype) for X in flawed()[name]]
    spaces = GeneralizedProcrustes(allow_reflection=allow_reflection, max_iter=500).fit(Xs)
    anywhere = np.random.default_rng(5).normal(size=(40, 6))
    for i, j in pairs(3):
        there = spaces.translate(anywhere, i, j)
        assert_close(spaces.translate(there, j, i), anywhere, 1e-11)
        assert variance_explained(Xs[j], spaces.translate(Xs[i], i, j)) > 0.4
    if not allow_reflection:
        np.testing.assert_allclose([np.linalg.det(R) for R in spaces.rotations_], 1.0)


@pytest.mark.parametrize("allow_reflection", [True, False])
@pytest.mark.parametrize("name", flawed())
def test_the_order_of_spaces_plays_no_part_for_what_their_rows_do_not_span(name, allow_reflection):
    Xs, anywhere = flawed()[name], np.random.default_rng(5).normal(size=(40, 6))
    options = {"allow_reflection": allow_reflection, "max_iter": 500}
    here = GeneralizedProcrustes(**options).fit(Xs)
    there = GeneralizedProcrustes(**options).fit(Xs[::-1])
    for i, j in pairs(3):
        expected = here.translate(anywhere, i, j)
        assert_close(there.translate(anywhere, 2 - i, 2 - j), expected, 1e-6)


@pytest.mark.parametrize("allow_reflection", [True, False])
def test_spaces_that_span_the_same_are_completed_alike(allow_reflection):
    X, anywhere = np.random.default_rng(0).normal(size=(2, 5, 9))
    spaces = GeneralizedProcrustes(allow_reflection=allow_reflection).fit([X, 2 * X, X + 1])
    for i, j in pairs(3):
        there = spaces.translate(anywhere + spaces.means_[i], i, j) - spaces.means_[j]
        assert_close(there, anywhere * spaces.scales_[i] / spaces.scales_[j], 1e-10)


@pytest.mark.parametrize("n_samples", [5, 8])
def test_fewer_rows_than_columns_leave_the_reflection_free(n_samples):
    X = np.random.default_rng(0).normal(size=(n_samples, 8))
    Xs = [X, X * np.where(np.arange(8), 1, -1), X @ rotation(8, 3)]
    bound, free = (GeneralizedProcrustes(allow_reflection=flag).fit(Xs) for flag in (False, True))
    assert bound.loss_curve_[-1] == pytest.approx(0, abs=1e-12)
    np.testing.assert_allclose([np.linalg.det(R) for R in bound.rotations_], 1.0)
    for i, j in pairs(3):
        assert_close(bound.translate(Xs[i], i, j), free.translate(Xs[i], i, j), 1e-10)
