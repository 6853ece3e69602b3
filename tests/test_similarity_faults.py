"""Where similarity measures used to be wrong."""

from functools import partial

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from scipy.stats import spearmanr

from sklearn_bijection.metrics import (
    linear_cka,
    mean_cca,
    mutual_knn,
    rbf_cka,
    relu_cka,
    rsa,
    similarity_matrix,
    svcca,
)


def one_row_alone(n_samples: int, width: int = 1) -> np.ndarray:
    """A space whose debiased Gram matrix is zero: all rows but the first are equal."""
    X = np.zeros((n_samples, width))
    X[0] = np.random.default_rng(0).normal(size=width)
    return X


@pytest.mark.parametrize(("n_samples", "width"), [(4, 1), (50, 1), (10, 20)])
def test_a_space_without_anything_beside_its_bias_is_refused(n_samples, width):
    X, Y = one_row_alone(n_samples, width), np.random.default_rng(1).normal(size=(n_samples, 1))
    with pytest.raises(ValueError, match=r"^X .* nothing to compare"):
        linear_cka(X, Y, debiased=True)
    with pytest.raises(ValueError, match=r"^Hs\['0'\] .* nothing to compare"):
        similarity_matrix([X, Y], debiased=True, progress=False)


@pytest.mark.parametrize("size", [1e5, 1e6, 1e7, 1e8])
def test_debiased_alignment_withstands_one_large_row(size):
    X = np.random.default_rng(0).normal(size=(80, 5))
    X[0] *= size
    assert linear_cka(X, X, debiased=True) == pytest.approx(1, abs=1e-10)
    Y = np.random.default_rng(1).normal(size=(80, 4))
    # Columns of zeros change nothing but the way in which the value is computed.
    wide = np.hstack([X, np.zeros((80, 80))])
    assert linear_cka(X, Y, debiased=True) == pytest.approx(
        linear_cka(wide, Y, debiased=True), abs=1e-7
    )


@pytest.mark.parametrize("seed", range(3))
def test_distances_that_are_equal_but_for_rounding_share_a_rank(seed):
    rng = np.random.default_rng(seed)
    X, Y = rng.integers(0, 2, (40, 6)).astype(float), rng.integers(0, 3, (40, 5)).astype(float)
    whole = [np.rint(pdist(space, "sqeuclidean")) for space in (X, Y)]
    expected = spearmanr(*whole)[0]
    assert rsa(X, Y, distance="euclidean") == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("distance", ["euclidean", "correlation", "cosine"])
def test_dissimilarities_of_codes_do_not_change_with_scale_or_the_order_of_columns(distance):
    X = np.random.default_rng(0).integers(0, 2, (200, 32)).astype(float)
    assert rsa(X, 3.3 * X, distance=distance) == pytest.approx(1, abs=1e-10)
    assert rsa(X, X[:, ::-1], distance=distance) == pytest.approx(1, abs=1e-10)


def test_rows_equally_far_apart_have_no_ranks():
    with pytest.raises(ValueError, match="equally far apart"):
        rsa(np.eye(10), np.random.default_rng(0).normal(size=(10, 4)), distance="euclidean")


@pytest.mark.parametrize("measure", [rsa, partial(mutual_knn, n_neighbors=3)])
def test_parallel_rows_are_not_called_equal(measure):
    X = np.random.default_rng(0).uniform(1, 2, size=(20, 1))
    with pytest.raises(ValueError) as raised:
        measure(X, np.random.default_rng(1).normal(size=(20, 6)), distance="cosine")
    assert "rows are all equal" not in str(raised.value)


@pytest.mark.parametrize("debiased", [False, True])
@pytest.mark.parametrize("bandwidth", [1e4, 1e7, 1e8, 1e9, 1e200])
def test_a_wide_kernel_is_linear(bandwidth, debiased):
    X = np.random.default_rng(0).normal(size=(30, 4))
    Y = np.abs(X) + 0.1 * np.random.default_rng(1).normal(size=X.shape)
    expected = linear_cka(X, Y, debiased=debiased)
    value = rbf_cka(X, Y, bandwidth=bandwidth, debiased=debiased)
    assert value == pytest.approx(expected, abs=1e-4)


def test_all_of_the_variance_is_all_directions():
    U = np.linalg.qr(np.random.default_rng(0).normal(size=(400, 61))).Q
    U = np.linalg.qr(U - U.mean(axis=0)).Q
    X = U[:, :60] * np.r_[np.ones(59), 1.2e-7]
    Y = U[:, [59, 60]]
    assert svcca(X, Y, explained_variance=1.0) == pytest.approx(mean_cca(X, Y), abs=1e-10)


def test_a_unit_that_only_rounds_is_constant():
    X, Y = np.maximum(np.random.default_rng(0).normal(size=(2, 200, 16)), 0).astype(np.float32)
    X[:, 3] = 0.1
    noisy = X.copy()
    noisy[::2, 3] = np.nextafter(np.float32(0.1), np.float32(1))
    assert relu_cka(noisy, Y) == pytest.approx(relu_cka(X, Y), abs=1e-10)
