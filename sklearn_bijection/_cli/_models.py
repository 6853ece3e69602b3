"""Aligners by name, and aligners in files."""

from __future__ import annotations

import ast
import importlib
import inspect
import warnings
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from .. import CCAAligner, PermutationAligner, ProcrustesAligner, __version__
from ._terminal import InputError
from ._writing import replacing

PACKAGE = __name__.partition(".")[0]


def _network() -> Any:
    """The network, which brings torch: imported by those who ask for it."""
    from .. import INNAligner

    return INNAligner(random_state=0)


#: Every aligner of the command line, by the name it has there.
ALIGNERS: dict[str, Callable[[], Any]] = {
    "cca": CCAAligner,
    "procrustes": ProcrustesAligner,
    "permutation": PermutationAligner,
    "inn": _network,
}


def parse_aligner(text: str) -> tuple[str, Any]:
    """Read an aligner such as ``cca:direction=forward,shrinkage=0.1``.

    Parameters
    ----------
    text : str
        A name of `ALIGNERS`, and parameters after a colon. Values are Python literals; what is not one
        is taken as text.

    Returns
    -------
    text : str
        As it came, for the table.
    aligner : estimator

    Raises
    ------
    ArgumentTypeError
        If the name or a parameter is unknown.

    Examples
    --------
    >>> parse_aligner("cca:direction=forward,shrinkage=(0.1, 0)")[1]
    CCAAligner(direction='forward', shrinkage=(0.1, 0))
    """
    name, _, parameters = text.partition(":")
    if name not in ALIGNERS:
        raise ArgumentTypeError(f"no aligner is called {name!r}; there are {', '.join(ALIGNERS)}")
    aligner = ALIGNERS[name]()
    known = sorted(aligner.get_params(deep=False))
    for parameter, value in _parameters(parameters):
        if parameter not in known:
            raise ArgumentTypeError(
                f"{name} has no parameter {parameter!r}; it has {', '.join(known)}"
            )
        aligner.set_params(**{parameter: value})
    return text, aligner


def _parameters(text: str) -> Iterator[tuple[str, Any]]:
    """Names and values of ``a=1,b=(2, 3),c=word``."""
    fault = ArgumentTypeError(f"{text!r} is not a list such as direction=forward,shrinkage=0.1")
    try:
        # As the arguments of a call, so that commas within brackets separate nothing. It is only
        # parsed, never run.
        call = ast.parse(f"aligner({text})", mode="eval").body
    except (SyntaxError, ValueError) as error:
        raise fault from error
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.args:
        raise fault
    for keyword in call.keywords:
        if keyword.arg is None:
            raise fault
        yield keyword.arg, _value(keyword.value)


def _value(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:
        return ast.unparse(node)


def save(aligner: Any, target: Path) -> None:
    """Write a fitted aligner with skops, and the version of this package beside it."""
    import skops.io

    with replacing(target) as scratch:
        skops.io.dump(aligner, scratch)
        with ZipFile(scratch, "a") as archive:
            archive.comment = f"{PACKAGE} {__version__}".encode()


def load(place: str) -> Any:
    """Read a fitted aligner, if everything in the file is of this package or trusted by skops.

    Parameters
    ----------
    place : str
        A file that `save` or ``skops.io.dump`` wrote.

    Returns
    -------
    aligner : estimator

    Raises
    ------
    InputError
        If the file has another format, names foreign types, or does not fit this version.
    OSError
        If there is no such file.
    """
    import skops.io

    author = _author(place)
    try:
        types = skops.io.get_untrusted_types(file=place)
        _refuse_foreign(types, place)
        aligner = skops.io.load(place, trusted=types)
        _check_fitted(aligner, place)
        _try_out(aligner)
    except InputError:
        raise
    # A state of another version may go wrong anywhere.
    except Exception as error:
        raise InputError(
            f"{place} does not fit {PACKAGE} {__version__} ({error}). It was written by {author}. "
            "Fit again, or install what wrote it."
        ) from error
    return aligner


def _author(place: str) -> str:
    """Name and version of what wrote the file."""
    try:
        with ZipFile(place) as archive:
            archive.getinfo("schema.json")
            return archive.comment.decode("ascii", "replace") or "another program"
    except (BadZipFile, KeyError) as error:
        raise InputError(
            f"{place} holds no aligner. Pass a file that 'fit' wrote with -o."
        ) from error


def _refuse_foreign(types: list[str], place: str) -> None:
    foreign = [name for name in types if not _is_ours(name)]
    if foreign:
        raise InputError(
            f"{place} names types that are not of {PACKAGE}: {', '.join(foreign)}. It is not loaded, "
            "since that could run any code. If you trust its author, load it in Python with skops."
        )


def _is_ours(name: str) -> bool:
    """Whether a name is that of a class defined in this package, and not of what a module imports."""
    module, _, attribute = name.rpartition(".")
    if not module.startswith(f"{PACKAGE}."):
        return False
    found = getattr(importlib.import_module(module), attribute)
    return inspect.isclass(found) and found.__module__ == module


def _check_fitted(aligner: Any, place: str) -> None:
    kind = type(aligner).__name__
    if not (hasattr(aligner, "transform") and hasattr(aligner, "inverse_transform")):
        raise InputError(f"{place} holds a {kind}, which does not map both ways. Pass an aligner.")
    try:
        check_is_fitted(aligner)
    except NotFittedError as error:
        raise InputError(f"{place} holds a {kind} that is not fitted. Use 'fit' first.") from error


def _try_out(aligner: Any) -> None:
    """Map one row there and back."""
    with warnings.catch_warnings():
        # An aligner fitted on named columns warns of a row without names.
        warnings.simplefilter("ignore")
        aligner.inverse_transform(aligner.transform(np.zeros((1, aligner.n_features_in_))))
