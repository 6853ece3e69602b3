"""Heads as rows of mean attention, as Ren et al. (2023) take them, with one fault mended after the other.

A head's row for a text is how much each of its places receives, on the mean over the places that attend. In
the published code every text is padded to one length and padding attends too, the models are left in training
mode, so that dropout acts, and both draw their texts from one loader that goes on: the second model is
asked about other texts than the first. The map is judged on the rows that it was fitted to.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from _judging import Split, scores
from _published import PublishedRecipe

from sklearn_bijection import CCAAligner
from sklearn_bijection.huggingface import extract_attentions

Array = npt.NDArray[np.floating]
Record = dict[str, Any]

#: Of the published code: the length that texts are padded to, and how many there are.
LENGTH, ROWS = 128, 1600
#: In these the network ends where it does in 60, since the published learning rates add up to the same.
EPOCHS = 6
CHUNK = 64
NETWORK = "as published, its network"


def measured(
    models: tuple[Any, Any],
    tokenizer: Any,
    train: Sequence[str],
    test: Sequence[str],
    n_pairs: int,
) -> Iterator[Record]:
    """R² and squared error of maps between heads, mean over pairs of heads that are drawn."""
    for name, (X, y, X_test, y_test) in ladder(models, tokenizer, train, test):
        drawn = np.random.default_rng(0).integers(len(X), size=(n_pairs, 2))
        splits = [Split(X[i], y[j], X_test[i], y_test[j]) for i, j in drawn]
        if not name.startswith("+"):
            yield {"name": NETWORK, **_mean(splits, _network(X, y))}
        yield {"name": name, **_mean(splits)}


def ladder(
    models: tuple[Any, Any], tokenizer: Any, train: Sequence[str], test: Sequence[str]
) -> Iterator[tuple[str, tuple[Array, Array, Array, Array]]]:
    """Rows (n_all_heads, n_texts, length) of both models, to fit and to judge, as faults are mended."""
    n = min(ROWS, len(train) // 2)
    seen, next_ones = train[:n], train[n : 2 * n]
    longest = max(map(len, tokenizer([*train, *test], truncation=True)["input_ids"]))
    length = min(LENGTH, longest)
    X, y, X_test, y_test = (
        padded_rows(model, tokenizer, texts, length) for texts in (seen, test) for model in models
    )
    other = padded_rows(models[1], tokenizer, next_ones, length)
    yield "as published, CCA for its map", (X, other, X, other)
    yield "+ the same texts for both models", (X, y, X, y)
    yield "+ judged on texts held out", (X, y, X_test, y_test)
    X, y, X_test, y_test = (
        mean_rows(model, tokenizer, texts, length) for texts in (seen, test) for model in models
    )
    yield "+ no padding, no dropout", (X, y, X_test, y_test)
    X, y, X_test, y_test = map(less_uniform, (X, y, X_test, y_test))
    yield "+ less uniform attention", (X, y, X_test, y_test)


def padded_rows(model: Any, tokenizer: Any, texts: Sequence[str], length: int) -> Array:
    """Means over all places, padding among them, under dropout."""
    model.set_attn_implementation("eager")
    model.train()
    with torch.no_grad(), torch.random.fork_rng():
        torch.manual_seed(0)
        found = [
            _attended(model, tokenizer, texts[start : start + CHUNK], length)
            for start in range(0, len(texts), CHUNK)
        ]
    model.eval()
    return _all_heads(np.concatenate(found, axis=2))


def _attended(model: Any, tokenizer: Any, texts: Sequence[str], length: int) -> Array:
    batch = tokenizer(
        list(texts), padding="max_length", truncation=True, max_length=length, return_tensors="pt"
    )
    found = model(**batch, output_attentions=True).attentions
    means: Array = torch.stack([part.mean(dim=2).swapaxes(0, 1) for part in found]).numpy()
    return means


def mean_rows(model: Any, tokenizer: Any, texts: Sequence[str], length: int) -> Array:
    """Means over tokens."""
    rows = extract_attentions(model, texts, tokenizer=tokenizer, max_length=length, progress=False)
    return _all_heads(np.pad(rows, [(0, 0)] * 3 + [(0, length - rows.shape[-1])]))


def less_uniform(rows: Array) -> Array:
    """Less what each token of a text would receive if all tokens attended evenly."""
    tokens = rows.any(axis=0)
    shares: Array = rows - tokens / tokens.sum(axis=1, keepdims=True)
    return shares


def _all_heads(rows: Array) -> Array:
    return rows.reshape(-1, *rows.shape[2:])


def _network(X: Array, y: Array) -> PublishedRecipe:
    """One network for all heads of all layers, each with the head of its own number."""
    n_columns = X.shape[-1]
    X, y = X.reshape(-1, n_columns), y.reshape(-1, n_columns)
    chosen = np.random.default_rng(0).permutation(len(X))[:ROWS]
    return PublishedRecipe(epochs=EPOCHS).fit(X[chosen], y[chosen])


def _mean(splits: Sequence[Split], network: PublishedRecipe | None = None) -> Record:
    """Means over the pairs; and how far the errors, pair by pair, are the variances of the targets."""
    fitted = [network or CCAAligner(direction="forward").fit(split.X, split.y) for split in splits]
    both = list(zip(fitted, splits, strict=True))
    errors = [np.mean((found.transform(split.X_test) - split.y_test) ** 2) for found, split in both]
    variances = [split.y_test.var(axis=0).mean() for split in splits]
    return {
        "r2": float(np.mean([scores(found, split)["forward"] for found, split in both])),
        "error": float(np.mean(errors)),
        "echo": float(np.corrcoef(errors, variances)[0, 1]),
    }
