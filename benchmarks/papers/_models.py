"""What the experiments share: two models that differ in their seed, the control, and where results go.

Without `--models` they are the two miniatures of ``minibert.py``, which are trained first if their folder is
not there. The control is the same with two networks that have learned nothing: those that the miniatures were
before their first step, or what the architectures of `--models` are with random weights of two seeds.
"""

import argparse
import csv
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModel, AutoModelForMaskedLM, AutoTokenizer
from transformers.utils import logging

from sklearn_bijection.datasets import load_sentence_pair

BENCHMARKS = Path(__file__).parents[1]
TRAINED, CONTROL = "trained", "untrained"
Record = Mapping[str, Any]


@dataclass(frozen=True)
class Seeds:
    """Two models of one kind that differ in their seed.

    Parameters
    ----------
    name : str
        ``"trained"``, or ``"untrained"`` for the control.
    models : tuple of str
        Folders, or names on the hub.
    blank : bool
        Whether the weights are left out, and random ones are taken: of seed 0, and of seed 1.
    """

    name: str
    models: tuple[str, str]
    blank: bool = False

    @property
    def tokenizer(self) -> Any:
        """That of the first model, which the second shares."""
        return AutoTokenizer.from_pretrained(self.models[0])

    def bodies(self) -> tuple[Any, Any]:
        """Both encoders, without a head."""
        return self._load(AutoModel)

    def with_heads(self) -> tuple[Any, Any]:
        """Both encoders, with their masked-language heads."""
        return self._load(AutoModelForMaskedLM)

    def _load(self, kind: Any) -> tuple[Any, Any]:
        if not self.blank:
            first, second = (kind.from_pretrained(model).eval() for model in self.models)
            return first, second
        first, second = (_blank(kind, model, seed) for seed, model in enumerate(self.models))
        return first, second


def _blank(kind: Any, model: str, seed: int) -> Any:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return kind.from_config(AutoConfig.from_pretrained(model)).eval()


def parser_of(doc: str, *, texts: int = 2500) -> argparse.ArgumentParser:
    """The options that all experiments on two models have."""
    parser = argparse.ArgumentParser(description=doc.partition("\n")[0])
    add = parser.add_argument
    add("--models", nargs=2, metavar="MODEL", help="folders or names, instead of the miniatures")
    add(
        "--folder",
        type=Path,
        default=BENCHMARKS / "miniatures",
        help="of the miniatures; they are trained if it is not there (benchmarks/miniatures)",
    )
    add("--texts", type=int, default=texts, help=f"sentences to be used ({texts})")
    add("--out", type=Path, default=Path(), metavar="FOLDER", help="for tables and figures (here)")
    add("--quick", action="store_true", help="small, to see that it works")
    return parser


def seeds_of(options: argparse.Namespace) -> dict[str, Seeds]:
    """The trained pair, and the control."""
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    if options.models:
        pair = (options.models[0], options.models[1])
        return {TRAINED: Seeds(TRAINED, pair), CONTROL: Seeds(CONTROL, pair, blank=True)}
    folder = _miniatures(options.folder, quick=options.quick)
    return {
        name: Seeds(name, (f"{folder}/{stem}0", f"{folder}/{stem}1"))
        for name, stem in {TRAINED: "seed", CONTROL: "untrained"}.items()
    }


def _miniatures(folder: Path, *, quick: bool) -> Path:
    """The folder of the miniatures; with `quick` they are smaller ones, which lie within it."""
    if (folder / "untrained1" / "config.json").exists():
        return folder
    if quick:
        folder = folder / "quick"
    if not (folder / "untrained1" / "config.json").exists():
        print(
            f"no models in {folder}: training them, which --folder and --models spare", flush=True
        )
        command = [sys.executable, str(BENCHMARKS / "minibert.py"), str(folder)]
        subprocess.run([*command, *(["--quick"] if quick else [])], check=True)
    return folder


def sentences_of(options: argparse.Namespace) -> list[str]:
    """Sentences that neither miniature has seen, or the packaged ones."""
    n_texts = 200 if options.quick else options.texts
    places = () if options.models else (options.folder, options.folder / "quick")
    for held_out in (place / "held_out.txt" for place in places):
        if held_out.exists():
            return held_out.read_text(encoding="utf-8").splitlines()[:n_texts]
    return list(load_sentence_pair().sentences)[:n_texts]


def collected(
    records: Iterable[Record], tables: Callable[[list[Any]], str], out: Path, name: str
) -> list[Any]:
    """All records, shown as tables and written as ``OUT/NAME.csv``, also where the run is broken off."""
    found: list[Any] = []
    try:
        for record in records:
            found.append(record)
    finally:
        if found:
            print(tables(found), flush=True)
            write_csv(out, name, found)
    return found


def write_csv(out: Path, name: str, records: Sequence[Record]) -> None:
    """Write records as ``OUT/NAME.csv``, one a line; a column for every key that any of them has."""
    out.mkdir(parents=True, exist_ok=True)
    columns = dict.fromkeys(key for record in records for key in record)
    with (out / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(columns))
        writer.writeheader()
        writer.writerows(records)
    print(f"wrote {out / name}.csv", file=sys.stderr)


def write_figure(out: Path, name: str, figure: Any) -> None:
    """Write a figure as ``OUT/NAME.png``."""
    out.mkdir(parents=True, exist_ok=True)
    figure.savefig(out / f"{name}.png", dpi=150, bbox_inches="tight")
    print(f"wrote {out / name}.png", file=sys.stderr)
