"""Two models in one: the lower layers of the first, a fitted map, the upper layers of the second."""

from __future__ import annotations

import copy
import os
from typing import Any

import torch
from torch import Tensor, nn

from ._capture import ready_to_capture
from ._choices import choose_layer
from ._source import body_of, load_with_head, require_model
from ._stack import Stack


class StitchedModel(nn.Module):
    """The lower layers of one encoder, a map, and the upper layers and the head of another.

    `stitch` makes it. Parameters and layers are those of the two models, not copies: what trains it
    trains them, and `train` and `eval` set the mode of theirs.

    Parameters
    ----------
    bottom : Module
        Gives the states that are mapped as ``last_hidden_state``.
    middle : Module
        Maps rows.
    top : Module
        Takes states as ``inputs_embeds``.
    """

    is_stitched = True

    def __init__(self, bottom: nn.Module, middle: nn.Module, top: nn.Module) -> None:
        super().__init__()
        self.bottom, self.middle, self.top = bottom, middle, top

    @property
    def config(self) -> Any:
        """That of the second model, whose head it has."""
        return self.top.config

    @property
    def base_model(self) -> nn.Module:
        """The part that token ids go into."""
        return self.bottom

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        **kwargs: Any,
    ) -> Any:
        """Run both halves.

        Parameters
        ----------
        input_ids : Tensor of shape (n_texts, length)
            In the vocabulary of the first model.
        attention_mask : Tensor of shape (n_texts, length), default=None
        token_type_ids : Tensor of shape (n_texts, length), default=None
            For the first model.
        **kwargs
            Passed to the second model, such as `labels`.

        Returns
        -------
        output : transformers.utils.ModelOutput
            As the second model gives it.
        """
        types = {} if token_type_ids is None else {"token_type_ids": token_type_ids}
        below = self.bottom(
            input_ids=input_ids, attention_mask=attention_mask, **types, return_dict=True
        )
        states = self.map(below.last_hidden_state)
        return self.top(inputs_embeds=states, attention_mask=attention_mask, **kwargs)

    def map(self, states: Tensor) -> Tensor:
        """Map the states of all tokens (n_texts, length, width), padding too."""
        return self.middle(states.flatten(0, 1)).unflatten(0, states.shape[:2])  # type: ignore[no-any-return]


class GivenStates(nn.Module):
    """In the place of embeddings: hands through the states that it is given."""

    def forward(self, *args: Any, inputs_embeds: Tensor | None = None, **kwargs: Any) -> Tensor:
        """Find them among the arguments, which differ between families."""
        if inputs_embeds is not None:
            return inputs_embeds
        for found in args:
            if isinstance(found, Tensor) and found.is_floating_point():
                return found
        raise TypeError(
            "The upper half of a stitched model takes states, and was given none. Pass inputs_embeds=, "
            "or give the token ids to the stitched model."
        )


def stitch(model_a: Any, model_b: Any, layer_a: int, layer_b: int, aligner: Any) -> StitchedModel:
    """Join the lower layers of one encoder to the upper layers of another by a fitted map.

    Parameters
    ----------
    model_a : str, path-like or transformers.PreTrainedModel
        Its layers up to `layer_a` are taken. A head is left out.
    model_b : str, path-like or transformers.PreTrainedModel
        Its layers from `layer_b` on are taken, and its head. By name it is loaded with the head that
        its checkpoint has.
    layer_a, layer_b : int
        Positions in the hidden states, as in `extract_hidden_states`: 0 is the output of the
        embeddings, -1 that of the last layer. The map goes from states `layer_a` of the first model
        to states `layer_b` of the second.
    aligner : fitted aligner, or torch.nn.Module
        Has `to_torch`, or maps rows (n, width_a) to (n, width_b) itself. Fit it on tokens
        (``pooling="tokens"``), for those it has to map.

    Returns
    -------
    stitched : StitchedModel
        In the mode that the two models are in.

    Raises
    ------
    TypeError
        If a model is not of the BERT family, or the aligner cannot become a module.
    ValueError
        If a layer is out of range, or the widths do not fit.

    Notes
    -----
    Families: BERT, RoBERTa (XLM-R, CamemBERT), DistilBERT, ELECTRA, MPNet. Token ids are the first
    model's. What a masked-language head says of them is about the second model's
    vocabulary: a loss has a meaning where the two share a tokenizer. Asked for hidden states it gives
    those of the upper half, from the mapped ones on.

    Examples
    --------
    >>> import torch
    >>> from transformers import BertConfig, BertModel
    >>> from sklearn_bijection.huggingface import stitch
    >>> size = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2}
    >>> config = BertConfig(vocab_size=50, **size)
    >>> model = BertModel(config).eval()
    >>> stitched = stitch(model, model, 1, 1, torch.nn.Identity())
    >>> ids = torch.arange(5)[None]
    >>> torch.equal(stitched(ids).last_hidden_state, model(ids).last_hidden_state)
    True
    """
    lower, upper = _with_head(model_a), _with_head(model_b)
    body_a, body_b = body_of(lower), body_of(upper)
    first, second = (Stack.of(body).layers for body in (body_a, body_b))
    cut_a = choose_layer(layer_a, len(first) + 1, "layer_a")
    cut_b = choose_layer(layer_b, len(second) + 1, "layer_b")
    middle = _module_of(aligner, next(body_b.parameters()))
    _require_widths(middle, body_a, body_b)
    for body in (body_a, body_b):
        ready_to_capture(body)
    bottom = _with_layers(body_a, first[:cut_a])
    top = _with_layers(body_b, second[cut_b:])
    top._modules["embeddings"] = GivenStates()
    if "embeddings_project" in top._modules:
        top._modules["embeddings_project"] = nn.Identity()
    whole = top if upper is body_b else _replaced(upper, upper.base_model_prefix, top)
    return StitchedModel(bottom, middle, whole)


def _with_head(model: Any) -> Any:
    """A live model as it is, or a named one with the head that its checkpoint was written with."""
    if not isinstance(model, str | os.PathLike):
        return require_model(model)
    return load_with_head(os.fspath(model))


def _with_layers(body: Any, layers: nn.ModuleList) -> nn.Module:
    """The body with other layers; all else is shared."""
    stack = Stack.of(body)
    return _replaced(body, stack.place, _replaced(stack.holder, stack.name, layers))


def _replaced(module: Any, name: str, part: nn.Module) -> nn.Module:
    """A shallow copy of a module with one part exchanged, which leaves the module as it was."""
    twin: nn.Module = copy.copy(module)
    twin._modules = {**module._modules, name: part}
    return twin


def _module_of(aligner: Any, like: Tensor) -> nn.Module:
    module = aligner.to_torch(like.dtype) if hasattr(aligner, "to_torch") else aligner
    if not isinstance(module, nn.Module):
        raise TypeError(
            f"aligner is a {type(aligner).__name__}. Pass a fitted aligner or a torch module."
        )
    module.to(like.device)
    return module


def _require_widths(middle: nn.Module, body_a: Any, body_b: Any) -> None:
    sizes = body_a.config.hidden_size, body_b.config.hidden_size
    parameter = next(body_a.parameters())
    rows = torch.zeros(2, sizes[0], device=parameter.device, dtype=parameter.dtype)
    try:
        with torch.no_grad():
            # A copy, for some modules change with what passes through them.
            came = tuple(copy.deepcopy(middle)(rows).shape)
    except RuntimeError as error:
        raise ValueError(
            f"aligner cannot map states of width {sizes[0]} and type {rows.dtype}, which are those "
            f"of the first model: {error}. Fit it on states of these two models."
        ) from error
    if came != (2, sizes[1]):
        raise ValueError(
            f"aligner maps (2, {sizes[0]}) to {came}, but the second model has states of width "
            f"{sizes[1]}. Fit it on states of these two models."
        )
