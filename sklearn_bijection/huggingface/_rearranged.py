"""Layers of an encoder removed, exchanged or shared, for as long as a context lasts."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from numbers import Integral
from typing import Any

import numpy as np

from ._arranged import arranged
from ._choices import Layers, choose_layers
from ._source import require_model
from ._stack import Stack


@contextmanager
def removed_layers(model: Any, layers: Layers) -> Iterator[Any]:
    """Let a model do without some of its layers.

    Parameters
    ----------
    model : transformers.PreTrainedModel
        A live encoder of the BERT family, with a head or without. It is changed, and then put back.
    layers : int or sequence of int
        The layers to leave out; 0 is the first layer, -1 the last. At least one must stay.

    Yields
    ------
    model : transformers.PreTrainedModel
        The same model. Those of its layers that stay are numbered anew, from 0 on.

    Raises
    ------
    TypeError
        If the model is given by name, is a decoder, or is not of the BERT family.
    ValueError
        If a layer is out of range, or none stays.

    See Also
    --------
    swapped_layers, reordered_layers : The same layers in another order.
    shared_layers : Some layers in the place of others.

    Notes
    -----
    Everything that asks the model inside the context asks the changed one: it has fewer hidden states,
    other weights by name, and for `HiddenStateExtractor` another identity, so that nothing kept from
    outside is taken for its own. Contexts nest; numbers count what the model has at that moment. At the
    end, also after an error, the layers are the same objects in the same list. Where a context ends
    before one that was entered after it, as in two threads, the model stays as the later one has it;
    when the last of them ends, it is as before the first.

    What is done to the model inside (`eval`, `to`, a training step) is done to the layers that it has
    there. Other threads see the changed model too. Its configuration is a copy meanwhile, so that other
    models made from the same one keep theirs; pass the model with its head where the head is used.

    Half of a stitched model can be changed too: its `top` or its `bottom`, whose layers are numbered from
    0 on. The model that the half was taken from keeps its layers.

    Families: BERT, RoBERTa (XLM-R, CamemBERT), DistilBERT, ELECTRA, MPNet.

    Examples
    --------
    >>> from transformers import BertConfig, BertModel
    >>> from sklearn_bijection.huggingface import removed_layers
    >>> size = {"hidden_size": 8, "num_hidden_layers": 4, "num_attention_heads": 2}
    >>> model = BertModel(BertConfig(vocab_size=50, **size))
    >>> with removed_layers(model, [1, -1]):
    ...     print(len(model.encoder.layer), model.config.num_hidden_layers)
    2 2
    >>> len(model.encoder.layer), model.config.num_hidden_layers
    (4, 4)
    """
    stack = _live_stack(model)
    n_layers = len(stack.layers)
    gone = set(choose_layers(layers, n_layers, "layers"))
    if len(gone) == n_layers:
        raise ValueError(
            f"layers={layers!r} are all {n_layers} layers of this model. Leave at least one."
        )
    with arranged(model, stack, [i for i in range(n_layers) if i not in gone]):
        yield model


@contextmanager
def swapped_layers(model: Any, i: int, j: int) -> Iterator[Any]:
    """Let two layers of a model change places.

    Parameters
    ----------
    model : transformers.PreTrainedModel
        A live encoder of the BERT family, with a head or without. It is changed, and then put back.
    i, j : int
        The two layers; 0 is the first layer, -1 the last.

    Yields
    ------
    model : transformers.PreTrainedModel
        The same model.

    Raises
    ------
    TypeError
        If the model is given by name, is a decoder, or is not of the BERT family, or a layer is not an
        int.
    ValueError
        If a layer is out of range.

    See Also
    --------
    removed_layers : How a changed model behaves.

    References
    ----------
    S. Zhao et al., "Of non-linearity and commutativity in BERT", 2021, arXiv 2101.04547, measure by
    such exchanges how far the layers commute.

    Examples
    --------
    >>> import torch
    >>> from transformers import BertConfig, BertModel
    >>> from sklearn_bijection.huggingface import swapped_layers
    >>> size = {"hidden_size": 8, "num_hidden_layers": 4, "num_attention_heads": 2}
    >>> model = BertModel(BertConfig(vocab_size=50, **size)).eval()
    >>> ids = torch.arange(5)[None]
    >>> before = model(ids).last_hidden_state
    >>> with swapped_layers(model, 0, 3), swapped_layers(model, 3, 0):
    ...     torch.equal(model(ids).last_hidden_state, before)
    True
    """
    stack = _live_stack(model)
    order = list(range(len(stack.layers)))
    first, second = (_choose(number, len(order), name) for number, name in ((i, "i"), (j, "j")))
    order[first], order[second] = second, first
    with arranged(model, stack, order):
        yield model


@contextmanager
def reordered_layers(model: Any, order: Sequence[int]) -> Iterator[Any]:
    """Let a model go through its layers in another order.

    Parameters
    ----------
    model : transformers.PreTrainedModel
        A live encoder of the BERT family, with a head or without. It is changed, and then put back.
    order : sequence of int
        Every layer once: at place k stands the layer that was ``order[k]``. 0 is the first layer, -1
        the last.

    Yields
    ------
    model : transformers.PreTrainedModel
        The same model.

    Raises
    ------
    TypeError
        If the model is given by name, is a decoder, or is not of the BERT family.
    ValueError
        If a layer is out of range, missing or named twice.

    See Also
    --------
    removed_layers : How a changed model behaves.

    Examples
    --------
    >>> from transformers import BertConfig, BertModel
    >>> from sklearn_bijection.huggingface import reordered_layers
    >>> size = {"hidden_size": 8, "num_hidden_layers": 3, "num_attention_heads": 2}
    >>> model = BertModel(BertConfig(vocab_size=50, **size))
    >>> layers = list(model.encoder.layer)
    >>> with reordered_layers(model, [2, 0, 1]):
    ...     print([layers.index(layer) for layer in model.encoder.layer])
    [2, 0, 1]
    """
    stack = _live_stack(model)
    n_layers = len(stack.layers)
    chosen = [_choose(number, n_layers, "order") for number in np.atleast_1d(order).tolist()]
    if sorted(chosen) != list(range(n_layers)):
        raise ValueError(
            f"order={order!r} must name each of the {n_layers} layers of this model once. "
            "To leave some out or use some twice, take removed_layers or shared_layers."
        )
    with arranged(model, stack, chosen):
        yield model


@contextmanager
def shared_layers(model: Any, sources: Mapping[int, int]) -> Iterator[Any]:
    """Let some layers of a model stand in the place of others, weights and all.

    Parameters
    ----------
    model : transformers.PreTrainedModel
        A live encoder of the BERT family, with a head or without. It is changed, and then put back.
    sources : mapping of int to int
        For each place the layer that stands there instead: ``{2: 1, 3: 1}`` lets a model of four layers
        use its layer 1 three times over. Layers that are not named stay where they are. 0 is the first
        layer, -1 the last.

    Yields
    ------
    model : transformers.PreTrainedModel
        The same model. The layers are not copied: a training step changes the one that is shared.

    Raises
    ------
    TypeError
        If the model is given by name, is a decoder, or is not of the BERT family, or `sources` is not a
        mapping of ints.
    ValueError
        If a layer is out of range, or a place is named twice.

    See Also
    --------
    removed_layers : How a changed model behaves.

    Notes
    -----
    Inside, `save_pretrained` refuses the model, for it writes no tensor under two names. Save it after
    the context, or save a copy in which each place has weights of its own: of
    ``twin = copy.deepcopy(model)`` replace the layers by ``copy.deepcopy`` of each.

    Examples
    --------
    >>> from transformers import BertConfig, BertModel
    >>> from sklearn_bijection.huggingface import shared_layers
    >>> size = {"hidden_size": 8, "num_hidden_layers": 3, "num_attention_heads": 2}
    >>> model = BertModel(BertConfig(vocab_size=50, **size))
    >>> layers = list(model.encoder.layer)
    >>> with shared_layers(model, {1: 0, -1: 0}):
    ...     print([layers.index(layer) for layer in model.encoder.layer])
    [0, 0, 0]
    """
    stack = _live_stack(model)
    if not isinstance(sources, Mapping):
        raise TypeError(f"sources={sources!r} is not a mapping. Pass {{place: layer}}.")
    n_layers = len(stack.layers)
    places, layers = (
        [_choose(number, n_layers, "sources") for number in side]
        for side in (sources.keys(), sources.values())
    )
    if len(set(places)) < len(places):
        raise ValueError(f"sources={dict(sources)!r} names a place twice. Name each once.")
    order = {place: place for place in range(n_layers)} | dict(zip(places, layers, strict=True))
    with arranged(model, stack, list(order.values())):
        yield model


def _live_stack(model: Any) -> Stack:
    """The layers of a model that its caller holds."""
    if isinstance(model, str | os.PathLike):
        raise TypeError(
            f"model={os.fspath(model)!r} is a name, and a model loaded from it would be changed for "
            "nobody. Load it, and pass the live model."
        )
    stack = Stack.of(require_model(model))
    if getattr(stack.body.config, "is_decoder", False):
        # It keeps keys and values by the number that a layer was made with.
        raise TypeError(f"model is a {type(model).__name__} that is a decoder. Pass an encoder.")
    return stack


def _choose(number: Any, n_layers: int, name: str) -> int:
    if isinstance(number, bool) or not isinstance(number, Integral):
        raise TypeError(f"{name}={number!r} is not a layer. Pass an int.")
    return choose_layers(int(number), n_layers, "layers", name)[0]
