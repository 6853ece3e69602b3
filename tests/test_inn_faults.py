"""What went wrong once with the network, each as the input that showed it."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
import torch
from conftest import noisy_pair
from numpy.random import RandomState
from skorch.callbacks import Checkpoint, EarlyStopping, LRScheduler

from sklearn_bijection import CCAAligner, INNAligner, ProcrustesAligner
from sklearn_bijection._inn._gates import GateSettings, _descended
from sklearn_bijection._inn._net import BestEpoch
from sklearn_bijection._inn._pairs import RawPairs, as_raw, split
from sklearn_bijection._inn._start import _some_of_each_fold
from sklearn_bijection.metrics import r2


def start(**options):
    return INNAligner(**{"max_epochs": 0, "random_state": 0, **options})


@pytest.mark.parametrize("share", [0.0, 0.1])
def test_views_that_know_little_of_each_other_are_shrunk_both_ways(share):
    rng = np.random.default_rng(77)
    X = rng.normal(size=(1400, 20))
    y = share * X + np.sqrt(1 - share**2) * rng.normal(size=(1400, 20))
    fitted = start().fit(X[:400], y[:400])
    # The mean alone has 0; a linear bijection has -0.9 and less here.
    assert r2(y[400:], fitted.transform(X[400:])) > -0.4
    assert r2(X[400:], fitted.inverse_transform(y[400:])) > -0.4


@pytest.mark.parametrize(
    "callback",
    [EarlyStopping(), LRScheduler("ReduceLROnPlateau", monitor="valid_loss"), Checkpoint],
    ids=["early stopping", "plateau", "checkpoint"],
)
def test_callbacks_that_look_at_validation_rows_do_not_break_the_repetition(callback, tmp_path):
    if callback is Checkpoint:
        callback = Checkpoint(dirname=tmp_path)
    X, y = noisy_pair(200)
    options = {"init": None, "lr": 0.01, "max_epochs": 3, "random_state": 0, "refit": True}
    fitted = INNAligner(callbacks=[callback], **options).fit(X, y)
    assert fitted.best_epoch_ > 0


def raw(X, y):
    return RawPairs(X, y, np.ones(len(X)), np.arange(len(X)))


@pytest.mark.parametrize("n_kinds", [3, 5, 30])
def test_copies_of_a_row_are_on_one_side_of_the_split(n_kinds):
    rng = np.random.default_rng(0)
    X, y = (np.repeat(rng.normal(size=(n_kinds, 4)), 20, axis=0) for _ in range(2))
    learned, held = split(raw(X, y), 0.1, RandomState(0))
    assert len(learned) + len(held) == len(X)
    assert len(held) >= 20
    assert len(np.unique(X[learned.rows], axis=0)) >= 2
    assert not set(map(tuple, X[learned.rows])) & set(map(tuple, X[held.rows]))


def test_rows_that_differ_are_split_as_they_are_drawn():
    X, y = noisy_pair(50)
    learned, held = split(raw(X, y), 0.1, RandomState(0))
    assert sorted([*learned.rows, *held.rows]) == list(range(50))
    assert set(held.rows) == set(RandomState(0).permutation(50)[:5])


@pytest.mark.parametrize("init", ["gated", None, ProcrustesAligner()], ids=str)
@pytest.mark.parametrize("mixing", ["none", "rotation", "orthogonal"])
def test_the_default_type_of_torch_does_not_matter(init, mixing):
    X, y = noisy_pair(80)
    options = {"init": init, "mixing": mixing, "learn_linear": True, "max_epochs": 1}
    expected = INNAligner(random_state=0, **options).fit(X, y).transform(X)
    torch.set_default_dtype(torch.float64)
    try:
        found = INNAligner(random_state=0, **options).fit(X, y).transform(X)
    finally:
        torch.set_default_dtype(torch.float32)
    assert np.isfinite(found).all()
    if init != "gated" or mixing == "none":
        # Initial weights of the nets are drawn alike in float32.
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_threads_do_not_disturb_each_other():
    X, y = noisy_pair(120)

    def fit(_):
        return INNAligner(init=None, max_epochs=2, random_state=0).fit(X, y).transform(X)

    before = torch.get_rng_state()
    with ThreadPoolExecutor(2) as pool:
        first, *others = pool.map(fit, range(4))
    for other in others:
        np.testing.assert_array_equal(first, other)
    assert torch.equal(before, torch.get_rng_state())


def test_parameters_from_a_file_leave_nothing_of_a_former_fit(tmp_path):
    X, y = noisy_pair(60, 4, 4)
    written = start().fit(X, y)
    written.save_params(tmp_path / "map.safetensors")
    wide = [pd.DataFrame(a).add_prefix("c") for a in noisy_pair(60, 8, 8)]
    aligner = start().set_output(transform="pandas").fit(*wide)
    aligner.load_params(tmp_path / "map.safetensors")
    assert len(aligner.get_feature_names_out()) == 4
    np.testing.assert_array_equal(aligner.transform(X), written.transform(X))
    assert aligner.roundtrip_error_ == written.roundtrip_error_


def test_a_file_of_something_else_is_refused(tmp_path):
    (tmp_path / "x").write_bytes(b"not at all")
    with pytest.raises(ValueError, match="is no safetensors file"):
        INNAligner().load_params(tmp_path / "x")


def test_a_type_that_turns_the_unit_into_zero_is_refused():
    X, y = noisy_pair(60)
    with pytest.raises(ValueError, match=r"torch\.float16 turns .* into zero"):
        start().fit(X * 1e-9, y).to_torch(torch.float16)


def test_gates_are_held_back_from_hanging_on_a_few_coordinates() -> None:
    guess = GateSettings.first_guess(6)
    settings, _ = _descended(guess, [lambda settings: -0.01 * settings.sharpness], pull=0.0)
    assert 3 < float(settings.sharpness) < 4


def test_settings_of_few_rows_stay_near_the_first_guess() -> None:
    guess = GateSettings.first_guess(6)
    moved = []
    for n_rows in (10, 1000):
        settings, _ = _descended(guess, [lambda s: (s.offset - 9).square().sum()], pull=10 / n_rows)
        moved.append(float((settings.offset - guess.offset).abs().mean()))
    # The optimum of (t - 9)² + pull (t - guess)² lies 1 / (1 + pull) of the way from the guess.
    way = float((9 - guess.offset).abs().mean())
    np.testing.assert_allclose(moved, [way / 2, way / 1.01], rtol=1e-3)


@pytest.mark.parametrize("bend", [0.0, 0.5])
@pytest.mark.parametrize(("n_rows", "width"), [(60, 48), (100, 96)])
def test_hardly_more_rows_than_columns_are_mapped_as_well_as_by_cca(n_rows, width, bend):
    rng = np.random.default_rng(width)
    X = rng.normal(size=(n_rows + 400, width)) * np.geomspace(1, 0.05, width)
    rotated = X @ np.linalg.qr(rng.normal(size=(width, width)))[0]
    y = rotated + bend * np.abs(rotated) + (0.1 if bend == 0 else 0) * rng.normal(size=X.shape)
    train, test = (X[:n_rows], y[:n_rows]), (X[n_rows:], y[n_rows:])

    def score(aligner):
        aligner.fit(*train)
        there, back = aligner.transform(test[0]), aligner.inverse_transform(test[1])
        return (r2(test[1], there) + r2(test[0], back)) / 2

    assert score(INNAligner(random_state=0)) > score(CCAAligner()) - 0.005


def test_a_start_that_is_kept_is_that_of_all_rows():
    X, y = noisy_pair(40, 15, 15)
    kept = INNAligner(random_state=0, lr=1e-9).fit(X, y)
    assert kept.best_epoch_ == 0
    np.testing.assert_array_equal(kept.transform(X), start().fit(X, y).transform(X))


def test_of_three_rows_two_standard_errors_are_not_enough():
    gain = np.array([1.0, 2.0, 4.0])
    ratio = gain.mean() / (gain.std(ddof=1) / np.sqrt(3))
    assert 2 < ratio < 4
    assert not BestEpoch(gain)._beats_start(np.zeros(3))
    assert BestEpoch(np.tile(gain, 20))._beats_start(np.zeros(60))


def assert_maps_like_cca(X, y, direction="symmetric"):
    found, expected = start(direction=direction), CCAAligner(direction=direction)
    found.fit(X, y)
    expected.fit(X, y)
    np.testing.assert_allclose(found.transform(X), expected.transform(X), rtol=1e-6, atol=1e-8)
    back = found.inverse_transform(y), expected.inverse_transform(y)
    np.testing.assert_allclose(*back, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("n_rows", [10, 16, 27])
def test_rows_too_few_for_gates_are_mapped_by_cca(n_rows):
    assert_maps_like_cca(*noisy_pair(n_rows, 6, 6))


def test_rows_that_all_fall_into_one_fold_are_mapped_by_cca():
    rng = np.random.default_rng(0)
    signs = np.sign(rng.normal(size=(200, 8)))
    other = np.where(rng.random(signs.shape) < 0.03, -signs, signs)
    assert_maps_like_cca(signs * np.geomspace(1, 10, 8), other * np.geomspace(10, 1, 8))


def test_gates_that_are_better_by_luck_are_not_taken():
    rng = np.random.default_rng(100)
    X = rng.normal(size=(1100, 12)) * np.geomspace(1, 0.2, 12)
    y = X @ rng.normal(size=(12, 12))
    y += y.std() * rng.normal(size=y.shape)
    assert_maps_like_cca(X[:100], y[:100])


def test_a_part_of_the_rows_that_has_lost_a_column_can_be_learned_from():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 6))
    y = X[:, :3] @ rng.normal(size=(3, 3)) + 0.7 * rng.normal(size=(200, 3))
    X[:, -1] = 0
    X[[3, 90], -1] = 1, -2
    for seed in (8, 9, 10):
        aligner = INNAligner(random_state=seed, max_epochs=1, validation_fraction=0.5, refit=False)
        assert np.isfinite(aligner.fit(X, y).transform(X)).all()


def test_rows_to_judge_by_are_spread_over_all():
    X, y = noisy_pair(5000, 3, 3)
    for chosen in _some_of_each_fold(as_raw((X, y, None)), 3, 3):
        assert 190 < len(chosen) <= 200
        quarters = np.bincount(chosen * 4 // 5000, minlength=4)
        assert quarters.min() > 35


def test_may_be_fitted_by_who_only_infers():
    X, y = noisy_pair(60)
    expected = INNAligner(max_epochs=1, random_state=0).fit(X, y).transform(X)
    with torch.inference_mode():
        found = INNAligner(max_epochs=1, random_state=0).fit(X, y).transform(X)
    np.testing.assert_array_equal(found, expected)
