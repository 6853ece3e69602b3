"""Time `similarity_matrix` against peers that are called pair by pair, and compare the values.

Usage: ``python benchmarks/similarity.py``, and ``--help`` for the options.

Ours is timed on the whole matrix, once. A peer is timed on some pairs drawn at random, half of them before
and half after, all peers in turn on the same pair; what it would take for the whole matrix is the median
times the number of pairs beside the diagonal, and is *extrapolated*, not measured. Values are compared on
those pairs. Processor time is what a machine that others use as well disturbs least; with several threads
it is that of all of them.

* The spaces are float32. We compute in float64 whatever comes in, and the conversion is in our time. Peers
  get what they are named with, converted before the clock starts.
* The *formula* of linear CKA is that of Kornblith et al. (2019) for features, which is the cheaper form
  where spaces are narrower than there are rows; for others the form for examples is timed too.
* netrep gives arccos of linear CKA and of the mean canonical correlation; the cosine is compared.
"""

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from _report import NOT_INSTALLED, describe, environment, spread, table, write_json
from tqdm import tqdm

from sklearn_bijection import metrics
from sklearn_bijection.metrics import similarity_matrix

Array = npt.NDArray[Any]
Record = dict[str, Any]

OURS = "similarity_matrix"


@dataclass(frozen=True)
class Peer:
    """A function of two arrays.

    Parameters
    ----------
    name : str
    value : callable
    dtype : str, default="float64"
        Type of the arrays that it gets.
    needs : str, default="numpy"
        Module without which it cannot run.
    """

    name: str
    value: Callable[[Array, Array], float]
    dtype: str = "float64"
    needs: str = "numpy"


class Timed(NamedTuple):
    """What a function returned, and the seconds it took on the clock and on the processor."""

    value: Any
    clock: float
    processor: float

    @classmethod
    def of(cls, function: Callable[..., Any], *arguments: Any) -> "Timed":
        """Call it."""
        clock, processor = perf_counter(), process_time()
        value = function(*arguments)
        return cls(value, perf_counter() - clock, process_time() - processor)


def by_features(X: Array, Y: Array) -> float:
    """Linear CKA as published, from products of columns."""
    X, Y = X - X.mean(axis=0), Y - Y.mean(axis=0)
    own = np.linalg.norm(X.T @ X) * np.linalg.norm(Y.T @ Y)
    return float(np.linalg.norm(X.T @ Y) ** 2 / own)


def by_examples(X: Array, Y: Array) -> float:
    """The same from Gram matrices."""
    X, Y = X - X.mean(axis=0), Y - Y.mean(axis=0)
    K, L = X @ X.T, Y @ Y.T
    return float(np.vdot(K, L) / (np.linalg.norm(K) * np.linalg.norm(L)))


def canonical(X: Array, Y: Array) -> float:
    """Mean canonical correlation by its definition: singular values between orthonormal bases."""
    bases = [np.linalg.qr(rows - rows.mean(axis=0)).Q for rows in (X, Y)]
    return float(np.linalg.svd(bases[0].T @ bases[1], compute_uv=False).mean())


def _netrep_cka(X: Array, Y: Array) -> float:
    return float(np.cos(import_module("netrep.metrics.cka").LinearCKA().score(X, Y)))


def _netrep_angle(alpha: float) -> Callable[[Array, Array], float]:
    def angle(X: Array, Y: Array) -> float:
        return float(import_module("netrep.metrics").LinearMetric(alpha=alpha).fit_score(X, Y))

    return angle


def _netrep_canonical(X: Array, Y: Array) -> float:
    return float(np.cos(_netrep_angle(0.0)(X, Y)))


PEERS: dict[str, list[Peer]] = {
    "linear_cka": [
        Peer("metrics.linear_cka", metrics.linear_cka),
        Peer("formula, features", by_features),
        Peer("formula, features, float32", by_features, dtype="float32"),
        Peer("formula, examples", by_examples),
        Peer("netrep LinearCKA", _netrep_cka, needs="netrep"),
    ],
    "mean_cca": [
        Peer("metrics.mean_cca", metrics.mean_cca),
        Peer("definition, QR and SVD", canonical),
        Peer("netrep LinearMetric(0)", _netrep_canonical, needs="netrep"),
    ],
    "angular_shape_distance": [
        Peer("metrics.angular_shape_distance", metrics.angular_shape_distance),
        Peer("netrep LinearMetric(1)", _netrep_angle(1.0), needs="netrep"),
    ],
}


def spaces(count: int, rows: int, width: int) -> Array:
    """Spaces that share a signal, the later the less of it, with means of their own."""
    rng = np.random.default_rng(0)
    signal = rng.standard_normal((rows, width), dtype=np.float32)
    made = np.empty((count, rows, width), dtype=np.float32)
    for place, space in enumerate(made):
        rng.standard_normal(out=space, dtype=np.float32)
        space *= 0.3 + place / count
        space += signal[:, rng.permutation(width)]
        space += rng.standard_normal(width, dtype=np.float32)
    return made


def run(metric: str, H: Array, n_pairs: int) -> Record:
    """Time and values of ours for the whole, and of every peer for some pairs."""
    rng = np.random.default_rng(1)
    pairs = [tuple(rng.choice(len(H), size=2, replace=False)) for _ in range(n_pairs)]
    peers = {peer: _present(peer) for peer in PEERS[metric]}
    found: dict[str, dict[tuple[int, ...], Timed]] = {peer.name: {} for peer in peers}
    _time_peers(found, metric, H, pairs[::2])
    ours = Timed.of(similarity_matrix, H, metric)
    _time_peers(found, metric, H, pairs[1::2])
    return {
        "metric": metric,
        "shape": list(H.shape),
        "pairs": len(H) * (len(H) - 1) // 2,
        "sampled": n_pairs,
        "clock": ours.clock,
        "processor": ours.processor,
        "peers": {
            peer.name: _summary(found[peer.name], ours.value.values)
            if present
            else {"absent": NOT_INSTALLED}
            for peer, present in peers.items()
        },
    }


def _present(peer: Peer) -> bool:
    return find_spec(peer.needs) is not None


def _time_peers(
    found: dict[str, dict[tuple[int, ...], Timed]],
    metric: str,
    H: Array,
    pairs: list[tuple[int, ...]],
) -> None:
    """Enter what all peers take for some pairs, and their values."""
    peers = list(filter(_present, PEERS[metric]))
    for peer in peers:
        # A small pair first, which pays for imports.
        peer.value(*H[:2, :64, :4].astype(peer.dtype))
    for pair in tqdm(pairs, desc="peers, pair by pair", unit="pair"):
        for peer in peers:
            arrays = [H[place].astype(peer.dtype) for place in pair]
            found[peer.name][pair] = Timed.of(peer.value, *arrays)


def _summary(found: dict[tuple[int, ...], Timed], values: Array) -> Record:
    """Seconds for a pair, and the greatest difference from our values."""
    return {
        "clock": spread(one.clock for one in found.values()),
        "processor": spread(one.processor for one in found.values()),
        "difference": max(float(abs(one.value - values[pair])) for pair, one in found.items()),
    }


def show(record: Record) -> str:
    """Lay out the table of one measure."""
    count, rows, width = record["shape"]
    title = f"{record['metric']}, {count} spaces of ({rows}, {width}): {record['pairs']:,} pairs"
    header = (
        "",
        "ms a pair",
        f"s for all (extrapolated from {record['sampled']} pairs)",
        "x ours",
        "x ours, processor",
        "greatest difference",
    )
    ours = (OURS, "", f"{record['clock']:,.1f} (measured)", "1", "1", "")
    return table(title, header, [ours, *_rows(record)])


def _rows(record: Record) -> Iterator[tuple[str, ...]]:
    for name, found in record["peers"].items():
        if "absent" in found:
            yield name, found["absent"], "", "", "", ""
            continue
        each = found["clock"]
        whole = {way: found[way]["median"] * record["pairs"] for way in ("clock", "processor")}
        yield (
            name,
            " .. ".join(f"{1e3 * each[key]:,.1f}" for key in ("min", "median", "max")),
            f"{whole['clock']:,.1f}",
            *(f"{whole[way] / record[way]:,.1f}" for way in ("clock", "processor")),
            f"{found['difference']:.1e}",
        )


def main() -> None:
    """Run what the options ask for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--spaces", type=int, default=325, help="for linear CKA (25 x 13)")
    parser.add_argument("--few", type=int, default=13, help="spaces for the other measures (13)")
    parser.add_argument("--rows", type=int, default=1600, help="samples (1600)")
    parser.add_argument("--width", type=int, default=768, help="of every space (768)")
    parser.add_argument("--pairs", type=int, default=12, help="on which peers are timed (12)")
    parser.add_argument("--quick", action="store_true", help="small, to see that it works")
    parser.add_argument("--json", type=Path, help="file to write all figures to")
    options = parser.parse_args()
    count, few, rows, width = (
        (26, 5, 200, 32)
        if options.quick
        else (options.spaces, options.few, options.rows, options.width)
    )
    facts = environment()
    print(describe(facts))
    H = spaces(count, rows, width)
    some = H[np.linspace(0, count - 1, min(few, count), dtype=int)]
    records = []
    for metric in PEERS:
        chosen = H if metric == "linear_cka" else some
        records.append(run(metric, chosen, options.pairs))
        print(show(records[-1]), flush=True)
    write_json(options.json, {"environment": facts, "measures": records})


if __name__ == "__main__":
    main()
