"""Real pairs that come with the package, read from its `data` folder."""

from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Literal, TypeAlias, overload

import numpy as np
import numpy.typing as npt
from sklearn.utils import Bunch

from ._checks import as_served_dtype

Array: TypeAlias = npt.NDArray[np.floating]


@overload
def load_sentence_pair(
    *, return_X_y: Literal[False] = False, dtype: npt.DTypeLike = ...
) -> Bunch: ...
@overload
def load_sentence_pair(
    *, return_X_y: Literal[True], dtype: npt.DTypeLike = ...
) -> tuple[Array, Array]: ...
def load_sentence_pair(
    *, return_X_y: bool = False, dtype: npt.DTypeLike = np.float32
) -> Bunch | tuple[Array, Array]:
    """Load 2,500 English sentences embedded by two encoders, both 384 wide.

    Row i of X and row i of y embed ``sentences[i]``: X by all-MiniLM-L6-v2, y by
    paraphrase-MiniLM-L3-v2, two networks of six and of three layers. Each row is the mean over the
    sentence's tokens, not normalised. A hard and honest pair: ridge regressions on 2,000 rows, one
    each way, have a held-out R² of 0.50 from X to y and of 0.41 back (``benchmarks/shrinkage.py``).

    Parameters
    ----------
    return_X_y : bool, default=False
        Return ``(X, y)`` instead of a Bunch.
    dtype : {np.float32, np.float64}, default=np.float32
        Precision to serve. The arrays are stored in float16 and cast up, so that float64 adds no
        information.

    Returns
    -------
    pair : :class:`~sklearn.utils.Bunch`
        With the fields

        X : ndarray of shape (2500, 384)
            all-MiniLM-L6-v2.
        y : ndarray of shape (2500, 384)
            paraphrase-MiniLM-L3-v2.
        sentences : list of str, of length 2500
            The sentences, all different.
        sources : list of str, of length 2500
            Where each is from: "wn_def" (WordNet definition), "wn_ex" (WordNet example) or "kjv"
            (King James Bible).
        X_name, y_name : str
            Names of the encoders.
        DESCR : str
            Provenance, and the licence notices of all that is packaged.

    (X, y) : tuple of two ndarrays
        If `return_X_y`.

    Raises
    ------
    ValueError
        If `dtype` is neither float32 nor float64.

    See Also
    --------
    load_word_pair : An easier pair, of unequal widths.

    Notes
    -----
    Three columns of X are dead: 127 and 223 are zero, 319 is about -1e-7, in every sentence. Divide
    by no column's standard deviation before you have looked at it.

    Each call reads the files anew and the caller owns the arrays.

    References
    ----------
    N. Reimers and I. Gurevych, "Sentence-BERT: Sentence Embeddings using Siamese BERT-Networks",
    EMNLP 2019.

    G. A. Miller, "WordNet: A Lexical Database for English", Communications of the ACM 38(11), 1995.

    Examples
    --------
    >>> from sklearn_bijection.datasets import load_sentence_pair
    >>> pair = load_sentence_pair()
    >>> pair.X.shape, pair.y.shape
    ((2500, 384), (2500, 384))
    >>> pair.sentences[0]
    'five feet in height'
    """
    X, y = _arrays("sentence_pair.npz", dtype)
    if return_X_y:
        return X, y
    sources, sentences = zip(*(line.split("\t") for line in _lines("sentences.tsv")), strict=True)
    return Bunch(
        X=X,
        y=y,
        sentences=list(sentences),
        sources=list(sources),
        X_name="all-MiniLM-L6-v2",
        y_name="paraphrase-MiniLM-L3-v2",
        DESCR=_text("README.md"),
    )


@overload
def load_word_pair(*, return_X_y: Literal[False] = False, dtype: npt.DTypeLike = ...) -> Bunch: ...
@overload
def load_word_pair(
    *, return_X_y: Literal[True], dtype: npt.DTypeLike = ...
) -> tuple[Array, Array]: ...
def load_word_pair(
    *, return_X_y: bool = False, dtype: npt.DTypeLike = np.float32
) -> Bunch | tuple[Array, Array]:
    """Load the 3,500 most frequent words of GloVe 6B as vectors of width 50 and of width 100.

    Row i of X and row i of y are the vectors of ``words[i]``. One algorithm, one corpus, two sizes:
    an easier pair than the sentences, of unequal widths.

    Parameters
    ----------
    return_X_y : bool, default=False
        Return ``(X, y)`` instead of a Bunch.
    dtype : {np.float32, np.float64}, default=np.float32
        Precision to serve. The arrays are stored in float16 and cast up, so that float64 adds no
        information.

    Returns
    -------
    pair : :class:`~sklearn.utils.Bunch`
        With the fields

        X : ndarray of shape (3500, 50)
            GloVe 6B, 50 wide.
        y : ndarray of shape (3500, 100)
            GloVe 6B, 100 wide.
        words : list of str, of length 3500
            The words in order of frequency, all different; punctuation marks are among them.
        X_name, y_name : str
            Names of the embeddings.
        DESCR : str
            Provenance, and the licence notices of all that is packaged.

    (X, y) : tuple of two ndarrays
        If `return_X_y`.

    Raises
    ------
    ValueError
        If `dtype` is neither float32 nor float64.

    See Also
    --------
    load_sentence_pair : A harder pair, of equal widths.

    Notes
    -----
    Each call reads the files anew and the caller owns the arrays.

    References
    ----------
    J. Pennington, R. Socher and C. D. Manning, "GloVe: Global Vectors for Word Representation",
    EMNLP 2014.

    Examples
    --------
    >>> from sklearn_bijection.datasets import load_word_pair
    >>> pair = load_word_pair()
    >>> pair.X.shape, pair.y.shape
    ((3500, 50), (3500, 100))
    >>> pair.words[:3]
    ['the', 'of', 'to']
    """
    X, y = _arrays("word_pair.npz", dtype)
    if return_X_y:
        return X, y
    return Bunch(
        X=X,
        y=y,
        words=_lines("words.txt"),
        X_name="GloVe 6B, 50 wide",
        y_name="GloVe 6B, 100 wide",
        DESCR=_text("README.md"),
    )


def _file(name: str) -> Traversable:
    return files(__package__ or "") / "data" / name


def _text(name: str) -> str:
    return _file(name).read_text(encoding="utf-8")


def _lines(name: str) -> list[str]:
    # Not splitlines, which also splits at characters that a sentence may hold.
    return _text(name).removesuffix("\n").split("\n")


def _arrays(name: str, dtype: npt.DTypeLike) -> tuple[Array, Array]:
    """Return the float16 arrays `X` and `y` of a packaged file, cast up."""
    served = as_served_dtype(dtype)
    with _file(name).open("rb") as stream, np.load(stream, allow_pickle=False) as packed:
        return packed["X"].astype(served), packed["y"].astype(served)
