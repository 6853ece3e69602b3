"""Texts, in whatever they come, as a checked list."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Any, TypeAlias

Text: TypeAlias = str | tuple[str, str]


def read_texts(texts: Any) -> list[Text]:
    """Read a list, an array, a column of a frame or a generator of texts, or of pairs of texts."""
    if isinstance(texts, str | bytes):
        raise TypeError(f"texts is a single {type(texts).__name__}. Pass a list of texts: [text].")
    if isinstance(texts, Mapping) or hasattr(texts, "columns"):
        raise TypeError(
            f"texts is a {type(texts).__name__}, which may hold more than texts. "
            "Pass one column of it, or a list."
        )
    if not isinstance(texts, Iterable):
        raise TypeError(f"texts is {texts!r}. Pass a list of texts.")
    found = [_checked(text, i) for i, text in enumerate(texts)]
    if not found:
        raise ValueError("texts is empty. Pass at least one text.")
    _require_one_kind(found)
    return found


def split_pairs(texts: list[Text]) -> tuple[list[str], list[str] | None]:
    """All first texts, and all second ones where the texts are pairs."""
    if isinstance(texts[0], str):
        return [str(text) for text in texts], None
    return [text[0] for text in texts], [text[1] for text in texts]


def _checked(text: Any, i: int) -> Text:
    if isinstance(text, str):
        return str(text)
    try:
        first, second = text
    except (TypeError, ValueError):
        first = second = None
    # A record with two fields, or a set, would unpack too, into names or in any order.
    unfit = isinstance(text, bytes | Mapping | Set)
    if unfit or not (isinstance(first, str) and isinstance(second, str)):
        raise TypeError(
            f"texts[{i}] is {text!r}. Every text must be a str, or a pair of them: "
            "drop or fill what is missing, and decode bytes."
        )
    return str(first), str(second)


def _require_one_kind(texts: list[Text]) -> None:
    single = isinstance(texts[0], str)
    for i, text in enumerate(texts):
        if isinstance(text, str) != single:
            kinds = ("a text", "a pair") if single else ("a pair", "a text")
            raise TypeError(
                f"texts[0] is {kinds[0]} and texts[{i}] is {kinds[1]}. Pass all texts alone, "
                "or all in pairs."
            )
