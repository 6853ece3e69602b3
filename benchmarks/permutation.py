"""Time the matching of coordinates against the least work there is, and see whether it is right.

Usage: ``python benchmarks/permutation.py``, and ``--help`` for the options.

The columns of y are those of X in another order, times positive scales, plus noise: its standard
deviation is ``--noise`` times that of the column. All contestants take turns, round after round; a
ratio is the median of the ratios within a round, with the least and the largest.

* The *floor* is one product X'y and scipy's assignment on it, of columns that were centred and scaled
  to unit norm beforehand, outside the clock: what is left of the aligner when its two heavy steps are
  all there is. Ours checks, centres, scales, and also solves for the scales.
* ``np.corrcoef + scipy`` is what one would write without thinking: all correlations of all columns.
* *matched* is the share of the columns whose partner is the planted one; *scales* is the root mean
  square of the relative error of the forward scales among them, in units of ``noise / sqrt(n_samples)``,
  which is the standard error of a regression of one column on its partner: about 1 is all there is to get.
* The second table times the map itself on the same rows, against a product with a matrix.
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from _race import Contestant, Problem, Seconds, race, ratio
from _report import describe, environment, spread, table, write_json
from scipy.optimize import linear_sum_assignment

from sklearn_bijection import PermutationAligner

Array = npt.NDArray[np.floating]
Record = dict[str, Any]

SIZES = ("2000x768", "2000x3072")
QUICK_SIZES = ("500x48",)
FLOOR, NAIVE = "floor: product + assignment", "np.corrcoef + scipy"
ALIGNERS = {
    "PermutationAligner()": PermutationAligner(),
    "PermutationAligner(direction='forward')": PermutationAligner(direction="forward"),
    "PermutationAligner(signed=True)": PermutationAligner(signed=True),
}
MATRIX, MAP = "product with a matrix", "transform"
QUALITIES = {"fit": ("matched", "scales"), MAP: ()}


@dataclass(frozen=True)
class Planted:
    """A pair of arrays, and how the columns of the second come from those of the first."""

    X: Array
    y: Array
    permutation: npt.NDArray[np.intp]
    scales: Array

    @classmethod
    def draw(cls, problem: Problem, noise: float) -> "Planted":
        """The same pair at every call."""
        rng = np.random.default_rng(0)
        shape = problem.n_samples, problem.width
        X = rng.normal(size=shape) * rng.uniform(0.5, 2, problem.width) + rng.normal(size=shape[1])
        order, scales = rng.permutation(problem.width), rng.uniform(0.5, 2, problem.width)
        y = X[:, order] + noise * X.std(axis=0)[order] * rng.normal(size=shape)
        return cls(X.astype(problem.dtype), (y * scales).astype(problem.dtype), order, scales)


def contestants(planted: Planted, naive_rounds: int) -> Iterator[Contestant]:
    """The floor, our aligner in three ways, and the thoughtless way."""
    unit_x, unit_y = (_unit_columns(a) for a in (planted.X, planted.y))

    def floor(X: Array, y: Array) -> Any:
        rows, columns = len(X), X.shape[1]
        product = unit_x[:rows, :columns].T @ unit_y[:rows, :columns]
        return linear_sum_assignment(product, maximize=True)

    yield Contestant(FLOOR, floor, lambda found, *_: np.argsort(found[1]))
    for name, aligner in ALIGNERS.items():
        yield Contestant(name, aligner.fit, lambda fitted, *_: fitted.permutation_)
    yield Contestant(NAIVE, _naive, lambda found, *_: np.argsort(found[1]), rounds=naive_rounds)


def _unit_columns(a: Array) -> Array:
    centred = a - a.mean(axis=0)
    return centred / np.linalg.norm(centred, axis=0)


def _naive(X: Array, y: Array) -> Any:
    return linear_sum_assignment(np.corrcoef(X.T, y.T)[: X.shape[1], X.shape[1] :], maximize=True)


def run_fit(problem: Problem, noise: float, rounds: int) -> Record:
    """Race the fits, and compare what they find with what was planted."""
    planted = Planted.draw(problem, noise)
    field = list(contestants(planted, min(rounds, 2)))
    seconds, found = race(field, planted.X, planted.y, rounds, f"fit {problem}, noise {noise:g}")
    quality = {
        name: {"matched": float((order == planted.permutation).mean())}
        for name, order in found.items()
    }
    forward = next(name for name in ALIGNERS if "forward" in name)
    quality[forward]["scales"] = _error_of_scales(ALIGNERS[forward], planted, noise)
    return _record("fit", problem, noise, FLOOR, field, seconds, quality)


def _error_of_scales(fitted: Any, planted: Planted, noise: float) -> float:
    right = fitted.permutation_ == planted.permutation
    error = fitted.scales_[right] / planted.scales[right] - 1
    return float(np.sqrt(np.square(error).mean()) / noise * np.sqrt(len(planted.X)))


def run_map(problem: Problem, noise: float, rounds: int) -> Record:
    """Race the fitted map against a product with its matrix."""
    planted = Planted.draw(problem, noise)
    fitted = PermutationAligner().fit(planted.X, planted.y)
    small = PermutationAligner().fit(planted.X[:64, :4], planted.y[:64, :4])
    matrices = {one.n_features_in_: one.map_.there.coef for one in (fitted, small)}
    maps = {one.n_features_in_: one.transform for one in (fitted, small)}
    field = [
        Contestant(MATRIX, lambda X, y: X @ matrices[X.shape[1]]),
        Contestant(MAP, lambda X, y: maps[X.shape[1]](X)),
    ]
    title = f"transform {problem}, noise {noise:g}"
    seconds, _ = race(field, planted.X, planted.y, rounds, title)
    return _record(MAP, problem, noise, MATRIX, field, seconds, {})


def _record(
    what: str,
    problem: Problem,
    noise: float,
    to: str,
    field: Sequence[Contestant],
    seconds: Seconds,
    quality: dict[str, Record],
) -> Record:
    results = {
        contestant.name: {
            "seconds": spread(seconds[contestant.name]),
            "rounds": seconds[contestant.name],
            "ratio": ratio(seconds, contestant.name, to),
            **quality.get(contestant.name, {}),
        }
        for contestant in field
    }
    return {"what": what, **asdict(problem), "noise": noise, "to": to, "results": results}


def show(problem: Problem, record: Record) -> str:
    """Lay out the table of one race."""
    header = ("", "ms", f"x {record['to'].partition(':')[0]}", *QUALITIES[record["what"]])
    rows = [(name, *_cells(result, header[3:])) for name, result in record["results"].items()]
    title = f"{record['what']}, {problem}, noise {record['noise']:g}"
    return table(title, header, rows)


def _cells(result: Record, qualities: Sequence[str]) -> Iterator[str]:
    yield f"{1e3 * result['seconds']['median']:,.1f}"
    one = result["ratio"]
    yield f"{one['median']:,.2f} ({one['min']:,.2f} .. {one['max']:,.2f})"
    for quality in qualities:
        yield f"{result[quality]:.4f}" if quality in result else ""


def main() -> None:
    """Run the races that the options ask for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sizes", nargs="+", metavar="ROWSxWIDTH[:DTYPE]", help="pairs to match")
    parser.add_argument("--noise", nargs="+", type=float, default=[0.5], help="its size (0.5)")
    parser.add_argument("--rounds", type=int, default=7, help="turns of each contestant (7)")
    parser.add_argument("--quick", action="store_true", help="a small pair, to see that it works")
    parser.add_argument("--json", type=Path, help="file to write all figures to")
    options = parser.parse_args()
    sizes = options.sizes or (QUICK_SIZES if options.quick else SIZES)
    facts = environment()
    print(describe(facts))
    records = []
    for problem in map(Problem.parse, sizes):
        for noise in options.noise:
            for run in (run_fit, run_map):
                records.append(run(problem, noise, options.rounds))
                print(show(problem, records[-1]), flush=True)
    write_json(options.json, {"environment": facts, "races": records})


if __name__ == "__main__":
    main()
