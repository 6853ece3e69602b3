"""The one door to what this package does not own.

Everything that scikit-learn keeps private, and every optional dependency, is reached through this
module, so that a change upstream is met in one place.
"""

from __future__ import annotations

import importlib
import mmap
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_feature_names_in as check_feature_names_in
from sklearn.utils.validation import _check_sample_weight as check_sample_weight
from sklearn.utils.validation import _get_feature_names as column_names

__all__ = [
    "Interval",
    "StrOptions",
    "check_feature_names_in",
    "check_sample_weight",
    "checks_parameters",
    "column_names",
    "release_pages",
    "require",
    "stacklevel_of_caller",
]

#: Packages through which a call may come on its way to ours.
_OURS = {"sklearn_bijection", "sklearn"}

Method = TypeVar("Method", bound=Callable[..., Any])


def checks_parameters(fit: Method) -> Method:
    """Decorate a fit so that the estimator's parameters are validated before it runs."""
    return _fit_context(prefer_skip_nested_validation=True)(fit)  # type: ignore[no-any-return]


def require(module: str, extra: str) -> ModuleType:
    """Import an optional module, or say which extra brings it.

    Parameters
    ----------
    module : str
        Dotted name of the module to import.
    extra : str
        Name of this package's extra that installs it.

    Returns
    -------
    module : ModuleType
        The imported module.

    Raises
    ------
    ImportError
        If the module is not installed.

    Examples
    --------
    >>> require("math", "plot").sqrt(16.0)
    4.0
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f"This needs {module}, which cannot be imported ({error}). "
            f"Install it with: pip install 'sklearn-bijection[{extra}]'"
        ) from error


def release_pages(array: NDArray[Any]) -> None:
    """Hand the resident pages of a read-only or shared memory map back to the system.

    Without it a single pass over a mapped file leaves the whole file resident. Arrays that are not
    memory maps are left alone, and so are copy-on-write maps, whose changes live in those pages.
    """
    base: object = array
    while isinstance(base, np.ndarray):
        if (
            isinstance(base, np.memmap)
            and base.mode in {"r", "r+"}
            and hasattr(mmap, "MADV_DONTNEED")
        ):
            base._mmap.madvise(mmap.MADV_DONTNEED)  # type: ignore[attr-defined]
            return
        base = base.base


def stacklevel_of_caller() -> int:
    """The `stacklevel` with which a warning points at the line that called this package."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals["__name__"].split(".")[0] in _OURS:
        level, frame = level + 1, frame.f_back
    return level
