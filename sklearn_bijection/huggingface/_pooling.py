"""From hidden states of tokens to rows: one for each text, token or word."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol, TypeAlias

import numpy as np
import torch
from torch import Tensor

from ._encode import Batch, Encoded, Index

Pool: TypeAlias = Callable[[Tensor, Tensor], Tensor]
Pooling: TypeAlias = Literal["mean", "cls", "last", "max", "padded_mean", "tokens", "words"] | Pool


def mean(hidden: Tensor, mask: Tensor) -> Tensor:
    """Mean over the tokens of a text."""
    weights = mask.to(hidden.dtype)
    # A product and not a masked sum: it needs no copy of the states.
    return torch.bmm((weights / weights.sum(1, keepdim=True))[:, None], hidden)[:, 0]


def padded_mean(hidden: Tensor, mask: Tensor) -> Tensor:
    """Mean over all positions, padding too."""
    return hidden.mean(1)


def cls(hidden: Tensor, mask: Tensor) -> Tensor:
    """State of the first token."""
    return hidden[:, 0]


def last(hidden: Tensor, mask: Tensor) -> Tensor:
    """State of the last token that is not padding."""
    return hidden[torch.arange(len(hidden), device=hidden.device), mask.sum(1) - 1]


def greatest(hidden: Tensor, mask: Tensor) -> Tensor:
    """Greatest value of each coordinate over the tokens of a text."""
    return hidden.masked_fill(~mask[..., None], -torch.inf).amax(1)


POOLS: dict[str, Pool] = {
    "mean": mean,
    "cls": cls,
    "last": last,
    "max": greatest,
    "padded_mean": padded_mean,
}
BY_TOKEN = ("tokens", "words")


class Rows(Protocol):
    """How many rows a text gives, and what is in them."""

    n_rows: int

    def of(self, texts: Index) -> Index:
        """Positions of the rows of some texts."""
        ...

    def __call__(self, hidden: Tensor, batch: Batch) -> Tensor:
        """Rows of a batch, from one layer's states (n_texts, length, width)."""
        ...


class TextRows:
    """One row for each text.

    Parameters
    ----------
    pool : callable
        States (n_texts, length, width) and mask (n_texts, length) to rows (n_texts, any width).
    n_texts : int
    """

    def __init__(self, pool: Pool, n_texts: int) -> None:
        self.pool, self.n_rows = pool, n_texts

    def of(self, texts: Index) -> Index:
        """Texts are rows."""
        return texts

    def __call__(self, hidden: Tensor, batch: Batch) -> Tensor:
        """Pool, and see that a pool of the caller gives what can be stored."""
        rows = self.pool(hidden, batch.mask)
        if not isinstance(rows, Tensor) or rows.ndim != 2 or len(rows) != len(hidden):
            came = tuple(rows.shape) if isinstance(rows, Tensor) else type(rows).__name__
            raise ValueError(
                f"pooling gave {came} for states of shape {tuple(hidden.shape)}. "
                f"It must return a tensor of shape ({len(hidden)}, n_columns)."
            )
        return rows


class TokenRows:
    """One row for each token that is not padding.

    Parameters
    ----------
    encoded : Encoded
    """

    def __init__(self, encoded: Encoded) -> None:
        self.encoded, self.n_rows = encoded, len(encoded.ids)
        self.text = np.repeat(np.arange(len(encoded.lengths)), encoded.lengths)
        self.token = np.arange(self.n_rows) - np.repeat(encoded.starts[:-1], encoded.lengths)
        self.word = np.asarray(encoded.words, dtype=np.intp)

    def of(self, texts: Index) -> Index:
        """All tokens of the texts."""
        return self.encoded.tokens_of(texts)

    def __call__(self, hidden: Tensor, batch: Batch) -> Tensor:
        """States of tokens, text by text."""
        return hidden[batch.mask]


class WordRows:
    """One row for each word: the mean over its tokens.

    Parameters
    ----------
    encoded : Encoded
    """

    def __init__(self, encoded: Encoded) -> None:
        tokens = TokenRows(encoded)
        self.tokens, inside = tokens, tokens.word >= 0
        stride = int(tokens.word.max()) + 1
        keys, first, rows = np.unique(
            tokens.text[inside] * stride + tokens.word[inside],
            return_index=True,
            return_inverse=True,
        )
        self.text, self.word = keys // max(stride, 1), keys % max(stride, 1)
        self.token = tokens.token[inside][first]
        self.n_rows = len(keys)
        self.row_of_token = np.full(len(inside), -1, dtype=np.intp)
        self.row_of_token[inside] = rows

    def of(self, texts: Index) -> Index:
        """All words of the texts, in order."""
        rows = np.unique(self.row_of_token[self.tokens.of(texts)])
        return rows[rows >= 0]

    def __call__(self, hidden: Tensor, batch: Batch) -> Tensor:
        """Mean over the tokens of each word."""
        rows, place = np.unique(self.row_of_token[self.tokens.of(batch.texts)], return_inverse=True)
        states, index = hidden[batch.mask], torch.from_numpy(place).to(hidden.device)
        sums = states.new_zeros(len(rows), states.shape[-1]).index_add_(0, index, states)
        means = sums / torch.bincount(index)[:, None]
        # Special tokens belong to no word, and come first.
        return means[int(rows[0] < 0) :]


def rows_for(pooling: Pooling, encoded: Encoded) -> Rows:
    """What a value of the argument `pooling` means for these texts."""
    if pooling == "tokens":
        return TokenRows(encoded)
    if pooling == "words":
        return WordRows(encoded)
    pool = pooling if callable(pooling) else POOLS[pooling]
    return TextRows(pool, len(encoded.lengths))


def check_pooling(pooling: object) -> None:
    """Refuse what is neither known nor callable."""
    named = isinstance(pooling, str) and pooling in (*POOLS, *BY_TOKEN)
    if not callable(pooling) and not named:
        known = ", ".join(map(repr, (*POOLS, *BY_TOKEN)))
        raise ValueError(f"pooling={pooling!r} is not known. Choose from {known}, or a callable.")
