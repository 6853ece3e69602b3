"""Hidden states against plain calls of the model, one text at a time."""

import copy
import functools

import numpy as np
import pytest
import torch
from _huggingface import (
    FAMILIES,
    MINILM,
    PAIRS,
    TEXTS,
    assert_close,
    extract,
    minilm,
    shared,
    states_by_hand,
    tiny,
    tokenizer,
    weights_of,
)
from sentence_transformers import SentenceTransformer

from sklearn_bijection.huggingface import extract_hidden_states

POOLS_BY_HAND = {
    "mean": lambda states: states.mean(1),
    "cls": lambda states: states[:, 0],
    "last": lambda states: states[:, -1],
    "max": lambda states: states.amax(1),
}
gpu = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"),
]


@pytest.fixture(params=FAMILIES, scope="module")
def family(request):
    """One family after the other: its model and its tokenizer."""
    return shared(request.param), tokenizer(request.param)


@functools.cache
def alone(model, tokens):
    """States (n_layers, length, width) of each text, called alone."""
    return [states_by_hand(model, tokens(text, return_tensors="pt")) for text in TEXTS]


def of_bert(texts=TEXTS, **options):
    return extract(shared(), texts, **{"tokenizer": tokenizer(), **options})


# Laws, for every family.


@pytest.mark.parametrize("pooling", ["mean", "cls", "last", "max"])
def test_are_those_of_a_plain_call_with_each_text_alone(family, pooling):
    model, tokens = family
    found = extract(model, tokenizer=tokens, pooling=pooling)
    assert found.shape == (4, len(TEXTS), 16) and found.dtype == np.float32
    for i, states in enumerate(alone(model, tokens)):
        assert_close(found[:, i], POOLS_BY_HAND[pooling](states))


def test_batches_of_every_size_agree(family):
    model, tokens = family
    expected = extract(model, tokenizer=tokens, batch_size=32)
    for size in (1, 8):
        assert_close(extract(model, tokenizer=tokens, batch_size=size), expected)


def test_a_text_is_the_same_alone_and_in_a_batch(family):
    model, tokens = family
    together = extract(model, tokenizer=tokens)
    for i in (0, int(np.argmin([len(text) for text in TEXTS]))):
        assert_close(extract(model, [TEXTS[i]], tokenizer=tokens)[:, 0], together[:, i])


def test_rows_follow_the_texts(family):
    model, tokens = family
    order = np.random.default_rng(0).permutation(len(TEXTS))
    found = extract(model, [TEXTS[i] for i in order], tokenizer=tokens, batch_size=8)
    assert_close(found, extract(model, tokenizer=tokens, batch_size=8)[:, order])


def test_equal_texts_have_equal_rows(family):
    model, tokens = family
    found = extract(model, [TEXTS[0], *TEXTS, TEXTS[0]], tokenizer=tokens, batch_size=8)
    assert_close(found[:, 0], found[:, 1])
    assert_close(found[:, 0], found[:, -1])


@pytest.mark.parametrize("pooling", ["mean", "last"])
def test_the_side_that_the_tokenizer_pads_on_does_not_matter(family, pooling, monkeypatch):
    model, tokens = family
    found = []
    for side in ("left", "right"):
        monkeypatch.setattr(tokens, "padding_side", side)
        found.append(extract(model, tokenizer=tokens, pooling=pooling))
    np.testing.assert_array_equal(*found)


def test_dropout_is_off_and_every_module_is_left_in_its_mode(family):
    model, tokens = family
    wild = copy.deepcopy(model).train()
    for module in wild.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.5
    next(iter(wild.base_model.children())).eval()
    modes = [module.training for module in wild.modules()]
    assert set(modes) == {True, False}
    inputs = tokens(TEXTS[0], return_tensors="pt")
    assert not torch.equal(*(states_by_hand(wild, inputs) for _ in range(2)))
    assert_close(extract(wild, tokenizer=tokens), extract(model, tokenizer=tokens), atol=0)
    assert [module.training for module in wild.modules()] == modes
    with pytest.raises(ValueError, match="out of range"):
        extract(wild, tokenizer=tokens, layers=99)
    assert [module.training for module in wild.modules()] == modes


def test_the_model_and_the_generators_are_left_as_they_were(family):
    model, tokens = family
    weights, states = weights_of(model), (torch.get_rng_state(), np.random.get_state()[1].copy())
    extract(model, tokenizer=tokens)
    assert all(torch.equal(weights[name], w) for name, w in model.state_dict().items())
    assert all(p.requires_grad and p.grad is None for p in model.parameters())
    assert torch.is_grad_enabled() and not torch.is_inference_mode_enabled()
    assert torch.equal(torch.get_rng_state(), states[0])
    np.testing.assert_array_equal(np.random.get_state()[1], states[1])


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16], ids=["bf16", "fp16"])
def test_half_precision_is_finite_in_float32(family, kind):
    model, tokens = family
    found = extract(copy.deepcopy(model).to(kind), tokenizer=tokens)
    expected = extract(model, tokenizer=tokens)
    assert found.dtype == np.float32 and np.isfinite(found).all()
    assert_close(found, expected, atol=0.1 * np.abs(expected).max())


def test_double_precision_is_kept():
    model, tokens = tiny().double(), tokenizer()
    found = extract(model, tokenizer=tokens, dtype="float64")
    states = states_by_hand(model, tokens(TEXTS[0], return_tensors="pt"))
    assert states.dtype == torch.float64
    assert_close(found[:, 0], states.mean(1), atol=1e-12)


@pytest.mark.parametrize("place", [pytest.param("cuda", marks=gpu), "cpu"])
def test_a_model_is_asked_elsewhere_and_comes_home(family, place):
    model, tokens = family
    found = extract(model, tokenizer=tokens, device=place)
    assert_close(found, extract(model, tokenizer=tokens), atol=1e-4)
    assert {parameter.device.type for parameter in model.parameters()} == {"cpu"}


# Real weights.


def test_the_mean_of_the_last_layer_is_what_sentence_transformers_gives():
    theirs = SentenceTransformer(MINILM, device="cpu")
    assert type(theirs.pop(2)).__name__ == "Normalize"
    expected = theirs.encode(TEXTS, normalize_embeddings=False, show_progress_bar=False)
    assert np.linalg.norm(expected, axis=1).max() > 2
    assert_close(extract(minilm(), layers=-1)[0], expected)
    assert_close(extract(MINILM, layers=-1)[0], expected)


# Each pooling, and padding.


@pytest.mark.parametrize("max_length", [None, 80], ids=["longest", "given length"])
def test_padded_mean_is_over_all_positions(family, max_length):
    model, tokens = family
    found = extract(model, tokenizer=tokens, pooling="padded_mean", max_length=max_length)
    width = max_length or max(len(tokens(text)["input_ids"]) for text in TEXTS)
    expected = []
    for text in TEXTS[::3]:
        inputs = dict(tokens(text, return_tensors="pt"))
        missing = width - inputs["input_ids"].shape[1]
        assert missing >= 0
        inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
        padded = {name: torch.nn.functional.pad(t, (0, missing)) for name, t in inputs.items()}
        expected.append(states_by_hand(model, padded).mean(1))
    assert_close(found[:, ::3], np.stack(expected, 1))
    assert np.abs(found - extract(model, tokenizer=tokens)).max() > 0.01


def test_padded_mean_does_not_depend_on_batches_or_order():
    expected = of_bert(pooling="padded_mean")
    for size in (1, 8):
        assert_close(of_bert(pooling="padded_mean", batch_size=size), expected)
    assert_close(of_bert(TEXTS[::-1], pooling="padded_mean"), expected[:, ::-1])


def test_a_callable_pools_states_in_float32_by_the_mask():
    seen = []

    def spread(hidden, mask):
        seen.append((hidden.dtype, mask.dtype, hidden.shape[:2] == mask.shape))
        weights = mask[..., None].float()
        n = weights.sum(1)
        mean = (hidden * weights).sum(1) / n
        return torch.cat([mean, (weights * (hidden - mean[:, None]) ** 2).sum(1) / n], dim=1)

    model = tiny().to(torch.bfloat16)
    assert extract(model, tokenizer=tokenizer(), pooling=spread).shape == (4, len(TEXTS), 32)
    assert set(seen) == {(torch.float32, torch.bool, True)}
    found = of_bert(pooling=spread)
    assert_close(found[..., :16], of_bert())
    states = alone(shared(), tokenizer())[3]
    assert_close(found[:, 3, 16:], states.var(1, unbiased=False))


@pytest.mark.parametrize(
    ("pooling", "came"),
    [
        (lambda hidden, mask: hidden, r"\(\d+, \d+, 16\)"),
        (lambda hidden, mask: hidden[:, 0, 0], r"\(\d+,\)"),
        (lambda hidden, mask: hidden.mean((0, 1))[None, :].repeat(99, 1), r"\(99, 16\)"),
        (lambda hidden, mask: hidden[:, 0].numpy(), "ndarray"),
        (lambda hidden, mask: None, "NoneType"),
    ],
    ids=["three dimensions", "one dimension", "other length", "an array", "nothing"],
)
def test_a_callable_that_gives_something_else_is_told(pooling, came):
    with pytest.raises(ValueError, match=rf"pooling gave {came}.*\(\d+, n_columns\)"):
        of_bert(pooling=pooling)


@pytest.mark.parametrize("pooling", ["average", "", None, 3, ["mean"]])
def test_an_unknown_pooling_is_told_the_known_ones(pooling):
    with pytest.raises(ValueError, match=r"pooling=.* is not known. Choose from 'mean', 'cls'"):
        of_bert(pooling=pooling)


# Layers.


@pytest.mark.parametrize(
    ("layers", "chosen"),
    [
        ("all", [0, 1, 2, 3]),
        (0, [0]),
        (-1, [3]),
        (-4, [0]),
        (np.int64(2), [2]),
        ([3, 1], [3, 1]),
        ((1, -1, 1), [1, 3, 1]),
        (range(1, 3), [1, 2]),
        (np.array([2, 0]), [2, 0]),
    ],
    ids=repr,
)
@pytest.mark.parametrize("pooling", ["mean", "words"])
def test_layers_come_as_asked(layers, chosen, pooling):
    found, everything = of_bert(layers=layers, pooling=pooling), of_bert(pooling=pooling)
    if pooling == "words":
        found, everything = found.states, everything.states
    np.testing.assert_array_equal(found, everything[chosen])


@pytest.mark.parametrize("layers", [4, -5, [0, 4], 10**6], ids=repr)
def test_a_layer_out_of_range_is_told_the_range(layers):
    rule = r"layers=.* is out of range: this model has 4 hidden states, 0 \.\. 3 or -4 \.\. -1"
    with pytest.raises(ValueError, match=rule):
        of_bert(layers=layers)


@pytest.mark.parametrize(
    ("layers", "error", "rule"),
    [
        ("last", ValueError, "layers='last' is not known"),
        ([], ValueError, "layers is empty"),
        (None, TypeError, "layers=None .* 'all', an int or several"),
        (1.0, TypeError, "layers=1.0 .* 'all', an int or several"),
        ([0, 1.5], TypeError, "layers=.* 'all', an int or several"),
        (True, TypeError, "layers=True .* 'all', an int or several"),
        (["0"], TypeError, "layers=.* 'all', an int or several"),
        ([[0, 1]], TypeError, "layers=.* 'all', an int or several"),
    ],
    ids=repr,
)
def test_layers_that_are_none_are_refused(layers, error, rule):
    with pytest.raises(error, match=rule):
        of_bert(layers=layers)


# The other arguments.


@pytest.mark.parametrize("kind", ["float16", np.float64, "f4", None])
def test_the_result_has_the_type_that_was_asked_for(kind):
    found = of_bert(dtype=kind)
    assert found.dtype == np.dtype(kind)
    np.testing.assert_array_equal(found, of_bert().astype(kind))


@pytest.mark.parametrize("pooling", ["mean", "tokens"])
def test_a_state_that_does_not_fit_the_type_is_an_error(pooling):
    model = tiny()
    with torch.no_grad():
        model.bert.encoder.layer[1].output.LayerNorm.weight.fill_(1e5)
    assert np.abs(extract(model, layers=2, tokenizer=tokenizer())).max() > 65504
    with pytest.raises(OverflowError, match=r"state of .*e\+05 .* dtype='float16'.*'float32'"):
        extract(model, tokenizer=tokenizer(), dtype="float16", pooling=pooling)


@pytest.mark.parametrize("kind", ["int32", int, bool, "complex64", "U5", object])
def test_a_type_without_fractions_is_refused(kind):
    with pytest.raises(ValueError, match=r"dtype=.* is not a floating type. Pass float32"):
        of_bert(dtype=kind)


@pytest.mark.parametrize("size", [0, -3])
def test_a_batch_holds_something(size):
    with pytest.raises(ValueError, match=f"batch_size={size} must be at least 1"):
        of_bert(batch_size=size)


def test_progress_is_shown_unless_unwanted(capsys):
    of_bert()
    assert capsys.readouterr().err == ""
    extract_hidden_states(shared(), TEXTS, tokenizer=tokenizer())
    assert f"{len(TEXTS)}/{len(TEXTS)}" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["bert", "electra", "roberta"])
def test_pairs_are_encoded_together(name):
    model, tokens = shared(name), tokenizer(name)
    found = extract(model, PAIRS, tokenizer=tokens, batch_size=5)
    for i, (first, second) in enumerate(PAIRS):
        inputs = tokens(first, second, return_tensors="pt")
        assert ("token_type_ids" in inputs) == (name != "roberta")
        assert_close(found[:, i], states_by_hand(model, inputs).mean(1))
    as_one = extract(model, [" ".join(pair) for pair in PAIRS], tokenizer=tokens)
    assert np.abs(found - as_one).max() > 0.01
