"""The packaged pairs are what they say; the synthetic pairs obey the map that comes with them."""

import importlib.util
import pickle
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.metrics import r2_score

from sklearn_bijection.datasets import (
    load_sentence_pair,
    load_word_pair,
    make_invertible_pair,
    make_linear_pair,
)
from sklearn_bijection.datasets._curves import bend, unbend

DATA = files("sklearn_bijection.datasets") / "data"
LOADERS = [load_sentence_pair, load_word_pair]
MAKERS = [make_linear_pair, make_invertible_pair]
# (n_features, n_targets, rank)
SHAPES = [(1, 1, None), (6, 6, None), (6, 6, 4), (5, 9, None), (9, 5, 3), (9, 5, 5), (1, 4, None)]
EXACT = 1e-10


def held_out_r2(X, y, n_train, penalty=100.0):
    fitted = Ridge(penalty).fit(X[:n_train], y[:n_train])
    return r2_score(y[n_train:], fitted.predict(X[n_train:]), multioutput="variance_weighted")


def best_linear_r2(X, y):
    fitted = LinearRegression().fit(X, y)
    return r2_score(y, fitted.predict(X), multioutput="variance_weighted")


def spread(rows):
    return np.sqrt(rows.var(axis=0).sum())


def shuffled(rows):
    return rows[np.random.default_rng(0).permutation(len(rows))]


# Packaged pairs


@pytest.mark.parametrize("load", LOADERS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, "float32", np.dtype("float64")])
def test_packaged_arrays_are_cast_up_from_float16(load, dtype):
    pair = load(dtype=dtype)
    for rows in (pair.X, pair.y):
        assert rows.dtype == np.dtype(dtype)
        assert np.isfinite(rows).all()
        assert np.array_equal(rows, rows.astype(np.float16).astype(dtype))


@pytest.mark.parametrize("load", LOADERS)
@pytest.mark.parametrize("dtype", [np.float16, int, ">f4", "no such type", None, object()])
def test_any_other_dtype_is_refused(load, dtype):
    with pytest.raises(ValueError, match=r"dtype=.* is not served. Pass np.float32"):
        load(dtype=dtype)


@pytest.mark.parametrize("load", LOADERS)
def test_return_X_y_gives_the_same_arrays_and_each_call_fresh_ones(load):
    pair = load()
    pair.X[:] = np.nan
    X, y = load(return_X_y=True)
    assert np.isfinite(X).all()
    assert np.array_equal(X, load().X)
    assert np.array_equal(y, pair.y)


def test_sentence_pair_has_its_sentences_and_sources():
    pair = load_sentence_pair()
    assert pair.X.shape == pair.y.shape == (2500, 384)
    assert len(set(pair.sentences)) == len(pair.sentences) == len(pair.sources) == 2500
    assert all(s == s.strip() and s for s in pair.sentences)
    for source, count in {"wn_def": 1240, "wn_ex": 613, "kjv": 647}.items():
        assert pair.sources.count(source) == count
        assert f"| `{source}` | {count:,} |" in pair.DESCR
    assert (pair.X_name, pair.y_name) == ("all-MiniLM-L6-v2", "paraphrase-MiniLM-L3-v2")


def test_sentence_pair_has_the_dead_columns_that_its_notes_name():
    deviation = load_sentence_pair(dtype=np.float64).X.std(axis=0)
    assert np.flatnonzero(deviation < 1e-6).tolist() == [127, 223, 319]
    assert np.flatnonzero(deviation == 0).tolist() == [127, 223]


def test_word_pair_has_its_words():
    pair = load_word_pair()
    assert (pair.X.shape, pair.y.shape) == ((3500, 50), (3500, 100))
    assert len(set(pair.words)) == len(pair.words) == 3500
    assert all(word == word.strip() and word for word in pair.words)


@pytest.mark.parametrize(("load", "floor"), [(load_sentence_pair, 0.35), (load_word_pair, 0.6)])
def test_rows_are_paired(load, floor):
    X, y = load(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    for source, target in ((X[order], y[order]), (y[order], X[order])):
        assert held_out_r2(source, target, 2000) > floor
        assert held_out_r2(source, shuffled(target), 2000) < 0.01


def test_rows_are_those_of_their_sentences():
    pair = load_sentence_pair()
    terms = TfidfVectorizer(max_features=500).fit_transform(pair.sentences).toarray()
    for rows in (pair.X, pair.y):
        assert held_out_r2(terms, rows, 2000, penalty=1.0) > 0.1
        assert held_out_r2(terms, shuffled(rows), 2000, penalty=1.0) < 0.01


@pytest.mark.parametrize(
    ("word", "kin"),
    [("mother", {"daughter", "father", "wife"}), ("monday", {"tuesday", "thursday", "wednesday"})],
)
def test_rows_are_those_of_their_words(word, kin):
    pair = load_word_pair()
    for rows in (pair.X, pair.y):
        units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        nearest = np.argsort(-units @ units[pair.words.index(word)])[1:4]
        assert kin & {pair.words[i] for i in nearest}


def test_packaged_files_stay_small():
    sizes = {Path(str(item)).name: Path(str(item)).stat().st_size for item in DATA.iterdir()}
    assert set(sizes) == {
        "README.md",
        "sentence_pair.npz",
        "sentences.tsv",
        "word_pair.npz",
        "words.txt",
    }
    assert sizes["sentence_pair.npz"] + sizes["sentences.tsv"] < 4e6
    assert sum(sizes.values()) < 4.9e6


@pytest.mark.parametrize("load", LOADERS)
@pytest.mark.parametrize(
    "notice",
    [
        "WordNet 3.0 Copyright 2006 by Princeton University. All rights reserved.",
        "Permission to use, copy, modify and distribute this software and database and its "
        "documentation for any purpose and without fee or royalty is hereby granted",
        'THIS SOFTWARE AND DATABASE IS PROVIDED "AS IS" AND PRINCETON UNIVERSITY MAKES NO',
        "Title to copyright in this software, database and any associated documentation shall at "
        "all times remain with Princeton University and LICENSEE agrees to preserve same.",
        "King James Bible | public domain",
        "all-MiniLM-L6-v2",
        "paraphrase-MiniLM-L3-v2",
        "Apache License 2.0",
        "Public Domain Dedication and License (PDDL) 1.0",
    ],
)
def test_provenance_and_licences_are_shipped(load, notice):
    assert notice in " ".join(load().DESCR.split())


def load_packer():
    path = Path(__file__).parents[1] / "benchmarks" / "pack_datasets.py"
    spec = importlib.util.spec_from_file_location("pack_datasets", path)
    packer = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(packer)
    return packer


@pytest.fixture
def raw(tmp_path):
    """Lay out a folder as the packer takes it, with six rows in each pair."""
    rng = np.random.default_rng(0)
    rows = {k: rng.normal(size=(6, w)) for k, w in (("l6", 4), ("l3", 4), ("g50", 2), ("g100", 3))}
    folder = tmp_path / "raw"
    folder.mkdir()
    lines = [f"kjv\tsentence {i}\n" for i in range(6)]
    (folder / "sentences_8k.tsv").write_text("".join(lines), encoding="utf-8")
    np.savez(folder / "sentences_8k.npz", minilm_l6=rows["l6"], paraphrase_l3=rows["l3"])
    np.savez(
        folder / "words_15k.npz", words=list("abcdef"), glove50=rows["g50"], glove100=rows["g100"]
    )
    return folder


def test_packing_keeps_the_first_rows_and_repeats_exactly(raw, tmp_path):
    packer = load_packer()
    for into in ("one", "two"):
        options = ["--into", str(tmp_path / into), "--sentences", "4", "--words", "5"]
        packer.main([str(raw), *options])
    one, two = tmp_path / "one", tmp_path / "two"
    assert all(path.read_bytes() == (two / path.name).read_bytes() for path in one.iterdir())
    assert (one / "sentences.tsv").read_text("utf-8") == "".join(
        f"kjv\tsentence {i}\n" for i in range(4)
    )
    assert (one / "words.txt").read_text("utf-8").split() == list("abcde")
    with np.load(one / "word_pair.npz") as packed, np.load(raw / "words_15k.npz") as source:
        assert np.array_equal(packed["X"], source["glove50"][:5].astype(np.float16))
        assert np.array_equal(packed["y"], source["glove100"][:5].astype(np.float16))


def test_packing_refuses_what_does_not_pair(raw, tmp_path):
    packer = load_packer()
    into = ["--into", str(tmp_path / "out")]
    with pytest.raises(ValueError, match="found 6 lines, 6 rows of X and 6 rows of y"):
        packer.main([str(raw), *into, "--sentences", "7"])
    (raw / "sentences_8k.tsv").write_text("no tab here\n" * 6, encoding="utf-8")
    with pytest.raises(ValueError, match="one source, one tab and one sentence per line"):
        packer.main([str(raw), *into, "--sentences", "4"])


# Both kinds of synthetic pairs


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("seed", [0, np.int64(3), "RandomState", "Generator"])
def test_random_state_decides_everything(make, seed):
    def draw():
        kinds = {"RandomState": np.random.RandomState, "Generator": np.random.default_rng}
        state = kinds[seed](7) if isinstance(seed, str) else seed
        return make(30, 4, noise=0.1, random_state=state)

    one, two = draw(), draw()
    assert np.array_equal(one.X, two.X)
    assert np.array_equal(one.y, two.y)
    assert not np.array_equal(one.X, make(30, 4, noise=0.1, random_state=11).X)


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("seed", [None, 0])
def test_numpys_global_generator_is_left_alone(make, seed):
    np.random.seed(5)
    before = np.random.get_state()[1:3]
    pair = make(10, 3, noise=0.1, random_state=seed)
    after = np.random.get_state()[1:3]
    assert np.array_equal(before[0], after[0])
    assert before[1] == after[1]
    np.random.seed(5)
    assert np.array_equal(pair.X, make(10, 3, noise=0.1, random_state=seed).X) == (seed == 0)


@pytest.mark.parametrize("make", MAKERS)
def test_noise_changes_neither_X_nor_the_map(make):
    quiet, loud = (make(4000, 5, noise=noise, random_state=0) for noise in (0.0, 0.5))
    assert np.array_equal(quiet.X, loud.X)
    added = loud.y - quiet.y
    assert spread(added) / spread(quiet.y) == pytest.approx(0.5, rel=0.03)
    assert abs(added.mean(axis=0)).max() < 0.05 * spread(quiet.y)


@pytest.mark.parametrize("make", MAKERS)
def test_noise_bounds_the_best_score_as_documented(make):
    clean = make(4000, 5, random_state=0).y
    noisy = make(4000, 5, noise=0.8, random_state=0).y
    best = r2_score(noisy, clean, multioutput="variance_weighted")
    assert best == pytest.approx(1 / (1 + 0.8**2), abs=0.02)


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("offset", [0.0, 0.5, (3.0, 0.0)])
def test_X_looks_like_embeddings(make, offset):
    X = make(20_000, 8, rank=6, offset=offset, random_state=0).X
    variances = np.linalg.eigvalsh(np.cov(X.T))[::-1]
    expected = 1 / np.arange(1, 7)
    assert variances[:6] / variances.sum() == pytest.approx(expected / expected.sum(), rel=0.1)
    assert variances[6:] == pytest.approx(0, abs=1e-12)
    assert spread(X) == pytest.approx(np.sqrt(8), rel=0.02)
    x_offset = offset[0] if isinstance(offset, tuple) else offset
    assert np.linalg.norm(X.mean(axis=0)) / spread(X) == pytest.approx(x_offset, abs=0.03)


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("units", [1e-6, 1e3, (1e-6, 1e4)])
def test_units_multiply_the_views(make, units):
    x_unit, y_unit = units if isinstance(units, tuple) else (units, units)
    plain, scaled = make(20, 4, 6, random_state=0), make(20, 4, 6, units=units, random_state=0)
    np.testing.assert_allclose(scaled.X, plain.X * x_unit, rtol=1e-9)
    np.testing.assert_allclose(scaled.y, plain.y * y_unit, rtol=1e-9)


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize(("p", "q", "rank"), SHAPES)
def test_rank_is_the_rank_of_X(make, p, q, rank):
    pair = make(40, p, q, rank=rank, random_state=0)
    assert (pair.X.shape, pair.y.shape) == ((40, p), (40, q))
    assert pair.X.dtype == pair.y.dtype == np.float64
    centred = pair.X - pair.X.mean(axis=0)
    assert np.linalg.matrix_rank(centred, tol=1e-9) == (rank or p)


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_samples": 1}, "n_samples=1 must be a whole number of at least 2"),
        ({"n_samples": 10.0}, "n_samples=10.0 must be a whole number"),
        ({"n_features": 0}, "n_features=0 must be a whole number of at least 1"),
        ({"n_features": True}, "n_features=True must be a whole number"),
        ({"n_targets": "3"}, "n_targets='3' must be a whole number"),
        ({"rank": 0}, "rank=0 must be a whole number of at least 1"),
        ({"rank": 21}, "rank=21 exceeds n_features=20. Lower rank or pass None"),
        ({"noise": -0.1}, "noise=-0.1 must be a finite number of at least 0"),
        ({"noise": np.nan}, "noise=nan must be a finite number"),
        ({"noise": "loud"}, "noise='loud' must be a finite number"),
        ({"offset": -1.0}, "offset=-1.0 must be a finite number of at least 0"),
        ({"offset": (1.0, 2.0, 3.0)}, r"offset=\(1.0, 2.0, 3.0\) has 3 entries. Pass one number"),
        ({"units": 0.0}, "units=0.0 must be a finite number larger than 0"),
        ({"units": (1.0, -2.0)}, r"units\[1\]=-2.0 must be a finite number larger than 0"),
        ({"random_state": "dice"}, "random_state='dice' must be a whole number of at least 0"),
        ({"random_state": -1}, "random_state=-1 must be a whole number of at least 0"),
    ],
)
def test_bad_parameters_are_named(make, parameters, message):
    with pytest.raises(ValueError, match=message):
        make(**parameters)


# Linear pairs


@pytest.mark.parametrize(("p", "q", "rank"), [*SHAPES, (9, 5, None), (9, 5, 7)])
@pytest.mark.parametrize("offset", [0.0, (2.0, 30.0)])
@pytest.mark.parametrize("orthogonal", [False, True])
def test_true_affine_map_and_its_inverse(p, q, rank, offset, orthogonal):
    pair = make_linear_pair(
        40, p, q, rank=rank, offset=offset, orthogonal=orthogonal, random_state=0
    )
    there = pair.X @ pair.coef + pair.intercept
    np.testing.assert_allclose(there, pair.y, atol=EXACT)
    if q >= (rank or p):
        back = pair.y @ pair.inverse_coef + pair.inverse_intercept
        np.testing.assert_allclose(back, pair.X, atol=EXACT)
    if q <= (rank or p):
        anywhere = np.random.default_rng(1).normal(size=(10, q))
        back = anywhere @ pair.inverse_coef + pair.inverse_intercept
        np.testing.assert_allclose(back @ pair.coef + pair.intercept, anywhere, atol=EXACT)


@pytest.mark.parametrize(("p", "q", "rank"), [*SHAPES, (9, 5, None), (9, 5, 7)])
def test_inverse_is_the_pseudo_inverse(p, q, rank):
    pair = make_linear_pair(10, p, q, rank=rank, random_state=0)
    np.testing.assert_allclose(pair.inverse_coef, np.linalg.pinv(pair.coef, rcond=1e-9), atol=EXACT)


@pytest.mark.parametrize(("p", "q", "rank"), [*SHAPES, (9, 5, None), (9, 5, 7)])
def test_minimum_norm_least_squares_finds_the_true_coef(p, q, rank):
    pair = make_linear_pair(60, p, q, rank=rank, random_state=0)
    X, y = pair.X - pair.X.mean(axis=0), pair.y - pair.y.mean(axis=0)
    found = np.linalg.lstsq(X, y, rcond=1e-9)[0]
    np.testing.assert_allclose(found, pair.coef, atol=EXACT)


@pytest.mark.parametrize("offset", [1e6, (0.0, 1e6)])
def test_large_offsets_and_small_units_stay_exact_to_rounding(offset):
    pair = make_linear_pair(40, 6, offset=offset, units=(1e-6, 1e-6), random_state=0)
    back = pair.y @ pair.inverse_coef + pair.inverse_intercept
    assert spread(back - pair.X) < 1e-7 * spread(pair.X)


@pytest.mark.parametrize(("p", "q", "rank"), [(6, 6, None), (5, 9, None), (9, 5, 3)])
@pytest.mark.parametrize("condition", [None, 1.0, 1e4])
def test_condition_sets_the_singular_values(p, q, rank, condition):
    pair = make_linear_pair(
        5, p, q, rank=rank, condition=condition, units=(2.0, 6.0), random_state=0
    )
    values = np.linalg.svd(pair.coef, compute_uv=False)[: rank or min(p, q)]
    assert values[0] / values[-1] == pytest.approx(10.0 if condition is None else condition)
    assert np.exp(np.log(values).mean()) == pytest.approx(3.0)


@pytest.mark.parametrize(("p", "q"), [(6, 6), (5, 9), (9, 5)])
def test_orthogonal_means_a_rotation(p, q):
    coef = make_linear_pair(5, p, q, orthogonal=True, random_state=0).coef
    narrow = coef.T @ coef if q <= p else coef @ coef.T
    np.testing.assert_allclose(narrow, np.eye(min(p, q)), atol=1e-12)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"condition": 0.5}, "condition=0.5 must be a finite number of at least 1"),
        ({"condition": 5.0, "orthogonal": True}, "condition=5.0 contradicts orthogonal=True"),
        ({"orthogonal": "yes"}, "orthogonal='yes' must be True or False"),
    ],
)
def test_bad_parameters_of_the_linear_pair_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        make_linear_pair(**parameters)


# Non-linear pairs


@pytest.mark.parametrize("strength", [0.0, 0.3, 2.0, 50.0])
def test_the_curve_is_increasing_odd_and_inverted_exactly(strength):
    u = np.concatenate([[0.0], np.geomspace(1e-12, 1e6, 400)])
    v = bend(u, strength)
    assert (np.diff(v) > 0).all()
    assert np.array_equal(bend(-u, strength), -v)
    np.testing.assert_allclose(unbend(v, strength), u, rtol=1e-12)
    assert np.array_equal(unbend(-v, strength), -unbend(v, strength))


@pytest.mark.parametrize(("p", "q", "rank"), SHAPES)
@pytest.mark.parametrize(("n_layers", "nonlinearity"), [(1, 0.0), (4, 2.0), (8, 2.0), (2, 99.0)])
def test_true_map_and_its_inverse(p, q, rank, n_layers, nonlinearity):
    pair = make_invertible_pair(
        40, p, q, rank=rank, n_layers=n_layers, nonlinearity=nonlinearity, random_state=0
    )
    np.testing.assert_allclose(pair.forward(pair.X), pair.y, atol=EXACT)
    np.testing.assert_allclose(pair.inverse(pair.y), pair.X, atol=EXACT)


@pytest.mark.parametrize(("p", "q", "rank"), SHAPES)
def test_round_trips_far_from_the_sample_are_projections(p, q, rank):
    pair = make_invertible_pair(20, p, q, rank=rank, random_state=0)
    rng = np.random.default_rng(1)
    for there, back, width in ((pair.forward, pair.inverse, p), (pair.inverse, pair.forward, q)):
        start = 5 * rng.normal(size=(30, width))
        once = back(there(start))
        np.testing.assert_allclose(back(there(once)), once, atol=EXACT)
        if width == (rank or p):
            np.testing.assert_allclose(once, start, atol=EXACT)
        else:
            # The way from a point to its orthogonal projection is at right angles to the image.
            image = once - once.mean(axis=0)
            np.testing.assert_allclose((start - once) @ image.T, 0, atol=1e-9)
            assert np.linalg.norm(start - once) > 1


def test_without_nonlinearity_the_map_is_an_isometry():
    pair = make_invertible_pair(50, 5, 8, nonlinearity=0.0, units=(2.0, 6.0), random_state=0)
    steps = np.diff(pair.X, axis=0), np.diff(pair.y, axis=0)
    lengths = [np.linalg.norm(step, axis=1) for step in steps]
    np.testing.assert_allclose(lengths[1], 3.0 * lengths[0], rtol=1e-12)
    assert best_linear_r2(pair.X, pair.y) > 1 - EXACT


def test_no_affine_map_explains_it_and_less_so_the_stronger_it_is():
    pairs = [
        make_invertible_pair(2000, 20, nonlinearity=strength, random_state=0)
        for strength in (0.0, 0.5, 2.0, 8.0)
    ]
    for scores in (
        [best_linear_r2(pair.X, pair.y) for pair in pairs],
        [best_linear_r2(pair.y, pair.X) for pair in pairs],
    ):
        assert (np.diff(scores) < -0.02).all()
        assert 0.8 < scores[2] < 0.9


def test_the_maps_pickle():
    pair = make_invertible_pair(20, 4, 6, random_state=0)
    copy = pickle.loads(pickle.dumps(pair))
    assert np.array_equal(copy.forward(pair.X), pair.forward(pair.X))
    forward, inverse = pickle.loads(pickle.dumps((pair.forward, pair.inverse)))
    assert np.array_equal(inverse(forward(pair.X)), pair.inverse(pair.forward(pair.X)))


def test_the_maps_leave_their_input_alone_and_take_lists_and_float32():
    pair = make_invertible_pair(20, 4, random_state=0)
    X = pair.X.astype(np.float32)
    X.setflags(write=False)
    expected = pair.forward(X.astype(np.float64))
    assert np.array_equal(pair.forward(X), expected)
    assert np.array_equal(pair.forward(X.tolist()), expected)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.zeros((3, 5)), "X has 5 columns, but this map takes 4"),
        (np.full((3, 4), np.nan), "Input X contains NaN"),
        (np.zeros(4), "Expected 2D array"),
    ],
)
def test_the_maps_refuse_what_is_not_in_their_space(rows, message):
    with pytest.raises(ValueError, match=message):
        make_invertible_pair(5, 4, 6, random_state=0).forward(rows)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_targets": 5}, "n_targets=5 is below the rank 20 of X, so that no bijection exists"),
        ({"n_targets": 5, "rank": 6}, "Raise n_targets to at least 6, or pass rank=5 or lower"),
        ({"n_layers": 0}, "n_layers=0 must be a whole number of at least 1"),
        ({"nonlinearity": -1.0}, "nonlinearity=-1.0 must be a finite number of at least 0"),
        ({"nonlinearity": 10.0}, "nonlinearity=10 with n_layers=4 is too steep for an inverse"),
    ],
)
def test_bad_parameters_of_the_invertible_pair_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        make_invertible_pair(**parameters)
