"""The sections of `inn_quality.py`: each gives its figures one by one.

A record says where it belongs and who it is about; the rest are figures.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
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
    Record,
    Split,
    TwoRidges,
    judge,
    scores,
)
from _peers import PEERS, WarmFlow
from _probes import images_of, measures, mixtures, widened
from _published import recipes
from _report import NOT_INSTALLED
from sklearn.decomposition import PCA
from skorch.callbacks import Callback

from sklearn_bijection import CCAAligner, INNAligner, ProcrustesAligner


class ConstantRate(Callback):
    """Undo the schedule before each batch: the learning rate is `lr` all the time."""

    def on_batch_begin(self, net: Any, **kwargs: Any) -> None:
        """Set the rate back."""
        for group in net.optimizer_.param_groups:
            group["lr"] = group["initial_lr"]

    def __repr__(self) -> str:
        return "ConstantRate()"


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
    "callbacks": ([ConstantRate()],),
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
    sizes, curve : tuple of int
        Numbers of training rows, in ``main`` and of the learning curve.
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
    curve: tuple[int, ...]
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


def sizes_that_fit(n_rows: int, sizes: Iterable[int]) -> tuple[int, ...]:
    """Those of the sizes that leave a fifth of the rows to judge by, in order and once each."""
    return tuple(sorted({size for size in sizes if size <= n_rows - -(-n_rows // 5)}))


def run_main(setup: Setup) -> Iterator[Record]:
    """All contestants on every split of every size."""
    for size in setup.sizes:
        for seed in range(setup.n_splits):
            split = setup.split(size, seed)
            others = {START: setup.inn(max_epochs=0), RIDGES: TwoRidges()}
            for name, aligner in {**setup.closed_and_inn(), **others}.items():
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
        for size in setup.curve:
            for seed in range(setup.n_splits):
                split = Split.draw(rows.astype(np.float32), y.astype(np.float32), seed, size)
                where = f"width {rows.shape[1]}, {size:,} training rows"
                for name, aligner in setup.closed_and_inn().items():
                    yield judge(where, name, aligner, split, split=seed)


def run_sizes(setup: Setup) -> Iterator[Record]:
    """The ends of the range: two columns, very many columns, very many rows."""
    quick = setup.epochs is not None
    narrow = PCA(2, random_state=0).fit_transform(setup.pair[0])[:625]
    cases = {
        "two columns": ((narrow, images_of(narrow)), True),
        "very many rows": (
            mixtures(setup.pair, 12_500 if quick else 1_250_000, 16 if quick else 64),
            True,
        ),
        "very many columns": (widened(setup.pair, 64 if quick else 4096), False),
    }
    for name, (pair, trained) in cases.items():
        split = Split.draw(*pair, 0)
        where = f"{name}: {split.X.shape} -> {split.y.shape}"
        network = {INN: setup.inn()} if trained else {START: setup.inn(max_epochs=0)}
        for who, aligner in {CCA: CCAAligner(), **network}.items():
            yield judge(where, who, aligner, split)


def run_norms(setup: Setup) -> Iterator[Record]:
    """What the inverse goes by, at the start and after training."""
    split = setup.split(setup.rows)
    for name, aligner in {START: setup.inn(max_epochs=0), INN: setup.inn()}.items():
        aligner.fit(split.X, split.y)
        for measure, value in measures(aligner, split):
            yield {"where": measure, "name": name, "value": float(value)}


def run_published(setup: Setup) -> Iterator[Record]:
    """One map for each place, and one for all layers together."""
    for seed in range(setup.n_splits):
        layers = {f"layer {i}": Split.draw(*pair, seed) for i, pair in enumerate(setup.layers)}
        for where, split in {"the pair": setup.split(setup.rows, seed), **layers}.items():
            for name, aligner in {**_recipes(setup), **setup.closed_and_inn()}.items():
                yield judge(where, name, aligner, split, split=seed)
        if layers:
            yield from _shared_recipes(setup, layers, seed)


def _shared_recipes(setup: Setup, layers: dict[str, Split], seed: int) -> Iterator[Record]:
    """One map of all layers, judged at each."""
    for name, recipe in _recipes(setup).items():
        start = perf_counter()
        recipe.fit(*(np.concatenate([s[side] for s in layers.values()]) for side in (0, 1)))
        seconds = perf_counter() - start
        for where, split in layers.items():
            shared = {"where": where, "name": f"{name}, one for all layers", "split": seed}
            yield {**shared, **scores(recipe, split), "seconds": seconds}


def _recipes(setup: Setup) -> dict[str, Any]:
    return recipes(device=setup.device, **({"epochs": setup.epochs} if setup.epochs else {}))


def run_peers(setup: Setup) -> Iterator[Record]:
    """Flows after a CCA by one loop, then the network from the same start, and as it is."""
    for name, peer in PEERS.items():
        if not peer.installed:
            print(f"{name}: {NOT_INSTALLED}", flush=True)
    for seed in range(setup.n_splits):
        split = setup.split(setup.rows, seed)
        where = f"flows of equal size, {len(split.X):,} training rows"
        for name, peer in PEERS.items():
            if peer.installed:
                flow = WarmFlow(peer, epochs=setup.epochs, device=setup.device)
                record = judge(where, name, flow, split, split=seed)
                yield {**record, "parameters": flow.n_parameters}
        for name, aligner in _beside_peers(setup).items():
            record = judge(where, name, aligner, split, split=seed)
            parameters = aligner.map_.core().parameters()
            yield {**record, "parameters": sum(p.numel() for p in parameters)}


def _beside_peers(setup: Setup) -> dict[str, INNAligner]:
    return {
        "INNAligner(init=CCAAligner(), refit=False)": setup.inn(init=CCAAligner(), refit=False),
        "INNAligner(init=CCAAligner())": setup.inn(init=CCAAligner()),
        INN: setup.inn(),
    }
