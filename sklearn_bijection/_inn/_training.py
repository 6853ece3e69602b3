"""One training run: a core and pairs in, the best core out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from threading import RLock
from typing import Any

import numpy as np
import torch
from numpy.random import RandomState
from sklearn.utils import check_random_state
from skorch.callbacks import Callback, EarlyStopping, GradientNormClipping, LRScheduler, PrintLog
from skorch.helper import predefined_split

from .._flow import Chain
from .._objectives import BijectionLoss
from ._net import BestEpoch, BothWays, CosineSchedule, DivergedError, EpochBar, PairNet
from ._pairs import Pairs

#: The few numbers of the gates bear larger steps than the many of the couplings.
_GATE_LR = 5.0

_ONE_AT_A_TIME = RLock()


@dataclass(frozen=True)
class TrainingOptions:
    """How to train; the parameters of the estimator, with everything that was automatic decided."""

    direction: str
    max_epochs: int
    batch_size: int
    lr: float
    weight_decay: float
    patience: int | None
    gradient_clip: float | None
    optimizer: type[torch.optim.Optimizer]
    cycle: float
    cosine: float
    callbacks: Sequence[Callback]
    device: str
    compile: bool
    precision: str
    verbose: int
    anneal: bool = True


@dataclass(frozen=True, eq=False)
class Trained:
    """What came out.

    Parameters
    ----------
    net : PairNet
        Holding the parameters of the best epoch.
    best_epoch : int
        0 is the start.
    diverged_at : int or None
        Epoch in which the loss was no number any more.
    """

    net: PairNet
    best_epoch: int
    diverged_at: int | None = None

    @property
    def interrupted(self) -> bool:
        """Whether it was ended from the keyboard."""
        return self.net.interrupted_

    @property
    def core(self) -> Chain:
        """The trained core, in float32."""
        module: Any = self.net.module_
        # A compiled module wraps the one it was made from.
        core: Chain = getattr(module, "_orig_mod", module).core
        return core

    @property
    def history(self) -> list[dict[str, Any]]:
        """Figures of each complete epoch, without those of the batches."""
        return [
            {name: value for name, value in epoch.items() if name != "batches"}
            for epoch in self.net.history
            if "valid_best" in epoch
        ]


def make_net(
    core: Chain, n_source: int, n_target: int, valid: Pairs | None, options: TrainingOptions
) -> PairNet:
    """A skorch net around a float32 copy of `core`, not yet initialised.

    Standardised columns have variance 1 on average, so that their numbers are the variances of the loss.
    """
    groups = [("*gates*", {"lr": _GATE_LR * options.lr, "weight_decay": 0.0})]
    return PairNet(
        BothWays,
        module__core=deepcopy(core).float(),
        module__n_source=n_source,
        module__n_target=n_target,
        module__forward_too=options.direction != "backward",
        module__inverse_too=options.direction != "forward",
        module__cycle=options.cycle > 0,
        module__autocast=torch.bfloat16 if options.precision == "bf16" else None,
        criterion=BijectionLoss,
        criterion__variance_x=float(n_source),
        criterion__variance_y=float(n_target),
        criterion__direction=options.direction,
        criterion__cycle=options.cycle,
        criterion__cosine=options.cosine,
        optimizer=options.optimizer,
        optimizer__weight_decay=options.weight_decay,
        optimizer__param_groups=groups if "gates" in core.layers else [],
        lr=options.lr,
        batch_size=options.batch_size,
        max_epochs=options.max_epochs,
        train_split=None if valid is None else predefined_split(valid),
        device=options.device,
        compile=options.compile,
        callbacks__print_log=PrintLog() if options.verbose > 1 else None,
        verbose=int(options.verbose > 1),
    )


def train(
    core: Chain,
    pairs: Pairs,
    valid: Pairs | None,
    options: TrainingOptions,
    n_epochs: int | None = None,
) -> Trained:
    """Train a copy of `core`, and take back the parameters of the best epoch.

    An interrupt from the keyboard ends the training like the last epoch does. With `n_epochs` it ends that
    early on a schedule for ``options.max_epochs``.
    """
    n_source, n_target = len(pairs.source.columns), len(pairs.target.columns)
    net = make_net(core, n_source, n_target, valid, options)
    repeated = bool(n_epochs)
    net.set_params(callbacks=_callbacks(len(pairs), valid is not None, repeated, options))
    net.initialize()
    if not any(parameter.numel() for parameter in core.parameters()):
        return Trained(net, 0)
    best = BestEpoch(None if valid is None else net.judge(valid))
    start = deepcopy(net.module_.state_dict())
    # The first of all, since early stopping ends an epoch before the others have seen it.
    net.callbacks_.insert(0, ("best_epoch", best))
    diverged_at = None
    try:
        net.partial_fit(pairs, None, epochs=n_epochs)
    except DivergedError:
        diverged_at = len(net.history)
        net.notify("on_train_end", X=pairs, y=None)
    net.callbacks_ = [pair for pair in net.callbacks_ if pair[0] != "best_epoch"]
    net.module_.load_state_dict(start if best.state is None else best.state)
    net.module_.eval()
    return Trained(net, best.epoch, diverged_at)


def _callbacks(n_rows: int, validated: bool, repeated: bool, options: TrainingOptions) -> list[Any]:
    n_steps = options.max_epochs * -(-n_rows // options.batch_size)
    found: list[Any] = []
    if options.gradient_clip is not None:
        found.append(("clip", GradientNormClipping(options.gradient_clip)))
    if options.anneal:
        schedule = LRScheduler("LambdaLR", lr_lambda=CosineSchedule(n_steps), step_every="batch")
        found.append(("schedule", schedule))
    if validated and options.patience is not None:
        stopping = EarlyStopping(patience=options.patience, sink=_silent)
        found.append(("early_stopping", stopping))
    if options.verbose:
        found.append(("bar", EpochBar(options.max_epochs)))
    joining = (c for c in options.callbacks if not (repeated and _watches_validation(c)))
    return [*found, *deepcopy(list(joining))]


def _watches_validation(callback: Any) -> bool:
    """Whether it goes by rows to judge by, which a repetition with all rows does not have."""
    _, watching = callback if isinstance(callback, tuple) else ("", callback)
    return "valid" in str(getattr(watching, "monitor", ""))


def _silent(text: str) -> None:
    """Where the words of early stopping go."""


def resolve_optimizer(
    optimizer: str | type[torch.optim.Optimizer], weight_decay: float
) -> type[torch.optim.Optimizer]:
    """The class of that name in ``torch.optim``, or the class itself, if it can train the network."""
    kind: Any = getattr(torch.optim, optimizer, None) if isinstance(optimizer, str) else optimizer
    try:
        if not issubclass(kind, torch.optim.Optimizer):
            raise TypeError("it is no optimizer")
        kind([torch.nn.Parameter(torch.zeros(1))], lr=1.0, weight_decay=weight_decay)
    except TypeError as error:
        raise ValueError(
            f"optimizer={optimizer!r} cannot train the network ({error}). Pass a class of torch.optim that "
            "takes lr and weight_decay, or its name: 'AdamW', 'SGD'."
        ) from error
    return kind  # type: ignore[no-any-return]


def resolve_device(device: str, precision: str) -> str:
    """The device that "auto" stands for, or the one asked for if it is there."""
    if device == "auto":
        kinds = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
        device = next((kind for kind, there in kinds.items() if there), "cpu")
    else:
        _check_device(device)
    if precision == "bf16" and not device.startswith("cuda"):
        raise ValueError(
            f"precision='bf16' needs CUDA, but the device is {device!r}. Pass precision='float32'."
        )
    return device


def _check_device(device: str) -> None:
    try:
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError) as error:
        raise ValueError(
            f"device={device!r} cannot be used ({str(error).splitlines()[0]}). Pass 'auto' or 'cpu'."
        ) from error


def draws_of(random_state: int | RandomState | None) -> RandomState:
    """Where random numbers come from: for None from fresh entropy, never from numpy's own generator."""
    if random_state is None:
        return RandomState(np.random.SeedSequence().generate_state(4))
    draws: RandomState = check_random_state(random_state)
    return draws


@contextmanager
def seeded(draws: RandomState, device: str) -> Iterator[None]:
    """Seed torch for the CPU and for `device`, and leave its generators as they were.

    One thread at a time, for the generators belong to all. A caller who is only inferring can fit here too.
    """
    seed = int(draws.randint(np.iinfo(np.int32).max))
    on_cuda = device.startswith("cuda")
    fork = torch.random.fork_rng(devices=[torch.device(device)] if on_cuda else [])
    with _ONE_AT_A_TIME, fork, torch.inference_mode(False):
        torch.default_generator.manual_seed(seed)
        if on_cuda:
            with torch.cuda.device(device):
                torch.cuda.manual_seed(seed)
        yield
