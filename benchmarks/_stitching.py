"""Models stitched from two: what their loss is by several maps, and the table of it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from _judging import PENALTIES, Record, grouped
from _report import table
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import RidgeCV

from sklearn_bijection import CCAAligner, INNAligner, ProcrustesAligner
from sklearn_bijection.huggingface import extract_hidden_states, masked_lm_loss, stitch

Array = npt.NDArray[np.floating]

MEAN, FORWARD = "training mean", "CCAAligner(direction='forward')"


class Affine:
    """What maps rows affinely, as something that can be stitched in. No bijection is asked for.

    Parameters
    ----------
    estimator : object
        With `fit`, and with `predict` or `transform`.
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Array, y: Array) -> Self:
        """Fit the estimator, in float64."""
        self.estimator.fit(X.astype(np.float64), y.astype(np.float64))
        self.width = X.shape[1]
        return self

    def to_torch(self, dtype: torch.dtype) -> torch.nn.Linear:
        """Where it maps the origin, and where each unit vector from there."""
        known = self.estimator
        image = known.predict if hasattr(known, "predict") else known.transform
        bias = image(np.zeros((1, self.width)))
        weight = image(np.eye(self.width)) - bias
        layer = torch.nn.Linear(*weight.shape, dtype=dtype)
        layer.weight.data.copy_(torch.from_numpy(weight.T))
        layer.bias.data.copy_(torch.from_numpy(bias[0]))
        return layer


class Ridge(Affine):
    """The ridge regression X -> y, its penalty cross-validated: a ceiling that cannot be walked back."""

    def __init__(self) -> None:
        super().__init__(RidgeCV())

    def fit(self, X: Array, y: Array) -> Self:
        """Fit, with penalties in units of the variance of X."""
        self.estimator.set_params(alphas=PENALTIES * len(X) * float(X.var(axis=0).mean()))
        return super().fit(X, y)


#: The floor: every token becomes the mean token of the second model.
FLOOR: dict[str, Any] = {MEAN: Affine(DummyRegressor())}
ALIGNERS: dict[str, Any] = {
    "CCAAligner()": CCAAligner(),
    FORWARD: CCAAligner(direction="forward"),
    "ProcrustesAligner()": ProcrustesAligner(),
    "INNAligner(max_epochs=0)": INNAligner(max_epochs=0, random_state=0),
}
TRAINED: dict[str, Any] = {"INNAligner()": INNAligner(random_state=0)}


@dataclass(frozen=True)
class Joint:
    """Two models, rows of both to fit maps to, and sentences to judge by what is stitched of them.

    Parameters
    ----------
    first, second : transformers.PreTrainedModel
        With masked-language heads.
    tokenizer : transformers.PreTrainedTokenizerBase
        That of both.
    X, y : ndarray of shape (n_layers, n_rows, width)
        States of the two.
    test : sequence of str
        Held out.
    layers : sequence of int
        Where they are stitched.
    """

    first: Any
    second: Any
    tokenizer: Any
    X: Array
    y: Array
    test: Sequence[str]
    layers: Sequence[int]

    @classmethod
    def of(
        cls,
        models: tuple[Any, Any],
        tokenizer: Any,
        train: Sequence[str],
        test: Sequence[str],
        n_tokens: int,
        every: int = 1,
    ) -> Self:
        """Rows are tokens of `train`, drawn once for all layers; `every` counts from the last layer."""
        X, y = tokens_of(models, tokenizer, train, n_tokens)
        layers = range(len(X) - 1, -1, -every)[::-1]
        return cls(*models, tokenizer, X, y, test, layers)

    def loss(self, model: Any) -> float:
        """Masked-language loss on the sentences held out, in nats."""
        return masked_lm_loss(model, self.test, tokenizer=self.tokenizer, progress=False)

    def stitched(self, aligner: Any, layer: int, onto: int) -> float:
        """Loss of layers up to `layer`, a map that is fitted here if it can be, layers from `onto`."""
        if hasattr(aligner, "fit"):
            aligner.fit(self.X[layer], self.y[onto])
        return self.loss(stitch(self.first, self.second, layer, onto, aligner))

    def alone(self) -> Iterator[Record]:
        """Losses of both models as they are."""
        for name, model in (("the first model", self.first), ("the second model", self.second)):
            yield {"name": name, "layer": "", "loss": self.loss(model)}

    def at_equal_layers(self, aligners: Mapping[str, Any]) -> Iterator[Record]:
        """Losses by each aligner at each layer."""
        for layer, (name, aligner) in product(self.layers, aligners.items()):
            loss = self.stitched(aligner, layer, layer)
            yield {"name": name, "layer": layer, "loss": loss}

    def across_layers(self, name: str, aligner: Any) -> Iterator[Record]:
        """Losses by one aligner from every layer of the first onto every layer of the second."""
        for layer, onto in product(self.layers, repeat=2):
            loss = self.stitched(aligner, layer, onto)
            yield {"name": name, "layer": layer, "onto": onto, "loss": loss}


def tokens_of(
    models: tuple[Any, Any], tokenizer: Any, texts: Sequence[str], n_tokens: int
) -> tuple[Array, Array]:
    """States (n_layers, n_tokens, width) of both models for the same tokens of `texts`."""
    rows = [
        extract_hidden_states(model, texts, tokenizer=tokenizer, pooling="tokens")
        for model in models
    ]
    X, y = rows[0].pair(rows[1])
    # Layers of one token are rows of one text: what is left out is left out for all.
    chosen = np.random.default_rng(0).permutation(X.shape[1])[:n_tokens]
    return X[:, chosen], y[:, chosen]


def with_masks(texts: Sequence[str], mask: str, share: float = 0.15) -> list[str]:
    """The sentences with some of their words masked, since masks are what a map meets in use."""
    random = np.random.default_rng(0)
    return [
        " ".join(mask if random.random() < share else word for word in text.split())
        for text in texts
    ]


def losses_table(title: str, records: Sequence[Record]) -> str:
    """One row for each model or aligner, one column for each layer."""
    depth = sorted({r["layer"] for r in records if r["layer"] != ""})
    rows = []
    for name, found in grouped(records, "name").items():
        cells = {record["layer"]: f"{record['loss']:.3f}" for record in found}
        rows.append((name, *(cells.get(layer, "") for layer in ("", *depth))))
    return table(title, ("", "alone", *(f"stitched at {layer}" for layer in depth)), rows)
