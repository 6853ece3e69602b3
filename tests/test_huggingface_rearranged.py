"""Layers removed, exchanged and shared: against models built that way, and everything put back."""

import copy
import re
import threading
from contextlib import ExitStack

import numpy as np
import pytest
import torch
from _huggingface import (
    RELATIVES,
    SENTENCES,
    assert_close,
    extract,
    shared,
    tiny,
    tokenizer,
    weights_of,
)
from torch import nn
from transformers import BertConfig, BertLMHeadModel

from sklearn_bijection.huggingface import (
    HiddenStateExtractor,
    clear_cache,
    component_io,
    extract_attentions,
    masked_lm_loss,
    removed_layers,
    reordered_layers,
    shared_layers,
    stitch,
    swapped_layers,
)

TEXTS = [text for text in SENTENCES[:30] if len(text) < 60][:4]
KNOWN = ["bert", "roberta", "distilbert", "mpnet", "electra", *RELATIVES]
#: An operation, its arguments, and which layer then stands in each place.
OPERATIONS = {
    "without the first": (removed_layers, (0,), [1, 2]),
    "without the last": (removed_layers, ([-1],), [0, 1]),
    "the middle alone": (removed_layers, ([0, 2, 0],), [1]),
    "swapped": (swapped_layers, (0, -1), [2, 1, 0]),
    "swapped with itself": (swapped_layers, (1, 1), [0, 1, 2]),
    "reordered": (reordered_layers, ([2, 0, 1],), [2, 0, 1]),
    "reordered from the end": (reordered_layers, (np.array([-1, -2, -3]),), [2, 1, 0]),
    "shared": (shared_layers, ({2: 0},), [0, 1, 0]),
    "all shared": (shared_layers, ({0: 1, -1: 1},), [1, 1, 1]),
    "exchanged by sharing": (shared_layers, ({0: 1, 1: 0},), [1, 0, 2]),
}


#: One family with every operation, and every other with the one that leaves a layer out.
EVERY = [
    *(pytest.param("bert", name, id=name) for name in OPERATIONS),
    *(pytest.param(family, "without the first", id=family) for family in KNOWN[1:]),
]
for_every_case = pytest.mark.parametrize(("family", "name"), EVERY)


def context(model, name):
    change, arguments, _ = OPERATIONS[name]
    return change(model, *arguments)


def order_of(name):
    return OPERATIONS[name][2]


@pytest.fixture(autouse=True)
def nothing_is_kept():
    clear_cache()
    yield
    clear_cache()


def states_of(model, family="bert", **options):
    return extract(model, TEXTS, tokenizer=tokenizer(family), **options)


def loss(model, family="bert"):
    return masked_lm_loss(model, TEXTS, tokenizer=tokenizer(family), progress=False)


def layers_of(model):
    stack = getattr(model.base_model, "encoder", None) or model.base_model.transformer
    return stack.layer


def built(family, order):
    """A model made with so many layers, whose weights are copies of those of the shared model."""
    n_layers = "n_layers" if family == "distilbert" else "num_hidden_layers"
    model, weights = tiny(family, seed=5, **{n_layers: len(order)}), shared(family).state_dict()
    taken = {
        name: weights[re.sub(r"(?<=\.layer\.)\d+", lambda m: str(order[int(m[0])]), name)]
        for name in model.state_dict()
    }
    model.load_state_dict(taken)
    return model


def snapshot(model):
    """All that a model is made of, and what it says of itself."""
    modules = [(name, id(module), module.training) for name, module in model.named_modules()]
    return modules, list(model.state_dict()), model.config.to_dict(), id(layers_of(model))


# What a changed model computes.


@for_every_case
def test_it_is_a_model_built_that_way(family, name):
    model, expected = tiny(family), built(family, order_of(name))
    with context(model, name) as changed:
        assert changed is model
        assert model.config.num_hidden_layers == len(layers_of(model)) == len(order_of(name))
        assert model.state_dict().keys() == expected.state_dict().keys()
        assert_close(states_of(model, family), states_of(expected, family), atol=0)
        assert_close(states_of(model.base_model, family), states_of(expected, family), atol=0)
        assert loss(model, family) == loss(expected, family)


@pytest.mark.parametrize("name", ["without the first", "reordered", "all shared"])
@pytest.mark.parametrize("family", ["bert", "mpnet", "distilbert"])
def test_attention_and_parts_of_layers_are_those_of_the_changed_model(family, name):
    model, options = tiny(family), {"tokenizer": tokenizer(family), "progress": False}
    with context(model, name):
        attentions = extract_attentions(model, TEXTS, **options)
        found = component_io(model, TEXTS, "ffn", **options)
    expected = built(family, order_of(name))
    assert_close(attentions, extract_attentions(expected, TEXTS, **options))
    assert_close(found.outputs, component_io(expected, TEXTS, "ffn", **options).outputs)


@pytest.mark.parametrize("family", KNOWN)
def test_swapping_twice_is_nothing(family):
    model = tiny(family)
    before = loss(model, family)
    with swapped_layers(model, 0, 2):
        once = loss(model, family)
        with swapped_layers(model, 0, 2):
            assert loss(model, family) == before
        assert loss(model, family) == once
    assert abs(once - before) > 1e-3


def test_contexts_nest_and_numbers_are_those_of_the_moment():
    model = tiny()
    before = snapshot(model)
    with removed_layers(model, 0), swapped_layers(model, 0, 1), shared_layers(model, {1: 0}):
        assert_close(states_of(model), states_of(built("bert", [2, 2])), atol=0)
    assert snapshot(model) == before


def test_a_training_step_changes_the_layer_that_is_shared():
    model = tiny()
    with shared_layers(model, {1: 0, 2: 0}):
        names = {name for name, _ in model.named_parameters() if ".layer." in name}
        assert {name.split(".layer.")[1][0] for name in names} == {"0"}
        ids = torch.arange(5, 9)[None]
        model(input_ids=ids, labels=ids).loss.backward()
    trained = [next(layer.parameters()).grad is not None for layer in layers_of(model)]
    assert trained == [True, False, False]


# What is put back.


class Broken(Exception):
    """Something that goes wrong inside."""


@pytest.mark.parametrize("fails", [True, False], ids=["error", "no error"])
@for_every_case
def test_the_model_is_put_back(family, name, fails):
    model = tiny(family).train()
    layers_of(model)[1].eval()
    before, weights = snapshot(model), weights_of(model)
    with ExitStack() as stack:
        if fails:
            stack.enter_context(pytest.raises(Broken))
        stack.enter_context(context(model, name))
        states_of(model, family)
        if fails:
            raise Broken
    assert snapshot(model) == before
    assert all(torch.equal(weights[name], w) for name, w in model.state_dict().items())


@for_every_case
def test_the_loss_is_restored_to_the_last_bit(family, name):
    model = tiny(family)
    before = loss(model, family)
    with context(model, name):
        inside = loss(model, family)
    assert loss(model, family) == before
    assert (inside == before) == (order_of(name) == [0, 1, 2])


@pytest.mark.parametrize("name", OPERATIONS)
def test_modes_inside_are_those_of_the_model(name):
    model = tiny()
    for train in (True, False):
        with context(model.train(train), name):
            assert all(module.training == train for module in model.modules())


@for_every_case
def test_a_new_model_has_all_its_states_after_it_was_first_asked_inside(family, name):
    """Transformers readies the layers for that once, when it is first asked."""
    model = tiny(family)
    with context(model, name):
        states_of(model, family)
    assert_close(states_of(model, family), states_of(shared(family), family), atol=0)


def test_generators_are_left_as_they_were():
    model, states = tiny().train(), (torch.get_rng_state(), np.random.get_state()[1].copy())
    with removed_layers(model, 0):
        pass
    assert torch.equal(torch.get_rng_state(), states[0])
    np.testing.assert_array_equal(np.random.get_state()[1], states[1])


@pytest.mark.parametrize("first_out", [0, 1, 2])
@pytest.mark.parametrize("second_out", [0, 1])
def test_contexts_may_end_in_any_order(first_out, second_out):
    model = tiny()
    before, config = snapshot(model), model.config
    lasting = []
    for change, arguments in (
        (swapped_layers, (0, 1)),
        (removed_layers, (2,)),
        (shared_layers, ({0: 1},)),
    ):
        lasting.append(change(model, *arguments))
        lasting[-1].__enter__()
        latest = list(layers_of(model))
    for place in (first_out, second_out, 0):
        was_latest = place == len(lasting) - 1
        lasting.pop(place).__exit__(None, None, None)
        if lasting and not was_latest:
            assert list(layers_of(model)) == latest
        latest = list(layers_of(model))
        assert model.config.num_hidden_layers == len(latest)
    assert snapshot(model) == before and model.config is model.bert.config is config


def test_two_threads_leave_the_model_as_it_was():
    model = tiny()
    before, inside, ended = snapshot(model), threading.Barrier(2), threading.Event()

    def one():
        with removed_layers(model, 0):
            inside.wait(30)
            inside.wait(30)
        ended.set()

    def two():
        inside.wait(30)
        with removed_layers(model, 0):
            inside.wait(30)
            ended.wait(30)

    threads = [threading.Thread(target=work) for work in (one, two)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert snapshot(model) == before


def test_models_of_one_configuration_do_not_disturb_each_other():
    model = tiny()
    other = type(model)(model.config)
    assert other.config is model.config
    with removed_layers(model, [0, 1]):
        assert (model.config.num_hidden_layers, other.config.num_hidden_layers) == (1, 3)
        assert (
            model.config is model.bert.config is model.bert.encoder.layer[0].attention.self.config
        )
    assert model.config is model.bert.config is other.config
    assert model.config.num_hidden_layers == 3


def test_what_else_is_set_inside_stays():
    model = tiny()
    with removed_layers(model, 0):
        model.set_attn_implementation("eager")
    kinds = {layer.attention.self.config._attn_implementation for layer in layers_of(model)}
    assert kinds == {model.config._attn_implementation} == {"eager"}


@pytest.mark.parametrize("family", ["bert", "roberta", "electra"])
def test_the_model_is_not_run(family):
    """Nor could it be, on one token, where it goes through its tokens two at a time."""
    model, seen = tiny(family, chunk_size_feed_forward=2), []
    layers_of(model)[0].register_forward_hook(lambda *args: seen.append(args))
    with removed_layers(model, 0):
        assert not seen
    assert not seen
    model(input_ids=torch.arange(4)[None])
    assert len(seen) == 1


def test_half_of_a_stitched_model_can_be_changed():
    model, other = tiny(), tiny(seed=1)
    before = snapshot(other), snapshot(model)
    stitched, expected = (
        stitch(model, other, 2, cut, nn.Identity())(input_ids=ids).logits
        for ids, cut in ((torch.arange(5, 9)[None], 1), (torch.arange(5, 9)[None], 2))
    )
    whole = stitch(model, other, 2, 1, nn.Identity())
    ids = torch.arange(5, 9)[None]
    with removed_layers(whole.top, 0):
        assert torch.equal(whole(input_ids=ids).logits, expected)
        assert (snapshot(other), snapshot(model)) == before
    with swapped_layers(whole.bottom, 0, 1):
        assert not torch.equal(whole(input_ids=ids).logits, stitched)
    assert torch.equal(whole(input_ids=ids).logits, stitched)
    assert (snapshot(other), snapshot(model)) == before


@pytest.mark.filterwarnings("ignore")
def test_a_copy_with_weights_of_its_own_in_each_place_can_be_saved(tmp_path):
    model = tiny()
    with shared_layers(model, {1: 0}):
        with pytest.raises(RuntimeError, match="shared"):
            model.save_pretrained(tmp_path)
        twin = copy.deepcopy(model)
        twin.bert.encoder.layer = nn.ModuleList(map(copy.deepcopy, twin.bert.encoder.layer))
        twin.save_pretrained(tmp_path)
        found = type(model).from_pretrained(tmp_path)
        assert_close(states_of(found), states_of(model))


# What is kept of one model is not given out for the other.


@pytest.mark.parametrize("kept", ["cache", "memory"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_what_an_extractor_keeps_is_told_apart(name, kept, tmp_path):
    model = tiny()
    options = {"memory": str(tmp_path)} if kept == "memory" else {}
    one = HiddenStateExtractor(model, tokenizer=tokenizer(), **options).fit(TEXTS)
    before = one.transform(TEXTS)
    expected = states_of(built("bert", order_of(name)))[-1]
    with context(model, name):
        assert_close(one.transform(TEXTS), expected)
    assert_close(one.transform(TEXTS), before, atol=0)
    assert (np.abs(expected - before).max() < 1e-5) == (order_of(name) == [0, 1, 2])


@pytest.mark.parametrize("kept", ["cache", "memory"])
@pytest.mark.parametrize("again", [False, True], ids=["asked", "kept"])
def test_a_layer_that_is_gone_is_out_of_range(kept, again, tmp_path):
    model = tiny()
    options = {"memory": str(tmp_path)} if kept == "memory" else {}
    one = HiddenStateExtractor(model, tokenizer=tokenizer(), layer=3, **options).fit(TEXTS)
    before = one.transform(TEXTS)
    with removed_layers(model, 0):
        if again:
            one.set_params(layer=-1).transform(TEXTS)
            one.set_params(layer=3)
        with pytest.raises(ValueError, match="layer=3 is out of range: this model has 3 hidden"):
            one.transform(TEXTS)
    assert_close(one.transform(TEXTS), before, atol=0)


def test_a_file_that_was_begun_outside_is_refused_inside(tmp_path):
    model, out = tiny(), tmp_path / "states.npy"
    states_of(model, out=out)
    with swapped_layers(model, 0, 1), pytest.raises(ValueError, match="begun with other settings"):
        states_of(model, out=out)
    states_of(model, out=out)


# What is refused.


class Wrapper(nn.Module):
    """Around a model, with its configuration and nothing else of it."""

    def __init__(self, model):
        super().__init__()
        self.model, self.config = model, model.config


def decoder():
    size = {"hidden_size": 8, "num_hidden_layers": 3, "num_attention_heads": 2}
    return BertLMHeadModel(BertConfig(vocab_size=50, is_decoder=True, **size))


EVERYWHERE = [
    (removed_layers, (0,)),
    (swapped_layers, (0, 1)),
    (reordered_layers, ([0, 1, 2],)),
    (shared_layers, ({0: 1},)),
]


@pytest.mark.parametrize(("change", "arguments"), EVERYWHERE)
@pytest.mark.parametrize(
    ("model", "rule"),
    [
        ("bert-base-uncased", "model='bert-base-uncased' is a name.* pass the live model"),
        (None, "model is a NoneType"),
        (nn.Linear(2, 2), "model is a Linear"),
        (
            shared("gpt2"),
            "GPT2LMHeadModel, whose layers are not known here. Pass an encoder .*bert",
        ),
        (shared("bart"), "BartForConditionalGeneration, whose layers are not known"),
        (decoder(), "BertLMHeadModel that is a decoder. Pass an encoder"),
        (stitch(shared(), shared(), 1, 1, nn.Identity()), "model is stitched. Pass one of the two"),
        (Wrapper(shared()), "Wrapper without encoder.layer, .* Pass the transformers model itself"),
    ],
    ids=["name", "None", "module", "gpt2", "bart", "decoder", "stitched", "wrapped"],
)
def test_other_models_are_refused(change, arguments, model, rule):
    with pytest.raises(TypeError, match=rule), change(model, *arguments):
        pass


@pytest.mark.parametrize(
    ("change", "arguments", "error", "rule"),
    [
        (removed_layers, (3,), ValueError, "layers=3 is out of range: this model has 3 layers"),
        (removed_layers, ([0, -4],), ValueError, r"layers=\[0, -4\] is out of range"),
        (removed_layers, ([],), ValueError, "layers is empty"),
        (
            removed_layers,
            ("all",),
            ValueError,
            "layers='all' are all 3 layers.* Leave at least one",
        ),
        (removed_layers, ([0, 1, -1],), ValueError, "are all 3 layers of this model"),
        (removed_layers, (0.5,), TypeError, "layers=0.5 is not understood"),
        (
            swapped_layers,
            (3, 0),
            ValueError,
            "i=3 is out of range: this model has 3 layers, 0 .. 2",
        ),
        (swapped_layers, (0, -4), ValueError, "j=-4 is out of range"),
        (swapped_layers, ("0", 1), TypeError, "i='0' is not a layer. Pass an int"),
        (swapped_layers, (0, True), TypeError, "j=True is not a layer"),
        (reordered_layers, ([0, 1],), ValueError, r"order=\[0, 1\] must name each of the 3 layers"),
        (reordered_layers, ([0, 1, -2],), ValueError, "must name each .*once.* or shared_layers"),
        (reordered_layers, ([],), ValueError, r"order=\[\] must name each of the 3"),
        (reordered_layers, (2,), ValueError, "order=2 must name each of the 3 layers"),
        (reordered_layers, ([0, 1, 3],), ValueError, "order=3 is out of range"),
        (reordered_layers, ("all",), TypeError, "order='all' is not a layer"),
        (shared_layers, ({3: 0},), ValueError, "sources=3 is out of range"),
        (shared_layers, ({0: -4},), ValueError, "sources=-4 is out of range"),
        (
            shared_layers,
            ({2: 0, -1: 1},),
            ValueError,
            r"sources=\{2: 0, -1: 1\} names a place twice",
        ),
        (shared_layers, ({"a": 0},), TypeError, "sources='a' is not a layer"),
        (shared_layers, ([0, 1],), TypeError, r"sources=\[0, 1\] is not a mapping. Pass \{place"),
    ],
    ids=str,
)
def test_arguments_are_checked_before_anything_is_changed(change, arguments, error, rule):
    model = tiny()
    before = snapshot(model)
    with pytest.raises(error, match=rule), change(model, *arguments):
        pass
    assert snapshot(model) == before
