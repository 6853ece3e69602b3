"""What a cross-validated comparison found: a sequence of rows that prints as a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, overload

import numpy as np

from .._compat import require
from ._report import AlignmentReport
from ._tables import aligned, as_csv, number_format


def _score(mean: float, std: float) -> str:
    form = number_format(mean)
    return f"{mean:{form}}±{f'{std:{form}}'.removeprefix('0')}"


def _power(mean: float, _: float) -> str:
    return f"{mean:.1e}"


def _seconds(mean: float, _: float) -> str:
    return f"{mean:.2f}"


_LABELS = ("aligner", "split", "n_train", "n_samples")
_COLUMNS = {
    "R² fwd": (["r2_forward"], _score),
    "R² inv": (["r2_inverse"], _score),
    "R² sym": (["r2_symmetric"], _score),
    "P@1 fwd": (["precision_at_1_forward"], _score),
    "P@1 inv": (["precision_at_1_inverse"], _score),
    "MRR": (["mean_reciprocal_rank_forward", "mean_reciprocal_rank_inverse"], _score),
    "X→y→X": (["roundtrip_error_x"], _power),
    "y→X→y": (["roundtrip_error_y"], _power),
    "fit s": (["fit_seconds"], _seconds),
}
_LEGEND = """\
Mean±std over {} of rows held out. fwd: transform(X) against y; inv: inverse_transform(y) against X;
sym: mean of both. P@1: share whose partner is the most similar of all; MRR: mean reciprocal rank, mean
of both ways; X→y→X, y→X→y: relative error of the round trip."""


@dataclass(frozen=True)
class SplitResult:
    """One aligner on one split.

    Attributes
    ----------
    aligner : str
        Its name.
    split : int
        Number of the split, from 0.
    n_train : int
        Rows it was fitted on.
    fit_seconds : float
        Wall-clock seconds of the fit.
    report : AlignmentReport
        Numbers on the rows held out.
    """

    aligner: str
    split: int
    n_train: int
    fit_seconds: float
    report: AlignmentReport

    def to_dict(self) -> dict[str, Any]:
        """All values by name, those of the report included."""
        own = {name: getattr(self, name) for name in ("aligner", "split", "n_train")}
        return {**own, **self.report.to_dict(), "fit_seconds": self.fit_seconds}


@dataclass(frozen=True, repr=False)
class Comparison(Sequence[dict[str, Any]]):
    """Held-out numbers of several aligners on the same splits, as a sequence of rows.

    ``print(comparison)`` shows means and standard deviations; ``pandas.DataFrame(comparison)`` has a
    row per aligner and split.

    Attributes
    ----------
    results : tuple of SplitResult
        In the order given: all splits of the first aligner, then of the next.
    """

    results: tuple[SplitResult, ...]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One dict per aligner and split."""
        return [result.to_dict() for result in self.results]

    @property
    def names(self) -> list[str]:
        """The aligners, in order."""
        return list(dict.fromkeys(result.aligner for result in self.results))

    def __len__(self) -> int:
        return len(self.results)

    @overload
    def __getitem__(self, index: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, index: slice) -> list[dict[str, Any]]: ...
    def __getitem__(self, index: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        return self.rows[index] if isinstance(index, slice) else self.results[index].to_dict()

    def values(self, aligner: str, name: str) -> list[float]:
        """Take one column of the rows of one aligner, split by split.

        Parameters
        ----------
        aligner : str
            Its name in the comparison.
        name : str
            A number of the rows, such as "r2_forward" or "fit_seconds".

        Returns
        -------
        values : list of float
        """
        return [row[name] for row in self.rows if row["aligner"] == aligner]

    def summary(self) -> list[dict[str, Any]]:
        """Mean and standard deviation over the splits, one dict per aligner.

        Returns
        -------
        summary : list of dict
            "aligner", "n_splits", and for every number of a row its ``_mean`` and ``_std``. The
            deviation is that of the splits themselves (divided by their number), as in
            scikit-learn's searches.
        """
        return [self._summary(name) for name in self.names]

    def to_frame(self) -> Any:
        """Return the rows as a pandas DataFrame, one per aligner and split.

        Returns
        -------
        frame : pandas.DataFrame

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        return require("pandas", "io").DataFrame(self.rows)

    def to_csv(self, path: str | PathLike[str]) -> None:
        """Write the rows as comma-separated text, without the need for pandas.

        Parameters
        ----------
        path : str or path-like
            File to write; an existing one is replaced.
        """
        as_csv(self.rows, path)

    def __repr__(self) -> str:
        return f"<Comparison of {', '.join(self.names)}: {len(self)} rows>"

    def __str__(self) -> str:
        cells = [["aligner", *_COLUMNS], *([name, *self._cells(name)] for name in self.names)]
        count = len({result.split for result in self.results})
        legend = _LEGEND.format("1 split" if count == 1 else f"{count} splits")
        return "\n".join([*aligned(cells), "", legend])

    def _cells(self, aligner: str) -> Iterator[str]:
        for names, form in _COLUMNS.values():
            values = np.mean([self.values(aligner, name) for name in names], axis=0)
            yield form(float(values.mean()), float(values.std()))

    def _summary(self, aligner: str) -> dict[str, Any]:
        rows = [row for row in self.rows if row["aligner"] == aligner]
        record: dict[str, Any] = {"aligner": aligner, "n_splits": len(rows)}
        for name in [name for name in rows[0] if name not in _LABELS]:
            column = [row[name] for row in rows]
            record |= {f"{name}_mean": float(np.mean(column)), f"{name}_std": float(np.std(column))}
        return record
