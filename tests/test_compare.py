"""The cross-validated comparison against a plain loop, and what becomes of it."""

import csv
import pickle
import re

import numpy as np
import pandas as pd
import pytest
from conftest import noisy_pair
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from sklearn_bijection import CCAAligner, ProcrustesAligner
from sklearn_bijection.metrics import alignment_report, compare_aligners

AT_REST = {"cca": CCAAligner(shrinkage=0.1), "turn": ProcrustesAligner()}


def compare(aligners=AT_REST, pair=None, **options):
    X, y = noisy_pair(120, 4, 4) if pair is None else pair
    return compare_aligners(aligners, X, y, **{"cv": 3, "progress": False, **options})


def untimed(comparison):
    return [{k: v for k, v in row.items() if k != "fit_seconds"} for row in comparison]


@pytest.fixture(scope="module")
def comparison():
    return compare()


def test_is_a_plain_loop_over_shuffled_folds(comparison):
    X, y = noisy_pair(120, 4, 4)
    rows = iter(comparison)
    for name, aligner in AT_REST.items():
        splits = KFold(3, shuffle=True, random_state=0).split(X)
        for number, (train, test) in enumerate(splits):
            row = next(rows)
            report = alignment_report(aligner.fit(X[train], y[train]), X[test], y[test])
            expected = {"aligner": name, "split": number, "n_train": 80, **report.to_dict()}
            assert row.pop("fit_seconds") > 0
            assert row == pytest.approx(expected)


def test_rows_come_in_the_order_given(comparison):
    assert comparison.names == ["cca", "turn", "mean", "identity"]
    assert len(comparison) == len(comparison.rows) == 12
    assert [(row["aligner"], row["split"]) for row in comparison[2:5]] == [
        ("cca", 2),
        ("turn", 0),
        ("turn", 1),
    ]
    assert comparison[-1] == comparison.rows[-1]


def test_baselines_are_what_they_say(comparison):
    for split in range(3):
        mean, identity = comparison[6 + split], comparison[9 + split]
        assert mean["r2_forward"] <= 0 and mean["r2_inverse"] <= 0
        assert mean["precision_at_1_forward"] == pytest.approx(1 / 40)
        assert mean["roundtrip_error_x"] >= 1
        assert identity["mse_forward"] == identity["mse_inverse"] > 0
        assert identity["roundtrip_error_x"] == identity["roundtrip_error_y"] == 0


def test_no_identity_between_unequal_widths_and_no_baselines_at_will():
    assert compare(pair=noisy_pair(60, 3, 5)).names == ["cca", "turn", "mean"]
    assert compare(baselines=False).names == ["cca", "turn"]
    assert compare({"mean": ProcrustesAligner()}, baselines=False).names == ["mean"]


@pytest.mark.parametrize("kind", ["frames", "lists", "memory maps", "float32"])
def test_takes_arrays_of_every_kind(kind, comparison, tmp_path):
    X, y = noisy_pair(120, 4, 4)
    pair = X, y
    if kind == "frames":
        pair = pd.DataFrame(X, index=range(7, 127)).add_prefix("x"), pd.DataFrame(y).add_prefix("y")
    elif kind == "lists":
        pair = X.tolist(), y.tolist()
    elif kind == "float32":
        pair = X.astype("float32"), y.astype("float32")
    else:
        for name, side in zip("Xy", pair, strict=True):
            np.save(tmp_path / f"{name}.npy", side)
        pair = tuple(np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in "Xy")
    tolerance = {"abs": 1e-4 if kind == "float32" else 1e-10}
    for found, expected in zip(untimed(compare(pair=pair)), untimed(comparison), strict=True):
        assert found == pytest.approx(expected, **tolerance)


def test_takes_a_single_target():
    X, y = noisy_pair(60, 1, 1)
    assert untimed(compare(pair=(X, y[:, 0]))) == untimed(compare(pair=(X, y)))


def test_n_jobs_changes_nothing(comparison):
    for found, expected in zip(untimed(compare(n_jobs=2)), untimed(comparison), strict=True):
        assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("seed", [0, 1])
def test_random_state_decides_the_folds(seed, comparison):
    X, _ = noisy_pair(120, 4, 4)
    folds = KFold(3, shuffle=True, random_state=seed)
    found = untimed(compare(random_state=seed))
    assert found == untimed(compare(cv=folds)) == untimed(compare(cv=list(folds.split(X))))
    assert (found == untimed(comparison)) == (seed == 0)


def test_similarity_reaches_the_report(comparison):
    csls = compare(similarity="csls")
    names = ["mean_reciprocal_rank_forward", "r2_forward"]
    same = [csls[0][name] == comparison[0][name] for name in names]
    assert same == [False, True]


def test_aligners_are_cloned():
    aligner = make_pipeline(StandardScaler(), ProcrustesAligner())
    compare({"pipe": aligner})
    with pytest.raises(NotFittedError):
        check_is_fitted(aligner)


def test_summary_is_mean_and_deviation(comparison):
    frame = comparison.to_frame().groupby("aligner", sort=False)
    for record in comparison.summary():
        group = frame.get_group(record["aligner"])
        assert record["n_splits"] == 3
        for name in ("r2_forward", "roundtrip_error_y", "fit_seconds"):
            assert record[f"{name}_mean"] == pytest.approx(group[name].mean())
            assert record[f"{name}_std"] == pytest.approx(group[name].std(ddof=0))
        assert list(record)[:3] == ["aligner", "n_splits", "r2_forward_mean"]


def test_becomes_a_frame_and_a_file(comparison, tmp_path):
    frame = pd.DataFrame(comparison)
    assert frame.shape == (12, 24)
    pd.testing.assert_frame_equal(frame, comparison.to_frame())
    comparison.to_csv(tmp_path / "table.csv")
    with open(tmp_path / "table.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert rows == [{k: str(v) for k, v in row.items()} for row in comparison]


def test_prints_as_a_table(comparison):
    head, rule, *rows = str(comparison).split("\n\n")[0].splitlines()
    assert head.split()[:5] == ["aligner", "R²", "fwd", "R²", "inv"]
    assert {len(line) for line in [rule, *rows]} == {len(head)}
    assert len(head) <= 120
    assert [row.split()[0] for row in rows] == comparison.names
    record = comparison.summary()[0]
    spread = f"{record['r2_forward_std']:.3f}".removeprefix("0")
    assert rows[0].split()[1] == f"{record['r2_forward_mean']:.3f}±{spread}"
    assert "3 splits" in str(comparison)
    assert repr(comparison) == "<Comparison of cca, turn, mean, identity: 12 rows>"


def test_the_table_holds_numbers_of_any_size():
    X, y = noisy_pair(120, 4, 4)
    comparison = compare(
        {"turn": ProcrustesAligner()}, (X, 1e4 * y), cv=ShuffleSplit(1, random_state=0)
    )
    lines = str(comparison).split("\n\n")[0].splitlines()
    assert len({len(line) for line in lines}) == 1
    assert "e+0" in lines[-1] and "±" in lines[-1]
    assert "1 split of" in str(comparison)


def test_values_and_pickling(comparison):
    assert comparison.values("turn", "r2_inverse") == [row["r2_inverse"] for row in comparison[3:6]]
    assert pickle.loads(pickle.dumps(comparison)) == comparison


def test_progress_goes_to_stderr(capsys):
    compare(progress=True)
    out, err = capsys.readouterr()
    assert out == "" and "12/12" in err
    compare(progress=False)
    assert capsys.readouterr() == ("", "")


class Failing(BaseEstimator):
    """Maps both ways, once it were fitted."""

    def fit(self, X, y):
        raise RuntimeError("no convergence")

    def transform(self, X):
        return X

    inverse_transform = transform


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_an_error_names_its_aligner(n_jobs):
    with pytest.raises(RuntimeError, match="no convergence") as caught:
        compare({"turn": ProcrustesAligner(), "stuck": Failing()}, n_jobs=n_jobs)
    (note,) = caught.value.__notes__
    assert re.fullmatch(r"Raised by the aligner 'stuck' on split \d\.", note)


@pytest.mark.parametrize("name", ["mean", "identity"])
def test_names_of_baselines_are_taken(name):
    with pytest.raises(
        ValueError, match=rf"'{name}', which is that of a baseline.*baselines=False"
    ):
        compare({name: ProcrustesAligner()})


def test_nothing_to_compare():
    with pytest.raises(ValueError, match="aligners is empty"):
        compare({})


def test_an_aligner_must_map_both_ways():
    with pytest.raises(TypeError, match=r"aligners\['ols'\] is LinearRegression\(\), which lacks"):
        compare({"ols": LinearRegression()})


def test_row_counts_that_differ():
    X, y = noisy_pair(20, 2, 2)
    with pytest.raises(ValueError, match="X has 20 rows but y has 19"):
        compare(pair=(X, y[:-1]))
