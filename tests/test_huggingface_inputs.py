"""Texts of every kind and length, tokenizers and models: what is taken, and what is refused."""

import copy
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
import transformers
from _huggingface import (
    PAIRS,
    TEXTS,
    assert_close,
    byte_tokenizer,
    extract,
    saved,
    shared,
    states_by_hand,
    tiny,
    tokenizer,
)
from safetensors.torch import load_file, save_file

LONG = "the man sat in the house and " * 40
FEW = TEXTS[:4]


def of_bert(texts=FEW, **options):
    return extract(shared(), texts, **{"tokenizer": tokenizer(), **options})


@pytest.fixture
def folder(tmp_path):
    return saved(tmp_path / "model")


# Kinds of texts.


@pytest.mark.parametrize(
    "as_kind",
    [
        tuple,
        lambda texts: (text for text in texts),
        lambda texts: dict.fromkeys(texts).keys(),
        lambda texts: pd.Series(texts, index=[7, 7, 0, -1]),
        lambda texts: pd.Series(texts, dtype="string"),
        lambda texts: pd.Index(texts),
        lambda texts: np.array(texts),
        lambda texts: np.array(texts, dtype=object),
        lambda texts: [np.str_(text) for text in texts],
    ],
    ids=[
        "tuple",
        "generator",
        "keys",
        "Series",
        "string Series",
        "Index",
        "str array",
        "object array",
        "np.str_",
    ],
)
def test_texts_of_every_kind_are_taken(as_kind):
    np.testing.assert_array_equal(of_bert(as_kind(FEW)), of_bert())


@pytest.mark.parametrize(
    "as_kind",
    [
        iter,
        np.array,
        lambda pairs: [list(pair) for pair in pairs],
        lambda pairs: zip(*zip(*pairs, strict=True), strict=True),
        lambda pairs: pd.DataFrame(pairs).to_numpy(),
    ],
    ids=["generator", "array", "lists", "zip", "columns"],
)
def test_pairs_of_every_kind_are_taken(as_kind):
    np.testing.assert_array_equal(of_bert(as_kind(PAIRS)), of_bert(PAIRS))


def test_the_texts_are_left_as_they_were():
    texts = np.array(FEW, dtype=object)
    texts.setflags(write=False)
    of_bert(texts)
    assert list(texts) == FEW


@pytest.mark.parametrize(
    "odd",
    [
        None,
        np.nan,
        pd.NA,
        3,
        b"it rains",
        b"ab",
        ["alone"],
        ("a", None),
        ("a", "b", "c"),
        {"text": "it rains", "label": "wet"},
        {"a", "b"},
    ],
    ids=repr,
)
@pytest.mark.parametrize("others", [FEW, PAIRS], ids=["texts", "pairs"])
@pytest.mark.parametrize("position", [0, 2])
def test_what_is_no_text_is_told_its_position(odd, others, position):
    texts = list(others)
    texts[position] = odd
    with pytest.raises(TypeError, match=rf"texts\[{position}\] is .*must be a str, or a pair"):
        of_bert(texts)
    with pytest.raises(TypeError, match=rf"texts\[{position}\] is .*must be a str, or a pair"):
        of_bert(text for text in texts)


@pytest.mark.parametrize(
    ("texts", "rule"),
    [
        ("it rains", r"texts is a single str. Pass a list of texts: \[text\]"),
        (np.str_("it rains"), "texts is a single str_"),
        (b"it rains", "texts is a single bytes"),
        (pd.DataFrame({"text": FEW}), "texts is a DataFrame.*one column"),
        ({"text": FEW}, "texts is a dict.*one column"),
        (None, "texts is None. Pass a list"),
        (5, "texts is 5. Pass a list"),
        ([FEW[0], PAIRS[0]], r"texts\[0\] is a text and texts\[1\] is a pair"),
        ([PAIRS[0], PAIRS[1], FEW[0]], r"texts\[0\] is a pair and texts\[2\] is a text"),
    ],
    ids=["str", "np.str_", "bytes", "frame", "dict", "None", "number", "mixed", "mixed pairs"],
)
def test_what_is_no_list_of_texts_is_told_so(texts, rule):
    with pytest.raises(TypeError, match=rule):
        of_bert(texts)


@pytest.mark.parametrize("texts", [[], (), iter(()), pd.Series([], dtype=object)], ids=repr)
def test_no_texts_are_an_error(texts):
    with pytest.raises(ValueError, match="texts is empty"):
        of_bert(texts)


# Lengths.


@pytest.mark.parametrize("pooling", ["mean", "cls", "last", "max"])
def test_an_empty_text_is_what_the_tokenizer_makes_of_it(pooling):
    found = of_bert(["", FEW[0], ""], pooling=pooling)
    states = states_by_hand(shared(), tokenizer()("", return_tensors="pt"))
    assert states.shape[1] == 2
    by_hand = {"mean": states.mean(1), "cls": states[:, 0], "last": states[:, 1]}
    assert_close(found[:, 0], by_hand.get(pooling, states.amax(1)))
    assert_close(found[:, 2], found[:, 0])
    assert_close(found[:, 1], of_bert(pooling=pooling)[:, 0])


@pytest.mark.parametrize("special", [{}, {"bos_token": "Ġthe"}, {"eos_token": "Ġthe"}], ids=repr)
@pytest.mark.parametrize("pooling", ["mean", "cls", "last", "max", "padded_mean"])
def test_a_text_without_any_token_begins_with_one(special, pooling):
    model, tokens = shared("gpt2"), byte_tokenizer(FEW, **special)
    assert tokens("")["input_ids"] == []
    found = extract(model, ["", FEW[0]], tokenizer=tokens, pooling=pooling)
    assert np.isfinite(found).all()
    if pooling != "padded_mean":
        lone = torch.tensor([[tokens.convert_tokens_to_ids("Ġthe") if special else 0]])
        assert_close(found[:, 0], states_by_hand(model, {"input_ids": lone})[:, 0])
        expected = extract(model, FEW, tokenizer=tokens, pooling=pooling)
        assert_close(found[:, 1], expected[:, 0])
    alone = extract(model, ["", ""], tokenizer=tokens, pooling=pooling)
    assert np.isfinite(alone).all()


def test_a_tokenizer_needs_no_padding_token():
    tokens, with_padding = byte_tokenizer(FEW), byte_tokenizer(FEW, pad_token="Ġthe")
    assert tokens.pad_token_id is None and with_padding.pad_token_id is not None
    assert_close(*(extract(shared("gpt2"), FEW, tokenizer=t) for t in (tokens, with_padding)))


@pytest.mark.parametrize(
    ("family", "max_length", "cut"), [("bert", 8, 8), ("bert", None, 512), ("roberta", None, 129)]
)
def test_long_texts_are_cut_with_one_warning_that_counts_them(family, max_length, cut):
    texts = ["It rains.", LONG * 2, "So be it.", LONG * 3]
    with pytest.warns(UserWarning) as said:
        found = extract(
            shared(family), texts, tokenizer=tokenizer(family), max_length=max_length, batch_size=1
        )
    assert [str(w.message).split(" tokens")[0] for w in said] == [
        f"2 of 4 texts have more than max_length={cut}"
    ]
    assert not {"huggingface", "_encode.py"} & set(said[0].filename.split("/"))
    inputs = tokenizer(family)(LONG, truncation=True, max_length=cut, return_tensors="pt")
    assert inputs["input_ids"].shape == (1, min(cut, 282))
    long = tokenizer(family)(LONG * 2, truncation=True, max_length=cut, return_tensors="pt")
    assert_close(found[:, 1], states_by_hand(shared(family), long).mean(1))
    short = tokenizer(family)(texts[2], return_tensors="pt")
    assert_close(found[:, 2], states_by_hand(shared(family), short).mean(1))


def test_long_pairs_are_cut_like_the_tokenizer_does():
    with pytest.warns(UserWarning, match="1 of 2 texts have more than max_length=20"):
        found = of_bert([("It rains.", "So be it."), (LONG, FEW[0])], max_length=20)
    inputs = tokenizer()(LONG, FEW[0], truncation=True, max_length=20, return_tensors="pt")
    assert_close(found[:, 1], states_by_hand(shared(), inputs).mean(1))


def test_texts_that_just_fit_are_not_cut():
    width = max(len(tokenizer()(text)["input_ids"]) for text in FEW)
    np.testing.assert_array_equal(of_bert(max_length=width), of_bert())
    with pytest.warns(UserWarning, match=f"1 of 4 texts have more than max_length={width - 1}"):
        of_bert(max_length=width - 1)


def test_a_model_without_positions_takes_texts_of_every_length():
    found = extract(shared("t5"), [LONG * 2], tokenizer=tokenizer("gpt2"))
    inputs = tokenizer("gpt2")(LONG * 2, return_tensors="pt")
    assert inputs["input_ids"].shape[1] > 512
    assert_close(found[:, 0], states_by_hand(shared("t5"), inputs).mean(1))


@pytest.mark.parametrize(
    ("family", "most"), [("bert", 512), ("roberta", 129), ("mpnet", 510), ("gpt2", 1024)]
)
def test_more_tokens_than_the_model_has_positions_are_refused(family, most):
    model, tokens = shared(family), tokenizer(family)
    extract(model, FEW, tokenizer=tokens, max_length=most)
    with pytest.raises(ValueError, match=f"max_length={most + 1} exceeds the {most} positions of"):
        extract(model, FEW, tokenizer=tokens, max_length=most + 1)


def test_as_many_tokens_as_positions_are_answered():
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        for family in ("bert", "roberta", "mpnet", "gpt2", "bart"):
            assert np.isfinite(
                extract(shared(family), [LONG * 9], tokenizer=tokenizer(family))
            ).all()


@pytest.mark.parametrize(
    ("texts", "max_length", "special"), [(FEW, 2, 2), (FEW, 1, 2), (PAIRS, 3, 3)]
)
def test_there_must_be_room_beside_special_tokens(texts, max_length, special):
    rule = f"max_length={max_length} leaves no room beside {special} special tokens"
    with pytest.raises(ValueError, match=rule):
        of_bert(texts, max_length=max_length)


# Models and tokenizers.


def test_by_name_it_is_the_live_model(folder, tmp_path, capfd):
    expected = of_bert()
    capfd.readouterr()
    verbosity = transformers.utils.logging.get_verbosity()
    assert transformers.utils.logging.is_progress_bar_enabled()
    for name in (folder, tmp_path / "model"):
        assert_close(extract(name, FEW), expected, atol=0)
        assert_close(extract(name, FEW, tokenizer=name), expected, atol=0)
        assert_close(extract(name, FEW, tokenizer=tokenizer()), expected, atol=0)
        assert_close(extract(shared(), FEW, tokenizer=name), expected, atol=0)
    assert capfd.readouterr() == ("", "")
    assert transformers.utils.logging.get_verbosity() == verbosity
    assert transformers.utils.logging.is_progress_bar_enabled()


def test_a_live_model_that_was_loaded_knows_its_tokenizer(folder):
    assert_close(extract(transformers.AutoModel.from_pretrained(folder), FEW), of_bert(), atol=0)


def test_a_live_model_without_a_name_needs_a_tokenizer():
    with pytest.raises(ValueError, match=r"live BertForMaskedLM .* Pass tokenizer="):
        extract(shared(), FEW)


@pytest.mark.parametrize("model", [None, 3, ["bert"], torch.nn.Linear(2, 2), np.ones(3)], ids=repr)
def test_what_is_no_model_is_refused(model):
    with pytest.raises(TypeError, match=f"model is a {type(model).__name__}. Pass a transformers"):
        extract(model, FEW, tokenizer=tokenizer())


def test_the_model_inside_a_sentence_transformer_is_pointed_at():
    wrapper = type("SentenceTransformer", (torch.nn.Module,), {})
    with pytest.raises(TypeError, match=r"Of a SentenceTransformer, that is model\[0\].auto_model"):
        extract(wrapper(), FEW)


def test_a_model_that_gives_no_hidden_states_is_refused():
    model = copy.deepcopy(shared())
    model.bert.register_forward_hook(lambda module, args, found: {"last": found[0]})
    with pytest.raises(ValueError, match="BertModel gives no hidden states"):
        extract(model, FEW, tokenizer=tokenizer())


def test_a_tokenizer_with_more_tokens_than_the_model_is_refused():
    with pytest.raises(ValueError, match=r"token id \d+, but BertForMaskedLM knows only 200 token"):
        extract(tiny(vocab_size=200), FEW, tokenizer=tokenizer())


@pytest.mark.parametrize("pooling", ["words", "tokens"])
def test_a_slow_tokenizer_does_all_but_words_and_tokens(pooling):
    class Slow(transformers.PythonBackend):
        def get_vocab(self):
            return {"a": 0, "b": 1}

        @property
        def vocab_size(self):
            return 2

        def _tokenize(self, text, **kwargs):
            return list(text)

        def _convert_token_to_id(self, token):
            return "ab".index(token)

    slow = Slow()
    assert not slow.is_fast
    found = extract(shared("roberta"), ["abba", "ab"], tokenizer=slow)
    by_hand = states_by_hand(shared("roberta"), {"input_ids": torch.tensor([[0, 1, 1, 0]])})
    assert_close(found[:, 0], by_hand.mean(1))
    with pytest.raises(ValueError, match=r"Slow cannot tell which word .* fast tokenizer"):
        extract(shared("roberta"), ["abba"], tokenizer=slow, pooling=pooling)


def without(folder, part):
    """The checkpoint in a folder, without the tensors of one part."""
    file = f"{folder}/model.safetensors"
    tensors = {name: t for name, t in load_file(file).items() if part not in name}
    assert len(tensors) < len(load_file(file))
    save_file(tensors, file, metadata={"format": "pt"})
    return folder


@pytest.mark.parametrize(
    ("part", "count"),
    [("encoder.layer.1.", 16), ("word_embeddings", 1), ("layer.2.output.LayerNorm", 2)],
)
def test_a_checkpoint_that_lacks_weights_is_refused(folder, part, count):
    with pytest.raises(ValueError, match=rf"model='.*' lacks {count} of the weights of BertModel"):
        extract(without(folder, part), FEW)


def test_a_head_or_a_pooler_may_be_missing(folder):
    assert_close(extract(without(folder, "cls."), FEW), of_bert(), atol=0)


def test_importing_it_loads_no_transformers():
    code = "import sys, sklearn_bijection.huggingface; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = run.stdout.split()
    assert "sklearn_bijection.huggingface" in loaded
    assert not {"transformers", "tokenizers"} & set(loaded)


def test_without_transformers_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(ImportError, match=r"pip install 'sklearn-bijection\[hf\]'"):
        extract("anywhere", FEW)
