"""Other layers in the place of a model's own for a while, whatever the order in which contexts end."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

from torch import nn

from ._capture import ready_to_capture
from ._stack import Stack


@contextmanager
def arranged(model: Any, stack: Stack, order: list[int]) -> Iterator[None]:
    """Put other layers in the place of the list, and the list back.

    Parameters
    ----------
    model : Module
        With a head or without.
    stack : Stack
        Its layers.
    order : list of int
        Which of them then stands in each place.
    """
    ready_to_capture(stack.body)
    change = _Change.to(model, stack, order)
    change.begin()
    try:
        yield
    finally:
        change.end()


@dataclass
class _Moment:
    """What a model has at a moment.

    Parameters
    ----------
    layers : ModuleList
    config : PretrainedConfig
    """

    layers: nn.ModuleList
    config: Any


@dataclass(eq=False)
class _Change:
    """What one context exchanges.

    Parameters
    ----------
    stack : Stack
    before, after : _Moment
        `before` is what comes back.
    readers : list of Module
        The parts of the model that hold its configuration.
    settings : dict
        What the configuration said at first.
    """

    stack: Stack
    before: _Moment
    after: _Moment
    readers: list[nn.Module]
    settings: dict[str, Any]

    @classmethod
    def to(cls, model: nn.Module, stack: Stack, order: list[int]) -> _Change:
        """Prepare the layers, and a configuration that says how many they are.

        It is a copy, for several models may have been made from one configuration.
        """
        layers = nn.ModuleList(stack.layers[i] for i in order)
        layers.training = stack.layers.training
        before = _Moment(stack.layers, stack.body.config)
        after = _Moment(layers, copy.copy(before.config))
        after.config.num_hidden_layers = len(layers)
        parts = {*model.modules(), *stack.body.modules()}
        readers = [part for part in parts if vars(part).get("config") is before.config]
        return cls(stack, before, after, readers, dict(vars(before.config)))

    def begin(self) -> None:
        """Exchange them."""
        with _LOCK:
            _OPEN.setdefault(self.stack.holder, []).append(self)
            setattr(self.stack.holder, self.stack.name, self.after.layers)
            for part in self.readers:
                part.config = self.after.config

    def end(self) -> None:
        """Put back what was there, or leave that to the context that was entered next and still lasts."""
        with _LOCK:
            changes = _OPEN[self.stack.holder]
            place = changes.index(self)
            del changes[place]
            if place < len(changes):
                changes[place].before = self.before
            else:
                setattr(self.stack.holder, self.stack.name, self.before.layers)
            for part in self.readers:
                if part.config is self.after.config:
                    part.config = self.before.config
            self._hand_on()

    def _hand_on(self) -> None:
        """What was set meanwhile, such as the kind of attention, stays; the number of layers does not."""
        found, to = copy.copy(self.after.config), self.before.config
        found.num_hidden_layers = to.num_hidden_layers
        former = self.settings
        changed = {
            name: value
            for name, value in vars(found).items()
            if name not in former or former[name] is not value
        }
        vars(to).update(changed)


#: The contexts that last, in the order in which they were entered, by the holder of the layers.
_OPEN: WeakKeyDictionary[nn.Module, list[_Change]] = WeakKeyDictionary()
_LOCK = Lock()
