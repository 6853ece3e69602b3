"""What goes into the parts of a layer and comes out of them, watched while a model runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import torch
from torch import Tensor, nn

from ._stack import Stack

Component: TypeAlias = Literal["attention", "ffn", "layer", "intermediate"]
COMPONENTS = ("attention", "ffn", "layer", "intermediate")


class Names(NamedTuple):
    """Where the parts of a layer lie in it.

    Parameters
    ----------
    projection : str
        The last linear map of the attention.
    attention_norm : str
        What normalises the sum of the attention and its input.
    first, second : str
        The two linear maps of the feed-forward network.
    ffn_norm : str
        What normalises the sum of the network and its input.
    """

    projection: str = "attention.output.dense"
    attention_norm: str = "attention.output.LayerNorm"
    first: str = "intermediate.dense"
    second: str = "output.dense"
    ffn_norm: str = "output.LayerNorm"


_NAMES = {
    "mpnet": Names("attention.attn.o", "attention.LayerNorm"),
    "distilbert": Names(
        "attention.out_lin", "sa_layer_norm", "ffn.lin1", "ffn.lin2", "output_layer_norm"
    ),
}


class Tap(NamedTuple):
    """One place to watch.

    Parameters
    ----------
    name : str
        A module, by its name in the layer; "" is the layer.
    side : {"in", "out"}
        Whether what it is given, or what it gives.
    """

    name: str
    side: Literal["in", "out"]


@dataclass(frozen=True)
class Part:
    """A part of a layer, as a function of the states of all tokens.

    Parameters
    ----------
    before, after : Tap
        Where its input and its output are seen.
    norm : str or None
        What normalises the output after it was seen.
    """

    before: Tap
    after: Tap
    norm: str | None = None

    @classmethod
    def of(cls, stack: Stack, component: Component, *, residual: bool, norm: bool) -> Part:
        """What the arguments of `component_io` mean for a model."""
        names = _NAMES.get(stack.body.config.model_type, Names())
        _check(component, residual, norm)
        if component == "layer":
            return cls(Tap("", "in"), Tap("", "out"))
        if component == "intermediate":
            return cls(Tap(names.first, "in"), Tap(names.second, "in"))
        if component == "attention":
            return cls._normalised(
                Tap("", "in"), names.projection, names.attention_norm, residual, norm
            )
        return cls._normalised(Tap(names.first, "in"), names.second, names.ffn_norm, residual, norm)

    @classmethod
    def _normalised(cls, before: Tap, last: str, norm: str, residual: bool, normed: bool) -> Part:
        """A part that ends in a linear map, to which its input is added before it is normalised."""
        if residual:
            return cls(before, Tap(norm, "out" if normed else "in"))
        return cls(before, Tap(last, "out"), norm if normed else None)

    def io(self, recorder: Recorder, place: int) -> tuple[Tensor, Tensor]:
        """Input and output (n_texts, length, any width) at one place in the stack, of the last run."""
        given, taken = (recorder.seen(place, tap) for tap in (self.before, self.after))
        if self.norm is None:
            return given, taken
        # Not a call, which would run the hooks on it once more than the model does.
        return given, part_of(recorder.layers[place], self.norm).forward(taken)


def part_of(layer: nn.Module, name: str) -> nn.Module:
    """A module by its name in a layer, or an error that says what stands there instead of a layer."""
    try:
        return layer.get_submodule(name)
    except AttributeError as error:
        raise TypeError(
            f"model has a {type(layer).__name__} in the place of a layer, and that has no {name!r}. "
            "Pass a model whose layers are those of transformers, without wrappers around them."
        ) from error


def _check(component: object, residual: bool, norm: bool) -> None:
    if component not in COMPONENTS:
        known = ", ".join(map(repr, COMPONENTS))
        raise ValueError(f"component={component!r} is not known. Choose from {known}.")
    if component in ("layer", "intermediate"):
        for name, value in (("residual", residual), ("norm", norm)):
            if not value:
                raise ValueError(
                    f"{name}={value!r} says nothing about component={component!r}, of which it can "
                    "not be left out. Pass component='attention' or 'ffn'."
                )


class Recorder:
    """What passed some places of the layers in the last run of a model.

    Parameters
    ----------
    layers : ModuleList
    places : collection of int
        Positions in the list; the others are let go by.
    taps : sequence of Tap
    """

    def __init__(self, layers: nn.ModuleList, places: Collection[int], taps: Sequence[Tap]) -> None:
        self.layers, self.places, self.taps = layers, frozenset(places), taps
        self.restart()

    def restart(self) -> None:
        """Forget the last run."""
        self._place = -1
        self._found: defaultdict[tuple[int, Tap], list[Tensor]] = defaultdict(list)

    def seen(self, place: int, tap: Tap) -> Tensor:
        """What passed there (n_texts, length, width)."""
        # A network may take the tokens of a batch a chunk at a time.
        chunks = self._found[place, tap]
        return chunks[0] if len(chunks) == 1 else torch.cat(chunks, dim=1)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Look on, until the end or an error."""
        # What stands in several places is one module, which is called once for each.
        layers = dict.fromkeys(self.layers)
        seen = dict.fromkeys(
            (part_of(layer, tap.name), tap) for layer in layers for tap in self.taps
        )
        with ExitStack() as handles:
            for layer in layers:
                handles.callback(layer.register_forward_pre_hook(self._step).remove)
            for module, tap in seen:
                handles.callback(module.register_forward_hook(self._note(tap)).remove)
            yield

    def _step(self, layer: nn.Module, args: Any) -> None:
        self._place += 1

    def _note(self, tap: Tap) -> Callable[[nn.Module, Any, Any], None]:
        def note(module: nn.Module, args: Any, found: Any) -> None:
            if self._place in self.places:
                passed = args if tap.side == "in" else found
                first = passed[0] if isinstance(passed, tuple) else passed
                self._found[self._place, tap].append(first)

        return note
