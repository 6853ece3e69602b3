"""A known bijection to be found, and what tells how a fitted map treats the rows of either space."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from _judging import Split
from sklearn.decomposition import PCA

from sklearn_bijection._flow import Architecture, Chain
from sklearn_bijection.metrics import r2

Array = npt.NDArray[np.floating]

#: How strong the nets of the random bijection are: the best linear map explains about 0.7 of it.
GAIN = 0.8
STEP = 1e-3


def random_bijection(width: int, seed: int = 0) -> Chain:
    """A frozen network of two pairs of affine couplings, its weights drawn at random, in float64."""
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(seed)
        core = Architecture(width, n_blocks=2, activation="tanh", hidden_size=width).build()
        core = core.double()
        for parameter in core.parameters():
            fan_in = parameter.shape[-1]
            parameter.normal_(std=GAIN / fan_in**0.5) if parameter.ndim == 2 else parameter.zero_()
    return core.requires_grad_(False).eval()


def images_of(X: Array, seed: int = 0) -> Array:
    """What the random bijection makes of the rows, centred and divided by one unit before."""
    rows = X.astype(np.float64) - X.mean(axis=0)
    core = random_bijection(X.shape[1], seed)
    images: Array = core(torch.from_numpy(rows / rows.std(axis=0).mean())).numpy()
    return images


def measures(fitted: Any, split: Split) -> Iterator[tuple[str, float]]:
    """Norms, and R² of the inverse map where the rows of y have been tampered with.

    Norms are of rows centred at the mean of their space. The local gain is the length of a small step
    after the inverse map over that before it, each in units of the mean norm of its space.
    """
    X, y = (rows.astype(np.float64) for rows in (split.X_test, split.y_test))
    mean_x, mean_y = (rows.mean(axis=0, dtype=np.float64) for rows in (split.X, split.y))
    there, back = fitted.transform(X), fitted.inverse_transform(y)
    for name, rows in {"x": X - mean_x, "f(x)": there - mean_y}.items():
        yield f"mean norm of {name}", _norms(rows).mean()
    for name, rows in {"y": y - mean_y, "g(y)": back - mean_x}.items():
        yield f"mean norm of {name}", _norms(rows).mean()
    centred, norms = y - mean_y, _norms(y - mean_y)
    tampered = {
        "norms of y equalised": centred * (norms.mean() / norms)[:, np.newaxis],
        "y scaled by 0.7": 0.7 * centred,
        "f(x) scaled to the norms of y": (there - mean_y)
        * (norms / _norms(there - mean_y))[:, np.newaxis],
        **{f"y moved by {t} to f(x)": centred + t * (there - y) for t in (0, 0.25, 0.5, 0.75, 1)},
    }
    for name, rows in tampered.items():
        yield f"R² of the inverse, {name}", r2(X, fitted.inverse_transform(rows + mean_y))
    units = _norms(X - mean_x).mean() / norms.mean()
    for name, rows in {"y": y, "f(x)": there}.items():
        yield (
            f"local gain of the inverse at {name}",
            _local_gain(fitted, rows, STEP * norms.mean()) / units,
        )


def _norms(rows: Array) -> Array:
    found: Array = np.linalg.norm(rows, axis=1)
    return found


def _local_gain(fitted: Any, rows: Array, length: float) -> float:
    """Root mean square over rows, one random direction each."""
    steps = np.random.default_rng(0).normal(size=rows.shape)
    steps *= length / _norms(steps)[:, np.newaxis]
    moved = fitted.inverse_transform(rows + steps) - fitted.inverse_transform(rows)
    return float(np.sqrt((_norms(moved) ** 2).mean()) / length)


def mixtures(pair: tuple[Array, Array], n_rows: int, width: int) -> tuple[Array, Array]:
    """Many rows: of the leading directions of real ones, mixed two by two, y bent by a tanh."""
    rng = np.random.default_rng(0)
    X, y = (PCA(width, random_state=0).fit_transform(a) for a in pair)
    i, j = rng.integers(len(X), size=(2, n_rows))
    share = rng.uniform(size=(n_rows, 1))
    X, y = (share * a[i] + (1 - share) * a[j] for a in (X, y))
    return X.astype(np.float32), np.tanh(1.5 * y).astype(np.float32)


def widened(pair: tuple[Array, Array], width: int) -> tuple[Array, Array]:
    """Many columns: random features of real rows, tanh of random sums."""
    rng = np.random.default_rng(0)
    wide = (np.tanh(a @ (0.1 * rng.normal(size=(a.shape[1], width)))) for a in pair)
    X, y = (a.astype(np.float32) for a in wide)
    return X, y
