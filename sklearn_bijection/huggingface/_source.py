"""A model and its tokenizer, live or by name, and the state they are used in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import signature
from os import PathLike, fspath
from pathlib import Path
from threading import RLock
from typing import Any

import torch

from .._compat import require

# Modes, devices, attention and truncation are state of a model and its tokenizer, which two threads
# must not set at once. A model uses all cores anyway.
ONE_AT_A_TIME = RLock()

# Tokenizers without a limit say so by a huge number.
_NO_LIMIT = 10**6


@dataclass(frozen=True)
class Source:
    """A model that is ready to be asked.

    Parameters
    ----------
    model : transformers.PreTrainedModel
        As it was given, with any head.
    tokenizer : transformers.PreTrainedTokenizerBase
    loaded : bool
        Whether the model was loaded here, so that nobody else holds it.
    """

    model: Any
    tokenizer: Any
    loaded: bool

    @property
    def body(self) -> Any:
        """What gives the hidden states: no head, and of an encoder-decoder the encoder."""
        return body_of(self.model)

    @property
    def knows_types(self) -> bool:
        """Whether the model asks which text of a pair a token belongs to."""
        names = signature(self.body.forward).parameters
        # A wrapper that hands everything through names nothing.
        return "token_type_ids" in names or "input_ids" not in names

    @property
    def max_length(self) -> int | None:
        """Most tokens that both the tokenizer and the model take."""
        limits = (self.tokenizer.model_max_length, self.n_positions)
        known = [limit for limit in limits if limit is not None and limit < _NO_LIMIT]
        return min(known, default=None)

    @property
    def n_positions(self) -> int | None:
        """Most tokens that the model takes."""
        size: int | None = getattr(self.body.config, "max_position_embeddings", None)
        if size is None or size < 1:
            return None
        # RoBERTa and its kin count positions from behind the one of the padding token.
        tables = (
            module
            for name, module in self.body.named_modules()
            if name.endswith("position_embeddings") and isinstance(module, torch.nn.Embedding)
        )
        padding = next((t.padding_idx for t in tables if t.padding_idx is not None), None)
        return size if padding is None else size - padding - 1


def body_of(model: Any) -> Any:
    """What gives the hidden states of a model."""
    if getattr(model.config, "is_encoder_decoder", False):
        return model.get_encoder()
    return getattr(model, "base_model", model)


def open_source(model: Any, tokenizer: Any = None) -> Source:
    """Load what is given by name, and check what is given live.

    Parameters
    ----------
    model : str, path-like, transformers.PreTrainedModel or Source
        A source is handed through.
    tokenizer : str, path-like, transformers.PreTrainedTokenizerBase or None
        None takes the one that belongs to the model.

    Returns
    -------
    source : Source
    """
    if isinstance(model, Source):
        return model
    named = isinstance(model, str | PathLike)
    live = load_model(fspath(model)) if named else require_model(model)
    name = model if tokenizer is None and named else tokenizer
    if name is None:
        name = getattr(model, "name_or_path", "")
        if not name:
            raise ValueError(
                f"model is a live {type(model).__name__} that does not say where its tokenizer is. "
                "Pass tokenizer=."
            )
    if isinstance(name, str | PathLike):
        name = load_tokenizer(fspath(name))
    if not hasattr(name, "model_max_length"):
        raise TypeError(
            f"tokenizer is a {type(name).__name__}. Pass a tokenizer of transformers, its name or "
            "its folder; one of the library tokenizers goes into PreTrainedTokenizerFast."
        )
    return Source(live, name, loaded=named)


def load_tokenizer(name: str) -> Any:
    """Load a tokenizer, and refuse one that was made up because there is none."""
    tokenizer = require("transformers", "hf").AutoTokenizer.from_pretrained(name)
    if len(tokenizer) <= len(set(tokenizer.all_special_ids)):
        raise ValueError(
            f"{name!r} has no tokenizer: the one that transformers makes for it knows special "
            "tokens only. Pass tokenizer=."
        )
    return tokenizer


def load_model(name: str) -> Any:
    """Load a model without its head, in eval mode, and refuse weights that are not there."""
    kind = _saved_as(name)
    # AutoModel would make a decoder too, at random.
    whole = not kind.endswith("EncoderModel")
    return _loaded(getattr(require("transformers", "hf"), "AutoModel" if whole else kind), name)


def load_with_head(name: str) -> Any:
    """Load a model as the class that it was saved as."""
    transformers, kind = require("transformers", "hf"), _saved_as(name)
    if not hasattr(transformers, kind):
        raise ValueError(
            f"model={name!r} was saved as {kind}, which transformers does not have. "
            "Load it yourself and pass the live model."
        )
    return _loaded(getattr(transformers, kind), name)


def _saved_as(name: str) -> str:
    """Name of the class that a checkpoint was written by."""
    if Path(name).is_absolute() and not Path(name).is_dir():
        raise FileNotFoundError(f"model={name!r}: there is no such folder.")
    config = require("transformers", "hf").AutoConfig.from_pretrained(name)
    (kind, *_) = getattr(config, "architectures", None) or ["AutoModel"]
    return str(kind)


def _loaded(kind: Any, name: str) -> Any:
    # Weights that a checkpoint lacks are drawn at random.
    fork = torch.random.fork_rng(devices=[])
    with fork, _quiet(require("transformers.utils.logging", "hf")):
        model, report = kind.from_pretrained(name, output_loading_info=True)
    # A pooler is on top of the hidden states; many checkpoints come without one.
    missing = sorted(key for key in report["missing_keys"] if "pooler" not in key)
    if missing:
        raise ValueError(
            f"model={name!r} lacks {len(missing)} of the weights of {type(model).__name__}, "
            f"such as {missing[0]}: they would be random. Pass a complete checkpoint, "
            "or a live model."
        )
    return model.eval()


@contextmanager
def _quiet(logging: Any) -> Iterator[None]:
    """Keep the loader from reporting that the head was left out, as it shall be."""
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


@contextmanager
def at_rest(source: Source, device: str | torch.device = "auto") -> Iterator[torch.device]:
    """Evaluate without dropout and gradients, on a device; then all is as it was."""
    with ONE_AT_A_TIME, _at_rest(source, device) as place:
        yield place


@contextmanager
def _at_rest(source: Source, device: str | torch.device) -> Iterator[torch.device]:
    model = source.model
    modes = [(module, module.training) for module in model.modules()]
    home = next(model.parameters()).device
    place = _place(source, device, home)
    try:
        model.eval()
        if place != home:
            model.to(place)
        with torch.inference_mode():
            yield place
    finally:
        for module, training in modes:
            module.training = training
        if place != home and not source.loaded:
            model.to(home)


def _place(source: Source, device: str | torch.device, home: torch.device) -> torch.device:
    if device != "auto":
        return torch.device(device)
    if not source.loaded or home.type != "cpu":
        return home
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def require_model(model: Any) -> Any:
    """Refuse what is no model."""
    if isinstance(model, torch.nn.Module) and hasattr(model, "config"):
        return model
    hint = ""
    if type(model).__name__ == "SentenceTransformer":
        hint = " Of a SentenceTransformer, that is model[0].auto_model."
    raise TypeError(
        f"model is a {type(model).__name__}. Pass a transformers model, its name, "
        f"or the folder that it lies in.{hint}"
    )
