"""How the command line speaks: results on stdout, everything else as single lines on stderr."""

from __future__ import annotations

import codecs
import io
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from tqdm import tqdm

PROGRAM = "sklearn-bijection"

# One character for one, so that the columns of a table stay in line.
_PLAIN = str.maketrans("²±→", "2~>")

Item = TypeVar("Item")


class InputError(ValueError):
    """What the user can mend: a file or its content. The message says how."""


def say(kind: str, message: object) -> None:
    """Print one line on stderr, above a progress bar if there is one."""
    tqdm.write(f"{PROGRAM}: {kind}: {' '.join(str(message).split())}", file=sys.stderr)


def note(message: str, *, quiet: bool) -> None:
    """Print a line on stderr that nobody needs."""
    if not quiet:
        tqdm.write(message, file=sys.stderr)


def progress(items: Sequence[Item], verb: str, *, quiet: bool) -> tqdm[Item]:
    """Iterate with a bar on stderr, which goes when it is full."""
    return tqdm(items, verb, unit="block", leave=False, disable=quiet)


def describe(error: BaseException) -> str:
    """Return what an error says, its notes included."""
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}."
    return " ".join([str(error) or type(error).__name__, *getattr(error, "__notes__", [])])


def warning_printer() -> Callable[..., None]:
    """Make a ``warnings.showwarning`` that says each text once, in one line."""
    said: set[str] = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        if (text := str(message)) not in said:
            said.add(text)
            say("warning", text)

    return show


def tolerate_narrow_encodings() -> None:
    """Let stdout and stderr print R2 where their encoding has no R²."""
    codecs.register_error(PROGRAM, _in_plain_letters)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=PROGRAM)


def abandon_stdout() -> None:
    """Send the rest of stdout nowhere, so that the flush at exit does not fail a second time."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def _in_plain_letters(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end].translate(_PLAIN)
    return text.encode("ascii", "replace").decode("ascii"), error.end
