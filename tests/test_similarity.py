"""The similarity measures against their published definitions, their messages, and awkward data."""

import tracemalloc
import warnings
from itertools import permutations

import numpy as np
import pytest
import scipy.linalg
import scipy.spatial
import scipy.stats
from _similarity import CASES, by_measure, measure, public, related_pair, rotation
from sklearn.neighbors import NearestNeighbors

from sklearn_bijection.metrics import (
    _similarity,
    affine_alignment_error,
    angular_shape_distance,
    linear_cka,
    max_row_error,
    mean_cca,
    mutual_knn,
    orthogonal_procrustes_similarity,
    procrustes_distance,
    pwcca,
    rbf_cka,
    relu_cka,
    relu_procrustes,
    rsa,
    svcca,
)
from sklearn_bijection.metrics._similarity._measure import settled

FEW = pytest.mark.filterwarnings("ignore:n_samples=.* is too few:UserWarning")


# What is published, in other algebra than the package's.


def centred(X):
    return X - X.mean(axis=0)


def hsic(K, L):
    """Biased, with the centring matrix."""
    n = len(K)
    H = np.eye(n) - np.ones((n, n)) / n
    return np.trace(K @ H @ L @ H)


def unbiased_hsic(K, L):
    """The estimator of Song et al., with the diagonals set to zero."""
    n = len(K)
    K, L = (M * (1 - np.eye(n)) for M in (K, L))
    one = np.ones(n)
    return (
        np.trace(K @ L)
        + (one @ K @ one) * (one @ L @ one) / ((n - 1) * (n - 2))
        - 2 / (n - 2) * (one @ K @ L @ one)
    ) / (n * (n - 3))


def alignment(K, L, estimate):
    return estimate(K, L) / np.sqrt(estimate(K, K) * estimate(L, L))


def linear_kernels(X, Y):
    return X @ X.T, Y @ Y.T


def gaussian_kernel(X, bandwidth):
    distances = scipy.spatial.distance.pdist(X)
    sigma = bandwidth * np.median(distances)
    return np.exp(-(scipy.spatial.distance.squareform(distances) ** 2) / (2 * sigma**2))


def rbf_kernels(X, Y, bandwidth):
    return gaussian_kernel(X, bandwidth), gaussian_kernel(Y, bandwidth)


def canonical(X, Y):
    """Correlations, and the canonical directions of X over the samples, by QR."""
    bases = [np.linalg.qr(centred(Z))[0] for Z in (X, Y)]
    U, rho, _ = np.linalg.svd(bases[0].T @ bases[1], full_matrices=False)
    return rho, bases[0] @ U


def leading(X, share):
    U, s, _ = np.linalg.svd(centred(X), full_matrices=False)
    kept = np.argmax(np.cumsum(s**2) / np.sum(s**2) >= share) + 1
    return U[:, :kept] * s[:kept]


def projection_weighted(X, Y):
    rho, H = canonical(X, Y)
    weights = np.abs(H.T @ centred(X)).sum(axis=1)
    return np.sum(weights * rho) / weights.sum()


def padded(X, Y):
    width = max(X.shape[1], Y.shape[1])
    return tuple(np.pad(Z, ((0, 0), (0, width - Z.shape[1]))) for Z in (X, Y))


def best_rotation_cosine(A, B):
    """Of arrays as they are, by the rotation itself."""
    A, B = padded(A, B)
    R, _ = scipy.linalg.orthogonal_procrustes(A, B)
    return np.sum((A @ R) * B) / np.linalg.norm(A) / np.linalg.norm(B)


def partly_whitened(X, alpha):
    _, s, Vt = np.linalg.svd(centred(X), full_matrices=False)
    root = (Vt.T / s) @ Vt
    return centred(X) @ (alpha * np.eye(X.shape[1]) + (1 - alpha) * root)


def dissimilarity_correlation(X, Y, metric, correlate):
    first, second = (scipy.spatial.distance.pdist(Z, metric) for Z in (X, Y))
    return correlate(first, second)[0]


def shared_neighbours(X, Y, n_neighbors, metric):
    found = [
        NearestNeighbors(n_neighbors=n_neighbors, metric=metric, algorithm="brute")
        .fit(Z)
        .kneighbors(return_distance=False)
        for Z in (X, Y)
    ]
    shared = [len(set(a) & set(b)) for a, b in zip(*found, strict=True)]
    return np.mean(shared) / n_neighbors


def by_all_matchings(X, Y):
    A, B = padded(*(Z / np.linalg.norm(Z, axis=0) for Z in (X, Y)))
    width = A.shape[1]
    nearest = min(np.linalg.norm(A[:, list(p)] - B) for p in permutations(range(width)))
    return 1 - nearest / (2 * np.sqrt(width))


def max_kernels(X, Y):
    units = [centred(Z) / np.linalg.norm(centred(Z), axis=0) for Z in (X, Y)]
    return tuple((Z[:, None, :] * Z[None, :, :]).max(axis=2) for Z in units)


def least_squares_error(X, Y):
    design = np.column_stack([X, np.ones(len(X))])
    coef = np.linalg.lstsq(design, Y, rcond=None)[0]
    return np.linalg.norm(Y - design @ coef) / np.linalg.norm(centred(Y))


def disparity(X, Y):
    """What scipy leaves after the best rotation and scale: 1 - s²."""
    return scipy.spatial.procrustes(*padded(X, Y))[2]


PUBLISHED = {
    "linear_cka": lambda X, Y: alignment(*linear_kernels(X, Y), hsic),
    "linear_cka debiased": lambda X, Y: alignment(*linear_kernels(X, Y), unbiased_hsic),
    "rbf_cka": lambda X, Y: alignment(*rbf_kernels(X, Y, 1.0), hsic),
    "rbf_cka debiased": lambda X, Y: alignment(*rbf_kernels(X, Y, 0.7), unbiased_hsic),
    "mean_cca": lambda X, Y: canonical(X, Y)[0].mean(),
    "svcca": lambda X, Y: canonical(leading(X, 0.9), leading(Y, 0.9))[0].mean(),
    "pwcca": projection_weighted,
    "orthogonal_procrustes_similarity": lambda X, Y: np.sqrt(1 - disparity(X, Y)),
    "procrustes_distance": lambda X, Y: np.sqrt(2 - 2 * np.sqrt(1 - disparity(X, Y))),
    "procrustes_distance squared": lambda X, Y: (
        2 - 2 * best_rotation_cosine(centred(X), centred(Y))
    ),
    "angular_shape_distance": lambda X, Y: np.arccos(best_rotation_cosine(centred(X), centred(Y))),
    "angular_shape_distance 0": lambda X, Y: np.arccos(
        best_rotation_cosine(partly_whitened(X, 0), partly_whitened(Y, 0))
    ),
    "angular_shape_distance 0.4": lambda X, Y: np.arccos(
        best_rotation_cosine(partly_whitened(X, 0.4), partly_whitened(Y, 0.4))
    ),
    "rsa correlation": lambda X, Y: dissimilarity_correlation(
        X, Y, "correlation", scipy.stats.spearmanr
    ),
    "rsa cosine": lambda X, Y: dissimilarity_correlation(X, Y, "cosine", scipy.stats.pearsonr),
    "rsa euclidean": lambda X, Y: dissimilarity_correlation(
        X, Y, "euclidean", scipy.stats.spearmanr
    ),
    "mutual_knn cosine": lambda X, Y: shared_neighbours(X, Y, 7, "cosine"),
    "mutual_knn correlation": lambda X, Y: shared_neighbours(X, Y, 7, "correlation"),
    "mutual_knn euclidean": lambda X, Y: shared_neighbours(X, Y, 7, "euclidean"),
    "relu_procrustes": by_all_matchings,
    "relu_cka": lambda X, Y: alignment(*max_kernels(X, Y), unbiased_hsic),
    "relu_cka plain": lambda X, Y: alignment(*max_kernels(X, Y), hsic),
    "affine_alignment_error": least_squares_error,
    "affine_alignment_error backward": lambda X, Y: least_squares_error(Y, X),
    "affine_alignment_error symmetric": lambda X, Y: max(
        least_squares_error(X, Y), least_squares_error(Y, X)
    ),
}
SIZES = {"many rows": (90, 4, 3), "few rows": (9, 5, 6), "one column": (30, 1, 3)}


@FEW
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("case", CASES)
def test_values_are_those_of_the_published_definition(case, size):
    if size == "one column" and ("correlation" in case or "cosine" in case):
        pytest.skip("rows of one number have no correlations, and two cosines only")
    if size == "few rows" and case == "pwcca":
        pytest.skip("correlations that must be 1 tie, and leave the weights open")
    X, Y = related_pair(*SIZES[size])
    expected = PUBLISHED[case](X, Y)
    assert public(case)(X, Y) == pytest.approx(expected, rel=0, abs=1e-10)
    assert by_measure(case)(X, Y) == pytest.approx(expected, rel=0, abs=1e-10)


def test_rsa_by_the_root_of_the_distances_and_not_their_square():
    X, Y = related_pair()
    expected = dissimilarity_correlation(X, Y, "euclidean", scipy.stats.pearsonr)
    assert rsa(X, Y, distance="euclidean", compare="pearson") == pytest.approx(expected, abs=1e-12)


def test_the_affine_error_is_below_the_longest_residual_of_any_affine_map():
    X, Y = related_pair()
    design = np.column_stack([X, np.ones(len(X))])
    fitted = design @ np.linalg.lstsq(design, Y, rcond=None)[0]
    error = affine_alignment_error(X, Y)
    rng = np.random.default_rng(0)
    for noise in (0, 0.01, 0.1, 1):
        image = fitted + noise * design @ rng.normal(size=(design.shape[1], Y.shape[1]))
        assert error < max_row_error(Y, image)


def test_what_is_exactly_affine_has_no_error_at_all():
    X, _ = related_pair(200, 6, 5)
    for n_samples in (200, 10):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            Y = X[:n_samples] @ np.random.default_rng(0).normal(size=(6, 3)) + 7
            assert affine_alignment_error(X[:n_samples], Y) < 1e-13


# Two parts and one function.


def test_every_measure_is_registered_under_its_public_name():
    names = {case.split()[0] for case in CASES}
    assert set(_similarity.MEASURES) == names <= set(_similarity.__all__)
    for case in CASES:
        assert measure(case).name == case.split()[0]
    one_sided = {case for case in CASES if not measure(case).symmetric}
    assert one_sided == {"pwcca", "affine_alignment_error", "affine_alignment_error backward"}


@pytest.mark.parametrize(
    "case", [case for case in CASES if isinstance(measure(case), _similarity.Cosine)]
)
def test_vectors_have_unit_length_and_belong_to_the_caller(case):
    X, Y = related_pair()
    first, second = (measure(case).vector(space) for space in (X, Y))
    assert first.dtype == np.float64 and first.shape == second.shape and first.ndim == 1
    assert np.linalg.norm(first) == pytest.approx(1, abs=1e-13)
    assert first @ second == pytest.approx(public(case)(X, Y), rel=0, abs=1e-10)


@pytest.mark.parametrize("case", CASES)
def test_arrays_of_any_kind_and_untouched(case):
    X, Y = (np.round(10 * space) for space in related_pair(40))
    X[:, 0] += 30
    expected = public(case)(X, Y)
    before = X.copy(), Y.copy()
    for first, second in (
        (X.tolist(), Y.tolist()),
        (X.astype(int), Y.astype(np.float16)),
        (np.asfortranarray(X), Y[:, ::-1][:, ::-1]),
    ):
        assert public(case)(first, second) == pytest.approx(expected, rel=0, abs=1e-12)
    assert isinstance(expected, float)
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(Y, before[1])


@pytest.mark.parametrize("case", [c for c in CASES if "cosine" not in c and "correlation" not in c])
def test_one_dimension_is_one_column(case):
    X, Y = related_pair()
    assert public(case)(X[:, 0], Y) == public(case)(X[:, [0]], Y)


# Awkward data.


#: Measures whose streams the rank and the units of the data could lead astray.
LINEAR_ALGEBRA = [
    case
    for case in CASES
    if case.startswith(("linear", "mean", "svcca", "pwcca", "orth", "procr", "angular", "affine"))
]


@pytest.mark.parametrize("case", LINEAR_ALGEBRA)
@pytest.mark.parametrize("way", [public, by_measure])
def test_dead_and_repeated_directions_are_not_noise(case, way):
    X, Y = related_pair()
    expected = way(case)(X, Y)
    constant = np.full((len(X), 1), 7.3)
    dead = np.column_stack([constant, X, 0 * constant, constant])
    assert way(case)(dead, Y) == pytest.approx(expected, rel=0, abs=1e-10)
    # A rotation into a wider space: all columns live, in a hyperplane.
    wide = np.pad(X, ((0, 0), (0, 2))) @ rotation(X.shape[1] + 2)
    if not case.startswith("pwcca"):
        assert way(case)(wide, Y) == pytest.approx(expected, rel=0, abs=1e-10)
    assert way(case)(X + 1e4, Y - 1e4) == pytest.approx(expected, rel=0, abs=1e-9)


@pytest.mark.parametrize("case", LINEAR_ALGEBRA)
@pytest.mark.parametrize("way", [public, by_measure])
@pytest.mark.parametrize("factors", [(1e-6, 1e6), (1e-200, 1e150)])
def test_units_do_not_matter(case, way, factors):
    if case == "angular_shape_distance 0.4":
        pytest.skip("its mixture has the units of the data")
    X, Y = related_pair()
    found = way(case)(X * factors[0], Y * factors[1])
    assert found == pytest.approx(way(case)(X, Y), rel=0, abs=1e-10)


@pytest.mark.parametrize("case", LINEAR_ALGEBRA)
def test_ill_conditioned_spaces_have_one_value_by_either_way(case):
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(300, 8)) * np.geomspace(1, 1e-6, 8)) @ rotation(8)
    Y = (X @ rotation(8).T)[:, :6] * np.geomspace(1, 1e6, 6) + 0.3 * rng.normal(size=(300, 6))
    found, expected = public(case)(X, Y), by_measure(case)(X, Y)
    assert found == pytest.approx(expected, rel=0, abs=1e-10)


@pytest.mark.parametrize("case", LINEAR_ALGEBRA)
def test_float32_says_what_its_numbers_say(case):
    X, Y = (space.astype(np.float32) for space in related_pair())
    wide = [space.astype(np.float64) for space in (X, Y)]
    assert public(case)(X, Y) == pytest.approx(public(case)(*wide), rel=0, abs=1e-10)


def test_rounding_in_float32_is_not_a_direction():
    X, Y = related_pair(400)
    shifted = (X + 1e4).astype(np.float32)
    hyperplane = np.column_stack([shifted, shifted[:, 0] + shifted[:, 1]])
    assert mean_cca(hyperplane, Y) == pytest.approx(mean_cca(shifted, Y), abs=1e-3)


@pytest.mark.parametrize("case", LINEAR_ALGEBRA)
def test_memory_maps_are_read_in_blocks(case, tmp_path):
    X, Y = (space.astype(np.float32) for space in related_pair(40_000))
    for name, space in (("X", X), ("Y", Y)):
        np.save(tmp_path / name, space)
    mapped = [np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in "XY"]
    expected = public(case)(X, Y)
    tracemalloc.start()
    try:
        assert public(case)(*mapped) == pytest.approx(expected, rel=0, abs=1e-13)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < X.nbytes


def test_equal_rows_share_places_among_the_neighbours():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(10, 3))
    X = np.repeat(rows, 4, axis=0)
    Y = rng.normal(size=(40, 3))
    # Each row has three twins, which are all of its nearest.
    assert mutual_knn(X, X, n_neighbors=3) == pytest.approx(1)
    # Which two of the three are taken is a draw: both spaces agree on 4/3 of 2 on average.
    assert mutual_knn(X, X, n_neighbors=2) == pytest.approx(2 / 3)
    jittered = X + 1e-9 * rng.normal(size=X.shape)
    drawn = [
        mutual_knn(jittered + 1e-7 * rng.normal(size=X.shape), Y, n_neighbors=2) for _ in range(300)
    ]
    assert mutual_knn(X, Y, n_neighbors=2) == pytest.approx(np.mean(drawn), abs=0.01)


def test_a_space_of_two_values_has_no_more_neighbours_in_common_than_chance():
    rng = np.random.default_rng(0)
    X = np.where(rng.permutation(60) < 30, 1.0, -1.0)
    values = [mutual_knn(X, rng.normal(size=(60, 4))) for _ in range(40)]
    assert np.mean(values) == pytest.approx(10 / 59, abs=0.01)


def test_equal_distances_share_a_rank():
    X = np.repeat(np.random.default_rng(0).normal(size=(5, 3)), 3, axis=0) * [1, 2, 3]
    Y = np.random.default_rng(1).normal(size=(15, 4))
    expected = PUBLISHED["rsa euclidean"](X, Y)
    assert rsa(X, Y, distance="euclidean") == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("distance", ["euclidean", "cosine", "correlation"])
def test_neighbours_that_are_as_near_but_for_rounding_tie(distance):
    X = np.random.default_rng(0).integers(0, 2, (100, 16)).astype(float)
    expected = mutual_knn(X, X, distance=distance)
    assert expected < 1
    assert mutual_knn(X, 3.3 * X[:, ::-1], distance=distance) == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("unit", [1e-300, 1e300])
def test_a_mixture_with_whitening_in_any_unit(unit):
    X, Y = related_pair()
    # In large units the mixture is X itself, in small ones X whitened.
    alpha = 1 if unit > 1 else 0
    expected = angular_shape_distance(X, Y, alpha=alpha)
    found = angular_shape_distance(X * unit, Y * unit, alpha=0.5)
    assert found == pytest.approx(expected, abs=1e-10)


def test_no_more_directions_than_the_rank_are_warned_of():
    rng = np.random.default_rng(0)
    X, Y = (np.tile(rng.normal(size=(150, 2)), 50) for _ in range(2))
    expected = orthogonal_procrustes_similarity(X[:, :2], Y[:, :2])
    assert orthogonal_procrustes_similarity(X, Y) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("size", [1e7, 1e9])
def test_blocks_of_debiased_gram_matrices_add_up(size, monkeypatch):
    X, Y = related_pair(90)
    X[7] *= size
    whole = linear_cka(X, Y, debiased=True)
    monkeypatch.setattr(_similarity._debiased, "_BLOCK_ROWS", 40)
    assert linear_cka(X, Y, debiased=True) == pytest.approx(whole, rel=0, abs=1e-6)
    assert linear_cka(X, X, debiased=True) == 1


def test_kernels_of_any_width_debias_what_little_is_left():
    X = np.random.default_rng(0).normal(size=(30, 4))
    # Only the two nearest rows are similar at all, by far less than the rounding of 1.
    assert rbf_cka(X, X, bandwidth=0.02, debiased=True) == pytest.approx(1)
    for bandwidth in (1e-200, 1e-120):
        assert rbf_cka(X, X[:, :2], bandwidth=bandwidth) == pytest.approx(1)


def test_units_without_a_life_match_each_other():
    X = np.maximum(related_pair()[0], 0)
    dead = np.zeros((len(X), 2))
    assert relu_procrustes(np.hstack([dead, X]), np.hstack([X, dead])) == 1
    assert relu_cka(np.hstack([dead, X]), np.hstack([X, dead])) == pytest.approx(1)
    assert relu_procrustes(X, np.hstack([X, dead])) == pytest.approx(1)


# Too few rows.


WARNS = [
    case for case in CASES if isinstance(measure(case), _similarity.Prepared) and "relu" not in case
]


@pytest.mark.parametrize("case", WARNS)
def test_too_few_rows_are_told_at_the_line_that_asked(case):
    X, Y = np.random.default_rng(0).normal(size=(2, 10, 40))
    with pytest.warns(UserWarning, match=r"^n_samples=10 is too few .*rank") as caught:
        public(case)(X, Y)
    assert caught[0].filename == __file__


@pytest.mark.parametrize("case", WARNS)
def test_one_wide_space_is_enough_where_rows_are_many(case):
    X, Y = related_pair(40, 2, 30)
    rotations = case.startswith(("orth", "proc", "ang"))
    if rotations or case in ("affine_alignment_error", "svcca"):
        public(case)(X, Y)
    else:
        with pytest.warns(UserWarning, match="too few"):
            public(case)(X, Y)


def test_what_the_value_would_be_worth():
    X, Y = related_pair(12, 8, 9)
    few = {
        mean_cca: r"6 of the 8 canonical correlations are 1 .* mean correlation of up to 0\.90",
        orthogonal_procrustes_similarity: r"a similarity of up to 0\.85",
        procrustes_distance: r"a distance of as little as 0\.54",
        angular_shape_distance: r"a distance of as little as 0\.55",
        affine_alignment_error: r"rank 8: .* an error of 0\.52 only",
    }
    for function, text in few.items():
        with pytest.warns(UserWarning, match=text):
            function(X, Y)
    with pytest.warns(UserWarning, match="rank 9"):
        affine_alignment_error(X, Y, direction="backward")


@FEW
def test_chance_is_what_the_warnings_say():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(6, 2)), rng.normal(size=(6, 3))
    orders = [list(order) for order in permutations(range(6))]
    correlations = [canonical(X, Y[order])[0] for order in orders]
    assert np.mean(np.square(correlations)) == pytest.approx(3 / 5)
    missed = [least_squares_error(X, Y[order]) ** 2 for order in orders]
    assert np.mean(missed) == pytest.approx(1 - 2 / 5)
    sizes = np.linalg.norm(centred(X)) * np.linalg.norm(centred(Y))
    overlaps = [np.linalg.norm(centred(X).T @ centred(Y[order])) / sizes for order in orders]
    assert np.mean(np.square(overlaps)) == pytest.approx(1 / 5)
    shapes = [orthogonal_procrustes_similarity(X, Y[order]) for order in orders[::20]]
    assert np.mean(shapes) < np.sqrt(2 / 5)


@FEW
def test_with_fewer_rows_than_columns_they_say_nothing():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(20, 60)), rng.normal(size=(20, 60))
    for function in (mean_cca, pwcca):
        assert function(X, Y) == pytest.approx(1, abs=1e-12)
    assert angular_shape_distance(X, Y, alpha=0) < 1e-6
    assert affine_alignment_error(X, Y) < 1e-10
    assert abs(linear_cka(X, Y, debiased=True)) < 0.2 < 0.7 < linear_cka(X, Y)


# Messages.


@pytest.mark.parametrize("case", CASES)
def test_bad_arrays_are_named(case):
    X, Y = related_pair(40)
    function = public(case)
    with pytest.raises(ValueError, match=r"X has 40 rows but Y has 39\. .* drop the rows"):
        function(X, Y[1:])
    with pytest.raises(ValueError, match=r"X has shape \(2, 40, 6\), but a representation is"):
        function(np.stack([X, X]), Y)
    for value, kind in ((np.nan, "NaN"), (np.inf, "infinity")):
        bad = Y.copy()
        bad[3, 2] = value
        with pytest.raises(
            ValueError,
            match=rf"Input Y contains {kind} \(first at row 3, column 2.* with their partners\.",
        ):
            function(X, bad)
    constant = np.full((40, 3), 1 / 3)
    for space, message in (
        ((constant, Y), r"X has no variance: its 40 rows are all equal\. Similarity needs rows"),
        ((X, constant), r"Y has no variance: its 40 rows are all equal"),
    ):
        if "correlation" not in case:
            with pytest.raises(ValueError, match=message):
                function(*space)
    with pytest.raises(ValueError, match="minimum of 2 is required"):
        function(X[:1], Y[:1])


X40, Y40 = related_pair(40)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: linear_cka(X40[:3, :1], Y40[:3, :1], debiased=True), "X has 3 rows, but debiased"),
        (lambda: linear_cka(X40[:3], Y40[:3], debiased=True), "X has 3 rows, .* at least 4"),
        (lambda: linear_cka(X40, Y40, debiased="no"), "debiased='no' is not True or False"),
        (lambda: rbf_cka(X40, Y40, debiased=1), "debiased=1 is not True or False"),
        (lambda: relu_cka(X40, Y40, debiased=None), "debiased=None is not True or False"),
        (lambda: procrustes_distance(X40, Y40, squared="no"), "squared='no' is not True or False"),
        (
            lambda: linear_cka(X40, np.arange(40) == 7, debiased=True),
            "Y leaves nothing to compare: without its bias the Gram matrix is zero",
        ),
        (
            lambda: rbf_cka(X40, Y40, bandwidth=1e-200, debiased=True),
            "X leaves nothing to compare: with bandwidth=1e-200 no two rows are similar",
        ),
        (lambda: relu_cka(X40[:3], Y40[:3]), "X has 3 rows, .* or debiased=False"),
        (lambda: rbf_cka(X40, Y40, bandwidth=0), "bandwidth=0 is not a finite number above 0"),
        (lambda: rbf_cka(X40, Y40, bandwidth=np.inf), "bandwidth=inf is not a finite"),
        (lambda: rbf_cka(X40, Y40, bandwidth="auto"), "bandwidth='auto' is not a finite"),
        (
            lambda: rbf_cka(X40, Y40, bandwidth=1e-3, debiased=True),
            "X leaves nothing to compare: with bandwidth=0.001 no two rows are similar",
        ),
        (
            lambda: rbf_cka(X40, np.arange(40) == 7),
            "Y has a median distance of 0: more than half of its pairs .* repeated rows",
        ),
        (lambda: svcca(X40, Y40, explained_variance=0), "explained_variance=0 is not a share"),
        (lambda: svcca(X40, Y40, explained_variance=1.1), "explained_variance=1.1 is not a share"),
        (lambda: angular_shape_distance(X40, Y40, alpha=-0.1), "alpha=-0.1 is not a number from 0"),
        (lambda: angular_shape_distance(X40, Y40, alpha=True), "alpha=True is not a number from 0"),
        (
            lambda: rsa(X40, Y40, distance="l1"),
            r"distance='l1' is not one of \('correlation', 'cosine'",
        ),
        (
            lambda: rsa(X40, Y40, distance=np.array(["cosine", "euclidean"])),
            r"distance=array\(.* is not one of",
        ),
        (
            lambda: rsa(np.arange(1.0, 41), Y40, distance="cosine"),
            r"X has no two rows that differ by cosine: each of the 40 is a positive multiple of the first",
        ),
        (
            lambda: rsa(X40, np.c_[np.arange(40), 3.0 * np.arange(1, 41)]),
            r"Y has no two rows that differ by correlation: each of the 40, after a number of its own",
        ),
        (lambda: rsa(X40, Y40, compare="kendall"), "compare='kendall' is not one of"),
        (lambda: rsa(X40[:2], Y40[:2]), "X has 2 rows, but rsa compares pairs: .* at least 3"),
        (
            lambda: rsa(np.eye(3), Y40[:3], distance="euclidean"),
            "X leaves nothing to compare: by euclidean its rows are all equally far apart",
        ),
        (
            lambda: rsa(X40, Y40 * (np.arange(40) != 5)[:, None], distance="cosine"),
            "Y has zeros only in row 5, which has no cosine",
        ),
        (
            lambda: rsa(np.where(np.arange(40)[:, None] == 7, 0.1, X40), Y40),
            "X has equal values only in row 7, .* distance='euclidean'",
        ),
        (
            lambda: mutual_knn(X40[:10], Y40[:10]),
            r"X has 10 rows, too few for n_neighbors=10: .* Pass at most 9\.",
        ),
        (lambda: mutual_knn(X40, Y40, n_neighbors=0), "n_neighbors=0 is not a whole number"),
        (lambda: mutual_knn(X40, Y40, n_neighbors=2.0), "n_neighbors=2.0 is not a whole number"),
        (lambda: mutual_knn(X40, Y40, distance="dot"), "distance='dot' is not one of"),
        (
            lambda: affine_alignment_error(X40, Y40, direction="both"),
            "direction='both' is not one of",
        ),
    ],
)
def test_messages(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_only_rounding_is_brought_back():
    assert settled(1 + 1e-15, 0, 1) == 1
    assert settled(-1e-15, 0, 1) == 0
    assert settled(1 + 1e-9, 0, 1) == 1 + 1e-9
    assert settled(0.3, 0, 1) == 0.3
