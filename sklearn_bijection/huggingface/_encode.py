"""Texts as token ids: tokenized once, cut where they must be, batched by length."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .._compat import stacklevel_of_caller
from ._choices import check_count
from ._source import ONE_AT_A_TIME, Source
from ._texts import Text, split_pairs

Index = NDArray[np.intp]
_AT_A_TIME = 1024
_SPECIAL = -1


@dataclass(frozen=True)
class Batch:
    """Some texts as tensors, padded on the right.

    Parameters
    ----------
    texts : ndarray of shape (n_texts,)
        Their positions in the caller's order.
    inputs : dict of Tensor
        What the model takes.
    mask : Tensor of shape (n_texts, length)
        True where there is a token.
    """

    texts: Index
    inputs: dict[str, Tensor]
    mask: Tensor


@dataclass(frozen=True)
class Encoded:
    """Token ids of all texts, one after the other.

    Parameters
    ----------
    ids : ndarray of shape (n_tokens,)
    starts : ndarray of shape (n_texts + 1,)
        Where each text begins, and the last one ends.
    types : ndarray of shape (n_tokens,) or None
        Which text of a pair a token belongs to, for models that want to know.
    words : ndarray of shape (n_tokens,) or None
        Which word of its text, counted over a pair; -1 for a special token or white space.
    padding : int
        Id that fills a batch up.
    """

    ids: NDArray[np.int32]
    starts: Index
    types: NDArray[np.int32] | None
    words: NDArray[np.int32] | None
    padding: int

    @property
    def lengths(self) -> Index:
        """Number of tokens of each text."""
        return np.diff(self.starts)

    @property
    def order(self) -> Index:
        """Texts from the longest to the shortest: the batch that needs most memory comes first."""
        return np.argsort(-self.lengths, kind="stable")

    def digest(self) -> str:
        """A short name of exactly these tokens, and of what is known of them."""
        found = blake2b(self.ids.tobytes(), digest_size=16)
        for known in (self.starts, self.types, self.words):
            found.update(b"none" if known is None else known.tobytes())
        return found.hexdigest()

    def tokens_of(self, texts: Index) -> Index:
        """Positions of all tokens of some texts, text by text."""
        return np.concatenate([np.arange(self.starts[i], self.starts[i + 1]) for i in texts])

    def batch(self, texts: Index, device: torch.device, length: int | None = None) -> Batch:
        """Pad some texts to the longest of them, or to a given length, and send them over."""
        lengths = self.lengths[texts]
        mask = np.arange(length or lengths.max()) < lengths[:, None]
        tokens = self.tokens_of(texts)
        inputs = {"input_ids": self._filled(mask, self.ids[tokens], self.padding)}
        if self.types is not None:
            inputs["token_type_ids"] = self._filled(mask, self.types[tokens], 0)
        on = {name: torch.from_numpy(a).to(device) for name, a in inputs.items()}
        there = torch.from_numpy(mask).to(device)
        return Batch(texts, {**on, "attention_mask": there.long()}, there)

    def batches(
        self, size: int, device: torch.device, *, first: int = 0, length: int | None = None
    ) -> Iterator[Batch]:
        """All texts in order of length, without the `first` ones of that order."""
        order = self.order
        for start in range(first, len(order), size):
            yield self.batch(order[start : start + size], device, length)

    @staticmethod
    def _filled(mask: NDArray[np.bool_], values: NDArray[Any], fill: int) -> NDArray[np.int64]:
        table = np.full(mask.shape, fill, dtype=np.int64)
        table[mask] = values
        return table


def encode(
    source: Source, texts: list[Text], max_length: int | None, *, words: bool = False
) -> Encoded:
    """Tokenize all texts, and warn once of those that had to be cut.

    Parameters
    ----------
    source : Source
    texts : list of str or of pairs of str
    max_length : int or None
        Most tokens of a text; None takes the most that the model can.
    words : bool, default=False
        Find out which word each token belongs to.

    Returns
    -------
    encoded : Encoded
    """
    if max_length is not None:
        check_count(max_length, "max_length")
    limit = _limit(source, max_length, pairs=not isinstance(texts[0], str))
    if words and not source.tokenizer.is_fast:
        raise ValueError(
            f"{type(source.tokenizer).__name__} cannot tell which word a token belongs to. "
            "Pass a fast tokenizer."
        )
    tokenize = _Tokenizer(source.tokenizer, limit, words)
    with ONE_AT_A_TIME:
        parts = [tokenize(texts[i : i + _AT_A_TIME]) for i in range(0, len(texts), _AT_A_TIME)]
    rows = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
    if tokenize.n_cut:
        warnings.warn(
            f"{tokenize.n_cut} of {len(texts)} texts have more than max_length={limit} tokens and "
            "were cut. Split them, or raise max_length if the model takes more.",
            UserWarning,
            stacklevel=stacklevel_of_caller(),
        )
    n_types = getattr(source.body.config, "type_vocab_size", None)
    typed = source.knows_types and n_types != 0
    encoded = Encoded(
        ids=rows["input_ids"],
        starts=np.concatenate([[0], np.cumsum(rows["lengths"])]).astype(np.intp),
        types=rows.get("token_type_ids") if typed else None,
        words=rows.get("words"),
        padding=padding_id(source),
    )
    _require_known_ids(source, encoded)
    return encoded


class _Tokenizer:
    """One setting of a tokenizer, for a part of the texts at a time."""

    def __init__(self, tokenizer: Any, limit: int | None, words: bool) -> None:
        self.tokenizer, self.limit, self.words = tokenizer, limit, words
        self.n_cut = 0

    def __call__(self, texts: list[Text]) -> dict[str, NDArray[np.int32]]:
        """Ids, types and words of some texts, each no longer than the limit, one after the other."""
        rows = self._rows(texts)
        lengths = np.array([len(row) for row in rows["input_ids"]], dtype=np.int32)
        return {key: _joined(parts) for key, parts in rows.items()} | {"lengths": lengths}

    def _rows(self, texts: list[Text]) -> dict[str, list[Any]]:
        found = self._run(texts)
        long = [
            i for i, ids in enumerate(found["input_ids"]) if self.limit and len(ids) > self.limit
        ]
        if long:
            self.n_cut += len(long)
            cut = self._run([texts[i] for i in long], truncation=True, max_length=self.limit)
            for key, rows in cut.items():
                for i, row in zip(long, rows, strict=True):
                    found[key][i] = row
        return self._without_empty(found)

    def _run(self, texts: list[Text], **options: Any) -> dict[str, list[Any]]:
        first, second = split_pairs(texts)
        if self.words:
            options |= {"return_offsets_mapping": True, "return_special_tokens_mask": True}
        options.setdefault("truncation", False)
        encoding = self.tokenizer(
            first, second, padding=False, return_attention_mask=False, verbose=False, **options
        )
        kept = {key: encoding[key] for key in ("input_ids", "token_type_ids") if key in encoding}
        if self.words:
            cut = bool(options["truncation"])
            kept["words"] = [_words_of(encoding, i, text, cut) for i, text in enumerate(texts)]
        return kept

    def _without_empty(self, found: dict[str, list[Any]]) -> dict[str, list[Any]]:
        """Give texts without any token the token that begins, or ends, a text."""
        for i, ids in enumerate(found["input_ids"]):
            if not len(ids):
                values = {"input_ids": _lone_token(self.tokenizer), "words": _SPECIAL}
                for key, rows in found.items():
                    rows[i] = [values.get(key, 0)]
        return found


def _words_of(encoding: Any, i: int, text: Text, cut: bool) -> list[int]:
    """Number of the word that each token lies in; words are what stands between white space.

    A word of which a cut has left a part is no word any more: its tokens count as special.
    """
    parts = (text,) if isinstance(text, str) else text
    spans = [[m.span() for m in re.finditer(r"\S+", part)] for part in parts]
    begins = [np.array([begin for begin, _ in of_part], dtype=np.intp) for of_part in spans]
    offset = (0, len(begins[0]))
    words: list[int] = []
    seen: dict[int, tuple[int, int]] = {}
    offsets, sequences = encoding["offset_mapping"][i], encoding.sequence_ids(i)
    for (start, end), sequence in zip(offsets, sequences, strict=True):
        # The last character decides, white space aside: some tokens begin with what stands before
        # their word, some end in what stands behind it, and some are nothing else.
        shown = "" if sequence is None else parts[sequence][start:end].rstrip()
        if sequence is None or not shown:
            words.append(_SPECIAL)
            continue
        place = int(np.searchsorted(begins[sequence], start + len(shown) - 1, side="right")) - 1
        word = offset[sequence] + place
        least, most = seen.get(word, (start, end))
        seen[word] = min(least, start), max(most, end)
        words.append(word)
    if not cut:
        return words
    whole = [span for of_part in spans for span in of_part]
    left = {w for w, (least, most) in seen.items() if least > whole[w][0] or most < whole[w][1]}
    return [_SPECIAL if word in left else word for word in words]


def _lone_token(tokenizer: Any) -> int:
    names = ("bos", "cls", "eos", "sep", "pad", "unk")
    known = (getattr(tokenizer, f"{name}_token_id") for name in names)
    return next((token for token in known if token is not None), 0)


def padding_id(source: Source) -> int:
    """Id that stands where there is no token: RoBERTa counts its positions by it."""
    config, size = source.body.config, _n_tokens(source)
    known = (source.tokenizer.pad_token_id, getattr(config, "pad_token_id", None))
    return next((token for token in known if token is not None and 0 <= token < size), 0)


def _n_tokens(source: Source) -> float:
    """Number of tokens that the model knows; some, of characters, know any."""
    try:
        return int(source.body.get_input_embeddings().weight.shape[0])
    except (AttributeError, NotImplementedError):
        return np.inf


def _limit(source: Source, max_length: int | None, *, pairs: bool) -> int | None:
    if max_length is None:
        return source.max_length
    special = source.tokenizer.num_special_tokens_to_add(pair=pairs)
    if max_length <= special:
        raise ValueError(
            f"max_length={max_length} leaves no room beside {special} special tokens. Raise it."
        )
    most = source.n_positions
    if most is not None and max_length > most:
        raise ValueError(
            f"max_length={max_length} exceeds the {most} positions of "
            f"{type(source.model).__name__}. Lower it or pass None."
        )
    return max_length


def _require_known_ids(source: Source, encoded: Encoded) -> None:
    size = _n_tokens(source)
    greatest = int(encoded.ids.max())
    if greatest >= size:
        raise ValueError(
            f"The tokenizer gives the token id {greatest}, but {type(source.model).__name__} knows "
            f"only {size} tokens. Pass the tokenizer that belongs to the model."
        )
    n_types = getattr(source.body.config, "type_vocab_size", None)
    if encoded.types is not None and n_types is not None and encoded.types.max() >= n_types:
        raise ValueError(
            f"The tokenizer marks the second text of a pair, and {type(source.model).__name__} "
            "has no embedding for that. Pass single texts, or another model."
        )


def _joined(rows: list[Any]) -> NDArray[np.int32]:
    return np.concatenate([np.asarray(row, dtype=np.int32) for row in rows])
