"""Where the gates start: a few numbers, fitted on rows that the frame has not seen."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.func import functional_call

from .._flow import Chain, GateCoupling, GateStart, Group, groups_of, soft_clamp
from .._objectives import BijectionLoss, Images
from .._solvers import CanonicalFrame
from ._net import BothWays

#: Groups of coordinates; more of them let each gate see more, and cost time in proportion.
N_GATES = 6

#: Log-scale that no gate exceeds, whatever the fit asks for: it bounds what a round trip amplifies.
LARGEST_REACH = 3.0

#: Power of ``1 - gain``, as a logarithm, from which on gates are held back. Sharper ones hang on a few
#: coordinates of the folds they were fitted to, and go wrong in the frame of all rows.
_SHARPEST = 3.0
_HOLD = 1e-2

#: How strongly settings are pulled towards their first guess, times rows. The fewer rows there are, the
#: further apart are the frames of the folds and that of all rows, which the gates are not fitted to.
_PULL = 0.3

_LEAST_GAIN = 1e-6
_N_STEPS = 20


class GateSettings(NamedTuple):
    """What all gates of a frame follow from.

    Parameters
    ----------
    reach : Tensor of shape ()
        Logarithm of the bound on the log-scales.
    sharpness : Tensor of shape ()
        Logarithm of the power of ``1 - gain`` that a coordinate counts with.
    slope : Tensor of shape (n_gates, n_gates - 1)
    offset : Tensor of shape (n_gates,)
    """

    reach: Tensor
    sharpness: Tensor
    slope: Tensor
    offset: Tensor

    @classmethod
    def first_guess(cls, n_gates: int, log_energy: float = 0.0) -> GateSettings:
        """Energy in groups still to be scaled speaks for the first setting, in the others against it.

        It counts from `log_energy` on, the logarithm of a typical row's.
        """
        slope = torch.zeros(n_gates, n_gates, dtype=torch.float32)
        for i in range(n_gates):
            slope[i, :i] = -1.4 / max(1, i)
            slope[i, i + 1 :] = 1.4 / max(1, n_gates - 1 - i)
        others = ~torch.eye(n_gates, dtype=torch.bool)
        offset = torch.linspace(1.6, -1.6, n_gates, dtype=torch.float32)
        return cls(
            torch.tensor(0.7, dtype=torch.float32),
            torch.tensor(0.0, dtype=torch.float32),
            slope[others].reshape(n_gates, n_gates - 1),
            offset - log_energy * slope.sum(dim=1),
        )

    def starts(self, groups: tuple[Group, ...], gain: Tensor) -> list[GateStart]:
        """Parameters of each gate, as functions of these numbers."""
        bound = LARGEST_REACH * torch.sigmoid(self.reach - np.log(LARGEST_REACH / 2))
        reach = soft_clamp(torch.log(gain), bound)
        log_weight = self.sharpness.exp() * torch.log1p(1e-3 - torch.exp(2 * reach))
        return [
            GateStart(
                torch.zeros_like(reach[start:stop]), reach[start:stop], log_weight, slope, offset
            )
            for (start, stop), slope, offset in zip(groups, self.slope, self.offset, strict=True)
        ]


def interleaved(width: int, n_groups: int) -> NDArray[np.intp]:
    """Order in which each group gets every `n_groups`-th coordinate, strong and weak ones alike."""
    return np.concatenate([np.arange(i, width, n_groups) for i in range(n_groups)])


class Fold(NamedTuple):
    """Rows in the coordinates of a frame that was made without them.

    Parameters
    ----------
    x, y : Tensor of shape (n_samples, width)
        Standardised coordinates of the rows.
    weight : Tensor of shape (n_samples,)
    frame : CanonicalFrame
    """

    x: Tensor
    y: Tensor
    weight: Tensor
    frame: CanonicalFrame


class _FoldError:
    """Held-out error of the gates in one fold, as a function of the settings."""

    def __init__(self, fold: Fold, groups: tuple[Group, ...]) -> None:
        frame, order = fold.frame, interleaved(fold.frame.width, len(groups))
        self.z = fold.x @ _tensor(frame.x.there[:, order])
        self.w = fold.y @ _tensor(frame.y.there[:, order])
        self.to_x = _tensor(frame.x.back[order, : len(frame.source.columns)])
        self.to_y = _tensor(frame.y.back[order, : len(frame.target.columns)])
        self.x, self.y, self.weight = fold.x, fold.y, fold.weight
        self.gain, self.level = gain_of(frame, len(groups)), frame.level
        self.groups = groups
        self.both = BothWays(
            Chain([GateCoupling(groups, i) for i in range(len(groups))]), frame.width, frame.width
        )
        variance_x, variance_y = (
            rows.square().sum(dim=1).mean().item() for rows in (fold.x, fold.y)
        )
        self.loss = BijectionLoss(variance_x, variance_y)

    @property
    def log_energy(self) -> float:
        """Logarithm of the mean square of the coordinates, which is below zero where much is shrunk."""
        return float(torch.stack([self.z, self.w]).square().mean().log())

    def __call__(self, settings: GateSettings) -> Tensor:
        error: Tensor = self.by_row(settings).mean()
        return error

    def by_row(self, settings: GateSettings | None) -> Tensor:
        """Weighted error of each row: of the gates, or for None of the linear map of the frame."""
        linear = Images(self.z * self.level, self.w / self.level)
        images = linear if settings is None else self._gated(settings)
        assert images.forward is not None and images.inverse is not None
        there, back = images.forward @ self.to_y, images.inverse @ self.to_x
        by_row: Tensor = self.loss.by_row(Images(there, back), self.x, self.y) * self.weight
        return by_row

    def _gated(self, settings: GateSettings) -> Images:
        parameters = {
            f"core.layers.{i}.{name}": value
            for i, start in enumerate(settings.starts(self.groups, self.gain))
            for name, value in start._asdict().items()
        }
        images: Images = functional_call(self.both, parameters, (self.z, self.w))
        return images


def _tensor(array: NDArray[np.float64]) -> Tensor:
    return torch.as_tensor(array, dtype=torch.float32)


def gain_of(frame: CanonicalFrame, n_groups: int) -> Tensor:
    """Gains of a frame, positive, in the order of its gated coordinates."""
    return _tensor(np.maximum(frame.gain, _LEAST_GAIN)[interleaved(frame.width, n_groups)])


def fit_for_gates(folds: list[Fold]) -> bool:
    """Whether the frames are of one width, which has room for more than one group."""
    widths = {fold.frame.width for fold in folds}
    return len(widths) == 1 and min(widths) > 1


def fit_gates(folds: list[Fold], n_rows: int) -> GateSettings:
    """Fit the settings to the held-out rows of all folds together, both ways alike.

    Where much is shrunk a row has little energy, and gates that expect more open the wrong way at first
    and do not come back; where little is, the plain guess is as good or better. So both are fitted.

    Parameters
    ----------
    folds : list of Fold
        Of one width.
    n_rows : int
        Rows of all folds, those left out here too.
    """
    groups = _groups(folds)
    errors = [_FoldError(fold, groups) for fold in folds]
    typical = float(np.mean([error.log_energy for error in errors]))
    guesses = (GateSettings.first_guess(len(groups), energy) for energy in (0.0, typical))
    found = (_descended(guess, errors, _PULL / n_rows) for guess in guesses)
    return min(found, key=lambda pair: pair[1])[0]


def _descended(
    guess: GateSettings, errors: list[_FoldError], pull: float
) -> tuple[GateSettings, float]:
    """The best settings that L-BFGS comes by, none too sharp or too far from the guess, and their loss."""
    settings = GateSettings(*(value.clone().requires_grad_() for value in guess))
    optimizer = torch.optim.LBFGS(settings, max_iter=_N_STEPS, line_search_fn="strong_wolfe")
    best = guess, np.inf

    def closure() -> Tensor:
        nonlocal best
        optimizer.zero_grad()
        too_sharp = (settings.sharpness - _SHARPEST).clamp(min=0).square()
        moved = [(new - old).square().sum() for new, old in zip(settings, guess, strict=True)]
        held_out = torch.stack([error(settings) for error in errors]).mean()
        loss = held_out + _HOLD * too_sharp + pull * torch.stack(moved).sum()
        loss.backward()  # type: ignore[no-untyped-call]
        if loss.item() < best[1]:
            best = GateSettings(*(value.detach().clone() for value in settings)), loss.item()
        return loss

    optimizer.step(closure)  # type: ignore[no-untyped-call]
    return best


def held_out_errors(folds: list[Fold], settings: GateSettings | None) -> NDArray[np.float64]:
    """Error of each held-out row, a fraction of the variances: of gates, or for None of the linear map."""
    errors = [_FoldError(fold, _groups(folds)) for fold in folds]
    with torch.no_grad():
        by_row: NDArray[np.float64] = (
            torch.cat([error.by_row(settings) for error in errors]).double().numpy()
        )
    return by_row


def _groups(folds: list[Fold]) -> tuple[Group, ...]:
    width = folds[0].frame.width
    return groups_of(width, min(N_GATES, width))
