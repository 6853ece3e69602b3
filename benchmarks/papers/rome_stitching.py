"""Stitch two models into one at every layer, by each aligner, beside controls and published faults.

Usage: ``python benchmarks/papers/rome_stitching.py``; ``--help`` for the options. ``--models A B`` takes
two encoders of the BERT family that share a tokenizer and have masked-language heads.

The lower layers of the first model up to a layer, a map that is fitted to tokens, the layers of the second
model from there on with its head: masked-language loss on sentences held out, in nats. Maps are fitted to
sentences some of whose words are masked, as they are when the loss is taken: a map that has never met a
mask sends the very tokens that are asked for to the wrong place.

Three pairs of models:

* *trained*: two that differ in their seed. The training mean, where every token becomes the mean token of
  the second model, is the floor; a ridge regression, which cannot be walked back, what is to be had.
* *untrained below, trained above*: is it the lower layers or the map that does the work? As far as the loss
  is the same here, a map could as well have started from random vectors for tokens and places.
* *untrained*: heads that know nothing. All losses are those of blind guessing.

What the published code of Ren et al. (2023) does, one fault at a time:

* *published CCA, of tokens*: its directions are paired wrongly and its units lost. (The published code maps
  the first token alone with it and leaves all others as they are.)
* *published network, of tokens*: the recipe of ``_published.py``, which ends about where it started: a
  random map. (Fitted to 1,600 tokens; with more it moves no further.)
* *published network, of means*: one network for all layers, fitted to means over the positions of 1,600
  sentences, padding among them, but used on tokens.
* *as published*: that network, at the last layer alone, and with the dense layer of the head taken from
  the first model, so that the classifier of the second meets features of the other. (The published head
  is a classifier of sentences over a pooler; the dense layer of the masked-language head stands where
  the pooler does.)
* *CCA, of means* and *CCA, without masks*: what either kind of wrong row costs a map that can learn.

A second table has the loss for layers up to i of the first and from j on of the second model, and tells
whether equal layers fit best.

References
----------
Ren et al., "All Roads Lead to Rome? Exploring the Invariance of Transformers' Representations", arXiv
2305.14555 (2023).
"""

import argparse
import copy
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))  # what all benchmarks share

import numpy as np
import torch
from _judging import Record, grouped
from _models import (
    CONTROL,
    TRAINED,
    parser_of,
    seeds_of,
    sentences_of,
    write_csv,
    write_figure,
)
from _published import PublishedCCA, PublishedRecipe
from _report import describe, environment, table
from _stitching import (
    ALIGNERS,
    FLOOR,
    FORWARD,
    MEAN,
    Affine,
    Joint,
    Ridge,
    losses_table,
    tokens_of,
    with_masks,
)
from _stitching import TRAINED as NETWORK

from sklearn_bijection import CCAAligner, PermutationAligner
from sklearn_bijection.huggingface import extract_hidden_states

MIXED = "untrained below, trained above"
PAIRS = "pairs of layers"
RIDGE, NO_MAP = "ridge (no bijection)", "no map"
#: Rows that the published maps are fitted to. What its learning rates add up to bounds how far the network
#: moves, in however many epochs: in these it ends where it does in 60.
PUBLISHED_ROWS, EPOCHS = 1600, 6

OURS: dict[str, Any] = {
    NO_MAP: torch.nn.Identity(),
    **ALIGNERS,
    "PermutationAligner()": PermutationAligner(),
}


class Published(PublishedRecipe):
    """The published recipe, ready to be stitched in."""

    def fit(self, X: Any, y: Any) -> "Published":
        """Fit to as many rows as the published code does."""
        return super().fit(X[:PUBLISHED_ROWS], y[:PUBLISHED_ROWS])

    def to_torch(self, dtype: torch.dtype) -> torch.nn.Module:
        """The network itself."""
        return self.module.to(dtype)


def joints_of(options: argparse.Namespace) -> Iterator[tuple[str, Joint, Sequence[str]]]:
    """The three pairs with their tokens, one after the other, and the sentences of the fits."""
    seeds = seeds_of(options)
    tokenizer = seeds[TRAINED].tokenizer
    texts = sentences_of(options)
    cut = len(texts) * 4 // 5
    train, test = texts[:cut], texts[cut:]
    masked = with_masks(train, tokenizer.mask_token)
    trained, control = (seeds[name].with_heads() for name in (TRAINED, CONTROL))
    pairs = {TRAINED: trained, MIXED: (control[0], trained[1]), CONTROL: control}
    for name, models in pairs.items():
        joint = Joint.of(models, tokenizer, masked, test, options.tokens, options.every)
        yield name, joint, train


def faults(joint: Joint, train: Sequence[str], n_tokens: int) -> Iterator[Record]:
    """Losses with what the published code does, and with what its faults cost another map."""
    models = joint.first, joint.second
    published = {
        "published CCA, of tokens": Affine(PublishedCCA()),
        "published network, of tokens": Published(epochs=EPOCHS),
    }
    yield from joint.at_equal_layers(published)
    X, y = (
        extract_hidden_states(
            model, train[:PUBLISHED_ROWS], tokenizer=joint.tokenizer, pooling="padded_mean"
        )
        for model in models
    )
    network = PublishedRecipe(epochs=EPOCHS).fit(np.concatenate(X), np.concatenate(y)).module
    yield from joint.at_equal_layers({"published network, of means": network})
    dense = replace(joint, second=_with_dense_of(*models), layers=joint.layers[-1:])
    yield from dense.at_equal_layers({"as published": network})
    forward = CCAAligner(direction="forward")
    yield from replace(joint, X=X, y=y).at_equal_layers({"CCA, of means": forward})
    X, y = tokens_of(models, joint.tokenizer, train, n_tokens)
    yield from replace(joint, X=X, y=y).at_equal_layers({"CCA, without masks": forward})


def _with_dense_of(first: Any, second: Any) -> Any:
    """The second model with the dense layer under its classifier exchanged for that of the first."""
    grafted = copy.deepcopy(second)
    # BERT's name for it; RoBERTa's.
    for holder, part in (("cls.predictions", "transform"), ("lm_head", "dense")):
        if hasattr(grafted, holder.partition(".")[0]):
            setattr(grafted.get_submodule(holder), part, first.get_submodule(f"{holder}.{part}"))
    return grafted


def run(options: argparse.Namespace) -> list[Record]:
    """All losses; shown as they come, and in a table when a pair of models is done."""
    records: list[Record] = []
    for pair, joint, train in joints_of(options):
        ours = FLOOR | OURS | (NETWORK if options.train else {}) | {RIDGE: Ridge()}
        equal = chain(joint.alone(), joint.at_equal_layers(ours))
        # Where the head knows nothing, no fault can cost anything.
        if pair != CONTROL:
            equal = chain(equal, faults(joint, train, options.tokens))
        found = list(follow(equal, pair=pair))
        print(losses_table(f"{pair}: masked-language loss on held-out sentences, in nats", found))
        records += found
        if pair != CONTROL:
            across = joint.across_layers(FORWARD, ALIGNERS[FORWARD])
            crossed = list(follow(across, pair=pair, section=PAIRS))
            print(pairs_table(f"{pair}: loss by {FORWARD} from layer (down) onto layer", crossed))
            records += crossed
    return records


def follow(records: Iterable[Record], **facts: Any) -> Iterator[Record]:
    """Show each record, and pass it on with what holds for all of them."""
    for record in records:
        where = " onto ".join(str(record[key]) for key in ("layer", "onto") if key in record)
        print(f"{facts['pair']} | {record['name']} {where}: {record['loss']:.3f}", flush=True)
        yield facts | record


def pairs_table(title: str, records: Sequence[Record]) -> str:
    """Rows are layers of the first model, columns of the second."""
    rows = [
        (layer, *(f"{record['loss']:.3f}" for record in found))
        for layer, found in grouped(records, "layer").items()
    ]
    return table(title, ("", *grouped(records, "onto")), rows)


def curves(records: Sequence[Record]) -> Any:
    """Loss over layer for each aligner, a panel for each pair of models."""
    from matplotlib.figure import Figure

    groups = grouped([r for r in records if r.get("section") != PAIRS], "pair")
    ours = {*FLOOR, *OURS, *NETWORK, RIDGE}
    figure = Figure(figsize=(4.3 * len(groups) + 2.6, 4.2), layout="constrained")
    axes = figure.subplots(1, len(groups), sharey=True)
    # What is worse than the floor by far would leave no room for the rest.
    floor = [r["loss"] for r in groups[TRAINED] if r["name"] == MEAN]
    for ax, (pair, found) in zip(axes, groups.items(), strict=True):
        names = grouped(found, "name")
        second = names.pop("the second model")[0]["loss"]
        names.pop("the first model")
        ax.axhline(second, color="black", linewidth=1, label="the second model alone")
        for i, (name, line) in enumerate(names.items()):
            where, losses = zip(*((r["layer"], r["loss"]) for r in line), strict=True)
            ax.plot(where, losses, f"C{i % 10}" + (".-" if name in ours else "x--"), label=name)
        ax.set(title=pair, xlabel="stitched at layer", xticks=[r["layer"] for r in names[MEAN]])
    axes[0].set(ylabel="loss, in nats", ylim=(None, max(floor) + 1.5))
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right center", fontsize=8)
    return figure


def crossed_map(records: Sequence[Record]) -> Any:
    """Heat maps of the losses from layer to layer."""
    from matplotlib.figure import Figure

    groups = grouped([r for r in records if r.get("section") == PAIRS], "pair")
    figure = Figure(figsize=(4 * len(groups) + 1, 4), layout="constrained")
    axes = figure.subplots(1, len(groups))
    limits = [f(r["loss"] for found in groups.values() for r in found) for f in (min, max)]
    for ax, (pair, found) in zip(axes, groups.items(), strict=True):
        layers = list(grouped(found, "layer"))
        losses = np.array([r["loss"] for r in found]).reshape(len(layers), -1)
        image = ax.imshow(losses, cmap="viridis_r", vmin=limits[0], vmax=limits[1])
        ax.set(title=pair, xlabel="layer of the second model", ylabel="layer of the first model")
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_ticks(range(len(layers)), layers)
    figure.colorbar(image, ax=axes, label="loss, in nats")
    return figure


def main() -> None:
    """Stitch, print, write, draw."""
    parser = parser_of(__doc__, texts=1500)
    parser.add_argument(
        "--tokens", type=int, default=15_000, help="an aligner is fitted to (15000)"
    )
    parser.add_argument(
        "--train", action="store_true", help="a trained network too: minutes a layer"
    )
    parser.add_argument("--every", type=int, default=1, help="stitch at every so many layers (1)")
    options = parser.parse_args()
    if options.quick:
        options.tokens, options.every = min(options.tokens, 1500), max(options.every, 2)
    warnings.filterwarnings("ignore", message=".*were cut")
    print(describe(environment()))
    records = run(options)
    write_csv(options.out, "rome_stitching", records)
    write_figure(options.out, "rome_stitching", curves(records))
    write_figure(options.out, "rome_stitching_pairs", crossed_map(records))


if __name__ == "__main__":
    main()
