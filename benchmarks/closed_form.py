"""Time the closed-form aligners against their peers and against the least work there is.

Usage: ``python benchmarks/closed_form.py``, and ``--help`` for the options.

All contestants take turns, round after round; a ratio is the median of the ratios within a round,
with the least and the largest. A peer that is not installed is named and left out.

* The *floor* of CCA is what no solver from moments can do without, for the same arrays and in their
  type: the products X'X, Y'Y and X'Y, two eigen-decompositions and one SVD. We compute in float64
  whatever comes in, so the floor of a float32 pair is half the work that we do.
* Correlations are those of the fitted variates on the training rows, in descending order. Shrinkage
  gives some of them away on purpose, for the sake of rows that were not seen.
* The bar of Procrustes is centring, ``scipy.linalg.orthogonal_procrustes`` and the scale.
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import scipy.linalg
from _race import Array, Contestant, Problem, Seconds, race, ratio
from _report import Spread, describe, environment, spread, table, write_json
from sklearn.cross_decomposition import CCA

from sklearn_bijection import CCAAligner, ProcrustesAligner

Record = dict[str, Any]

SIZES = ("5000x128", "20000x384", "20000x768", "20000x768:float32")
QUICK_SIZES = ("1000x24", "1000x24:float32")
#: Rows times width squared beyond which scikit-learn's CCA is left out: it would take hours.
SKLEARN_REACH = 10**8

FLOOR = "floor"
SKLEARN, TEXTBOOK = "scikit-learn CCA", "CCAAligner(shrinkage=0)"
SCIPY = "centring + scipy + scale"


def cca_contestants(problem: Problem, X: Array, y: Array) -> Iterator[Contestant]:
    """The floor, our aligner, and its peers."""
    yield Contestant(FLOOR, _floor)
    for shrinkage in (0, "oas", "auto"):
        name, aligner = f"CCAAligner(shrinkage={shrinkage!r})", CCAAligner(shrinkage=shrinkage)
        yield Contestant(name, aligner.fit, _our_correlations)
    rounds = int(problem.n_samples * problem.width**2 <= SKLEARN_REACH)
    yield Contestant(SKLEARN, _sklearn_cca, _transformed_correlations, rounds=rounds)
    yield Contestant("cca-zoo CCA", _cca_zoo, _cca_zoo_correlations, "cca_zoo")
    yield Contestant("cca-zoo RidgeCCA(0.1)", _cca_zoo_ridge, _cca_zoo_correlations, "cca_zoo")
    metric = partial(_netrep, 0.0)
    yield Contestant("netrep LinearMetric(0)", metric, _transformed_correlations, "netrep")


def procrustes_contestants(problem: Problem, X: Array, y: Array) -> Iterator[Contestant]:
    """The bar, scipy with what it leaves to the caller, our aligner, and its peers."""
    yield Contestant(SCIPY, _scipy_procrustes, lambda fitted, *_: fitted[0])
    yield Contestant(
        "ProcrustesAligner()", ProcrustesAligner().fit, lambda fitted, *_: fitted.rotation_
    )
    yield Contestant(
        "qc-procrustes orthogonal", _qc_procrustes, lambda fitted, *_: fitted.t, "procrustes"
    )
    yield Contestant(
        "netrep LinearMetric(1)",
        partial(_netrep, 1.0),
        lambda fitted, *_: fitted.Wx_ @ fitted.Wy_.T,
        "netrep",
    )


def _floor(X: Array, y: Array) -> None:
    np.linalg.eigh(X.T @ X)
    np.linalg.eigh(y.T @ y)
    np.linalg.svd(X.T @ y)


def _sklearn_cca(X: Array, y: Array) -> Any:
    return CCA(n_components=X.shape[1]).fit(X, y)


def _cca_zoo(X: Array, y: Array) -> Any:
    return import_module("cca_zoo.linear").CCA(n_components=X.shape[1]).fit([X, y])


def _cca_zoo_ridge(X: Array, y: Array) -> Any:
    model = import_module("cca_zoo.linear").RidgeCCA(n_components=X.shape[1], shrinkage=0.1)
    return model.fit([X, y])


def _netrep(alpha: float, X: Array, y: Array) -> Any:
    return import_module("netrep.metrics").LinearMetric(alpha=alpha).fit(X, y)


def _qc_procrustes(X: Array, y: Array) -> Any:
    return import_module("procrustes").orthogonal(X, y, translate=True, scale=True)


def _scipy_procrustes(X: Array, y: Array) -> tuple[Array, float]:
    X, y = X - X.mean(axis=0), y - y.mean(axis=0)
    rotation, _ = scipy.linalg.orthogonal_procrustes(X, y)
    return rotation, float(np.linalg.norm(y) / np.linalg.norm(X))


def _our_correlations(fitted: Any, X: Array, y: Array) -> Array:
    return correlations(*fitted.canonical_variates(X, y))


def _transformed_correlations(fitted: Any, X: Array, y: Array) -> Array:
    return correlations(*fitted.transform(X, y))


def _cca_zoo_correlations(fitted: Any, X: Array, y: Array) -> Array:
    return correlations(*fitted.transform([X, y]))


def correlations(a: Array, b: Array) -> Array:
    """Absolute correlation of each column of `a` with that of `b`, in descending order."""
    a, b = (columns - columns.mean(axis=0, dtype=np.float64) for columns in (a, b))
    products = np.abs(np.einsum("ij,ij->j", a, b))
    found = products / np.linalg.norm(a, axis=0) / np.linalg.norm(b, axis=0)
    return np.sort(found)[::-1]


def exact_correlations(X: Array, y: Array) -> Array:
    """Canonical correlations by definition: singular values between orthonormal bases."""
    bases = [np.linalg.qr(a - a.mean(axis=0, dtype=np.float64)).Q for a in (X, y)]
    found: Array = scipy.linalg.svdvals(bases[0].T @ bases[1])
    return found


def run_cca(problem: Problem, rounds: int) -> Record:
    """One race, with ratios to the floor and to our textbook CCA, and the correlations found."""
    X, y = problem.draw()
    contestants = list(cca_contestants(problem, X, y))
    seconds, found = race(contestants, X, y, rounds, f"CCA {problem}")
    exact = exact_correlations(X, y)
    quality = {
        name: {
            "mean_correlation": float(values.mean()),
            "minus_exact": _difference(values, exact),
            "minus_sklearn": _difference(values, found.get(SKLEARN)),
        }
        for name, values in found.items()
    }
    return _record("CCA", problem, contestants, seconds, (FLOOR, TEXTBOOK), quality)


def run_procrustes(problem: Problem, rounds: int) -> Record:
    """One race, with ratios to scipy, and how far each rotation is from scipy's."""
    X, y = problem.draw()
    contestants = list(procrustes_contestants(problem, X, y))
    seconds, found = race(contestants, X, y, rounds, f"Procrustes {problem}")
    quality = {
        name: {"rotation_minus_scipy": float(np.abs(R - found[SCIPY]).max())}
        for name, R in found.items()
    }
    return _record("Procrustes", problem, contestants, seconds, (SCIPY,), quality)


def _difference(values: Array, reference: Array | None) -> Spread | None:
    return None if reference is None else spread(values - reference)


def _record(
    method: str,
    problem: Problem,
    contestants: Sequence[Contestant],
    seconds: Seconds,
    to: Sequence[str],
    quality: dict[str, Record],
) -> Record:
    """What was measured, by contestant; of an absent one, why."""
    return {
        "method": method,
        **asdict(problem),
        "to": list(to),
        "results": {
            contestant.name: {"absent": contestant.absence}
            if contestant.absence
            else {
                "seconds": spread(seconds[contestant.name]),
                "rounds": seconds[contestant.name],
                "ratio": {name: ratio(seconds, contestant.name, name) for name in to},
                **quality.get(contestant.name, {}),
            }
            for contestant in contestants
        },
    }


def show(problem: Problem, record: Record) -> str:
    """Lay out the table of one race."""
    quality = {"CCA": "mean correlation", "Procrustes": "rotation - scipy's"}[record["method"]]
    header = ("", "ms", *(f"x {name}" for name in record["to"]), quality)
    rows = [(name, *_cells(result, record["to"])) for name, result in record["results"].items()]
    return table(f"{record['method']}, {problem}", header, rows)


def _cells(result: Record, to: Sequence[str]) -> Iterator[str]:
    if "absent" in result:
        yield result["absent"]
        yield from ("" for _ in range(len(to) + 1))
        return
    yield f"{1e3 * result['seconds']['median']:,.1f}"
    for name in to:
        one = result["ratio"][name]
        yield f"{one['median']:,.2f} ({one['min']:,.2f} .. {one['max']:,.2f})"
    if "mean_correlation" in result:
        yield f"{result['mean_correlation']:.6f}"
    elif "rotation_minus_scipy" in result:
        yield f"{result['rotation_minus_scipy']:.1e}"
    else:
        yield ""


def main() -> None:
    """Run the races that the options ask for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sizes", nargs="+", metavar="ROWSxWIDTH[:DTYPE]", help="pairs to align")
    parser.add_argument("--rounds", type=int, default=7, help="turns of each contestant (7)")
    parser.add_argument("--quick", action="store_true", help="small pairs, to see that it works")
    parser.add_argument("--json", type=Path, help="file to write all figures to")
    options = parser.parse_args()
    sizes = options.sizes or (QUICK_SIZES if options.quick else SIZES)
    facts = environment()
    print(describe(facts))
    records = []
    for problem in map(Problem.parse, sizes):
        for run in (run_cca, run_procrustes):
            records.append(run(problem, options.rounds))
            print(show(problem, records[-1]), flush=True)
    write_json(options.json, {"environment": facts, "races": records})


if __name__ == "__main__":
    main()
