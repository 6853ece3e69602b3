"""A .npy file that is filled row by row, and knows after a crash which rows it has."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from .._compat import release_pages

_SECONDS_BETWEEN = 1.0


class StatesFile:
    """An array on disk, of which one part after the other is finished.

    While it grows the array lies in ``PATH.part``; it gets its name when it is whole. What has been
    finished, and under which settings, is noted in ``PATH.json``.

    Parameters
    ----------
    path : path-like
        Ends in ``.npy``.
    settings : mapping of str to str
        What the values depend on. A file that was begun under others is refused.

    Notes
    -----
    One run at a time: two that write the same file spoil each other's.
    """

    def __init__(self, path: str | os.PathLike[str], settings: Mapping[str, Any]) -> None:
        self.path = Path(path)
        self.part = self.path.with_name(self.path.name + ".part")
        self.note = self.path.with_name(self.path.name + ".json")
        self.settings = dict(settings)
        self.done = 0
        self._array: NDArray[Any] | None = None
        self._saved = time.monotonic()
        self._check()

    @property
    def complete(self) -> bool:
        """Whether the whole array is there."""
        return self.path.exists()

    def _check(self) -> None:
        if self.path.suffix != ".npy":
            raise ValueError(f"out={str(self.path)!r} must end in .npy.")
        if not self.path.parent.is_dir():
            raise FileNotFoundError(f"out={str(self.path)!r}: there is no such folder. Make it.")
        if not self.note.exists():
            for file in (self.path, self.part):
                if file.exists():
                    raise FileExistsError(
                        f"out={str(self.path)!r}: {file.name} is there and does not say how it was "
                        "made. Remove it or choose another name."
                    )
            return
        note = json.loads(self.note.read_text("utf-8"))
        self._require_same(note["settings"])
        self.done = note["done"] if self._sound() else 0

    def _sound(self) -> bool:
        """Whether what was begun is there in its full size: a shorter file would be filled with zeros."""
        try:
            np.load(self.part, mmap_mode="r")
        except (OSError, ValueError):
            return False
        return True

    def _require_same(self, other: Mapping[str, Any]) -> None:
        names = sorted(self.settings.keys() | other.keys())
        changed = [name for name in names if self.settings.get(name) != other.get(name)]
        if changed:
            shown = "; ".join(
                f"{name}: {other.get(name)} there, {self.settings.get(name)} now"
                for name in changed
            )
            raise ValueError(
                f"out={str(self.path)!r} was begun with other settings ({shown}). "
                f"Remove it and {self.note.name}, or choose another name."
            )

    def open(self, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """Make the array, or go on with the one that is there."""
        if self.done:
            self._array = np.lib.format.open_memmap(self.part, mode="r+")
            return self._array
        needed = int(np.prod(shape)) * np.dtype(dtype).itemsize
        free = shutil.disk_usage(self.path.parent).free
        if needed > free:
            raise OSError(
                f"out={str(self.path)!r} needs {needed / 1e9:.1f} GB, and {free / 1e9:.1f} GB are "
                "free. Take fewer layers, dtype=float16, or another disk."
            )
        np.lib.format.open_memmap(self.part, mode="w+", dtype=np.dtype(dtype), shape=shape)
        self._array = np.lib.format.open_memmap(self.part, mode="r+")
        self._write_note()
        return self._array

    def advance(self, n: int) -> None:
        """Count `n` more texts as finished; at most once in a second that is made to last."""
        self.done += n
        if time.monotonic() - self._saved > _SECONDS_BETWEEN:
            self.save()

    def save(self) -> None:
        """See that all that is counted is on the disk, and only then say so."""
        if isinstance(self._array, np.memmap):
            self._array.flush()
            release_pages(self._array)
            self._write_note()
        self._saved = time.monotonic()

    def finish(self) -> None:
        """Give the whole array its name."""
        self.save()
        self._array = None
        self.part.replace(self.path)

    def load(self) -> NDArray[Any]:
        """The finished array, read-only and not in memory."""
        return np.load(self.path, mmap_mode="r")  # type: ignore[no-any-return]

    def _write_note(self) -> None:
        fresh = self.note.with_name(self.note.name + ".new")
        fresh.write_text(json.dumps({"settings": self.settings, "done": self.done}, indent=1))
        fresh.replace(self.note)
