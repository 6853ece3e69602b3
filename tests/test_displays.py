"""Pictures: what is drawn, where, and that nothing overlaps or leaks into pyplot."""

import itertools
import subprocess
import sys

import numpy as np
import pytest
from conftest import noisy_pair
from matplotlib.figure import Figure
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_bijection import CCAAligner, ProcrustesAligner
from sklearn_bijection.displays import AlignmentDisplay, ComparisonDisplay
from sklearn_bijection.metrics import compare_aligners

PNG = b"\x89PNG"


@pytest.fixture(scope="module")
def comparison():
    X, y = noisy_pair(120, 4, 4)
    aligners = {
        "shrunk": CCAAligner(shrinkage=0.1),
        "forward only, with a long name": CCAAligner(direction="forward", shrinkage=0),
        "scaled": make_pipeline(StandardScaler(), ProcrustesAligner(scale=False)),
    }
    return compare_aligners(aligners, X, 100 * y, cv=3, progress=False)


def halves(n_samples=90, **options):
    X, y = noisy_pair(2 * n_samples, 6, 4, **options)
    aligner = ProcrustesAligner().fit(X[:n_samples], y[:n_samples])
    return aligner, X[n_samples:], y[n_samples:]


def boxes(artists):
    return [artist.get_window_extent() for artist in artists]


def assert_apart(artists):
    for one, other in itertools.combinations(boxes(artists), 2):
        assert not one.overlaps(other)


def test_comparison_writes_every_mean(comparison):
    display = ComparisonDisplay.from_comparison(comparison)
    assert [label.get_text() for label in display.axes_[0].get_yticklabels()] == comparison.names
    for ax, name in zip(display.axes_, ["r2", "precision_at_1"], strict=True):
        texts = [
            text.get_text().replace("\N{MINUS SIGN}", "-").replace(",", "") for text in ax.texts
        ]
        means = [
            np.mean(comparison.values(aligner, f"{name}_{way}"))
            for aligner in comparison.names
            for way in ("forward", "inverse")
        ]
        assert [float(text) for text in texts] == pytest.approx(means, rel=0.05, abs=1e-3)


def test_comparison_cuts_what_is_far_below(comparison):
    ax, _ = ComparisonDisplay.from_comparison(comparison, lowest=-0.3).axes_
    low, high = ax.get_xlim()
    assert -0.5 < low < -0.3 and high < 1.5
    arrows = [line for line in ax.lines if line.get_marker() == "<"]
    means = [
        np.mean(comparison.values(aligner, f"r2_{way}"))
        for aligner in comparison.names
        for way in ("forward", "inverse")
    ]
    assert len(arrows) == sum(mean < low for mean in means) > 0
    assert all(line.get_xdata()[0] == low for line in arrows)


def test_comparison_draws_every_split(comparison):
    _, ax = ComparisonDisplay.from_comparison(comparison).axes_
    drawn = [tuple(line.get_xdata()) for line in ax.lines]
    for aligner in comparison.names:
        assert tuple(comparison.values(aligner, "precision_at_1_inverse")) in drawn


def test_comparison_text_does_not_overlap(comparison):
    display = ComparisonDisplay.from_comparison(comparison)
    display.figure_.draw_without_rendering()
    left, right = display.axes_
    assert_apart([*left.texts, *right.texts, *left.get_yticklabels(), left.title, right.title])
    for ax in display.axes_:
        assert all(ax.bbox.x1 >= box.x1 for box in boxes(ax.texts))


def test_alignment_shows_the_plane_of_the_principal_axes():
    aligner, X, y = halves()
    display = AlignmentDisplay.from_aligner(aligner, X, y)
    sides = [(y, aligner.transform(X)), (X, aligner.inverse_transform(y))]
    for plane, (truth, guess) in zip((display.forward, display.inverse), sides, strict=True):
        axes = np.linalg.svd(truth - truth.mean(axis=0))[2][:2].T
        for points, rows in ((plane.truth, truth), (plane.guess, guess)):
            np.testing.assert_allclose(np.abs(points), np.abs((rows - truth.mean(axis=0)) @ axes))
        assert plane.share[0] > plane.share[1] > 0
    assert f"R² = {aligner.score(X, y):.3f}" in display.axes_[0].get_title()


def test_alignment_joins_the_pairs_it_drew():
    aligner, X, y = halves()
    displays = [
        AlignmentDisplay.from_aligner(aligner, X, y, n_lines=20, random_state=seed)
        for seed in (0, 0, 1)
    ]
    first, again, other = (display.shown for display in displays)
    np.testing.assert_array_equal(first, again)
    assert set(first) != set(other) and len(set(first)) == 20
    line = next(line for line in displays[0].axes_[0].lines if len(line.get_xdata()) == 60)
    np.testing.assert_array_equal(line.get_xdata()[::3], displays[0].forward.truth[first, 0])
    np.testing.assert_array_equal(line.get_ydata()[1::3], displays[0].forward.guess[first, 1])
    assert len(AlignmentDisplay.from_aligner(aligner, X, y, n_lines=1000).shown) == len(X)


def test_alignment_labels_overlap_nothing():
    aligner, X, y = halves()
    labels = [f"row number {i}" for i in range(len(X))]
    display = AlignmentDisplay.from_aligner(aligner, X, y, labels=labels)
    display.figure_.draw_without_rendering()
    for ax, plane in zip(display.axes_, (display.forward, display.inverse), strict=True):
        assert 5 < len(ax.texts) <= 60
        assert_apart(ax.texts)
        marks = ax.transData.transform(plane.guess[display.shown])
        assert not any(box.contains(*mark) for box in boxes(ax.texts) for mark in marks)
        for text in ax.texts:
            row = labels.index(text.get_text())
            np.testing.assert_array_equal(text.xy, plane.truth[row])


def test_alignment_counts_what_lies_outside():
    aligner, X, y = halves()
    X = X.copy()
    X[3] *= 1000
    y = y.copy()
    display = AlignmentDisplay.from_aligner(aligner, X, y, n_lines=90)
    assert [text.get_text() for text in display.axes_[0].texts] == [
        "1 of 90 predictions lie outside"
    ]


@pytest.mark.parametrize("one_dimensional", [False, True])
def test_alignment_of_a_single_target(one_dimensional):
    X, y = noisy_pair(60, 3, 1)
    y = y[:, 0] if one_dimensional else y
    display = AlignmentDisplay.from_aligner(CCAAligner().fit(X, y), X, y)
    assert display.forward.share.tolist() == [1, 0]
    assert not display.forward.guess[:, 1].any()


@pytest.fixture(params=["comparison", "alignment"])
def draw(request, comparison):
    if request.param == "comparison":
        return lambda **options: ComparisonDisplay.from_comparison(comparison, **options)
    return lambda **options: AlignmentDisplay.from_aligner(*halves(), **options)


def test_writes_a_file_and_shows_in_a_notebook(draw, tmp_path):
    display = draw()
    display.figure_.savefig(tmp_path / "picture.png")
    assert (tmp_path / "picture.png").read_bytes()[:4] == PNG
    assert display._repr_png_()[:4] == PNG


def test_draws_again_and_into_axes_given(draw):
    display = draw()
    first = display.figure_
    assert display.plot() is display and display.figure_ is not first
    figure = Figure()
    axes = figure.subplots(2)
    display = draw(axes=axes)
    assert display.figure_ is figure and tuple(display.axes_) == tuple(axes)
    assert all(ax.get_legend() is not None for ax in axes)
    with pytest.raises(ValueError, match="axes has 1 axes, but this draws two panels"):
        draw(axes=axes[:1])


def test_labels_must_match_the_rows():
    aligner, X, y = halves()
    with pytest.raises(ValueError, match="labels has 2 texts for 90 rows"):
        AlignmentDisplay.from_aligner(aligner, X, y, labels=["a", "b"])
    with pytest.raises(ValueError, match="X has 90 rows but y has 89"):
        AlignmentDisplay.from_aligner(aligner, X, y[:-1])


def test_the_missing_extra_is_named(draw, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"pip install 'sklearn-bijection\[plot\]'"):
        draw()


def test_pyplot_is_left_alone():
    code = """
import sys, numpy as np
import sklearn_bijection.displays as displays
assert "matplotlib" not in sys.modules
from sklearn_bijection import ProcrustesAligner
X = np.random.default_rng(0).normal(size=(30, 3))
displays.AlignmentDisplay.from_aligner(ProcrustesAligner().fit(X, X), X, X)._repr_png_()
assert "matplotlib.pyplot" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
