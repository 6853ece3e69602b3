"""What tells one model, tokenizer or pooling from another: for files, and for what is kept."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Hashable, Iterable
from functools import partial
from hashlib import blake2b
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any
from uuid import uuid4

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
    """What tells a pooling from others, of callables too: two lambdas have one name.

    What cannot be told apart safely, such as an object that cannot be pickled, is never the same.
    """
    if isinstance(pooling, str):
        return pooling
    found = blake2b(_content(pooling, set()), digest_size=8)
    return f"{getattr(pooling, '__qualname__', type(pooling).__name__)} {found.hexdigest()}"


def _content(part: Any, seen: set[int]) -> bytes:
    """Bytes that are equal for what does the same, in any process."""
    if id(part) in seen:
        return b"again"
    if isinstance(part, ModuleType):
        return part.__name__.encode()
    if isinstance(part, FunctionType | CodeType | partial | frozenset):
        seen = seen | {id(part)}
    if isinstance(part, frozenset):
        return b"".join(sorted(_content(item, seen) for item in part))
    if isinstance(part, partial):
        return _joined([part.func, part.args, sorted(part.keywords.items())], seen)
    if isinstance(part, CodeType):
        return _joined([part.co_code, part.co_names, part.co_varnames, *part.co_consts], seen)
    if isinstance(part, FunctionType):
        cells = [cell.cell_contents for cell in part.__closure__ or ()]
        read = sorted(_names_in(part.__code__) & part.__globals__.keys())
        known = [part.__globals__[name] for name in read]
        return _joined(
            [part.__code__, part.__defaults__, part.__kwdefaults__, *cells, *known], seen
        )
    try:
        return pickle.dumps(part)
    except Exception:
        return uuid4().bytes


def _names_in(code: CodeType) -> set[str]:
    """Names that a function looks up, in its inner functions and comprehensions too."""
    inner = (part for part in code.co_consts if isinstance(part, CodeType))
    return set(code.co_names).union(*map(_names_in, inner))


def _joined(parts: Iterable[Any], seen: set[int]) -> bytes:
    return b"|".join(_content(part, seen) for part in parts)


def stamp_of(name: str) -> Stamp:
    """What a local folder holds, with times and sizes, so that new weights are not taken for old ones."""
    folder = Path(name)
    if not folder.is_dir():
        return ()
    files = sorted(file for file in folder.iterdir() if file.is_file())
    return tuple((file.name, *_time_and_size(file.stat())) for file in files)


def _time_and_size(stat: os.stat_result) -> tuple[int, int]:
    return stat.st_mtime_ns, stat.st_size
