"""Training, by skorch: both ways in one module, batches by index, the best epoch kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from math import cos, pi
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import ndtr, stdtrit
from skorch import NeuralNet
from skorch.callbacks import Callback, EarlyStopping
from torch import Tensor, nn
from tqdm import tqdm

from .._flow import Chain
from .._objectives import Images
from ._pairs import Batch, Pairs


class DivergedError(ValueError):
    """The loss of the network is no number any more."""


class BothWays(nn.Module):
    """The core, run in both directions at once, so that one call (and one compilation) does both.

    Parameters
    ----------
    core : Chain
    n_source, n_target : int
        Coordinates of either space that rows are compared in; those beyond them are zeros.
    forward_too, inverse_too, cycle : bool
        What is asked for.
    autocast : torch.dtype, default=None
        Precision of the products on the device, if not that of the parameters.
    """

    def __init__(
        self,
        core: Chain,
        n_source: int,
        n_target: int,
        *,
        forward_too: bool = True,
        inverse_too: bool = True,
        cycle: bool = False,
        autocast: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.core = core
        # An optimizer wants something to hold, also where the core has nothing to learn.
        self.nothing = nn.Parameter(torch.zeros(0, dtype=torch.float32))
        self.n_source, self.n_target = n_source, n_target
        self.forward_too, self.inverse_too, self.cycle = forward_too, inverse_too, cycle
        self.autocast = autocast

    def forward(self, x: Tensor, y: Tensor) -> Images:
        """Images of the x rows and of the y rows, each in the other space."""
        kind = x.device.type
        with torch.autocast(kind, dtype=self.autocast, enabled=self.autocast is not None):
            there = self.core(x)[:, : self.n_target] if self.forward_too or self.cycle else None
            back = (
                self.core.inverse(y)[:, : self.n_source] if self.inverse_too or self.cycle else None
            )
            cycle_x = cycle_y = None
            if self.cycle and there is not None and back is not None:
                cycle_x = self.core.inverse(_padded(there, x))[:, : self.n_source]
                cycle_y = self.core(_padded(back, y))[:, : self.n_target]
        return Images(*(None if i is None else i.float() for i in (there, back, cycle_x, cycle_y)))


def _padded(rows: Tensor, like: Tensor) -> Tensor:
    return nn.functional.pad(rows, (0, like.shape[1] - rows.shape[1]))


class _Batches:
    """What skorch iterates over instead of a DataLoader."""

    def __init__(self, pairs: Pairs, batch_size: int, shuffled: bool) -> None:
        self._pairs, self._batch_size, self._shuffled = pairs, batch_size, shuffled

    def __iter__(self) -> Iterator[Batch]:
        return self._pairs.batches(self._batch_size, shuffled=self._shuffled)


class PairNet(NeuralNet):
    """A skorch net whose data set draws its own batches, and whose loss is read once an epoch.

    ``valid_rows_`` are the losses of the validation rows after the latest epoch; ``interrupted_`` says that
    training was ended from the keyboard, not by early stopping.
    """

    valid_rows_: NDArray[np.float64]
    interrupted_: bool = False

    def fit_loop(self, X: Pairs, y: Any = None, epochs: int | None = None, **kwargs: Any) -> Self:
        """The epochs; skorch ends them by a KeyboardInterrupt, whoever raised it."""
        self.interrupted_ = False
        try:
            super().fit_loop(X, y, epochs, **kwargs)
        except KeyboardInterrupt:
            self.interrupted_ = not any(map(_has_stopped, dict(self.callbacks_).values()))
            raise
        return self

    def get_iterator(self, dataset: Pairs, training: bool = False) -> _Batches:
        """Batches of `dataset`, shuffled in training."""
        return _Batches(dataset, self.batch_size, training)

    def run_single_epoch(
        self,
        iterator: Iterable[Batch] | None,
        training: bool,
        prefix: str,
        step_fn: Callable[..., dict[str, Any]],
        **fit_params: Any,
    ) -> None:
        """One pass over the batches; losses are fetched at its end, not batch by batch."""
        if iterator is None:
            return
        losses, sizes, by_row = [], [], []
        first = len(self.history[-1]["batches"])
        for batch in iterator:
            self.notify("on_batch_begin", batch=batch, training=training)
            step = step_fn(batch, **fit_params)
            losses.append(step["loss"].detach())
            sizes.append(len(batch[1][0]))
            if "by_row" in step:
                by_row.append(step["by_row"])
            self.notify("on_batch_end", batch=batch, training=training, **step)
        fetched = torch.stack(losses).tolist()
        for place, (loss, size) in enumerate(zip(fetched, sizes, strict=True), start=first):
            self.history[-1]["batches"][place] |= {
                f"{prefix}_loss": loss,
                f"{prefix}_batch_size": size,
            }
        self.history.record(f"{prefix}_batch_count", len(losses))
        if by_row:
            self.valid_rows_ = torch.cat(by_row).double().cpu().numpy()
        if not np.isfinite(fetched).all():
            raise DivergedError

    def validation_step(self, batch: Batch, **fit_params: Any) -> dict[str, Any]:
        """Loss of a batch, and of each of its rows, without gradients."""
        inputs, (x, y, weight) = batch
        self._set_training(False)
        with torch.no_grad():
            images = self.infer(inputs, **fit_params)
            by_row = self.criterion_.by_row(images, x, y) * weight
        return {"loss": by_row.mean(), "y_pred": images, "by_row": by_row}

    def judge(self, pairs: Pairs) -> NDArray[np.float64]:
        """Loss of each row of `pairs` as the parameters are now."""
        steps = [self.validation_step(batch) for batch in self.get_iterator(pairs)]
        by_row: NDArray[np.float64] = (
            torch.cat([step["by_row"] for step in steps]).double().cpu().numpy()
        )
        return by_row


def _has_stopped(callback: Callback) -> bool:
    """Whether it is an early stopping that has run out of patience."""
    return isinstance(callback, EarlyStopping) and callback.misses_ >= callback.patience


class BestEpoch(Callback):
    """Keep the parameters of the epoch with the least validation loss; the start counts as epoch 0.

    Parameters
    ----------
    start_rows : ndarray of shape (n_valid,), or None
        Loss of each validation row at the start; None where there are no validation rows, so that the
        latest epoch is the best.
    """

    def __init__(self, start_rows: NDArray[np.float64] | None) -> None:
        self.start_rows = start_rows
        self.epoch = 0
        self.loss = np.inf if start_rows is None else float(start_rows.mean())
        self.state: dict[str, Tensor] | None = None

    def on_epoch_end(self, net: PairNet, **kwargs: Any) -> None:
        """Compare this epoch with the best one so far."""
        if self.start_rows is None:
            better, loss = True, np.inf
        else:
            loss = float(net.valid_rows_.mean())
            # Once training has shown to help, epochs compete by their loss alone.
            better = loss < self.loss and (self.epoch > 0 or self._beats_start(net.valid_rows_))
        net.history.record("valid_best", better)
        if better:
            self.epoch, self.loss = len(net.history), loss
            self.state = deepcopy(net.module_.state_dict())

    def _beats_start(self, rows: NDArray[np.float64]) -> bool:
        """Whether an epoch is better than the start by more than two standard errors of the difference.

        With few validation rows the least of many epochs is often so by luck, and the start is what
        generalises. Of few rows the standard error is uncertain too: two become more, as Student's t has it.
        """
        assert self.start_rows is not None
        gain = self.start_rows - rows
        if len(gain) < 2:
            return False
        least = stdtrit(len(gain) - 1, ndtr(2.0)) * gain.std(ddof=1) / np.sqrt(len(gain))
        return bool(gain.mean() > least)


class EpochBar(Callback):
    """A bar that moves on by one with every epoch.

    Parameters
    ----------
    total : int
        Epochs at most.
    """

    def __init__(self, total: int) -> None:
        self.total = total

    def on_train_begin(self, net: PairNet, **kwargs: Any) -> None:
        """Draw the bar."""
        self._bar = tqdm(total=self.total, desc="INNAligner", unit="epoch")

    def on_epoch_end(self, net: PairNet, **kwargs: Any) -> None:
        """Move it, and show the losses."""
        latest = net.history[-1]
        shown = {name: latest[name] for name in ("train_loss", "valid_loss") if name in latest}
        self._bar.set_postfix({name: f"{loss:.4f}" for name, loss in shown.items()})
        self._bar.update()

    def on_train_end(self, net: PairNet, **kwargs: Any) -> None:
        """Leave it where it stands."""
        self._bar.close()


class CosineSchedule:
    """Factor of the learning rate at each step: a short rise, then half a cosine down to zero.

    Parameters
    ----------
    n_steps : int
        Of the whole training.
    warmup : float, default=0.1
        Share of the steps that the rise takes.
    """

    def __init__(self, n_steps: int, warmup: float = 0.1) -> None:
        self.n_steps, self.rise = n_steps, max(1, round(warmup * n_steps))

    def __call__(self, step: int) -> float:
        """Factor of the step with this number."""
        if step < self.rise:
            return (step + 1) / self.rise
        done = min(1.0, (step - self.rise) / max(1, self.n_steps - self.rise))
        return 0.5 * (1 + cos(pi * done))
