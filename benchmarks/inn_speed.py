"""Time what INNAligner does: an epoch, a pass each way, and the way to a given quality.

Usage: ``python benchmarks/inn_speed.py``, and ``--help`` for the options.

* An *epoch* of its training, against a plain PyTorch loop over the same network on tensors, and against
  the stock skorch net with its DataLoader, on the same rows, with the same loss, optimizer, clipping and
  schedule. Nothing is held out.
* A pass *forward* and one back through the fitted map, in either precision. The couplings of this map have
  been trained for one epoch only; time does not depend on what they have learned.
* The time until the mean R² on held-out rows of a real pair is that of the best closed form, and more by
  0.02, by 0.04 and so on. What the start reaches, it reaches before the first epoch.

Contestants take turns; a ratio is the median of the ratios within a round, with the least and the largest.
"""

import argparse
from collections.abc import Callable, Sequence
from copy import deepcopy
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from _judging import CCA, INN, PROCRUSTES, START, Array, Record, Split, judge
from _plain import one_epoch
from _race import Contestant, Problem, race, ratio
from _report import describe, environment, spread, table, write_json
from shrinkage import load
from skorch import NeuralNet
from skorch.callbacks import Callback, GradientNormClipping, LRScheduler
from torch import Tensor, nn
from torch.utils.data import Dataset

from sklearn_bijection import CCAAligner, INNAligner, ProcrustesAligner
from sklearn_bijection._inn._net import BestEpoch, CosineSchedule, PairNet
from sklearn_bijection._inn._pairs import Pairs, as_raw
from sklearn_bijection._validation import check_pair
from sklearn_bijection.metrics import r2

PLAIN, OURS, STOCK = "plain PyTorch loop", "INNAligner", "skorch with its DataLoader"
CLIP = 1.0
N_STEPS = 1500
GAINS = (0.0, 0.02, 0.04, 0.06, 0.08, 0.10, 0.12)

Epoch = Callable[[], object]


class Rows(Dataset[Any]):
    """Pairs on the CPU, one by one, as a DataLoader wants them."""

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self.tensors = [rows.cpu() for rows in tensors]

    def __len__(self) -> int:
        """Number of pairs."""
        return len(self.tensors[0])

    def __getitem__(self, i: int) -> Any:
        """Inputs, and what the loss is reckoned from."""
        x, y, weight = (rows[i] for rows in self.tensors)
        return {"x": x, "y": y}, (x, y, weight)


class TestScore(Callback):
    """Write the mean R² on held-out rows into the history; the time it takes is not counted.

    Parameters
    ----------
    split : Split
    """

    def __init__(self, split: Split) -> None:
        self.split = split

    def on_epoch_end(self, net: PairNet, dataset_train: Pairs, **kwargs: Any) -> None:
        """Score the parameters as they are now."""
        ends = (dataset_train.source, dataset_train.target)
        rows = zip(ends, (self.split.X_test, self.split.y_test), strict=True)
        x, y = (end.arrange(part, dataset_train.width, np.float32) for end, part in rows)
        net.module_.eval()
        with torch.no_grad():
            images = net.infer({"x": torch.from_numpy(x), "y": torch.from_numpy(y)})
        there, back = images.forward.cpu().numpy(), images.inverse.cpu().numpy()
        score = (r2(y[:, : there.shape[1]], there) + r2(x[:, : back.shape[1]], back)) / 2
        net.history.record("test_mean", score)


def ways_to_train(X: Array, y: Array, batch_size: int, device: str) -> dict[str, Epoch]:
    """One epoch of each, again and again, of networks that are equal at first."""
    aligner = INNAligner(
        max_epochs=1, early_stopping=False, batch_size=batch_size, device=device, random_state=0
    ).fit(X, y)
    net, fitted = aligner.net_, aligner.map_
    raw = as_raw(check_pair(aligner, X, y, None, reset=False))
    pairs = Pairs(raw, fitted.source, fitted.target, fitted.architecture.width, device)
    ((_, tensors),) = pairs.batches(len(X), shuffled=False)
    plain, stock = (deepcopy(net.module_) for _ in range(2))
    net.callbacks_.append(("best_epoch", BestEpoch(None)))
    return {
        PLAIN: plain_epoch(plain, net, tensors),
        OURS: partial(net.partial_fit, pairs, None, epochs=1),
        STOCK: stock_epoch(stock, net, Rows(tensors)),
    }


def plain_epoch(module: nn.Module, net: PairNet, tensors: Sequence[Tensor]) -> Epoch:
    """The plain loop, with what trains `net`."""
    parts: dict[bool, list[nn.Parameter]] = {True: [], False: []}
    for name, parameter in module.named_parameters():
        parts["gates" in name].append(parameter)
    options = {key: net.optimizer_.defaults[key] for key in ("lr", "weight_decay")}
    (_, of_gates), *_ = net.optimizer__param_groups
    groups = [{"params": parts[True], **of_gates}, {"params": parts[False]}]
    optimizer = type(net.optimizer_)(groups, **options)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, CosineSchedule(N_STEPS))

    def loss_of(x: Tensor, y: Tensor, weight: Tensor) -> Tensor:
        loss: Tensor = net.criterion_(module(x, y), (x, y, weight))
        return loss

    module.train()
    return partial(
        one_epoch, loss_of, tensors, optimizer, schedule, batch_size=net.batch_size, clip=CLIP
    )


def stock_epoch(module: nn.Module, net: PairNet, rows: Rows) -> Epoch:
    """The stock skorch net, with what trains `net`."""
    schedule = LRScheduler("LambdaLR", lr_lambda=CosineSchedule(N_STEPS), step_every="batch")
    stock = NeuralNet(
        module,
        criterion=net.criterion_,
        optimizer=type(net.optimizer_),
        optimizer__weight_decay=net.optimizer__weight_decay,
        optimizer__param_groups=net.optimizer__param_groups,
        lr=net.lr,
        batch_size=net.batch_size,
        iterator_train__shuffle=True,
        train_split=None,
        callbacks=[GradientNormClipping(CLIP), schedule],
        callbacks__print_log=None,
        device=net.device,
    ).initialize()
    return partial(stock.partial_fit, rows, None, epochs=1)


def passes(X: Array, y: Array, n_rows: int, device: str) -> dict[str, Epoch]:
    """A pass through the fitted map each way, in either precision."""
    aligner = INNAligner(max_epochs=1, device=device, random_state=0).fit(X, y)
    found: dict[str, Epoch] = {}
    for dtype in ("float32", "float64"):
        rows = (np.resize(a, (n_rows, a.shape[1])).astype(dtype) for a in (X, y))
        for way, a in zip(("forward", "inverse"), rows, strict=True):
            found[f"{way} {dtype}"] = partial(getattr(aligner.map_, way), a)
    return found


def compete(title: str, contestants: dict[str, Epoch], to: dict[str, str], rounds: int) -> Record:
    """Let them take turns, and print seconds and ratios to the contestants named in `to`."""

    def turn(run: Epoch, X: Array, y: Array) -> object:
        return run()

    nothing = np.empty((0, 0))
    entered = [Contestant(name, partial(turn, run)) for name, run in contestants.items()]
    seconds, _ = race(entered, nothing, nothing, rounds, title)
    results: Record = {
        name: {
            "seconds": spread(spent),
            **({"to": to[name], "ratio": ratio(seconds, name, to[name])} if name in to else {}),
        }
        for name, spent in seconds.items()
    }
    print(table(title, ("", "ms", "ratio", "to"), map(_row, results.items())), flush=True)
    return results


def _row(named: tuple[str, Record]) -> tuple[str, ...]:
    name, result = named
    ms = f"{1e3 * result['seconds']['median']:,.1f}"
    if "ratio" not in result:
        return name, ms, "", ""
    one = result["ratio"]
    return name, ms, f"{one['median']:.2f} ({one['min']:.2f} .. {one['max']:.2f})", result["to"]


def way_to_quality(split: Split, device: str, changes: Record) -> Record:
    """Scores and times of the closed forms, the start and the network, and of each of its epochs."""
    inn = partial(INNAligner, random_state=0, device=device)
    trained = inn(callbacks=[TestScore(split)], **changes)
    contestants = {
        CCA: CCAAligner(),
        PROCRUSTES: ProcrustesAligner(),
        START: inn(max_epochs=0),
        INN: trained,
    }
    fits = [judge("", name, aligner, split) for name, aligner in contestants.items()]
    epochs = [{key: epoch[key] for key in ("dur", "test_mean")} for epoch in trained.history_]
    return {"fits": fits, "epochs": epochs, "best_epoch": trained.best_epoch_}


def show_way(found: Record) -> str:
    """When each gain over the best closed form was there."""
    closed = max(fit["mean"] for fit in found["fits"] if fit["name"] in (CCA, PROCRUSTES))
    start = next(fit for fit in found["fits"] if fit["name"] == START)
    times = start["seconds"] + np.cumsum([epoch["dur"] for epoch in found["epochs"]])
    moments = [("start", start["seconds"], start["mean"])]
    moments += [
        (f"epoch {i}", time, epoch["test_mean"])
        for i, (time, epoch) in enumerate(zip(times, found["epochs"], strict=True), start=1)
    ]
    rows = []
    for gain in GAINS:
        reached = next((m for m in moments if m[2] >= closed + gain), None)
        at, seconds = ("not reached", "") if reached is None else (reached[0], f"{reached[1]:.1f}")
        rows.append((f"{closed:.3f} + {gain:.2f}", at, seconds))
    fits = [(f["name"], f"{f['mean']:.3f}", f"{f['seconds']:.1f}") for f in found["fits"]]
    return table("Whole fits", ("", "mean R²", "seconds"), fits) + table(
        "Seconds until the mean held-out R² is that of the best closed form and more",
        ("", "at", "seconds"),
        rows,
    )


def main() -> None:
    """Run all three."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add(
        "--size", default="6400x384:float32", metavar="ROWSxWIDTH", help="of the pair that is timed"
    )
    add("--batch-size", type=int, default=256, help="(256)")
    add("--map-rows", type=int, default=10_000, help="rows of a pass through the map (10000)")
    add("--pair", metavar="FILE.npz:KEY_X,KEY_Y", help="to be learned, instead of the sentences")
    add("--rounds", type=int, default=9, help="turns of each contestant (9)")
    add("--device", default="cpu", help="cpu, cuda, mps (cpu)")
    add("--quick", action="store_true", help="a small pair, to see that it works")
    add("--json", type=Path, help="file to write all figures to")
    options = parser.parse_args()
    size, rounds, n_rows = options.size, options.rounds, options.map_rows
    changes: Record = {}
    X_real, y_real = load(options.pair)
    if options.quick:
        size, rounds, n_rows, changes = "600x16:float32", 2, 500, {"max_epochs": 2}
        X_real, y_real = X_real[:400, :32], y_real[:400, :32]
    facts = environment()
    facts["versions"] |= {name: version(name) for name in ("torch", "skorch")}
    facts["torch_threads"] = torch.get_num_threads()
    print(f"{describe(facts)}\nPyTorch: {facts['torch_threads']} threads, device {options.device}")
    X, y = Problem.parse(size).draw()
    ways = ways_to_train(X, y, options.batch_size, options.device)
    title = f"An epoch, {size}, batches of {options.batch_size}"
    trained = compete(title, ways, {OURS: PLAIN, STOCK: OURS}, rounds)
    back = {f"inverse {dtype}": f"forward {dtype}" for dtype in ("float32", "float64")}
    title = f"A pass of {n_rows:,} rows through the map, {size}"
    passed = compete(title, passes(X, y, n_rows, options.device), back, rounds)
    found = way_to_quality(Split.draw(X_real, y_real, 0), options.device, changes)
    print(show_way(found), flush=True)
    figures = {"epoch": trained, "pass": passed, "way": found}
    write_json(options.json, {"environment": facts, "size": size, **figures})


if __name__ == "__main__":
    main()
