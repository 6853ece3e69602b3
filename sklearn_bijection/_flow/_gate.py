"""Couplings that are steered by a single number: how much energy is left in the other coordinates."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ._chain import Invertible

#: Energy below which a group counts as empty; keeps the logarithm finite at the mean of the data.
_FLOOR = 1e-8


class Group(NamedTuple):
    """A run of neighbouring coordinates."""

    start: int
    stop: int


def groups_of(width: int, n_groups: int) -> tuple[Group, ...]:
    """`width` coordinates in `n_groups` runs, the longer ones first."""
    size, longer = divmod(width, n_groups)
    stops = [(i + 1) * size + min(i + 1, longer) for i in range(n_groups)]
    return tuple(map(Group, [0, *stops[:-1]], stops))


class GateStart(NamedTuple):
    """Parameters that a gate starts with; see `GateCoupling` for what they do.

    Parameters
    ----------
    middle, reach : Tensor of shape (size of the moved group,)
    log_weight : Tensor of shape (width,)
    slope : Tensor of shape (n_groups - 1,)
    offset : Tensor of shape ()
    """

    middle: Tensor
    reach: Tensor
    log_weight: Tensor
    slope: Tensor
    offset: Tensor

    @classmethod
    def neutral(cls, groups: tuple[Group, ...], moved: int) -> GateStart:
        """A gate that scales nothing."""
        start, stop = groups[moved]
        size, width = stop - start, groups[-1].stop
        zeros = partial(torch.zeros, dtype=torch.float32)
        return cls(zeros(size), zeros(size), zeros(width), zeros(len(groups) - 1), zeros(()))


class GateCoupling(Invertible):
    """Scale one group of coordinates between two settings, as the energy of the other groups says.

    With the mean energies ``e_j = mean_i w_i z_i**2`` of the other groups j,::

        gate      = tanh(offset + sum_j slope_j log e_j)
        log_scale = middle + reach * gate

    Parameters
    ----------
    groups : tuple of Group
        All groups; together they are the coordinates.
    moved : int
        Which of them is scaled.
    start : GateStart, default=None
        Log-scale of each moved coordinate between the settings and from there to either, logarithms of the
        weights ``w``, slopes and offset; None starts as the identity.

    Notes
    -----
    Two linear regressions, one each way, shrink in both directions; no linear map that can be walked
    back does. A chain of gates, one for each group, does both: rows that still carry the noise of
    their own space are full of energy in the directions that the other space knows little of, rows that
    came from the other space are not.
    """

    averages: Tensor
    middle: Tensor
    reach: Tensor
    log_weight: Tensor
    slope: Tensor
    offset: Tensor

    def __init__(
        self, groups: tuple[Group, ...], moved: int, start: GateStart | None = None
    ) -> None:
        super().__init__()
        self.start, self.stop = groups[moved]
        for name, value in (start or GateStart.neutral(groups, moved))._asdict().items():
            self.register_parameter(name, nn.Parameter(value.detach().clone()))
        others = [group for i, group in enumerate(groups) if i != moved]
        averages = torch.zeros(groups[-1].stop, len(others), dtype=torch.float32)
        for column, (first, last) in enumerate(others):
            averages[first:last, column] = 1 / (last - first)
        self.register_buffer("averages", averages)

    def forward(self, z: Tensor) -> Tensor:
        """Scale the group."""
        return self._scaled(z, self.log_scale(z).exp())

    def inverse(self, w: Tensor) -> Tensor:
        """Scale it back; the groups that steer are as they were."""
        return self._scaled(w, (-self.log_scale(w)).exp())

    def log_scale(self, z: Tensor) -> Tensor:
        """Log-scale of every row and moved coordinate, of shape (n_samples, size of the group)."""
        energy = (z.square() * self.log_weight.exp()) @ self.averages
        gate = torch.tanh(torch.log(energy + _FLOOR) @ self.slope + self.offset)
        return self.middle + self.reach * gate[:, None]

    def _scaled(self, z: Tensor, scale: Tensor) -> Tensor:
        moved = z[:, self.start : self.stop] * scale
        return torch.cat((z[:, : self.start], moved, z[:, self.stop :]), dim=1)
