"""Small ReLU networks that read digits: trained here in seconds, cut in two, and put together.

Three hidden layers of 64 units over the 8 x 8 images that scikit-learn brings. Hidden layers are numbered
from 1; layer 0 is the image.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from _plain import one_epoch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor, nn

Array = npt.NDArray[np.floating]

WIDTH, DEPTH = 64, 3


@dataclass(frozen=True, eq=False)
class Digits:
    """Images to learn from, and images to judge by.

    Parameters
    ----------
    images, test_images : Tensor of shape (n_images, 64)
    labels, test_labels : Tensor of shape (n_images,)
    """

    images: Tensor
    test_images: Tensor
    labels: Tensor
    test_labels: Tensor

    @classmethod
    def load(cls) -> Self:
        """A third of the images held out, each class in equal shares."""
        X, y = load_digits(return_X_y=True)
        parts = train_test_split(
            X.astype(np.float32) / 16, y, test_size=1 / 3, stratify=y, random_state=0
        )
        return cls(*map(torch.from_numpy, parts))


class Perceptron(nn.Module):
    """Three hidden layers of rectifiers, from random weights of a seed.

    Parameters
    ----------
    seed : int
    """

    def __init__(self, seed: int) -> None:
        super().__init__()
        widths = [WIDTH] * (DEPTH + 1)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            hidden = [nn.Sequential(nn.Linear(n, m), nn.ReLU()) for n, m in pairwise(widths)]
            self.blocks = nn.ModuleList([*hidden, nn.Linear(WIDTH, 10)])

    def forward(self, images: Tensor) -> Tensor:
        """Logits of the ten digits."""
        return self.above(images, 0)

    def upto(self, images: Tensor, layer: int) -> Tensor:
        """States of a hidden layer."""
        for block in self.blocks[:layer]:
            images = block(images)
        return images

    def above(self, states: Tensor, layer: int) -> Tensor:
        """Logits that the rest of the network makes of the states of a hidden layer."""
        for block in self.blocks[layer:]:
            states = block(states)
        return states


@torch.no_grad()
def states_of(network: Perceptron, images: Tensor, layer: int) -> Array:
    """States of a hidden layer (n_images, 64)."""
    found: Array = network.upto(images, layer).numpy()
    return found


def trained(network: Perceptron, digits: Digits, *, epochs: int, seed: int) -> Perceptron:
    """A trained copy of a network."""
    network = copy.deepcopy(network)
    _fit(network, (digits.images, digits.labels), epochs=epochs, seed=seed)
    return network


def _fit(
    module: nn.Module,
    rows: tuple[Tensor, Tensor],
    *,
    epochs: int,
    seed: int,
    judged: Callable[[], float] = lambda: 0.0,
) -> list[float]:
    """Train by the cross-entropy, and give what `judged` says after each epoch."""
    optimizer = torch.optim.Adam(module.parameters(), lr=1e-3)
    steady = torch.optim.lr_scheduler.ConstantLR(optimizer, factor=1.0)

    def loss(inputs: Tensor, labels: Tensor) -> Tensor:
        return nn.functional.cross_entropy(module(inputs), labels)

    found = []
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for _ in range(epochs):
            one_epoch(loss, rows, optimizer, steady, batch_size=32)
            found.append(judged())
    return found


@torch.no_grad()
def stitched_accuracy(
    first: Perceptron, second: Perceptron, layer: int, bridge: Any, digits: Digits
) -> float:
    """Share of test images that the first up to a layer, a bridge and the rest of the second get right."""
    states = first.upto(digits.test_images, layer)
    return accuracy(second.above(bridge(states), layer), digits.test_labels)


def accuracy(logits: Tensor, labels: Tensor) -> float:
    """Share of right answers."""
    return float((logits.argmax(dim=1) == labels).float().mean())


@dataclass(frozen=True)
class Moved:
    """A network one of whose layers has a matrix put between its linear map and its rectifier.

    Parameters
    ----------
    network : Perceptron
    layer : int
    matrix : Tensor of shape (64, 64) or None
        For states in rows; None leaves the layer as it is.
    """

    network: Perceptron
    layer: int
    matrix: Tensor | None

    @torch.no_grad()
    def states(self, images: Tensor) -> Tensor:
        """What the layer says then."""
        linear, rectifier = self.network.blocks[self.layer - 1]
        found = linear(self.network.upto(images, self.layer - 1))
        return rectifier(found if self.matrix is None else found @ self.matrix)

    def accuracies(self, digits: Digits, *, epochs: int, seed: int) -> list[float]:
        """Accuracy at once, and after each epoch in which all that lies above learns on."""
        rows = self.states(digits.images), digits.labels
        test = self.states(digits.test_images)
        above = nn.Sequential(*copy.deepcopy(self.network.blocks[self.layer :]))

        def judged() -> float:
            with torch.no_grad():
                return accuracy(above(test), digits.test_labels)

        at_once = judged()
        return [at_once, *_fit(above, rows, epochs=epochs, seed=seed, judged=judged)]
