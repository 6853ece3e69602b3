"""What the similarity measures do not see, and what they do: every invariance as a law."""

from itertools import combinations

import numpy as np
import pytest
from _similarity import CASES, by_measure, is_distance, measure, public, related_pair, rotation
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_bijection.metrics import (
    angular_shape_distance,
    linear_cka,
    mean_cca,
    mutual_knn,
    orthogonal_procrustes_similarity,
    procrustes_distance,
    relu_procrustes,
)

WAYS = {"public": public, "measure": by_measure}


@pytest.fixture(params=WAYS)
def way(request):
    """From moments, as the public functions do with so many rows, and from what is prepared of each."""
    return WAYS[request.param]


@pytest.fixture(params=CASES)
def case(request):
    return request.param


def constants(X, low=0.5, high=2.0, seed=5):
    return np.random.default_rng(seed).uniform(low, high, X.shape[1])


#: Ways to change a space. A measure that allows several allows them together.
CHANGES = {
    "shift": lambda X: X + 3 * constants(X),
    "scale": lambda X: 2.5 * X,
    "permutation": lambda X: X[:, ::-1],
    "signs": lambda X: X * (-1.0) ** np.arange(X.shape[1]),
    "rotation": lambda X: X @ rotation(X.shape[1]),
    "column scales": lambda X: X * constants(X),
    "linear map": lambda X: X @ (rotation(X.shape[1]) * constants(X)) @ rotation(X.shape[1], 1),
    "row scales": lambda X: X * constants(X.T)[:, np.newaxis],
}
RIGID = {"shift", "permutation", "signs", "rotation"}
SHAPE = RIGID | {"scale"}
LINEAR = SHAPE | {"column scales", "linear map"}
UNITS = {"permutation", "scale", "column scales"}
DIRECTIONS = {"permutation", "scale", "signs", "rotation", "row scales"}

#: What may be done to X, and to Y where that is not the same.
ALLOWED = {
    "linear_cka": SHAPE,
    "linear_cka debiased": SHAPE,
    "rbf_cka": SHAPE,
    "rbf_cka debiased": SHAPE,
    "mean_cca": LINEAR,
    "svcca": SHAPE,
    "pwcca": ({"shift", "scale", "permutation", "signs"}, LINEAR),
    "orthogonal_procrustes_similarity": SHAPE,
    "procrustes_distance": SHAPE,
    "procrustes_distance squared": SHAPE,
    "angular_shape_distance": SHAPE,
    "angular_shape_distance 0": LINEAR,
    "angular_shape_distance 0.4": RIGID,
    "rsa correlation": {"scale", "permutation", "row scales"},
    "rsa cosine": DIRECTIONS,
    "rsa euclidean": SHAPE,
    "mutual_knn cosine": DIRECTIONS,
    "mutual_knn correlation": {"scale", "permutation", "row scales"},
    "mutual_knn euclidean": SHAPE,
    "relu_procrustes": UNITS,
    "relu_cka": UNITS | {"shift", "signs"},
    "relu_cka plain": UNITS | {"shift", "signs"},
    "affine_alignment_error": (LINEAR, SHAPE),
    "affine_alignment_error backward": (SHAPE, LINEAR),
    "affine_alignment_error symmetric": SHAPE,
}
#: Of its two errors one may hide what happens to the other.
LARGER_OF_TWO = "affine_alignment_error symmetric"


def allowed(case, side):
    found = ALLOWED[case]
    return found[side] if isinstance(found, tuple) else found


@pytest.mark.parametrize("change", CHANGES)
def test_what_a_measure_allows_leaves_it_and_all_else_changes_it(case, way, change):
    spaces = related_pair()
    before = way(case)(*spaces)
    for side, name in enumerate("XY"):
        changed = list(spaces)
        changed[side] = CHANGES[change](spaces[side])
        after = way(case)(*changed)
        if change in allowed(case, side):
            assert after == pytest.approx(before, rel=0, abs=1e-10), name
        elif case != LARGER_OF_TWO:
            assert abs(after - before) > 1e-4, name


def test_a_space_is_like_itself_and_like_what_the_measure_takes_for_it(case, way):
    X, _ = related_pair()
    both = allowed(case, 0) & allowed(case, 1)
    changed = X
    for change in sorted(both):
        changed = CHANGES[change](changed)
    for other in (X, changed):
        if is_distance(case):
            # The root of a difference from 1, or the arccosine of nearly 1.
            assert 0 <= way(case)(X, other) < 1e-7
        else:
            assert way(case)(X, other) == pytest.approx(1, rel=0, abs=1e-12)


def test_the_order_of_the_spaces(case, way):
    X, Y = related_pair()
    there, back = way(case)(X, Y), way(case)(Y, X)
    if measure(case).symmetric:
        assert there == pytest.approx(back, rel=0, abs=1e-12)
    else:
        assert abs(there - back) > 1e-3


def test_the_order_of_the_rows_does_not_matter(case, way):
    X, Y = related_pair()
    order = np.random.default_rng(0).permutation(len(X))
    assert way(case)(X[order], Y[order]) == pytest.approx(way(case)(X, Y), rel=0, abs=1e-12)


def test_unpaired_rows_are_less_alike_than_paired_ones(case, way):
    X, _ = related_pair()
    Y = X[:, ::-1] + np.random.default_rng(1).normal(size=X.shape)
    paired, unpaired = way(case)(X, Y), way(case)(X, np.roll(Y, 1, axis=0))
    assert paired < unpaired - 0.03 if is_distance(case) else paired > unpaired + 0.03


@pytest.mark.parametrize("seed", range(5))
def test_values_keep_to_their_range(case, way, seed):
    rng = np.random.default_rng(seed)
    width_x, width_y = rng.integers(2, 6, 2)
    X, Y = rng.normal(size=(40, width_x)) ** 3, rng.exponential(size=(40, width_y))
    low = -1 if "debiased" in case or case.startswith(("rsa", "relu_cka")) else 0
    high = {"angular_shape_distance": np.pi / 2, "procrustes_distance": np.sqrt(2)}
    top = 2 if "squared" in case else high.get(case.split()[0], 1)
    assert low <= way(case)(X, Y) <= top


def test_debiased_values_may_be_negative():
    rng = np.random.default_rng(0)
    for case in ("linear_cka debiased", "rbf_cka debiased", "relu_cka"):
        for way in WAYS.values():
            values = [way(case)(*rng.normal(size=(2, 30, 4))) for _ in range(20)]
            assert min(values) < 0 < max(values)
            assert abs(np.mean(values)) < 0.03


METRICS = {
    "angular": angular_shape_distance,
    "angular 0": lambda X, Y: angular_shape_distance(X, Y, alpha=0),
    "angular 0.3": lambda X, Y: angular_shape_distance(X, Y, alpha=0.3),
    "procrustes": procrustes_distance,
    "relu": lambda X, Y: 1 - relu_procrustes(X, Y),
    "linear_cka": lambda X, Y: np.arccos(linear_cka(X, Y)),
}


@pytest.mark.parametrize("name", METRICS)
@given(seed=st.integers(0, 10**6), widths=st.tuples(*[st.integers(1, 4)] * 3), near=st.floats(0, 1))
@settings(max_examples=25, deadline=None, derandomize=True)
def test_the_direct_way_is_never_longer(name, seed, widths, near):
    rng = np.random.default_rng(seed)
    common = rng.normal(size=(30, 4))
    spaces = [common[:, :width] + near * rng.normal(size=(30, width)) for width in widths]
    a, b, c = (METRICS[name](*pair) for pair in combinations(spaces, 2))
    assert max(a, b, c) <= a + b + c - max(a, b, c) + 1e-7


def test_the_square_of_a_distance_breaks_the_triangle_that_the_distance_keeps():
    angle = np.linspace(0, 2 * np.pi, 40, endpoint=False)
    basis = np.column_stack([np.cos(angle), np.sin(angle), np.cos(2 * angle)])
    a, c = basis[:, [0]], basis[:, [2]]
    b = a + c
    ab, bc, ac = (procrustes_distance(*pair, squared=True) for pair in ((a, b), (b, c), (a, c)))
    assert ac > ab + bc + 0.5


@pytest.mark.parametrize("alpha", [0, 0.5, 1])
def test_a_shape_distance_needs_the_whole_of_both_spaces(alpha):
    X, _ = related_pair()
    assert angular_shape_distance(X, X[:, :3], alpha=alpha) > 0.1


def test_the_shape_measures_tell_one_cosine():
    X, Y = related_pair()
    cosine = orthogonal_procrustes_similarity(X, Y)
    assert np.cos(angular_shape_distance(X, Y)) == pytest.approx(cosine, abs=1e-14)
    assert procrustes_distance(X, Y, squared=True) == pytest.approx(2 - 2 * cosine, abs=1e-14)
    assert procrustes_distance(X, Y) ** 2 == pytest.approx(2 - 2 * cosine, abs=1e-14)
    X, Y = related_pair(width_y=6)
    whitened = angular_shape_distance(X, Y, alpha=0)
    assert np.cos(whitened) == pytest.approx(mean_cca(X, Y), abs=1e-14)


def test_rbf_cka_goes_from_all_alike_to_linear_with_its_bandwidth():
    X, Y = related_pair()
    rbf = public("rbf_cka")
    assert rbf(X, Y, bandwidth=0.01) == pytest.approx(1, abs=1e-6)
    assert rbf(X, Y, bandwidth=1e3) == pytest.approx(linear_cka(X, Y), abs=1e-5)


def test_all_neighbours_are_shared_when_all_rows_are_neighbours(way):
    X, Y = related_pair(20)
    assert mutual_knn(X, Y, n_neighbors=19) == pytest.approx(1, abs=1e-12)
