"""Two models in one against a hand-made composition, and the loss behind masks."""

import copy

import numpy as np
import pytest
import torch
from _huggingface import (
    N_TOKENS,
    PAIRS,
    RELATIVES,
    TEXTS,
    assert_close,
    extract,
    saved,
    shared,
    tiny,
    tokenizer,
    weights_of,
)
from sklearn.exceptions import NotFittedError
from torch import nn
from torch.nn.functional import cross_entropy
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    BertForTokenClassification,
    BertModel,
)

from sklearn_bijection import CCAAligner, ProcrustesAligner
from sklearn_bijection.huggingface import masked_lm_loss, stitch

STITCHED = ["bert", "roberta", "distilbert", "mpnet", "electra", *RELATIVES]
TOLERANCE = {"rtol": 0, "atol": 1e-5}


def batch(family="bert", texts=TEXTS[:5]):
    """Some texts, padded, as the models of a family take them."""
    inputs = tokenizer(family)(texts, padding=True, return_tensors="pt")
    assert not inputs["attention_mask"].all()
    return inputs


def inside(inputs, states):
    """The states of tokens, for what stands where there is none is nobody's."""
    return states[inputs["attention_mask"].bool()]


def layers_of(model):
    stack = getattr(model.base_model, "encoder", None) or model.base_model.transformer
    return list(stack.layer)


def by_hand(model_a, model_b, cut_a, cut_b, middle, inputs):
    """Run the second model, but exchange the states that go into one of its layers."""
    below = model_a(**inputs, output_hidden_states=True).hidden_states[cut_a]
    mapped, layers = middle(below), layers_of(model_b)
    if cut_b < len(layers):
        handle = layers[cut_b].register_forward_pre_hook(
            lambda layer, args, kwargs: ((mapped, *args[1:]), kwargs), with_kwargs=True
        )
    else:
        handle = layers[-1].register_forward_hook(
            lambda layer, args, found: (mapped, *found[1:]) if isinstance(found, tuple) else mapped
        )
    try:
        return model_b(**inputs).logits
    finally:
        handle.remove()


def linear(n_in=16, n_out=16, seed=0):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Linear(n_in, n_out)


@pytest.fixture(params=STITCHED, scope="module")
def family(request):
    return request.param


# What a stitched model computes.


@pytest.mark.parametrize("layer", [0, 1, 2, 3, -1])
def test_a_model_with_itself_is_itself(family, layer):
    model, inputs = shared(family), batch(family)
    labels = inputs["input_ids"]
    with torch.no_grad():
        found = stitch(model, model, layer, layer, nn.Identity())(**inputs, labels=labels)
        expected = model(**inputs, labels=labels)
        torch.testing.assert_close(
            inside(inputs, found.logits), inside(inputs, expected.logits), **TOLERANCE
        )
        torch.testing.assert_close(found.loss, expected.loss, **TOLERANCE)
        body = stitch(model.base_model, model.base_model, layer, layer, nn.Identity())
        torch.testing.assert_close(
            inside(inputs, body(**inputs).last_hidden_state),
            inside(inputs, model.base_model(**inputs).last_hidden_state),
            **TOLERANCE,
        )


@pytest.mark.parametrize(("cut_a", "cut_b"), [(0, 3), (3, 0), (1, 2), (2, 1), (3, 3)])
def test_is_the_bottom_of_one_a_map_and_the_top_of_the_other(family, cut_a, cut_b):
    one, other, middle = tiny(family), tiny(family, seed=1), linear()
    inputs = batch(family)
    with torch.no_grad():
        found = stitch(one, other, cut_a, cut_b, middle)(**inputs).logits
        expected = by_hand(one, other, cut_a, cut_b, middle, inputs)
        torch.testing.assert_close(inside(inputs, found), inside(inputs, expected), **TOLERANCE)
        for model in (one, other):
            assert (inside(inputs, found - model(**inputs).logits)).abs().max() > 0.1


@pytest.mark.parametrize(
    ("below", "above"), [("bert", "roberta"), ("mpnet", "distilbert"), ("electra", "mpnet")]
)
def test_families_and_widths_may_differ(below, above):
    wide = {"hidden_size": 24} if above != "distilbert" else {"dim": 24}
    one, other, middle = shared(below), tiny(above, **wide), linear(16, 24)
    inputs = batch("roberta")
    with torch.no_grad():
        found = stitch(one, other, 2, 1, middle)(**inputs).logits
        expected = by_hand(one, other, 2, 1, middle, inputs)
    torch.testing.assert_close(inside(inputs, found), inside(inputs, expected), **TOLERANCE)


@pytest.mark.parametrize("aligner", [CCAAligner(shrinkage=0.1), ProcrustesAligner()], ids=repr)
def test_the_fitted_aligner_is_the_map(aligner):
    one, other = shared(), tiny(seed=1)
    X, y = (
        extract(model, tokenizer=tokenizer(), layers=layer, pooling="tokens").states[0]
        for model, layer in ((one, 1), (other, 2))
    )
    stitched = stitch(one, other, 1, 2, aligner.fit(X, y))
    states = torch.from_numpy(X[:30]).reshape(5, 6, 16)
    mapped = stitched.map(states)
    assert mapped.shape == states.shape and mapped.dtype == torch.float32
    assert_close(mapped.reshape(30, 16).numpy(), aligner.transform(X[:30]), atol=1e-4)
    with torch.no_grad():
        below = one.bert(**batch(), output_hidden_states=True).hidden_states[1]
        found = stitched.bottom(**batch()).last_hidden_state
    torch.testing.assert_close(inside(batch(), found), inside(batch(), below), **TOLERANCE)


def test_by_name_both_have_the_head_of_their_checkpoint(tmp_path):
    other = tiny(seed=1)
    names = saved(tmp_path / "one"), saved(tmp_path / "other", other)
    expected = stitch(shared(), other, 2, 1, linear())(**batch()).logits
    for one, two in ((names[0], names[1]), (tmp_path / "one", other), (shared(), names[1])):
        found = stitch(one, two, 2, 1, linear())(**batch()).logits
        torch.testing.assert_close(found, expected, **TOLERANCE)


def test_half_precision_is_mapped_in_its_own_type():
    one, other = (tiny(seed=seed).to(torch.bfloat16) for seed in (0, 1))
    X = extract(one, tokenizer=tokenizer(), layers=1, pooling="tokens").states[0]
    stitched = stitch(one, other, 1, 1, ProcrustesAligner().fit(X, X))
    assert stitched(**batch()).logits.dtype == torch.bfloat16


# Whose it is.


def test_parameters_are_shared(family):
    one, other, middle = tiny(family), tiny(family, seed=1), linear()
    stitched = stitch(one, other, 1, 2, middle)
    known = {id(p) for model in (one, other, middle) for p in model.parameters()}
    assert {id(p) for p in stitched.parameters()} <= known
    kept = [layers_of(stitched.bottom), layers_of(stitched.top)]
    assert [*map(id, kept[0]), *map(id, kept[1])] == [
        *map(id, layers_of(one)[:1]),
        *map(id, layers_of(other)[2:]),
    ]
    stitched(**batch(family), labels=batch(family)["input_ids"]).loss.backward()
    trained = [
        next(layer.parameters()).grad is not None for m in (one, other) for layer in layers_of(m)
    ]
    assert trained == [True, False, False, False, False, True]
    assert middle.weight.grad is not None


def snapshot(model):
    """All that a model is made of, and the mode of each part."""
    return [(name, id(module), module.training) for name, module in model.named_modules()]


@pytest.mark.parametrize("train", [True, False], ids=["train", "eval"])
def test_the_two_models_are_left_as_they_were(family, train):
    one, other = tiny(family).train(train), tiny(family, seed=1).train(train)
    before = [(snapshot(m), weights_of(m), copy.deepcopy(m).eval()) for m in (one, other)]
    stitched = stitch(one, other, 1, 2, linear())
    with torch.no_grad():
        stitched(**batch(family))
    for model, (parts, weights, twin) in zip((one, other), before, strict=True):
        assert snapshot(model) == parts
        assert all(torch.equal(weights[name], w) for name, w in model.state_dict().items())
        with torch.no_grad():
            found, expected = (m(**batch(family)).logits for m in (model.eval(), twin))
        assert torch.equal(found, expected)


@pytest.mark.parametrize("asked_before", [True, False])
def test_hidden_states_are_those_of_the_upper_half_and_come_once(family, asked_before):
    """Transformers hooks itself to the layers, which the halves and the models share."""
    model, inputs = tiny(family), batch(family)
    if asked_before:
        model(**inputs, output_hidden_states=True)
    stitched = stitch(model, model, 1, 1, nn.Identity())
    with torch.no_grad():
        found = stitched(**inputs, output_hidden_states=True).hidden_states
        expected = model(**inputs, output_hidden_states=True).hidden_states
    assert len(expected) == 4 and len(found) == 3
    for mine, theirs in zip(found, expected[1:], strict=True):
        torch.testing.assert_close(inside(inputs, mine), inside(inputs, theirs), **TOLERANCE)
    assert len(extract(model, tokenizer=tokenizer(family))) == 4


def test_states_that_come_twice_are_refused():
    model, other = tiny(), tiny(seed=1)
    other.bert.encoder = model.bert.encoder
    extract(model, tokenizer=tokenizer())
    with pytest.raises(RuntimeError, match=r"gives \d hidden states, .*3 layers it must be 4"):
        extract(other, tokenizer=tokenizer())


def test_the_upper_half_takes_no_token_ids(family):
    top = stitch(shared(family), shared(family), 1, 1, nn.Identity()).top
    with pytest.raises(TypeError, match=r"takes states, and was given none\. Pass inputs_embeds="):
        top(input_ids=torch.arange(5)[None])


# What is refused.


@pytest.mark.parametrize("name", ["gpt2", "t5 encoder", "t5", "bart"])
@pytest.mark.parametrize("first", [True, False])
def test_other_families_are_refused(name, first):
    models = (shared(name), shared()) if first else (shared(), shared(name))
    with pytest.raises(
        TypeError, match=r"layers are not known here. Pass an encoder of one of .*bert"
    ):
        stitch(*models, 1, 1, nn.Identity())


@pytest.mark.parametrize("model", [None, 3, nn.Linear(2, 2)], ids=repr)
def test_what_is_no_model_is_refused(model):
    for models in ((model, shared()), (shared(), model)):
        with pytest.raises(TypeError, match=f"model is a {type(model).__name__}"):
            stitch(*models, 1, 1, nn.Identity())


@pytest.mark.parametrize(
    ("layers", "error", "rule"),
    [
        ((4, 0), ValueError, "layer_a=4 is out of range: this model has 4 hidden states"),
        ((0, -5), ValueError, "layer_b=-5 is out of range"),
        (("all", 0), TypeError, "layer_a='all' .* an int"),
        ((0, [1]), TypeError, r"layer_b=\[1\] .* an int"),
        ((1.0, 0), TypeError, "layer_a=1.0 .* an int"),
    ],
)
def test_layers_are_checked(layers, error, rule):
    with pytest.raises(error, match=rule):
        stitch(shared(), shared(), *layers, nn.Identity())


def fitted(n_features, n_targets):
    rng = np.random.default_rng(0)
    return CCAAligner().fit(rng.normal(size=(60, n_features)), rng.normal(size=(60, n_targets)))


@pytest.mark.parametrize(
    ("aligner", "error", "rule"),
    [
        (linear(16, 8), ValueError, r"maps \(2, 16\) to \(2, 8\), but .* width 16. Fit it on"),
        (fitted(16, 8), ValueError, r"maps \(2, 16\) to \(2, 8\), but .* width 16. Fit it on"),
        (linear(8, 16), ValueError, "cannot map states of width 16.* Fit it on states of these"),
        (fitted(8, 16), ValueError, "cannot map states of width 16.* Fit it on states of these"),
        (CCAAligner(), NotFittedError, "not fitted yet"),
        ("cca", TypeError, "aligner is a str. Pass a fitted aligner or a torch module"),
        (None, TypeError, "aligner is a NoneType"),
        (np.eye(16), TypeError, "aligner is a ndarray"),
    ],
    ids=[
        "module out",
        "aligner out",
        "module in",
        "aligner in",
        "unfitted",
        "str",
        "None",
        "array",
    ],
)
def test_an_aligner_that_does_not_fit_is_refused(aligner, error, rule):
    with pytest.raises(error, match=rule):
        stitch(shared(), shared(), 1, 1, aligner)


# The loss behind masks.


def loss(model=None, texts=TEXTS, **options):
    settings = {"tokenizer": tokenizer(), "progress": False, **options}
    return masked_lm_loss(model or shared(), texts, **settings)


def recorded(model, **options):
    """Loss, and the ids and logits of each call."""
    calls = []

    def note(module, args, kwargs, found):
        calls.append((kwargs["input_ids"], found.logits))

    handle = model.register_forward_hook(note, with_kwargs=True)
    try:
        return loss(model, **options), calls
    finally:
        handle.remove()


def taken(masked, rows):
    """The text that the masks were put on, out of the list."""
    for i, ids in enumerate(rows):
        if len(ids) == len(masked):
            if ((ids == masked) | (masked == tokenizer().mask_token_id)).all():
                return rows.pop(i)
    raise AssertionError("no text is behind these masks")


@pytest.mark.parametrize("share", [0.15, 0.5, 1])
@pytest.mark.parametrize("name", ["bert", "distilbert", "mpnet"])
def test_is_the_mean_cross_entropy_of_what_is_behind_the_masks(name, share):
    tokens = tokenizer(name)
    found, calls = recorded(
        shared(name), tokenizer=tokens, mask_probability=share, batch_size=1, random_state=3
    )
    rows = [torch.tensor(tokens(text)["input_ids"]) for text in TEXTS]
    special, losses, n_tokens = torch.tensor(tokens.all_special_ids), [], 0
    assert len(calls) == len(TEXTS)
    for (masked,), (logits,) in calls:
        ids = taken(masked, rows)
        asked = masked != ids
        assert not torch.isin(ids[asked], special).any()
        losses += cross_entropy(logits[asked], ids[asked], reduction="none").tolist()
        n_tokens += int((~torch.isin(ids, special)).sum())
    assert found == pytest.approx(np.mean(losses), abs=1e-5)
    assert abs(len(losses) / n_tokens - share) <= 3 * (share * (1 - share) / n_tokens) ** 0.5


@pytest.mark.parametrize("texts", [TEXTS, PAIRS], ids=["texts", "pairs"])
def test_batches_of_every_size_agree(texts):
    expected = loss(texts=texts)
    for size in (1, 4):
        assert loss(texts=texts, batch_size=size) == pytest.approx(expected, abs=1e-5)


def test_two_models_are_asked_the_same():
    (one, mine), (other, theirs) = (recorded(tiny(seed=seed)) for seed in (0, 1))
    assert all(torch.equal(a[0], b[0]) for a, b in zip(mine, theirs, strict=True))
    assert abs(one - other) > 1e-3
    (_, elsewhere), (_, again) = (recorded(tiny(), random_state=state) for state in (1, 0))
    assert not torch.equal(mine[0][0], elsewhere[0][0])
    assert torch.equal(mine[0][0], again[0][0])


def test_a_model_stitched_to_itself_has_its_own_loss(family):
    model, tokens = shared(family), tokenizer(family)
    stitched = stitch(model, model, 1, 1, nn.Identity())
    found, expected = (loss(m, tokenizer=tokens) for m in (stitched, model))
    assert found == pytest.approx(expected, abs=1e-5)


def test_blind_guessing_costs_the_logarithm_of_the_vocabulary():
    model = tiny()
    with torch.no_grad():
        model.cls.predictions.transform.LayerNorm.weight.zero_()
        model.cls.predictions.transform.LayerNorm.bias.zero_()
        model.cls.predictions.bias.zero_()
    assert loss(model) == pytest.approx(np.log(N_TOKENS))


def test_by_name_it_is_loaded_with_its_head(tmp_path):
    assert loss(saved(tmp_path), tokenizer=None) == pytest.approx(loss(), abs=1e-6)


def test_the_model_and_the_generators_are_left_as_they_were():
    model = tiny().train()
    weights, states = weights_of(model), (torch.get_rng_state(), np.random.get_state()[1].copy())
    assert loss(model) == pytest.approx(loss())
    assert all(module.training for module in model.modules())
    assert all(torch.equal(weights[name], w) for name, w in model.state_dict().items())
    assert torch.equal(torch.get_rng_state(), states[0])
    np.testing.assert_array_equal(np.random.get_state()[1], states[1])


def with_head(kind):
    size = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    return kind(BertConfig(vocab_size=N_TOKENS, **size))


@pytest.mark.parametrize(
    ("options", "error", "rule"),
    [
        ({"tokenizer": tokenizer("gpt2")}, ValueError, "has no mask token. Pass one that has"),
        ({"model": with_head(BertModel)}, ValueError, "BertModel has no masked-language head"),
        (
            {"model": with_head(BertForSequenceClassification)},
            ValueError,
            "no masked-language head. Load it with AutoModelForMaskedLM",
        ),
        (
            {"model": with_head(BertForTokenClassification)},
            ValueError,
            "no masked-language head. Load it with AutoModelForMaskedLM",
        ),
        ({"mask_probability": 1e-9}, ValueError, "masked none of .* tokens. Raise it or pass more"),
        ({"mask_probability": 0}, ValueError, "mask_probability=0 "),
        ({"mask_probability": -0.1}, ValueError, "mask_probability=-0.1 "),
        ({"mask_probability": 1.5}, ValueError, "mask_probability=1.5 "),
        ({"batch_size": 0}, ValueError, "batch_size=0 must be at least 1"),
        ({"texts": []}, ValueError, "texts is empty"),
        ({"texts": ["it rains", None]}, TypeError, r"texts\[1\] is None"),
        ({"model": 3}, TypeError, "model is a int"),
        ({"tokenizer": None}, ValueError, "Pass tokenizer="),
    ],
)
def test_bad_input_is_refused(options, error, rule):
    with pytest.raises(error, match=rule):
        loss(**options)
