"""Hidden states that go to a file: what is in it, and what happens when a run breaks off."""

import json
import shutil
from collections import namedtuple

import numpy as np
import pytest
import torch
from _huggingface import PAIRS, TEXTS, extract, saved, shared, tiny, tokenizer, watched

#: Every run first asks for the states of one text, to see how many layers there are.
PROBE = 1
STOPS = [RuntimeError("out of memory"), KeyboardInterrupt()]


@pytest.fixture
def out(tmp_path):
    return tmp_path / "states.npy"


def write(out, texts=TEXTS, model=None, **options):
    settings = {"tokenizer": tokenizer(), "batch_size": 3, **options}
    return extract(model or shared(), texts, out=out, **settings)


def break_off(out, batches, error=STOPS[0], **options):
    """A run that fails after some batches; what it was asked."""
    with watched(fails_at=PROBE + batches, error=error) as sizes, pytest.raises(type(error)):
        write(out, **options)
    return sizes


def names_in(folder):
    return sorted(file.name for file in folder.iterdir())


@pytest.mark.parametrize(
    ("pooling", "layers", "kind"),
    [
        ("mean", "all", "float32"),
        ("max", 2, "float64"),
        ("padded_mean", [0, -1], "float16"),
        ("tokens", [0, -1], "float32"),
        ("words", "all", "float16"),
    ],
)
def test_holds_what_would_be_in_memory(out, layers, kind, pooling):
    options = {"layers": layers, "dtype": kind, "pooling": pooling}
    found, expected = write(out, **options), write(None, **options)
    if pooling in ("tokens", "words"):
        for name in ("text", "word", "token", "digest"):
            np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
        found, expected = found.states, expected.states
    assert isinstance(found, np.memmap) and not found.flags.writeable
    assert found.dtype == kind
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.load(out), expected)


def test_the_folder_holds_the_array_and_how_it_was_made(out):
    write(str(out))
    assert names_in(out.parent) == ["states.npy", "states.npy.json"]
    note = json.loads(out.with_name("states.npy.json").read_text("utf-8"))
    assert note["done"] == len(TEXTS)
    assert note["settings"]["layers"] == [0, 1, 2, 3] and note["settings"]["pooling"] == "mean"


def test_what_is_finished_is_not_asked_again(out):
    expected = np.array(write(out))
    with watched() as sizes:
        found = write(out, layers=[0, 1, 2, -1], batch_size=7, progress=True)
    assert sizes == [PROBE]
    assert isinstance(found, np.memmap) and not found.flags.writeable
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("error", STOPS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("pooling", ["mean", "words"])
@pytest.mark.parametrize("batches", [0, 1, 3])
def test_a_run_that_broke_off_goes_on_where_it_was(out, batches, pooling, error):
    assert break_off(out, batches, error, pooling=pooling) == [PROBE, *[3] * batches]
    assert not out.exists()
    with watched() as sizes:
        found = write(out, pooling=pooling)
    assert sum(sizes) == PROBE + len(TEXTS) - 3 * batches
    expected = write(None, pooling=pooling)
    np.testing.assert_array_equal(*(getattr(a, "states", a) for a in (found, expected)))
    assert names_in(out.parent) == ["states.npy", "states.npy.json"]


def test_it_may_go_on_with_other_batches_and_break_off_again(out):
    break_off(out, 2)
    break_off(out, 1, batch_size=4)
    with watched() as sizes:
        found = write(out, batch_size=1)
    assert sum(sizes) == PROBE + len(TEXTS) - 6 - 4
    np.testing.assert_allclose(found, write(None), rtol=0, atol=1e-5)


def test_a_batch_that_was_half_written_is_made_again(out):
    break_off(out, 2)
    done = set(
        np.argsort([-len(ids) for ids in tokenizer()(TEXTS)["input_ids"]], kind="stable")[:6]
    )
    part = np.load(out.with_name("states.npy.part"), mmap_mode="r+")
    part[:, [i for i in range(len(TEXTS)) if i not in done]] = np.nan
    part.flush()
    np.testing.assert_array_equal(write(out), write(None))


def test_a_machine_that_stops_costs_only_what_was_not_noted(out, monkeypatch):
    # As after a loss of power: the note says less than what the array holds.
    break_off(out, 3)
    note = out.with_name("states.npy.json")
    note.write_text(json.dumps(json.loads(note.read_text("utf-8")) | {"done": 3}))
    with watched() as sizes:
        found = write(out)
    assert sum(sizes) == PROBE + len(TEXTS) - 3
    np.testing.assert_array_equal(found, write(None))


def test_a_machine_that_stops_just_before_the_end_costs_nothing(out):
    expected = np.array(write(out))
    out.rename(out.with_name("states.npy.part"))
    with watched() as sizes:
        found = write(out)
    assert sizes == [PROBE]
    np.testing.assert_array_equal(found, expected)


def test_an_array_that_was_removed_is_made_anew(out):
    break_off(out, 2)
    out.with_name("states.npy.part").unlink()
    np.testing.assert_array_equal(write(out), write(None))
    out.unlink()
    np.testing.assert_array_equal(write(out), write(None))


def spread(hidden, mask):
    return hidden.std(1)


def scaled(factor):
    return lambda hidden, mask: factor * hidden[:, 0]


CHANGES = {
    "texts": ({"texts": TEXTS[:-1]}, "tokens: "),
    "order": ({"texts": TEXTS[::-1]}, "tokens: "),
    "weights": ({"model": tiny(seed=1)}, "model: BertModel .* there, BertModel .* now"),
    "one bit": ({"model": tiny()}, "model: "),
    "family": ({"model": shared("electra")}, "model: BertModel .* there, ElectraModel .* now"),
    "precision": ({"model": tiny().to(torch.bfloat16)}, "model: "),
    "layers": ({"layers": [0, 1]}, r"layers: \[0, 1, 2, 3\] there, \[0, 1\] now"),
    "pooling": ({"pooling": "max"}, "pooling: mean there, max now"),
    "callable": ({"pooling": spread}, "pooling: mean there, .*spread.* now"),
    "dtype": ({"dtype": "float16"}, "dtype: float32 there, float16 now"),
}
with torch.no_grad():
    CHANGES["one bit"][0]["model"].bert.encoder.layer[2].output.LayerNorm.bias[0] += 1e-7


@pytest.fixture(scope="module", params=["finished", "broken off"])
def begun(request, tmp_path_factory):
    """A file at two stages, which is as good as new after everything that was refused."""
    out = tmp_path_factory.mktemp("begun") / "states.npy"
    write(out) if request.param == "finished" else break_off(out, 2)
    before = names_in(out.parent)
    yield out
    assert names_in(out.parent) == before
    np.testing.assert_array_equal(write(out), write(None))


@pytest.mark.parametrize("change", CHANGES)
def test_other_settings_are_refused_by_name(begun, change):
    options, difference = CHANGES[change]
    with pytest.raises(ValueError, match=rf"begun with other settings \({difference}") as refused:
        write(begun, **options)
    assert str(refused.value).count(" there, ") == 1
    assert "Remove it and states.npy.json" in str(refused.value)


def test_all_differences_are_named(out):
    write(out, pooling="padded_mean", max_length=60)
    with pytest.raises(ValueError, match=r"dtype: .* now; length: 60 there, 61 now"):
        write(out, pooling="padded_mean", max_length=61, dtype="float64")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"texts": ["a wellknown - fact"], "pooling": "words"}, {"texts": ["a wellknown-fact"]}),
        ({"texts": [("it rains", "so it is")]}, {"texts": ["it rains [SEP] so it is"]}),
        ({"pooling": scaled(1)}, {"pooling": scaled(2)}),
    ],
    ids=["words", "pairs", "callables of one name"],
)
def test_settings_that_look_alike_are_told_apart(out, one, other):
    write(out, **one)
    with pytest.raises(ValueError, match="begun with other settings"):
        write(out, **(one | other))


@pytest.mark.parametrize("name", ["states.npy", "states.npy.part"])
def test_a_file_of_somebody_else_is_left_alone(out, name):
    np.save(out, np.arange(3))
    out.rename(out.with_name(name))
    with pytest.raises(FileExistsError, match=f"{name} is there and does not say how it was made"):
        write(out)
    with open(out.with_name(name), "rb") as file:
        np.testing.assert_array_equal(np.load(file), np.arange(3))
    assert names_in(out.parent) == [name]


@pytest.mark.parametrize("name", ["states", "states.npz", "states.h5", "states.npy.gz"])
def test_the_name_ends_in_npy(tmp_path, name):
    with pytest.raises(ValueError, match=rf"out=.*{name}.* must end in .npy"):
        write(tmp_path / name)
    assert names_in(tmp_path) == []


def test_the_folder_must_be_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no such folder. Make it"):
        write(tmp_path / "nowhere" / "states.npy")


@pytest.mark.parametrize(("free", "enough"), [(4 * 11 * 16 * 4 - 1, False), (10**6, True)])
def test_too_small_a_disk_is_told_at_the_start(out, monkeypatch, free, enough):
    usage = namedtuple("usage", "total used free")(10**12, 10**12 - free, free)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    if enough:
        return np.testing.assert_array_equal(write(out), write(None))
    with watched() as sizes, pytest.raises(OSError, match=r"needs 0.0 GB, and 0.0 GB are free"):
        write(out)
    assert sizes == [PROBE, 3]
    assert names_in(out.parent) == []


def test_a_state_that_does_not_fit_breaks_off_and_says_so(out):
    model = tiny()
    with torch.no_grad():
        model.bert.encoder.layer[1].output.LayerNorm.weight.fill_(1e5)
    with pytest.raises(OverflowError, match="dtype='float16'"):
        write(out, model=model, dtype="float16")
    assert not out.exists()


def test_by_name_and_live_are_one_run(out, tmp_path):
    break_off(out, 2)
    (tmp_path / "model").mkdir()
    with watched() as sizes:
        found = write(out, model=saved(tmp_path / "model"))
    assert sum(sizes) == PROBE + len(TEXTS) - 6
    np.testing.assert_array_equal(found, write(None))


def test_pairs_go_to_a_file_too(out):
    np.testing.assert_array_equal(write(out, PAIRS), write(None, PAIRS))


def test_texts_without_words_give_no_rows(out):
    found = write(out, ["", " "], pooling="words")
    assert found.states.shape == (4, 0, 16) and found.text.shape == (0,)
