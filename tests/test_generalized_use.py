"""Many spaces in one: what is given, and as an estimator."""

import numpy as np
import pytest
from _worlds import assert_same_translations, pairs, worlds
from conftest import CARRIERS, assert_close
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from sklearn_bijection import GeneralizedProcrustes
from sklearn_bijection._linalg import variance_explained
from sklearn_bijection._moments import _spaces

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


def test_a_template_of_one_row_and_no_score_of_it():
    Xs = worlds(3, noise=0.5)
    spaces = GeneralizedProcrustes().fit(Xs)
    first = [X[:1] for X in Xs]
    assert_close(spaces.template(first), spaces.template(Xs)[:1], 1e-10)
    with pytest.raises(ValueError, match=r"Xs\[0\] has 1 row\(s\), but at least 2"):
        spaces.score(first)


def test_a_parameter_set_after_fit_leaves_the_maps_alone():
    Xs = [X[:, :width] for X, width in zip(worlds(3, noise=0.5), (5, 3, 3), strict=True)]
    for fitted, later in ((True, False), (False, True)):
        spaces = GeneralizedProcrustes(allow_reflection=fitted).fit(Xs)
        before = [spaces.translate(Xs[i], i, j) for i, j in pairs(3)]
        spaces.set_params(allow_reflection=later)
        for (i, j), expected in zip(pairs(3), before, strict=True):
            np.testing.assert_array_equal(spaces.translate(Xs[i], i, j), expected)


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
