"""Every layer of one model with every layer of another: what is fitted, to what, and how it is judged."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from _ceiling import TwoNetworks
from _judging import INN, RIDGES, START, Array, Split, TwoRidges
from _models import Record
from _rome import (
    FORWARD,
    MEAN,
    MLP,
    RECIPE_EPOCHS,
    Aligners,
    Mean,
    fitted,
    judged,
    linear_bijections,
    network,
    published,
)
from sklearn.model_selection import train_test_split
from tqdm import tqdm

from sklearn_bijection.metrics import mse, pwcca

PWCCA, CHANCE = "PWCCA (a similarity)", "PWCCA of rows paired at random"
ONE_EACH, SHARED = "one map per layer", "one map for all layers"
UNPAIRED = "unpaired train"
NETWORKS = ("none", "start", "diagonal", "all")

Place = tuple[int, int]


@dataclass(frozen=True)
class Layers:
    """Hidden states of two models on the same sentences.

    Parameters
    ----------
    first, second : ndarray of shape (n_layers, n_texts, width)
    """

    first: Array
    second: Array

    @property
    def every(self) -> list[Place]:
        """All pairs of layers."""
        return list(product(range(len(self.first)), range(len(self.second))))

    @property
    def same(self) -> list[Place]:
        """Pairs of the same layer."""
        return [(i, j) for i, j in self.every if i == j]

    def split(self, *places: Place) -> Split:
        """Rows of some pairs of layers, one below the other; the same sentences are held out in each."""
        train, test = train_test_split(
            np.arange(self.first.shape[1]), test_size=0.2, random_state=0
        )
        stacks = (
            np.concatenate([states[place[side], rows] for place in places])
            for rows, (side, states) in product((train, test), enumerate((self.first, self.second)))
        )
        return Split(*stacks)


class Fit(NamedTuple):
    """An aligner, the pairs of layers it learns from, and those it is judged at."""

    maps: str
    method: str
    aligner: Any
    learned: list[Place]
    judged: list[Place]


def fits(layers: Layers, networks: str, epochs: int | None) -> list[Fit]:
    """Everything there is to fit, the quick ones first."""
    quick = {**linear_bijections(), RIDGES: TwoRidges(), MEAN: Mean()}
    quick |= {} if networks == "none" else {START: network(0)}
    found = list(each(quick, layers.every))
    shared = dict(quick)
    if networks in ("diagonal", "all"):
        ours: Aligners = {INN: network(epochs), MLP: ceiling(epochs)}
        places = layers.every if networks == "all" else layers.same
        found += each({**ours, **published(epochs)}, places)
        as_many_steps = -(-(epochs or RECIPE_EPOCHS) // len(layers.same))
        shared |= {**ours, **published(as_many_steps)}
    return found + [Fit(SHARED, *item, layers.same, layers.every) for item in shared.items()]


def each(aligners: Aligners, places: Sequence[Place]) -> Iterator[Fit]:
    """Every aligner at every place by itself."""
    for place, (name, aligner) in product(places, aligners.items()):
        yield Fit(ONE_EACH, name, aligner, [place], [place])


def ceiling(epochs: int | None) -> TwoNetworks:
    """What there is to be had when no bijection is asked for."""
    return TwoNetworks() if epochs is None else TwoNetworks(epochs=epochs)


def compare(models: str, layers: Layers, networks: str, epochs: int | None) -> Iterator[Record]:
    """Figures of two models: of every fit, and of the similarity."""
    yield from similarities(models, layers)
    bar = tqdm(fits(layers, networks, epochs), desc=models)
    for fit in bar:
        bar.set_postfix_str(f"{fit.method}, {fit.maps}")
        aligner = fitted(fit.aligner, layers.split(*fit.learned))
        for i, j in fit.judged:
            split = layers.split((i, j))
            where = {
                "models": models,
                "maps": fit.maps,
                "method": fit.method,
                "layer": i,
                "other": j,
            }
            for record in (*judged(aligner, split), unpaired(aligner, split)):
                yield {**where, **record}


def similarities(models: str, layers: Layers) -> Iterator[Record]:
    """PWCCA of all pairs of layers, and what it is where no row belongs to its partner."""
    order = np.random.default_rng(0).permutation(layers.first.shape[1])
    for (i, j), method in product(layers.every, (PWCCA, CHANCE)):
        X, Y = layers.first[i], layers.second[j]
        value = pwcca(X, Y if method == PWCCA else Y[order])
        where = {"models": models, "maps": ONE_EACH, "method": method, "layer": i, "other": j}
        yield {**where, "rows": "all", "way": FORWARD, "measure": "PWCCA", "value": value}


def unpaired(aligner: Any, split: Split) -> Record:
    """Error of X of the first half of the rows against y of the second."""
    half = len(split.X) // 2
    value = mse(split.y[half : 2 * half], aligner.transform(split.X[:half]))
    return {"rows": UNPAIRED, "way": FORWARD, "measure": "MSE", "value": value}
