"""Pairs and tolerances that the tests share."""

import os
import pickle

import joblib
import numpy as np
import pytest
import skops.io

from sklearn_bijection import CCAAligner, PermutationAligner, ProcrustesAligner

# Before any test imports transformers: what it would look for on the hub is a mistake.
os.environ["HF_HUB_OFFLINE"] = "1"

#: Every closed form, in every direction and with every way to shrink.
ALIGNERS = {
    "cca": CCAAligner(),
    "cca-textbook": CCAAligner(shrinkage=0),
    "cca-oas": CCAAligner(shrinkage="oas"),
    "cca-fixed": CCAAligner(shrinkage=0.2),
    "cca-pair": CCAAligner(shrinkage=(0.1, 0.4)),
    "cca-forward": CCAAligner(shrinkage=0.1, direction="forward"),
    "cca-backward": CCAAligner(shrinkage=0.1, direction="backward"),
    "svcca": CCAAligner(shrinkage=0, explained_variance=0.9),
    "cca-three": CCAAligner(3, shrinkage=0.1),
    "procrustes": ProcrustesAligner(),
    "procrustes-forward": ProcrustesAligner(direction="forward"),
    "procrustes-backward": ProcrustesAligner(direction="backward"),
    "procrustes-rotation": ProcrustesAligner(scale=False, allow_reflection=False),
    "permutation": PermutationAligner(),
    "permutation-forward": PermutationAligner(signed=True, direction="forward"),
    "permutation-backward": PermutationAligner(signed=True, direction="backward"),
    "permutation-plain": PermutationAligner(scale=None, signed=True, matching="inner product"),
}


@pytest.fixture(params=ALIGNERS)
def aligner(request):
    """One aligner after the other, unfitted."""
    return ALIGNERS[request.param].__class__(**ALIGNERS[request.param].get_params())


def noisy_pair(n_samples=300, n_features=6, n_targets=6, *, noise=0.5, seed=0):
    """A linear pair with noise, unequal scales and means."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_features)) * np.geomspace(1, 5, n_features) + rng.normal(
        size=n_features
    )
    y = X @ rng.normal(size=(n_features, n_targets))
    return X, y + noise * y.std() * rng.normal(size=y.shape) + 3.0


@pytest.fixture
def pair():
    return noisy_pair()


def assert_same_map(a, b, X, y, rtol=1e-10):
    """The two fitted aligners agree in both directions, relative to the spread of each space."""
    assert_close(a.transform(X), b.transform(X), rtol)
    assert_close(a.inverse_transform(y), b.inverse_transform(y), rtol)


def assert_close(found, expected, rtol=1e-10):
    """Largest difference relative to the largest deviation of the expected rows from their mean."""
    expected = np.asarray(expected)
    scale = np.abs(expected - expected.mean(axis=0)).max()
    np.testing.assert_allclose(found, expected, rtol=0, atol=rtol * (scale or 1.0))


def by_pickle(aligner, folder):
    return pickle.loads(pickle.dumps(aligner))


def by_joblib_memory_mapped(aligner, folder):
    joblib.dump(aligner, folder / "aligner.joblib")
    return joblib.load(folder / "aligner.joblib", mmap_mode="r")


def by_skops(aligner, folder):
    skops.io.dump(aligner, folder / "aligner.skops")
    unknown = skops.io.get_untrusted_types(file=folder / "aligner.skops")
    assert all(name.startswith("sklearn_bijection.") for name in unknown), unknown
    return skops.io.load(folder / "aligner.skops", trusted=unknown)


#: Ways for an aligner into a file or another process, and back.
CARRIERS = [by_pickle, by_joblib_memory_mapped, by_skops]
