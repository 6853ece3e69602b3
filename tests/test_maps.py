"""Laws of the affine map."""

import numpy as np
import pytest

from sklearn_bijection._maps import Affine, AffineMap, Bijection


def affine_map(p, q, seed):
    rng = np.random.default_rng(seed)
    there = Affine(rng.normal(size=p), rng.normal(size=(p, q)), rng.normal(size=q))
    return AffineMap(there, Affine(rng.normal(size=q), rng.normal(size=(q, p)), rng.normal(size=p)))


def test_forward_and_inverse_undo_each_other():
    rng = np.random.default_rng(0)
    W = rng.normal(size=(4, 4))
    both = AffineMap.about_means(rng.normal(size=4), rng.normal(size=4), W, np.linalg.inv(W))
    X = rng.normal(size=(9, 4))
    np.testing.assert_allclose(both.inverse(both.forward(X)), X, atol=1e-12)
    assert isinstance(both, Bijection)


def test_swap_exchanges_the_ways():
    both, X = affine_map(3, 5, 0), np.random.default_rng(1).normal(size=(7, 3))
    np.testing.assert_array_equal(both.swap().inverse(X), both.forward(X))


def test_compose_is_one_map_after_the_other_both_ways():
    first, second = affine_map(3, 5, 0), affine_map(5, 2, 1)
    rng = np.random.default_rng(2)
    X, z = rng.normal(size=(7, 3)), rng.normal(size=(7, 2))
    chain = first.compose(second)
    np.testing.assert_allclose(chain.forward(X), second.forward(first.forward(X)), atol=1e-12)
    np.testing.assert_allclose(chain.inverse(z), first.inverse(second.inverse(z)), atol=1e-12)


def test_compose_is_associative():
    a, b, c = affine_map(3, 5, 0), affine_map(5, 2, 1), affine_map(2, 4, 2)
    X = np.random.default_rng(3).normal(size=(7, 3))
    np.testing.assert_allclose(
        a.compose(b).compose(c).forward(X), a.compose(b.compose(c)).forward(X), atol=1e-12
    )


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_floating_type_is_kept_and_rows_are_untouched(dtype, order):
    both = affine_map(3, 5, 0)
    X = np.asarray(np.random.default_rng(1).normal(size=(7, 3)), dtype=dtype, order=order)
    before = X.copy()
    assert both.forward(X).dtype == dtype
    np.testing.assert_array_equal(X, before)


def test_float32_rows_far_from_zero_are_centred_in_float64():
    centre = np.array([1e6 + 0.02])
    shifted = Affine(centre, np.eye(1), np.zeros(1))(np.array([[1e6]], dtype=np.float32))
    assert shifted[0, 0] == pytest.approx(-0.02, rel=1e-6)
