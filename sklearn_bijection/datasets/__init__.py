"""Pairs to align: two real ones in the package, and synthetic ones whose true map is known."""

from ._invertible import TrueMap, make_invertible_pair
from ._linear import make_linear_pair
from ._packaged import load_sentence_pair, load_word_pair

__all__ = [
    "TrueMap",
    "load_sentence_pair",
    "load_word_pair",
    "make_invertible_pair",
    "make_linear_pair",
]
