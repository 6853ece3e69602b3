"""Fitted maps as torch modules, in ONNX files and in safetensors files."""

import numpy as np
import onnxruntime
import pytest
import torch
from conftest import ALIGNERS, assert_close, assert_same_map, noisy_pair
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from sklearn_bijection import CCAAligner, INNAligner, PermutationAligner, ProcrustesAligner

TRAINED = {
    "inn": INNAligner(max_epochs=2, random_state=0),
    "inn-mixed": INNAligner(
        max_epochs=2, early_stopping=False, mixing="orthogonal", learn_linear=True, random_state=0
    ),
    "inn-additive": INNAligner(
        max_epochs=2, early_stopping=False, coupling="additive", init=None, random_state=0
    ),
}
EXPORTED = {
    "cca": CCAAligner(),
    "permutation": PermutationAligner(),
    "inn": TRAINED["inn"],
    "inn-mixed": TRAINED["inn-mixed"],
}


@pytest.fixture(params=[*ALIGNERS, *TRAINED])
def fitted(request):
    estimator = ALIGNERS.get(request.param) or TRAINED[request.param]
    return clone(estimator).fit(*noisy_pair())


def tensor(rows, dtype=torch.float64):
    return torch.tensor(rows, dtype=dtype)


def test_the_module_maps_like_the_aligner_in_both_directions(fitted, pair):
    X, y = pair
    module = fitted.to_torch(torch.float64)
    with torch.no_grad():
        assert_close(module(tensor(X)).numpy(), fitted.transform(X), 1e-12)
        assert_close(module.inverse(tensor(y)).numpy(), fitted.inverse_transform(y), 1e-12)
        back = module.inverted()
        np.testing.assert_array_equal(back(tensor(y)), module.inverse(tensor(y)))
        np.testing.assert_array_equal(back.inverse(tensor(X)), module(tensor(X)))


def test_by_default_it_has_the_precision_of_torch(fitted, pair):
    module = fitted.to_torch()
    found = module(tensor(pair[0], torch.float32))
    assert found.dtype == torch.float32
    assert_close(found.detach().numpy(), fitted.transform(pair[0]), 1e-4)


def test_gradients_pass_through_to_the_rows(fitted, pair):
    module, rows = fitted.to_torch(), tensor(pair[0][:3], torch.float32).requires_grad_()
    module(rows).sum().backward()
    assert rows.grad.abs().sum() > 0


def test_it_shares_nothing_with_the_aligner(fitted, pair):
    before = fitted.transform(pair[0])
    module = fitted.to_torch(torch.float64)
    with torch.no_grad():
        for value in [*module.parameters(), *module.buffers()]:
            value.zero_()
    np.testing.assert_array_equal(fitted.transform(pair[0]), before)


@pytest.mark.parametrize(
    "estimator",
    [CCAAligner(), PermutationAligner(), TRAINED["inn"]],
    ids=["cca", "permutation", "inn"],
)
@pytest.mark.parametrize("widths", [(3, 6), (6, 3)])
def test_unequal_widths_and_constant_columns(estimator, widths):
    X, y = noisy_pair(120, *widths)
    X[:, 0], y[:, 1] = 0.1, -7.0
    fitted = clone(estimator).fit(X, y)
    module = fitted.to_torch(torch.float64)
    with torch.no_grad():
        assert_close(module(tensor(X)).numpy(), fitted.transform(X), 1e-12)
        assert_close(module.inverse(tensor(y)).numpy(), fitted.inverse_transform(y), 1e-12)
        np.testing.assert_allclose(module(tensor(X))[:, 1], -7.0, rtol=1e-12)


def test_before_fit_there_is_no_module():
    with pytest.raises(NotFittedError):
        INNAligner().to_torch()


def test_numbers_beyond_the_precision_are_refused():
    X, y = noisy_pair(60, 2, 2)
    fitted = ProcrustesAligner().fit(X, y * 1e60)
    with pytest.raises(ValueError, match=r"cannot hold mean_y.*float64"):
        fitted.to_torch(torch.float32)
    assert torch.isfinite(fitted.to_torch(torch.float64)(tensor(X))).all()


# What the exporter itself uses is going to change.
@pytest.mark.filterwarnings("ignore:.*treespec:FutureWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("name", EXPORTED)
@pytest.mark.parametrize("direction", ["forward", "inverse"])
def test_exported_to_onnx_it_maps_the_same_any_number_of_rows(name, direction, tmp_path):
    X, y = noisy_pair()
    fitted = clone(EXPORTED[name]).fit(X, y)
    module, rows, expected = fitted.to_torch(), X, fitted.transform(X)
    if direction == "inverse":
        module, rows, expected = module.inverted(), y, fitted.inverse_transform(y)
    program = torch.onnx.export(
        module,
        (tensor(rows[:2], torch.float32),),
        dynamo=True,
        dynamic_shapes=({0: torch.export.Dim("rows")},),
        verbose=False,
    )
    program.save(tmp_path / "map.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "map.onnx")
    feed = {session.get_inputs()[0].name: rows.astype(np.float32)}
    assert_close(session.run(None, feed)[0], expected, 1e-4)


@pytest.mark.parametrize("name", TRAINED)
@pytest.mark.parametrize("target", ["two dimensions", "one dimension"])
def test_through_a_safetensors_file_it_is_the_same_map(name, target, tmp_path):
    X, y = noisy_pair(n_targets=6 if target == "two dimensions" else 1)
    y = y if target == "two dimensions" else y[:, 0]
    fitted = clone(TRAINED[name]).fit(X, y)
    fitted.save_params(tmp_path / "map.safetensors")
    loaded = INNAligner().load_params(tmp_path / "map.safetensors")
    assert_same_map(loaded, fitted, X, y.reshape(len(y), -1), rtol=0)
    np.testing.assert_array_equal(loaded.predict(X), fitted.predict(X))
    loaded.partial_fit(X, y)
    assert np.isfinite(loaded.transform(X)).all()


def test_a_foreign_safetensors_file_is_refused(tmp_path):
    from safetensors.numpy import save_file

    save_file({"a": np.zeros(2)}, tmp_path / "other.safetensors")
    with pytest.raises(ValueError, match=r"holds no INNAligner.*save_params"):
        INNAligner().load_params(tmp_path / "other.safetensors")
    with pytest.raises(NotFittedError):
        INNAligner().save_params(tmp_path / "none.safetensors")
