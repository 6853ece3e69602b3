"""The linear approximator of Zhao et al. (2021), written anew from its description.

A dense layer from the input of a part of a network to its output is trained by Adam at 0.001 for 1,842
steps, by the cosine, from small random weights. It sees every position of sentences that are filled up to one
length, the padding too. It is judged on other sentences: mean cosine over the positions of a sentence, then
over the sentences that have padding, once for all positions and once for the real ones, [CLS] and [SEP] among
them.

A step takes 256 positions here, where it took 64 sentences of 128. Four times as many change the cosines by
0.002 or less. Of the sentences of the miniatures, filled up to 64, two positions of three are padding.

References
----------
Zhao, Pascual, Brunner and Wattenhofer, "Of non-linearity and commutativity in BERT", IJCNN (2021), arXiv
2101.04547.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import torch
from sklearn.linear_model import LinearRegression
from torch import Tensor, nn

from sklearn_bijection.huggingface._parts import Part, Recorder
from sklearn_bijection.huggingface._stack import Stack

#: Positions to which sentences are filled up; steps, and positions in each.
LENGTH, STEPS, POSITIONS = 64, 1842, 256


class Sentences(NamedTuple):
    """What goes into a part of all layers and comes out, at every position of some sentences.

    Parameters
    ----------
    inputs, outputs : Tensor of shape (n_layers, n_sentences, length, width)
    real : Tensor of shape (n_sentences, length)
        Where there is no padding.
    """

    inputs: Tensor
    outputs: Tensor
    real: Tensor

    @classmethod
    @torch.no_grad()
    def of(cls, model: Any, tokenizer: Any, texts: Sequence[str], **part: Any) -> Self:
        """Fill up, run, and look on."""
        stack = Stack.of(model)
        place = Part.of(stack, **part)
        recorder = Recorder(stack.layers, range(len(stack.layers)), (place.before, place.after))
        filled = tokenizer(
            list(texts),
            padding="max_length",
            truncation=True,
            max_length=LENGTH,
            return_tensors="pt",
        )
        batches = []
        with recorder.watching():
            for rows in torch.arange(len(texts)).split(32):
                recorder.restart()
                model(**{name: values[rows] for name, values in filled.items()})
                pairs = [place.io(recorder, layer) for layer in range(len(stack.layers))]
                batches.append([torch.stack(side) for side in zip(*pairs, strict=True)])
        inputs, outputs = (torch.cat(side, dim=1) for side in zip(*batches, strict=True))
        return cls(inputs, outputs, filled["attention_mask"].bool())

    def halves(self, cut: int) -> tuple[Self, Self]:
        """The sentences before a place, and those from there on."""
        return (
            type(self)(self.inputs[:, :cut], self.outputs[:, :cut], self.real[:cut]),
            type(self)(self.inputs[:, cut:], self.outputs[:, cut:], self.real[cut:]),
        )

    def rows(self, *, padding: bool) -> tuple[Tensor, Tensor]:
        """Positions one after the other (n_layers, n_positions, width), with or without the padding."""
        kept = torch.ones_like(self.real) if padding else self.real
        return self.inputs[:, kept], self.outputs[:, kept]


class Approximators(NamedTuple):
    """A dense layer for each layer of a model.

    Parameters
    ----------
    weights : Tensor of shape (n_layers, width, width)
    biases : Tensor of shape (n_layers, 1, width)
    """

    weights: Tensor
    biases: Tensor

    @classmethod
    def published(cls, train: Sentences, *, padding: bool, steps: int) -> Self:
        """Train all of them, side by side."""
        inputs, outputs = train.rows(padding=padding)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            weights = torch.empty(len(inputs), inputs.shape[2], outputs.shape[2])
            nn.init.trunc_normal_(weights, std=0.02, a=-0.04, b=0.04)
            found = cls(weights, torch.zeros(len(inputs), 1, outputs.shape[2]))
            optimizer = torch.optim.Adam([part.requires_grad_() for part in found], lr=1e-3)
            for _ in range(steps):
                rows = torch.randint(inputs.shape[1], (POSITIONS,))
                loss = 1 - found.cosines(inputs[:, rows], outputs[:, rows]).mean(dim=1)
                optimizer.zero_grad()
                loss.sum().backward()
                optimizer.step()
        return cls(*(part.detach() for part in found))

    @classmethod
    def least_squares(cls, train: Sentences) -> Self:
        """The closed form, on the real positions."""
        fits = [
            LinearRegression().fit(X.double().numpy(), y.double().numpy())
            for X, y in zip(*train.rows(padding=False), strict=True)
        ]
        weights = torch.stack([torch.from_numpy(fit.coef_.T) for fit in fits])
        biases = torch.stack([torch.from_numpy(fit.intercept_)[None] for fit in fits])
        return cls(weights.float(), biases.float())

    def cosines(self, inputs: Tensor, outputs: Tensor) -> Tensor:
        """Of the outputs and what is predicted for them (n_layers, n_rows)."""
        return torch.cosine_similarity(
            torch.baddbmm(self.biases, inputs, self.weights), outputs, dim=-1
        )

    def judged(self, test: Sentences, *, padding: bool) -> list[float]:
        """Mean cosine of each layer, sentence by sentence."""
        cosines = self.cosines(*(side.flatten(1, 2) for side in (test.inputs, test.outputs)))
        cosines = cosines.unflatten(1, test.real.shape)
        kept = torch.ones_like(test.real) if padding else test.real
        means = (cosines * kept).sum(dim=2) / kept.sum(dim=1)
        found: list[float] = means[:, ~test.real.all(dim=1)].mean(dim=1).tolist()
        return found


def approximated(sentences: Sentences, steps: int) -> dict[str, list[float]]:
    """Cosines of each layer as published, and with one fault after the other mended."""
    train, test = sentences.halves(len(sentences.real) * 4 // 5)
    published = Approximators.published(train, padding=True, steps=steps)
    unpadded = Approximators.published(train, padding=False, steps=steps)
    return {
        "published, all positions": published.judged(test, padding=True),
        "published, real positions": published.judged(test, padding=False),
        "no padding in the loss": unpadded.judged(test, padding=False),
        "least squares": Approximators.least_squares(train).judged(test, padding=False),
    }
