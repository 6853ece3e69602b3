"""Many spaces in one: planted rotations, laws, agreement with other methods, and what is refused."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from conftest import CARRIERS, assert_close
from scipy.linalg import orthogonal_procrustes
from scipy.stats import ortho_group
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from sklearn_bijection import GeneralizedProcrustes, ProcrustesAligner
from sklearn_bijection._linalg import variance_explained
from sklearn_bijection._moments import _spaces


def rotation(width, seed):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(width, width))).Q


def worlds(n_spaces=4, n_samples=120, width=5, *, noise=0.0, scales=None, seed=0, spread=3.0):
    """Spaces of one meaning: turned, scaled, shifted, each with noise of its own."""
    rng = np.random.default_rng(seed)
    meaning = rng.normal(size=(n_samples, width)) * np.geomspace(spread, 1, width)
    scales = np.ones(n_spaces) if scales is None else scales
    return [
        scale * (meaning + noise * rng.normal(size=meaning.shape)) @ rotation(width, [seed, k])
        + scale * rng.normal(size=width)
        for k, scale in enumerate(scales)
    ]


def pairs(n_spaces):
    return [(i, j) for i in range(n_spaces) for j in range(n_spaces)]


def assert_same_translations(a, b, Xs, rtol=1e-9):
    for i, j in pairs(len(Xs)):
        assert_close(a.translate(Xs[i], i, j), b.translate(Xs[i], i, j), rtol)


def centred(X):
    return X - X.mean(axis=0)


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


def flawed():
    """Spaces that do not span their coordinates."""
    Xs = worlds(3, 100, 6, noise=0.5)
    dead = [X.copy() for X in Xs]
    dead[0][:, [1, 4]], dead[1][:, 0] = 7.0, 0.0
    plane = [X - X.mean(axis=1, keepdims=True) for X in Xs]
    copies = [np.c_[X[:, :5], X[:, 0]] for X in Xs]
    near = [X * np.where(np.arange(6) == 2, 1e-30, 1) for X in Xs]
    return {
        "dead": dead,
        "layer norm": plane,
        "copies": copies,
        "nearly dead": near,
        "few": [X[:4] for X in Xs],
    }


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("allow_reflection", [True, False])
@pytest.mark.parametrize("name", flawed())
def test_spaces_that_span_less_than_their_width_are_completed(name, allow_reflection, dtype):
    Xs = [X.astype(dtype) for X in flawed()[name]]
    spaces = GeneralizedProcrustes(allow_reflection=allow_reflection, max_iter=500).fit(Xs)
    anywhere = np.random.default_rng(5).normal(size=(40, 6))
    for i, j in pairs(3):
        there = spaces.translate(anywhere, i, j)
        assert_close(spaces.translate(there, j, i), anywhere, 1e-11)
        assert variance_explained(Xs[j], spaces.translate(Xs[i], i, j)) > 0.4
    if not allow_reflection:
        np.testing.assert_allclose([np.linalg.det(R) for R in spaces.rotations_], 1.0)


def test_spaces_without_anything_in_common_are_still_carried_both_ways():
    design = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    Xs = [design[:, :1], design[:, 1:] * 3.0, np.prod(design, axis=1, keepdims=True)]
    spaces = GeneralizedProcrustes().fit(Xs)
    assert_close(spaces.translate(spaces.translate(Xs[0], 0, 1), 1, 0), Xs[0], 1e-12)
    np.testing.assert_allclose(spaces.disparity_, 2 / 3)
    assert spaces.score(Xs) < 0


# What it gives


def test_the_template_is_the_mean_of_the_mapped_spaces_along_its_principal_axes():
    Xs = worlds(4, noise=0.7, scales=[1, 2, 3, 4])
    spaces = GeneralizedProcrustes().fit(Xs)
    T = spaces.template(Xs)
    assert_close(T, np.mean([spaces.transform(X, k) for k, X in enumerate(Xs)], axis=0), 1e-12)
    spread = T.T @ T
    np.testing.assert_allclose(spread, np.diag(spread.diagonal()), atol=1e-8 * spread.max())
    assert (np.diff(spread.diagonal()) < 0).all()
    loadings = np.vstack(spaces.rotations_)
    assert (loadings[np.abs(loadings).argmax(axis=0), range(5)] > 0).all()


def test_mapped_spaces_are_of_one_size_and_maps_are_their_parts():
    Xs = worlds(4, noise=0.7, scales=[1, 2, 3, 4])
    spaces = GeneralizedProcrustes().fit(Xs)
    for k, X in enumerate(Xs):
        mapped = spaces.transform(X, k)
        assert mapped.var(axis=0).sum() == pytest.approx(5.0)
        by_hand = (X - X.mean(axis=0)) @ spaces.rotations_[k] * spaces.scales_[k]
        assert_close(mapped, by_hand, 1e-12)
        np.testing.assert_array_equal(spaces.maps_[k].forward(X), mapped)
    unscaled = GeneralizedProcrustes(scale=False).fit(Xs)
    np.testing.assert_array_equal(unscaled.scales_, 1.0)


@pytest.mark.parametrize("widths", [(5, 5, 5, 5), (3, 5, 5, 2)])
def test_disparity_and_score_by_hand(widths):
    Xs = [X[:, :width] for X, width in zip(worlds(4, noise=0.7), widths, strict=True)]
    spaces = GeneralizedProcrustes().fit(Xs)
    T = spaces.template(Xs)
    missing = [1 - variance_explained(X, spaces.inverse_transform(T, k)) for k, X in enumerate(Xs)]
    np.testing.assert_allclose(spaces.disparity_, missing, atol=1e-10)
    Zs = [spaces.transform(X, k) for k, X in enumerate(Xs)]
    others = [
        variance_explained(X, spaces.inverse_transform((sum(Zs) - Zs[k]) / 3, k))
        for k, X in enumerate(Xs)
    ]
    assert spaces.score(Xs) == pytest.approx(np.mean(others))


def test_unrelated_spaces_score_nothing_on_rows_held_out():
    rng = np.random.default_rng(0)
    Xs = rng.normal(size=(5, 400, 6))
    spaces = GeneralizedProcrustes(tol=1e-5).fit(Xs[:, :200])
    assert spaces.score(Xs[:, 200:]) < 0.0


def test_names_and_numbers_address_the_same_space():
    Xs = dict(zip("abc", worlds(3, noise=0.5), strict=True))
    spaces = GeneralizedProcrustes().fit(Xs)
    assert spaces.names_ == ["a", "b", "c"]
    assert spaces.n_spaces_ == 3
    for number, (name, X) in enumerate(Xs.items()):
        for address in (number, np.int64(number), number - 3):
            np.testing.assert_array_equal(spaces.transform(X, address), spaces.transform(X, name))
    np.testing.assert_array_equal(
        spaces.translate(Xs["a"], "a", "c"), spaces.translate(Xs["a"], 0, -1)
    )
    shuffled = {name: Xs[name] for name in "cab"}
    np.testing.assert_array_equal(spaces.template(shuffled), spaces.template(list(Xs.values())))
    assert spaces.score(shuffled) == spaces.score(list(Xs.values()))
    unnamed = GeneralizedProcrustes().fit(list(Xs.values()))
    assert unnamed.names_ is None
    assert_same_translations(spaces, unnamed, list(Xs.values()), 0)


def test_an_array_of_three_dimensions_is_a_list_of_spaces():
    Xs = worlds(3, noise=0.5)
    assert_same_translations(
        GeneralizedProcrustes().fit(np.array(Xs)), GeneralizedProcrustes().fit(Xs), Xs, 0
    )


def test_float32_stays_and_agrees():
    Xs = worlds(3, noise=0.5)
    spaces = GeneralizedProcrustes().fit([X.astype(np.float32) for X in Xs])
    found = spaces.translate(Xs[0].astype(np.float32), 0, 1)
    assert found.dtype == spaces.transform(Xs[0].astype(np.float32), 0).dtype == np.float32
    assert_close(found, GeneralizedProcrustes().fit(Xs).translate(Xs[0], 0, 1), 1e-4)
    assert spaces.template(Xs).dtype == np.float64


def test_blocks_and_memory_maps_are_the_whole(tmp_path, monkeypatch):
    Xs = worlds(3, 1200, noise=0.5)
    weight = np.random.default_rng(0).integers(0, 3, size=1200)
    whole = GeneralizedProcrustes().fit(Xs, sample_weight=weight)
    mapped = []
    for k, X in enumerate(Xs):
        np.save(tmp_path / f"{k}.npy", X)
        mapped.append(np.load(tmp_path / f"{k}.npy", mmap_mode="r"))
    monkeypatch.setattr(_spaces, "_MAX_BLOCK_BYTES", 1)
    assert_same_translations(
        GeneralizedProcrustes().fit(mapped, sample_weight=weight), whole, Xs, 1e-8
    )


def test_what_was_passed_is_as_it_was():
    Xs, weight = worlds(3, 50, noise=0.5), np.ones(50)
    before = [X.copy() for X in Xs]
    for X in Xs:
        X.setflags(write=False)
    spaces = GeneralizedProcrustes().fit(Xs, sample_weight=weight)
    spaces.score(Xs)
    spaces.template(Xs)
    for X, kept in zip(Xs, before, strict=True):
        np.testing.assert_array_equal(X, kept)
    assert spaces.transform(Xs[0], 0).flags.writeable


def test_twice_the_same_is_bit_equal():
    Xs = worlds(4, noise=1.0)
    first, second = (GeneralizedProcrustes().fit(Xs) for _ in range(2))
    assert_same_translations(first, second, Xs, 0)
    np.testing.assert_array_equal(first.loss_curve_, second.loss_curve_)


# An estimator


@pytest.mark.parametrize("carry", CARRIERS)
def test_carried_away_it_maps_the_same(carry, tmp_path):
    Xs = dict(zip("abc", worlds(3, noise=0.5), strict=True))
    spaces = GeneralizedProcrustes().fit(Xs)
    arrived = carry(spaces, tmp_path)
    assert_same_translations(arrived, spaces, list(Xs.values()), 0)
    assert arrived.names_ == spaces.names_


def test_a_clone_has_the_parameters_and_is_not_fitted():
    spaces = GeneralizedProcrustes(scale=False, max_iter=7).fit(worlds(3))
    copy = clone(spaces)
    assert copy.get_params() == spaces.get_params()
    assert copy.set_params(tol=0.1).tol == 0.1
    assert not hasattr(copy, "maps_")


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("transform", (np.eye(3), 0)),
        ("inverse_transform", (np.eye(3), 0)),
        ("translate", (np.eye(3), 0, 1)),
        ("map_between", (0, 1)),
        ("template", ([np.eye(3), np.eye(3)],)),
        ("score", ([np.eye(3), np.eye(3)],)),
        ("to_torch", (0, 1)),
    ],
)
def test_before_fit_there_is_nothing(method, arguments):
    with pytest.raises(NotFittedError):
        getattr(GeneralizedProcrustes(), method)(*arguments)


@pytest.mark.parametrize("widths", [(5, 5, 5), (3, 5, 4)])
def test_as_a_torch_module_it_translates_the_same(widths):
    import torch

    Xs = [X[:, :width] for X, width in zip(worlds(3, noise=0.5), widths, strict=True)]
    spaces = GeneralizedProcrustes().fit(dict(zip("abc", Xs, strict=True)))
    for i, j in pairs(3):
        module = spaces.to_torch("abc"[i], j, torch.float64)
        assert_close(module(torch.tensor(Xs[i])).numpy(), spaces.translate(Xs[i], i, j), 1e-12)
        assert_close(
            module.inverse(torch.tensor(Xs[j])).numpy(), spaces.translate(Xs[j], j, i), 1e-12
        )
    assert not module.training
    assert spaces.to_torch("a", "b").coef.dtype == torch.float32
    module.coef.zero_()
    assert_close(spaces.translate(Xs[2], 2, 2), Xs[2], 1e-12)


def test_too_few_sweeps_are_reported_with_the_maps_that_were_reached():
    Xs = worlds(6, 60, 6, noise=2.0)
    with pytest.warns(
        ConvergenceWarning, match=r"max_iter=2 sweeps: .* Raise max_iter, or tol"
    ) as seen:
        spaces = GeneralizedProcrustes(max_iter=2).fit(Xs)
    assert seen[0].filename == __file__
    assert spaces.n_iter_ == 2
    assert_close(spaces.translate(spaces.translate(Xs[0], 0, 1), 1, 0), Xs[0], 1e-12)


# What is refused


def with_nan(X):
    X = X.copy()
    X[3, 1] = np.nan
    return X


X, Y = worlds(2, 20, 3)
REFUSED = {
    "one array": (X, TypeError, r"Xs is one ndarray.*Pass \[X_0, X_1"),
    "a frame": (pd.DataFrame(X), TypeError, "Xs is one DataFrame"),
    "text": ("abc", TypeError, "Xs is one str"),
    "a number": (3, TypeError, "Xs is one int"),
    "one space": ([X], ValueError, r"Xs has 1 space\(s\).* at least two arrays"),
    "none": ([], ValueError, r"Xs has 0 space\(s\)"),
    "numbered names": ({0: X, 1: Y}, TypeError, r"keys \[0, 1\].*Pass a list"),
    "one dimension": ([X, Y[:, 0]], ValueError, r"Xs\[1\] has shape \(20,\)"),
    "three dimensions": ([X, Y[None]], ValueError, r"Xs\[1\] has shape \(1, 20, 3\)"),
    "no columns": ([X, Y[:, :0]], ValueError, r"Xs\[1\] has shape \(20, 0\)"),
    "one row": ([X[:1], Y[:1]], ValueError, r"Xs\[0\] has 1 row\(s\), but at least 2"),
    "rows": ([X, Y[:18]], ValueError, r"Xs\[1\] has 18 rows but Xs\[0\] has 20.*drop those"),
    "named rows": (
        {"a": X, "b": Y[:18]},
        ValueError,
        r"Xs\['b'\] has 18 rows but Xs\['a'\] has 20",
    ),
    "nan": ([X, with_nan(Y)], ValueError, r"Xs\[1\] contains NaN \(first at row 3, column 1"),
    "named nan": ({"a": with_nan(X), "b": Y}, ValueError, r"Xs\['a'\] contains NaN"),
    "constant": (
        [X, np.full((20, 3), 0.1)],
        ValueError,
        r"Xs\[1\] has no variance.*Leave the space out",
    ),
    "named constant": ({"a": X, "b": 0 * Y + 1e5}, ValueError, r"Xs\['b'\] has no variance"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_list_of_spaces_is_refused(name):
    Xs, kind, message = REFUSED[name]
    with pytest.raises(kind, match=message):
        GeneralizedProcrustes().fit(Xs)


def test_a_failed_fit_leaves_the_last_one():
    spaces = GeneralizedProcrustes().fit([X, Y])
    before = spaces.translate(X, 0, 1)
    with pytest.raises(ValueError, match="contains NaN"):
        spaces.fit([X, Y, with_nan(X)])
    np.testing.assert_array_equal(spaces.translate(X, 0, 1), before)


@pytest.mark.parametrize(
    "parameter",
    [
        {"max_iter": 0},
        {"max_iter": 2.5},
        {"tol": -1.0},
        {"scale": "all"},
        {"allow_reflection": None},
    ],
)
def test_parameters_are_checked(parameter):
    (name,) = parameter
    with pytest.raises(
        ValueError, match=f"The '{name}' parameter of GeneralizedProcrustes must be"
    ):
        GeneralizedProcrustes(**parameter).fit([X, Y])


def test_too_few_rows_of_positive_weight_are_refused():
    with pytest.raises(ValueError, match=r"sample_weight is positive for 1 of 20 rows"):
        GeneralizedProcrustes().fit([X, Y], sample_weight=np.eye(20)[0])


def test_spaces_that_are_not_there_are_refused():
    spaces = GeneralizedProcrustes().fit({"bert": X, "roberta": Y})
    known = r"names 'bert', 'roberta' or a number from 0 to 1, or from -2 to -1"
    for address in ("bort", 2, -3, None, 0.0):
        with pytest.raises(ValueError, match=rf"space={address!r} is none of the 2 .*{known}"):
            spaces.transform(X, address)
    with pytest.raises(ValueError, match="source='x' is none"):
        spaces.translate(X, "x", 0)
    with pytest.raises(ValueError, match="target='x' is none"):
        spaces.map_between(0, "x")
    with pytest.raises(ValueError, match="Pass a number from 0 to 1"):
        GeneralizedProcrustes().fit([X, Y]).transform(X, "bert")


def test_rows_of_another_space_are_refused():
    spaces = GeneralizedProcrustes().fit({"a": X, "b": Y[:, :2]})
    with pytest.raises(ValueError, match=r"X has 2 columns, but Xs\['a'\] had 3 in fit"):
        spaces.transform(Y[:, :2], "a")
    with pytest.raises(ValueError, match="T has 2 columns, but the template has 3"):
        spaces.inverse_transform(Y[:, :2], "b")
    with pytest.raises(ValueError, match=r"Xs\['b'\] has 3 columns, but Xs\['b'\] had 2 in fit"):
        spaces.score({"a": X, "b": Y})
    with pytest.raises(ValueError, match=r"X contains NaN"):
        spaces.translate(with_nan(X), "a", "b")


def test_other_spaces_than_in_fit_are_refused():
    spaces = GeneralizedProcrustes().fit({"a": X, "b": Y})
    with pytest.raises(
        ValueError, match=r"Xs has the spaces \['a', 'c'\], but fit had \['a', 'b'\]"
    ):
        spaces.score({"a": X, "c": Y})
    with pytest.raises(ValueError, match="Xs has 3 spaces, but fit had 2"):
        spaces.template([X, Y, X])
    with pytest.raises(ValueError, match="Xs has names, but the spaces of fit had none"):
        GeneralizedProcrustes().fit([X, Y]).score({"a": X, "b": Y})


def test_columns_of_frames_are_remembered():
    frames = [pd.DataFrame(X, columns=list("uvw")), pd.DataFrame(Y, columns=list("xyz"))]
    spaces = GeneralizedProcrustes().fit(frames)
    np.testing.assert_array_equal(spaces.transform(frames[0], 0), spaces.transform(X, 0))
    with pytest.raises(
        ValueError, match=r"columns of X are \['v', 'u', 'w'\].*Xs\[0\].*in that order"
    ):
        spaces.transform(frames[0][list("vuw")], 0)
