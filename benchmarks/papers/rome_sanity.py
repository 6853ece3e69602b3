"""Recover a bijection that is known to be there: the sanity check of Ren et al. (2023).

Usage: ``python benchmarks/papers/rome_sanity.py``, and ``--help`` for the options.

X are hidden states of one layer of one model, mean over tokens, centred and divided by one number; y = g(X)
for a frozen random invertible network g. Who says that two spaces are related by a bijection must find this
one. The best linear map explains about 0.7 of it. Errors are 1 - R², the share of the variance that is
missed: 0 is perfect, 1 is as good as the mean.

* *Trained* and *untrained*: hidden states of a model, and of one that has learned nothing. The bijection is
  there in either, so that this is no finding about models; it tells what a method misses on rows that are
  spread as theirs are.
* *Published recipe*, and the same with its faults mended one by one: its learning rates add up to 1e-4 over
  the whole run, so that it ends where it started; and it learns the forward error alone, so that nothing
  holds its inverse. *Published CCA*: V is not transposed, and the units of the two sides are lost;
  ``CCAAligner(shrinkage=0)`` is the same without the two faults.
* The published script has two more. It judges on rows it has learned from, for which the errors of *train*
  stand here. And for CCA it puts the hidden states of a second model where y = g(X) should be: what it calls
  the check of CCA is none.

g is made of couplings of the kind that `INNAligner` learns, and of another kind than those of the recipe. The
check shows that a bijection which is there is found, not that real spaces have one.

References
----------
Ren et al., "All Roads Lead to Rome? Exploring the Invariance of Transformers' Representations", arXiv
2305.14555 (2023).
"""

import argparse
import sys
import warnings
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from tqdm import tqdm

sys.path.append(str(Path(__file__).parents[1]))  # what all benchmarks share

from _judging import INN, RIDGES, START, Array, Split, TwoRidges, grouped, spread_of
from _models import (
    Record,
    parser_of,
    seeds_of,
    sentences_of,
    write_csv,
    write_figure,
)
from _probes import images_of
from _report import describe, environment, table
from _rome import (
    FORWARD,
    QUICK_WIDTH,
    ROWS,
    TRAIN,
    WAYS,
    Aligners,
    fitted,
    judged,
    linear_bijections,
    network,
    published,
    values_of,
)

from sklearn_bijection.huggingface import extract_hidden_states

NAME = "rome_sanity"
#: Of Okabe and Ito, which colour-blind readers can tell apart; as in the displays of the package.
COLOURS = {"forward": "#0072B2", "inverse": "#D55E00"}


def contestants(epochs: int | None) -> Aligners:
    """Everyone who is to find the bijection."""
    return {
        **linear_bijections(),
        RIDGES: TwoRidges(),
        START: network(0),
        INN: network(epochs),
        **published(epochs),
    }


def check(models: str, X: Array, n_bijections: int, epochs: int | None) -> Iterator[Record]:
    """Errors of everyone, on one split for each random bijection."""
    everyone = contestants(epochs)
    # One unit for X and y: whoever takes the rows as they are would pay for it, and no method is to.
    X = (X - X.mean(axis=0)) / X.std(axis=0).mean()
    bar = tqdm(total=n_bijections * len(everyone), desc=models)
    for seed in range(n_bijections):
        split = Split.draw(X, images_of(X, seed).astype(np.float32), seed)
        for name, aligner in everyone.items():
            bar.set_postfix_str(name)
            facts = {"models": models, "method": name, "bijection": seed}
            for record in judged(fitted(aligner, split), split):
                yield {**facts, **record}
            bar.update()
    bar.close()


def tables(records: Sequence[Record]) -> str:
    """Errors of each method, one table for each kind of models."""
    header = ("", *(f"{rows} {way}" for rows, way in product(ROWS, WAYS)))
    return "\n".join(
        table(
            f"{models} model: 1 - R\N{SUPERSCRIPT TWO}",
            header,
            [
                (name, *(spread_of(errors(same, *cell)) for cell in product(ROWS, WAYS)))
                for name, same in grouped(found, "method").items()
            ],
        )
        for models, found in grouped(records, "models").items()
    )


def errors(records: Sequence[Record], rows: str, way: str) -> Array:
    """1 - R² of every bijection."""
    return 1 - values_of(records, measure="R2", rows=rows, way=way)


def draw(records: Sequence[Record]) -> Any:
    """Errors on a scale of powers: full marks on rows held out, hollow ones on rows learned from."""
    by_models = grouped(records, "models")
    names = list(grouped(records, "method"))
    figure = Figure(figsize=(12, 1.6 + 0.4 * len(names)), layout="constrained")
    panels = figure.subplots(1, len(by_models), sharex=True, sharey=True, squeeze=False)[0]
    for ax, (models, found) in zip(panels, by_models.items(), strict=True):
        for (row, same), way in product(enumerate(grouped(found, "method").values()), WAYS):
            height = row + (-0.15 if way == FORWARD else 0.15)
            for rows in ROWS:
                style = {"markerfacecolor": "none"} if rows == TRAIN else {}
                label = f"{way}, {rows} rows" if row == 0 else None
                xs = errors(same, rows, way)
                heights = np.full(len(xs), height)
                ax.plot(xs, heights, "o", color=COLOURS[way], label=label, **style)
        ax.set(title=f"{models} model", xlabel="1 - R\N{SUPERSCRIPT TWO}", xscale="log")
        ax.axvline(1, color="#666666", linewidth=1, zorder=0)
        ax.grid(axis="x", color="#dddddd", linewidth=0.8)
        ax.spines[["top", "right"]].set_visible(False)
    panels[0].set_yticks(range(len(names)), names)
    panels[0].invert_yaxis()
    figure.legend(
        *panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=4, frameon=False
    )
    return figure


def parse() -> argparse.Namespace:
    """Read the options."""
    parser = parser_of(__doc__, texts=2000)
    add = parser.add_argument
    add("--layer", type=int, default=-1, help="of the first model; 0 is the embeddings (the last)")
    add("--bijections", type=int, default=1, help="random ones, each with a split of its own (1)")
    return parser.parse_args()


def main() -> None:
    """Check a trained model and an untrained one."""
    options = parse()
    warnings.filterwarnings("once", message=".*were cut")
    print(describe(environment()))
    texts, records = sentences_of(options), []
    try:
        for models, seeds in seeds_of(options).items():
            states = extract_hidden_states(
                seeds.bodies()[0], texts, tokenizer=seeds.tokenizer, layers=options.layer
            )
            epochs, width = (2, QUICK_WIDTH) if options.quick else (None, None)
            X = np.asarray(states[0])[:, :width]
            records.extend(check(models, X, options.bijections, epochs))
    finally:
        if records:
            print(tables(records), flush=True)
            write_csv(options.out, NAME, records)
            write_figure(options.out, NAME, draw(records))


if __name__ == "__main__":
    main()
