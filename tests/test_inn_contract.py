"""The invertible network as a scikit-learn estimator: inputs, parameters, files, and its neighbours."""

import copy

import numpy as np
import pandas as pd
import pytest
import torch
from conftest import (
    CARRIERS,
    assert_close,
    assert_same_map,
    noisy_pair,
)
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.cross_decomposition import PLSRegression
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import (
    check_estimator,
    check_sample_weight_equivalence_on_dense_data,
)

from sklearn_bijection import CCAAligner, INNAligner

FITTED = ["map_", "net_", "history_", "best_epoch_", "n_iter_", "roundtrip_error_", "device_"]


def quick(**options):
    """A network that is trained for a moment, on the CPU, without the cost of fitting gates."""
    defaults = {"init": None, "max_epochs": 2, "hidden_size": 16, "device": "cpu", "lr": 0.01}
    return INNAligner(**{**defaults, "random_state": 0, **options})


@pytest.fixture
def pair():
    return noisy_pair(100, 4, 4)


class TestCheckEstimator:
    def test_finds_no_fault(self):
        aligner = INNAligner(max_epochs=2, random_state=0)
        results = check_estimator(aligner, on_fail=None, on_skip=None)
        failed = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
        assert failed == {}
        # scikit-learn itself skips this one wherever SCIPY_ARRAY_API is not set.
        skipped = {r["check_name"] for r in results if r["status"] == "skipped"}
        assert skipped <= {"check_array_api_input"}

    def test_of_weights_finds_no_fault_without_training(self):
        aligner = INNAligner(max_epochs=0)
        check_sample_weight_equivalence_on_dense_data(type(aligner).__name__, aligner)


class TestInput:
    @pytest.mark.parametrize("dtype", ["frame", "float64", "float16", "int64", "list"])
    def test_of_every_kind_is_as_float32(self, dtype):
        # Small whole numbers are the same in every type.
        X, y = (np.round(4 * a) for a in noisy_pair(100, 4, 4))
        cast = {"frame": pd.DataFrame, "list": np.ndarray.tolist}.get(
            dtype, lambda a: a.astype(dtype)
        )
        single = X.astype(np.float32), y.astype(np.float32)
        expected = quick().fit(*single)
        found = quick().fit(cast(X), cast(y))
        there, back = found.transform(cast(X)), found.inverse_transform(cast(y))
        assert there.dtype == back.dtype == np.float64
        assert_close(there, expected.transform(single[0]), 1e-5)
        assert_close(back, expected.inverse_transform(single[1]), 1e-5)
        assert expected.transform(single[0]).dtype == np.float32

    def test_is_not_changed(self, pair):
        weight = np.ones(100)
        before = copy.deepcopy((*pair, weight))
        for array in (*pair, weight):
            array.setflags(write=False)
        fits = quick(init="gated").fit(*pair, sample_weight=weight, validation_data=pair)
        fits.partial_fit(*pair, weight).score(*pair, weight)
        assert fits.transform(pair[0]).flags.writeable
        for array, old in zip((*pair, weight), before, strict=True):
            np.testing.assert_array_equal(array, old)

    @pytest.mark.parametrize("name", ["X", "y"])
    @pytest.mark.parametrize("fitted", [True, False])
    @pytest.mark.parametrize("learn", ["fit", "partial_fit"])
    def test_that_is_bad_leaves_the_estimator_as_it_was(self, pair, name, fitted, learn):
        aligner = quick().fit(*pair) if fitted else quick()
        before = dict(vars(aligner))
        bad = dict(zip("Xy", copy.deepcopy(pair), strict=True))
        bad[name][7, 2] = np.nan
        with pytest.raises(
            ValueError, match=f"Input {name} contains NaN .first at row 7, column 2"
        ):
            getattr(aligner, learn)(**bad)
        assert vars(aligner) == before

    def test_before_fit_has_nothing_to_go_through(self, pair):
        aligner = quick()
        for use, rows in (
            ("transform", pair[:1]),
            ("inverse_transform", pair[1:]),
            ("predict", pair[:1]),
            ("score", pair),
            ("get_feature_names_out", ()),
        ):
            with pytest.raises(NotFittedError, match="not fitted yet"):
                getattr(aligner, use)(*rows)
        assert [name for name in FITTED if hasattr(aligner, name)] == []
        aligner.fit(*pair)
        assert [name for name in FITTED if not hasattr(aligner, name)] == []


class TestParameters:
    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("n_blocks", -1),
            ("n_blocks", 1.5),
            ("hidden_size", 0),
            ("hidden_size", "large"),
            ("n_hidden", 0),
            ("coupling", "spline"),
            ("mixing", None),
            ("activation", "sigmoid"),
            ("clamp", 0.0),
            ("init", "cca"),
            ("init", CCAAligner),
            ("learn_linear", "yes"),
            ("direction", "both"),
            ("dropout", 1.0),
            ("max_epochs", -1),
            ("batch_size", 0),
            ("lr", 0.0),
            ("weight_decay", -0.1),
            ("early_stopping", "no"),
            ("validation_fraction", 1.0),
            ("refit", None),
            ("patience", 0),
            ("gradient_clip", 0.0),
            ("optimizer", None),
            ("cycle", -1.0),
            ("cosine", -1.0),
            ("callbacks", "all"),
            ("device", None),
            ("compile", "yes"),
            ("precision", "float16"),
            ("warm_start", "yes"),
            ("random_state", "zero"),
            ("verbose", -1),
        ],
    )
    def test_out_of_range_are_named(self, pair, name, value):
        for learn in ("fit", "partial_fit"):
            with pytest.raises(ValueError, match=f"The '{name}' parameter of INNAligner must be"):
                getattr(quick(**{name: value}), learn)(*pair)

    @pytest.mark.parametrize("value", ["AdamX", "lr_scheduler", "LBFGS", int])
    def test_of_the_optimizer_that_cannot_train_are_named(self, pair, value):
        with pytest.raises(ValueError, match=r"optimizer=.*torch\.optim"):
            quick(optimizer=value).fit(*pair)

    @pytest.mark.parametrize(
        "init", [quick(), LinearRegression(), PLSRegression(), StandardScaler()], ids=repr
    )
    def test_of_the_start_that_are_no_closed_form_are_named(self, pair, init):
        with pytest.raises(
            ValueError, match=r"(?s)init=.* is no closed-form aligner.*CCAAligner\(\)"
        ):
            quick(init=init).fit(*pair)

    @pytest.mark.parametrize(
        "options",
        [
            {"n_blocks": 0, "learn_linear": True},
            {"n_blocks": 3},
            {"n_hidden": 2, "activation": "relu"},
            {"activation": "silu", "dropout": 0.5},
            {"activation": "tanh", "clamp": 0.1},
            {"direction": "forward"},
            {"direction": "backward"},
            {"cycle": 0.5, "cosine": 0.5},
            {"optimizer": "SGD", "lr": 0.1},
            {"optimizer": torch.optim.RMSprop},
            {"gradient_clip": None, "weight_decay": 0.0},
            {"learn_linear": True},
        ],
        ids=str,
    )
    def test_within_range_all_train(self, pair, options):
        found = quick(**{"max_epochs": 4, "early_stopping": False, **options}).fit(*pair)
        assert found.history_[-1]["train_loss"] < found.history_[0]["train_loss"]

    def test_may_leave_nothing_to_learn(self, pair):
        found = quick(n_blocks=0, early_stopping=False).fit(*pair)
        assert (found.n_iter_, found.best_epoch_, found.history_) == (0, 0, [])
        assert_same_map(found, quick(max_epochs=0).fit(*pair), *pair, rtol=0)

    def test_of_a_device_that_is_not_there_are_named(self, pair, monkeypatch):
        with pytest.raises(ValueError, match=r"device='abacus' cannot be used .*Pass 'auto' or"):
            quick(device="abacus").fit(*pair)
        with pytest.raises(
            ValueError, match=r"precision='bf16' needs CUDA, but the device is 'cpu'"
        ):
            quick(precision="bf16").fit(*pair)

    @pytest.mark.skipif(torch.cuda.is_available(), reason="There is CUDA here.")
    def test_of_cuda_without_cuda_are_named(self, pair):
        with pytest.raises(
            ValueError, match=r"device='cuda' cannot be used .*Pass 'auto' or 'cpu'"
        ):
            quick(device="cuda").fit(*pair)
        found = INNAligner(max_epochs=0).fit(*pair)
        assert found.device_ in {"cpu", "mps"}


class TestValidationData:
    def test_is_what_the_epochs_are_judged_by(self, pair):
        X, y = pair
        found = quick(max_epochs=4).fit(X[:60], y[:60], validation_data=(X[60:], y[60:]))
        error = [
            ((there - rows) ** 2).sum(axis=1).mean() / learned.var(axis=0).sum()
            for there, rows, learned in (
                (found.transform(X[60:]), y[60:], y[:60]),
                (found.inverse_transform(y[60:]), X[60:], X[:60]),
            )
        ]
        best = min(epoch["valid_loss"] for epoch in found.history_)
        assert found.best_epoch_ == 4
        assert np.mean(error) == pytest.approx(best, rel=1e-4)

    def test_comes_through_a_pipeline(self, pair):
        X, y = pair
        valid = X[60:], y[60:]
        with config_context(enable_metadata_routing=True):
            routed = quick().set_fit_request(validation_data=True)
            chain = Pipeline([("align", routed)]).fit(X[:60], y[:60], validation_data=valid)
            with pytest.raises(ValueError, match="validation_data"):
                make_pipeline(quick()).fit(X[:60], y[:60], validation_data=valid)
        expected = quick().fit(X[:60], y[:60], validation_data=valid)
        assert_same_map(chain[-1], expected, X, y, rtol=0)

    @pytest.mark.parametrize(
        "given", [0.2, np.zeros((3, 4)), "rows", (np.zeros((3, 4)),)], ids=repr
    )
    def test_that_is_no_pair_is_told(self, pair, given):
        with pytest.raises(ValueError, match=r"validation_data must be a pair \(X, y\), but it is"):
            quick().fit(*pair, validation_data=given)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda X, y: (X[:, :3], y), "X has 3 features"),
            (lambda X, y: (X, y[:, :3]), "y has 3 columns"),
            (lambda X, y: (X, y[:-1]), "inconsistent numbers of samples"),
            (lambda X, y: (X * np.nan, y), "Input X contains NaN"),
            (lambda X, y: (X, y / 0.0), "Input y contains infinity"),
            (lambda X, y: (X[:0], y[:0]), "0 sample"),
        ],
    )
    @pytest.mark.filterwarnings("ignore:(divide by zero|invalid value):RuntimeWarning")
    def test_that_does_not_fit_is_named(self, pair, change, message):
        with pytest.raises(ValueError, match=message) as error:
            quick().fit(*pair, validation_data=change(*abs(np.array(pair))))
        assert "validation_data" in "".join(
            [str(error.value), *getattr(error.value, "__notes__", [])]
        )


class TestNeighbours:
    def test_grid_search_in_two_processes_finds_the_same(self, pair):
        searches = [
            GridSearchCV(quick(init="gated"), {"n_blocks": [0, 2]}, cv=2, n_jobs=n).fit(*pair)
            for n in (1, 2)
        ]
        scores = [search.cv_results_["mean_test_score"] for search in searches]
        np.testing.assert_allclose(*scores, rtol=1e-5)
        best = [search.best_estimator_ for search in searches]
        assert_same_map(*best, *pair, rtol=1e-4)
        found = searches[0].inverse_transform(pair[1])
        np.testing.assert_array_equal(found, best[0].inverse_transform(pair[1]))

    def test_grid_search_reaches_into_the_start(self, pair):
        scores = []
        for aligner, name in (
            (quick(init=CCAAligner(), max_epochs=0), "init__"),
            (CCAAligner(), ""),
        ):
            chain = Pipeline([("scale", StandardScaler()), ("align", aligner)])
            grid = {f"align__{name}shrinkage": [0.0, 0.3, 0.9]}
            search = GridSearchCV(chain, grid, cv=2).fit(*pair)
            assert list(search.cv_results_[f"param_align__{name}shrinkage"]) == [0.0, 0.3, 0.9]
            scores.append(search.cv_results_["mean_test_score"])
        np.testing.assert_allclose(*scores, rtol=1e-9)
        assert np.ptp(scores) > 0.01

    def test_aligned_features_feed_the_next_step(self, pair):
        X, y = pair
        chain = make_pipeline(StandardScaler(), quick(), Ridge()).fit(X, y)
        aligned = quick().fit_transform(StandardScaler().fit_transform(X), y)
        assert_close(chain.predict(X), Ridge().fit(aligned, y).predict(aligned))

    def test_last_in_a_pipeline_it_walks_back(self, pair):
        chain = make_pipeline(StandardScaler(), quick()).fit(*pair)
        assert_close(chain.inverse_transform(chain.transform(pair[0])), pair[0], 1e-9)
        np.testing.assert_array_equal(chain.predict(pair[0]), chain.transform(pair[0]))

    @pytest.mark.parametrize("shape", [(50,), (50, 1), (50, 6)])
    def test_transformed_targets_come_back_in_their_own_shape_and_units(self, shape):
        X, y = noisy_pair(50)
        y = y[:, : shape[-1] if len(shape) == 2 else 1].reshape(shape)
        scaled = StandardScaler().fit(y.reshape(50, -1))
        model = TransformedTargetRegressor(quick(), transformer=StandardScaler()).fit(X, y)
        inner = quick().fit(X, scaled.transform(y.reshape(50, -1))).transform(X)
        assert_close(model.predict(X), scaled.inverse_transform(inner).reshape(shape))

    def test_weights_are_routed_through_a_pipeline(self, pair):
        weight = np.random.default_rng(5).integers(0, 3, 100).astype(float)
        with config_context(enable_metadata_routing=True):
            scaler = StandardScaler().set_fit_request(sample_weight=False)
            routed = quick().set_fit_request(sample_weight=True)
            chain = make_pipeline(scaler, routed).fit(*pair, sample_weight=weight)
        scaled = StandardScaler().fit_transform(pair[0])
        expected = quick().fit(scaled, pair[1], sample_weight=weight)
        assert_same_map(chain[-1], expected, scaled, pair[1], rtol=0)

    def test_frames_keep_their_names_and_index(self, pair):
        X = pd.DataFrame(pair[0], columns=list("abcd"), index=range(7, 107))
        y = pd.DataFrame(pair[1], columns=list("uvwx"), index=X.index)
        aligner = quick().set_output(transform="pandas").fit(X, y)
        found = make_pipeline(aligner).transform(X)
        assert list(found.columns) == list(aligner.get_feature_names_out()) == list("uvwx")
        assert list(found.index) == list(X.index)
        assert list(aligner.feature_names_in_) == list("abcd")
        assert type(aligner.predict(X)) is np.ndarray
        plain = quick().set_output(transform="pandas").fit(*pair)
        assert list(plain.transform(pair[0]).columns) == [f"innaligner{i}" for i in range(4)]

    def test_y_of_one_dimension_is_predicted_in_one(self, pair):
        X, y = pair[0], pair[1][:, 0]
        found = quick().fit(X, y)
        assert found.predict(X).shape == (100,)
        assert found.transform(X).shape == (100, 1)
        assert found.inverse_transform(y).shape == (100, 4)


class TestFiles:
    @pytest.mark.parametrize("carry", CARRIERS)
    @pytest.mark.parametrize(
        "options", [{"init": "gated"}, {"mixing": "orthogonal", "learn_linear": True}], ids=str
    )
    def test_carry_the_map_and_it_goes_on_learning(self, pair, tmp_path, carry, options):
        aligner = quick(early_stopping=False, **options).fit(*pair)
        drawn = torch.get_rng_state()
        arrived = carry(aligner, tmp_path)
        assert torch.equal(torch.get_rng_state(), drawn)
        assert_same_map(arrived, aligner, *pair, rtol=0)
        assert arrived.history_ == aligner.history_
        assert arrived.get_params().keys() == aligner.get_params().keys()
        assert_same_map(arrived.partial_fit(*pair), aligner.partial_fit(*pair), *pair, rtol=0)

    @pytest.mark.parametrize("carry", CARRIERS)
    def test_come_from_a_machine_with_a_gpu(self, pair, tmp_path, carry):
        aligner = quick(device="auto").fit(*pair)
        expected = aligner.transform(pair[0]), aligner.inverse_transform(pair[1])
        aligner.device_ = aligner.map_.device = "cuda"
        arrived = carry(aligner, tmp_path)
        assert_close(arrived.transform(pair[0]), expected[0], 1e-9)
        assert_close(arrived.inverse_transform(pair[1]), expected[1], 1e-9)
        assert np.isfinite(arrived.partial_fit(*pair).fit(*pair).score(*pair))

    def test_are_not_what_a_clone_carries(self, pair):
        aligner = quick(init=CCAAligner(shrinkage=0.3)).fit(*pair)
        copied = clone(aligner)
        assert copied.get_params()["init__shrinkage"] == 0.3
        assert copied.init is not aligner.init
        with pytest.raises(NotFittedError):
            copied.transform(pair[0])

    @pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
    def test_a_copy_and_its_original_learn_apart(self, pair, copied):
        aligner = quick().fit(*pair)
        there = aligner.transform(pair[0])
        other = copied(aligner).partial_fit(*pair)
        assert_close(aligner.transform(pair[0]), there, 0)
        assert abs(other.transform(pair[0]) - there).max() > 1e-6
        assert len(other.history_) == len(aligner.history_) + 1
