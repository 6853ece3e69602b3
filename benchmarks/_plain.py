"""One pass of a plain PyTorch loop, which other ways to train are measured against."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

LossOf = Callable[..., Tensor]


def one_epoch(
    loss_of: LossOf,
    tensors: Sequence[Tensor],
    optimizer: Optimizer,
    schedule: LRScheduler,
    *,
    batch_size: int,
    clip: float | None = None,
) -> float:
    """Train once on all rows, in random order, and give the mean loss of the batches.

    Parameters
    ----------
    loss_of : callable
        ``loss_of(*rows)`` is the loss of a batch.
    tensors : sequence of Tensor
        Paired rows, on the device.
    optimizer, schedule : Optimizer, LRScheduler
        Both take a step with every batch.
    batch_size : int
    clip : float, default=None
        Largest norm of the gradient.
    """
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    order = torch.randperm(len(tensors[0])).to(tensors[0].device)
    losses = []
    for start in range(0, len(order), batch_size):
        places = order[start : start + batch_size]
        loss = loss_of(*(rows.index_select(0, places) for rows in tensors))
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        if clip is not None:
            torch.nn.utils.clip_grad_norm_(parameters, clip)
        optimizer.step()
        schedule.step()
        losses.append(loss.detach())
    return float(torch.stack(losses).mean())
