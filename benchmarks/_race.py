"""Paired timings: contestants take turns, so that a ratio compares fits made moments apart."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from gc import collect
from importlib.util import find_spec
from time import perf_counter, sleep
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from _report import NOT_INSTALLED, Spread, spread
from tqdm import tqdm

from sklearn_bijection.datasets import make_linear_pair

Array = npt.NDArray[np.floating]
Fit = Callable[[Array, Array], Any]
Seconds = dict[str, list[float]]

_SETTLE = 0.1


@dataclass(frozen=True)
class Problem:
    """Shape and type of both arrays."""

    n_samples: int
    width: int
    dtype: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``ROWSxWIDTH`` or ``ROWSxWIDTH:DTYPE``."""
        shape, _, dtype = text.partition(":")
        n_samples, width = (int(number) for number in shape.split("x"))
        return cls(n_samples, width, str(np.dtype(dtype or "float64")))

    def __str__(self) -> str:
        shape = f"({self.n_samples}, {self.width})"
        return f"{shape} x {shape} {self.dtype}"

    def draw(self) -> tuple[Array, Array]:
        """A correlated pair of full rank, the same at every call."""
        pair = make_linear_pair(self.n_samples, self.width, noise=1.0, random_state=0)
        return pair.X.astype(self.dtype), pair.y.astype(self.dtype)


@dataclass(frozen=True)
class Contestant:
    """Something to time, and how to read from its result what is to be compared.

    Parameters
    ----------
    name : str
    fit : callable
        ``fit(X, y)`` is timed.
    read : callable, default=None
        ``read(fitted, X, y)`` is not.
    needs : str, default="numpy"
        Module without which it cannot run.
    rounds : int, default=1000
        Takes part in at most so many; 0 leaves it out.
    """

    name: str
    fit: Fit
    read: Callable[[Any, Array, Array], Array] | None = None
    needs: str = "numpy"
    rounds: int = 1000

    @property
    def absence(self) -> str:
        """Why it does not take part, or nothing."""
        if find_spec(self.needs) is None:
            return NOT_INSTALLED
        return "" if self.rounds else "left out: takes too long"


def race(
    contestants: Sequence[Contestant], X: Array, y: Array, rounds: int, title: str
) -> tuple[Seconds, dict[str, Array]]:
    """Seconds of every fit, round by round, and what was read from each contestant's first."""
    seconds: Seconds = {contestant.name: [] for contestant in contestants}
    found: dict[str, Array] = {}
    turns = [
        contestant
        for i in range(rounds)
        for contestant in contestants
        if not contestant.absence and i < contestant.rounds
    ]
    for contestant in tqdm(turns, desc=title, unit="fit"):
        name = contestant.name
        if not seconds[name]:
            # A small one first, which pays for imports and threads.
            _timed(contestant.fit, X[:64, :4], y[:64, :4])
        spent, fitted = _timed(contestant.fit, X, y)
        if contestant.read is not None and name not in found:
            found[name] = contestant.read(fitted, X, y)
        seconds[name].append(spent)
    return seconds, found


def _timed(fit: Fit, X: Array, y: Array) -> tuple[float, Any]:
    collect()
    # numpy and scipy each carry a BLAS, whose threads spin on for a while and would slow the next.
    sleep(_SETTLE)
    with warnings.catch_warnings():
        # scikit-learn's CCA says for every component that it has not converged.
        warnings.simplefilter("ignore")
        start = perf_counter()
        fitted = fit(X, y)
        return perf_counter() - start, fitted


def ratio(seconds: Seconds, name: str, to: str) -> Spread:
    """Spread of the ratios of two contestants over the rounds that both were in."""
    return spread(a / b for a, b in zip(seconds[name], seconds[to], strict=False))
