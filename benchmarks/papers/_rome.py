"""What the experiments after Ren et al. (2023) share: who takes part, and how a fit is judged.

A judgement is a list of records, one for each number: on rows it has learned from and on rows it has not
seen, forward and inverse.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

import numpy as np
from _judging import CCA, PROCRUSTES, Array, Split
from _published import PublishedCCA, PublishedRecipe, recipes

from sklearn_bijection import CCAAligner, INNAligner, ProcrustesAligner
from sklearn_bijection.metrics import mse, r2

FORWARD, INVERSE = "forward", "inverse"
TRAIN, HELD_OUT = "train", "held-out"
WAYS, ROWS = (FORWARD, INVERSE), (TRAIN, HELD_OUT)

UNSHRUNK = "CCAAligner(shrinkage=0)"
SVCCA = "CCAAligner(explained_variance=0.99)"
MLP = "two MLPs, one each way"

MEAN = "the mean, whatever the row"

PUBLISHED_CCA = "published CCA (V not transposed, units lost)"
PUBLISHED = "published recipe (rates sum to 1e-4, forward only)"
MENDED = ("published recipe + learning rate", "published recipe + learning rate + both errors")

#: Of the published recipe where its learning rate is mended.
RECIPE_EPOCHS = 60
#: Columns that are left of the rows where it is to be quick.
QUICK_WIDTH = 32

Aligners = dict[str, Any]


def published(epochs: int | None = None) -> Aligners:
    """The published recipe, and the same with one fault after the other mended."""
    found = recipes(epochs=epochs or RECIPE_EPOCHS)
    aligners: Aligners = dict(zip((PUBLISHED, *MENDED), found.values(), strict=True))
    # Its learning rates add up to the same however many steps there are: what the others are trained for
    # is wasted on it.
    return {**aligners, PUBLISHED: PublishedRecipe(epochs=min(epochs or 10, 10))}


def linear_bijections() -> Aligners:
    """Closed forms, and the published one beside the same without its faults."""
    return {
        CCA: CCAAligner(),
        SVCCA: CCAAligner(explained_variance=0.99),
        PROCRUSTES: ProcrustesAligner(),
        PUBLISHED_CCA: PublishedCCA(),
        UNSHRUNK: CCAAligner(shrinkage=0),
    }


def network(epochs: int | None = None) -> INNAligner:
    """The network, with its own number of epochs or another; 0 is its start."""
    return INNAligner(**({} if epochs is None else {"max_epochs": epochs}), random_state=0)


class Mean:
    """The mean of y for every X, and the mean of X for every y: the least there is."""

    def fit(self, X: Array, y: Array) -> Self:
        """Remember both."""
        self.x, self.y = X.mean(axis=0), y.mean(axis=0)
        return self

    def transform(self, X: Array) -> Array:
        """Give the mean of y."""
        return np.tile(self.y, (len(X), 1))

    def inverse_transform(self, y: Array) -> Array:
        """Give the mean of X."""
        return np.tile(self.x, (len(y), 1))


def fitted(aligner: Any, split: Split) -> Any:
    """Fit; a network that was broken off from the keyboard is no result."""
    aligner.fit(split.X, split.y)
    if isinstance(aligner, INNAligner) and aligner.net_.interrupted_:
        raise KeyboardInterrupt
    return aligner


def judged(aligner: Any, split: Split) -> Iterator[Mapping[str, Any]]:
    """R² and mean squared error of a fitted aligner, on both kinds of rows and both ways."""
    for rows, X, y in ((TRAIN, split.X, split.y), (HELD_OUT, split.X_test, split.y_test)):
        guesses = {FORWARD: (y, aligner.transform(X)), INVERSE: (X, aligner.inverse_transform(y))}
        for way, (truth, guess) in guesses.items():
            where = {"rows": rows, "way": way}
            yield {**where, "measure": "R2", "value": r2(truth, guess)}
            yield {**where, "measure": "MSE", "value": mse(truth, guess)}


def values_of(records: Iterable[Mapping[str, Any]], **wanted: Any) -> Array:
    """Numbers of the records that hold all that is wanted."""
    kept = (r for r in records if all(r.get(key) == value for key, value in wanted.items()))
    return np.array([record["value"] for record in kept])
