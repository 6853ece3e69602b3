"""Peak memory of a fit on memory-mapped files, beyond what the process held before.

Usage: ``python benchmarks/memory.py``, and ``--help`` for the options. Linux only.

Each fit runs in a process of its own, which sets the high-water mark of its resident memory back
before the fit and reads it afterwards; mapped pages count. Twice the rows must make
no difference. The files are written to a temporary folder and removed.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from _report import describe, environment, table, write_json
from tqdm import tqdm

ALIGNERS = ("CCAAligner()", "CCAAligner(shrinkage=0)", "ProcrustesAligner()")
BLOCK = 50_000

# A small fit first, which pays for imports, threads and the library's own memory.
FIT = """
import json, sys, time
import numpy as np
from sklearn_bijection import CCAAligner, ProcrustesAligner

def resident(field):
    with open("/proc/self/status") as status:
        lines = dict(line.split(":", 1) for line in status)
    return int(lines[field].split()[0]) / 1024

X, y = (np.load(path, mmap_mode="r") for path in sys.argv[2:])
small = np.random.default_rng(0).normal(size=(2, 600, X.shape[1]))
aligner = eval(sys.argv[1]).fit(*small)
with open("/proc/self/clear_refs", "w") as marks:
    marks.write("5")
before, start = resident("VmRSS"), time.perf_counter()
aligner.fit(X, y)
seconds = time.perf_counter() - start
print(json.dumps({"before": before, "extra": resident("VmHWM") - before, "seconds": seconds}))
"""


def write_pair(folder: Path, rows: int, width: int) -> list[Path]:
    """Two files of correlated float32 rows, written block by block."""
    rng = np.random.default_rng(0)
    turn = rng.normal(size=(width, width)).astype(np.float32) / np.float32(width**0.5)
    paths = [folder / "X.npy", folder / "y.npy"]
    files = [
        np.lib.format.open_memmap(path, "w+", dtype=np.float32, shape=(rows, width))
        for path in paths
    ]
    for start in tqdm(range(0, rows, BLOCK), desc=f"writing {rows:,} rows"):
        block = rng.normal(size=(min(BLOCK, rows - start), width)).astype(np.float32)
        files[0][start : start + BLOCK] = block
        files[1][start : start + BLOCK] = block @ turn + 0.3 * rng.normal(size=block.shape)
    return paths


def measure(aligner: str, paths: list[Path]) -> dict[str, float]:
    """MiB before the fit and beyond it, and seconds, in a process of its own."""
    command = [sys.executable, "-c", FIT, aligner, *map(str, paths)]
    run = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    figures: dict[str, float] = json.loads(run.stdout)
    return figures


def main() -> None:
    """Write, fit and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 2_000_000])
    parser.add_argument("--width", type=int, default=256, help="of both arrays (256)")
    parser.add_argument("--folder", type=Path, help="where the files may be written for the while")
    parser.add_argument("--json", type=Path, help="file to write all figures to")
    options = parser.parse_args()
    facts = environment()
    print(describe(facts))
    results: list[dict[str, Any]] = []
    for rows in options.rows:
        with TemporaryDirectory(dir=options.folder) as folder:
            paths = write_pair(Path(folder), rows, options.width)
            for aligner in tqdm(ALIGNERS, desc=f"fitting {rows:,} rows"):
                results.append({"aligner": aligner, "rows": rows, **measure(aligner, paths)})
    print(
        table(
            f"Fits of two memory-mapped float32 files, {options.width} wide",
            ("", "rows", "MiB before", "MiB extra", "seconds"),
            [
                (
                    result["aligner"],
                    f"{result['rows']:,}",
                    *(f"{result[name]:.0f}" for name in ("before", "extra", "seconds")),
                )
                for result in results
            ],
        )
    )
    write_json(options.json, {"environment": facts, "width": options.width, "results": results})


if __name__ == "__main__":
    main()
