"""Many spaces in one: planted rotations, laws, and agreement with other methods."""

from itertools import pairwise

import numpy as np
import pytest
from _worlds import centred, pairs, rotation, worlds
from conftest import assert_close
from scipy.linalg import orthogonal_procrustes
from scipy.stats import ortho_group

from sklearn_bijection import GeneralizedProcrustes, ProcrustesAligner
from sklearn_bijection._linalg import variance_explained

# Planted


@pytest.mark.parametrize("allow_reflection", [True, False])
@pytest.mark.parametrize(("n_samples", "width"), [(200, 8), (6, 8)])
def test_planted_rotations_scales_and_shifts_are_recovered(n_samples, width, allow_reflection):
    Xs = worlds(10, n_samples, width, scales=np.geomspace(0.01, 100, 10))
    if not allow_reflection and n_samples > width:
        handed = [np.linalg.det(orthogonal_procrustes(centred(Xs[0]), centred(X))[0]) for X in Xs]
        Xs = [
            X * np.where(np.arange(width), 1, np.sign(h)) for X, h in zip(Xs, handed, strict=True)
        ]
    spaces = GeneralizedProcrustes(allow_reflection=allow_reflection).fit(Xs)
    for i, j in pairs(10):
        assert_close(spaces.translate(Xs[i], i, j), Xs[j], 1e-8)
    np.testing.assert_allclose(
        spaces.scales_ * np.geomspace(0.01, 100, 10), spaces.scales_[0] * 0.01
    )
    np.testing.assert_allclose(spaces.disparity_, 0, atol=1e-12)
    assert spaces.score(Xs) == pytest.approx(1.0)
    if not allow_reflection:
        np.testing.assert_allclose([np.linalg.det(R) for R in spaces.rotations_], 1.0)


def test_planted_rotations_themselves():
    meaning = np.random.default_rng(0).normal(size=(50, 4))
    turns = ortho_group.rvs(4, size=3, random_state=0)
    spaces = GeneralizedProcrustes().fit([meaning @ turn for turn in turns])
    for i, j in pairs(3):
        found = spaces.rotations_[i] @ spaces.rotations_[j].T
        np.testing.assert_allclose(found, turns[i].T @ turns[j], atol=1e-12)


def test_a_narrow_space_within_a_wide_one_is_recovered_with_its_scale():
    # Of columns that are correlated others than the shared ones would bring the narrow spaces nearer.
    wide = np.linalg.qr(centred(np.random.default_rng(0).normal(size=(80, 7)))).Q * 9.0 + 2.0
    narrow = [0.1 * wide[:, :3] @ rotation(3, 1), 10 * wide[:, :3] @ rotation(3, 2) - 1.0]
    spaces = GeneralizedProcrustes().fit([*narrow, wide])
    assert spaces.widths_ == [3, 3, 7]
    assert_close(spaces.translate(narrow[0], 0, 1), narrow[1], 1e-10)
    assert_close(spaces.translate(wide, 2, 1), narrow[1], 1e-10)
    assert_close(spaces.translate(narrow[1], 1, 2)[:, :3], wide[:, :3], 1e-10)


def test_on_rows_held_out_it_beats_a_chain_of_pairs():
    Xs = worlds(10, 1030, 12, noise=1.0, seed=1)
    train, test = [X[:30] for X in Xs], [X[30:] for X in Xs]
    spaces, chain = GeneralizedProcrustes().fit(train), test[0]
    for source, target in pairwise(train):
        chain = ProcrustesAligner().fit(source, target).transform(chain)
    direct = ProcrustesAligner().fit(train[0], train[9]).transform(test[0])
    ours = variance_explained(test[9], spaces.translate(test[0], 0, 9))
    assert ours > variance_explained(test[9], direct) + 0.04
    assert ours > variance_explained(test[9], chain) + 0.15


# Against other methods


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("allow_reflection", [True, False])
def test_two_spaces_are_the_pairs_procrustes(scale, allow_reflection, weighted):
    X, y = worlds(2, 60, 6, noise=1.5, scales=[1, 7])
    weight = np.random.default_rng(1).integers(0, 3, size=60) if weighted else None
    options = {"scale": scale, "allow_reflection": allow_reflection}
    spaces = GeneralizedProcrustes(**options).fit([X, y], sample_weight=weight)
    pair = ProcrustesAligner(**options).fit(X, y, sample_weight=weight)
    between = spaces.map_between(0, 1)
    assert_close(between.forward(X), pair.transform(X), 1e-10)
    assert_close(between.inverse(y), pair.inverse_transform(y), 1e-10)
    np.testing.assert_allclose(between.there.coef, pair.rotation_ * pair.scale_, atol=1e-10)


@pytest.mark.parametrize("widths", [(4, 9), (9, 4), (1, 3)])
def test_two_spaces_of_unequal_width_are_the_pairs_procrustes(widths):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, widths[0]))
    y = 5 * X @ rng.normal(size=widths) + rng.normal(size=(80, widths[1]))
    spaces, pair = GeneralizedProcrustes().fit([X, y]), ProcrustesAligner().fit(X, y)
    assert_close(spaces.translate(X, 0, 1), pair.transform(X), 1e-10)
    assert_close(spaces.translate(y, 1, 0), pair.inverse_transform(y), 1e-10)


@pytest.mark.parametrize("scale", [True, False])
def test_each_space_is_turned_to_the_mean_of_the_others(scale):
    Xs = worlds(5, 100, 6, noise=1.0, scales=[1, 2, 3, 4, 5])
    spaces = GeneralizedProcrustes(scale=scale).fit(Xs)
    Zs = [spaces.transform(X, k) for k, X in enumerate(Xs)]
    for k, X in enumerate(Xs):
        best, _ = orthogonal_procrustes(centred(X), sum(Zs) - Zs[k])
        np.testing.assert_allclose(spaces.rotations_[k], best, atol=1e-4)


@pytest.mark.parametrize("seed", range(3))
def test_it_ends_no_higher_than_the_textbook_loop(seed):
    Xs = worlds(6, 60, 5, noise=1.5, seed=seed)
    Zs = [centred(X) / np.linalg.norm(centred(X)) for X in Xs]
    for _ in range(300):
        for k in range(6):
            Zs[k] = Zs[k] @ orthogonal_procrustes(Zs[k], sum(Zs) - Zs[k])[0]
    textbook = 1 - np.square(np.mean(Zs, axis=0)).sum()
    assert GeneralizedProcrustes().fit(Xs).loss_curve_[-1] < textbook + 1e-7


# Laws


@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("allow_reflection", [True, False])
@pytest.mark.parametrize(("n_samples", "noise"), [(150, 0.0), (150, 1.0), (60, 3.0), (4, 1.0)])
def test_the_objective_never_rises_and_is_what_it_says(n_samples, noise, allow_reflection, scale):
    Xs = worlds(6, n_samples, 6, noise=noise, scales=np.arange(1, 7))
    options = {"scale": scale, "allow_reflection": allow_reflection, "max_iter": 500}
    spaces = GeneralizedProcrustes(**options).fit(Xs)
    losses = spaces.loss_curve_
    assert (np.diff(losses) <= 0).all()
    assert len(losses) == spaces.n_iter_ + 1
    Zs = np.array([spaces.transform(X, k) for k, X in enumerate(Xs)])
    apart = np.square(Zs - Zs.mean(axis=0)).sum()
    assert losses[-1] == pytest.approx(apart / np.square(Zs).sum(), abs=1e-12)


@pytest.mark.parametrize("k", range(4))
def test_turning_one_space_turns_its_maps_alone(k):
    Xs, Q = worlds(4, noise=0.7), rotation(5, 9)
    turned = [X @ Q if number == k else X for number, X in enumerate(Xs)]
    first, second = (GeneralizedProcrustes().fit(rows) for rows in (Xs, turned))
    back = [Q.T if number == k else np.eye(5) for number in range(4)]
    for i, j in pairs(4):
        assert_close(
            second.translate(turned[i], i, j) @ back[j], first.translate(Xs[i], i, j), 1e-7
        )
    # The signs of the axes are those of the largest loading, which another basis has elsewhere.
    assert_close(np.abs(second.template(turned)), np.abs(first.template(Xs)), 1e-7)


@pytest.mark.parametrize("order", [[3, 2, 1, 0], [1, 0, 3, 2], [2, 3, 0, 1]])
@pytest.mark.parametrize("widths", [(5, 5, 5, 5), (3, 5, 5, 2)])
def test_the_order_of_the_spaces_plays_no_part(order, widths):
    Xs = [X[:, :width] for X, width in zip(worlds(4, noise=0.7), widths, strict=True)]
    first = GeneralizedProcrustes().fit(Xs)
    second = GeneralizedProcrustes().fit([Xs[k] for k in order])
    for place, k in enumerate(order):
        assert_close(second.transform(Xs[k], place), first.transform(Xs[k], k), 1e-7)
    np.testing.assert_allclose(second.disparity_, first.disparity_[order], atol=1e-9)


@pytest.mark.parametrize("unit", [1e-6, 1e9, 1e-130, 1e130])
def test_the_unit_of_one_space_is_its_own(unit):
    Xs = worlds(4, noise=0.7)
    first = GeneralizedProcrustes().fit(Xs)
    second = GeneralizedProcrustes().fit([Xs[0], Xs[1] * unit, *Xs[2:]])
    assert_close(second.template([Xs[0], Xs[1] * unit, *Xs[2:]]), first.template(Xs), 1e-7)
    assert_close(second.translate(Xs[0], 0, 1) / unit, first.translate(Xs[0], 0, 1), 1e-7)
    assert_close(second.translate(Xs[1] * unit, 1, 2), first.translate(Xs[1], 1, 2), 1e-7)


@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize(("unit", "offset"), [(1e-6, 0.0), (1.0, 1e4), (1e-3, 1e3)])
def test_units_and_offsets_of_all_leave_the_template_in_place(unit, offset, scale):
    Xs = worlds(4, noise=0.7)
    moved = [X * unit + offset for X in Xs]
    first, second = (GeneralizedProcrustes(scale=scale).fit(rows) for rows in (Xs, moved))
    factor = 1.0 if scale else unit
    assert_close(second.template(moved), first.template(Xs) * factor, 1e-6)
    assert_close(
        second.translate(moved[0], 0, 1), first.translate(Xs[0], 0, 1) * unit + offset, 1e-6
    )


def test_a_weight_of_two_counts_a_row_twice():
    Xs, weight = worlds(3, 60, noise=0.7), np.random.default_rng(1).integers(0, 3, size=60)
    weighted = GeneralizedProcrustes().fit(Xs, sample_weight=weight)
    repeated = GeneralizedProcrustes().fit([np.repeat(X, weight, axis=0) for X in Xs])
    for k, X in enumerate(Xs):
        assert_close(weighted.transform(X, k), repeated.transform(X, k), 1e-8)
    assert weighted.score(Xs, sample_weight=weight) == pytest.approx(
        repeated.score([np.repeat(X, weight, axis=0) for X in Xs])
    )


@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("n_samples", [2, 4, 100])
def test_of_equal_width_every_round_trip_is_exact_for_every_row(n_samples, scale):
    Xs = worlds(4, n_samples, 6, noise=1.0, scales=[1, 1e-3, 1e3, 2])
    spaces = GeneralizedProcrustes(scale=scale, max_iter=500).fit(Xs)
    anywhere = np.random.default_rng(5).normal(size=(40, 6)) * 10
    for i, j in pairs(4):
        there = spaces.translate(anywhere, i, j)
        assert_close(spaces.translate(there, j, i), anywhere, 1e-12)
        assert_close(spaces.inverse_transform(spaces.transform(anywhere, i), j), there, 1e-12)
        assert_close(spaces.transform(spaces.inverse_transform(anywhere, i), i), anywhere, 1e-12)
    chained = spaces.translate(spaces.translate(anywhere, 0, 1), 1, 2)
    assert_close(chained, spaces.translate(anywhere, 0, 2), 1e-12)
    for R in spaces.rotations_:
        np.testing.assert_allclose(R @ R.T, np.eye(6), atol=1e-12)


@pytest.mark.parametrize("n_samples", [3, 4, 200])
@pytest.mark.parametrize("allow_reflection", [True, False])
def test_of_unequal_width_what_is_narrower_comes_back(n_samples, allow_reflection):
    widths = [3, 6, 3, 5]
    Xs = [X[:, :width] for X, width in zip(worlds(4, n_samples, 6, noise=1.0), widths, strict=True)]
    options = {"allow_reflection": allow_reflection, "max_iter": 500}
    spaces = GeneralizedProcrustes(**options).fit(Xs)
    assert [R.shape for R in spaces.rotations_] == [(width, 6) for width in widths]
    for i, j in pairs(4):
        rows = np.random.default_rng(5).normal(size=(40, widths[i]))
        assert_close(spaces.inverse_transform(spaces.transform(rows, i), i), rows, 1e-12)
        if widths[i] <= widths[j]:
            assert_close(spaces.translate(spaces.translate(rows, i, j), j, i), rows, 1e-12)
        if 6 in (widths[i], widths[j]):
            through = spaces.inverse_transform(spaces.transform(rows, i), j)
            assert_close(spaces.translate(rows, i, j), through, 1e-12)


def test_spaces_without_anything_in_common_are_still_carried_both_ways():
    design = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    Xs = [design[:, :1], design[:, 1:] * 3.0, np.prod(design, axis=1, keepdims=True)]
    spaces = GeneralizedProcrustes().fit(Xs)
    assert_close(spaces.translate(spaces.translate(Xs[0], 0, 1), 1, 0), Xs[0], 1e-12)
    np.testing.assert_allclose(spaces.disparity_, 2 / 3)
    assert spaces.score(Xs) < 0


def test_the_order_of_spaces_plays_no_part_for_signs():
    X = np.random.default_rng(0).normal(size=(30, 4))
    here, there = (GeneralizedProcrustes().fit(Xs) for Xs in ([X, 2 * X, -X], [-X, 2 * X, X]))
    for k in range(3):
        rows = [X, 2 * X, -X][k]
        assert_close(there.transform(rows, 2 - k), here.transform(rows, k), 1e-8)


@pytest.mark.parametrize("unit", [1e-300, 1e300])
@pytest.mark.parametrize("scale", [True, False])
def test_all_spaces_may_have_any_unit(unit, scale):
    Xs = worlds(3, noise=0.7)
    plain = GeneralizedProcrustes(scale=scale).fit(Xs)
    other = GeneralizedProcrustes(scale=scale).fit([X * unit for X in Xs])
    np.testing.assert_allclose(other.disparity_, plain.disparity_)
    assert other.score([X * unit for X in Xs]) == pytest.approx(plain.score(Xs))
    factor = 1.0 if scale else unit
    assert_close(other.transform(Xs[1] * unit, 1) / factor, plain.transform(Xs[1], 1), 1e-7)


def test_without_scales_a_space_of_no_size_misses_more_than_can_be_said():
    X = np.random.default_rng(0).normal(size=(60, 4))
    spaces = GeneralizedProcrustes(scale=False).fit([X, X * 1e-200])
    np.testing.assert_allclose(spaces.disparity_, [0.25, np.inf])
