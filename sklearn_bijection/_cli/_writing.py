"""Rows to files, which appear under their name only when they are complete."""

from __future__ import annotations

import csv
import os
import secrets
import shutil
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._compat import require
from ._terminal import InputError

Block = NDArray[Any]


class Stream(NamedTuple):
    """Blocks of rows to write, the number of rows in all, and what their columns are called."""

    blocks: Iterator[Block]
    n_rows: int
    names: Sequence[str]


def check_target(place: str, suffixes: Collection[str] = ()) -> Path:
    """Find out before the work begins whether a file can be written.

    Parameters
    ----------
    place : str
    suffixes : collection of str, default=()
        Endings allowed; all if empty.

    Returns
    -------
    path : Path

    Raises
    ------
    InputError
        If the format is not known, or the place is not one for a file.
    """
    path = Path(place)
    if suffixes and path.suffix.lower() not in suffixes:
        raise InputError(
            f"{place} ends in {path.suffix!r}, a format that is not written here. "
            f"Use {', '.join(suffixes)}."
        )
    if path.exists() and not path.is_file():
        raise InputError(f"{place} exists and is not a file. Name a file to write.")
    if not path.parent.is_dir():
        raise InputError(f"{place} cannot be written: there is no folder {path.parent}. Create it.")
    if not os.access(path.parent, os.W_OK):
        raise InputError(f"{place} cannot be written: no permission to write in {path.parent}.")
    return path


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """Give a path beside `target` to write to, and move it there if all went well.

    Whatever stood there before stays until then, and stays on an error or interrupt.
    """
    target = target.resolve()
    # The ending is kept: writers read the format from it.
    scratch = target.with_name(f".{target.stem}-{secrets.token_hex(4)}{target.suffix}")
    try:
        yield scratch
        if target.exists():
            shutil.copymode(target, scratch)
        os.replace(scratch, target)
    finally:
        scratch.unlink(missing_ok=True)


def write_rows(target: Path, stream: Stream) -> None:
    """Write blocks of rows in the format that the ending of `target` names."""
    with replacing(target) as scratch:
        WRITERS[target.suffix.lower()](scratch, stream)


def _write_npy(path: Path, stream: Stream) -> None:
    first = next(stream.blocks)
    header = {
        "descr": np.lib.format.dtype_to_descr(first.dtype),
        "fortran_order": False,
        "shape": (stream.n_rows, first.shape[1]),
    }
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        # Written in order rather than through a memory map, where a full disk kills the process.
        for block in chain([first], stream.blocks):
            file.write(np.ascontiguousarray(block).data)


def _write_npz(path: Path, stream: Stream) -> None:
    np.savez(path, rows=np.concatenate(list(stream.blocks)))


def _write_csv(path: Path, stream: Stream) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(stream.names)
        for block in stream.blocks:
            # The shortest text that reads back as the same number, also for float32.
            writer.writerows(block.astype(str))


def _write_parquet(path: Path, stream: Stream) -> None:
    require("pyarrow", "io")
    pandas = require("pandas", "io")
    rows = np.concatenate(list(stream.blocks))
    pandas.DataFrame(rows, columns=list(stream.names)).to_parquet(path)


WRITERS: dict[str, Callable[[Path, Stream], None]] = {
    ".npy": _write_npy,
    ".npz": _write_npz,
    ".csv": _write_csv,
    ".parquet": _write_parquet,
}
