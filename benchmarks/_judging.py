"""Fits judged on rows they have not seen, noted one by one, and laid out in tables."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from _report import table
from shrinkage import both_ways
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import train_test_split

from sklearn_bijection import INNAligner

Array = npt.NDArray[np.floating]
Record = dict[str, Any]

CCA, PROCRUSTES = "CCAAligner()", "ProcrustesAligner()"
START, INN = "gated start", "INNAligner()"
RIDGES = "two ridges, one each way"

#: Penalties of a ridge regression, as fractions of the mean variance of its inputs.
PENALTIES = np.geomspace(1e-4, 10, 21)
WAYS = ("forward", "inverse", "mean")


class Split(NamedTuple):
    """Rows to learn from, and rows to judge by."""

    X: Array
    y: Array
    X_test: Array
    y_test: Array

    @classmethod
    def draw(cls, X: Array, y: Array, seed: int, size: int | None = None) -> Self:
        """A fifth of the rows held out, and the first `size` of the others."""
        X, X_test, y, y_test = train_test_split(X, y, test_size=0.2, random_state=seed)
        return cls(X[:size], y[:size], X_test, y_test)


class TwoRidges:
    """A ridge regression each way, with a penalty of its own: what no bijection has to match."""

    def fit(self, X: Array, y: Array) -> Self:
        """Cross-validate both penalties."""
        X, y = X.astype(np.float64), y.astype(np.float64)
        self.there, self.back = _ridge(X).fit(X, y), _ridge(y).fit(y, X)
        return self

    def transform(self, X: Array) -> Array:
        """Predict y."""
        found: Array = self.there.predict(X)
        return found

    def inverse_transform(self, y: Array) -> Array:
        """Predict X."""
        found: Array = self.back.predict(y)
        return found


def _ridge(inputs: Array) -> RidgeCV:
    return RidgeCV(PENALTIES * len(inputs) * inputs.var(axis=0).mean())


def judge(where: str, name: str, aligner: Any, split: Split, /, **facts: Any) -> Record:
    """Fit, time and score one contestant.

    Parameters
    ----------
    where, name : str
        Heading of the table, and the row in it.
    aligner : object
        With `fit`, `transform` and `inverse_transform`.
    split : Split
    **facts
        Kept with the scores.
    """
    start = perf_counter()
    aligner.fit(split.X, split.y)
    seconds = perf_counter() - start
    if isinstance(aligner, INNAligner) and aligner.net_.interrupted_:
        # It keeps what it has and says nothing; here such a figure would mislead.
        raise KeyboardInterrupt
    return {"where": where, "name": name, **facts, **scores(aligner, split), "seconds": seconds}


def scores(fitted: Any, split: Split) -> Record:
    """Held-out R² of both ways and their mean."""
    forward, inverse = both_ways(fitted, split.X_test, split.y_test)
    return {"forward": forward, "inverse": inverse, "mean": (forward + inverse) / 2}


@dataclass(frozen=True)
class Log:
    """Where records go as soon as they are there: to the screen, and as lines of JSON to a file."""

    path: Path | None = None

    def note(self, record: Record) -> None:
        """Append the record to the file, and flush."""
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")

    def follow(self, section: str, records: Iterable[Record]) -> Iterator[Record]:
        """Show and note each record, and pass it on."""
        for record in records:
            facts = (f"{k} {_number(v)}" for k, v in record.items() if k not in ("where", "name"))
            print(f"{section} | {record['where']} | {record['name']}:", *facts, flush=True)
            self.note({"section": section, **record})
            yield record


def _number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def summary(records: Sequence[Record], *, extras: Sequence[str] = (), errors: bool = False) -> str:
    """Lay out R², or one minus it, with a table for each place and its mean and spread over the splits."""
    header = ("", *(f"{way} error" if errors else way for way in WAYS), "seconds", *extras)
    return "\n".join(
        table(
            f"{where}: held-out {'1 - R²' if errors else 'R²'}",
            header,
            [_row(name, same, extras, errors) for name, same in grouped(found, "name").items()],
        )
        for where, found in grouped(records, "where").items()
    )


def _row(name: str, runs: list[Record], extras: Sequence[str], errors: bool) -> list[str]:
    values = [[1 - run[way] if errors else run[way] for run in runs] for way in WAYS]
    seconds = f"{np.mean([run['seconds'] for run in runs]):.1f}"
    facts = [", ".join(_number(run[extra]) for run in runs if extra in run) for extra in extras]
    return [name, *map(spread_of, values), seconds, *facts]


def spread_of(values: Sequence[float]) -> str:
    """Mean and standard deviation, or the only value."""
    deviation = f" ± {np.std(values):.3f}" if len(values) > 1 else ""
    return f"{np.mean(values):.3f}{deviation}"


def grouped(records: Iterable[Record], key: str) -> dict[Any, list[Record]]:
    """Records by what they hold under `key`, in the order of their coming."""
    groups: dict[Any, list[Record]] = {}
    for record in records:
        groups.setdefault(record[key], []).append(record)
    return groups


def against(records: Iterable[Record], rivals: Sequence[str], label: str) -> str:
    """How `INNAligner` does beside the best of its rivals, split by split, for each place.

    The best rival is found for every split and way on the held-out rows: an oracle.
    """
    rows = []
    for where, found in grouped(records, "where").items():
        # A run that was broken off may lack a contestant of its last split.
        runs = [
            run
            for run in (_by_name(runs) for runs in grouped(found, "split").values())
            if INN in run and all(rival in run for rival in rivals)
        ]
        rows += [(f"{where}, {way}", *_duel(runs, rivals, way)) for way in WAYS if runs]
    header = ("", "mean gain", "worst gain", "worse in", "mean error ratio")
    return table(f"{INN} against {label}", header, rows)


def _by_name(records: list[Record]) -> dict[str, Record]:
    return {record["name"]: record for record in records}


def _duel(
    runs: list[dict[str, Record]], rivals: Sequence[str], way: str
) -> tuple[str, str, str, str]:
    ours = np.array([run[INN][way] for run in runs])
    best = np.array([max(run[rival][way] for rival in rivals) for run in runs])
    gains, ratio = ours - best, np.mean((1 - ours) / (1 - best))
    worse = f"{(gains < 0).sum()} of {len(gains)}"
    return f"{gains.mean():+.4f}", f"{gains.min():+.4f}", worse, f"{ratio:.3f}"
