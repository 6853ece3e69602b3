"""Invertible networks of FrEIA and zuko, and our own couplings, all trained by one plain loop.

Each flow starts as the identity and follows after a fitted `CCAAligner`, in y's own axes, centred and
scaled by one number. All have the same net in their couplings, of a size that makes the number of
parameters about equal, and the same loss, optimizer, schedule, number of epochs and choice of the best
epoch, the start among them.
"""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from _plain import one_epoch
from sklearn.model_selection import train_test_split
from torch import Tensor, nn

from sklearn_bijection import CCAAligner
from sklearn_bijection._flow import AffineModule, Architecture, Chain, Invertible, conditioner
from sklearn_bijection._inn import _freedom as auto
from sklearn_bijection._inn._net import BothWays, CosineSchedule
from sklearn_bijection._objectives import BijectionLoss

Array = npt.NDArray[np.floating]
Net = Callable[[int, int], nn.Module]
Build = Callable[[int, Net], Invertible]

_N_BLOCKS = 2
_BINS = 8


class _FrEIAFlow(Invertible):
    """A sequence of FrEIA's blocks, each made by ``SequenceINN.append``."""

    def __init__(self, width: int, block: str, n: int, **options: Any) -> None:
        super().__init__()
        self.sequence = import_module("FrEIA.framework").SequenceINN(width)
        for _ in range(n):
            self.sequence.append(getattr(import_module("FrEIA.modules"), block), **options)

    def forward(self, z: Tensor) -> Tensor:
        """Through all blocks."""
        image: Tensor = self.sequence(z, jac=False)[0]
        return image

    def inverse(self, w: Tensor) -> Tensor:
        """And back."""
        image: Tensor = self.sequence(w, rev=True, jac=False)[0]
        return image


class _ZukoFlow(Invertible):
    """zuko's couplings, alternating between odd and even coordinates, around our net."""

    def __init__(self, width: int, net: Net, **univariate: Any) -> None:
        super().__init__()
        coupling = import_module("zuko.flows.coupling").GeneralCouplingTransform
        self.couplings = nn.ModuleList()
        for i in range(2 * _N_BLOCKS):
            mask = torch.arange(width) % 2 == i % 2
            layer = coupling(width, mask=mask, **univariate)
            still = int(mask.sum())
            layer.hyper = net(still, (width - still) * layer.total)
            self.couplings.append(layer)

    def forward(self, z: Tensor) -> Tensor:
        """Through all couplings."""
        for layer in self.couplings:
            z = layer()(z)
        return z

    def inverse(self, w: Tensor) -> Tensor:
        """And back."""
        for layer in reversed(self.couplings):
            w = layer().inv(w)
        return w


def _ours(width: int, net: Net) -> Invertible:
    options = net.keywords  # type: ignore[attr-defined]
    return Architecture(width, n_blocks=_N_BLOCKS, **options).build().float()


def _freia_glow(width: int, net: Net) -> Invertible:
    return _FrEIAFlow(width, "GLOWCouplingBlock", _N_BLOCKS, subnet_constructor=net)


def _freia_all_in_one(width: int, net: Net) -> Invertible:
    # Its permutations come from numpy's generator; undone behind the block, they leave the identity.
    options = {"subnet_constructor": net, "reverse_permutation": True}
    return _FrEIAFlow(width, "AllInOneBlock", 2 * _N_BLOCKS, **options)


def _zuko_affine(width: int, net: Net) -> Invertible:
    return _ZukoFlow(width, net)


def _zuko_spline(width: int, net: Net) -> Invertible:
    univariate = import_module("zuko.transforms").MonotonicRQSTransform
    return _ZukoFlow(width, net, univariate=univariate, shapes=((_BINS,), (_BINS,), (_BINS - 1,)))


@dataclass(frozen=True)
class Peer:
    """A flow to compare with: how it is built, and the module that it needs."""

    build: Build
    needs: str = "torch"

    @property
    def installed(self) -> bool:
        """Whether it can take part."""
        return find_spec(self.needs) is not None


PEERS = {
    "our couplings": Peer(_ours),
    "FrEIA GLOWCouplingBlock": Peer(_freia_glow, "FrEIA"),
    "FrEIA AllInOneBlock": Peer(_freia_all_in_one, "FrEIA"),
    "zuko affine couplings": Peer(_zuko_affine, "zuko"),
    "zuko spline couplings": Peer(_zuko_spline, "zuko"),
}


def n_parameters(module: nn.Module) -> int:
    """Numbers that are learned."""
    return sum(p.numel() for p in module.parameters() if p.requires_grad)


def equal_flow(build: Build, width: int, dropout: float) -> Invertible:
    """A flow with about as many parameters as our couplings have by default."""

    def sized(build: Build, hidden_size: int) -> Invertible:
        return build(width, partial(conditioner, hidden_size=hidden_size, dropout=dropout))

    aim = n_parameters(sized(_ours, auto.hidden_size(width)))
    few, more = (n_parameters(sized(build, hidden_size)) for hidden_size in (1, 2))
    return sized(build, max(1, round(1 + (aim - few) / (more - few))))


class WarmFlow:
    """A flow behind a fitted CCA, trained by the plain loop for the errors of both ways.

    Parameters
    ----------
    peer : Peer
    epochs : int, default=None
        None takes as many as `INNAligner` would.
    seed : int, default=0
    device : str, default="cpu"
    """

    def __init__(
        self, peer: Peer, *, epochs: int | None = None, seed: int = 0, device: str = "cpu"
    ) -> None:
        self.peer, self.epochs, self.seed, self.device = peer, epochs, seed, device

    def fit(self, X: Array, y: Array) -> Self:
        """Fit the CCA and train the flow, a tenth of the rows being kept apart for the best epoch."""
        parts = train_test_split(X, y, test_size=0.1, random_state=self.seed)
        X, X_valid, y, y_valid = (np.asarray(part, np.float32) for part in parts)
        np.random.seed(self.seed)
        with torch.random.fork_rng():
            torch.manual_seed(self.seed)
            self._build(X, y)
            self._train((X, y), (X_valid, y_valid))
        return self

    def _build(self, X: Array, y: Array) -> None:
        closed = CCAAligner().fit(X, y).map_
        self.mean, self.unit = y.mean(axis=0), float(y.std(axis=0).mean())
        there, back = (
            torch.from_numpy(coef).float()
            for coef in (closed.there.coef / self.unit, closed.back.coef * self.unit)
        )
        start = AffineModule(torch.from_numpy(X.mean(axis=0)), torch.zeros(()), there, back)
        flow = equal_flow(self.peer.build, y.shape[1], auto.dropout(len(X), max(*there.shape)))
        self.n_parameters = n_parameters(flow)
        core = Chain([start, flow])
        self.module = BothWays(core, X.shape[1], y.shape[1]).to(self.device)

    def _train(self, learned: tuple[Array, Array], valid: tuple[Array, Array]) -> None:
        train, judge = (self._tensors(*rows) for rows in (learned, valid))
        variance_x, variance_y = (float(rows.var(dim=0).sum()) for rows in train)
        self.criterion = BijectionLoss(variance_x, variance_y)
        batch_size = auto.batch_size(len(train[0]))
        epochs = self.epochs or auto.max_epochs(len(train[0]), batch_size)
        optimizer = torch.optim.AdamW(self.module.parameters(), lr=1e-3, weight_decay=0.01)
        n_steps = epochs * -(-len(train[0]) // batch_size)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, CosineSchedule(n_steps))
        least, state = self._judge(judge), deepcopy(self.module.state_dict())
        for _ in range(epochs):
            self.module.train()
            one_epoch(self._loss, train, optimizer, schedule, batch_size=batch_size, clip=1.0)
            loss = self._judge(judge)
            if loss < least:
                least, state = loss, deepcopy(self.module.state_dict())
        self.module.load_state_dict(state)

    def _loss(self, x: Tensor, y: Tensor) -> Tensor:
        loss: Tensor = self.criterion(self.module(x, y), (x, y, x.new_ones(len(x))))
        return loss

    def _judge(self, rows: list[Tensor]) -> float:
        self.module.eval()
        with torch.no_grad():
            return float(self._loss(*rows))

    def _tensors(self, X: Array, y: Array) -> list[Tensor]:
        standard = ((y - self.mean) / self.unit).astype(np.float32)
        return [torch.from_numpy(rows).to(self.device) for rows in (X, standard)]

    def transform(self, X: Array) -> Array:
        """Map `X` into the space of y."""
        rows = torch.from_numpy(np.asarray(X, np.float32)).to(self.device)
        with torch.no_grad():
            image: Array = self.module.core(rows).cpu().numpy() * self.unit + self.mean
        return image

    def inverse_transform(self, y: Array) -> Array:
        """Map `y` back."""
        rows = torch.from_numpy(((y - self.mean) / self.unit).astype(np.float32)).to(self.device)
        with torch.no_grad():
            image: Array = self.module.core.inverse(rows).cpu().numpy()
        return image
