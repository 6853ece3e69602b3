"""Judge INNAligner on rows it has not seen: how good it is, what matters for that, and how it does it.

Usage: ``python benchmarks/inn_quality.py [SECTION ...]``, and ``--help`` for the options. Sections:

* ``main``: beside both closed forms, its own start, and two ridges, one each way, which are no bijection.
* ``ladder``: one choice changed at a time.
* ``seeds``: five values of `random_state` on the same rows.
* ``layers``: hidden states of two models, each layer of the one with the same layer of the other.
* ``rome``: y = g(X) for real X and a frozen random invertible network g; a learning curve.
* ``norms``: how the map tells rows of y from images of rows of X.
* ``published``: beside the recipe of Ren et al. (2023), and the same with its faults mended.
* ``peers``: beside flows of FrEIA and zuko with as many parameters, trained alike.

A figure is shown, and appended to ``--json`` as a line, as soon as it is there. The tables of a section
follow at its end, also where it is broken off from the keyboard.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from _judging import (
    CCA,
    INN,
    PROCRUSTES,
    RIDGES,
    START,
    Array,
    Log,
    Record,
    Split,
    TwoRidges,
    against,
    grouped,
    judge,
    scores,
    spread_of,
    summary,
)
from _peers import PEERS, WarmFlow
from _probes import images_of, measures
from _published import recipes
from _report import NOT_INSTALLED, describe, environment, table
from shrinkage import load
from sklearn.decomposition import PCA

from sklearn_bijection import CCAAligner, INNAligner, ProcrustesAligner

CLOSED = (CCA, PROCRUSTES)
CURVE = (400, 1600, 6400)
LADDER: dict[str, tuple[Any, ...]] = {
    "init": (CCAAligner(), None),
    "n_blocks": (0, 2, 4),
    "hidden_size": (128, 256, 512),
    "n_hidden": (2,),
    "dropout": (0.0, 0.2, 0.4, 0.6),
    "coupling": ("additive",),
    "mixing": ("permutation", "rotation", "orthogonal"),
    "learn_linear": (True,),
    "cosine": (0.1,),
    "lr": (3e-4, 3e-3),
    "weight_decay": (0.1,),
    "direction": ("forward", "backward"),
    "refit": (False,),
}


@dataclass(frozen=True)
class Setup:
    """Data and options of all sections.

    Parameters
    ----------
    pair : tuple of ndarray
        X and y.
    layers : list of tuple of ndarray
        One pair for each layer.
    sizes : tuple of int
        Numbers of training rows.
    n_splits : int
    rows, seed_rows : int or None
        Training rows of the sections with one split, and of ``seeds``; None takes all.
    variants : list of str
        Steps of the ladder, or parameters that differ in them; empty for all.
    device : str
    epochs : int or None
        For all networks; None leaves them their own.
    """

    pair: tuple[Array, Array]
    layers: list[tuple[Array, Array]]
    sizes: tuple[int, ...]
    n_splits: int
    rows: int | None
    seed_rows: int
    variants: list[str]
    device: str
    epochs: int | None

    def split(self, rows: int | None, seed: int = 0) -> Split:
        """Of the pair."""
        return Split.draw(*self.pair, seed, rows)

    def inn(self, **changes: Any) -> INNAligner:
        """The network, with some parameters changed."""
        epochs = {} if self.epochs is None else {"max_epochs": self.epochs}
        return INNAligner(**{"random_state": 0, "device": self.device, **epochs, **changes})

    def closed_and_inn(self) -> dict[str, Any]:
        """The closed forms and the network."""
        return {CCA: CCAAligner(), PROCRUSTES: ProcrustesAligner(), INN: self.inn()}


def sizes_that_fit(n_rows: int, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Those of the sizes that leave a fifth of the rows to judge by."""
    return tuple(size for size in sizes if size <= n_rows - -(-n_rows // 5))


def run_main(setup: Setup) -> Iterator[Record]:
    """All contestants on every split of every size."""
    for size in setup.sizes:
        for seed in range(setup.n_splits):
            split = setup.split(size, seed)
            start = setup.inn(max_epochs=0)
            for name, aligner in {
                **setup.closed_and_inn(),
                START: start,
                RIDGES: TwoRidges(),
            }.items():
                yield judge(f"{size:,} training rows", name, aligner, split, split=seed)


def run_ladder(setup: Setup) -> Iterator[Record]:
    """The network with one choice changed at a time."""
    split = setup.split(setup.rows)
    where = f"one choice changed, {len(split.X):,} training rows"
    for name, changes in ladder(setup.variants).items():
        aligner = setup.inn(**changes)
        record = judge(where, name, aligner, split)
        yield {**record, "best epoch": aligner.best_epoch_, "epochs": aligner.n_iter_}


def ladder(chosen: list[str]) -> dict[str, dict[str, Any]]:
    """Changes by their names; those that leave the default are left out."""
    defaults = INNAligner().get_params(deep=False)
    steps: dict[str, dict[str, Any]] = {"default": {}}
    for name, values in LADDER.items():
        steps |= {f"{name}={v!r}": {name: v} for v in values if v != defaults[name]}
    kept = {s: steps[s] for s in steps if not chosen or s in chosen or s.split("=")[0] in chosen}
    if not kept:
        raise SystemExit(f"--variants {' '.join(chosen)}: none of {', '.join(steps)}")
    return kept


def run_seeds(setup: Setup) -> Iterator[Record]:
    """The network with five seeds on one split."""
    split = setup.split(setup.seed_rows)
    where = f"five seeds, {len(split.X):,} training rows"
    for seed in range(5):
        yield judge(where, INN, setup.inn(random_state=seed), split, random_state=seed)


def run_layers(setup: Setup) -> Iterator[Record]:
    """Closed forms and the network on every split of every layer."""
    for i, pair in enumerate(setup.layers):
        for seed in range(setup.n_splits):
            split = Split.draw(*pair, seed)
            for name, aligner in setup.closed_and_inn().items():
                yield judge(f"layer {i}", name, aligner, split, split=seed)


def run_rome(setup: Setup) -> Iterator[Record]:
    """A learning curve where the truth is a bijection, on the leading directions of X and on all."""
    X = setup.pair[0]
    narrow = PCA(min(64, X.shape[1] // 2), random_state=0).fit_transform(X)
    for rows in (narrow, X):
        y = images_of(rows)
        for size in sizes_that_fit(len(X), setup.sizes if setup.epochs else CURVE):
            for seed in range(setup.n_splits):
                split = Split.draw(rows.astype(np.float32), y.astype(np.float32), seed, size)
                where = f"width {rows.shape[1]}, {size:,} training rows"
                for name, aligner in setup.closed_and_inn().items():
                    yield judge(where, name, aligner, split, split=seed)


def run_norms(setup: Setup) -> Iterator[Record]:
    """What the inverse goes by, at the start and after training."""
    split = setup.split(setup.rows)
    for name, aligner in {START: setup.inn(max_epochs=0), INN: setup.inn()}.items():
        aligner.fit(split.X, split.y)
        for measure, value in measures(aligner, split):
            yield {"where": measure, "name": name, "value": float(value)}


def run_published(setup: Setup) -> Iterator[Record]:
    """One map for each place, and one for all layers together."""
    layers = {f"layer {i}": Split.draw(*pair, 0) for i, pair in enumerate(setup.layers)}
    options = {"device": setup.device, **({"epochs": setup.epochs} if setup.epochs else {})}
    for where, split in {"the pair": setup.split(setup.rows), **layers}.items():
        for name, aligner in {**recipes(**options), **setup.closed_and_inn()}.items():
            yield judge(where, name, aligner, split)
    for name, recipe in recipes(**options).items() if layers else ():
        start = perf_counter()
        recipe.fit(*(np.concatenate([s[side] for s in layers.values()]) for side in (0, 1)))
        seconds = perf_counter() - start
        for where, split in layers.items():
            shared = {"where": where, "name": f"{name}, one for all layers"}
            yield {**shared, **scores(recipe, split), "seconds": seconds}


def run_peers(setup: Setup) -> Iterator[Record]:
    """Flows after a CCA by one loop, then the network from the same start, and as it is."""
    split = setup.split(setup.rows)
    where = f"flows of equal size, {len(split.X):,} training rows"
    for name, peer in PEERS.items():
        if not peer.installed:
            print(f"{name}: {NOT_INSTALLED}", flush=True)
            continue
        flow = WarmFlow(peer, epochs=setup.epochs, device=setup.device)
        yield {**judge(where, name, flow, split), "parameters": flow.n_parameters}
    for name, changes in {
        "INNAligner(init=CCAAligner(), refit=False)": {"init": CCAAligner(), "refit": False},
        "INNAligner(init=CCAAligner())": {"init": CCAAligner()},
        INN: {},
    }.items():
        aligner = setup.inn(**changes)
        record = judge(where, name, aligner, split)
        parameters = aligner.map_.core().parameters()
        yield {**record, "parameters": sum(p.numel() for p in parameters)}


def show_main(found: list[Record]) -> str:
    """Scores, then gains over the closed forms and over the ridges."""
    closed = against(found, CLOSED, "the best closed form")
    return "\n".join((summary(found), closed, against(found, (RIDGES,), "two ridges")))


def show_layers(found: list[Record]) -> str:
    """Scores, then gains over the closed forms."""
    return "\n".join((summary(found), against(found, CLOSED, "the best closed form")))


def show_rome(found: list[Record]) -> str:
    """Errors, then their ratios to those of the closed forms."""
    closed = against(found, CLOSED, "the best closed form")
    return "\n".join((summary(found, errors=True), closed))


def show_seeds(found: list[Record]) -> str:
    """Mean and spread over the seeds."""
    means = [record["mean"] for record in found]
    return f"{summary(found)}\nmean R² of each seed: {', '.join(f'{m:.4f}' for m in means)}"


def show_norms(found: list[Record]) -> str:
    """Measures of both maps side by side."""
    names = list(grouped(found, "name"))
    rows = [
        (measure, *(f"{record['value']:.3f}" for record in same))
        for measure, same in grouped(found, "where").items()
    ]
    return table("What the inverse goes by", ("", *names), rows)


def show_ladder(found: list[Record]) -> str:
    """Scores and epochs."""
    return summary(found, extras=("best epoch", "epochs"))


def show_published(found: list[Record]) -> str:
    """Errors."""
    return summary(found, errors=True)


def show_peers(found: list[Record]) -> str:
    """Scores and sizes."""
    return summary(found, extras=("parameters",))


Run = Callable[[Setup], Iterator[Record]]
Show = Callable[[list[Record]], str]
SECTIONS: dict[str, tuple[Run, Show]] = {
    "main": (run_main, show_main),
    "ladder": (run_ladder, show_ladder),
    "seeds": (run_seeds, show_seeds),
    "layers": (run_layers, show_layers),
    "rome": (run_rome, show_rome),
    "norms": (run_norms, show_norms),
    "published": (run_published, show_published),
    "peers": (run_peers, show_peers),
}
