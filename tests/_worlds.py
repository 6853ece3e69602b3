"""Spaces of one meaning, and comparisons, that the tests of many spaces share."""

import numpy as np
from conftest import assert_close


def rotation(width, seed):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(width, width))).Q


def worlds(n_spaces=4, n_samples=120, width=5, *, noise=0.0, scales=None, seed=0, spread=3.0):
    """Spaces of one meaning: turned, scaled, shifted, each with noise of its own."""
    rng = np.random.default_rng(seed)
    meaning = rng.normal(size=(n_samples, width)) * np.geomspace(spread, 1, width)
    scales = np.ones(n_spaces) if scales is None else scales
    return [
        scale * (meaning + noise * rng.normal(size=meaning.shape)) @ rotation(width, [seed, k])
        + scale * rng.normal(size=width)
        for k, scale in enumerate(scales)
    ]


def pairs(n_spaces):
    return [(i, j) for i in range(n_spaces) for j in range(n_spaces)]


def assert_same_translations(a, b, Xs, rtol=1e-9):
    for i, j in pairs(len(Xs)):
        assert_close(a.translate(Xs[i], i, j), b.translate(Xs[i], i, j), rtol)


def centred(X):
    return X - X.mean(axis=0)
