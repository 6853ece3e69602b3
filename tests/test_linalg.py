"""The rank cut, the signs of an SVD, the polar factor and R²."""

import numpy as np
import pytest
from scipy.linalg import polar
from sklearn.metrics import r2_score

from sklearn_bijection._linalg import (
    gram_svd,
    polar_factor,
    principal_axes,
    signed_svd,
    variance_explained,
)


def matrix(shape, rank=None, seed=0):
    rng = np.random.default_rng(seed)
    rank = rank or min(shape)
    return rng.normal(size=(shape[0], rank)) @ rng.normal(size=(rank, shape[1]))


@pytest.mark.parametrize("rank", [1, 3, 7])
@pytest.mark.parametrize("size", [1e-200, 1.0, 1e200])
def test_rank_is_relative_to_the_largest_eigenvalue(rank, size):
    factor = matrix((7, 7), rank)
    values, vectors = principal_axes(factor @ factor.T * size)
    assert len(values) == rank
    assert (np.diff(values) <= 0).all()
    np.testing.assert_allclose(
        vectors * values @ vectors.T, factor @ factor.T * size, atol=1e-12 * size * 50
    )


def test_directions_below_the_precision_of_the_data_are_cut():
    values, _ = principal_axes(np.diag([4.0, 1.0, 1e-8]), noise=np.full(3, 1e-8))
    assert len(values) == 2


def test_columns_without_variance_take_no_part_at_all():
    live = np.arange(60) % 4 > 0
    factor = matrix((45, 45))
    covariance = np.zeros((60, 60))
    covariance[np.ix_(live, live)] = factor @ factor.T
    values, vectors = principal_axes(covariance)
    assert len(values) == 45
    assert not vectors[~live].any()


@pytest.mark.parametrize("shape", [(5, 5), (8, 3), (3, 8)])
@pytest.mark.parametrize("svd", [signed_svd, gram_svd])
def test_svd_rebuilds_the_matrix(svd, shape):
    A = matrix(shape)
    U, s, V = svd(A)
    np.testing.assert_allclose(U * s @ V.T, A, atol=1e-9)
    np.testing.assert_allclose(s, np.linalg.svd(A, compute_uv=False), atol=1e-7)
    np.testing.assert_allclose(U.T @ U, np.eye(len(s)), atol=1e-7)


def test_signs_are_fixed():
    A = matrix((6, 4))
    U, _, V = signed_svd(A)
    U_negative, _, V_negative = signed_svd(-A)
    assert (U[np.abs(U).argmax(axis=0), range(4)] > 0).all()
    np.testing.assert_allclose(U, U_negative, atol=1e-12)
    np.testing.assert_allclose(V, -V_negative, atol=1e-12)


def test_gram_svd_leaves_out_what_it_cannot_resolve():
    U, s, V = gram_svd(matrix((6, 6), rank=2))
    assert (U.shape, s.shape, V.shape) == ((6, 2), (2,), (6, 2))


@pytest.mark.parametrize("shape", [(5, 5), (8, 3), (3, 8)])
def test_polar_factor_agrees_with_scipy(shape):
    A = matrix(shape)
    expected = polar(A)[0] if shape[0] >= shape[1] else polar(A.T)[0].T
    np.testing.assert_allclose(polar_factor(A), expected, atol=1e-12)


def test_polar_factor_of_a_singular_matrix_is_orthogonal():
    A = matrix((6, 6), rank=2)
    A[:, 0] = 0.0
    R = polar_factor(A)
    np.testing.assert_allclose(R @ R.T, np.eye(6), atol=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_without_reflection_it_is_the_best_of_the_rotations(seed):
    A = matrix((4, 4), seed=seed)
    free, proper = polar_factor(A), polar_factor(A, allow_reflection=False)
    assert np.linalg.det(proper) == pytest.approx(1.0)
    loss = np.trace(A.T @ free) - np.trace(A.T @ proper)
    flipped = np.linalg.det(free) < 0
    assert loss == pytest.approx(
        2 * np.linalg.svd(A, compute_uv=False)[-1] if flipped else 0.0, abs=1e-12
    )


@pytest.mark.parametrize("columns", [1, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_variance_explained_agrees_with_scikit_learn(columns, weighted):
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(50, columns)) * np.arange(1, columns + 1)
    guess = truth + rng.normal(size=truth.shape)
    weight = rng.uniform(size=50) if weighted else None
    expected = r2_score(truth, guess, sample_weight=weight, multioutput="variance_weighted")
    assert variance_explained(truth, guess, weight) == pytest.approx(expected)


def test_variance_explained_does_not_change_under_rotation():
    rng = np.random.default_rng(0)
    truth = np.c_[rng.normal(size=(50, 2)), np.ones(50)]
    guess = truth + rng.normal(size=truth.shape)
    Q = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    assert variance_explained(truth @ Q, guess @ Q) == pytest.approx(
        variance_explained(truth, guess)
    )


def test_variance_explained_needs_variance():
    with pytest.raises(ValueError, match="y_true has no variance over its 3 rows"):
        variance_explained(np.ones((3, 2)), np.zeros((3, 2)))
