"""Attention of all heads of two models on the same texts, a few texts at a time.

The map of a head on a text of T tokens is taken about uniform attention: the weight of query q on key k is
A[q, k] - 1/T, for tokens alone, padding left out on either side. Each row of it sums to zero, so that a head
that spreads its attention evenly is the origin, and the length of a text, which all heads know, says nothing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment
from tqdm import tqdm

from sklearn_bijection.huggingface import extract_attentions

Array = npt.NDArray[np.floating]
Index = npt.NDArray[np.intp]

CHUNK = 16


@dataclass(frozen=True)
class Heads:
    """How the heads of two models agree over texts, and rows of their weights.

    Parameters
    ----------
    shape : tuple of int
        Layers, and heads of a layer.
    gram : ndarray of shape (2 * n_layers * n_heads, 2 * n_layers * n_heads)
        Inner products of the maps of all heads, those of the first model before those of the second, over
        all pairs of tokens of all texts.
    X, y : ndarray of shape (n_rows, n_layers * n_heads)
        Weights of all heads about uniform attention, a row for a pair of tokens: as many from every text.
    """

    shape: tuple[int, int]
    gram: Array
    X: Array
    y: Array

    @classmethod
    def of(
        cls,
        models: tuple[Any, Any],
        tokenizer: Any,
        texts: Sequence[str],
        n_rows: int,
        others: Sequence[str] | None = None,
    ) -> Self:
        """Ask the first model for `texts`, the second for the same or for `others` of the same lengths."""
        random, gram, rows = np.random.default_rng(0), 0.0, []
        asked = zip(models, (texts, others or texts), strict=True)
        maps = zip(*(maps_of(model, tokenizer, part) for model, part in asked), strict=True)
        for both in tqdm(maps, desc="attention", total=len(texts), unit="text"):
            flat = np.concatenate([part.reshape(-1, part.shape[-1]) for part in both])
            gram = gram + flat @ flat.T
            rows.append(flat[:, random.permutation(flat.shape[1])[: -(-n_rows // len(texts))]])
            shape = both[0].shape[:2]
        X, y = np.split(np.concatenate(rows, axis=1).T, 2, axis=1)
        return cls(shape, np.asarray(gram), X, y)

    @property
    def correlation(self) -> Array:
        """Cosine of the maps of each head of the first (row) and each of the second model."""
        lengths = np.sqrt(self.gram.diagonal())
        cosines = self.gram / np.maximum(np.outer(lengths, lengths), np.finfo(float).tiny)
        half = len(lengths) // 2
        found: Array = cosines[:half, half:]
        return found

    def blocks(self) -> Iterator[tuple[str, slice]]:
        """Name and heads of each layer, and then of all together."""
        n_layers, n_heads = self.shape
        for layer in range(n_layers):
            yield str(layer + 1), slice(layer * n_heads, (layer + 1) * n_heads)
        yield "all", slice(None)


def maps_of(model: Any, tokenizer: Any, texts: Sequence[str]) -> Iterator[Array]:
    """Maps (n_layers, n_heads, T * T) of one text after the other."""
    for start in range(0, len(texts), CHUNK):
        found = extract_attentions(
            model,
            texts[start : start + CHUNK],
            tokenizer=tokenizer,
            reduction="none",
            dtype=np.float64,
            progress=False,
        )
        yield from map(about_uniform, np.moveaxis(found, 2, 0))


def about_uniform(attention: Array) -> Array:
    """Maps of one text, without the padding, less what uniform attention is.

    Parameters
    ----------
    attention : ndarray of shape (n_layers, n_heads, length, length)
        Zero where the query is padding.
    """
    n_tokens = int(attention[0, 0].any(axis=1).sum())
    weights = attention[:, :, :n_tokens, :n_tokens] - 1 / n_tokens
    return weights.reshape(*attention.shape[:2], -1)


def match(correlation: Array) -> Index:
    """For each head of the first model one of the second: the one-to-one choice of greatest sum."""
    matched: Index = linear_sum_assignment(correlation, maximize=True)[1]
    return matched


def strangers(tokenizer: Any, texts: Sequence[str]) -> tuple[list[str], list[str]]:
    """Texts, and for each another one of as many tokens; those that have none are left out."""
    by_length: dict[int, list[str]] = {}
    for text, ids in zip(texts, tokenizer(list(texts), truncation=True)["input_ids"], strict=True):
        by_length.setdefault(len(ids), []).append(text)
    groups = [group for group in by_length.values() if len(group) > 1]
    shifted = [text for group in groups for text in (*group[1:], group[0])]
    return [text for group in groups for text in group], shifted
