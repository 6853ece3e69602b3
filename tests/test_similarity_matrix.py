"""Every value of a similarity matrix against the function of two arrays, and what surrounds it."""

import csv
import io
import re
import sys
import tracemalloc
import warnings
from functools import partial, wraps

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from sklearn import config_context

from sklearn_bijection import metrics
from sklearn_bijection.displays import SimilarityDisplay
from sklearn_bijection.metrics import SimilarityMatrix, similarity_matrix
from sklearn_bijection.metrics._similarity import MEASURES, Cosine, Prepared
from sklearn_bijection.metrics._similarity_matrix import _linear
from sklearn_bijection.metrics._similarity_matrix._tiles import Walk
from sklearn_bijection.metrics._similarity_matrix._work import Work

#: Every measure at its defaults, and those whose options change the way the values are found.
CASES = {
    **{name: {} for name in MEASURES},
    "linear_cka, debiased": {"debiased": True},
    "rbf_cka, debiased": {"debiased": True, "bandwidth": 0.5},
    "relu_cka, biased": {"debiased": False},
    "mutual_knn, few": {"n_neighbors": 3},
    "affine_alignment_error, symmetric": {"direction": "symmetric"},
    "angular_shape_distance, half": {"alpha": 0.5},
    "svcca, little": {"explained_variance": 0.8},
}
DISTANCES = {
    "affine_alignment_error",
    "angular_shape_distance",
    "procrustes_distance",
}
ONE_OF_EACH = ["linear_cka", "rsa", "mean_cca", "pwcca"]


def related(widths, n_samples, seed=0):
    """Spaces that share a signal, the later the less of it, with means and units of their own."""
    signal = np.random.default_rng(99).normal(size=(n_samples, 5))
    rng = np.random.default_rng(seed)
    return [
        signal @ rng.normal(size=(5, width))
        + (0.5 + 0.3 * place) * rng.normal(size=(n_samples, width))
        + rng.normal(size=width)
        for place, width in enumerate(widths)
    ]


LONG = dict(zip("abcd", related((3, 6, 4, 5), 90), strict=True))
WIDE = dict(zip("abc", related((14, 20, 9), 16, seed=1), strict=True))


@pytest.fixture(params=CASES)
def case(request):
    """Name of a measure and some options."""
    return request.param.partition(",")[0], CASES[request.param]


def compare(Hs=LONG, metric="linear_cka", **options):
    return similarity_matrix(Hs, metric, **{"progress": False, **options})


def values(*args, **options):
    """Values alone, whatever is said about them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return compare(*args, **options).values


def assert_same(found, expected, atol=1e-12):
    np.testing.assert_allclose(found, expected, rtol=0, atol=atol)


# --- values


@pytest.mark.filterwarnings("ignore:n_samples=:UserWarning")
@pytest.mark.parametrize("spaces", [LONG, WIDE], ids=["many rows", "few rows"])
def test_every_value_is_that_of_the_function_of_two_arrays(case, spaces):
    name, options = case
    function = getattr(metrics, name)
    expected = [[function(X, Y, **options) for Y in spaces.values()] for X in spaces.values()]
    # A distance is the root of a small difference near 0, where it has half the digits.
    found, expected = values(spaces, name, **options), np.array(expected)
    beside = ~np.eye(len(spaces), dtype=bool)
    assert_same(found[beside], expected[beside], 1e-10)
    assert_same(found.diagonal(), expected.diagonal(), 1e-7 if name in DISTANCES else 1e-10)


def test_the_matrix_is_symmetric_where_the_measure_is(case):
    name, options = case
    found = values(LONG, name, **options)
    assert np.array_equal(found, found.T) == MEASURES[name](**options).symmetric


def test_a_space_is_like_itself(case):
    name, options = case
    found = values(LONG, name, **options)
    itself = 0 if name in DISTANCES else 1
    assert_same(found.diagonal(), itself, 1e-7)
    beside = found[~np.eye(len(LONG), dtype=bool)]
    assert np.abs(beside - itself).min() > 0.01


def test_linear_cka_of_a_space_with_itself_is_exactly_1():
    for spaces in (LONG, WIDE):
        np.testing.assert_array_equal(values(spaces).diagonal(), 1)


def test_the_order_of_the_spaces_only_orders_the_values(case):
    name, options = case
    order = [2, 0, 3, 1]
    turned = {list(LONG)[place]: list(LONG.values())[place] for place in order}
    found = values(turned, name, **options)
    assert_same(found, values(LONG, name, **options)[np.ix_(order, order)], 1e-10)


def test_other_spaces_give_a_part_of_the_whole(case):
    name, options = case
    whole = values(LONG, name, **options)
    left, right = ({key: LONG[key] for key in keys} for keys in ("ca", "bda"))
    found = values(left, name, Hs_b=right, **options)
    part = whole[np.ix_([2, 0], [1, 3, 0])]
    assert_same(found[:, :2], part[:, :2], 1e-10)
    assert_same(found[1, 2], part[1, 2], 1e-7)
    back = values(right, name, Hs_b=left, **options)
    assert np.allclose(found[:, :2], back[:2].T) == MEASURES[name](**options).symmetric


# --- memory and jobs


@pytest.mark.parametrize("mebibytes", [0.04, 0.01, 1e-5])
@pytest.mark.parametrize("spaces", [LONG, WIDE], ids=["many rows", "few rows"])
@pytest.mark.parametrize("debiased", [False, True])
def test_linear_cka_does_not_depend_on_the_memory_allowed(spaces, debiased, mebibytes):
    pair = {"Hs_b": {"one": spaces["a"], "other": spaces["c"]}}
    for options in ({}, pair):
        expected = values(spaces, debiased=debiased, **options)
        with config_context(working_memory=mebibytes):
            assert_same(values(spaces, debiased=debiased, **options), expected)


@pytest.mark.parametrize("mebibytes", [0.04, 0.01, 1e-5])
@pytest.mark.parametrize("others", [None, dict(zip("uv", related((2, 7), 90, 5), strict=True))])
def test_no_measure_depends_on_the_memory_allowed(case, others, mebibytes):
    name, options = case
    expected = values(LONG, name, Hs_b=others, **options)
    with config_context(working_memory=mebibytes):
        assert_same(values(LONG, name, Hs_b=others, **options), expected)


def test_both_ways_to_linear_cka_agree():
    for spaces in (LONG, WIDE):
        with Work.of(None, progress=False) as work:
            centred = list(map(_linear.Centred.of, spaces.values()))
            for debiased in (False, True):
                by_rows = _linear._by_rows(centred, work, debiased)
                by_columns, squares = _linear._by_columns(centred, centred, work, debiased)
                assert_same(by_columns, by_rows)
                assert_same(squares, by_rows.diagonal())


@pytest.mark.parametrize(("spaces", "way"), [(LONG, "_by_columns"), (WIDE, "_by_rows")])
def test_linear_cka_takes_the_cheaper_way(spaces, way, monkeypatch):
    def stop(*args):
        raise RuntimeError(way)

    monkeypatch.setattr(_linear, way, stop)
    with pytest.raises(RuntimeError, match=way):
        compare(spaces)


@pytest.mark.parametrize("kind", ["vectors", "states"])
def test_each_space_is_prepared_once_while_memory_allows(kind, monkeypatch):
    prepared = []

    def prepare(X):
        prepared.append(X.shape[1])
        return X[:, 0] / np.linalg.norm(X[:, 0])

    measure = Cosine("one", prepare) if kind == "vectors" else Prepared("one", prepare, np.dot)
    monkeypatch.setitem(MEASURES, "one", lambda: measure)
    expected = compare(metric="one").values
    assert prepared == [3, 6, 4, 5]
    prepared.clear()
    # Room for three vectors of 90 numbers: one on each side, and one that goes.
    with config_context(working_memory=3 * 1000 / 2**20):
        found = compare(metric="one").values
    assert prepared == [3, 6, 4, 5, 6, 4, 5, 4, 5, 5]
    assert_same(found, expected)


def peak_memory(H, metric):
    """Bytes that a comparison takes at most, where one MiB is allowed."""
    with config_context(working_memory=1):
        tracemalloc.start()
        compare(H, metric)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    return peak


@pytest.mark.parametrize(("width", "way"), [(30, "by rows"), (3, "by columns")])
def test_linear_cka_stays_within_the_memory_allowed(width, way):
    H = np.array(related([width] * 60, 150))
    assert peak_memory(H, "linear_cka") < 2.5 * 2**20 < 8 * 60 * 150**2 / 4


@pytest.mark.parametrize("kind", ["vectors", "states"])
def test_what_is_prepared_stays_within_the_memory_allowed(kind, monkeypatch):
    def prepare(X):
        return np.repeat(X[:, 0], 500)

    measure = (
        Cosine("long", prepare)
        if kind == "vectors"
        else Prepared("long", prepare, lambda a, b: a[0] + b[0])
    )
    monkeypatch.setitem(MEASURES, "long", lambda: measure)
    H = np.array(related([2] * 40, 30))
    assert 2**20 / 2 < peak_memory(H, "long") < 1.5 * 2**20 < 8 * 40 * 30 * 500


@pytest.mark.parametrize("size", [1, 2, 3, 7, 20])
@pytest.mark.parametrize("counts", [(7, None), (7, 4), (1, 5)])
def test_a_walk_meets_every_pair_once(counts, size):
    first = range(counts[0])
    second = first if counts[1] is None else range(counts[1])
    walk, loads = Walk(first, second, size), []

    def load(spaces, numbers):
        loads.extend(numbers)
        return [spaces[number] for number in numbers]

    met = [
        (i, j)
        for left, right in walk.visit(load)
        for i in left.states
        for j in right.states
        if left is not right or i <= j
    ]
    expected = {(i, j) for i in first for j in second if second is not first or i <= j}
    assert len(met) == len(set(met)) and set(met) == expected
    assert len(loads) == walk.n_loads()


def test_two_jobs_give_the_same_values(case):
    name, options = case
    expected = values(LONG, name, **options)
    np.testing.assert_array_equal(values(LONG, name, n_jobs=2, **options), expected)


# --- what comes in


STACK = np.array(related((4, 4, 4), 30))


@pytest.mark.parametrize("metric", ["linear_cka", "rsa", "pwcca"])
@pytest.mark.parametrize(
    "kind", ["memory map", "float32", "frames", "lists", "tuple", "whole numbers"]
)
def test_takes_spaces_of_every_kind(kind, metric, tmp_path):
    H = np.round(100 * STACK) if kind == "whole numbers" else STACK
    np.save(tmp_path / "H.npy", H)
    given = {
        "memory map": lambda: np.load(tmp_path / "H.npy", mmap_mode="r"),
        "float32": lambda: H.astype("float32"),
        "frames": lambda: [pd.DataFrame(space).add_prefix("unit") for space in H],
        "lists": lambda: [space.tolist() for space in H],
        "tuple": lambda: tuple(H),
        "whole numbers": lambda: H.astype(int),
    }[kind]()
    found = values(given, metric, n_jobs=2 if kind == "memory map" else None)
    assert_same(found, values(H, metric), 1e-5 if kind == "float32" else 1e-12)


@pytest.mark.parametrize(
    ("Hs", "labels"),
    [
        (STACK, ["0", "1", "2"]),
        (list(STACK), ["0", "1", "2"]),
        ({"x": STACK[0], 7: STACK[1]}, ["x", "7"]),
        ({"x": STACK, "y": STACK[0]}, ["x / 0", "x / 1", "x / 2", "y"]),
        ({"x": [STACK[0], STACK[1][:, :2]]}, ["x / 0", "x / 1"]),
        ({"x": STACK[:2].tolist()}, ["x / 0", "x / 1"]),
        (np.stack([STACK[:2], STACK[1:]]), ["0 / 0", "0 / 1", "1 / 0", "1 / 1"]),
    ],
)
def test_spaces_have_names(Hs, labels):
    matrix = compare(Hs)
    assert list(matrix.labels) == list(matrix.columns) == labels
    assert matrix.values.shape == (len(labels),) * 2 and matrix.metric == "linear_cka"
    other = compare(Hs, Hs_b={"only": STACK[0]})
    assert list(other.labels) == labels and other.columns == ("only",)


@pytest.mark.parametrize("metric", ONE_OF_EACH)
def test_the_callers_arrays_stay_as_they_were(metric):
    Hs = {name: space.copy() for name, space in LONG.items()}
    values(Hs, metric)
    for name, space in Hs.items():
        np.testing.assert_array_equal(space, LONG[name])
        space.flags.writeable = False
    values(Hs, metric)


@pytest.mark.parametrize("metric", ONE_OF_EACH)
@pytest.mark.parametrize(("unit", "offset"), [(1e-6, 0), (1e6, 1e9), (1e-200, 0), (1e200, 0)])
def test_units_do_not_matter(metric, unit, offset):
    found = values({"a": LONG["a"], "b": unit * LONG["b"] + offset}, metric)
    assert_same(found, values({"a": LONG["a"], "b": LONG["b"]}, metric), 1e-6)


def with_value(value):
    H = LONG["b"].copy()
    H[5, 2] = value
    return {"a": LONG["a"], "b": H}


@pytest.mark.parametrize("metric", ONE_OF_EACH)
@pytest.mark.parametrize(
    ("Hs", "message"),
    [
        ({}, r"Hs has no spaces\. Pass at least one array \(n_samples, width\)"),
        ({"a": np.empty((0, 9, 3))}, r"Hs\['a'\] is a stack without layers\. Leave it out"),
        (
            LONG["a"],
            r"Hs\[0\] has shape \(3,\), but Hs holds arrays .* Pass \[Hs\] if it is a single",
        ),
        ({"a": np.zeros((2, 2, 9, 3))}, r"Hs\['a'\] has shape \(2, 2, 9, 3\), but Hs holds arrays"),
        ({"a": "text"}, r"Hs\['a'\] has shape \(\), but Hs holds arrays"),
        (
            {**LONG, "e": LONG["a"][:-1]},
            r"Hs\['e'\] has 89 rows but Hs\['a'\] has 90\. Row i of every space belongs to the same",
        ),
        (
            {1: LONG["a"], "1": LONG["b"]},
            r"Hs has 2 spaces called '1'\. Give each a name of its own",
        ),
        (with_value(np.nan), r"Input Hs\['b'\] contains NaN"),
        (with_value(-np.inf), r"Input Hs\['b'\] contains infinity"),
        ({**LONG, "e": np.ones((90, 3))}, r"Hs\['e'\] has (no variance: its 90 rows|equal values)"),
    ],
)
def test_what_is_refused(Hs, message, metric):
    with pytest.raises(ValueError, match=message):
        compare(Hs, metric)


def test_the_other_spaces_are_named_too():
    with pytest.raises(ValueError, match=r"Hs_b\['e'\] has 89 rows but Hs\['a'\] has 90"):
        compare(Hs_b={"e": LONG["a"][:-1]})
    with pytest.raises(ValueError, match=r"Input Hs_b\['b'\] contains NaN"):
        compare(Hs_b=with_value(np.nan))
    with pytest.raises(ValueError, match=r"Hs_b has no spaces"):
        compare(Hs_b=[])


@pytest.mark.parametrize("Hs", [None, 3])
def test_what_is_no_collection_is_refused(Hs):
    with pytest.raises(TypeError, match=rf"Hs={Hs} is not a collection of spaces\. Pass a mapping"):
        similarity_matrix(Hs)


@pytest.mark.parametrize("metric", ONE_OF_EACH)
def test_one_row_is_too_few(metric):
    with pytest.raises(
        ValueError, match=r"Hs\['0'\] has 1 row\(s\), but similarity needs at least 2"
    ):
        compare(STACK[:, :1], metric)


@pytest.mark.parametrize("collect", [list, lambda spaces: dict(zip("ab", spaces, strict=True))])
def test_one_dimension_is_one_column(collect):
    X, Y = LONG["a"], LONG["b"]
    found, expected = compare(collect([X[:, 0], Y])), compare(collect([X[:, [0]], Y]))
    np.testing.assert_array_equal(found.values, expected.values)
    assert found.values[0, 1] == pytest.approx(metrics.linear_cka(X[:, 0], Y), abs=1e-10)


@pytest.mark.parametrize("n_rows", [20, 90])
def test_one_large_row_leaves_digits_to_the_debiased(n_rows):
    # Narrow spaces of many rows go by their columns, whose squares cancel.
    spaces = [np.random.default_rng(seed).normal(size=(n_rows, 3)) for seed in range(3)]
    spaces[1][4] *= 1e7
    found = compare(spaces, debiased=True).values
    expected = [[metrics.linear_cka(a, b, debiased=True) for b in spaces] for a in spaces]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-7)
    others = compare(spaces[:1], debiased=True, Hs_b=spaces[1:]).values
    np.testing.assert_allclose(others, found[:1, 1:], rtol=0, atol=1e-7)
    lonely = np.eye(n_rows)[:, :1]
    with pytest.raises(ValueError, match=r"^Hs_b\['1'\] leaves nothing to compare: without its"):
        compare(spaces, debiased=True, Hs_b=[spaces[0], lonely])


def test_unknown_measures_and_options_are_refused():
    with pytest.raises(ValueError, match=r"metric='cka' is not known\. Pass one of .*linear_cka, "):
        compare(metric="cka")
    with pytest.raises(ValueError, match=r"metric=3 is not known"):
        compare(metric=3)
    with pytest.raises(TypeError, match=r"mutual_knn has no option 'k'\. It takes n_neighbors, "):
        compare(metric="mutual_knn", k=3)
    with pytest.raises(TypeError, match=r"mean_cca has no option 'k'\. It takes none\."):
        compare(metric="mean_cca", k=3)


def test_too_few_rows_to_debias():
    with pytest.raises(ValueError, match=r"Hs\['0'\] has 3 rows"):
        compare(STACK[:, :3], debiased=True)


# --- functions


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_function_is_asked_about_every_pair_both_ways(n_jobs):
    def product(X, Y, power=1):
        return float((X.sum() * np.abs(Y).sum()) ** power)

    found = compare(metric=product, power=2, n_jobs=n_jobs)
    expected = [[product(X, Y, 2) for Y in LONG.values()] for X in LONG.values()]
    np.testing.assert_array_equal(found.values, expected)
    assert found.metric == "product"
    bound = compare(metric=partial(product, power=2))
    np.testing.assert_array_equal(bound.values, expected)


@pytest.mark.parametrize("options", [{}, {"distance": "euclidean"}])
def test_our_functions_count_as_their_names(options, monkeypatch):
    factory, made = MEASURES["rsa"], []

    @wraps(factory)
    def noting(**found):
        made.append(found)
        return factory(**found)

    monkeypatch.setitem(MEASURES, "rsa", noting)
    found = compare(metric=partial(metrics.rsa, **options) if options else metrics.rsa)
    assert found.metric == "rsa" and made == [options]
    expected = metrics.rsa(LONG["a"], LONG["b"], **options)
    assert found.values[0, 1] == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_function_may_write_to_what_it_gets(n_jobs):
    def writing(X, Y):
        X -= 1
        Y *= 2
        return float(X.sum() + Y.sum())

    spaces = {name: space.copy() for name, space in LONG.items()}
    found = compare(spaces, writing, n_jobs=n_jobs).values
    sums = np.array([space.sum() for space in LONG.values()])
    sizes = np.array([space.size for space in LONG.values()])
    np.testing.assert_allclose(found, (sums - sizes)[:, np.newaxis] + 2 * sums)
    for name, space in LONG.items():
        np.testing.assert_array_equal(spaces[name], space)


def test_an_error_names_the_pair():
    def fails(X, Y):
        if Y.shape[1] == 5:
            raise KeyError("five")
        return 0.0

    with pytest.raises(KeyError) as raised:
        compare(metric=fails)
    assert raised.value.__notes__ == ["Raised by Hs['a'] with Hs['d']."]


# --- warnings and progress


def test_a_caution_is_told_once_for_all_pairs():
    with pytest.warns(UserWarning) as told:
        compare({**WIDE, "thin": WIDE["a"][:, :2]}, "pwcca")
    assert len(told) == 1 and told[0].filename == __file__
    text = str(told[0].message)
    assert text.startswith("n_samples=16 is too few for spaces of ranks")
    found = re.search(
        r"for (\d+) of the 16 pairs of this pwcca; the first is Hs\['a'\] with Hs\['a'\]\.", text
    )
    assert found and 0 < int(found[1]) < 16


@pytest.mark.parametrize("metric", ONE_OF_EACH)
def test_progress(metric, capsys):
    compare(metric=metric)
    assert capsys.readouterr() == ("", "")
    compare(metric=metric, progress=True)
    out, err = capsys.readouterr()
    last = err.rstrip().rpartition("comparing spaces")[2]
    done, total = re.search(r"(\d+)/(\d+)", last).groups()
    assert not out and done == total and "100%" in last


# --- the result


def numbered(n_rows, n_columns=None, name="model"):
    labels = tuple(f"{name} / {number}" for number in range(n_rows))
    columns = (
        labels if n_columns is None else tuple(f"other {number}" for number in range(n_columns))
    )
    table = np.round(np.random.default_rng(0).uniform(-1, 1, size=(n_rows, len(columns))), 6)
    return SimilarityMatrix(table, labels, columns, "rsa")


def test_becomes_a_frame():
    matrix = compare(Hs_b={"u": LONG["a"], "v": LONG["b"]})
    frame = matrix.to_frame()
    expected = pd.DataFrame(matrix.values, index=list("abcd"), columns=["u", "v"])
    pd.testing.assert_frame_equal(frame, expected)


def test_the_missing_extra_is_named(monkeypatch):
    matrix = compare()
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"pip install 'sklearn-bijection\[io\]'"):
        matrix.to_frame()


def test_writes_comma_separated_values(tmp_path):
    matrix = compare(Hs_b={"u, v": LONG["a"], "w": LONG["b"]})
    lines = list(csv.reader(io.StringIO(matrix.to_csv())))
    assert lines[0] == ["", "u, v", "w"] and [line[0] for line in lines[1:]] == list("abcd")
    np.testing.assert_array_equal([list(map(float, line[1:])) for line in lines[1:]], matrix.values)
    assert matrix.to_csv(tmp_path / "matrix.csv") is None
    assert (tmp_path / "matrix.csv").read_text("utf-8") == matrix.to_csv()


def test_prints_a_small_matrix_with_its_names():
    matrix = numbered(3, 2)
    title, rule, *lines = str(matrix).splitlines()
    assert title == "rsa        other 0  other 1" and set(rule) == {"-"}
    for label, line, row in zip(matrix.labels, lines, matrix.values, strict=True):
        assert line.startswith(label)
        assert_same([float(cell) for cell in line.removeprefix(label).split()], row, 5.1e-4)
    assert repr(matrix) == "<SimilarityMatrix of 3 x 2 spaces: rsa>"


def test_prints_numbers_where_the_names_are_too_long():
    matrix = numbered(13, name="a model with a long name")
    text = str(matrix)
    assert max(map(len, text.splitlines())) < 140
    assert text.splitlines()[0].split() == ["rsa", *map(str, range(13))]
    assert text.splitlines()[5].startswith("  3  a model with a long name / 3 ")
    assert text.endswith("\n\nColumns: the spaces of the rows, by their numbers.")


def test_prints_the_ends_of_a_large_matrix():
    matrix = numbered(40, 30)
    head, *lines = str(matrix).splitlines()
    ends = [*range(5), *range(25, 30)]
    assert head.split() == ["rsa", *map(str, ends[:5]), "...", *map(str, ends[5:])]
    assert [line for line in lines if line.startswith("...")] != []
    assert lines[1].startswith("model / 0") and lines[11].startswith("model / 39")
    assert lines[-12] == "Columns:" and lines[-1] == " 29  other 29"
    shown = [float(cell) for cell in lines[1].removeprefix("model / 0").split() if cell != "..."]
    assert_same(shown, matrix.values[0, ends], 5.1e-4)


def test_prints_no_legend_where_names_are_numbers():
    names = tuple(map(str, range(40)))
    text = str(SimilarityMatrix(np.full((40, 40), 1e5), names, names, "rsa"))
    assert "Columns" not in text and text.splitlines()[0].split()[-1] == "39"


# --- the picture


def number(text):
    return float(text.get_text().replace("\N{MINUS SIGN}", "-").replace(",", ""))


def test_draws_every_value_with_the_names():
    matrix = numbered(4, 3)
    matrix.values[1, 2] = np.nan
    display = SimilarityDisplay.from_matrix(matrix)
    ax = display.ax_
    np.testing.assert_array_equal(ax.images[0].get_array().filled(np.nan), matrix.values)
    assert [label.get_text() for label in ax.get_yticklabels()] == list(matrix.labels)
    assert [label.get_text() for label in ax.get_xticklabels()] == list(matrix.columns)
    drawn = {tuple(map(int, text.get_position()[::-1])): number(text) for text in ax.texts}
    assert set(drawn) == set(map(tuple, np.argwhere(~np.isnan(matrix.values))))
    assert all(abs(matrix.values[cell] - value) < 0.00501 for cell, value in drawn.items())
    assert {text.get_color() for text in ax.texts} == {"black", "white"}
    assert display.colorbar_.ax.get_ylabel() == "rsa"
    assert display._repr_png_().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("limits", "extend"),
    [
        (None, "neither"),
        ((-2, 2), "neither"),
        ((0, 2), "min"),
        ((-2, 0), "max"),
        ((-0.1, 0.1), "both"),
    ],
)
def test_limits_end_the_scale(limits, extend):
    matrix = numbered(4)
    display = SimilarityDisplay.from_matrix(matrix, limits=limits)
    expected = limits or (matrix.values.min(), matrix.values.max())
    assert display.ax_.images[0].get_clim() == expected
    assert display.colorbar_.extend == extend


def test_a_single_space_has_a_scale_too():
    display = SimilarityDisplay.from_matrix(compare({"a": LONG["a"]}))
    low, high = display.ax_.images[0].get_clim()
    assert low < high and [text.get_text() for text in display.ax_.texts] == ["1.00"]


def test_many_layers_share_the_name_of_their_model():
    labels = tuple(f"{model} / {layer}" for model in "xyz" for layer in range(13))
    matrix = SimilarityMatrix(np.eye(39), labels, labels, "rsa")
    ax = SimilarityDisplay.from_matrix(matrix).ax_
    assert not ax.texts
    for axis in (ax.xaxis, ax.yaxis):
        assert [label.get_text() for label in axis.get_ticklabels()] == ["x", "y", "z"]
        assert list(axis.get_ticklocs()) == [6, 19, 32]
    assert sorted(line.get_xdata()[0] for line in ax.lines) == [0, 0, 12.5, 25.5]


def test_many_single_spaces_are_named_now_and_then():
    names = tuple(f"space {place}" for place in range(70))
    ax = SimilarityDisplay.from_matrix(SimilarityMatrix(np.eye(70), names, names, "rsa")).ax_
    assert [label.get_text() for label in ax.get_yticklabels()] == list(names[::3])
    assert not ax.lines


@pytest.mark.parametrize("shape", [(2, None), (13, None), (32, None), (3, 20)])
def test_names_and_numbers_do_not_overlap(shape):
    display = SimilarityDisplay.from_matrix(numbered(*shape))
    display.figure_.draw_without_rendering()
    ax = display.ax_
    for artists in (ax.get_xticklabels(), ax.get_yticklabels(), ax.texts):
        boxes = [artist.get_window_extent() for artist in artists]
        assert not any(a.overlaps(b) for k, a in enumerate(boxes) for b in boxes[:k])
    frame = display.figure_.bbox
    for label in [*ax.get_xticklabels(), *ax.get_yticklabels()]:
        box = label.get_window_extent()
        assert frame.fully_containsx(box.x0) and frame.fully_containsy(box.y0)


def test_draws_again_and_into_axes_given(monkeypatch):
    monkeypatch.delitem(sys.modules, "matplotlib.pyplot", raising=False)
    display = SimilarityDisplay.from_matrix(numbered(3))
    first = display.figure_
    assert display.plot() is display and display.figure_ is not first
    figure = Figure()
    ax = figure.subplots()
    display = SimilarityDisplay.from_matrix(numbered(3), ax=ax)
    assert display.figure_ is figure and display.ax_ is ax
    assert "matplotlib.pyplot" not in sys.modules
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"pip install 'sklearn-bijection\[plot\]'"):
        SimilarityDisplay.from_matrix(numbered(3))
