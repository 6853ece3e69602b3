"""Attention against plain eager calls of the model, one text at a time."""

import copy

import numpy as np
import pytest
import torch
import transformers
from _huggingface import (
    FAMILIES,
    MINILM,
    PAIRS,
    TEXTS,
    assert_close,
    minilm,
    shared,
    tiny,
    tokenizer,
    weights_of,
)

from sklearn_bijection.huggingface import extract_attentions

ROWS_BY_HAND = {
    "query_mean": lambda matrices: matrices.mean(2),
    "cls": lambda matrices: matrices[:, :, 0],
    "last": lambda matrices: matrices[:, :, -1],
    "none": lambda matrices: matrices,
}


@pytest.fixture(params=FAMILIES, scope="module")
def family(request):
    """One family after the other: its model and its tokenizer."""
    return shared(request.param), tokenizer(request.param)


def attend(model, tokens, texts=TEXTS, **options):
    return extract_attentions(model, texts, tokenizer=tokens, **{"progress": False, **options})


def of_bert(texts=TEXTS, **options):
    return attend(shared(), tokenizer(), texts, **options)


def by_hand(model, inputs):
    """Attention (n_layers, n_heads, length, length) to one text, of a copy made eager."""
    eager = copy.deepcopy(model)
    eager.set_attn_implementation("eager")
    if hasattr(model, "decoder") or hasattr(getattr(model, "model", None), "decoder"):
        inputs = dict(inputs) | {"decoder_input_ids": inputs["input_ids"][:, :1]}
    with torch.no_grad():
        found = eager(**inputs, output_attentions=True)
    return torch.cat(getattr(found, "encoder_attentions", None) or found.attentions)


@pytest.mark.parametrize("reduction", ROWS_BY_HAND)
def test_is_that_of_a_plain_eager_call_with_each_text_alone(family, reduction):
    model, tokens = family
    found = attend(model, tokens, reduction=reduction, batch_size=8)
    lengths = [len(tokens(text)["input_ids"]) for text in TEXTS]
    tail = (max(lengths),) * (2 if reduction == "none" else 1)
    assert found.shape == (3, 2, len(TEXTS), *tail) and found.dtype == np.float32
    for i in (0, np.argmax(lengths), np.argmin(lengths)):
        expected = ROWS_BY_HAND[reduction](by_hand(model, tokens(TEXTS[i], return_tensors="pt")))
        inside = (slice(lengths[i]),) * len(tail)
        assert_close(found[:, :, i][(..., *inside)], expected)


def test_rows_sum_to_one_and_padding_receives_nothing(family):
    model, tokens = family
    lengths = np.array([len(tokens(text)["input_ids"]) for text in TEXTS])
    beyond = np.arange(lengths.max()) >= lengths[:, None]
    assert beyond.any()
    for reduction in ("query_mean", "cls", "last"):
        found = attend(model, tokens, reduction=reduction)
        assert_close(found.sum(-1), np.ones(found.shape[:-1]))
        assert (found >= 0).all() and (found[..., beyond] == 0).all()
    matrices = attend(model, tokens, reduction="none")
    assert_close(matrices.sum(-1), np.broadcast_to(~beyond, matrices.shape[:-1]))
    assert (matrices.swapaxes(-1, -2)[..., beyond, :] == 0).all()


def test_batches_of_every_size_agree_and_rows_follow_the_texts(family):
    model, tokens = family
    expected = attend(model, tokens)
    for size in (1, 8):
        assert_close(attend(model, tokens, batch_size=size), expected)
    order = np.random.default_rng(0).permutation(len(TEXTS))
    found = attend(model, tokens, [TEXTS[i] for i in order], batch_size=8)
    assert_close(found, expected[:, :, order])


def test_the_model_is_eager_inside_and_what_it_was_afterwards(family):
    model, tokens = copy.deepcopy(family[0]).train(), family[1]
    before, weights, inside = ways_of(model), weights_of(model), []
    # MPNet knows no other way.
    assert set(before) == {"eager" if "MPNet" in type(model).__name__ else "sdpa"}

    def note(attention, mask):
        inside.append(ways_of(model))
        return attention.mean((2, 3))

    attend(model, tokens, reduction=note)
    assert all("eager" in ways for ways in inside)
    assert ways_of(model) == before
    with pytest.raises(ValueError, match="out of range"):
        attend(model, tokens, layers=99)
    assert ways_of(model) == before
    assert all(module.training for module in model.modules())
    assert all(torch.equal(weights[name], w) for name, w in model.state_dict().items())


def ways_of(model):
    """How every part of a model that says so computes its attention."""
    parts = [module for module in model.modules() if hasattr(module, "config")]
    return [part.config._attn_implementation for part in parts]


@pytest.mark.parametrize("kind", ["eager", "sdpa"])
def test_a_model_keeps_the_attention_that_it_was_loaded_with(kind):
    model = tiny(attn_implementation=kind)
    assert_close(attend(model, tokenizer()), of_bert())
    assert model.config._attn_implementation == kind


def test_by_name_it_is_the_live_model():
    live = extract_attentions(minilm(), TEXTS[:5], layers=[0, -1], progress=False)
    assert live.shape[:3] == (2, 12, 5)
    named = extract_attentions(MINILM, TEXTS[:5], layers=[0, -1], progress=False)
    assert_close(named, live)


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16], ids=["bf16", "fp16"])
def test_half_precision_sums_to_one_in_float32(kind):
    found = attend(tiny().to(kind), tokenizer())
    assert found.dtype == np.float32
    assert_close(found.sum(-1), np.ones(found.shape[:-1]), atol=0.02)
    assert_close(found, of_bert(), atol=0.05)


@pytest.mark.parametrize("kind", ["float16", "float64"])
def test_the_result_has_the_type_that_was_asked_for(kind):
    found = of_bert(dtype=kind)
    assert found.dtype == kind
    assert_close(found, of_bert(), atol=1e-3)


def test_pairs_are_encoded_together():
    found = of_bert(PAIRS)
    inputs = tokenizer()(*PAIRS[2], return_tensors="pt")
    expected = by_hand(shared(), inputs).mean(2)
    assert_close(found[:, :, 2, : expected.shape[-1]], expected)


def test_long_texts_are_cut_with_one_warning():
    with pytest.warns(UserWarning, match="of 11 texts have more than max_length=10") as said:
        assert of_bert(max_length=10).shape == (3, 2, 11, 10)
    assert len(said) == 1


@pytest.mark.parametrize(
    ("layers", "chosen"), [("all", [0, 1, 2]), (-1, [2]), ([2, 0, 2], [2, 0, 2])], ids=repr
)
def test_layers_come_as_asked(layers, chosen):
    np.testing.assert_array_equal(of_bert(layers=layers), of_bert()[chosen])


@pytest.mark.parametrize("layers", [3, -4, [0, 5]], ids=repr)
def test_a_layer_out_of_range_is_told_the_range(layers):
    with pytest.raises(ValueError, match=r"this model has 3 attention layers, 0 \.\. 2 or -3"):
        of_bert(layers=layers)


def test_a_callable_reduces_by_the_mask():
    def focus(attention, mask):
        entropy = -(attention * attention.clamp(min=1e-9).log()).sum(-1)
        weights = mask[:, None].float()
        return (entropy * weights).sum(-1) / weights.sum(-1)

    found = of_bert(reduction=focus, batch_size=4)
    assert found.shape == (3, 2, len(TEXTS))
    matrices = by_hand(shared(), tokenizer()(TEXTS[5], return_tensors="pt"))
    assert_close(found[:, :, 5], -(matrices * matrices.log()).sum(-1).mean(-1))
    corner = of_bert(reduction=lambda attention, mask: attention[..., :2, :3], batch_size=4)
    assert_close(corner, of_bert(reduction="none")[..., :2, :3])


@pytest.mark.parametrize(
    ("reduction", "rule"),
    [
        (lambda attention, mask: None, r"reduction gave NoneType. It must return a tensor"),
        (lambda attention, mask: attention.numpy(), "reduction gave ndarray"),
        (lambda attention, mask: attention[0], r"reduction gave \(2, \d+, \d+\)"),
        (lambda attention, mask: attention[:, 0, 0, 0], r"reduction gave \(\d+,\)"),
        (lambda attention, mask: attention.mean(2), "must not depend on the length of the texts"),
    ],
    ids=["nothing", "an array", "one text", "one dimension", "other lengths"],
)
def test_a_callable_that_gives_something_else_is_told(reduction, rule):
    with pytest.raises(ValueError, match=rule):
        of_bert(reduction=reduction, batch_size=4)


@pytest.mark.parametrize("reduction", ["mean", "", None, 3, ["cls"]], ids=repr)
def test_an_unknown_reduction_is_told_the_known_ones(reduction):
    with pytest.raises(ValueError, match=r"reduction=.* is not known. Choose from 'query_mean'"):
        of_bert(reduction=reduction)


@pytest.mark.parametrize("shown", [None, (), (None, None, None)], ids=repr)
def test_a_model_that_hides_its_attention_is_refused(shown):
    model = tiny()

    def hide(module, args, found):
        found.attentions = shown
        return found

    model.bert.register_forward_hook(hide)
    with pytest.raises(ValueError, match=r"BertModel does not show its attention. .*'eager'"):
        attend(model, tokenizer())
    assert model.config._attn_implementation == "sdpa"


def test_a_model_without_attention_is_refused():
    config = transformers.MambaConfig(vocab_size=2100, hidden_size=8, num_hidden_layers=1)
    with pytest.raises(ValueError, match="MambaModel does not show its attention"):
        attend(transformers.MambaModel(config), tokenizer("gpt2"))


@pytest.mark.parametrize(
    ("options", "error", "rule"),
    [
        ({"texts": []}, ValueError, "texts is empty"),
        ({"texts": "it rains"}, TypeError, "texts is a single str"),
        ({"texts": ["it rains", None]}, TypeError, r"texts\[1\] is None"),
        ({"batch_size": 0}, ValueError, "batch_size=0 must be at least 1"),
        ({"dtype": "int8"}, ValueError, "dtype='int8' is not a floating type"),
        ({"max_length": 2}, ValueError, "leaves no room"),
        ({"model": 3}, TypeError, "model is a int"),
        ({"model": shared(), "tokenizer": None}, ValueError, "Pass tokenizer="),
    ],
    ids=lambda value: next(iter(value), None) if isinstance(value, dict) else None,
)
def test_bad_input_is_refused_as_for_hidden_states(options, error, rule):
    options = {"model": shared(), "texts": TEXTS, "tokenizer": tokenizer(), **options}
    with pytest.raises(error, match=rule):
        extract_attentions(progress=False, **options)
