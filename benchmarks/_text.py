"""English prose that every machine with Python has, docstrings of installed packages; word pieces of it."""

import hashlib
import importlib.util
import re
import string
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from inspect import cleandoc
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple
from warnings import catch_warnings, simplefilter

from tokenizers import BertWordPieceTokenizer
from tqdm import tqdm
from transformers import BertTokenizer

STDLIB = "stdlib"
PACKAGES = (STDLIB, "numpy", "scipy", "sklearn", "torch", "sympy", "networkx", "pandas")
SKIPPED = {"site-packages", "test", "tests", "testing", "idlelib", "_vendor"}
WORDS = range(5, 41)
HELD_OUT = 20
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")

ROLE = re.compile(r":[\w:.+-]+:`~?\.?([^`<]*?)\s*(?:<[^`>]*>)?`")
QUOTED = re.compile(r"(``|`|\*\*|\*)(\S|\S[^`*]*?\S)\1")
REFERENCE = re.compile(r"\s*\[[\w#*]+\]_")
BRACKETED = re.compile(r"\[([A-Za-z' ]+)\]")
BULLET = re.compile(r"(?:[-*+•]|\(?\w{1,2}[.)])\s+")
BREAK = re.compile(
    r"(?<=[.!?])(?<!\b[A-Z]\.)(?<!e\.g\.)(?<!i\.e\.)(?<!vs\.)(?<!al\.)\s+(?=[A-Z\"'(])"
)
SENTENCE = re.compile(r"[A-Z][^<>{}=|\\@#$^~*/+\[\]_`\t]*[a-z)][.!?]")
WORD = re.compile(r"[\"'(]*[A-Za-z]+(?:['-][A-Za-z]+)*[\"')]*[.,;:!?]?[\"')]*")
COMMON = frozenset(
    "a an and are as be by for from if in is it not of on or that the this to with".split()
)


class Text(NamedTuple):
    """Sentences to train on and sentences to judge by, and how many each source gave."""

    train: list[str]
    held_out: list[str]
    sources: dict[str, int]

    @property
    def facts(self) -> dict[str, Any]:
        """Counts, and a fingerprint of the sentences and their order."""
        joined = "\n".join((*self.train, "", *self.held_out))
        return {
            "sentences": len(self.train) + len(self.held_out),
            "held_out": len(self.held_out),
            "words": len(joined.split()),
            "fingerprint": hashlib.sha256(joined.encode()).hexdigest()[:12],
            "sources": self.sources,
        }

    @property
    def summary(self) -> str:
        """The facts in words."""
        facts = self.facts
        sources = ", ".join(f"{count:,} of {name}" for name, count in self.sources.items())
        return (
            f"{facts['sentences']:,} sentences of {facts['words']:,} words, {facts['held_out']:,} of "
            f"them held out; fingerprint {facts['fingerprint']}\n{sources}"
        )


def read_packages(names: Iterable[str], *, quiet: bool) -> Text:
    """Prose in the string literals of packages, which are read and not imported; absent ones are left out."""
    files = {name: _sources(name) for name in names}
    with tqdm(
        total=sum(map(len, files.values())), desc="reading", unit="file", disable=quiet
    ) as bar:
        found = {
            name: [sentence for path in paths for sentence in _prose(path, bar)]
            for name, paths in files.items()
        }
    return _split(found)


def read_file(path: Path) -> Text:
    """A text of one sentence a line."""
    lines = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
    return _split({path.name: [line for line in lines if line]})


def make_tokenizer(sentences: Sequence[str], vocab: int, length: int) -> BertTokenizer:
    """Word pieces, lower-cased, learned from the sentences."""
    letters = set("".join(sentences).lower()).difference(string.punctuation, string.whitespace)
    # The trainer numbers the pieces of one letter as a hash table yields them, other in each process,
    # and breaks ties by number. Named beforehand, they keep their order.
    known = [*SPECIAL, *(f"##{letter}" for letter in sorted(letters))]
    pieces = BertWordPieceTokenizer(lowercase=True)
    pieces.train_from_iterator(sentences, vocab, special_tokens=known, show_progress=False)
    return BertTokenizer(vocab=pieces.get_vocab(), model_max_length=length)


def _split(found: dict[str, list[str]]) -> Text:
    """Drop what differs from an earlier sentence in no letter; a hash of the letters chooses the held-out."""
    seen: dict[str, str] = {}
    sources = {}
    for name, sentences in found.items():
        before = len(seen)
        for sentence in sentences:
            seen.setdefault(re.sub(r"\W|\d", "", sentence).lower(), sentence)
        sources[name] = len(seen) - before
    parts: tuple[list[str], list[str]] = ([], [])
    for letters, sentence in seen.items():
        digest = hashlib.sha256(letters.encode()).digest()
        parts[int.from_bytes(digest[:4]) % HELD_OUT == 0].append(sentence)
    if not all(parts):
        raise ValueError(
            f"Found {len(seen)} sentences in {', '.join(found)}, too few to train on some and judge "
            "by others. Name more packages, or a longer text."
        )
    return Text(*parts, sources)


def _sources(name: str) -> list[Path]:
    if name == STDLIB:
        return _python_files(Path(sysconfig.get_path("stdlib")))
    spec = importlib.util.find_spec(name)
    places = (spec and spec.submodule_search_locations) or ()
    return [path for place in places for path in _python_files(Path(place))]


def _python_files(root: Path) -> list[Path]:
    found = {path.relative_to(root): path for path in root.rglob("*.py")}
    return [found[path] for path in sorted(found) if SKIPPED.isdisjoint(path.parts)]


def _prose(path: Path, bar: "tqdm[None]") -> Iterator[str]:
    bar.update()
    try:
        with catch_warnings():
            simplefilter("ignore")
            # Twice as fast as a walk through the tree of `ast`, and nearly as complete.
            code = compile(path.read_bytes(), path.name, "exec", dont_inherit=True, optimize=0)
    except (SyntaxError, ValueError):
        return
    for literal in _literals(code):
        for paragraph in _paragraphs(literal):
            yield from filter(_reads_as_prose, map(_plain, BREAK.split(paragraph)))


def _literals(code: CodeType) -> Iterator[str]:
    for constant in code.co_consts:
        if isinstance(constant, str):
            yield constant
        elif isinstance(constant, CodeType):
            yield from _literals(constant)


def _paragraphs(literal: str) -> Iterator[str]:
    """Lines that belong together: of one indentation, and no bullet, blank or prompt between them."""
    lines: list[str] = []
    depth = 0
    for line in cleandoc(literal).split("\n"):
        text = line.strip()
        starts = BULLET.match(text)
        indent = len(line) - len(line.lstrip()) + (starts.end() if starts else 0)
        if lines and (not text or starts or indent != depth):
            yield " ".join(lines)
            lines = []
        if text and not text.startswith((">>>", "...", "..", "|")):
            lines.append(text[starts.end() :] if starts else text)
        depth = indent
    yield " ".join(lines)


def _plain(sentence: str) -> str:
    """Without the marks of reStructuredText, and without brackets around words."""
    for pattern, left in ((ROLE, r"\1"), (QUOTED, r"\2"), (REFERENCE, ""), (BRACKETED, r"\1")):
        sentence = pattern.sub(left, sentence)
    return sentence.replace("--", "-").strip()


def _reads_as_prose(sentence: str) -> bool:
    words = sentence.split()
    if len(words) not in WORDS or not (sentence.isascii() and SENTENCE.fullmatch(sentence)):
        return False
    plain = sum(WORD.fullmatch(word) is not None for word in words)
    return plain >= 0.9 * len(words) and len(COMMON.intersection(sentence.lower().split())) >= 2
