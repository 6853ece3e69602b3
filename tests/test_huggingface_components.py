"""Inputs and outputs of the parts of layers: exact against hidden states, weights and hand-made layers."""

import numpy as np
import pytest
import torch
from _huggingface import (
    MINILM,
    PAIRS,
    RELATIVES,
    TEXTS,
    assert_close,
    extract,
    minilm,
    saved,
    shared,
    tiny,
    tokenizer,
    watched,
    weights_of,
)
from torch import nn
from torch.nn.functional import gelu

from sklearn_bijection.huggingface import component_io, shared_layers, stitch
from sklearn_bijection.metrics import linearity

KNOWN = ["bert", "roberta", "distilbert", "mpnet", "electra", *RELATIVES]
#: Where the parts lie: projection and norm of the attention, both linear maps and norm of the network.
IN_BERT = [
    "attention.output.dense",
    "attention.output.LayerNorm",
    "intermediate.dense",
    "output.dense",
    "output.LayerNorm",
]
IN_OTHERS = {
    "mpnet": ["attention.attn.o", "attention.LayerNorm", *IN_BERT[2:]],
    "distilbert": [
        "attention.out_lin",
        "sa_layer_norm",
        "ffn.lin1",
        "ffn.lin2",
        "output_layer_norm",
    ],
}


@pytest.fixture(params=KNOWN, scope="module")
def family(request):
    return request.param


def io(model=None, component="ffn", texts=TEXTS, **options):
    settings = {"tokenizer": tokenizer(), "special_tokens": True, "progress": False, **options}
    return component_io(model or shared(), texts, component, **settings)


def of(family, component, **options):
    return io(shared(family), component, tokenizer=tokenizer(family), **options)


def states_of(family, **options):
    settings = {"tokenizer": tokenizer(family), "pooling": "tokens", **options}
    return extract(shared(family), **settings)


def layers_of(model):
    stack = getattr(model.base_model, "encoder", None) or model.base_model.transformer
    return stack.layer


def parts_of(family, layer):
    """Modules of one layer, in the order of the names above."""
    names = IN_OTHERS.get(family, IN_BERT)
    return [layers_of(shared(family))[layer].get_submodule(name) for name in names]


def through(module, rows):
    with torch.no_grad():
        return module(torch.from_numpy(rows)).numpy()


def assert_same(found, expected):
    for name in ("layers", "inputs", "outputs", "text", "token", "token_id"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


# What the parts of a layer make together.


def test_attention_and_then_the_network_lead_from_state_to_state(family):
    states = states_of(family)
    attention, ffn, layer = (of(family, name) for name in ("attention", "ffn", "layer"))
    assert_close(attention.inputs, states.states[:-1])
    np.testing.assert_array_equal(attention.outputs, ffn.inputs)
    assert_close(ffn.outputs, states.states[1:])
    np.testing.assert_array_equal(layer.inputs, attention.inputs)
    np.testing.assert_array_equal(layer.outputs, ffn.outputs)
    for name in ("text", "token", "token_id"):
        np.testing.assert_array_equal(getattr(ffn, name), getattr(states, name))


@pytest.mark.parametrize("component", ["attention", "ffn"])
def test_residual_and_norm_are_those_of_the_model(family, component):
    whole, plain, added, normed = (
        of(family, component, residual=residual, norm=norm)
        for residual, norm in ((True, True), (False, False), (True, False), (False, True))
    )
    for other in (plain, added, normed):
        np.testing.assert_array_equal(other.inputs, whole.inputs)
    assert_close(added.outputs, plain.outputs + plain.inputs)
    for layer in range(3):
        norm = parts_of(family, layer)[1 if component == "attention" else 4]
        assert_close(whole.outputs[layer], through(norm, added.outputs[layer]))
        assert_close(normed.outputs[layer], through(norm, plain.outputs[layer]))
    assert all(np.abs(other.outputs - whole.outputs).max() > 0.1 for other in (plain, normed))


def test_the_network_is_two_linear_maps_with_an_activation_between(family):
    units = of(family, "intermediate")
    plain = of(family, "ffn", residual=False, norm=False)
    np.testing.assert_array_equal(units.inputs, plain.inputs)
    assert units.outputs.shape == (3, len(units.text), 32)
    for layer in range(3):
        _, _, first, second, _ = parts_of(family, layer)
        expected = gelu(torch.from_numpy(through(first, units.inputs[layer]))).numpy()
        assert_close(units.outputs[layer], expected)
        assert_close(plain.outputs[layer], through(second, units.outputs[layer]))


def test_attention_is_a_mean_of_values_projected():
    """With queries of zero every token attends to all alike."""
    model = tiny()
    with torch.no_grad():
        for layer in layers_of(model):
            layer.attention.self.query.weight.zero_()
            layer.attention.self.query.bias.zero_()
    found = io(model, "attention", residual=False, norm=False, layers=1)
    layer = layers_of(model)[1].attention
    for text in range(len(TEXTS)):
        rows = found.text == text
        with torch.no_grad():
            values = layer.self.value(torch.from_numpy(found.inputs[0, rows])).mean(0)
            expected = layer.output.dense(values).expand(rows.sum(), -1).numpy()
        assert_close(found.outputs[0, rows], expected)


def test_an_affine_part_is_found_linear():
    """A network without an activation, and one with."""
    model, affine = tiny(), tiny()
    for layer in layers_of(affine):
        layer.intermediate.intermediate_act_fn = nn.Identity()
    wanted = {"residual": False, "norm": False, "layers": -1}
    (_, X, y), (_, X_affine, y_affine) = (
        next(iter(io(m, "ffn", **wanted))) for m in (model, affine)
    )
    assert linearity(X_affine, y_affine).r2 == pytest.approx(1, abs=1e-6)
    assert linearity(X, y).r2 < 0.95


def test_real_weights_too():
    found = component_io(minilm(), TEXTS, tokenizer=MINILM, special_tokens=True, progress=False)
    states = extract(minilm(), tokenizer=MINILM, pooling="tokens").states
    assert_close(found.outputs, states[1:])


# Which tokens, and in which order.


def test_special_tokens_are_left_out_unless_wanted():
    every, found = io(), io(special_tokens=False)
    tokens = tokenizer()
    inside = ~np.isin(every.token_id, [tokens.cls_token_id, tokens.sep_token_id])
    assert 0 < inside.sum() < len(inside)
    for name in ("text", "token", "token_id"):
        np.testing.assert_array_equal(getattr(found, name), getattr(every, name)[inside])
    assert_close(found.inputs, every.inputs[:, inside])
    assert_close(found.outputs, every.outputs[:, inside])


def test_a_token_that_is_not_known_stands_for_a_piece_of_text():
    found = io(texts=["it rains \u6c34 here"], special_tokens=False)
    assert tokenizer().unk_token_id in found.token_id


@pytest.mark.parametrize("texts", [TEXTS, PAIRS], ids=["texts", "pairs"])
@pytest.mark.parametrize("batch_size", [1, 4])
def test_batches_of_every_size_agree(texts, batch_size):
    one, other = (
        io(component="attention", texts=texts, **o) for o in ({}, {"batch_size": batch_size})
    )
    assert_close(other.inputs, one.inputs)
    assert_close(other.outputs, one.outputs)
    np.testing.assert_array_equal(other.text, one.text)


def test_a_sample_is_some_of_all_rows_the_same_for_every_part():
    every, found = io(special_tokens=False), io(special_tokens=False, n_tokens=30)
    keys, all_keys = (list(zip(part.text, part.token, strict=True)) for part in (found, every))
    assert len(set(keys)) == 30 and keys == sorted(keys)
    rows = [all_keys.index(key) for key in keys]
    assert_close(found.inputs, every.inputs[:, rows])
    assert_close(found.outputs, every.outputs[:, rows])
    again = io(component="attention", special_tokens=False, n_tokens=30, layers=1)
    other = io(special_tokens=False, n_tokens=30, random_state=1)
    assert list(zip(again.text, again.token, strict=True)) == keys
    assert list(zip(other.text, other.token, strict=True)) != keys
    assert len(io(special_tokens=False, n_tokens=10**6).text) == len(every.text)


def test_texts_without_a_token_to_keep_are_not_run():
    with watched() as sizes:
        io(n_tokens=3, batch_size=1)
    assert 0 < sum(sizes) <= 3


def test_the_draw_leaves_the_generators_as_they_were():
    states = torch.get_rng_state(), np.random.get_state()[1].copy()
    io(n_tokens=5)
    assert torch.equal(torch.get_rng_state(), states[0])
    np.testing.assert_array_equal(np.random.get_state()[1], states[1])


# Which layers.


@pytest.mark.parametrize(
    ("layers", "expected"), [(0, (0,)), (-1, (2,)), ([2, 0], (2, 0)), ([1, 1], (1, 1))]
)
def test_layers_are_those_asked_for_in_that_order(layers, expected):
    every, found = io(), io(layers=layers)
    assert found.layers == expected and len(found) == len(expected)
    assert_close(found.outputs, every.outputs[list(expected)])
    for (layer, X, y), number in zip(found, expected, strict=True):
        assert layer == number
        assert_close(X, every.inputs[number])
        assert_close(y, every.outputs[number])


@pytest.mark.parametrize("family", ["bert", "distilbert"])
def test_a_network_that_runs_in_chunks_is_put_together(family):
    tokens = tokenizer(family)
    # As long as the chunks divide: transformers wants that.
    texts = [text for text in TEXTS if len(tokens(text)["input_ids"]) % 2 == 0]
    chunked = tiny(family, chunk_size_feed_forward=2)
    for component in ("ffn", "intermediate"):
        found, expected = (
            io(model, component, texts, tokenizer=tokens, batch_size=1)
            for model in (chunked, shared(family))
        )
        assert_close(found.inputs, expected.inputs)
        assert_close(found.outputs, expected.outputs)


def test_a_layer_in_several_places_is_seen_in_each():
    model = tiny()
    with shared_layers(model, {1: 0, 2: 0}):
        found = io(model, "layer")
        states = extract(model, tokenizer=tokenizer(), pooling="tokens").states
    assert_close(found.inputs, states[:-1])
    assert_close(found.outputs, states[1:])
    assert np.abs(states[2] - states[1]).max() > 0.1


@pytest.mark.parametrize("component", ["ffn", "intermediate", "attention"])
def test_parts_that_two_layers_share_are_seen_once_in_each(component):
    model = tiny()
    first, second, _ = layers_of(model)
    second.output, second.intermediate = first.output, first.intermediate
    second.attention.output = first.attention.output
    found, states = io(model, component), extract(model, tokenizer=tokenizer(), pooling="tokens")
    assert len(found.inputs) == 3 and found.inputs.shape[1] == states.states.shape[1]
    if component == "ffn":
        assert_close(found.outputs, states.states[1:])


def test_hooks_of_others_run_as_often_as_the_model_does():
    model, calls = tiny(), []
    layers_of(model)[0].output.LayerNorm.register_forward_hook(lambda *args: calls.append(1))
    with watched() as sizes:
        io(model, residual=False)
    assert len(calls) == len(sizes)


# What it leaves behind.


def hooks_of(model):
    return [
        (len(module._forward_hooks), len(module._forward_pre_hooks)) for module in model.modules()
    ]


@pytest.mark.parametrize("fails", [False, True])
def test_hooks_and_modes_are_as_before_also_after_an_error(fails):
    model = tiny().train()
    layers_of(model)[1].eval()
    before = hooks_of(model), [module.training for module in model.modules()], weights_of(model)
    if fails:
        with watched(fails_at=1, error=KeyboardInterrupt()), pytest.raises(KeyboardInterrupt):
            io(model, batch_size=4)
    else:
        assert_close(io(model).outputs, io().outputs)
    assert hooks_of(model) == before[0]
    assert [module.training for module in model.modules()] == before[1]
    assert all(torch.equal(before[2][name], w) for name, w in model.state_dict().items())


def test_by_name_and_without_a_head(tmp_path):
    expected = io()
    assert_same(io(saved(tmp_path), tokenizer=None), expected)
    assert_same(io(shared().bert), expected)


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_the_type_is_the_one_asked_for(dtype):
    found = io(dtype=dtype)
    assert found.inputs.dtype == found.outputs.dtype == dtype
    assert_close(found.outputs, io().outputs, atol=1e-2 if dtype == "float16" else 1e-6)


def test_half_precision_is_widened():
    found = io(tiny().to(torch.bfloat16))
    assert found.outputs.dtype == np.float32
    assert_close(found.outputs, io().outputs, atol=0.2)


def test_texts_that_are_cut_are_counted_once():
    with pytest.warns(UserWarning, match="have more than max_length=10") as said:
        found = io(max_length=10)
    assert len(said) == 1 and found.token.max() == 9


def test_progress_is_shown_when_wanted(capsys):
    io(progress=True)
    assert "ffn" in (shown := capsys.readouterr().err) and "11/11" in shown


# What is refused.


@pytest.mark.parametrize(
    ("options", "error", "rule"),
    [
        (
            {"component": "mlp"},
            ValueError,
            "component='mlp' is not known. Choose from 'attention', 'ffn'",
        ),
        (
            {"component": "layer", "residual": False},
            ValueError,
            "residual=False says nothing about",
        ),
        ({"component": "layer", "norm": False}, ValueError, "norm=False says nothing about"),
        ({"component": "intermediate", "norm": False}, ValueError, "component='intermediate', of"),
        ({"layers": 3}, ValueError, "layers=3 is out of range: this model has 3 layers, 0 .. 2"),
        ({"layers": []}, ValueError, "layers is empty"),
        ({"n_tokens": 0}, ValueError, "n_tokens=0 must be at least 1"),
        ({"n_tokens": 2.5}, TypeError, "n_tokens=2.5 is not a whole number"),
        ({"batch_size": 0}, ValueError, "batch_size=0 must be at least 1"),
        ({"dtype": int}, ValueError, "dtype='int64' is not a floating type"),
        ({"texts": "one"}, TypeError, "texts is a single str"),
        (
            {"texts": [""], "special_tokens": False},
            ValueError,
            "no token to keep: all 2 are special",
        ),
        ({"model": nn.Linear(2, 2)}, TypeError, "model is a Linear"),
        (
            {"model": shared("gpt2")},
            TypeError,
            "GPT2LMHeadModel, whose layers are not known .*bert",
        ),
    ],
    ids=str,
)
def test_what_cannot_be_watched_is_refused(options, error, rule):
    with pytest.raises(error, match=rule):
        io(**options)


def test_a_stitched_model_is_refused():
    with pytest.raises(TypeError, match=r"model is stitched\. Pass one of the two"):
        io(stitch(shared(), shared(), 1, 1, nn.Identity()))


def test_layers_in_wrappers_are_refused():
    class Wrapper(nn.Module):
        def __init__(self, layer):
            super().__init__()
            self.layer = layer

    model = tiny()
    model.bert.encoder.layer = nn.ModuleList(map(Wrapper, layers_of(model)))
    with pytest.raises(TypeError, match=r"model has a Wrapper .* no 'intermediate\.dense'\. Pass"):
        io(model)
    assert not any(map(sum, hooks_of(model)))


def test_a_value_that_is_not_finite_is_refused():
    model = tiny()
    with torch.no_grad():
        layers_of(model)[1].output.dense.bias[0] = np.inf
    with pytest.raises(ValueError, match="not finite"):
        io(model, residual=False, norm=False)
