"""How the invertible network is trained: rows, epochs, seeds, and everything that can stop it."""

import copy

import numpy as np
import pytest
import skorch
import torch
from conftest import assert_close, assert_same_map, noisy_pair
from sklearn.base import clone
from skorch.callbacks import Callback, EarlyStopping

from sklearn_bijection import INNAligner
from sklearn_bijection._inn import DivergedError, _pairs
from sklearn_bijection._solvers import Standard

gpu = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="There is no CUDA here."),
]


def on(device):
    return pytest.param(device, marks=gpu if device == "cuda" else [])


@pytest.fixture
def pair():
    return noisy_pair(160, 4, 4)


def quick(**options):
    """A network that is trained for a moment, on the CPU, without the cost of fitting gates."""
    defaults = {"init": None, "max_epochs": 4, "hidden_size": 16, "device": "cpu", "lr": 0.01}
    return INNAligner(**{**defaults, "random_state": 0, **options})


def errors(aligner, X, y):
    """Mean squared error of the map there and of the map back."""
    ends = (aligner.transform(X) - y, aligner.inverse_transform(y) - X)
    return np.array([(end**2).mean() for end in ends])


class At(Callback):
    """Do something at the beginning of an epoch, counted through all runs that share the list."""

    def __init__(self, epoch, action, seen):
        self.epoch, self.action, self.seen = epoch, action, seen

    def __deepcopy__(self, memo):
        return At(self.epoch, self.action, self.seen)

    def on_epoch_begin(self, net, **kwargs):
        self.seen.append(len(net.history))
        if len(self.seen) == self.epoch:
            self.action(net)


def interrupt(net):
    raise KeyboardInterrupt


def poison(net):
    with torch.no_grad():
        for parameter in net.module_.parameters():
            parameter.fill_(float("nan"))


def at(epoch, action):
    return At(epoch, action, [])


class TestSeeds:
    @pytest.mark.parametrize("init", ["gated", None], ids=repr)
    @pytest.mark.parametrize("mixing", ["none", "rotation"])
    def test_decide_every_bit_whatever_else_is_drawn(self, pair, init, mixing):
        first = quick(init=init, mixing=mixing, max_epochs=2).fit(*pair)
        torch.randn(1000) @ torch.randn(1000)
        np.random.random(7)
        second = quick(init=init, mixing=mixing, max_epochs=2).fit(*pair)
        assert_same_map(first, second, *pair, rtol=0)
        losses = [[epoch["train_loss"] for epoch in one.history_] for one in (first, second)]
        assert losses[0] == losses[1]

    def test_make_a_difference(self, pair):
        first, second = (quick(random_state=seed).fit(*pair) for seed in (0, 1))
        assert abs(first.transform(pair[0]) - second.transform(pair[0])).max() > 1e-3

    @pytest.mark.parametrize("random_state", [0, None])
    @pytest.mark.parametrize("learn", ["fit", "partial_fit"])
    def test_are_all_that_is_drawn_from(self, pair, learn, random_state):
        torch_state, numpy_state = torch.get_rng_state(), np.random.get_state()
        aligner = quick(mixing="rotation", random_state=random_state)
        copy.deepcopy(getattr(aligner, learn)(*pair)).transform(pair[0])
        assert torch.equal(torch.get_rng_state(), torch_state)
        np.testing.assert_equal(np.random.get_state(), numpy_state)

    @pytest.mark.gpu
    @pytest.mark.skipif(not torch.cuda.is_available(), reason="There is no CUDA here.")
    @pytest.mark.parametrize("device", ["cpu", "cuda"])
    def test_leave_the_generators_of_gpus_alone(self, pair, device):
        before = torch.cuda.get_rng_state_all()
        quick(device=device).fit(*pair)
        assert all(map(torch.equal, torch.cuda.get_rng_state_all(), before))

    def test_can_come_from_a_generator_that_goes_on(self, pair):
        draws = np.random.RandomState(0)
        first, second = (quick(random_state=draws).fit(*pair) for _ in range(2))
        assert abs(first.transform(pair[0]) - second.transform(pair[0])).max() > 1e-3
        again = quick(random_state=np.random.RandomState(0)).fit(*pair)
        assert_same_map(again, first, *pair, rtol=0)


class TestEpochs:
    def test_are_told_and_the_best_is_kept(self, pair):
        found = quick(max_epochs=5, refit=False).fit(*pair)
        assert found.n_iter_ == len(found.history_) == 5
        assert [epoch["epoch"] for epoch in found.history_] == [1, 2, 3, 4, 5]
        assert {"train_loss", "valid_loss", "dur"} <= set(found.history_[0])
        assert not any("batches" in epoch for epoch in found.history_)
        valid = [epoch["valid_loss"] for epoch in found.history_]
        assert found.best_epoch_ == 1 + int(np.argmin(valid))

    def test_stop_when_nothing_gets_better(self, pair):
        found = quick(lr=1e-9, max_epochs=50, patience=2).fit(*pair)
        assert found.n_iter_ <= 4
        assert quick(lr=1e-9, max_epochs=6, patience=None).fit(*pair).n_iter_ == 6

    def test_that_do_not_help_leave_the_start_of_all_rows(self, pair):
        start = quick(max_epochs=0).fit(*pair)
        found = quick(lr=1e-12, max_epochs=2).fit(*pair)
        assert found.best_epoch_ == 0
        assert_same_map(found, start, *pair, rtol=0)
        fewer = quick(lr=1e-12, max_epochs=2, refit=False).fit(*pair)
        assert abs(fewer.transform(pair[0]) - start.transform(pair[0])).max() > 1e-6

    def test_are_as_many_in_the_refit_as_were_best(self, pair):
        seen = []
        found = quick(max_epochs=5, callbacks=[At(0, interrupt, seen)]).fit(*pair)
        assert len(seen) == found.n_iter_ + found.best_epoch_ > found.n_iter_

    def test_all_count_without_early_stopping(self, pair):
        seen = []
        found = quick(early_stopping=False, callbacks=[At(0, interrupt, seen)]).fit(*pair)
        assert found.n_iter_ == found.best_epoch_ == len(seen) == 4
        assert "valid_loss" not in found.history_[0]
        assert found.history_[-1]["train_loss"] < found.history_[0]["train_loss"]


class TestWarmStart:
    def test_goes_on_from_the_map_that_is_there(self, pair):
        found = quick(warm_start=True).fit(*pair)
        before = found.transform(pair[0])
        assert_close(found.set_params(max_epochs=0).fit(*pair).transform(pair[0]), before, 0)
        first = found.set_params(max_epochs=4).fit(*pair).history_[0]["train_loss"]
        assert first < quick().fit(*pair).history_[0]["train_loss"]

    def test_compares_widths_and_without_it_forgets_them(self, pair):
        X, y = pair
        found = quick(warm_start=True).fit(X, y)
        with pytest.raises(ValueError, match="X has 3 features, but INNAligner is expecting 4"):
            found.fit(X[:, :3], y)
        assert found.set_params(warm_start=False).fit(X[:, :3], y).n_features_in_ == 3

    def test_partial_fit_starts_and_then_goes_on(self, pair):
        found = quick(random_state=None).partial_fit(*pair)
        losses = [errors(found, *pair).sum()]
        for _ in range(7):
            losses.append(errors(found.partial_fit(*pair), *pair).sum())
        assert losses[-1] < losses[3] < losses[0]
        assert found.n_iter_ == found.best_epoch_ == len(found.history_) == 8
        assert [epoch["epoch"] for epoch in found.history_] == list(range(1, 9))

    def test_partial_fit_goes_on_after_fit(self, pair):
        found = quick(early_stopping=False).fit(*pair)
        before = errors(found, *pair).sum()
        for _ in range(3):
            found.partial_fit(*pair)
        assert errors(found, *pair).sum() < before
        assert found.n_iter_ == 7


class TestWeights:
    @pytest.mark.parametrize("init", ["gated", None], ids=repr)
    @pytest.mark.parametrize("max_epochs", [0, 3])
    def test_of_zero_leave_the_row_out(self, pair, init, max_epochs):
        X, y = pair
        weight = np.arange(len(X)) % 3 > 0
        options = {"init": init, "max_epochs": max_epochs}
        found = quick(**options).fit(X, y, sample_weight=weight)
        left_out = quick(**options).fit(X[weight], y[weight])
        assert_same_map(found, left_out, X, y, rtol=1e-4)

    def test_only_count_relative_to_one_another(self, pair):
        weight = np.random.default_rng(0).uniform(0.5, 2, len(pair[0]))
        found, other = (quick().fit(*pair, sample_weight=w) for w in (weight, 8 * weight))
        assert_same_map(found, other, *pair, rtol=1e-4)

    @pytest.mark.parametrize("max_epochs", [0, 4])
    def test_draw_the_map_to_the_rows_they_favour(self, pair, max_epochs):
        X, y = pair
        y = np.r_[y[:80], -y[80:]]
        first = np.where(np.arange(len(X)) < 80, 10.0, 0.1)
        init = "gated" if max_epochs == 0 else None
        options = {"init": init, "max_epochs": max_epochs, "early_stopping": False}
        found, other = (quick(**options).fit(X, y, sample_weight=w) for w in (first, first[::-1]))
        assert errors(found, X[:80], y[:80])[0] < errors(other, X[:80], y[:80])[0]
        assert errors(found, X[80:], y[80:])[0] > errors(other, X[80:], y[80:])[0]


class TestCallbacks:
    def test_are_copied_for_every_fit_and_clone(self, pair):
        class Counter(Callback):
            def __init__(self):
                self.count_ = 0

            def on_epoch_end(self, net, **kwargs):
                self.count_ += 1
                net.history.record("count", self.count_)

        given = [Counter()]
        aligner = quick(callbacks=given, early_stopping=False)
        for fitted in (aligner.fit(*pair), aligner.fit(*pair), clone(aligner).fit(*pair)):
            assert [epoch["count"] for epoch in fitted.history_] == [1, 2, 3, 4]
        assert aligner.callbacks is given
        assert len(given) == 1
        assert given[0].count_ == 0
        assert clone(aligner).callbacks[0] is not given[0]

    @pytest.mark.parametrize("refit", [True, False])
    def test_may_interrupt_and_the_best_so_far_is_kept(self, pair, refit):
        expected = quick(max_epochs=10, callbacks=[at(3, interrupt)], refit=False).fit(*pair)
        found = quick(max_epochs=10, callbacks=[at(3, interrupt)], refit=refit).fit(*pair)
        assert found.best_epoch_ == found.n_iter_ == len(found.history_) == 2
        assert all("valid_loss" in epoch for epoch in found.history_)
        assert_same_map(found, expected, *pair, rtol=0)
        assert (errors(found, *pair) < errors(quick(max_epochs=0).fit(*pair), *pair)).any()

    def test_that_interrupt_the_refit_lose_nothing(self, pair):
        kept = quick(max_epochs=4, refit=False).fit(*pair)
        assert kept.n_iter_ == 4
        found = quick(max_epochs=4, callbacks=[at(5, interrupt)]).fit(*pair)
        assert found.best_epoch_ == kept.best_epoch_ > 0
        assert_same_map(found, kept, *pair, rtol=0)

    def test_that_stop_early_leave_the_refit_to_come(self, pair):
        given = [EarlyStopping(patience=2, sink=str)]
        found = quick(lr=1e-9, max_epochs=30, patience=None, callbacks=given).fit(*pair)
        assert found.n_iter_ < 30
        assert found.best_epoch_ == 0
        assert_same_map(found, quick(max_epochs=0).fit(*pair), *pair, rtol=0)

    @pytest.mark.parametrize("refit", [True, False])
    def test_that_spoil_the_parameters_end_in_advice_and_a_usable_map(self, pair, refit):
        found = quick(max_epochs=10, callbacks=[at(3, poison)], refit=refit)
        with pytest.raises(ValueError, match=r"no finite number in epoch 3\. Lower lr=0\.01 or"):
            found.fit(*pair)
        assert found.best_epoch_ == found.n_iter_ == len(found.history_) == 2
        start = errors(quick(max_epochs=0).fit(*pair), *pair)
        assert errors(found, *pair).sum() < start.sum()

    def test_may_be_wrong_and_the_estimator_stays_as_it_was(self, pair):
        def fail(net):
            raise RuntimeError("ouch")

        found = quick().fit(*pair)
        before = dict(vars(found))
        with pytest.raises(RuntimeError, match="ouch"):
            found.set_params(callbacks=[at(2, fail)]).fit(*pair)
        assert {**vars(found), "callbacks": None} == before


class TestDivergence:
    @pytest.mark.parametrize("early_stopping", [True, False])
    def test_in_the_first_epoch_leaves_the_start(self, pair, early_stopping):
        found = quick(lr=1e10, early_stopping=early_stopping)
        advice = r"epoch 1\. Lower lr=10000000000\.0 or gradient_clip=1\.0, or fewer n_blocks\. "
        with pytest.raises(DivergedError, match=advice + "The parameters of the start are kept"):
            found.fit(*pair)
        assert_same_map(found, quick(max_epochs=0).fit(*pair), *pair, rtol=1e-6)
        assert found.best_epoch_ == found.n_iter_ == 0

    def test_in_partial_fit_leaves_the_map_as_it_was(self, pair):
        found = quick().fit(*pair)
        there, n_iter = found.transform(pair[0]), found.n_iter_
        with pytest.raises(DivergedError, match="Lower lr"):
            found.set_params(lr=1e10).partial_fit(*pair)
        assert_close(found.transform(pair[0]), there, 0)
        assert found.n_iter_ == n_iter == len(found.history_)


def paired(n_samples=50, **options):
    """Pairs whose first coordinate of x is the number of the row."""
    X = np.c_[np.arange(float(n_samples)), np.ones(n_samples)]
    raw = _pairs.RawPairs(X, X[:, :1].copy(), np.ones(n_samples), np.arange(n_samples))
    as_it_is = Standard(np.zeros(2), 1.0, np.arange(2))
    return _pairs.Pairs(raw, as_it_is, as_it_is._replace(columns=np.arange(1)), 2, **options)


class TestStreaming:
    @pytest.mark.parametrize("shuffled", [True, False])
    @pytest.mark.parametrize("batch_size", [7, 50, 64])
    @pytest.mark.parametrize("resident_bytes", [0, None])
    def test_gives_every_row_once_an_epoch(self, monkeypatch, shuffled, batch_size, resident_bytes):
        monkeypatch.setattr(_pairs, "_PIECE_ROWS", 8)
        monkeypatch.setattr(_pairs, "_POOL_PIECES", 2)
        pairs = paired(device="cpu", resident_bytes=resident_bytes)
        orders = []
        for _ in range(2):
            batches = list(pairs.batches(batch_size, shuffled=shuffled))
            assert max(len(x["x"]) for x, _ in batches) <= batch_size
            for inputs, (x, y, weight) in batches:
                assert torch.equal(inputs["x"], x)
                assert torch.equal(y[:, 0], x[:, 0])
                assert weight.tolist() == [1.0] * len(x)
            orders.append(torch.cat([x[:, 0] for _, (x, _, _) in batches]).int().tolist())
        assert all(sorted(order) == list(range(50)) for order in orders)
        assert (orders[0] == list(range(50))) == (not shuffled)
        assert (orders[0] == orders[1]) == (not shuffled)

    @pytest.mark.parametrize("device", [on("cpu"), on("cuda")])
    def test_trains_like_rows_that_are_at_hand(self, pair, monkeypatch, device):
        options = {"batch_size": 160, "early_stopping": False, "optimizer": "SGD"}
        options |= {"device": device, "dropout": 0.0}
        expected = quick(**options).fit(*pair)
        monkeypatch.setattr(_pairs, "_RESIDENT_BYTES", 0)
        monkeypatch.setattr(_pairs, "_RESIDENT_SHARE", 0)
        monkeypatch.setattr(_pairs, "_PIECE_ROWS", 40)
        found = quick(**options).fit(*pair)
        # One batch holds all rows, so that only the order of its sums differs.
        assert_same_map(found, expected, *pair, rtol=1e-4)
        assert_same_map(quick(**options).fit(*pair), found, *pair, rtol=0)

    @pytest.mark.parametrize("resident_bytes", [0, 2**32])
    def test_memory_maps_are_like_arrays(self, pair, tmp_path, monkeypatch, resident_bytes):
        monkeypatch.setattr(_pairs, "_RESIDENT_BYTES", resident_bytes)
        mapped = []
        for name, array in zip("Xy", pair, strict=True):
            np.save(tmp_path / f"{name}.npy", array)
            mapped.append(np.load(tmp_path / f"{name}.npy", mmap_mode="r"))
        assert_same_map(quick().fit(*mapped), quick().fit(*pair), *pair, rtol=0)


class TestWords:
    def test_are_none_by_default(self, pair, capsys):
        quick(init="gated", max_epochs=2).fit(*pair).partial_fit(*pair)
        assert capsys.readouterr() == ("", "")

    def test_are_a_bar_on_request(self, pair, capsys):
        quick(verbose=1).fit(*pair)
        out, err = capsys.readouterr()
        assert out == ""
        assert "INNAligner" in err
        assert "4/4" in err
        assert "valid_loss=" in err

    def test_are_a_line_for_each_epoch_as_well(self, pair, capsys):
        quick(verbose=2, refit=False).fit(*pair)
        out, err = capsys.readouterr()
        assert "train_loss" in out
        assert len([line for line in out.splitlines() if line.strip()[:1].isdigit()]) == 4
        assert "4/4" in err


class TestNet:
    @pytest.mark.parametrize("widths", [(4, 4), (3, 5), (5, 3)])
    @pytest.mark.parametrize("loaded", [False, True])
    def test_holds_the_fitted_map(self, widths, loaded):
        X, y = noisy_pair(100, *widths)
        found = quick().fit(X, y)
        net = (copy.deepcopy(found) if loaded else found).net_
        assert isinstance(net, skorch.NeuralNet)
        width = max(widths)
        x_rows = torch.from_numpy(found.map_.source.arrange(X, width, np.float32))
        y_rows = torch.from_numpy(found.map_.target.arrange(y, width, np.float32))
        with torch.no_grad():
            images = net.module_(x_rows, y_rows)
        there = found.map_.target.restore(images.forward.numpy(), np.float64)
        back = found.map_.source.restore(images.inverse.numpy(), np.float64)
        assert_close(there, found.transform(X), 1e-5)
        assert_close(back, found.inverse_transform(y), 1e-5)


class TestGPU:
    pytestmark = gpu

    @pytest.mark.parametrize("precision", ["float32", "bf16"])
    def test_trains_and_serves_in_both_precisions(self, pair, precision):
        found = quick(device="cuda", precision=precision, early_stopping=False).fit(*pair)
        assert found.device_ == "cuda"
        start = errors(quick(max_epochs=0).fit(*pair), *pair)
        assert errors(found, *pair).sum() < start.sum()
        for dtype, bound in ((np.float32, 1e-4), (np.float64, 1e-9)):
            X = pair[0].astype(dtype)
            assert_close(found.inverse_transform(found.transform(X)), X, bound)

    def test_is_near_to_the_cpu(self, pair):
        options = {"early_stopping": False, "dropout": 0.0, "batch_size": 160}
        there, here = (quick(device=device, **options).fit(*pair) for device in ("cuda", "cpu"))
        assert_same_map(there, here, *pair, rtol=1e-2)

    def test_takes_over_what_was_trained_elsewhere(self, pair):
        found = quick(device="cuda", warm_start=True).fit(*pair)
        again = copy.deepcopy(found)
        assert again.map_.device == "cpu"
        assert_same_map(again, found, *pair, rtol=1e-6)
        assert again.fit(*pair).device_ == "cuda"
