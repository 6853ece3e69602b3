"""What two spaces tell of each other when no bijection is asked for: a network each way.

Each network begins as a ridge regression and learns what that leaves over, so that it is not below the
ridge where few rows are to be had. A tenth of the rows decides for how many epochs; then it learns anew
from all.
"""

from collections.abc import Callable
from typing import Self

import numpy as np
import numpy.typing as npt
import torch
from _judging import PENALTIES
from _plain import one_epoch
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import train_test_split
from torch import Tensor, nn

Array = npt.NDArray[np.floating]


class TwoNetworks:
    """A network from X to y and one from y to X, each fitted for itself alone.

    Parameters
    ----------
    epochs : int, default=40
        At most.
    patience : int, default=6
        Epochs without a lower error on the tenth before the search for their number ends.
    seed : int, default=0
    """

    def __init__(self, *, epochs: int = 40, patience: int = 6, seed: int = 0) -> None:
        self.epochs, self.patience, self.seed = epochs, patience, seed

    def fit(self, X: Array, y: Array) -> Self:
        """Train both."""
        options = {"epochs": self.epochs, "patience": self.patience, "seed": self.seed}
        self.there, self.back = Network(**options).fit(X, y), Network(**options).fit(y, X)
        return self

    def transform(self, X: Array) -> Array:
        """Predict y."""
        return self.there.predict(X)

    def inverse_transform(self, y: Array) -> Array:
        """Predict X."""
        return self.back.predict(y)


class Network:
    """A ridge regression, and a perceptron that adds what it leaves over.

    Parameters
    ----------
    epochs, patience, seed : int
        As for `TwoNetworks`.
    hidden : int, default=256
        Units of the one hidden layer.
    dropout : float, default=0.4
    batch_size : int, default=64
    """

    def __init__(
        self,
        *,
        epochs: int,
        patience: int,
        seed: int,
        hidden: int = 256,
        dropout: float = 0.4,
        batch_size: int = 64,
    ) -> None:
        self.epochs, self.patience, self.seed = epochs, patience, seed
        self.hidden, self.dropout, self.batch_size = hidden, dropout, batch_size

    def fit(self, inputs: Array, targets: Array) -> Self:
        """Find the number of epochs, and train for as many on all rows."""
        inputs, targets = inputs.astype(np.float64), targets.astype(np.float64)
        self.mean, self.unit = inputs.mean(axis=0), inputs.std(axis=0).mean()
        parts = train_test_split(inputs, targets, test_size=0.1, random_state=self.seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            n_epochs = self._search(*parts)
            train = self._start(inputs, targets)
            for _ in range(n_epochs):
                train()
        return self

    def predict(self, inputs: Array) -> Array:
        """Sum of both parts, in the units of the targets."""
        with torch.no_grad():
            rest = self.net.eval()(self._scaled(inputs)).double().numpy()
        found: Array = self.ridge.predict(inputs) + self.target_unit * rest
        return found

    def _search(self, inputs: Array, inputs_out: Array, targets: Array, targets_out: Array) -> int:
        """Epochs after which the error on the rows left out is least; 0 leaves the ridge alone."""
        train, errors = self._start(inputs, targets), [self._error(inputs_out, targets_out)]
        for epoch in range(1, self.epochs + 1):
            train()
            errors.append(self._error(inputs_out, targets_out))
            if epoch - int(np.argmin(errors)) >= self.patience:
                break
        return int(np.argmin(errors))

    def _error(self, inputs: Array, targets: Array) -> float:
        return float(((targets - self.predict(inputs)) ** 2).mean())

    def _start(self, inputs: Array, targets: Array) -> Callable[[], float]:
        """Fit the ridge, add a perceptron that answers zero, and give what trains it for an epoch."""
        penalties = PENALTIES * len(inputs) * inputs.var(axis=0).mean()
        self.ridge = RidgeCV(penalties).fit(inputs, targets)
        self.target_unit = targets.std(axis=0).mean()
        rest = (targets - self.ridge.predict(inputs)) / self.target_unit
        tensors = (self._scaled(inputs), torch.from_numpy(rest.astype(np.float32)))
        self.net = self._perceptron(inputs.shape[1], targets.shape[1])
        optimizer = torch.optim.AdamW(self.net.parameters())
        steady = torch.optim.lr_scheduler.ConstantLR(optimizer, factor=1.0)

        def train() -> float:
            self.net.train()
            return one_epoch(self._loss, tensors, optimizer, steady, batch_size=self.batch_size)

        return train

    def _perceptron(self, n_inputs: int, n_targets: int) -> nn.Sequential:
        last = nn.Linear(self.hidden, n_targets)
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)
        first = nn.Linear(n_inputs, self.hidden)
        return nn.Sequential(first, nn.GELU(), nn.Dropout(self.dropout), last)

    def _loss(self, inputs: Tensor, rest: Tensor) -> Tensor:
        return nn.functional.mse_loss(self.net(inputs), rest)

    def _scaled(self, inputs: Array) -> Tensor:
        """Rows of about unit variance."""
        return torch.from_numpy(((inputs - self.mean) / self.unit).astype(np.float32))
