"""Align two models that were trained from different seeds: layer by layer, and stitched into one.

Usage: ``python benchmarks/minibert.py FOLDER`` makes the models, then ``python benchmarks/two_seeds.py
FOLDER``; ``--help`` for the options. ``--models A B`` takes any two encoders that share a tokenizer, such
as ``google/multiberts-seed_0 google/multiberts-seed_1`` where there is a hub.

* *Layers*: held-out R² of `CCAAligner` from every layer of the one to every layer of the other, mean over
  tokens, on the sentences that minibert.py has held out (or the packaged ones); and of the two untrained
  models, which is the control: what two networks share that have learned nothing.
* *Stitching*: the lower layers of the first model up to a layer, an aligner fitted to tokens, the layers of
  the second from there on with its head. Masked-language loss on held-out sentences, in nats, beside both
  models as they are.
"""

import argparse
import warnings
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from _report import describe, environment, write_json
from _stitching import ALIGNERS, FLOOR, TRAINED, Joint, losses_table
from transformers import AutoModelForMaskedLM, AutoTokenizer

from sklearn_bijection import CCAAligner
from sklearn_bijection.datasets import load_sentence_pair
from sklearn_bijection.huggingface import compare_layers, extract_hidden_states

TITLE = "Masked-language loss on held-out sentences, in nats"


def sentences(folder: Path | None) -> list[str]:
    """Those that minibert.py has held out, or the packaged ones."""
    held_out = folder and folder / "held_out.txt"
    if held_out and held_out.exists():
        return held_out.read_text(encoding="utf-8").splitlines()
    return list(load_sentence_pair().sentences)


def layers(pairs: dict[str, tuple[str, str]], texts: Sequence[str], cv: int) -> dict[str, Any]:
    """R² of every layer to every layer, for each pair of models."""
    found = {}
    for name, models in pairs.items():
        stacks = [extract_hidden_states(model, texts) for model in models]
        found[name] = compare_layers(*stacks, CCAAligner(), cv=cv)
        print(f"\n{name}: {models[0]}, {models[1]}\n{found[name]}", flush=True)
    return found


def stitched(
    models: tuple[str, str], texts: Sequence[str], n_tokens: int, aligners: dict[str, Any]
) -> list[dict[str, Any]]:
    """Losses of both models, and of what comes of them by each aligner at each layer."""
    first, second = map(AutoModelForMaskedLM.from_pretrained, models)
    cut = len(texts) * 4 // 5
    tokenizer = AutoTokenizer.from_pretrained(models[0])
    joint = Joint.of((first, second), tokenizer, texts[:cut], texts[cut:], n_tokens)
    records = []
    for record in chain(joint.alone(), joint.at_equal_layers(FLOOR | aligners)):
        print(f"{record['name']} {record['layer']}: {record['loss']:.3f}", flush=True)
        records.append(record)
    return records


def parse() -> argparse.Namespace:
    """Read the options."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("folder", type=Path, nargs="?", help="what minibert.py wrote")
    add("--models", nargs=2, metavar="MODEL", help="two others, without a control")
    add("--texts", type=int, default=2500, help="sentences to be used (2500)")
    add("--tokens", type=int, default=20_000, help="an aligner is fitted to (20000)")
    add("--train", action="store_true", help="stitch by a trained network too: minutes a layer")
    add("--cv", type=int, default=5, help="splits of the layers (5)")
    add("--picture", type=Path, help="file to draw the layers to")
    add("--json", type=Path, help="file to write all figures to")
    options = parser.parse_args()
    if (options.folder is None) == (options.models is None):
        parser.error("pass the folder that minibert.py wrote, or --models")
    return options


def main() -> None:
    """Compare, then stitch."""
    options = parse()
    warnings.filterwarnings("once", message=".*were cut")
    facts = environment()
    print(describe(facts))
    folder = options.folder
    pairs = {"trained": tuple(options.models or (f"{folder}/seed0", f"{folder}/seed1"))}
    if folder:
        pairs["untrained"] = (f"{folder}/untrained0", f"{folder}/untrained1")
    texts = sentences(folder)[: options.texts]
    compared = layers(pairs, texts, options.cv)
    if options.picture:
        from sklearn_bijection.displays import LayerDisplay

        LayerDisplay.from_comparison(compared["trained"]).figure_.savefig(options.picture)
    aligners = ALIGNERS | (TRAINED if options.train else {})
    records = stitched(pairs["trained"], texts, options.tokens, aligners)
    print(losses_table(TITLE, records), flush=True)
    figures = {name: found.rows for name, found in compared.items()}
    write_json(options.json, {"environment": facts, "layers": figures, "stitching": records})


if __name__ == "__main__":
    main()
