"""The map that the invertible network learns: what it starts as, how good it is, that it goes back."""

from functools import cache

import numpy as np
import pytest
from conftest import assert_close, assert_same_map, noisy_pair
from sklearn.base import clone
from sklearn.linear_model import RidgeCV

from sklearn_bijection import CCAAligner, INNAligner, PermutationAligner, ProcrustesAligner
from sklearn_bijection._inn import _aligner
from sklearn_bijection._linalg import variance_explained
from sklearn_bijection.datasets import make_invertible_pair

#: What a promised round trip may err by, relative to the spread of the rows.
ROUND_TRIP = {np.float32: 1e-4, np.float64: 1e-9}


def quick(**options):
    """A network that is trained for a moment, on the CPU, without the cost of fitting gates."""
    defaults = {"init": None, "max_epochs": 2, "hidden_size": 16, "device": "cpu"}
    return INNAligner(**{**defaults, "random_state": 0, **options})


def shared_signal(n_samples, width, n_latent, *, noise=0.5, seed=0):
    """Two noisy views of the same latent rows, so wide that rows tell where they come from."""
    rng = np.random.default_rng(seed)
    latent = rng.normal(size=(n_samples, n_latent)) * np.geomspace(1, 3, n_latent)
    clean = [latent @ rng.normal(size=(n_latent, width)) for _ in range(2)]
    return tuple(a + noise * a.std() * rng.normal(size=a.shape) + 1 for a in clean)


def both_r2(aligner, X, y):
    """R² of the map there and of the map back."""
    there, back = aligner.transform(X), aligner.inverse_transform(y)
    return np.array([variance_explained(y, there), variance_explained(X, back)])


def loss(aligner, X, y, train):
    """Error of both ways, each as a fraction of the variance of the rows that were learned from."""
    parts = [(aligner.transform(X) - y, train[1]), (aligner.inverse_transform(y) - X, train[0])]
    return np.mean([(e**2).sum(axis=1).mean() / rows.var(axis=0).sum() for e, rows in parts])


class TestStart:
    """Epoch 0 is a closed form."""

    @pytest.mark.parametrize("width", [5, 3, 7])
    @pytest.mark.parametrize(
        "init", [CCAAligner(), PermutationAligner(), ProcrustesAligner()], ids=repr
    )
    def test_of_a_closed_form_maps_like_it_both_ways(self, init, width):
        X, y = noisy_pair(100, 5, width)
        found = quick(init=init, max_epochs=0).fit(X, y)
        assert_same_map(found, clone(init).fit(X, y), X, y, rtol=1e-9)

    @pytest.mark.parametrize("width", [5, 3, 7])
    def test_of_a_closed_form_of_few_components_maps_like_it_what_that_keeps(self, width):
        X, y = noisy_pair(100, 5, width)
        init = CCAAligner(2, shrinkage=0.1)
        found = quick(init=init, max_epochs=0).fit(X, y)
        init.fit(X, y)
        assert_same_map(found, init, init.inverse_transform(y), init.transform(X), rtol=1e-9)

    def test_of_nothing_only_centres_and_scales(self):
        X, y = noisy_pair(100)
        spread_x, spread_y = (np.sqrt(a.var(axis=0).mean()) for a in (X, y))
        found = quick(max_epochs=0).fit(X, y).transform(X)
        assert_close(found, (X - X.mean(axis=0)) / spread_x * spread_y + y.mean(axis=0))

    @pytest.mark.parametrize("init", ["gated", None, CCAAligner()], ids=repr)
    def test_is_what_every_architecture_starts_as(self, init):
        X, y = noisy_pair(100)
        plain = quick(init=init, max_epochs=0).fit(X, y)
        other = quick(init=init, max_epochs=0, n_blocks=5, mixing="orthogonal", learn_linear=True)
        assert_same_map(other.fit(X, y), plain, X, y, rtol=1e-9)
        assert (plain.best_epoch_, plain.n_iter_, plain.history_) == (0, 0, [])

    def test_does_not_change_the_aligner_it_is_given(self):
        init = CCAAligner(shrinkage=0.3)
        quick(init=init, max_epochs=0).fit(*noisy_pair(100))
        assert not hasattr(init, "rank_x_")

    @pytest.mark.parametrize("direction", ["forward", "backward", "symmetric"])
    @pytest.mark.parametrize("init", ["gated", None], ids=repr)
    def test_of_the_swapped_pair_is_the_inverse(self, direction, init):
        if (direction, init) == ("symmetric", "gated"):
            pytest.skip("gates act one after the other, so that the two orders are near, not equal")
        opposite = {"forward": "backward", "backward": "forward"}.get(direction, direction)
        X, y = noisy_pair(100, 5, 3)
        one = quick(init=init, direction=direction, max_epochs=0).fit(X, y)
        other = quick(init=init, direction=opposite, max_epochs=0).fit(y, X)
        assert_close(other.inverse_transform(X), one.transform(X), 1e-8)
        assert_close(other.transform(y), one.inverse_transform(y), 1e-8)

    def test_of_the_gates_is_nearly_as_good_on_the_swapped_pair(self):
        X, y = shared_signal(600, 16, 6)
        found = INNAligner(max_epochs=0).fit(X[:300], y[:300])
        swapped = INNAligner(max_epochs=0).fit(y[:300], X[:300])
        np.testing.assert_allclose(
            both_r2(swapped, y[300:], X[300:])[::-1], both_r2(found, X[300:], y[300:]), atol=0.05
        )


class TestQuality:
    """What it must reach."""

    def test_exact_linear_pairs_are_recovered_both_ways(self):
        X, y = noisy_pair(300, 5, 5, noise=0.0)
        found = INNAligner(max_epochs=2, random_state=0).fit(X[:200], y[:200])
        assert both_r2(found, X[200:], y[200:]).min() > 1 - 1e-9

    def test_one_bijection_comes_near_to_two_regressions_where_no_linear_one_does(self):
        X, y = shared_signal(1600, 64, 30)
        train, test = (X[:600], y[:600]), (X[600:], y[600:])
        penalties = np.geomspace(1e-2, 1e5, 15)
        there = RidgeCV(penalties).fit(*train).predict(test[0])
        back = RidgeCV(penalties).fit(*train[::-1]).predict(test[1])
        ridges = [variance_explained(test[1], there), variance_explained(test[0], back)]
        found = both_r2(INNAligner(max_epochs=2, random_state=0).fit(*train), *test)
        assert (found > np.array(ridges) - 0.02).all()
        assert (found > both_r2(CCAAligner().fit(*train), *test) + 0.08).all()

    def test_gates_alone_can_learn(self):
        X, y = shared_signal(300, 16, 6)
        found = quick(init="gated", n_blocks=0, early_stopping=False).fit(X, y)
        assert found.history_[-1]["train_loss"] < found.history_[0]["train_loss"]
        assert max(trips(found, X, y, np.float64)) < 1e-9

    def test_a_curved_pair_is_learned_better_than_any_linear_map_could(self):
        X, y = curved()
        train, test = (X[:400], y[:400]), (X[400:], y[400:])
        found = INNAligner(max_epochs=15, lr=0.01, random_state=0).fit(*train)
        linear = both_r2(CCAAligner().fit(*train), *test)
        assert (1 - both_r2(found, *test) < 0.75 * (1 - linear)).all()

    def test_seeds_hardly_matter(self):
        X, y = curved()
        options = {"init": "gated", "max_epochs": 3, "lr": 0.01, "batch_size": 100}
        fits = [quick(random_state=s, **options).fit(X[:300], y[:300]) for s in range(5)]
        scores = [both_r2(fit, X[300:], y[300:]) for fit in fits]
        assert np.std(scores, axis=0).max() < 0.02
        assert np.ptp(scores, axis=0).min() > 0

    @pytest.mark.parametrize("lr", [1e-3, 0.3])
    @pytest.mark.parametrize("init", [None, CCAAligner(), "gated"], ids=repr)
    def test_it_is_never_worse_than_its_start_on_validation_rows(self, init, lr):
        X, y = noisy_pair(160, noise=0.8)
        train, valid = (X[:120], y[:120]), (X[120:], y[120:])
        start = quick(init=init, max_epochs=0).fit(*train)
        found = quick(init=init, lr=lr, max_epochs=3).fit(*train, validation_data=valid)
        assert loss(found, *valid, train) <= loss(start, *valid, train) * (1 + 1e-6)


def curved(n_samples=900, width=4, **options):
    pair = make_invertible_pair(n_samples, width, random_state=0, **options)
    return pair.X, pair.y


def trips(aligner, X, y, dtype):
    """Largest errors of both round trips in one precision, relative to the deviations of the rows."""
    X, y = X.astype(dtype), y.astype(dtype)
    ends = [
        (aligner.inverse_transform(aligner.transform(X)), X),
        (aligner.transform(aligner.inverse_transform(y)), y),
    ]
    return [abs(end - rows).max() / abs(rows - rows.mean(axis=0)).max() for end, rows in ends]


@cache
def deep(n_blocks):
    """A trained network, the last epoch of which is kept, and rows that it has not seen."""
    X, y = (np.c_[a, np.full(300, 0.1)] for a in curved(300))
    found = INNAligner(n_blocks=n_blocks, early_stopping=False, max_epochs=5, random_state=0)
    found.fit(X[:200], y[:200])
    assert found.history_[-1]["train_loss"] < found.history_[0]["train_loss"]
    return found, X[200:], y[200:]


class TestRoundTrip:
    """Back where it came from, in the promised precision."""

    @pytest.mark.parametrize("n_blocks", [2, 8, 24])
    @pytest.mark.parametrize("dtype", ROUND_TRIP)
    @pytest.mark.parametrize("deviations", [1, 10])
    def test_is_exact_at_any_depth_and_far_out(self, n_blocks, dtype, deviations):
        found, X, y = deep(n_blocks)
        X, y = (a.mean(axis=0) + deviations * (a - a.mean(axis=0)) for a in (X, y))
        assert max(trips(found, X, y, dtype)) <= ROUND_TRIP[dtype]
        assert (found.transform(X.astype(dtype))[:, -1] == dtype(0.1)).all()
        assert (found.inverse_transform(y.astype(dtype))[:, -1] == dtype(0.1)).all()

    @pytest.mark.parametrize("widths", [(3, 6), (6, 3), (1, 4), (4, 1), (1, 1)])
    @pytest.mark.parametrize("init", ["gated", None], ids=repr)
    def test_is_exact_from_the_smaller_space(self, widths, init):
        X, y = noisy_pair(100, *widths)
        found = quick(init=init, max_epochs=1, early_stopping=False).fit(X, y)
        from_x, from_y = trips(found, X, y, np.float64)
        exact = [from_x] * (widths[0] <= widths[1]) + [from_y] * (widths[0] >= widths[1])
        assert max(exact) < 1e-9
        assert len(exact) == 2 or max(from_x, from_y) > 1e-3

    @pytest.mark.parametrize("coupling", ["affine", "additive"])
    @pytest.mark.parametrize("mixing", ["none", "permutation", "rotation", "orthogonal"])
    def test_is_exact_however_coordinates_are_coupled_and_mixed(self, coupling, mixing):
        X, y = noisy_pair(100, 5, 5)
        options = {"lr": 0.01, "early_stopping": False, "learn_linear": True, "n_hidden": 2}
        start = quick(max_epochs=0).fit(X, y).transform(X)
        found = quick(coupling=coupling, mixing=mixing, **options).fit(X, y)
        assert abs(found.transform(X) - start).max() > 1e-3
        for dtype, bound in ROUND_TRIP.items():
            assert max(trips(found, X, y, dtype)) <= bound

    def test_error_is_measured_and_told_when_it_is_large(self, monkeypatch):
        X, y = noisy_pair(100)
        assert 0 < quick().fit(X, y).roundtrip_error_ < 1e-5
        monkeypatch.setattr(_aligner, "_ROUND_TRIP_WARNING", -1.0)
        expected = r"A round trip errs by \d\.\de-\d\d of the spread.*clamp=1.0 or use fewer than 2"
        with pytest.warns(UserWarning, match=expected) as caught:
            quick().fit(X, y)
        assert caught[0].filename == __file__


class TestHardRows:
    """Offsets, units, few rows, dead columns: finite, and the same map."""

    @pytest.mark.parametrize("init", ["gated", None, CCAAligner()], ids=repr)
    @pytest.mark.parametrize("n_samples", [2, 3, 5, 20])
    @pytest.mark.filterwarnings("ignore:.*rows are too few:UserWarning")
    def test_few_rows_are_enough_to_be_finite(self, n_samples, init):
        X, y = noisy_pair(n_samples, 4, 3)
        for early_stopping in (True, False):
            found = quick(init=init, early_stopping=early_stopping).fit(X, y)
            assert np.isfinite(found.transform(X)).all()
            assert np.isfinite(found.inverse_transform(y)).all()

    def test_offset_and_unit_do_not_matter(self):
        X, y = noisy_pair(150)
        expected = quick(lr=0.01).fit(X, y)
        found = quick(lr=0.01).fit(1e-6 * (X + 1e4), 1e6 * (y - 1e4))
        there = found.transform(1e-6 * (X + 1e4)) / 1e6 + 1e4
        back = found.inverse_transform(1e6 * (y - 1e4)) / 1e-6 - 1e4
        assert_close(there, expected.transform(X), 1e-4)
        assert_close(back, expected.inverse_transform(y), 1e-4)

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_a_large_offset_in_a_small_unit_is_finite(self, dtype):
        X, y = (dtype(1e-6 * a + 1e4) for a in noisy_pair(100))
        X[:, 0], y[:, 0] = (np.linspace(0, 1, 100) ** k for k in (1, 2))
        found = quick(init="gated").fit(X, y)
        assert np.isfinite(found.transform(X)).all()
        assert found.transform(X).dtype == dtype

    @pytest.mark.parametrize(
        ("size", "dtype"), [(1e-150, float), (1e150, float), (1e-30, "f4"), (1e15, "f4")]
    )
    def test_extreme_units_give_the_same_map(self, size, dtype):
        X, y = noisy_pair(100, 4, 4)
        expected = quick(lr=0.01).fit(X, y)
        found = quick(lr=0.01).fit((size * X).astype(dtype), (size * y).astype(dtype))
        there = found.transform((size * X).astype(dtype)).astype(float) / size
        assert_close(there, expected.transform(X), 1e-4)

    @pytest.mark.parametrize("n_samples", [20, 100])
    def test_directions_without_variance_go_there_and_back(self, n_samples):
        X, y = noisy_pair(n_samples, 12, 24)
        X = np.c_[X, X]
        found = quick(init="gated").fit(X, y)
        assert found.score(X, y) > 0.5
        other = np.random.default_rng(1).normal(size=(50, 24))
        for rows in (X, other):
            assert_close(found.inverse_transform(found.transform(rows)), rows, 1e-9)

    def test_constant_columns_are_left_out_and_come_back(self):
        X, y = noisy_pair(100)
        expected = quick(lr=0.01).fit(X, y)
        wide = quick(lr=0.01).fit(np.c_[X, np.full(100, 0.1)], np.c_[np.full(100, -7.3), y])
        assert_close(wide.transform(np.c_[X, np.zeros(100)])[:, 1:], expected.transform(X), 1e-4)
        assert (wide.transform(np.c_[X, np.zeros(100)])[:, 0] == -7.3).all()
        assert (wide.inverse_transform(np.c_[np.zeros(100), y])[:, -1] == 0.1).all()

    @pytest.mark.parametrize("name", ["X", "y"])
    @pytest.mark.parametrize("init", ["gated", None, CCAAligner()], ids=repr)
    def test_a_view_without_variance_is_named(self, name, init):
        pair = dict(zip("Xy", noisy_pair(60), strict=True))
        pair[name] = np.full((60, 3), 2.5)
        with pytest.raises(ValueError, match=f"{name} has no variance: its 60 row"):
            quick(init=init).fit(**pair)

    @pytest.mark.parametrize("random_state", [5, 6])
    def test_a_view_that_hardly_varies_does_vary(self, random_state):
        X, y = noisy_pair(12, 3, 1)
        y[1:] = 0
        found = quick(validation_fraction=0.5, random_state=random_state).fit(X, y)
        assert np.isfinite(found.transform(X)).all()
