"""Pack the real pairs of `sklearn_bijection.datasets` from their raw arrays.

Usage: ``python benchmarks/pack_datasets.py RAW_FOLDER``, and ``--help`` for the options.

The first rows of each raw file are kept, in file order; no randomness. RAW_FOLDER holds

* ``sentences_8k.tsv``: one line per sentence, source TAB sentence;
* ``sentences_8k.npz``: `minilm_l6` and `paraphrase_l3`, (n_sentences, 384), row i embeds line i;
* ``words_15k.npz``: `words`, `glove50` (n_words, 50), `glove100` (n_words, 100), by frequency.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

DATA = Path(__file__).resolve().parents[1] / "sklearn_bijection" / "datasets" / "data"


def pack_sentences(raw: Path, into: Path, n: int) -> None:
    """Write `sentences.tsv` and `sentence_pair.npz`."""
    lines = (raw / "sentences_8k.tsv").read_text(encoding="utf-8").removesuffix("\n").split("\n")
    if any(line.count("\t") != 1 for line in lines):
        raise ValueError(
            "sentences_8k.tsv must hold one source, one tab and one sentence per line."
        )
    with np.load(raw / "sentences_8k.npz") as arrays:
        X, y = arrays["minilm_l6"], arrays["paraphrase_l3"]
    _write(into / "sentences.tsv", into / "sentence_pair.npz", lines, X, y, n)


def pack_words(raw: Path, into: Path, n: int) -> None:
    """Write `words.txt` and `word_pair.npz`."""
    with np.load(raw / "words_15k.npz") as arrays:
        words, X, y = arrays["words"].tolist(), arrays["glove50"], arrays["glove100"]
    _write(into / "words.txt", into / "word_pair.npz", words, X, y, n)


def _write(
    text: Path,
    pair: Path,
    lines: list[str],
    X: npt.NDArray[np.floating],
    y: npt.NDArray[np.floating],
    n: int,
) -> None:
    if not len(lines) == len(X) == len(y) >= n >= 1:
        raise ValueError(
            f"{text.name}: found {len(lines)} lines, {len(X)} rows of X and {len(y)} rows of y. "
            f"They must be equally many, and at least the {n} (one or more) asked for."
        )
    text.write_text("\n".join(lines[:n]) + "\n", encoding="utf-8", newline="\n")
    np.savez_compressed(pair, X=X[:n].astype(np.float16), y=y[:n].astype(np.float16))
    for path in (text, pair):
        print(f"{path.name:20} {path.stat().st_size:>10,} bytes")


def main(argv: Sequence[str] | None = None) -> None:
    """Read the command line and pack both pairs."""
    parser = argparse.ArgumentParser(description="Pack the real pairs from their raw arrays.")
    parser.add_argument("raw", type=Path, help="folder with the raw arrays")
    parser.add_argument(
        "--into", type=Path, default=DATA, help="folder to write to (default: the package's)"
    )
    parser.add_argument(
        "--sentences", type=int, default=2500, help="rows of the sentence pair (default: 2500)"
    )
    parser.add_argument(
        "--words", type=int, default=3500, help="rows of the word pair (default: 3500)"
    )
    options = parser.parse_args(argv)
    options.into.mkdir(parents=True, exist_ok=True)
    pack_sentences(options.raw, options.into, options.sentences)
    pack_words(options.raw, options.into, options.words)


if __name__ == "__main__":
    main()
