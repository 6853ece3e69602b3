"""Hidden states that were already asked for, so that a search over layers asks only once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from functools import lru_cache
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._choices import choose_layer
from ._identity import Stamp, stamp_of
from ._source import Source, open_source
from ._texts import Text


class StateCache:
    """All layers' states of single texts, up to a number of bytes; what was not used longest goes first."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[Hashable, Text], NDArray[Any]] = OrderedDict()
        self._n_bytes = 0
        self._lock = Lock()

    def missing(self, key: Hashable, texts: Sequence[Text]) -> list[Text]:
        """Texts that are not there, once each."""
        with self._lock:
            return [text for text in dict.fromkeys(texts) if (key, text) not in self._kept]

    def put(self, key: Hashable, texts: Sequence[Text], states: NDArray[Any], limit: int) -> None:
        """Keep states (n_layers, n_texts, width), and let go of others beyond the limit."""
        with self._lock:
            for i, text in enumerate(texts):
                # Another thread may have put it there meanwhile.
                former = self._kept.pop((key, text), None)
                # A copy: a view would keep the whole array alive.
                self._kept[key, text] = kept = states[:, i].copy()
                self._n_bytes += kept.nbytes - (0 if former is None else former.nbytes)
            while self._n_bytes > limit and self._kept:
                self._n_bytes -= self._kept.popitem(last=False)[1].nbytes

    def take(self, key: Hashable, texts: Sequence[Text], layer: int) -> NDArray[Any] | None:
        """States of one layer (n_texts, width), or None where a text is not there any more."""
        with self._lock:
            if any((key, text) not in self._kept for text in texts):
                return None
            # A model inside `removed_layers` has fewer than when the extractor was fitted.
            layer = choose_layer(layer, len(self._kept[key, texts[0]]))
            for text in texts:
                self._kept.move_to_end((key, text))
            return np.stack([self._kept[key, text][layer] for text in texts])

    def clear(self) -> None:
        """Let go of everything."""
        with self._lock:
            self._kept.clear()
            self._n_bytes = 0


CACHE = StateCache()


def clear_cache() -> None:
    """Let go of the hidden states and the models that `HiddenStateExtractor` keeps for its clones.

    Examples
    --------
    >>> from sklearn_bijection.huggingface import clear_cache
    >>> clear_cache()
    """
    CACHE.clear()
    _opened.cache_clear()


def opened(model: str, tokenizer: str | None) -> Source:
    """A model by name, loaded once for all clones of an extractor."""
    return _opened(model, tokenizer, (stamp_of(model), stamp_of(tokenizer or model)))


@lru_cache(maxsize=2)
def _opened(model: str, tokenizer: str | None, stamps: tuple[Stamp, Stamp]) -> Source:
    return open_source(model, tokenizer)
