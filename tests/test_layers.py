"""The comparison layer by layer against fits made by hand, its errors, its tables and its picture."""

import csv
import io
import itertools
import pickle
import sys

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from sklearn_bijection import CCAAligner, ProcrustesAligner
from sklearn_bijection.displays import LayerDisplay
from sklearn_bijection.metrics import LayerComparison, compare_layers, r2

TURN = ProcrustesAligner()
PAIRS_IN_WORDS = r"\(layer of H_a, layer of H_b\)"


def stack(widths=(4, 4, 4), n_samples=60, seed=0):
    """Layers that share a signal, the deeper the less of it."""
    signal = np.random.default_rng(99).normal(size=(n_samples, 5))
    rng = np.random.default_rng(seed)
    return [
        signal @ rng.normal(size=(5, width)) + depth * rng.normal(size=(n_samples, width))
        for depth, width in enumerate(widths)
    ]


A, B = stack(seed=1), stack(widths=(4, 4), seed=2)


def compare(H_a=A, H_b=B, aligner=TURN, **options):
    return compare_layers(H_a, H_b, aligner, **{"cv": 3, "progress": False, **options})


def assert_equal(found, expected, **tolerance):
    for way in ("forward", "inverse"):
        np.testing.assert_allclose(getattr(found, way), getattr(expected, way), **tolerance)


@pytest.fixture(scope="module")
def layers():
    return compare()


@pytest.fixture(scope="module")
def gappy():
    return compare(pairs=[(0, 1), (2, 0)])


@pytest.mark.parametrize(
    "aligner",
    [
        TURN,
        CCAAligner(shrinkage=0.1, direction="forward"),
        make_pipeline(StandardScaler(), CCAAligner(2, shrinkage=0)),
    ],
    ids=["procrustes", "ridge", "pipeline"],
)
@pytest.mark.parametrize("widths", [(4, 4), (3, 6)], ids=["equal widths", "unequal widths"])
def test_every_entry_is_a_fit_made_by_hand(aligner, widths):
    H_b = stack(widths, seed=2)
    layers = compare(H_b=H_b, aligner=aligner)
    assert layers.forward.shape == layers.inverse.shape == (3, 2, 3)
    splits = list(KFold(3, shuffle=True, random_state=0).split(A[0]))
    for i, j, k in np.ndindex(3, 2, 3):
        (train, test), a, b = splits[k], A[i], H_b[j]
        fitted = clone(aligner).fit(a[train], b[train])
        assert layers.forward[i, j, k] == pytest.approx(r2(b[test], fitted.transform(a[test])))
        back = fitted.inverse_transform(b[test])
        assert layers.inverse[i, j, k] == pytest.approx(r2(a[test], back))


@pytest.mark.parametrize("widths", [(4, 4), (2, 6)], ids=["equal widths", "unequal widths"])
def test_swapping_the_models_swaps_the_tables(widths):
    H_b = stack(widths, seed=2)
    there, back = compare(H_b=H_b), compare(H_b, A)
    swapped = LayerComparison(back.inverse.swapaxes(0, 1), back.forward.swapaxes(0, 1))
    assert_equal(there, swapped, rtol=0, atol=1e-10)
    np.testing.assert_allclose(there.symmetric_mean, back.symmetric_mean.T, rtol=0, atol=1e-10)


class Counting(BaseEstimator):
    """Hands rows through, and counts how often it was fitted."""

    fits = 0

    def fit(self, X, y):
        Counting.fits += 1
        return self

    def transform(self, X):
        return X

    inverse_transform = transform


def test_nothing_is_mirrored(monkeypatch):
    one_way = compare(A[:2], B, CCAAligner(shrinkage=0, direction="forward"))
    assert not np.allclose(one_way.forward_mean, one_way.forward_mean.T, atol=0.01)
    within = compare(A, A, CCAAligner(shrinkage=0, direction="forward"))
    assert not np.allclose(within.forward_mean, within.forward_mean.T, atol=0.01)
    assert not np.allclose(within.inverse_mean, within.forward_mean.T, atol=0.01)
    monkeypatch.setattr(Counting, "fits", 0)
    compare(A, A, Counting())
    assert Counting.fits == 3 * 3 * 3


def test_a_model_explains_itself(layers):
    within = compare(A, A)
    np.testing.assert_allclose(within.forward_mean.diagonal(), 1)
    np.testing.assert_allclose(within.inverse_mean.diagonal(), 1)
    assert within.forward_mean[0, 2] < 0.9 and layers.forward_mean.max() < 0.99


@pytest.mark.parametrize("kind", ["array", "memory map", "float32", "frames", "lists", "tuple"])
def test_takes_stacks_of_every_kind(kind, layers, tmp_path):
    def as_kind(H, name):
        if kind == "memory map":
            np.save(tmp_path / f"{name}.npy", H)
            return np.load(tmp_path / f"{name}.npy", mmap_mode="r")
        return {
            "array": np.array,
            "float32": lambda H: np.array(H, dtype="float32"),
            "frames": lambda H: [pd.DataFrame(layer).add_prefix("unit") for layer in H],
            "lists": lambda H: [layer.tolist() for layer in H],
            "tuple": tuple,
        }[kind](H)

    found = compare(as_kind(A, "a"), as_kind(B, "b"), n_jobs=2 if kind == "memory map" else None)
    assert_equal(found, layers, rtol=0, atol=1e-5 if kind == "float32" else 1e-12)


class Lazy:
    """A layer on a disk: it hands out the rows asked for, and notes how many."""

    def __init__(self, rows):
        self.rows, self.shape, self.read = rows, rows.shape, []

    def __getitem__(self, index):
        self.read.append(len(index))
        return self.rows[index]


def test_reads_only_the_rows_needed(layers):
    H_a, H_b = [Lazy(layer) for layer in A], [Lazy(layer) for layer in B]
    assert_equal(compare(H_a, H_b), layers)
    assert [layer.read for layer in H_a] == [[40, 20] * 6] * 3
    assert [layer.read for layer in H_b] == [[40, 20] * 9] * 2
    untouched = [Lazy(layer) for layer in A]
    compare(untouched, H_b, pairs=[(1, 0)])
    assert [len(layer.read) for layer in untouched] == [0, 6, 0]


def test_the_callers_arrays_and_aligner_stay_as_they_were():
    H_a, aligner = np.array(A), make_pipeline(StandardScaler(), ProcrustesAligner())
    H_a.flags.writeable = False
    compare(H_a, H_a, aligner)
    with pytest.raises(NotFittedError):
        check_is_fitted(aligner)


@pytest.mark.parametrize("seed", [0, 1])
def test_random_state_decides_the_folds(seed, layers):
    folds = KFold(3, shuffle=True, random_state=seed)
    found = compare(random_state=seed)
    for cv in (folds, list(folds.split(A[0])), folds.split(A[0])):
        assert_equal(compare(cv=cv), found)
    assert np.array_equal(found.forward, layers.forward) == (seed == 0)


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ("same", [(0, 0), (1, 1), (2, 2)]),
        ([(0, 1), (2, 0)], [(0, 1), (2, 0)]),
        ([(-1, -3), (2, 0)], [(2, 0)]),
        (((1, 2),), [(1, 2)]),
        (np.array([[1, -1], [0, 0]]), [(0, 0), (1, 2)]),
        (zip(range(2), range(1, 3), strict=True), [(0, 1), (1, 2)]),
    ],
)
def test_only_the_pairs_asked_for_are_fitted(pairs, expected, monkeypatch):
    monkeypatch.setattr(Counting, "fits", 0)
    found, whole = compare(A, A, Counting(), pairs=pairs), compare(A, A, Counting())
    assert Counting.fits == 3 * len(expected) + 27
    mask = np.zeros((3, 3), dtype=bool)
    mask[*zip(*expected, strict=True)] = True
    for way in ("forward", "inverse"):
        np.testing.assert_array_equal(getattr(found, way)[mask], getattr(whole, way)[mask])
        assert np.isnan(getattr(found, way)[~mask]).all()
    for means in (found.forward_mean, found.inverse_mean, found.symmetric_mean):
        np.testing.assert_array_equal(np.isnan(means), ~mask)


@pytest.mark.parametrize(
    ("H_a", "pairs", "message"),
    [
        (A, "diagonal", rf"pairs='diagonal' is not known\. Pass 'all', 'same', .*{PAIRS_IN_WORDS}"),
        (A, "same", r"pairs='same' needs equally many layers, but H_a has 3 and H_b has 2"),
        (A, [], rf"pairs is empty\. Pass at least one {PAIRS_IN_WORDS}"),
        (A, [(0, 0), (3, 0)], r"layer 3 of H_a, which has 3\. .*0 to 2, or from -3 to -1"),
        (A, [(0, -3)], r"layer -3 of H_b, which has 2\."),
        (A, [(0, 1, 1)], rf"the entry \(0, 1, 1\)\. Each is two whole numbers, {PAIRS_IN_WORDS}"),
        (A, [0, 1], r"pairs has the entry 0\. "),
        (A, [(0.0, 1)], r"pairs has the entry \(0\.0, 1\)"),
        ([], "all", r"H_a has no layers\. Pass at least one array \(n_samples, width\)"),
        (np.empty((0, 60, 4)), "all", r"H_a has no layers\."),
        (
            A[0],
            "all",
            r"H_a\[0\] has shape \(4,\), .*\(n_layers, n_samples, width\).* Pass \[H_a\]",
        ),
        (np.zeros((2, 60, 7, 4)), "all", r"H_a\[0\] has shape \(60, 7, 4\), but H_a is a stack"),
        ([A[0], A[1][0]], "all", r"H_a\[1\] has shape \(4,\)"),
        ([A[0], A[1][:-1]], "all", r"H_a\[1\] has 59 rows but H_a\[0\] has 60\. .*same sample"),
        ([A[0][:-1]], "all", r"H_b\[0\] has 60 rows but H_a\[0\] has 59"),
    ],
)
def test_what_is_refused(H_a, pairs, message):
    with pytest.raises(ValueError, match=message):
        compare(H_a, pairs=pairs)


@pytest.mark.parametrize("aligner", [LinearRegression(), make_pipeline(LinearRegression())])
def test_an_aligner_must_map_both_ways(aligner):
    with pytest.raises(TypeError, match=r"aligner is .*LinearRegression.*, which lacks transform"):
        compare(aligner=aligner)


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_an_error_names_its_layers_and_split(n_jobs):
    broken = [layer.copy() for layer in B]
    (_, test), *_ = KFold(3).split(A[0])
    broken[1][test[0], 0] = np.nan
    with pytest.raises(ValueError, match="NaN") as caught:
        compare(H_b=broken, cv=KFold(3), pairs=[(0, 0), (2, 1)], n_jobs=n_jobs)
    (note,) = caught.value.__notes__
    assert note.startswith("Raised by layer 2 of H_a with layer 1 of H_b on split ")


def test_progress_goes_to_stderr(capsys):
    compare(progress=True)
    out, err = capsys.readouterr()
    assert out == "" and "comparing layers" in err and "18/18" in err
    compare()
    assert capsys.readouterr() == ("", "")


def test_means_are_over_the_splits(layers):
    np.testing.assert_allclose(layers.forward_mean, layers.forward.sum(axis=2) / 3)
    np.testing.assert_allclose(layers.inverse_mean, layers.inverse.sum(axis=2) / 3)
    both = np.concatenate([layers.forward, layers.inverse], axis=2)
    np.testing.assert_allclose(layers.symmetric_mean, both.mean(axis=2))


def test_becomes_a_frame_and_a_file(gappy, layers, tmp_path):
    frame = gappy.to_frame()
    assert list(frame) == ["layer_a", "layer_b", "split", "r2_forward", "r2_inverse"]
    places = [(*pair, split) for pair in [(0, 1), (2, 0)] for split in range(3)]
    assert list(frame[["layer_a", "layer_b", "split"]].itertuples(index=False)) == places
    assert frame["r2_forward"].tolist() == [gappy.forward[place] for place in places]
    assert frame["r2_inverse"].tolist() == [gappy.inverse[place] for place in places]
    assert len(layers.to_frame()) == 3 * 2 * 3
    text = gappy.to_csv()
    rows = list(csv.DictReader(io.StringIO(text)))
    assert rows == [{name: str(value) for name, value in row.items()} for row in gappy.rows]
    assert gappy.to_csv(tmp_path / "layers.csv") is None
    assert (tmp_path / "layers.csv").read_text(encoding="utf-8") == text


def test_a_frame_needs_pandas_and_a_file_does_not(gappy, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"pip install 'sklearn-bijection\[io\]'"):
        gappy.to_frame()
    assert gappy.to_csv().startswith("layer_a,layer_b,split,r2_forward,r2_inverse\n")


def test_prints_as_two_tables(layers, gappy):
    forward, inverse, legend = str(layers).split("\n\n")
    tables = [("R² forward", layers.forward_mean, forward)]
    for title, means, table in [*tables, ("R² inverse", layers.inverse_mean, inverse)]:
        head, rule, *rows = table.splitlines()
        assert head.startswith(title) and head.split()[2:] == ["0", "1"]
        assert {len(line) for line in (rule, *rows)} == {len(head)}
        numbers = [[float(cell) for cell in row.split()] for row in rows]
        np.testing.assert_allclose(numbers, np.column_stack([range(3), means]), atol=5.001e-4)
    assert "Mean over 3 splits" in legend and "not asked for" not in legend
    assert str(gappy).splitlines()[3].split() == ["1", "-", "-"]
    assert str(gappy).endswith("-: not asked for.")
    assert "Mean over 1 split of" in str(compare(cv=ShuffleSplit(1, random_state=0)))


def test_is_a_frozen_value(layers, gappy):
    with pytest.raises(AttributeError):
        layers.forward = layers.inverse
    assert_equal(pickle.loads(pickle.dumps(layers)), layers)
    assert repr(layers) == "<LayerComparison of 3 x 2 layers: 6 pairs, 3 splits>"
    assert repr(gappy) == "<LayerComparison of 3 x 2 layers: 2 pairs, 3 splits>"


def scores(n_layers=5, seed=0, **cells):
    """A comparison with scores between -1 and 1, apart from the cells given."""
    forward, inverse = np.random.default_rng(seed).uniform(-1, 1, size=(2, n_layers, n_layers, 2))
    forward[0, 0] = cells.get("corner", forward[0, 0])
    return LayerComparison(forward, inverse)


def number(text):
    return float(text.get_text().replace("\N{MINUS SIGN}", "-").replace(",", ""))


def test_the_picture_shows_both_tables(gappy, layers):
    for comparison in (gappy, layers):
        display = LayerDisplay.from_comparison(comparison)
        maps = [comparison.forward_mean, comparison.inverse_mean]
        for ax, means, way in zip(display.axes_, maps, ["forward", "inverse"], strict=True):
            assert ax.get_title().startswith(way)
            assert ax.get_xlabel() == "layer of the second model"
            assert ax.get_ylabel() == "layer of the first model"
            np.testing.assert_array_equal(ax.images[0].get_array().filled(np.nan), means)
            drawn = {tuple(map(int, text.get_position()[::-1])): number(text) for text in ax.texts}
            assert set(drawn) == set(map(tuple, np.argwhere(~np.isnan(means))))
            assert all(abs(means[cell] - value) < 0.00501 for cell, value in drawn.items())


@pytest.mark.parametrize(("lowest", "corner"), [(-0.5, -300), (-2, 0), (-0.5, -0.7)])
def test_both_maps_share_a_scale_that_ends_at_the_lowest(lowest, corner):
    comparison = scores(corner=corner)
    display = LayerDisplay.from_comparison(comparison, lowest=lowest)
    means = np.stack([comparison.forward_mean, comparison.inverse_mean])
    limits = {ax.images[0].get_clim() for ax in display.axes_}
    assert limits == {(max(lowest, means.min()), means.max())}
    below = means.min() < lowest
    assert display.colorbar_.extend == ("min" if below else "neither") and below == (lowest > -1)
    assert number(display.axes_[0].texts[0]) == pytest.approx(corner)


@pytest.mark.parametrize("value", [1.0, -7.0])
def test_a_single_value_has_a_scale_too(value):
    display = LayerDisplay.from_comparison(LayerComparison(*np.full((2, 1, 1, 2), value)))
    low, high = display.axes_[0].images[0].get_clim()
    assert low < high
    assert display._repr_png_().startswith(b"\x89PNG")


def luminance(colour):
    """By the definition of the Web Content Accessibility Guidelines."""
    return float(
        sum(
            weight * (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4)
            for weight, c in zip((0.2126, 0.7152, 0.0722), colour, strict=True)
        )
    )


def test_numbers_stand_out_from_their_cells():
    comparison = scores(13)
    ax, _ = LayerDisplay.from_comparison(comparison).axes_
    assert len(ax.texts) == 169 and {text.get_color() for text in ax.texts} == {"black", "white"}
    cells = ax.images[0].to_rgba(comparison.forward_mean)
    for text in ax.texts:
        column, row = map(int, text.get_position())
        ink = {"black": 0.0, "white": 1.0}[text.get_color()]
        dark, light = sorted([ink, luminance(cells[row, column, :3])])
        assert (light + 0.05) / (dark + 0.05) > 4.5


@pytest.mark.parametrize("n_layers", [1, 5, 13])
def test_numbers_fit_into_their_cells(n_layers):
    display = LayerDisplay.from_comparison(scores(n_layers, corner=-999_999))
    display.figure_.draw_without_rendering()
    for ax in display.axes_:
        boxes = [text.get_window_extent() for text in ax.texts]
        assert max(box.width for box in boxes) < ax.bbox.width / n_layers
        assert max(box.height for box in boxes) < ax.bbox.height / n_layers
        titles = [ax.title, ax.xaxis.label, ax.yaxis.label]
        frame = display.figure_.bbox
        for box in [title.get_window_extent() for title in titles]:
            assert frame.fully_containsx(box.x0) and frame.fully_containsx(box.x1)
            assert frame.fully_containsy(box.y0) and frame.fully_containsy(box.y1)
    labels = [label for ax in display.axes_ for label in [*ax.get_xticklabels(), ax.title]]
    for one, other in itertools.combinations(labels, 2):
        assert not one.get_window_extent().overlaps(other.get_window_extent())


def test_large_models_are_drawn_without_numbers():
    display = LayerDisplay.from_comparison(scores(25))
    for ax in display.axes_:
        assert not ax.texts
        assert ax.get_xticks().tolist() == ax.get_yticks().tolist() == list(range(0, 25, 2))


def test_draws_again_and_into_axes_given(layers):
    display = LayerDisplay.from_comparison(layers)
    first = display.figure_
    assert display.plot() is display and display.figure_ is not first
    figure = Figure()
    axes = figure.subplots(2)
    display = LayerDisplay.from_comparison(layers, axes=axes)
    assert display.figure_ is figure and tuple(display.axes_) == tuple(axes)
    with pytest.raises(ValueError, match="axes has 1 axes, but this draws two panels"):
        LayerDisplay.from_comparison(layers, axes=axes[:1])


def test_the_missing_extra_is_named(layers, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"pip install 'sklearn-bijection\[plot\]'"):
        LayerDisplay.from_comparison(layers)


def test_pyplot_is_left_alone(layers, monkeypatch):
    monkeypatch.delitem(sys.modules, "matplotlib.pyplot", raising=False)
    LayerDisplay.from_comparison(layers)._repr_png_()
    assert "matplotlib.pyplot" not in sys.modules
