"""Align every layer of one model with every layer of another: the main experiment of Ren et al. (2023).

Usage: ``python benchmarks/papers/rome_layers.py``, and ``--help`` for the options. ``--models A B`` takes two
others, such as ``google/multiberts-seed_0 google/multiberts-seed_1`` where there is a hub; there
``--networks start`` or ``none`` spares hours.

Rows are hidden states of sentences, mean over tokens: 1,600 to learn from, as in the paper, and 400 held out,
the same for all layers. R² is the share of the variance that a map explains; 0 is as good as the mean.

* *One map per layer*: for each pair of layers its own. Closed forms, two ridges and the start of the network
  for all pairs; trained networks for the same layers alone, unless ``--networks all``.
* *One map for all layers*: learned from the same layers together, and judged at all pairs. The published
  recipe has this one; it gets as many steps as for a single layer.
  It has to tell the layers apart by where they lie, since each has a mean of its own: a bright diagonal is no
  sign that equal layers belong together, and untrained models have one too.
* *Two ridges* and *two MLPs* are no bijections: each direction has a map of its own. They are what is to be
  had by a linear map and by any; the distance from them is what being a bijection costs.
* *PWCCA* is no map but a similarity, from 0 to 1. It is taken over all rows, and beside it stands what it is
  when the rows are paired at random, which is far from 0 where rows are few.
* *Untrained* is the control: two networks that have learned nothing. What they share is no finding about
  training.
* *Published recipe*, and the same with its faults mended one by one: its learning rates add up to 1e-4 over
  the whole run, so that it ends where it started; and it learns the forward error alone, so that nothing
  holds its inverse. *Published CCA*: V is not transposed, and the units of the two sides are lost;
  ``CCAAligner(shrinkage=0)`` is the same without the two faults.

The last table has mean squared errors, forward, as the published script takes them: on rows the map has
learned from. There the two models are also asked one after the other, and the second one goes on with the
batches that follow those of the first: row i of X and row i of y are two different sentences, which is the
second column. The mean of y stands beside it, which knows nothing. (The script asks with dropout on, and
mirrors the lower half of its matrix to the upper one, which this does not repeat.)

References
----------
Ren et al., "All Roads Lead to Rome? Exploring the Invariance of Transformers' Representations", arXiv
2305.14555 (2023).
"""

import argparse
import sys
import warnings
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).parents[1]))  # what all benchmarks share

from _every_layer import CHANCE, NETWORKS, ONE_EACH, SHARED, UNPAIRED, Layers, compare
from _heat_maps import heat_maps
from _judging import grouped
from _models import Record, Seeds, parser_of, seeds_of, sentences_of, write_csv, write_figure
from _report import describe, environment, table
from _rome import FORWARD, HELD_OUT, MEAN, QUICK_WIDTH, TRAIN, WAYS, Array, values_of

from sklearn_bijection.huggingface import extract_hidden_states

NAME = "rome_layers"
#: What a cell of the pictures shows.
SHOWN = (("R2", HELD_OUT), ("PWCCA", "all"))


def at_the_same_layers(records: Sequence[Record], maps: str) -> str:
    """R² of each method, mean over layers: on rows learned from / on rows held out."""
    same_layer = [r for r in records if r["layer"] == r["other"] and r["method"] != MEAN]
    found = [r for r in same_layer if r["maps"] == maps]
    by_models = grouped(found, "models")
    header = ("", *(f"{models} {way}" for models, way in product(by_models, WAYS)))
    rows = [
        (name, *(cell(same, models=models, way=way) for models, way in product(by_models, WAYS)))
        for name, same in grouped(found, "method").items()
    ]
    return table(f"{maps}: R², mean over the same layers, train / held-out", header, rows)


def cell(records: Sequence[Record], **wanted: Any) -> str:
    """Both kinds of rows; a similarity has one, and no inverse."""
    similarity = values_of(records, measure="PWCCA", **wanted)
    pair = [values_of(records, measure="R2", rows=rows, **wanted) for rows in (TRAIN, HELD_OUT)]
    return " / ".join(f"{values.mean():.3f}" for values in (similarity, *pair) if len(values))


def as_published(records: Sequence[Record]) -> str:
    """Mean squared errors as the published script takes them."""
    found = [r for r in records if r["measure"] == "MSE" and r["layer"] == r["other"]]
    columns = list(product(grouped(found, "maps"), grouped(found, "models")))
    header = ("", *(f"{models}, {maps}" for maps, models in columns))
    rows = [
        (name, *(errors(same, maps=maps, models=models) for maps, models in columns))
        for name, same in grouped(found, "method").items()
    ]
    title = "Mean squared error, forward, as the published script takes it: "
    return table(title + "rows learned from / not even paired", header, rows)


def errors(records: Sequence[Record], **wanted: Any) -> str:
    """Mean over layers, of paired rows and of others."""
    pair = [
        values_of(records, measure="MSE", way=FORWARD, rows=rows, **wanted)
        for rows in (TRAIN, UNPAIRED)
    ]
    return " / ".join(f"{values.mean():.4f}" for values in pair if len(values))


def draw(records: Sequence[Record], maps: str) -> Any:
    """One panel for each method, held-out R² forward; the trained above, the control below."""
    shown = [r for r in records if r["maps"] == maps and r["method"] not in (MEAN, CHANCE)]
    depth = 1 + max(r["layer"] for r in shown), 1 + max(r["other"] for r in shown)
    panels = {
        name: {models: matrix(same, depth) for models, same in grouped(found, "models").items()}
        for name, found in grouped(shown, "method").items()
    }
    return heat_maps(panels, "R² on held-out rows")


def matrix(records: Sequence[Record], depth: tuple[int, int]) -> Array:
    """Held-out R² by layers, or the similarity; NaN where no map was fitted."""
    found = np.full(depth, np.nan)
    for r in records:
        if (r["measure"], r["rows"]) in SHOWN and r["way"] == FORWARD:
            found[r["layer"], r["other"]] = r["value"]
    return found


def parse() -> argparse.Namespace:
    """Read the options."""
    parser = parser_of(__doc__, texts=2000)
    parser.add_argument(
        "--networks",
        choices=NETWORKS,
        default="diagonal",
        help="none; the start alone; trained for the same layers; or for all pairs (diagonal)",
    )
    return parser.parse_args()


def layers_of(seeds: Seeds, texts: Sequence[str], *, quick: bool) -> Layers:
    """Hidden states of both models; the ends and some columns of them, if it is to be quick."""
    chosen, width = ([0, -1], QUICK_WIDTH) if quick else ("all", None)
    stacks = (
        extract_hidden_states(model, texts, tokenizer=seeds.tokenizer, layers=chosen)
        for model in seeds.bodies()
    )
    return Layers(*(np.asarray(states)[:, :, :width] for states in stacks))


def main() -> None:
    """Compare the trained models, then the control."""
    options = parse()
    warnings.filterwarnings("once", message=".*were cut")
    warnings.filterwarnings("once", message=".*too few for spaces")
    print(describe(environment()))
    texts, records = sentences_of(options), []
    try:
        for models, seeds in seeds_of(options).items():
            layers = layers_of(seeds, texts, quick=options.quick)
            epochs = 1 if options.quick else None
            records.extend(compare(models, layers, options.networks, epochs))
    finally:
        if records:
            finish(records, options.out)


def finish(records: Sequence[Record], out: Path) -> None:
    """Tables, file and figures."""
    for maps in (ONE_EACH, SHARED):
        print(at_the_same_layers(records, maps), flush=True)
    print(as_published(records), flush=True)
    write_csv(out, NAME, records)
    write_figure(out, NAME, draw(records, ONE_EACH))
    write_figure(out, f"{NAME}_shared", draw(records, SHARED))


if __name__ == "__main__":
    main()
