"""How transformers comes to the hidden states of a model, and whether it found them all."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from .._compat import require
from ._stack import Stack

_MODULE = "transformers.utils.output_capturing"


def ready_to_capture(body: Any) -> None:
    """Let transformers put its hooks on the layers that there are, without running the model.

    It does so when a model is first asked for hidden states, and never again: layers that are away at
    that moment would be missing from all states afterwards, and a copy of the model that has the same
    layers would get hooks of its own, so that each state came twice.
    """
    # Releases without that module watch the layers anew in each call.
    if find_spec(_MODULE) is not None and getattr(body, "_can_record_outputs", None):
        require(_MODULE, "hf").maybe_install_capturing_hooks(body)


def require_all_states(model: Any, n_states: int) -> None:
    """Refuse hidden states that are not those of the layers, where it is known how many there are."""
    stack = Stack.find(model)
    if stack is None or n_states == len(stack.layers) + 1:
        return
    raise RuntimeError(
        f"{type(stack.body).__name__} gives {n_states} hidden states, and with {len(stack.layers)} "
        f"layers it must be {len(stack.layers) + 1}. Transformers watches some of the layers twice, or "
        "not at all, as it does where two models share them. Load the model anew."
    )
