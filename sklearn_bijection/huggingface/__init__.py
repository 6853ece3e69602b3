"""Layers of Hugging Face transformers as arrays, and what to do with them.

The only part of the package that knows transformers. Needs the extra ``hf``:
``pip install 'sklearn-bijection[hf]'``.
"""

from ..metrics import compare_layers
from ._attentions import extract_attentions
from ._cache import clear_cache
from ._components import ComponentIO, component_io
from ._extractor import HiddenStateExtractor
from ._masked import masked_lm_loss
from ._rearranged import removed_layers, reordered_layers, shared_layers, swapped_layers
from ._states import extract_hidden_states
from ._stitch import StitchedModel, stitch
from ._tokens import TokenStates

__all__ = [
    "ComponentIO",
    "HiddenStateExtractor",
    "StitchedModel",
    "TokenStates",
    "clear_cache",
    "compare_layers",
    "component_io",
    "extract_attentions",
    "extract_hidden_states",
    "masked_lm_loss",
    "removed_layers",
    "reordered_layers",
    "shared_layers",
    "stitch",
    "swapped_layers",
]
