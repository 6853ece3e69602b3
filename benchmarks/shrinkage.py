"""Judge the shrinkage that CCAAligner chooses by itself on rows it has not seen.

Usage: ``python benchmarks/shrinkage.py``, and ``--help`` for the options.

Every split draws training rows of each size and judges all on the same held-out fifth. The *best
fixed* shrinkage is the one out of a fine grid that turns out best on the held-out rows: an oracle
that no user has. The two ridges are one-way maps, each with its own penalty cross-validated on the
training rows: they are no bijection, and show what being one costs.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from _report import describe, environment, table, write_json
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import train_test_split
from tqdm import tqdm

from sklearn_bijection import CCAAligner, ProcrustesAligner
from sklearn_bijection.datasets import load_sentence_pair
from sklearn_bijection.metrics import r2

Array = npt.NDArray[np.floating]
Scores = dict[str, tuple[float, float]]

SIZES = (500, 1600)
GRID = (
    *(0, 0.003, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.13, 0.17, 0.2, 0.25, 0.3),
    *(0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.9, 1),
)
PENALTIES = np.geomspace(1, 1000, 10)

AUTO, BEST = "CCAAligner()", "best fixed shrinkage"
RIDGES = "two ridges, one each way"


def load(pair: str | None) -> tuple[Array, Array]:
    """The packaged sentences, or two arrays of a file given as ``FILE.npz:KEY_X,KEY_Y``."""
    if pair is None:
        X, y = load_sentence_pair(return_X_y=True)
        return X, y
    path, _, keys = pair.rpartition(":")
    with np.load(path) as arrays:
        X, y = (arrays[key].astype(np.float32) for key in keys.split(","))
    return X, y


def both_ways(aligner: Any, X: Array, y: Array) -> tuple[float, float]:
    """R² forward and inverse."""
    return r2(y, aligner.transform(X)), r2(X, aligner.inverse_transform(y))


def judge(X: Array, y: Array, X_test: Array, y_test: Array) -> tuple[Scores, dict[str, float]]:
    """Held-out R² of every contestant, and the shrinkages chosen."""
    auto = CCAAligner().fit(X, y)
    fixed = {
        shrinkage: both_ways(CCAAligner(shrinkage=shrinkage).fit(X, y), X_test, y_test)
        for shrinkage in GRID
    }
    best = max(fixed, key=lambda shrinkage: sum(fixed[shrinkage]))
    forward, inverse = RidgeCV(PENALTIES).fit(X, y), RidgeCV(PENALTIES).fit(y, X)
    scores = {
        AUTO: both_ways(auto, X_test, y_test),
        BEST: fixed[best],
        "shrinkage='oas'": both_ways(CCAAligner(shrinkage="oas").fit(X, y), X_test, y_test),
        "shrinkage=0": fixed[0],
        "ProcrustesAligner()": both_ways(ProcrustesAligner().fit(X, y), X_test, y_test),
        RIDGES: (r2(y_test, forward.predict(X_test)), r2(X_test, inverse.predict(y_test))),
    }
    return scores, {"chosen": auto.shrinkage_[0], "best": float(best)}


def splits(X: Array, y: Array, n_splits: int) -> Iterator[tuple[int, list[Array]]]:
    """Training rows of each size, and a fifth of all rows held out, the same for all sizes."""
    for seed in range(n_splits):
        X_all, X_test, y_all, y_test = train_test_split(X, y, test_size=0.2, random_state=seed)
        for size in sorted({*(size for size in SIZES if size < len(X_all)), len(X_all)}):
            yield size, [X_all[:size], y_all[:size], X_test, y_test]


def summarise(runs: list[dict[str, Any]]) -> str:
    """Lay out mean and standard deviation over the splits of one size."""
    symmetric = {name: [np.mean(run["r2"][name]) for run in runs] for name in runs[0]["r2"]}
    gaps = np.array(symmetric[AUTO]) - symmetric[BEST]
    rows = [
        (
            name,
            *(_spread([run["r2"][name][way] for run in runs]) for way in (0, 1)),
            _spread(values),
        )
        for name, values in symmetric.items()
    ]
    shrinkages = {key: sorted({round(run[key], 3) for run in runs}) for key in ("chosen", "best")}
    title = f"{runs[0]['n_train']:,} training rows, {len(runs)} splits: held-out R²"
    return (
        table(title, ("", "forward", "inverse", "symmetric"), rows)
        + f"\nchosen {shrinkages['chosen']}, best {shrinkages['best']}; symmetric R² of {AUTO} less that "
        f"of the {BEST}: mean {gaps.mean():+.4f}, worst {gaps.min():+.4f}"
    )


def _spread(values: list[float]) -> str:
    return f"{np.mean(values):.3f} ± {np.std(values):.3f}"


def main() -> None:
    """Fit, judge and print, size by size."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--pair", metavar="FILE.npz:KEY_X,KEY_Y", help="instead of the packaged pair"
    )
    parser.add_argument("--splits", type=int, default=5, help="random splits (5)")
    parser.add_argument("--json", type=Path, help="file to write all figures to")
    options = parser.parse_args()
    X, y = load(options.pair)
    facts = environment()
    print(f"{describe(facts)}\n{X.shape} -> {y.shape}")
    runs: list[dict[str, Any]] = []
    for size, arrays in tqdm(list(splits(X, y, options.splits)), unit="split"):
        scores, shrinkages = judge(*arrays)
        runs.append({"n_train": size, "r2": scores, **shrinkages})
    for size in sorted({run["n_train"] for run in runs}):
        print(summarise([run for run in runs if run["n_train"] == size]))
    write_json(options.json, {"environment": facts, "runs": runs})


if __name__ == "__main__":
    main()
