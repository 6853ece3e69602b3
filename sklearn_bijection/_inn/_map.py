"""A trained network as a map between arrays."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .._flow import Architecture, Chain, End, Network
from .._solvers import Standard
from ._pairs import RawPairs

_CHUNK_ROWS = 8192
_ROUND_TRIP_ROWS = 1000
_TORCH_TYPES = {np.dtype(np.float32): torch.float32, np.dtype(np.float64): torch.float64}


class NetworkMap:
    """A bijection of arrays through an invertible core; float64 rows are mapped in float64.

    Rows are centred and scaled by numpy in float64, whatever they come in, so that neither a large offset
    nor an extreme unit reaches the network.

    Parameters
    ----------
    source, target : Standard
        Of the first and of the second space.
    architecture : Architecture
    core : Chain
        Built from `architecture`. It is kept on the CPU.
    device : str, default="cpu"
        Where rows are mapped.
    """

    def __init__(
        self,
        source: Standard,
        target: Standard,
        architecture: Architecture,
        core: Chain,
        device: str = "cpu",
    ) -> None:
        self.source, self.target = source, target
        self.architecture, self.device = architecture, device
        self._core = deepcopy(core).cpu().eval().requires_grad_(False)
        self._served: dict[torch.dtype, Chain] = {}

    def forward(self, X: NDArray[Any]) -> NDArray[Any]:
        """Map `X` of shape (n_samples, n_features) into the second space."""
        return self._run(X, self.source, self.target, lambda core: core.forward)

    def inverse(self, y: NDArray[Any]) -> NDArray[Any]:
        """Map `y` of shape (n_samples, n_targets) into the first space."""
        return self._run(y, self.target, self.source, lambda core: core.inverse)

    def on(self, device: str) -> NetworkMap:
        """The same map, on a device."""
        return NetworkMap(self.source, self.target, self.architecture, self._core, device)

    def core(self) -> Chain:
        """A copy of the core, on the CPU, to be trained or taken apart."""
        return deepcopy(self._core).requires_grad_(True)

    def with_parameters(self, trained: Chain) -> NetworkMap:
        """The same map with the parameters, not the fixed matrices, of a core that was trained in float32."""
        core = self.core()
        with torch.no_grad():
            for name, value in trained.named_parameters():
                core.get_parameter(name).copy_(value)
        return NetworkMap(self.source, self.target, self.architecture, core, self.device)

    def module(self) -> Network:
        """The whole map as a module, in float64, with every solvable layer made explicit."""
        ends = (
            End(
                torch.from_numpy(np.array(standard.mean)),
                standard.unit,
                torch.from_numpy(np.array(standard.columns)),
                self.architecture.width,
            )
            for standard in (self.source, self.target)
        )
        source, target = ends
        # In double precision first: what is solved for is to be as precise as the rest.
        return Network(source, self.core().double().frozen(), target)

    def _run(
        self,
        rows: NDArray[Any],
        entry: Standard,
        exit_: Standard,
        way: Callable[[Chain], Callable[[Tensor], Tensor]],
    ) -> NDArray[Any]:
        images = np.empty((len(rows), len(exit_.mean)), dtype=rows.dtype)
        core = self._core_of(_TORCH_TYPES[rows.dtype])
        device = next(core.buffers()).device
        with torch.inference_mode():
            for start in range(0, len(rows), _CHUNK_ROWS):
                chunk = slice(start, start + _CHUNK_ROWS)
                coordinates = entry.arrange(rows[chunk], self.architecture.width)
                image = way(core)(torch.from_numpy(coordinates).to(device))
                images[chunk] = exit_.restore(image.cpu().numpy(), rows.dtype)
        return images

    def _core_of(self, dtype: torch.dtype) -> Chain:
        """The core in one precision, on the device if that knows it."""
        if dtype not in self._served:
            device = "cpu" if self.device == "mps" and dtype == torch.float64 else self.device
            self._served[dtype] = self.core().to(device, dtype)
        return self._served[dtype]

    def walk(self, coordinates: NDArray[Any], *, forth: bool) -> NDArray[Any]:
        """Coordinates after a round trip, from the first space and back or from the second."""
        core = self._core_of(_TORCH_TYPES[coordinates.dtype])
        device = next(core.buffers()).device
        with torch.inference_mode():
            there = torch.from_numpy(coordinates).to(device)
            back = core.inverse(core(there)) if forth else core(core.inverse(there))
        return back.cpu().numpy()

    def __getstate__(self) -> dict[str, Any]:
        arrays = {name: value.numpy() for name, value in self._core.state_dict().items()}
        return {
            "source": self.source._asdict(),
            "target": self.target._asdict(),
            "architecture": self.architecture.as_dict(),
            "arrays": arrays,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        architecture = Architecture(**state["architecture"])
        with torch.random.fork_rng(devices=[]):
            core = architecture.build()
        # Copies: what comes from a file may be mapped read-only.
        arrays = {name: torch.from_numpy(np.array(a)) for name, a in state["arrays"].items()}
        core.load_state_dict(arrays)
        source, target = (Standard(**state[end]) for end in ("source", "target"))
        self.__init__(source, target, architecture, core)  # type: ignore[misc]


def roundtrip_error(fitted: NetworkMap, raw: RawPairs) -> float:
    """Error of float32 round trips of some rows, relative to the spread of their view.

    From X and back where that is exact but for rounding, else from y and back.
    """
    rows = raw.rows[:: max(1, len(raw) // _ROUND_TRIP_ROWS)][:_ROUND_TRIP_ROWS]
    if len(fitted.source.columns) <= len(fitted.target.columns):
        here = fitted.source.arrange(raw.X[rows], fitted.architecture.width, np.float32)
        back = fitted.walk(here, forth=True)
    else:
        here = fitted.target.arrange(raw.y[rows], fitted.architecture.width, np.float32)
        back = fitted.walk(here, forth=False)
    spread = float(np.linalg.norm(here))
    return float(np.linalg.norm(back - here)) / spread if spread else 0.0
