"""What tells one model, tokenizer or pooling from another: for files, and for what is kept."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Hashable
from hashlib import blake2b
from pathlib import Path
from types import FunctionType
from typing import Any

import torch

Stamp = tuple[tuple[str, int, int], ...]


def model_identity(model: Any) -> str:
    """A short name of exactly these weights, and of what is done with them.

    Those of a pooler do not count: hidden states do not depend on them, and a checkpoint without
    them is loaded with random ones.
    """
    found = blake2b(repr(sorted(_settings_of(model).items())).encode(), digest_size=16)
    weights = {name: w for name, w in model.state_dict().items() if "pooler" not in name}
    for name, tensor in sorted(weights.items()):
        found.update(name.encode())
        found.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return found.hexdigest()


def _settings_of(model: Any) -> dict[str, Any]:
    """The configuration, without what says where it comes from and how it is run."""
    settings = model.config.to_diff_dict()
    names = ("architectures", "dtype", "torch_dtype", "transformers_version")
    return {key: settings[key] for key in settings if key[0] != "_" and key not in names}


def tokenizer_identity(tokenizer: Any) -> Hashable:
    """What tells one tokenizer from another: a name, or of a live one its words and what it does."""
    if tokenizer is None:
        return None
    if isinstance(tokenizer, str | os.PathLike):
        return os.fspath(tokenizer), stamp_of(os.fspath(tokenizer))
    if tokenizer.is_fast:
        rules = json.loads(tokenizer.backend_tokenizer.to_str())
        # What was asked of it last, and not what it is.
        rules = {name: rules[name] for name in rules if name not in ("truncation", "padding")}
    else:
        rules = tokenizer.get_vocab()
    names = ("special_tokens_map", "model_input_names", "model_max_length", "truncation_side")
    known = (type(tokenizer).__name__, rules, [getattr(tokenizer, name) for name in names])
    return blake2b(repr(known).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def pooling_identity(pooling: object) -> str:
    """What tells a pooling from others, of callables too: two lambdas have one name."""
    if isinstance(pooling, str):
        return pooling
    parts: list[object] = [pooling]
    if isinstance(pooling, FunctionType):
        code, cells = pooling.__code__, pooling.__closure__ or ()
        parts = [code.co_code, code.co_names, code.co_consts, pooling.__defaults__]
        parts += [pooling.__kwdefaults__, *(cell.cell_contents for cell in cells)]
    found = blake2b(digest_size=8)
    for part in parts:
        found.update(_content(part))
    return f"{getattr(pooling, '__qualname__', type(pooling).__name__)} {found.hexdigest()}"


def _content(part: object) -> bytes:
    try:
        return pickle.dumps(part)
    except Exception:  # An address tells too much apart, never too little.
        return repr(part).encode()


def stamp_of(name: str) -> Stamp:
    """What a local folder holds, with times and sizes, so that new weights are not taken for old ones."""
    folder = Path(name)
    if not folder.is_dir():
        return ()
    files = sorted(file for file in folder.iterdir() if file.is_file())
    return tuple((file.name, *_time_and_size(file.stat())) for file in files)


def _time_and_size(stat: os.stat_result) -> tuple[int, int]:
    return stat.st_mtime_ns, stat.st_size
