"""What each parameter of the network may be."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

from sklearn.base import BaseEstimator

from .._compat import Interval, StrOptions
from .._flow import ACTIVATIONS, COUPLINGS
from .._validation import DIRECTION

CONSTRAINTS: dict[str, list[Any]] = {
    "n_blocks": [Interval(Integral, 0, None, closed="left")],
    "hidden_size": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
    "n_hidden": [Interval(Integral, 1, None, closed="left")],
    "coupling": [StrOptions(set(COUPLINGS))],
    "mixing": [StrOptions({"none", "permutation", "rotation", "orthogonal"})],
    "activation": [StrOptions(set(ACTIVATIONS))],
    "clamp": [Interval(Real, 0, None, closed="neither")],
    "init": [StrOptions({"gated"}), BaseEstimator, None],
    "learn_linear": ["boolean"],
    "direction": DIRECTION,
    "dropout": [Interval(Real, 0, 1, closed="left"), StrOptions({"auto"})],
    "max_epochs": [Interval(Integral, 0, None, closed="left"), StrOptions({"auto"})],
    "batch_size": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
    "lr": [Interval(Real, 0, None, closed="neither")],
    "weight_decay": [Interval(Real, 0, None, closed="left")],
    "early_stopping": ["boolean"],
    "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
    "refit": ["boolean", StrOptions({"auto"})],
    "patience": [Interval(Integral, 1, None, closed="left"), None],
    "gradient_clip": [Interval(Real, 0, None, closed="neither"), None],
    "optimizer": [str, type],
    "cycle": [Interval(Real, 0, None, closed="left")],
    "cosine": [Interval(Real, 0, None, closed="left")],
    "callbacks": [list, tuple, None],
    "device": [str],
    "compile": ["boolean"],
    "precision": [StrOptions({"float32", "bf16"})],
    "warm_start": ["boolean"],
    "random_state": ["random_state"],
    "verbose": ["verbose"],
}
