"""The transformer that scikit-learn combines with everything else: texts in, one layer out."""

import pickle
import shutil

import joblib
import numpy as np
import pandas as pd
import pytest
import torch
from _huggingface import (
    SENTENCES,
    TEXTS,
    assert_close,
    byte_tokenizer,
    extract,
    saved,
    shared,
    tiny,
    tokenizer,
    watched,
)
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

from sklearn_bijection import CCAAligner, ProcrustesAligner
from sklearn_bijection.huggingface import HiddenStateExtractor, clear_cache
from sklearn_bijection.huggingface._cache import StateCache

MANY = SENTENCES[:60]
PER_TEXT = 4 * 16 * 4
LAYERS = {"hiddenstateextractor__layer": [0, 1, 2, -1]}


@pytest.fixture(autouse=True)
def nothing_is_kept():
    clear_cache()
    yield
    clear_cache()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A tiny model by name."""
    return saved(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def y():
    """States of the second layer of another model."""
    return extract(tiny(seed=1), MANY, tokenizer=tokenizer(), layers=2)[0]


def live(model=None, **options):
    return HiddenStateExtractor(model or shared(), **{"tokenizer": tokenizer(), **options})


def asked(sizes):
    """Number of texts, without those that are asked alone to see how many layers there are."""
    return sum(size for size in sizes if size > 1)


# What it gives.


@pytest.mark.parametrize(
    ("layer", "pooling"),
    [(0, "mean"), (2, "cls"), (-1, "last"), (-4, "max"), (np.int64(1), "padded_mean")],
)
def test_gives_one_layer_of_all(folder, layer, pooling):
    options = {"layer": layer, "pooling": pooling}
    expected = extract(shared(), tokenizer=tokenizer(), layers=layer, pooling=pooling)[0]
    for one in (live(**options), HiddenStateExtractor(folder, **options)):
        assert one.fit(TEXTS) is one
        assert_close(one.transform(TEXTS), expected)
        assert_close(clone(one).fit_transform(TEXTS), expected)
        assert (one.n_layers_, one.width_) == (4, 16)


@pytest.mark.parametrize("cache_size", [0, 2**30])
def test_settings_are_passed_on(cache_size):
    with pytest.warns(UserWarning, match="of 11 texts have more than max_length=10") as said:
        found = live(max_length=10, dtype="float16", cache_size=cache_size).fit_transform(TEXTS)
    assert len(said) == 1 and found.dtype == np.float16
    with pytest.warns(UserWarning, match="max_length"):
        expected = extract(shared(), tokenizer=tokenizer(), layers=-1, max_length=10)[0]
    assert_close(found, expected, atol=1e-2)


def test_a_generator_is_read_once():
    found = live().fit_transform(text for text in TEXTS)
    assert_close(found, live().fit_transform(TEXTS))
    chain = make_pipeline(live(), StandardScaler())
    assert chain.fit_transform(iter(TEXTS)).shape == (11, 16)
    assert_close(chain[0].transform(iter(TEXTS)), found)


def test_progress_is_shown_when_wanted(capsys):
    live().fit_transform(TEXTS)
    assert capsys.readouterr().err == ""
    live(progress=True, layer=1, max_length=99).fit_transform(TEXTS)
    assert "11/11" in capsys.readouterr().err


# In a pipeline and a search.


def test_a_pipeline_maps_texts_and_walks_back_to_states(folder, y):
    chain = make_pipeline(HiddenStateExtractor(folder), StandardScaler(), CCAAligner())
    chain.fit(MANY, y)
    X = extract(shared(), MANY, tokenizer=tokenizer(), layers=-1)[0]
    scaler = StandardScaler().fit(X)
    aligner = CCAAligner().fit(scaler.transform(X), y)
    assert_close(chain.transform(MANY), aligner.transform(scaler.transform(X)), atol=1e-4)
    assert chain.score(MANY, y) == pytest.approx(aligner.score(scaler.transform(X), y), abs=1e-4)
    back = scaler.inverse_transform(aligner.inverse_transform(y))
    assert_close(chain[1:].inverse_transform(y), back, atol=1e-4)
    assert not hasattr(chain, "inverse_transform")


def search(extractor, y, **options):
    chain = make_pipeline(extractor, StandardScaler(), ProcrustesAligner())
    return GridSearchCV(chain, LAYERS, cv=3, **options).fit(MANY, y)


@pytest.mark.parametrize("named", [True, False], ids=["by name", "live"])
def test_a_search_over_layers_asks_the_model_once_for_each_text(folder, y, named):
    def one(**options):
        return HiddenStateExtractor(folder, **options) if named else live(**options)

    with watched() as sizes:
        found = search(one(), y)
    assert asked(sizes) == len(MANY)
    with watched() as sizes:
        again = search(one(cache_size=0), y)
    # Training and test rows of each fold and layer, and all rows for the best.
    assert asked(sizes) == 3 * 4 * len(MANY) + len(MANY)
    scores = found.cv_results_["mean_test_score"]
    assert_close(scores, again.cv_results_["mean_test_score"])
    assert np.ptp(scores) > 0.01 and found.best_params_ == again.best_params_


def test_two_threads_find_what_one_finds(y):
    one = search(live(), y)
    clear_cache()
    with joblib.parallel_config("threading", n_jobs=2):
        two = search(live(), y)
    assert_close(*(found.cv_results_["mean_test_score"] for found in (one, two)))


def test_two_processes_find_what_one_finds(folder, y):
    one, two = (search(HiddenStateExtractor(folder), y, n_jobs=n_jobs) for n_jobs in (None, 2))
    assert_close(*(found.cv_results_["mean_test_score"] for found in (one, two)))
    assert one.best_params_ == two.best_params_


# Copies and pickles.


def test_clones_share_a_live_model():
    one = live(layer=1, pooling="max", dtype="float16", cache_size=7).fit(TEXTS)
    twin = clone(one)
    assert twin.model is one.model and twin.tokenizer is one.tokenizer
    assert twin.get_params() == one.get_params()
    with pytest.raises(NotFittedError):
        twin.transform(TEXTS)


def test_clones_give_the_same_kind_of_table():
    one = live().set_output(transform="pandas")
    assert isinstance(clone(one).fit_transform(TEXTS), pd.DataFrame)
    assert isinstance(clone(make_pipeline(one)).fit_transform(TEXTS), pd.DataFrame)
    clone(one).set_output(transform="default")
    assert isinstance(one.fit_transform(TEXTS), pd.DataFrame)


def test_a_pickle_holds_the_name_and_no_weights(folder):
    one = HiddenStateExtractor(folder, layer=1).fit(TEXTS)
    expected = one.transform(TEXTS)
    written = pickle.dumps(one)
    assert len(written) < 2000
    np.testing.assert_array_equal(pickle.loads(written).transform(TEXTS), expected)


def test_a_live_model_is_not_pickled():
    with pytest.raises(TypeError, match=r"live BertForMaskedLM, .* save_pretrained and pass the"):
        pickle.dumps(live())


# Frames.


def test_a_frame_keeps_the_index_of_a_series():
    texts = pd.Series(TEXTS, index=[f"row {i}" for i in range(11)], name="text")
    one = live().set_output(transform="pandas")
    names = [f"hiddenstateextractor{i}" for i in range(16)]
    for found in (one.fit_transform(texts), one.fit(texts).transform(texts)):
        expected = pd.DataFrame(live().fit_transform(TEXTS), texts.index, names)
        pd.testing.assert_frame_equal(found, expected)
    assert list(one.fit_transform(TEXTS).index) == list(range(11))
    chain = make_pipeline(live(), StandardScaler()).set_output(transform="pandas")
    pd.testing.assert_index_equal(chain.fit_transform(texts).index, texts.index)


def test_features_are_named_and_counted():
    one = live().fit(TEXTS)
    assert list(one.get_feature_names_out()) == [f"hiddenstateextractor{i}" for i in range(16)]
    tags = get_tags(one)
    assert tags.input_tags.string and not tags.input_tags.two_d_array


# What is kept.


def test_texts_that_are_kept_are_not_asked_again():
    one = live().fit(TEXTS)
    with watched() as sizes:
        found = one.transform([*TEXTS, *TEXTS])
    assert asked(sizes) == 11
    with watched() as sizes:
        assert_close(
            one.set_params(layer=1).transform(TEXTS[::-1]), live(layer=1).fit_transform(TEXTS)[::-1]
        )
        one.transform([*TEXTS, SENTENCES[50], SENTENCES[51]])
    assert asked(sizes) == 2
    found[:] = np.nan
    assert np.isfinite(one.set_params(layer=-1).transform(TEXTS)).all()
    clear_cache()
    with watched() as sizes:
        one.transform(TEXTS)
    assert asked(sizes) == 11


@pytest.mark.parametrize("room", [0, 5, 17, 20])
def test_whatever_is_kept_the_result_is_the_same(room):
    one = live(cache_size=room * PER_TEXT, layer=2).fit(TEXTS)
    expected = extract(shared(), MANY, tokenizer=tokenizer(), layers=2)[0]
    rng = np.random.default_rng(0)
    for size in (4, 17, 4, 30, 9, 17, 1):
        rows = rng.integers(0, len(MANY), size)
        assert_close(one.transform([MANY[i] for i in rows]), expected[rows])


def test_what_was_not_used_longest_goes_first():
    cache, limit = StateCache(), 3 * PER_TEXT
    states = np.arange(4 * 3 * 16, dtype=np.float32).reshape(4, 3, 16)
    cache.put("model", ["a", "b", "c"], states, limit)
    np.testing.assert_array_equal(cache.take("model", ["c", "a"], 1), states[1, [2, 0]])
    cache.put("model", ["d"], states[:, :1], limit)
    assert cache.missing("model", ["a", "b", "c", "d", "b"]) == ["b"]
    assert cache.take("model", ["a", "b"], 0) is None
    assert cache.missing("other", ["a"]) == ["a"]
    cache.clear()
    assert cache.missing("model", ["a", "c"]) == ["a", "c"]


def test_what_is_kept_is_a_copy():
    # A view would hold on to the states of all other texts of its call.
    cache, states = StateCache(), np.ones((4, 2, 16), dtype=np.float32)
    cache.put("model", ["a", "b"], states, 10**6)
    states[:] = np.nan
    assert (cache.take("model", ["a"], 0) == 1).all()


def test_what_is_put_twice_counts_once():
    cache, states = StateCache(), np.ones((4, 2, 16), dtype=np.float32)
    for _ in range(5):
        cache.put("model", ["a", "b"], states, 3 * PER_TEXT)
    cache.put("model", ["c"], states[:, :1], 3 * PER_TEXT)
    assert cache.missing("model", ["a", "b", "c"]) == []


def test_a_folder_keeps_states_for_others(folder, tmp_path):
    expected = extract(shared(), tokenizer=tokenizer())
    for i, memory in enumerate([str(tmp_path), tmp_path, joblib.Memory(str(tmp_path), verbose=0)]):
        clear_cache()
        one = HiddenStateExtractor(folder, memory=memory, layer=i)
        with watched() as sizes:
            assert_close(one.fit(TEXTS).transform(TEXTS), expected[i])
        assert asked(sizes) == (11 if i == 0 else 0)


def scaled(factor):
    return lambda hidden, mask: factor * hidden[:, 0]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({}, {"pooling": "max"}),
        ({}, {"dtype": "float64"}),
        ({}, {"max_length": 500}),
        ({}, {"model": tiny(seed=1)}),
        ({}, {"tokenizer": byte_tokenizer()}),
        ({"tokenizer": byte_tokenizer(TEXTS[:9])}, {"tokenizer": byte_tokenizer(TEXTS[8:])}),
        ({"pooling": scaled(1)}, {"pooling": scaled(2)}),
    ],
    ids=["pooling", "dtype", "max_length", "model", "tokenizer", "tokenizers alike", "callables"],
)
@pytest.mark.parametrize("in_memory", [True, False], ids=["cache", "folder"])
def test_what_is_kept_is_not_confused(one, other, in_memory, tmp_path):
    place = {} if in_memory else {"memory": str(tmp_path)}
    for options in (one, other, one):
        expected = live(**options, cache_size=0).fit_transform(TEXTS)
        found = live(**options, **place).fit_transform(TEXTS)
        assert found.dtype == expected.dtype
        assert_close(found, expected)


def test_a_model_that_was_trained_on_is_asked_again():
    model = tiny()
    one = live(model).fit(TEXTS)
    before = one.transform(TEXTS)
    with torch.no_grad():
        model.bert.encoder.layer[2].output.LayerNorm.bias += 1
    assert_close(one.transform(TEXTS), before + 1)


def test_new_weights_in_the_same_folder_are_noticed(tmp_path):
    one = HiddenStateExtractor(saved(tmp_path)).fit(TEXTS)
    one.transform(TEXTS)
    tiny(seed=1).save_pretrained(tmp_path)
    expected = extract(tiny(seed=1), tokenizer=tokenizer(), layers=-1)[0]
    assert_close(one.transform(TEXTS), expected)
    assert_close(clone(one).fit_transform(TEXTS), expected)


def test_a_new_tokenizer_in_the_same_folder_is_noticed(folder, tmp_path):
    byte_tokenizer(TEXTS[:9]).save_pretrained(tmp_path)
    one = HiddenStateExtractor(folder, tokenizer=str(tmp_path)).fit(TEXTS)
    one.transform(TEXTS)
    shutil.rmtree(tmp_path)
    byte_tokenizer(TEXTS[8:]).save_pretrained(tmp_path)
    expected = extract(shared(), tokenizer=byte_tokenizer(TEXTS[8:]), layers=-1)[0]
    assert_close(one.transform(TEXTS), expected)


# What is refused.


def test_is_fitted_before_it_transforms():
    with pytest.raises(NotFittedError):
        live().transform(TEXTS)
    with pytest.raises(NotFittedError):
        live().get_feature_names_out()


@pytest.mark.parametrize(
    ("options", "error", "rule"),
    [
        ({"layer": 4}, ValueError, r"layer=4 is out of range: this model has 4 hidden states"),
        ({"layer": -5}, ValueError, r"layer=-5 is out of range"),
        ({"layer": [0, 1]}, TypeError, r"layer=\[0, 1\] .* an int"),
        ({"layer": "all"}, TypeError, "layer='all' .* an int"),
        ({"layer": 1.0}, TypeError, "layer=1.0 .* an int"),
        ({"layer": None}, TypeError, "layer=None .* an int"),
        ({"pooling": "tokens"}, ValueError, "pooling='tokens' gives a text more than one row"),
        ({"pooling": "words"}, ValueError, "Choose from 'mean', .*or call extract_hidden_states"),
        ({"pooling": "average"}, ValueError, "pooling='average' is not known"),
        ({"batch_size": 0}, ValueError, "batch_size=0 must be at least 1"),
        ({"dtype": "int8"}, ValueError, "dtype='int8' is not a floating type"),
        ({"max_length": 1}, ValueError, "leaves no room"),
        ({"model": 3}, TypeError, "model is a int"),
        ({"tokenizer": None}, ValueError, "Pass tokenizer="),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_bad_settings_are_refused_by_fit(options, error, rule):
    with pytest.raises(error, match=rule):
        live(**options).fit(TEXTS)


def test_a_layer_that_is_set_later_is_checked_too():
    with pytest.raises(ValueError, match="layer=9 is out of range"):
        live().fit(TEXTS).set_params(layer=9).transform(TEXTS)


@pytest.mark.parametrize(
    ("texts", "error", "rule"),
    [
        ([], ValueError, "texts is empty"),
        ("it rains", TypeError, "texts is a single str"),
        (["it rains", None], TypeError, r"texts\[1\] is None"),
        (pd.Series(["it rains", np.nan]), TypeError, r"texts\[1\] is nan"),
        (pd.DataFrame({"text": TEXTS}), TypeError, "texts is a DataFrame"),
    ],
    ids=["empty", "str", "None", "nan", "frame"],
)
@pytest.mark.parametrize("method", ["fit", "transform", "fit_transform"])
def test_bad_texts_are_refused(texts, error, rule, method):
    with pytest.raises(error, match=rule):
        getattr(live().fit(TEXTS), method)(texts)
