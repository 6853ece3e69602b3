"""What a ReLU network is free to change, and who sees it: the experiments of Godfrey et al. (2022).

Usage: ``python benchmarks/papers/symmetries.py``, and ``--help`` for the options. ``--models A B`` takes two
encoders of the BERT family that share a tokenizer; with 3,072 units a few ``--layers`` will do.

The units of a ReLU layer may be permuted and multiplied by positive numbers, G_ReLU, and the next layer can
undo it; not so a rotation. Do representations know of it? Two networks that differ in their seed are
compared layer by layer, as they are, after a random rotation of the first one, and after a random element of
G_ReLU. What does not change is blind to it: measures of G_ReLU must see the rotation alone, orthogonal
ones the element of G_ReLU alone.

* *Digits*: perceptrons with three hidden layers of rectifiers, trained here in seconds. Measures are taken on
  images held out, mean over all pairs of seeds; R² of aligners, mean of both ways.
* *FFN units*: units of the feed-forward networks of two models, after their GELU, which is nearly a
  rectifier; rows are tokens of sentences held out.
* *Untrained*: the same without any learning, which is the control.
* *Matching of other rows*: a matching is made to fit the rows that it is judged by, noise and all. Made on
  the training rows it has no such advantage; *train* beside *held-out* says the same of the aligners.
* R² of `PermutationAligner` is about ``2 r - 1`` for units matched with the correlation r, since its scales
  serve both ways: below 0 does not say that nothing is shared.

A third experiment stitches the lower layers of one network to the upper ones of another and counts the right
answers; its control has untrained lower layers. A fourth, *moved before the rectifier*, puts a matrix between
a linear map and its rectifier, and lets all that lies above learn on; its control has untrained layers below.

What the published code says, and its faults:

* *Published orthogonal CKA* divides every unit by its own norm. It is blind to G_ReLU and sees rotations:
  the measure that the ReLU one is set against is not orthogonal. Its orthogonal Procrustes is, but not
  centred, so that what all rows share counts. The published ReLU measures themselves are `relu_procrustes`
  and `relu_cka`.
* *Published stitching* is a permutation that is trained for the task, see ``_birkhoff.py``. What is reported
  is the best epoch, chosen on the images that it is judged by. (A second published script chooses on others.)
* So are the penalties of the fourth experiment. They are taken from a network that has not learned on, for
  which *no matrix* stands here.

References
----------
Godfrey, Brown, Emerson and Kvinge, "On the symmetries of deep learning models and their internal
representations", NeurIPS (2022), arXiv 2205.14258.
"""

import argparse
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import torch
from sklearn.model_selection import GroupShuffleSplit
from tqdm import tqdm

sys.path.append(str(Path(__file__).parents[1]))  # what all benchmarks share

from _birkhoff import BATCHES, published_stitching
from _digits import DEPTH, WIDTH, Digits, Moved, Perceptron, states_of, stitched_accuracy, trained
from _judging import Split
from _models import (
    CONTROL,
    TRAINED,
    Record,
    Seeds,
    collected,
    parser_of,
    seeds_of,
    sentences_of,
    write_figure,
)
from _report import describe, environment
from _symmetric import ALIGNERS, MOVES, compared
from _symmetric_views import bars, curves, tables

from sklearn_bijection.huggingface import component_io

NAME = "symmetries"
DIGITS, UNITS, STITCHED, MOVED = "digits", "FFN units", "stitched", "moved before the rectifier"
MIXED = "untrained below, trained above"

Networks = dict[str, list[Perceptron]]


def networks(digits: Digits, n_seeds: int, epochs: int) -> Networks:
    """Untrained networks of several seeds, and what becomes of them."""
    blank = [Perceptron(seed) for seed in range(n_seeds)]
    bar = tqdm(blank, desc="networks", unit="network")
    learned = [trained(net, digits, epochs=epochs, seed=i) for i, net in enumerate(bar)]
    return {TRAINED: learned, CONTROL: blank}


def digit_layers(found: Networks, digits: Digits) -> Iterator[Record]:
    """All comparisons of all pairs of networks."""
    pairs = [
        (kind, pair, layer)
        for kind, nets in found.items()
        for pair in combinations(range(len(nets)), 2)
        for layer in range(1, DEPTH + 1)
    ]
    for kind, pair, layer in tqdm(pairs, desc=DIGITS, unit="layer"):
        first, second = (found[kind][i] for i in pair)
        train, test = (
            [states_of(net, images, layer) for net in (first, second)]
            for images in (digits.images, digits.test_images)
        )
        facts = {"experiment": DIGITS, "models": kind, "pair": _name(pair), "layer": layer}
        for record in compared(Split(*train, *test), seed=pair[1], n_rows=len(test[0])):
            yield facts | record


def _name(pair: Iterable[int]) -> str:
    return "-".join(map(str, pair))


def units(
    seeds: Seeds, texts: Sequence[str], n_tokens: int, n_rows: int, layers: Any
) -> Iterator[Record]:
    """All comparisons of the units of two models."""
    first, second = (
        component_io(
            model,
            texts,
            "intermediate",
            tokenizer=seeds.tokenizer,
            n_tokens=n_tokens,
            layers=layers,
            progress=False,
        )
        for model in seeds.bodies()
    )
    splitter = GroupShuffleSplit(1, test_size=0.25, random_state=0)
    train, test = next(splitter.split(first.text, groups=first.text))
    stacks = zip(first.layers, first.outputs, second.outputs, strict=True)
    for layer, X, y in tqdm(stacks, desc=f"{UNITS}, {seeds.name}", total=len(first), unit="layer"):
        facts = {"experiment": UNITS, "models": seeds.name, "pair": "0-1", "layer": layer + 1}
        split = Split(X[train], y[train], X[test], y[test])
        for record in compared(split, seed=1, n_rows=n_rows):
            yield facts | record


def stitches(found: Networks, digits: Digits, batches: int) -> Iterator[Record]:
    """Accuracies of networks whose lower layers are another's."""
    for kind, lower in ((TRAINED, found[TRAINED]), (MIXED, found[CONTROL])):
        for pair in combinations(range(len(lower)), 2):
            first, second = lower[pair[0]], found[TRAINED][pair[1]]
            facts = {"experiment": STITCHED, "models": kind, "pair": _name(pair)}
            for layer in tqdm(range(1, DEPTH + 1), desc=f"{STITCHED}, {kind}", unit="layer"):
                for name, value in _bridged(first, second, layer, digits):
                    yield {**facts, "layer": layer, "name": name, "value": value}
                if pair == (0, 1):
                    after = published_stitching(first, second, layer, digits, batches=batches)
                    for name, value in _as_published("published stitching", after):
                        yield {**facts, "layer": layer, "name": name, "value": value}


def _bridged(
    first: Perceptron, second: Perceptron, layer: int, digits: Digits
) -> Iterator[tuple[str, float]]:
    """Accuracies of the second alone, and by each bridge, which is fitted to the training images."""
    alone = torch.nn.Identity()
    yield "the second network alone", stitched_accuracy(second, second, layer, alone, digits)
    yield "no map", stitched_accuracy(first, second, layer, alone, digits)
    X, y = (states_of(net, digits.images, layer) for net in (first, second))
    for name, aligner in ALIGNERS.items():
        bridge = aligner.fit(X, y).to_torch(dtype=torch.float32)
        yield name, stitched_accuracy(first, second, layer, bridge, digits)


def _as_published(name: str, accuracies: Sequence[float]) -> Iterator[tuple[str, float]]:
    yield f"{name}, last epoch", accuracies[-1]
    yield f"{name}, best epoch on the images judged", max(accuracies)


def moves(found: Networks, digits: Digits, epochs: int) -> Iterator[Record]:
    """Accuracies with a matrix before the rectifiers of a layer."""
    for kind, nets in found.items():
        places = [(i, layer) for i in range(len(nets)) for layer in range(1, DEPTH + 1)]
        for seed, layer in tqdm(places, desc=f"{MOVED}, {kind}", unit="layer"):
            facts = {"experiment": MOVED, "models": kind, "pair": str(seed), "layer": layer}
            for move in (None, *MOVES):
                matrix = torch.from_numpy(MOVES[move](WIDTH, seed)) if move else None
                moved = Moved(nets[seed], layer, matrix)
                after = moved.accuracies(digits, epochs=epochs, seed=seed)
                name = move or "no matrix"
                yield {**facts, "name": f"{name}, at once", "value": after[0]}
                for row, value in _as_published(name, after[1:]):
                    yield {**facts, "name": row, "value": value}


def run(options: argparse.Namespace) -> Iterator[Record]:
    """All four experiments."""
    digits = Digits.load()
    found = networks(digits, options.seeds, 5 if options.quick else 40)
    yield from digit_layers(found, digits)
    texts = sentences_of(options)
    for seeds in seeds_of(options).values():
        n_rows, layers = (300, [-1]) if options.quick else (1500, options.layers or "all")
        yield from units(seeds, texts, options.tokens, n_rows, layers)
    yield from stitches(found, digits, 5 if options.quick else BATCHES)
    yield from moves(found, digits, 2 if options.quick else 20)


def parse() -> argparse.Namespace:
    """Read the options."""
    parser = parser_of(__doc__, texts=1000)
    add = parser.add_argument
    add("--seeds", type=int, default=4, help="perceptrons, all pairs of which are compared (4)")
    add("--tokens", type=int, default=8000, help="of the FFN units, a quarter held out (8000)")
    add("--layers", type=int, nargs="+", help="whose FFN units are compared, from 0 on (all)")
    options = parser.parse_args()
    if options.seeds < 2:
        parser.error("--seeds must be 2 or more: a pair is what is compared")
    if options.quick:
        options.seeds, options.tokens = 2, min(options.tokens, 2500)
    return options


def main() -> None:
    """Run, print, write, draw."""
    options = parse()
    for message in (".*were cut", ".*is too few for spaces"):
        warnings.filterwarnings("once", message=message)
    print(describe(environment()))
    records = collected(run(options), tables, options.out, NAME)
    write_figure(options.out, NAME, curves(records, (DIGITS, UNITS)))
    write_figure(options.out, f"{NAME}_accuracy", bars(records, (STITCHED, MOVED)))


if __name__ == "__main__":
    main()
