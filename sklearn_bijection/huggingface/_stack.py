"""Where the layers of an encoder of the BERT family lie."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import nn

from ._source import body_of

# Kinds of models whose body is embeddings followed by a list of layers and nothing else, and where
# that list lies. Others look alike and are not: some end in one more norm, some share positions.
_IN_ENCODER = ("bert", "camembert", "electra", "mpnet", "roberta", "xlm-roberta")
_STACKS = dict.fromkeys(_IN_ENCODER, ("encoder", "layer")) | {
    "distilbert": ("transformer", "layer")
}


@dataclass(frozen=True)
class Stack:
    """The list of layers of a model, and who holds it.

    Parameters
    ----------
    body : Module
        The model without its head.
    place : str
        Name of the holder in the body.
    holder : Module
        The module that has the list.
    name : str
        The list's name in the holder.
    layers : ModuleList
    """

    body: Any
    place: str
    holder: nn.Module
    name: str
    layers: nn.ModuleList

    @classmethod
    def of(cls, model: Any) -> Stack:
        """Find it, or say which models have one that is known here."""
        if getattr(model, "is_stitched", False):
            raise TypeError("model is stitched. Pass one of the two models that it is made of.")
        body = body_of(model)
        path = _STACKS.get(getattr(body.config, "model_type", ""))
        if path is None:
            raise TypeError(
                f"model is a {type(model).__name__}, whose layers are not known here. Pass an encoder "
                f"of one of the kinds {', '.join(_STACKS)}."
            )
        found = cls.find(model)
        if found is None:
            raise TypeError(
                f"model is a {type(model).__name__} without {'.'.join(path)}, where the layers of a "
                f"{body.config.model_type} are. Pass the transformers model itself, not what wraps it."
            )
        return found

    @classmethod
    def find(cls, model: Any) -> Stack | None:
        """The same, or None where no such list is."""
        body = body_of(model)
        place, name = _STACKS.get(getattr(body.config, "model_type", ""), ("", ""))
        holder = getattr(body, place, None)
        layers = getattr(holder, name, None)
        if not isinstance(holder, nn.Module) or not isinstance(layers, nn.ModuleList):
            return None
        return cls(body, place, holder, name, layers)
