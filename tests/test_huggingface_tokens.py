"""Rows that are tokens or words: where they come from, and which belong together."""

import re

import numpy as np
import pytest
from _huggingface import (
    FAMILIES,
    MINILM,
    PAIRS,
    TEXTS,
    assert_close,
    byte_tokenizer,
    extract,
    minilm,
    shared,
    states_by_hand,
    tokenizer,
)

from sklearn_bijection.huggingface import TokenStates

ODD = ["  Two  spaces\tand a\nnewline ", "", "well-known, isn't it?", " ", "Ünïcode 你好 wörds 🙂"]


def tokens_of(texts=TEXTS, family="bert", **options):
    options = {"tokenizer": tokenizer(family), "pooling": "tokens", **options}
    return extract(shared(family), texts, **options)


def words_of(texts=TEXTS, family="bert", **options):
    return tokens_of(texts, family, **{"pooling": "words", **options})


def text_of_words(text):
    """The characters of a text by word, where words are what stands between white space."""
    return [match.span() for match in re.finditer(r"\S+", text)]


@pytest.fixture(params=FAMILIES, scope="module")
def family(request):
    return request.param


# Tokens.


def test_every_token_is_a_row(family):
    found = tokens_of(family=family, batch_size=4)
    for i, text in enumerate(TEXTS):
        inputs, mine = tokenizer(family)(text, return_tensors="pt"), found.text == i
        np.testing.assert_array_equal(found.token_id[mine], inputs["input_ids"][0])
        np.testing.assert_array_equal(found.token[mine], np.arange(mine.sum()))
        assert_close(found.states[:, mine], states_by_hand(shared(family), inputs))
    assert (np.diff(found.text) >= 0).all()


@pytest.mark.parametrize("texts", [TEXTS, ODD], ids=["plain", "odd"])
@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_a_token_belongs_to_the_word_that_it_is_a_piece_of(name, texts):
    found = tokens_of(texts, name)
    for i, text in enumerate(texts):
        encoding = tokenizer(name)(text, return_offsets_mapping=True)
        words = found.word[found.text == i]
        spans = text_of_words(text)
        for word, (start, end) in zip(words, encoding["offset_mapping"], strict=False):
            if not text[start:end].strip():
                assert word == -1
            else:
                assert spans[word][0] < end <= spans[word][1]
                assert text[start:end].strip() in text[slice(*spans[word])]


def test_special_tokens_belong_to_no_word():
    found = tokens_of(batch_size=4)
    special = np.isin(found.token_id, tokenizer().all_special_ids)
    assert special.sum() == 2 * len(TEXTS)
    assert (found.word[special] == -1).all() and (found.word[~special] >= 0).all()
    without = tokens_of(family="gpt2")
    blank = without.token_id == tokenizer("gpt2").convert_tokens_to_ids("Ġ")
    assert ((without.word == -1) == blank).all()


def test_one_token_per_word_where_the_tokenizer_knows_them_all():
    found = tokens_of(["he sat on the house", "so be it"])
    np.testing.assert_array_equal(found.word, [-1, 0, 1, 2, 3, 4, -1, -1, 0, 1, 2, -1])
    np.testing.assert_array_equal(found.text, [0] * 7 + [1] * 5)


# Words.


@pytest.mark.parametrize("texts", [TEXTS, ODD, PAIRS], ids=["plain", "odd", "pairs"])
@pytest.mark.parametrize("name", ["bert", "roberta", "gpt2"])
def test_a_word_is_the_mean_of_its_tokens(name, texts):
    tokens, words = tokens_of(texts, name), words_of(texts, name, batch_size=4)
    assert words.token_id is None and tokens.digest == words.digest
    expected = sorted({(t, w) for t, w in zip(tokens.text, tokens.word, strict=True) if w >= 0})
    assert list(zip(words.text, words.word, strict=True)) == expected
    for row, (text, word) in enumerate(expected):
        pieces = (tokens.text == text) & (tokens.word == word)
        assert_close(words.states[:, row], tokens.states[:, pieces].mean(1))
        assert words.token[row] == tokens.token[pieces].min()


@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_every_word_is_a_row(name):
    found = words_of([*TEXTS, *ODD], name)
    for i, text in enumerate([*TEXTS, *ODD]):
        np.testing.assert_array_equal(found.word[found.text == i], np.arange(len(text.split())))


def test_batches_of_every_size_agree(family):
    expected = words_of(family=family)
    for size in (1, 4):
        assert_close(words_of(family=family, batch_size=size).states, expected.states)


def test_rows_follow_the_texts():
    order = np.random.default_rng(0).permutation(len(TEXTS))
    found, expected = words_of([TEXTS[i] for i in order], batch_size=4), words_of()
    for new, old in enumerate(order):
        rows = found.states[:, found.text == new]
        assert_close(rows, expected.states[:, expected.text == old])


def test_the_words_of_a_pair_are_counted_on():
    pairs = [("it rains", "so be it"), ("again", "it rains"), ("", "alone")]
    for name in ("bert", "gpt2"):
        found = words_of(pairs, name)
        np.testing.assert_array_equal(found.text, [0] * 5 + [1] * 3 + [2])
        np.testing.assert_array_equal(found.word, [0, 1, 2, 3, 4, 0, 1, 2, 0])


def test_texts_without_words_give_no_rows():
    found = words_of(["", "  ", ""])
    assert found.states.shape == (4, 0, 16) and len(found.word) == len(found.text) == 0
    mixed = words_of(["", "it rains", " "])
    np.testing.assert_array_equal(mixed.text, [1, 1])


# Pairing.


def test_words_of_two_models_pair_one_by_one():
    real = extract(minilm(), [*TEXTS, *ODD], pooling="words", layers=[0, -1])
    other = words_of([*TEXTS, *ODD], "gpt2")
    X, y = real.pair(other)
    assert X.shape == (2, real.states.shape[1], 384)
    assert y.shape == (4, real.states.shape[1], 16)
    np.testing.assert_array_equal(X, real.states)
    np.testing.assert_array_equal(y, other.states)
    np.testing.assert_array_equal(other.pair(real)[0], y)


def test_words_that_either_model_did_not_see_are_left_out():
    texts = ["so he sat on the house and the city", "so be it"]
    whole = words_of(texts)
    with pytest.warns(UserWarning, match="1 of 2 texts"):
        cut = words_of(texts, max_length=6)
    with pytest.warns(UserWarning, match="1 of 2 texts"):
        other = words_of(texts, "gpt2", max_length=7)
    assert (cut.word[cut.text == 0].max(), whole.word[whole.text == 0].max()) == (3, 8)
    X, y = whole.pair(cut)
    seen = (whole.text == 1) | (whole.word <= 3)
    np.testing.assert_array_equal(X, whole.states[:, seen])
    np.testing.assert_array_equal(y, cut.states)
    kept = min(3, other.word[other.text == 0].max()) + 1 + 3
    assert [len(states[0]) for states in cut.pair(other)] == [kept, kept]


def test_tokens_of_one_tokenizer_pair_as_they_are():
    one, other = tokens_of(), tokens_of(family="roberta", layers=-1)
    X, y = one.pair(other)
    np.testing.assert_array_equal(X, one.states)
    np.testing.assert_array_equal(y, other.states)


def test_nothing_pairs_without_words():
    X, y = words_of(["", " "]).pair(words_of(["", " "], "gpt2"))
    assert X.shape == y.shape == (4, 0, 16)


@pytest.mark.parametrize(
    ("other", "rule"),
    [
        (lambda: words_of(TEXTS[::-1]), "come from different texts"),
        (lambda: words_of(TEXTS[1:]), "come from different texts"),
        (lambda: words_of([text + " " for text in TEXTS]), "come from different texts"),
        (lambda: tokens_of(), "One has words and the other tokens. Extract both with 'words'"),
    ],
    ids=["order", "fewer", "white space", "tokens"],
)
def test_rows_that_do_not_belong_together_are_refused(other, rule):
    for one, two in [(words_of(), other()), (other(), words_of())]:
        with pytest.raises(ValueError, match=rule):
            one.pair(two)


def test_texts_are_told_from_pairs_with_the_same_words():
    single = words_of(["it", "rains"])
    with pytest.raises(ValueError, match="come from different texts"):
        single.pair(words_of([("it", "rains")]))


def test_tokens_of_two_tokenizers_do_not_pair():
    other = tokens_of(tokenizer=byte_tokenizer(TEXTS))
    with pytest.raises(ValueError, match=r"cut the texts differently.* pooling='words'"):
        tokens_of().pair(other)


def test_is_a_value_of_its_own_type():
    found = extract(MINILM, TEXTS[:2], pooling="tokens", layers=0, dtype="float16")
    assert isinstance(found, TokenStates) and found.states.dtype == np.float16
    with pytest.raises(AttributeError):
        found.states = None
