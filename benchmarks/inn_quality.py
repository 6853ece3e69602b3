"""Judge INNAligner on rows it has not seen: how good it is, what matters for that, and how it does it.

Usage: ``python benchmarks/inn_quality.py [SECTION ...]``, and ``--help`` for the options. Sections:

* ``main``: beside both closed forms, its own start, and two ridges, one each way, which are no bijection.
* ``ladder``: one choice changed at a time.
* ``seeds``: five values of `random_state` on the same rows.
* ``layers``: hidden states of two models, each layer of the one with the same layer of the other.
* ``rome``: y = g(X) for real X and a frozen random invertible network g; a learning curve.
* ``sizes``: two columns (y = g(X) as in ``rome``), 4,096 columns (the start alone), a million rows.
* ``norms``: how the map tells rows of y from images of rows of X.
* ``published``: beside the recipe of Ren et al. (2023), and the same with its faults mended.
* ``peers``: beside flows of FrEIA and zuko with as many parameters, trained alike.

A figure is shown, and appended to ``--json`` as a line, as soon as it is there. The tables of a section
follow at its end, also where it is broken off from the keyboard.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path

import numpy as np
from _judging import (
    CCA,
    PROCRUSTES,
    RIDGES,
    Array,
    Log,
    Record,
    against,
    grouped,
    summary,
)
from _report import describe, environment, table
from _sections import (
    Setup,
    run_ladder,
    run_layers,
    run_main,
    run_norms,
    run_peers,
    run_published,
    run_rome,
    run_seeds,
    run_sizes,
    sizes_that_fit,
)
from shrinkage import load

SIZES = (500, 1600, 6400)
CURVE = (400, 1600, 6400)
QUICK_SIZES = (100, 300)
QUICK_ROWS, QUICK_COLUMNS, QUICK_EPOCHS = 400, 32, 2


def compared(found: Sequence[Record], *, errors: bool = False, ridges: bool = False) -> str:
    """Scores, then the gains over the closed forms, and over two ridges."""
    tables = [summary(found, errors=errors)]
    tables.append(against(found, (CCA, PROCRUSTES), "the best closed form"))
    if ridges:
        tables.append(against(found, (RIDGES,), RIDGES))
    return "\n".join(tables)


def side_by_side(found: Sequence[Record]) -> str:
    """One column for each map."""
    rows = [
        (measure, *(f"{record['value']:.3f}" for record in same))
        for measure, same in grouped(found, "where").items()
    ]
    return table("What the map goes by", ("", *grouped(found, "name")), rows)


Run = Callable[[Setup], Iterator[Record]]
Show = Callable[[Sequence[Record]], str]
SECTIONS: dict[str, tuple[Run, Show]] = {
    "main": (run_main, partial(compared, ridges=True)),
    "ladder": (run_ladder, partial(summary, extras=("best epoch", "epochs"))),
    "seeds": (run_seeds, summary),
    "layers": (run_layers, compared),
    "rome": (run_rome, partial(compared, errors=True)),
    "sizes": (run_sizes, summary),
    "norms": (run_norms, side_by_side),
    "published": (run_published, partial(summary, errors=True)),
    "peers": (run_peers, partial(summary, extras=("parameters",))),
}


def run(section: str, setup: Setup, log: Log) -> None:
    """Go through one section, and lay out what there is at its end."""
    collect, lay_out = SECTIONS[section]
    found: list[Record] = []
    try:
        found.extend(log.follow(section, collect(setup)))
    finally:
        if found:
            print(lay_out(found), flush=True)


def load_layers(paths: Sequence[Path]) -> list[tuple[Array, Array]]:
    """Pairs of hidden states, one for each layer."""
    stacks = []
    for path in paths:
        with np.load(path) as arrays:
            stacks.append(arrays["hidden"].astype(np.float32))
    return [tuple(stack[:, i] for stack in stacks) for i in range(stacks[0].shape[1])]


def parse() -> argparse.Namespace:
    """Read the options."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("sections", nargs="*", metavar="SECTION", help=f"{', '.join(SECTIONS)} (all)")
    add("--pair", metavar="FILE.npz:KEY_X,KEY_Y", help="instead of the packaged sentences")
    add("--layers", nargs=2, type=Path, metavar="FILE.npz", help="arrays `hidden` of two models")
    add("--sizes", nargs="+", type=int, metavar="N", help="training rows (500 1600 6400 and all)")
    add("--splits", type=int, default=5, help="of main, layers, rome, published, peers (5)")
    add("--rows", type=int, help="training rows of ladder, norms, published and peers (all)")
    add("--seed-rows", type=int, default=1600, help="training rows of seeds (1600)")
    add(
        "--variants",
        nargs="+",
        default=[],
        metavar="NAME",
        help="of ladder, such as n_blocks=4 or lr",
    )
    add("--device", default="cpu", help="of all networks (cpu)")
    add("--quick", action="store_true", help="few rows, to see that it works")
    add("--json", type=Path, help="file to append all figures to, one a line")
    options = parser.parse_args()
    if unknown := set(options.sections) - set(SECTIONS):
        parser.error(f"no such section: {', '.join(unknown)}. Choose from {', '.join(SECTIONS)}.")
    if "layers" in options.sections and not options.layers:
        parser.error("the section layers needs --layers FILE.npz FILE.npz")
    return options


def make_setup(options: argparse.Namespace) -> Setup:
    """Load the data, and cut it down if it is to be quick."""
    X, y = load(options.pair)
    layers = load_layers(options.layers) if options.layers else []
    rows = columns = None
    if options.quick:
        rows, columns, layers = QUICK_ROWS, QUICK_COLUMNS, layers[:2]
    X, y, *flat = (a[:rows, :columns] for a in (X, y, *(b for pair in layers for b in pair)))
    n_train = len(X) - -(-len(X) // 5)
    sizes = options.sizes or (QUICK_SIZES if options.quick else (*SIZES, n_train))
    return Setup(
        pair=(X, y),
        layers=list(zip(flat[::2], flat[1::2], strict=True)),
        sizes=sizes_that_fit(len(X), sizes),
        curve=sizes_that_fit(len(X), QUICK_SIZES if options.quick else CURVE),
        n_splits=1 if options.quick else options.splits,
        rows=options.rows,
        seed_rows=options.seed_rows,
        variants=options.variants,
        device=options.device,
        epochs=QUICK_EPOCHS if options.quick else None,
    )


def main() -> None:
    """Run the sections that the options ask for."""
    options = parse()
    setup, log = make_setup(options), Log(options.json)
    facts = environment()
    facts["versions"] |= {name: version(name) for name in ("torch", "skorch")}
    shapes = f"{setup.pair[0].shape} -> {setup.pair[1].shape}"
    print(f"{describe(facts)}\n{shapes}, {len(setup.layers)} layers")
    log.note({"environment": facts, "options": {k: str(v) for k, v in vars(options).items()}})
    try:
        for section in options.sections or SECTIONS:
            if section != "layers" or setup.layers:
                run(section, setup, log)
    except KeyboardInterrupt:
        sys.exit("broken off")


if __name__ == "__main__":
    main()
