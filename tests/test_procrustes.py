"""Procrustes against scipy, its optimality, and traps that other projects fell into."""

import numpy as np
import pytest
from conftest import assert_close, noisy_pair
from scipy.linalg import orthogonal_procrustes
from scipy.stats import ortho_group, special_ortho_group

from sklearn_bijection import ProcrustesAligner

DIRECTIONS = ["symmetric", "forward", "backward"]
WIDTHS = [(6, 6), (4, 9), (9, 4), (8, 20), (1, 3)]


def centred(a, weight=None):
    return a - np.average(a, axis=0, weights=weight)


def errors(X, y, R, c):
    """Squared error forwards and back of ``x -> c x R`` on centred rows."""
    return np.square(y - c * X @ R).sum(), np.square(X - y @ R.T / c).sum()


@pytest.mark.parametrize("weighted", [False, True])
def test_rotation_and_forward_scale_are_scipys(pair, weighted):
    X, y = pair
    weight = np.random.default_rng(3).uniform(size=300) if weighted else None
    root = np.sqrt(np.ones(300) if weight is None else weight)[:, np.newaxis]
    Xc, yc = centred(X, weight) * root, centred(y, weight) * root
    R, trace = orthogonal_procrustes(Xc, yc)
    aligner = ProcrustesAligner(direction="forward").fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(aligner.rotation_, R, atol=1e-12)
    assert aligner.scale_ == pytest.approx(trace / np.square(Xc).sum())


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_transform_and_its_inverse_are_the_rotation_and_the_scale(pair, direction):
    X, y = pair
    aligner = ProcrustesAligner(direction=direction).fit(X, y)
    np.testing.assert_allclose(aligner.mean_x_, X.mean(axis=0))
    np.testing.assert_allclose(aligner.mean_y_, y.mean(axis=0))
    turned = (X - aligner.mean_x_) @ aligner.rotation_ * aligner.scale_ + aligner.mean_y_
    back = (y - aligner.mean_y_) @ aligner.rotation_.T / aligner.scale_ + aligner.mean_x_
    assert_close(aligner.transform(X), turned)
    assert_close(aligner.inverse_transform(y), back)


def test_rows_times_the_rotation_are_in_the_space_of_y():
    rng = np.random.default_rng(0)
    Q, X = ortho_group.rvs(5, random_state=0), rng.normal(size=(40, 5))
    assert not np.allclose(Q, Q.T)
    aligner = ProcrustesAligner().fit(X, X @ Q)
    np.testing.assert_allclose(aligner.rotation_, Q, atol=1e-12)
    np.testing.assert_allclose(X @ aligner.rotation_, X @ Q, atol=1e-12)
    assert aligner.scale_ == pytest.approx(1.0)


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("widths", WIDTHS)
def test_inverse_divides_by_the_scale(widths, direction):
    X, y = noisy_pair(100, *widths)
    aligner = ProcrustesAligner(direction=direction).fit(X, 2.0 * y)
    if widths[0] <= widths[1]:
        assert_close(aligner.inverse_transform(aligner.transform(X)), X, 1e-12)
    else:
        assert_close(aligner.transform(aligner.inverse_transform(y)), y, 1e-12)


def test_a_scale_of_two_is_found_and_undone():
    X = np.random.default_rng(0).normal(size=(50, 5))
    y = 2.0 * X @ ortho_group.rvs(5, random_state=0)
    aligner = ProcrustesAligner().fit(X, y)
    assert aligner.scale_ == pytest.approx(2.0)
    assert_close(aligner.inverse_transform(y), X, 1e-12)


def test_an_offset_is_part_of_the_map():
    X = np.random.default_rng(0).normal(size=(50, 5))
    y = X @ ortho_group.rvs(5, random_state=0) + 100.0
    aligner = ProcrustesAligner().fit(X, y)
    np.testing.assert_allclose(aligner.transform(X), y, atol=1e-10)
    np.testing.assert_allclose(aligner.inverse_transform(y), X, atol=1e-10)


@pytest.mark.parametrize("widths", WIDTHS)
def test_the_rotation_is_orthonormal_on_its_narrow_side(widths):
    R = ProcrustesAligner().fit(*noisy_pair(100, *widths)).rotation_
    assert R.shape == widths
    narrow = R @ R.T if widths[0] <= widths[1] else R.T @ R
    np.testing.assert_allclose(narrow, np.eye(min(widths)), atol=1e-12)


@pytest.mark.parametrize("n", [2, 3, 10])
def test_with_fewer_rows_than_columns_it_is_still_a_bijection(n):
    rng = np.random.default_rng(0)
    X, y = noisy_pair(n, 20, 20)
    aligner = ProcrustesAligner().fit(X, y)
    np.testing.assert_allclose(aligner.rotation_ @ aligner.rotation_.T, np.eye(20), atol=1e-12)
    anywhere = rng.normal(size=(50, 20))
    assert_close(aligner.inverse_transform(aligner.transform(anywhere)), anywhere)
    assert_close(aligner.transform(aligner.inverse_transform(anywhere)), anywhere)


@pytest.mark.parametrize("allow_reflection", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_no_rotation_is_nearer(seed, allow_reflection):
    # The best of all matrices would be a reflection here.
    X, y = noisy_pair(50, 5, 5, noise=3.0, seed=seed)
    y *= np.sign(np.linalg.det(orthogonal_procrustes(centred(X), centred(y))[0])) * -(
        1 ** (np.arange(5) == 0)
    )
    aligner = ProcrustesAligner(allow_reflection=allow_reflection, direction="forward").fit(X, y)
    X, y, R, c = centred(X), centred(y), aligner.rotation_, aligner.scale_
    rng = np.random.default_rng(seed)
    others = (ortho_group if allow_reflection else special_ortho_group).rvs(
        5, 100, random_state=rng
    )
    near = [R @ special_ortho_group.rvs(5, random_state=rng) for _ in range(20)]
    least = errors(X, y, R, c)[0]
    assert all(errors(X, y, other, c)[0] > least for other in (*others, *near))
    if not allow_reflection:
        assert np.linalg.det(R) == pytest.approx(1.0)


@pytest.mark.parametrize("widths", [(4, 9), (8, 20), (1, 3)])
def test_into_a_wider_space_no_frame_is_nearer(widths):
    X, y = noisy_pair(60, *widths, noise=2.0)
    aligner = ProcrustesAligner(direction="forward").fit(X, y)
    X, y = centred(X), centred(y)
    least = errors(X, y, aligner.rotation_, aligner.scale_)[0]
    for other in ortho_group.rvs(widths[1], 100, random_state=0):
        assert errors(X, y, other[: widths[0]], aligner.scale_)[0] > least


@pytest.mark.parametrize("factor", [0.5, 0.99, 1.01, 2.0])
@pytest.mark.parametrize("widths", WIDTHS)
def test_no_scale_has_a_smaller_error_in_the_direction_it_is_fitted_for(widths, factor):
    X, y = noisy_pair(100, *widths, noise=2.0)
    for side, direction in enumerate(["forward", "backward"]):
        aligner = ProcrustesAligner(direction=direction).fit(X, y)
        R, c = aligner.rotation_, aligner.scale_
        least = errors(centred(X), centred(y), R, c)[side]
        assert errors(centred(X), centred(y), R, c * factor)[side] > least


@pytest.mark.parametrize("widths", WIDTHS)
def test_the_symmetric_scale_gives_both_sides_the_same_variance(widths):
    X, y = noisy_pair(100, *widths, noise=2.0)
    aligner = ProcrustesAligner().fit(X, y)
    R, c = aligner.rotation_, aligner.scale_
    carried, met = centred(X) @ R, centred(y) @ R.T
    assert c**2 * np.square(carried).sum() == pytest.approx(np.square(met).sum())
    forward, backward = (ProcrustesAligner(direction=d).fit(X, y).scale_ for d in DIRECTIONS[1:])
    assert forward < c < backward
    assert c == pytest.approx(np.sqrt(forward * backward))


def test_without_scale_the_units_are_taken_as_they_are(pair):
    aligner = ProcrustesAligner(scale=False).fit(*pair)
    assert aligner.scale_ == 1.0
    np.testing.assert_allclose(aligner.rotation_, ProcrustesAligner().fit(*pair).rotation_)


def test_distances_keep_their_ratios(pair):
    X, y = pair
    aligner = ProcrustesAligner().fit(X, y)
    moved, came_from = np.diff(aligner.transform(X), axis=0), np.diff(X, axis=0)
    ratios = np.linalg.norm(moved, axis=1) / np.linalg.norm(came_from, axis=1)
    np.testing.assert_allclose(ratios, aligner.scale_)


def test_mostly_zeros_converge_to_the_same_map_every_time():
    rng = np.random.default_rng(0)
    X, y = (rng.normal(size=(300, 310)) * (rng.uniform(size=(300, 310)) < 0.02) for _ in range(2))
    X[:, :40], y[:, 200:] = 0.0, 0.0
    first, second = (ProcrustesAligner().fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(first.rotation_, second.rotation_)
    np.testing.assert_allclose(first.rotation_ @ first.rotation_.T, np.eye(310), atol=1e-10)
    assert_close(first.inverse_transform(first.transform(X)), X)


def without_shared_variance():
    """Pairs whose rotation carries no covariance, so that the least error is that of the mean."""
    design = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    corners = np.vstack([np.eye(2), -np.eye(2)])
    return {
        "orthogonal columns": (design[:, :1], design[:, 1:], True),
        "orthogonal column and plane": (
            design[:, :1],
            np.c_[design[:, 1], np.prod(design, axis=1)],
            True,
        ),
        # Turning one of two equal axes costs all the covariance that the other one brings.
        "a reflection where none is allowed": (corners, corners * [1.0, -1.0], False),
    }


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("name", without_shared_variance())
def test_without_covariance_to_carry_the_map_is_finite_both_ways(name, direction):
    X, y, allow_reflection = without_shared_variance()[name]
    aligner = ProcrustesAligner(direction=direction, allow_reflection=allow_reflection).fit(X, y)
    there, back = aligner.transform(X), aligner.inverse_transform(y)
    assert np.isfinite(there).all()
    assert np.isfinite(back).all()
    if direction == "forward":
        np.testing.assert_allclose(there, 0.0, atol=1e-12)
    elif direction == "backward":
        np.testing.assert_allclose(back, 0.0, atol=1e-12)
    else:
        assert_close(aligner.inverse_transform(there), X)


def test_without_covariance_and_scale_it_is_still_a_rotation():
    for X, y, allow_reflection in without_shared_variance().values():
        aligner = ProcrustesAligner(scale=False, allow_reflection=allow_reflection).fit(X, y)
        assert aligner.scale_ == 1.0
        assert_close(aligner.inverse_transform(aligner.transform(X)), X)
