"""Pairs of spaces, and the measures of their similarity, that tests share."""

from functools import partial

import numpy as np
from scipy.stats import ortho_group

from sklearn_bijection import metrics
from sklearn_bijection.metrics._similarity import MEASURES
from sklearn_bijection.metrics._similarity._measure import compared

#: Every measure, with each of its options that changes what it is.
CASES = {
    "linear_cka": {},
    "linear_cka debiased": {"debiased": True},
    "rbf_cka": {},
    "rbf_cka debiased": {"bandwidth": 0.7, "debiased": True},
    "mean_cca": {},
    "svcca": {"explained_variance": 0.9},
    "pwcca": {},
    "orthogonal_procrustes_similarity": {},
    "procrustes_distance": {},
    "procrustes_distance squared": {"squared": True},
    "angular_shape_distance": {},
    "angular_shape_distance 0": {"alpha": 0},
    "angular_shape_distance 0.4": {"alpha": 0.4},
    "rsa correlation": {},
    "rsa cosine": {"distance": "cosine", "compare": "pearson"},
    "rsa euclidean": {"distance": "euclidean"},
    "mutual_knn cosine": {"n_neighbors": 7},
    "mutual_knn correlation": {"n_neighbors": 7, "distance": "correlation"},
    "mutual_knn euclidean": {"n_neighbors": 7, "distance": "euclidean"},
    "relu_procrustes": {},
    "relu_cka": {},
    "relu_cka plain": {"debiased": False},
    "affine_alignment_error": {},
    "affine_alignment_error backward": {"direction": "backward"},
    "affine_alignment_error symmetric": {"direction": "symmetric"},
}
DISTANCES = ("procrustes_distance", "angular_shape_distance", "affine_alignment_error")


def name_of(case):
    """Name of the public function of a case."""
    return case.split()[0]


def public(case):
    """The public function of two arrays."""
    return partial(getattr(metrics, name_of(case)), **CASES[case])


def measure(case):
    """The same in its two parts."""
    return MEASURES[name_of(case)](**CASES[case])


def by_measure(case):
    """Function of two arrays that goes through the two parts, whatever the sizes."""
    return lambda X, Y: compared(measure(case), X, Y)


def is_distance(case):
    """Whether equal spaces have 0 rather than 1."""
    return name_of(case) in DISTANCES


def related_pair(n_samples=120, width_x=6, width_y=5, *, seed=0):
    """Two spaces that share something, with unequal scales and means."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, width_x)) * np.geomspace(1, 4, width_x)
    Y = np.tanh(X @ rng.normal(size=(width_x, width_y)) / 3) + 0.3 * rng.normal(
        size=(n_samples, width_y)
    )
    return X + rng.normal(size=width_x), 2 * Y + rng.normal(size=width_y)


def rotation(width, seed=0):
    """An orthogonal matrix."""
    return ortho_group.rvs(width, random_state=seed) if width > 1 else np.array([[-1.0]])
