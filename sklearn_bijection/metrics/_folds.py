"""What every cross-validated comparison shares: its splits, its rows, and one loop with a bar."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold, check_cv
from sklearn.utils.parallel import Parallel
from tqdm import tqdm

Split = tuple[NDArray[np.intp], NDArray[np.intp]]


def splits(cv: Any, X: Any, y: Any, random_state: Any) -> list[Split]:
    """Rows to fit on and rows to judge on; an int `cv` is a number of shuffled folds."""
    if isinstance(cv, Integral):
        cv = KFold(int(cv), shuffle=True, random_state=random_state)
    return list(check_cv(cv).split(X, y))


def take_rows(array: Any, index: NDArray[np.intp]) -> Any:
    """Rows of an array, a memory map or a frame, by position."""
    return array.iloc[index] if hasattr(array, "iloc") else array[index]


def run(
    jobs: Iterable[Any], total: int, title: str, *, n_jobs: int | None, progress: bool
) -> Iterator[Any]:
    """Results of delayed fits, in their order, as they come in."""
    results = Parallel(n_jobs=n_jobs, return_as="generator")(jobs)
    yield from tqdm(results, title, total, unit="fit", disable=not progress)
