"""The demonstration: two real embedding spaces, every aligner, a table, sentences and a picture."""

from __future__ import annotations

import textwrap
from argparse import Namespace
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from ..datasets import load_sentence_pair
from ..metrics import Comparison, compare_aligners
from ._models import ALIGNERS, parse_aligner
from ._picture import HeldOut, check_picture, draw_both
from ._terminal import note, say

#: Training the network takes minutes at this size; its start takes seconds.
_SPECS = {name: name for name in ALIGNERS} | {"inn": "inn:max_epochs=0"}
_ONE_WAY, _ONE_WAY_SPEC = "cca forward", "cca:direction=forward"
_N_FOLDS = 5
_N_TRAIN = 2_000
_N_EXAMPLES = 4
_LONGEST = 38
_LABEL = 26
_WIDTH = 100


def demonstrate(args: Namespace) -> None:
    """Print the comparison and what it means, and write a picture."""
    pair: Any = load_sentence_pair()
    print("\n".join(_introduction(pair)), flush=True)
    comparison = compare_aligners(
        {**{name: _aligner(name) for name in _SPECS}, _ONE_WAY: parse_aligner(_ONE_WAY_SPEC)[1]},
        pair.X,
        pair.y,
        cv=_N_FOLDS,
        progress=not args.quiet,
    )
    best = _best(comparison)
    print(comparison, *_reading(comparison, best), sep="\n", end="\n\n")
    held_out = _hold_out(pair, best)
    print("\n".join(_examples(held_out)), flush=True)
    if not args.no_plot:
        _draw(comparison, held_out, args)


def _aligner(name: str) -> Any:
    return parse_aligner(_SPECS[name])[1]


def _introduction(pair: Any) -> Iterator[str]:
    yield f"Two encoders have embedded the same {len(pair.sentences):,} English sentences, row by row:"
    for name, encoder, rows in (("X", pair.X_name, pair.X), ("y", pair.y_name, pair.y)):
        yield f"  {name}  {encoder}, {rows.shape[1]} wide"
    yield _fill(
        "An aligner learns a map from X to y that can be walked back. Each learns from four fifths of the "
        "sentences and is judged on the rest, five times over. 'inn' is the start of the invertible network, "
        f"before any training ({_SPECS['inn']}). 'mean' and 'identity' have learnt no map."
    )
    yield ""


def _best(comparison: Comparison) -> str:
    """Name of the aligner whose mean of both directions is highest."""
    scores = {row["aligner"]: row["r2_symmetric_mean"] for row in comparison.summary()}
    return max(ALIGNERS, key=lambda name: float(scores[name]))


def _reading(comparison: Comparison, best: str) -> Iterator[str]:
    scores = {row["aligner"]: row for row in comparison.summary()}
    yield ""
    yield _fill(
        "What to read in it: R² is the share of the variance that a map gets right on new sentences; 1 is "
        f"perfect, 0 as good as the mean. '{best}' gets {_both(scores[best])}. '{_ONE_WAY}' "
        f"({_ONE_WAY_SPEC}) was fitted for the way there only, and gets {_both(scores[_ONE_WAY])}. On "
        "noisy pairs no linear map that can be walked back is good both ways: look at both columns."
    )


def _fill(text: str) -> str:
    return textwrap.fill(text, _WIDTH)


def _both(row: dict[str, Any]) -> str:
    return f"{row['r2_forward_mean']:.3g} there and {row['r2_inverse_mean']:.3g} back"


def _hold_out(pair: Any, name: str) -> HeldOut:
    aligner = _aligner(name).fit(pair.X[:_N_TRAIN], pair.y[:_N_TRAIN])
    return HeldOut(name, aligner, pair.X[_N_TRAIN:], pair.y[_N_TRAIN:], pair.sentences[_N_TRAIN:])


def _examples(held_out: HeldOut) -> Iterator[str]:
    """Sentences that land next to another one, forwards and back."""
    name, aligner, X, y, sentences = held_out
    forward, backward = _nearest(aligner.transform(X), y), _nearest(aligner.inverse_transform(y), X)
    own = np.arange(len(sentences))
    hits = [int((found[1][:, 0] == own).sum()) for found in (forward, backward)]
    yield _fill(
        f"Mapped by '{name}', {hits[0]} of {len(own)} new sentences land nearest to their own partner in "
        f"y; mapped back, {hits[1]} do so in X. Here is what lies next nearest:"
    )
    yield ""
    row = "  {:<38}  {:<27}  {:<27}".format
    yield row("new sentence", "next nearest in y", "next nearest in X").rstrip()
    for i in _liveliest(forward, sentences):
        there, back = (_other(found[1][i], i) for found in (forward, backward))
        yield row(*(_cut(sentences[k], n) for k, n in ((i, 38), (there, 27), (back, 27)))).rstrip()
    yield ""


Found = tuple[NDArray[Any], NDArray[np.intp]]


def _nearest(images: NDArray[Any], rows: NDArray[Any]) -> Found:
    """Cosine distances and places of the two rows nearest to each image."""
    found: Found = NearestNeighbors(n_neighbors=2, metric="cosine").fit(rows).kneighbors(images)
    return found


def _liveliest(found: Found, sentences: Sequence[str]) -> list[int]:
    """Short sentences that find themselves first, in order of how near the next one is."""
    distances, places = found
    fitting = [
        i
        for i, (first, second) in enumerate(places)
        if first == i and max(len(sentences[i]), len(sentences[second])) <= _LONGEST
    ]
    return sorted(fitting, key=lambda i: float(distances[i, 1]))[:_N_EXAMPLES]


def _other(places: NDArray[np.intp], own: int) -> int:
    return int(places[1] if places[0] == own else places[0])


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 3]}..."


def _draw(comparison: Comparison, held_out: HeldOut, args: Namespace) -> None:
    try:
        target = check_picture(args.plot)
    except ImportError as error:
        say("note", f"no picture. {error}")
        return
    title = f"New sentences mapped both ways by '{held_out.name}', and the scores of every aligner"
    texts = [_cut(text, _LABEL) for text in held_out.texts]
    draw_both(comparison, held_out._replace(texts=texts), title, target)
    note(f"wrote {target}: new sentences mapped both ways, and the table", quiet=args.quiet)
