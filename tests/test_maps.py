"""Laws of the affine map."""

import numpy as np
import pytest

from sklearn_bijection._maps import Affine, AffineMap, Bijection, Monomial


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


def map_of_pairs(p, q, seed):
    """A map that pairs all but one of the coordinates that have a partner to go to."""
    rng = np.random.default_rng(seed)
    index = np.full(q, -1)
    paired = min(p, q) - 1
    index[rng.permutation(q)[:paired]] = rng.permutation(p)[:paired]
    factor = rng.choice([-1.0, 1.0], size=q) * rng.uniform(0.5, 2.0, size=q)
    return AffineMap.of_pairs(rng.normal(size=p), rng.normal(size=q), index, factor)


def dense(way):
    return Affine(way.centre, way.coef, way.offset)


@pytest.mark.parametrize("widths", [(4, 4), (3, 5), (5, 3), (1, 1)])
def test_a_map_of_pairs_is_the_affine_map_of_its_matrices(widths):
    both, other = map_of_pairs(*widths, 0), affine_map(widths[1], 2, 1)
    X, y = (np.random.default_rng(2).normal(size=(7, width)) for width in widths)
    np.testing.assert_allclose(both.forward(X), dense(both.there)(X), atol=1e-14)
    np.testing.assert_allclose(both.inverse(y), dense(both.back)(y), atol=1e-14)
    np.testing.assert_array_equal(both.swap().forward(y), both.inverse(y))
    np.testing.assert_allclose(
        both.compose(other).forward(X), other.forward(both.forward(X)), atol=1e-12
    )
    first, z = affine_map(2, widths[0], 1), np.random.default_rng(3).normal(size=(7, 2))
    np.testing.assert_allclose(
        first.compose(both).forward(z), both.forward(first.forward(z)), atol=1e-12
    )
    assert np.count_nonzero(both.there.coef) == min(widths) - 1


def test_a_map_of_pairs_divides_on_the_way_back():
    rng = np.random.default_rng(0)
    zero, factor = np.zeros(500), np.exp(rng.normal(size=500))
    both, X = (
        AffineMap.of_pairs(zero, zero, rng.permutation(500), factor),
        rng.normal(size=(9, 500)),
    )
    back = both.inverse(both.forward(X))
    # The product and the quotient are each rounded once.
    np.testing.assert_allclose(back, X, rtol=np.finfo(float).eps, atol=0)


def test_a_coordinate_without_a_partner_is_its_mean_whatever_the_row():
    one = Monomial(np.full(2, -1e308), np.array([1, -1]), np.ones(2), np.array([3.0, 0.1]))
    # What is left of the last column overflows.
    with np.errstate(over="ignore"):
        assert one(np.full((1, 2), 1e308))[0, 1] == 0.1


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_map_of_pairs_keeps_single_precision_and_its_rows(order):
    both = map_of_pairs(4, 4, 0)
    X = np.asarray(np.random.default_rng(1).normal(size=(7, 4)), dtype=np.float32, order=order)
    before = X.copy()
    assert both.forward(X).dtype == np.float32
    np.testing.assert_array_equal(X, before)
