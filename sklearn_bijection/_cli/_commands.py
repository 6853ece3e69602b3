"""What the commands for the user's own files do."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..metrics import compare_aligners, r2
from ._models import ALIGNERS, load, parse_aligner, save
from ._picture import check_picture, draw_comparison
from ._reading import Table, read_pair, read_table, read_weight
from ._terminal import InputError, note, progress
from ._writing import WRITERS, Stream, check_target, replacing, write_rows

# Rows on which `fit` judges, so that the predictions of any number of rows fit into memory.
_JUDGED = 20_000
_NAMES = {"transform": ("target_names_in_", "y"), "inverse_transform": ("feature_names_in_", "x")}


def compare(args: Namespace) -> None:
    """Print the cross-validated table, and write it and its picture if asked to."""
    csv = check_target(args.csv, (".csv",)) if args.csv else None
    plot = check_picture(args.plot) if args.plot else None
    X, y = read_pair(args.X, args.Y)
    note(f"X  {X.name}: {X.shape}\ny  {y.name}: {y.shape}", quiet=args.quiet)
    comparison = compare_aligners(
        dict(args.aligner or map(parse_aligner, ALIGNERS)),
        X.rows,
        y.rows,
        cv=args.cv,
        similarity=args.similarity.replace("-", " "),
        random_state=args.seed,
        progress=not args.quiet,
    )
    print(comparison)
    if csv:
        with replacing(csv) as scratch:
            comparison.to_csv(scratch)
        note(f"wrote {csv}", quiet=args.quiet)
    if plot:
        draw_comparison(comparison, plot)
        note(f"wrote {plot}", quiet=args.quiet)


def fit(args: Namespace) -> None:
    """Fit on all rows, save, and print what was found."""
    target = check_target(args.output)
    X, y = read_pair(args.X, args.Y)
    weight = read_weight(args.sample_weight, X)
    aligner = _fit_in_blocks(args.aligner[1], X, y, weight, quiet=args.quiet)
    save(aligner, target)
    print("\n".join(_summary(aligner, X, y, weight)))
    note(f"wrote {target} ({target.stat().st_size / 1e6:,.1f} MB)", quiet=args.quiet)


def convert(args: Namespace) -> None:
    """Map the rows of a file, forwards or back, into another file."""
    target = check_target(args.output, WRITERS)
    aligner, table = load(args.model), read_table(args.input)
    mapped = _mapped(getattr(aligner, args.way), table, quiet=args.quiet)
    first = next(mapped)
    names = _names(aligner, args.way, first.shape[1])
    write_rows(target, Stream(chain([first], mapped), table.n_rows, names))
    note(f"wrote {target}: {table.n_rows:,} rows", quiet=args.quiet)


def _fit_in_blocks(
    aligner: Any, X: Table, y: Table, weight: NDArray[Any] | None, *, quiet: bool
) -> Any:
    """Fit in memory that does not depend on the number of rows, where the aligner can."""
    if not hasattr(aligner, "partial_fit"):
        return aligner.fit(X.rows, y.rows, weight)
    for block in progress(_common_blocks(X, y), "fitting", quiet=quiet):
        share = None if weight is None else weight[block]
        if share is None or share.any():
            aligner.partial_fit(X[block], y[block], share)
    # A stream is solved at the first look, which belongs to the fit.
    aligner.transform(X[:1])
    return aligner


def _common_blocks(X: Table, y: Table) -> list[slice]:
    return (X if X.width > y.width else y).blocks()


def _summary(aligner: Any, X: Table, y: Table, weight: NDArray[Any] | None) -> Iterator[str]:
    yield f"{aligner} fitted on {X.n_rows:,} pairs of rows"
    for name, table, view in (("X", X, 0), ("y", y, 1)):
        rank = getattr(aligner, f"rank_{name.lower()}_", None)
        shrinkage = getattr(aligner, "shrinkage_", None)
        facts = [
            f"{table.width:,} wide",
            *([f"rank used {rank:,}"] if rank is not None else []),
            *([f"shrinkage {shrinkage[view]:.3g}"] if shrinkage is not None else []),
        ]
        yield f"  {name}  {table.name}: {', '.join(facts)}"
    if hasattr(aligner, "canonical_correlations_"):
        rho = aligner.canonical_correlations_
        yield f"  {len(rho):,} canonical pairs, correlations from {rho[0]:.3f} to {rho[-1]:.3f}"
    if hasattr(aligner, "scale_"):
        yield f"  scale {aligner.scale_:.4g}"
    yield from _training_scores(aligner, X, y, weight)


def _training_scores(
    aligner: Any, X: Table, y: Table, weight: NDArray[Any] | None
) -> Iterator[str]:
    some = slice(None, None, -(-X.n_rows // _JUDGED))
    share = None if weight is None else weight[some]
    forward = r2(y[some], aligner.transform(X[some]), sample_weight=share)
    inverse = r2(X[some], aligner.inverse_transform(y[some]), sample_weight=share)
    rows = "these" if some.step == 1 else f"{len(X[some]):,} of these"
    yield f"  R² on {rows} training rows: forward {forward:.3f}, inverse {inverse:.3f}"
    yield "  (rows that it has seen flatter an aligner; compare judges on rows held out)"


def _mapped(step: Any, table: Table, *, quiet: bool) -> Iterator[NDArray[Any]]:
    blocks = progress(table.blocks(), "mapping", quiet=quiet)
    for rows in table.walk(blocks):
        try:
            yield np.asarray(step(rows))
        except ValueError as error:
            raise InputError(f"{table.name}: {error}") from error


def _names(aligner: Any, way: str, width: int) -> list[str]:
    """Names of the columns that come out: those seen in the fit, else y0, y1, ... or x0, x1, ..."""
    attribute, letter = _NAMES[way]
    known = getattr(aligner, attribute, None)
    return [f"{letter}{i}" for i in range(width)] if known is None else [str(n) for n in known]
