"""What the benchmarks share: the table, the JSON file, and what the figures were measured with."""

import json
import os
import platform
import sys
from collections.abc import Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import scipy.linalg  # noqa: F401 - brings a BLAS of its own, which `environment` is to see
from threadpoolctl import threadpool_info  # type: ignore[import-untyped]

import sklearn_bijection

Row = Sequence[object]
Spread = dict[str, float]

NOT_INSTALLED = "not installed"
PACKAGES = ("numpy", "scipy", "scikit-learn", "cca-zoo", "netrep", "qc-procrustes")


def environment() -> dict[str, Any]:
    """Versions, processor cores and BLAS threads of this run."""
    blas = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    return {
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "blas_threads": {Path(pool["filepath"]).stem: pool["num_threads"] for pool in blas},
        "versions": {
            "Python": platform.python_version(),
            "sklearn_bijection": sklearn_bijection.__version__,
            **{name: _version(name) for name in PACKAGES},
        },
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return NOT_INSTALLED


def describe(facts: dict[str, Any]) -> str:
    """The facts of `environment` in words."""
    versions = ", ".join(f"{name} {found}" for name, found in facts["versions"].items())
    threads = ", ".join(f"{count} in {name}" for name, count in facts["blas_threads"].items())
    return f"{versions}\n{facts['machine']}, {facts['cores']} cores; BLAS threads: {threads}"


def table(title: str, header: Row, rows: Iterable[Row]) -> str:
    """Columns of text, the first aligned to the left and the others to the right."""
    cells = [[str(cell) for cell in row] for row in (header, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip()
        for row in cells
    ]
    rule = "-" * max(map(len, lines))
    return "\n".join(["", title, rule, lines[0], rule, *lines[1:], rule])


def spread(values: Iterable[float]) -> Spread:
    """Median, least and largest."""
    found = np.array(list(values))
    return {
        "median": float(np.median(found)),
        "min": float(found.min()),
        "max": float(found.max()),
    }


def write_json(path: Path | None, content: dict[str, Any]) -> None:
    """Write `content`, if a path is given."""
    if path is not None:
        path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        print(f"wrote {path}", file=sys.stderr)
