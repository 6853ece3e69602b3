"""Compare the attention heads of two models: which attend alike, and what maps between them explain.

Usage: ``python benchmarks/papers/rome_attention.py``; ``--help`` for the options. ``--models A B`` takes two
encoders of one shape that share a tokenizer.

* *Heads beside heads*: cosine of the maps of a head of the first and a head of the second model, over all
  pairs of tokens of all texts, taken about uniform attention: sum (A - 1/T)(B - 1/T) over the square root
  of sum (A - 1/T)² sum (B - 1/T)², which is 1 where two heads attend in the same proportion, and 0 where
  they have nothing in common but that attention adds up to one. Each head of the first model is matched
  with one of the second so that the sum is greatest, within each layer and over all heads; the matching is
  made on some sentences and judged on others. A *partner* is a matched head of cosine 0.5 or more; two
  heads are each other's *best* if neither is closer to any other.
* *A map between heads*: the weights of all heads of a layer for a pair of tokens, about uniform attention,
  are a row as wide as there are heads. R² of such rows of the other model, on sentences held out, forward
  / inverse. A map that keeps the variance, as symmetric aligners do, explains 2r - 1 of what correlates
  at r: where the heads have little in common, every bijection is worse than the mean, and the ridges, which
  are none, show what there is.
* *As published*: heads as rows of mean attention, as in ``_mean_rows.py``, with the faults of the published
  code mended one after the other. Its figures are squared errors of such rows, which are small because
  the rows are: R² says how small. *Follows the variance* is the correlation of the errors, over pairs of
  heads, with the variance of the head that is to be predicted: near 1, a map of the errors shows one
  property of the second model's heads and no likeness. The published matrix is also computed for one
  triangle and mirrored, though head i of one and j of the other model are no such pair as j and i.

Two controls stand beside the trained models: what the untrained ones have in common, and *places alone*:
the trained models, asked for different sentences of the same length.

References
----------
Ren et al., "All Roads Lead to Rome? Exploring the Invariance of Transformers' Representations", arXiv
2305.14555 (2023).
"""

import argparse
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))  # what all benchmarks share

import numpy as np
from _heads import Heads, match, strangers
from _judging import RIDGES, Record, Split, TwoRidges, grouped, scores
from _mean_rows import measured
from _models import (
    CONTROL,
    TRAINED,
    parser_of,
    seeds_of,
    sentences_of,
    write_csv,
    write_figure,
)
from _report import describe, environment, table

from sklearn_bijection import CCAAligner, INNAligner, PermutationAligner, ProcrustesAligner

PLACES, ECHO = "places alone", "follows the variance"
PARTNER = 0.5
Both = dict[str, tuple[Heads, Heads]]

ALIGNERS: dict[str, Any] = {
    "PermutationAligner()": PermutationAligner(),
    "ProcrustesAligner()": ProcrustesAligner(),
    "CCAAligner()": CCAAligner(),
    "INNAligner(max_epochs=0)": INNAligner(max_epochs=0, random_state=0),
    RIDGES: TwoRidges(),
}


def gathered(
    pairs: dict[str, tuple[Any, Any]], tokenizer: Any, parts: Sequence[list[str]], n_rows: int
) -> Both:
    """Heads on the sentences to fit to, and on those to judge by: of both pairs, and of places alone."""
    found = {
        name: tuple(Heads.of(models, tokenizer, part, n_rows) for part in parts)
        for name, models in pairs.items()
    }
    alike = [strangers(tokenizer, part) for part in parts]
    found[PLACES] = tuple(
        Heads.of(pairs[TRAINED], tokenizer, texts, n_rows, others) for texts, others in alike
    )
    return found


def matching(fit: Heads, held_out: Heads) -> Iterator[Record]:
    """How well heads match, layer by layer and over all."""
    for layer, block in fit.blocks():
        chosen = match(fit.correlation[block, block])
        found = held_out.correlation[block, block]
        matched = found[np.arange(len(found)), chosen]
        best = found.argmax(axis=1)
        mutual = found.argmax(axis=0)[best] == np.arange(len(found))
        yield {
            "layer": layer,
            "heads": len(found),
            "mean": float(np.abs(found).mean()),
            "matched": float(matched.mean()),
            "partners": int((matched >= PARTNER).sum()),
            "best": int(mutual.sum()),
        }


def mapped(fit: Heads, held_out: Heads) -> Iterator[Record]:
    """R² of maps between the weights of a layer's heads, and of all heads."""
    for layer, block in fit.blocks():
        split = Split(fit.X[:, block], fit.y[:, block], held_out.X[:, block], held_out.y[:, block])
        for name, aligner in ALIGNERS.items():
            yield {"layer": layer, "name": name, **scores(aligner.fit(split.X, split.y), split)}


def matching_table(records: Sequence[Record]) -> str:
    """Rows are layers of each pair of models."""
    header = ("", "layer", "heads", "mean |r|", "matched r", "partners", "each other's best")
    keys = ("layer", "heads", "mean", "matched", "partners", "best")
    rows = [(record["pair"], *(_number(record[key]) for key in keys)) for record in records]
    return table("Heads beside heads, on sentences held out", header, rows)


def maps_table(pair: str, records: Sequence[Record]) -> str:
    """Rows are aligners, columns layers."""
    rows = [
        (name, *(f"{r['forward']:.3f} / {r['inverse']:.3f}" for r in found))
        for name, found in grouped(records, "name").items()
    ]
    header = ("", *(f"layer {layer}" for layer in grouped(records, "layer")))
    return table(f"{pair}: held-out R² between the weights of heads", header, rows)


def published_table(records: Sequence[Record]) -> str:
    """Rows are what is mended, columns the pairs."""
    columns = {"r2": ("R²", ".3f"), "error": ("squared error", ".1e"), "echo": (ECHO, ".2f")}
    rows = [
        (
            name,
            *(" / ".join(f"{r[key]:{form}}" for r in found) for key, (_, form) in columns.items()),
        )
        for name, found in grouped(records, "name").items()
    ]
    title = f"As published: rows of mean attention; {' / '.join(grouped(records, 'pair'))}"
    return table(title, ("", *(heading for heading, _ in columns.values())), rows)


def _number(value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def lopsided(heads: Heads) -> float:
    """Correlation of the matrix of all heads with its mirror image, without the diagonal."""
    matrix = heads.correlation
    off = ~np.eye(len(matrix), dtype=bool)
    return float(np.corrcoef(matrix[off], matrix.T[off])[0, 1])


def cells(heads: Heads) -> Iterator[Record]:
    """The matrix of all heads, an entry at a time; layers count from 1, heads from 0."""
    n_heads, matrix = heads.shape[1], heads.correlation
    for (i, j), r in np.ndenumerate(matrix):
        (layer, head), (other_layer, other_head) = divmod(i, n_heads), divmod(j, n_heads)
        first = {"layer": layer + 1, "head": head}
        yield first | {"other_layer": other_layer + 1, "other_head": other_head, "r": float(r)}


def picture(found: Both) -> Any:
    """Heads by heads, a panel for each pair of models, with lines between the layers."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4 * len(found) + 1, 4.2), layout="constrained")
    axes = figure.subplots(1, len(found))
    for ax, (pair, (_, heads)) in zip(axes, found.items(), strict=True):
        image = ax.imshow(heads.correlation, vmin=-1, vmax=1, cmap="RdBu_r")
        n_layers, n_heads = heads.shape
        between = np.arange(1, n_layers) * n_heads - 0.5
        ax.hlines(between, -0.5, n_layers * n_heads - 0.5, color="black", linewidth=0.5)
        ax.vlines(between, -0.5, n_layers * n_heads - 0.5, color="black", linewidth=0.5)
        middle = np.arange(n_layers) * n_heads + (n_heads - 1) / 2
        ax.set(xticks=middle, yticks=middle, title=pair, xlabel="heads of the second, by layer")
        ax.set(xticklabels=range(1, n_layers + 1), yticklabels=range(1, n_layers + 1))
    axes[0].set(ylabel="heads of the first model, by layer")
    figure.colorbar(image, ax=axes, label="cosine about uniform attention")
    return figure


def run(options: argparse.Namespace) -> tuple[list[Record], list[Record], Both]:
    """Records of all tables, the matrices, and what they were made of."""
    seeds = seeds_of(options)
    tokenizer, texts = seeds[TRAINED].tokenizer, sentences_of(options)
    cut = len(texts) * 4 // 5
    parts = texts[:cut], texts[cut:]
    pairs = {name: seeds[name].bodies() for name in (TRAINED, CONTROL)}
    found = gathered(pairs, tokenizer, parts, options.rows)
    matched = [{"pair": p, **r} for p, heads in found.items() for r in matching(*heads)]
    print(matching_table(matched))
    for pair, (_, heads) in found.items():
        print(f"{pair}: the matrix and its mirror image correlate at {lopsided(heads):.2f}")
    maps = []
    for pair, heads in found.items():
        maps += [{"pair": pair, **record} for record in mapped(*heads)]
        print(maps_table(pair, [record for record in maps if record["pair"] == pair]), flush=True)
    published = [
        {"pair": pair, **record}
        for pair, models in pairs.items()
        for record in measured(models, tokenizer, *parts, options.pairs)
    ]
    print(published_table(published))
    tables = {"matching": matched, "maps": maps, "published": published}
    records = [{"table": name, **record} for name, rows in tables.items() for record in rows]
    return records, [{"pair": p, **r} for p, (_, h) in found.items() for r in cells(h)], found


def main() -> None:
    """Compare, print, write, draw."""
    parser = parser_of(__doc__)
    parser.add_argument(
        "--rows", type=int, default=20_000, help="pairs of tokens that a map is fitted to (20000)"
    )
    parser.add_argument(
        "--pairs",
        type=int,
        default=64,
        help="pairs of heads that are drawn for the last table (64)",
    )
    options = parser.parse_args()
    if options.quick:
        options.rows, options.pairs = min(options.rows, 2000), min(options.pairs, 12)
    warnings.filterwarnings("ignore", message=".*were cut")
    print(describe(environment()))
    records, matrices, found = run(options)
    write_csv(options.out, "rome_attention", records)
    write_csv(options.out, "rome_attention_heads", matrices)
    write_figure(options.out, "rome_attention", picture(found))


if __name__ == "__main__":
    main()
