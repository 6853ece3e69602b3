"""A fitted network in a safetensors file: arrays and a few words, which run no code when they are read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._compat import require
from ._map import NetworkMap

_FORMAT = "sklearn_bijection.INNAligner/1"
_ENDS = ("source", "target")


def write_parameters(target: str | Path, fitted: NetworkMap, facts: dict[str, Any]) -> None:
    """Write the arrays of a map, and what else is to be known about it as JSON in the header.

    Parameters
    ----------
    target : str or Path
    fitted : NetworkMap
    facts : dict
        Values that JSON knows.
    """
    state = fitted.__getstate__()
    arrays = {f"core.{name}": array for name, array in state["arrays"].items()}
    words = {**facts, "architecture": state["architecture"]}
    for end in _ENDS:
        arrays |= {f"{end}.{name}": np.asarray(state[end][name]) for name in ("mean", "columns")}
        words[f"{end}.unit"] = state[end]["unit"]
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    header = {"format": _FORMAT, "facts": json.dumps(words)}
    require("safetensors.numpy", "io").save_file(contiguous, str(target), metadata=header)


def read_parameters(source: str | Path) -> tuple[NetworkMap, dict[str, Any]]:
    """The map and the facts that `write_parameters` wrote.

    Raises
    ------
    ValueError
        If the file was written by something else.
    """
    safetensors = require("safetensors", "io")
    try:
        opened = safetensors.safe_open(str(source), framework="numpy")
    except safetensors.SafetensorError as error:
        raise ValueError(f"{source} is no safetensors file ({error}).") from error
    with opened as file:
        header = file.metadata() or {}
        if header.get("format") != _FORMAT:
            raise ValueError(
                f"{source} holds no INNAligner (its format is {header.get('format')!r}). Pass a file that "
                "save_params wrote."
            )
        arrays = {name: file.get_tensor(name) for name in file.keys()}
    facts = json.loads(header["facts"])
    return _as_map(arrays, facts), facts


def _as_map(arrays: dict[str, NDArray[Any]], facts: dict[str, Any]) -> NetworkMap:
    state: dict[str, Any] = {
        end: {
            "mean": arrays[f"{end}.mean"],
            "unit": facts[f"{end}.unit"],
            "columns": arrays[f"{end}.columns"],
        }
        for end in _ENDS
    }
    state["architecture"] = facts["architecture"]
    state["arrays"] = {
        name.removeprefix("core."): array
        for name, array in arrays.items()
        if name.startswith("core.")
    }
    fitted = NetworkMap.__new__(NetworkMap)
    fitted.__setstate__(state)
    return fitted
