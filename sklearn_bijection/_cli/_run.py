"""From arguments to an exit code."""

from __future__ import annotations

import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from ._parser import parse
from ._terminal import abandon_stdout, describe, say, tolerate_narrow_encodings, warning_printer

_MENDABLE = (OSError, ValueError, TypeError, ImportError, MemoryError, Warning)
_INTERRUPTED, _NO_READER, _TERMINATED = (128 + number for number in (2, 13, 15))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str, default=None
        Arguments after the name of the program; None takes those of the process.

    Returns
    -------
    code : int
        0 done, 1 an error that the user can mend, 130 interrupted, 141 nobody reads the output.

    Raises
    ------
    SystemExit
        With 2 if the arguments are not understood, with 0 after ``--help`` or ``--version``, with 143 if
        the process is terminated.

    Examples
    --------
    >>> from sklearn_bijection.__main__ import main
    >>> main(["compare", "missing.npy", "missing.npy"])
    1
    """
    tolerate_narrow_encodings()
    with warnings.catch_warnings(), _orderly_termination():
        warnings.showwarning = warning_printer()
        try:
            _run(sys.argv[1:] if argv is None else argv)
        except KeyboardInterrupt:
            say("error", "interrupted.")
            return _INTERRUPTED
        except BrokenPipeError:
            abandon_stdout()
            return _NO_READER
        except _MENDABLE as error:
            say("error", describe(error))
            return 1
    return 0


def _run(argv: Sequence[str]) -> None:
    try:
        args = parse(argv)
        args.run(args)
    finally:
        # Here, where a reader that has gone is noticed in time, and not at exit.
        sys.stdout.flush()


@contextmanager
def _orderly_termination() -> Iterator[None]:
    """Turn SIGTERM into an exit, so that unfinished files are removed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _leave(number: int, frame: FrameType | None) -> None:
    sys.exit(_TERMINATED)
