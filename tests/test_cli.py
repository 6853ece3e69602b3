"""The command line: what it reads, writes, prints and refuses, and with which exit code."""

import importlib
import os
import signal
import subprocess
import sys
import tracemalloc
import warnings
from fractions import Fraction
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pandas as pd
import pytest
import skops.io
from conftest import noisy_pair
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Bunch

from sklearn_bijection import CCAAligner, ProcrustesAligner, __version__
from sklearn_bijection.__main__ import main
from sklearn_bijection._cli import _demo, _reading
from sklearn_bijection._cli._models import ALIGNERS, parse_aligner
from sklearn_bijection._cli._reading import read_table
from sklearn_bijection._cli._writing import replacing
from sklearn_bijection.metrics import compare_aligners

FORMATS = [".npy", ".npz", ".csv", ".parquet"]
EXACT = 1e-9
PNG = b"\x89PNG"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def pair():
    """Rows of an exactly linear pair."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 5)) + 3
    return X, X @ rng.normal(size=(5, 5)) - 2


@pytest.fixture
def files(pair):
    """The pair in X.npy and Y.npy, and an aligner of it in a.skops."""
    for name, rows in zip("XY", pair, strict=True):
        np.save(f"{name}.npy", rows)
    assert main(["fit", "X.npy", "Y.npy", "-o", "a.skops", "--quiet"]) == 0
    return pair


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(_reading, "_BLOCK_BYTES", 7 * 5 * 8)


def in_process(capsys, *args):
    capsys.readouterr()
    code = main(list(args))
    out, err = capsys.readouterr()
    return code, out, err


def process(*args, **kwargs):
    """Arguments of a Popen that runs the command line."""
    env = {**os.environ, **kwargs.pop("env", {})}
    env["PYTHONPATH"] = str(Path(importlib.import_module("sklearn_bijection").__file__).parents[1])
    command = [sys.executable, "-m", "sklearn_bijection", *args]
    return {"args": command, "env": env, **kwargs}


def listing():
    return sorted(path.name for path in Path().iterdir())


# Reading


WRITTEN = {
    "a.npy": np.save,
    "columns first.npy": lambda path, rows: np.save(path, np.asfortranarray(rows)),
    "A.NPY": lambda path, rows: (np.save("a.npy", rows), Path("a.npy").rename(path)),
    "a.npz": lambda path, rows: np.savez(path, anything=rows),
    "bare.csv": lambda path, rows: pd.DataFrame(rows).to_csv(path, index=False, header=False),
    "named.csv": lambda path, rows: pd.DataFrame(rows, columns=list("abcde")).to_csv(
        path, index=False
    ),
    "labelled.csv": lambda path, rows: pd.DataFrame(
        rows, [f"row {i}" for i in range(len(rows))]
    ).to_csv(path),
    "marked.csv": lambda path, rows: pd.DataFrame(rows, columns=list("abcde")).to_csv(
        path, index=False, encoding="utf-8-sig", quoting=1
    ),
    "a.parquet": lambda path, rows: pd.DataFrame(rows).to_parquet(path),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_every_format_gives_the_same_rows(name, pair):
    WRITTEN[name](name, pair[0])
    table = read_table(name)
    assert np.array_equal(np.asarray(table.rows), pair[0])
    assert (table.name, table.n_rows, table.width) == (name, 120, 5)


def test_counted_column_names_are_told_from_numbers(pair):
    pd.DataFrame(pair[0]).to_csv("counted.csv", index=False)
    with pytest.warns(UserWarning, match="counts 0, 1, 2"):
        table = read_table("counted.csv")
    assert np.array_equal(table.rows, pair[0])


def test_npz_serves_the_array_asked_for(pair):
    np.savez("both.npz", X=pair[0], y=pair[1])
    assert np.array_equal(read_table("both.npz:y").rows, pair[1])


def test_one_dimension_is_one_column(pair):
    np.save("one.npy", pair[0][:, 0])
    assert read_table("one.npy").rows.shape == (120, 1)


def test_npy_is_mapped(files):
    assert isinstance(read_table("X.npy").rows, np.memmap)


# Fit, transform, inverse


@pytest.mark.parametrize("aligner", ["cca", "cca:direction=forward", "cca:shrinkage=0"])
@pytest.mark.parametrize("ending", FORMATS)
def test_inverse_of_transform_is_the_input(ending, aligner, files):
    assert main(["fit", "X.npy", "Y.npy", "-o", "b.skops", "--aligner", aligner]) == 0
    assert main(["transform", "b.skops", "X.npy", "-o", f"there{ending}"]) == 0
    assert main(["inverse", "b.skops", f"there{ending}", "-o", f"back{ending}"]) == 0
    X, y = files
    for found, rows in ((f"there{ending}", y), (f"back{ending}", X)):
        assert np.abs(np.asarray(read_table(found).rows) - rows).max() < EXACT


@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_transform_writes_what_the_estimator_gives(ending, dtype, files):
    rows = files[0].astype(dtype)
    np.save("new.npy", rows)
    assert main(["transform", "a.skops", "new.npy", "-o", f"out{ending}"]) == 0
    found = np.asarray(read_table(f"out{ending}").rows)
    expected = skops.io.load(
        "a.skops", trusted=skops.io.get_untrusted_types(file="a.skops")
    ).transform(rows)
    assert np.array_equal(found.astype(dtype), expected)
    assert found.dtype == (np.float64 if ending == ".csv" else dtype)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.int64])
def test_blocks_equal_the_whole(dtype, pair, small_blocks):
    X, y = (np.round(8 * rows).astype(dtype) for rows in pair)
    np.save("X.npy", X)
    np.save("Y.npy", y)
    assert main(["fit", "X.npy", "Y.npy", "-o", "a.skops"]) == 0
    assert main(["transform", "a.skops", "X.npy", "-o", "out.npy"]) == 0
    expected = CCAAligner().fit(X, y).transform(X)
    found = np.load("out.npy")
    assert found.dtype == expected.dtype
    assert np.abs(found - expected).max() < (1e-4 if dtype == np.float32 else EXACT)


def test_memory_does_not_grow_with_the_rows(files, monkeypatch):
    monkeypatch.setattr(_reading, "_BLOCK_BYTES", 2**16)
    np.save("long.npy", np.tile(files[0], (1_000, 1)))
    assert main(["transform", "a.skops", "X.npy", "-o", "warm.npy", "--quiet"]) == 0
    tracemalloc.start()
    try:
        assert main(["transform", "a.skops", "long.npy", "-o", "out.npy", "--quiet"]) == 0
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert np.load("out.npy", mmap_mode="r").shape == (120_000, 5)
    assert peak < Path("long.npy").stat().st_size / 2


def test_weight_zero_leaves_rows_out(files, small_blocks):
    X, y = files
    weight = np.ones(len(X))
    weight[:40] = 0
    noisy = y + np.random.default_rng(1).normal(size=y.shape)
    np.save("Y.npy", noisy)
    np.save("W.npy", weight)
    assert main(["fit", "X.npy", "Y.npy", "-o", "b.skops", "--sample-weight", "W.npy"]) == 0
    assert main(["transform", "b.skops", "X.npy", "-o", "out.npy"]) == 0
    expected = CCAAligner().fit(X[40:], noisy[40:]).transform(X)
    assert np.abs(np.load("out.npy") - expected).max() < EXACT


def test_fit_summary(files, capsys):
    code, out, err = in_process(
        capsys, "fit", "X.npy", "Y.npy", "-o", "b.skops", "--aligner", "procrustes"
    )
    fitted = ProcrustesAligner().fit(*files)
    assert code == 0
    assert "ProcrustesAligner() fitted on 120 pairs of rows" in out
    assert f"scale {fitted.scale_:.4g}" in out
    assert f"R² on these training rows: forward {fitted.score(*files):.3f}" in out
    assert "wrote b.skops" in err


def test_fit_summary_of_cca(files, capsys):
    _, out, _ = in_process(
        capsys, "fit", "X.npy", "Y.npy", "-o", "b.skops", "--aligner", "cca:shrinkage=0"
    )
    assert "X.npy: 5 wide, rank used 5, shrinkage 0" in out
    assert "5 canonical pairs, correlations from 1.000 to 1.000" in out
    assert "forward 1.000, inverse 1.000" in out


def test_parquet_names_are_kept_and_compared(pair, capsys):
    frames = [
        pd.DataFrame(rows, columns=list(names))
        for rows, names in zip(pair, ["abcde", "vwxyz"], strict=True)
    ]
    for name, frame in zip("XY", frames, strict=True):
        frame.to_parquet(f"{name}.parquet")
    assert main(["fit", "X.parquet", "Y.parquet", "-o", "a.skops"]) == 0
    assert main(["transform", "a.skops", "X.parquet", "-o", "there.parquet"]) == 0
    assert main(["inverse", "a.skops", "there.parquet", "-o", "back.csv"]) == 0
    assert list(pd.read_parquet("there.parquet")) == list("vwxyz")
    assert list(pd.read_csv("back.csv")) == list("abcde")
    frames[0][list("bacde")].to_parquet("shuffled.parquet")
    code, _, err = in_process(capsys, "transform", "a.skops", "shuffled.parquet", "-o", "out.npy")
    assert code == 1
    assert "same order" in err


def test_columns_without_names_are_counted(files):
    for command, letter in (("transform", "y"), ("inverse", "x")):
        assert main([command, "a.skops", "X.npy", "-o", "out.csv"]) == 0
        assert list(pd.read_csv("out.csv")) == [f"{letter}{i}" for i in range(5)]


def test_pipeline_from_python_is_served(files):
    skops.io.dump(make_pipeline(StandardScaler(), CCAAligner()).fit(*files), "pipe.skops")
    assert main(["transform", "pipe.skops", "X.npy", "-o", "out.npy"]) == 0
    assert np.abs(np.load("out.npy") - files[1]).max() < EXACT


# Compare


def test_compare_is_compare_aligners(pair, capsys):
    X, y = pair[0], pair[1][:, :3] + np.random.default_rng(1).normal(size=(120, 3))
    np.savez("both.npz", X=X, y=y)
    specs = ["procrustes", "cca:direction=backward,shrinkage=(0.1, 0)"]
    options = ["--cv", "3", "--seed", "4", "--similarity", "centred-cosine", "--csv", "table.csv"]
    aligners = [word for spec in specs for word in ("--aligner", spec)]
    code, out, err = in_process(capsys, "compare", "both.npz:X", "both.npz:y", *options, *aligners)
    expected = compare_aligners(
        dict(map(parse_aligner, specs)),
        X,
        y,
        cv=3,
        random_state=4,
        similarity="centred cosine",
        progress=False,
    )
    assert code == 0
    found = pd.read_csv("table.csv").drop(columns="fit_seconds")
    pd.testing.assert_frame_equal(found, pd.DataFrame(expected.rows).drop(columns="fit_seconds"))
    assert [line.split("  ")[0] for line in out.splitlines()[2:5]] == [*specs, "mean"]
    assert "both.npz:X: 120 rows, 5 wide" in err
    assert "comparing" in err
    assert "wrote table.csv" in err


def test_compare_takes_every_aligner_and_draws(files, capsys):
    code, out, err = in_process(
        capsys, "compare", "X.npy", "Y.npy", "--plot", "p.png", "--cv", "2", "--quiet"
    )
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()[2:8]] == [*ALIGNERS, "mean", "identity"]
    assert err == ""
    assert Path("p.png").read_bytes().startswith(PNG)


# Aligners by name


@pytest.mark.parametrize("name", ALIGNERS)
def test_every_aligner_has_a_name(name):
    assert parse_aligner(name)[1].get_params() == ALIGNERS[name]().get_params()


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ("shrinkage=0.1", {"shrinkage": 0.1}),
        ("shrinkage=oas,direction=forward", {"shrinkage": "oas", "direction": "forward"}),
        ("shrinkage='oas'", {"shrinkage": "oas"}),
        ("shrinkage=(0.1, 0),n_components=3", {"shrinkage": (0.1, 0), "n_components": 3}),
        ("n_components=None", {"n_components": None}),
        ("n_components=-1", {"n_components": -1}),
        ("shrinkage=1e-3", {"shrinkage": 1e-3}),
        ("direction=no-such", {"direction": "no - such"}),
        ("", {}),
    ],
)
def test_parameters_are_literals_or_words(parameters, expected):
    found = parse_aligner(f"cca:{parameters}")[1].get_params()
    assert found == {**CCAAligner().get_params(), **expected}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("ccaa", "there are cca, procrustes, permutation, inn"),
        ("cca:shrink=1", "it has direction, explained_variance, n_components, shrinkage"),
        ("procrustes:shrinkage=1", "it has allow_reflection, direction, scale"),
        ("cca:0.1", "'0.1' is not a list"),
        ("cca:shrinkage=", "is not a list"),
        ("cca:shrinkage=(1", "is not a list"),
        ("cca:shrinkage=1)(n_components=2", "is not a list"),
        ("cca:shrinkage=1) + f(a=2", "is not a list"),
        ("cca:**{}", "is not a list"),
    ],
)
def test_a_wrong_aligner_is_a_usage_error(spec, message, capsys):
    with pytest.raises(SystemExit) as leaving:
        main(["fit", "X.npy", "Y.npy", "-o", "a.skops", "--aligner", spec])
    assert leaving.value.code == 2
    assert message in capsys.readouterr().err


def test_parameters_are_never_run(capsys):
    with pytest.raises(SystemExit):
        main(["compare", "X.npy", "Y.npy", "--aligner", "cca:x=open('made', 'w')"])
    parse_aligner("cca:shrinkage=open('made', 'w')")
    assert listing() == []


# Errors


def save(rows):
    np.save("bad.npy", rows)


def write(text, name="bad.csv"):
    Path(name).write_text(text, encoding="utf-8")


def holed(value, rows=120):
    table = np.zeros((rows, 5))
    table[37, 2] = value
    return table


FIT = ["fit", "{}", "Y.npy", "-o", "out.skops"]
BAD_INPUT = [
    ("missing.npy", lambda: None, ["missing.npy: No such file"]),
    ("missing.csv", lambda: None, ["missing.csv: No such file"]),
    ("missing.npz:X", lambda: None, ["missing.npz: No such file"]),
    ("missing.parquet", lambda: None, ["missing.parquet"]),
    ("bad.npy", lambda: Path("bad.npy").mkdir(), ["bad.npy: Is a directory"]),
    ("bad.pt", lambda: write("", "bad.pt"), ["'.pt'", "Use .npy, .npz, .csv, .parquet"]),
    ("bad.npy", lambda: save(np.zeros((90, 5))), ["bad.npy has 90 rows but Y.npy has 120"]),
    ("bad.npy", lambda: save(holed(np.nan)), ["bad.npy contains NaN", "row 37, column 2"]),
    ("bad.npy", lambda: save(holed(-np.inf)), ["bad.npy contains infinity", "row 37, column 2"]),
    ("bad.npy", lambda: save(np.zeros((120, 5, 2))), ["shape (120, 5, 2)", "no third dimension"]),
    ("bad.npy", lambda: save(np.zeros((0, 5))), ["shape (0, 5)", "at least one row"]),
    ("bad.npy", lambda: save(np.float64(1)), ["shape ()"]),
    ("bad.npy", lambda: save(np.array([["a"]])), ["bad.npy holds <U1 values"]),
    ("bad.npy", lambda: save(np.zeros((120, 5), complex)), ["bad.npy holds complex128 values"]),
    ("bad.npy", lambda: save(np.array([{}])), ["bad.npy cannot be read as .npy"]),
    ("bad.npy", lambda: write("1,2\n3,4\n", "bad.npy"), ["cannot be read as .npy", "magic"]),
    ("bad.npy", lambda: write("", "bad.npy"), ["bad.npy cannot be read as .npy"]),
    ("bad.npz", lambda: write("text", "bad.npz"), ["bad.npz is not a .npz archive"]),
    ("bad.npz", lambda: np.savez("bad.npz", a=1, b=2), ["holds 2 arrays", "bad.npz:NAME", "a, b"]),
    ("bad.npz:c", lambda: np.savez("bad.npz", a=1, b=2), ["has no array 'c'", "a, b"]),
    ("bad.csv", lambda: write(""), ["bad.csv is empty"]),
    ("bad.csv", lambda: write("a,b\n"), ["bad.csv has shape"]),
    ("bad.csv", lambda: write("a,b\n1,2\n3,four\n"), ["bad.csv, line 3, column 'b': 'four'"]),
    ("bad.csv", lambda: write("1,2\n3,\n"), ["bad.csv, line 2, column 1 (counted from 0): ''"]),
    ("bad.csv", lambda: write("1,2\n3,4,5\n"), ["bad.csv, line 2: 3 columns", "has 2"]),
    ("bad.csv", lambda: write(",a\nr,1\ns,x\n"), ["bad.csv, line 3, column 'a': 'x'"]),
    ("bad.csv", lambda: write("1,2\n3,nan\n" * 60), ["bad.csv contains NaN", "row 1, column 1"]),
    ("bad.parquet", lambda: write("text", "bad.parquet"), ["cannot be read as .parquet"]),
    (
        "bad.parquet",
        lambda: pd.DataFrame({"a": [1.0], "b": ["x"]}).to_parquet("bad.parquet"),
        ["bad.parquet has columns that are not numbers: 'b'"],
    ),
    (
        "bad.parquet",
        lambda: pd.DataFrame(holed(np.nan)).astype("Float64").to_parquet("bad.parquet"),
        ["bad.parquet contains NaN", "row 37, column 2"],
    ),
    ("bad.npy", lambda: save(np.ones((120, 5))), ["X has no variance"]),
]


@pytest.mark.parametrize(("place", "make", "messages"), BAD_INPUT)
def test_bad_input_is_an_error_of_one_line(place, make, messages, files, capsys, small_blocks):
    make()
    before = listing()
    code, out, err = in_process(capsys, *[word.format(place) for word in FIT], "--quiet")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert err.startswith("sklearn-bijection: error: ")
    assert [message for message in messages if message not in err] == []
    assert listing() == before


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ("transform a.skops X.npy -o out.pt", "'.pt', a format that is not written here"),
        ("transform a.skops X.npy -o no/out.npy", "there is no folder no"),
        ("transform a.skops X.npy -o here", "a format that is not written here"),
        ("fit X.npy Y.npy -o .", ". exists and is not a file"),
        (f"fit X.npy Y.npy -o {os.devnull}", "exists and is not a file"),
        ("compare X.npy Y.npy --csv table.txt", "Use .csv"),
        ("compare X.npy Y.npy --plot p.xyz", "'.xyz'"),
        ("compare X.npy Y.npy --plot p", "''"),
        ("compare X.npy Y.npy --cv 121", "121"),
        ("fit X.npy Y.npy -o b.skops --aligner cca:shrinkage=7", "'shrinkage' parameter"),
        ("fit X.npy Y.npy -o b.skops --aligner cca:n_components=6", "exceeds the shared rank 5"),
        ("compare X.npy Y.npy --aligner cca:n_components=6", "the aligner 'cca:n_components=6'"),
        ("fit X.npy Y.npy -o b.skops --sample-weight X.npy", "X.npy has 5 columns"),
        (
            "fit X.npy Y.npy -o b.skops --sample-weight few.npy",
            "X.npy has 120 rows but few.npy has 3",
        ),
        ("fit X.npy Y.npy -o b.skops --sample-weight minus.npy", "they lie between -1 and -1"),
        ("fit X.npy Y.npy -o b.skops --sample-weight zero.npy", "they lie between 0 and 0"),
        ("transform X.npy X.npy -o out.npy", "X.npy holds no aligner"),
        ("transform few.npz X.npy -o out.npy", "few.npz holds no aligner"),
        ("transform missing.skops X.npy -o out.npy", "missing.skops: No such file"),
        ("transform a.skops minus.npy -o out.npy", "minus.npy: X has 1 features"),
        ("inverse a.skops minus.npy -o out.npy", "minus.npy: y has 1 columns"),
        (
            "transform a.skops hole.npy -o out.npy",
            "hole.npy contains NaN, first at row 37, column 2",
        ),
    ],
)
def test_what_the_user_can_mend(args, message, files, capsys, small_blocks):
    for name, rows in [("few", np.ones(3)), ("minus", -np.ones(120)), ("zero", np.zeros(120))]:
        np.save(f"{name}.npy", rows)
    np.savez("few.npz", a=1)
    np.save("hole.npy", holed(np.nan))
    before = listing()
    code, out, err = in_process(capsys, *args.split(), "--quiet")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert err.startswith("sklearn-bijection: error: ")
    assert message in err
    assert listing() == before


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ("compare X.npy", "required: Y"),
        ("fit X.npy Y.npy", "required: -o/--output"),
        ("compare X.npy Y.npy --cv 1", "'1' is not a whole number of at least 2"),
        ("compare X.npy Y.npy --cv many", "'many' is not"),
        ("compare X.npy Y.npy --similarity dot", "invalid choice: 'dot'"),
        ("comapre X.npy Y.npy", "invalid choice: 'comapre'"),
        ("--no-such", "unrecognized arguments: --no-such"),
    ],
)
def test_usage_errors(args, message, capsys):
    with pytest.raises(SystemExit) as leaving:
        main(args.split())
    assert leaving.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("module", ["pandas", "pyarrow"])
def test_parquet_without_its_extra(module, files, monkeypatch, capsys):
    pd.DataFrame(files[0]).to_parquet("X.parquet")
    monkeypatch.setitem(sys.modules, module, None)
    for args in ("compare X.parquet Y.npy", "transform a.skops X.npy -o out.parquet"):
        code, _, err = in_process(capsys, *args.split())
        assert code == 1
        assert "pip install 'sklearn-bijection[io]'" in err
    assert "out.parquet" not in listing()


def test_compare_asks_for_matplotlib_before_it_works(files, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    code, out, err = in_process(capsys, "compare", "X.npy", "Y.npy", "--plot", "p.png")
    assert (code, out) == (1, "")
    assert "pip install 'sklearn-bijection[plot]'" in err


def test_a_warning_is_one_line(files, capsys):
    # Folds of one size, so that each gives the same warning.
    np.save("X.npy", files[0][:6])
    np.save("Y.npy", files[1][:6])
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        code, _, err = in_process(
            capsys,
            "compare",
            "X.npy",
            "Y.npy",
            "--cv",
            "2",
            "--aligner",
            "cca:shrinkage=0",
            "--quiet",
        )
    lines = err.splitlines()
    assert code == 0
    assert lines
    assert all(line.startswith("sklearn-bijection: warning: ") for line in lines)
    assert len(lines) == len(set(lines))


# Loading safely


def rewritten(place, change, comment=None):
    """Change the schema of a skops file."""
    with ZipFile(place) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
        comment = archive.comment if comment is None else comment
    members["schema.json"] = change(members["schema.json"].decode()).encode()
    with ZipFile(place, "w") as archive:
        archive.comment = comment
        for name, content in members.items():
            archive.writestr(name, content)


def load_error(capsys):
    code, _, err = in_process(capsys, "transform", "a.skops", "X.npy", "-o", "out.npy")
    assert code == 1
    assert "out.npy" not in listing()
    return err


def test_foreign_types_are_refused(files, capsys):
    aligner = CCAAligner().fit(*files)
    aligner.extra_ = Fraction(1, 2)
    skops.io.dump(aligner, "a.skops")
    assert (
        "a.skops names types that are not of sklearn_bijection: fractions.Fraction"
        in load_error(capsys)
    )


@pytest.mark.parametrize("alias", ["_writing.Path", "_run.main", "_models.importlib"])
def test_what_a_module_of_ours_imports_is_foreign_too(alias, files, capsys):
    module, _, name = f"sklearn_bijection._cli.{alias}".rpartition(".")
    rewritten(
        "a.skops",
        lambda schema: schema.replace('"CCAAligner"', f'"{name}"').replace(
            CCAAligner.__module__, module
        ),
    )
    assert f"{module}.{name}" in load_error(capsys)


def test_a_file_of_another_version_says_so(files, capsys):
    rewritten(
        "a.skops",
        lambda schema: schema.replace('"CCAAligner"', '"FutureAligner"'),
        comment=b"sklearn_bijection 9.9.9",
    )
    err = load_error(capsys)
    assert f"does not fit sklearn_bijection {__version__}" in err
    assert "FutureAligner" in err
    assert "written by sklearn_bijection 9.9.9" in err


def test_a_file_of_a_newer_skops_says_so(files, capsys):
    protocol = skops.io._protocol.PROTOCOL
    rewritten(
        "a.skops", lambda schema: schema.replace(f'"protocol": {protocol}', '"protocol": 999')
    )
    assert "protocol 999" in load_error(capsys)


@pytest.mark.parametrize(
    ("stored", "message"),
    [({"a": 1}, "holds a dict, which does not map both ways"), (CCAAligner(), "is not fitted")],
)
def test_a_file_without_a_fitted_aligner(stored, message, files, capsys):
    skops.io.dump(stored, "a.skops")
    assert message in load_error(capsys)


def test_the_version_is_stored(files):
    with ZipFile("a.skops") as archive:
        assert archive.comment.decode() == f"sklearn_bijection {__version__}"


# Writing whole files or none


@pytest.mark.parametrize(
    ("failure", "code"), [(KeyboardInterrupt, 130), (OSError(28, "No space left"), 1)]
)
@pytest.mark.parametrize("ending", FORMATS)
def test_a_failure_leaves_the_old_file(
    failure, code, ending, files, monkeypatch, capsys, small_blocks
):
    target = Path(f"out{ending}")
    target.write_bytes(b"old")
    before, calls, transform = listing(), [], CCAAligner.transform

    def fail_late(self, X):
        calls.append(len(X))
        if len(calls) == 5:
            raise failure
        return transform(self, X)

    monkeypatch.setattr(CCAAligner, "transform", fail_late)
    found, _, err = in_process(capsys, "transform", "a.skops", "X.npy", "-o", str(target))
    assert (found, len(calls)) == (code, 5)
    assert ("interrupted" if code == 130 else "No space left") in err
    assert target.read_bytes() == b"old"
    assert listing() == before


def test_a_failing_fit_leaves_the_old_file(files, monkeypatch, capsys):
    old = Path("a.skops").read_bytes()

    def fail(*_, **__):
        raise MemoryError

    monkeypatch.setattr(ZipFile, "writestr", fail)
    code, _, err = in_process(capsys, "fit", "X.npy", "Y.npy", "-o", "a.skops")
    assert code == 1
    assert "error: MemoryError" in err
    assert Path("a.skops").read_bytes() == old
    assert listing() == ["X.npy", "Y.npy", "a.skops"]


def test_a_file_may_be_mapped_onto_itself(files):
    assert main(["transform", "a.skops", "X.npy", "-o", "X.npy"]) == 0
    assert np.abs(np.load("X.npy") - files[1]).max() < EXACT


@pytest.mark.skipif(os.name != "posix", reason="modes and links of POSIX")
def test_replacing_keeps_mode_and_link():
    target, link = Path("target"), Path("link")
    target.touch(mode=0o600)
    link.symlink_to(target)
    with replacing(link) as scratch:
        scratch.write_bytes(b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert target.stat().st_mode & 0o777 == 0o600


# The demonstration


@pytest.fixture
def small_demo(monkeypatch):
    """A demonstration on little data."""
    rng = np.random.default_rng(0)
    X, y = noisy_pair(300)
    sentences = [
        f"sentence {i}" + " and more" * int(n) for i, n in enumerate(rng.integers(0, 9, 300))
    ]
    pair = Bunch(X=X, y=y, sentences=sentences, X_name="one encoder", y_name="another")
    monkeypatch.setattr(_demo, "load_sentence_pair", lambda: pair)
    monkeypatch.setattr(_demo, "_N_TRAIN", 200)


@pytest.mark.parametrize("args", [[], ["demo"], ["--plot", "alignment.png"]])
def test_demo_prints_and_draws(args, small_demo, capsys):
    code, out, err = in_process(capsys, *args)
    lines = out.splitlines()
    assert code == 0
    assert "  X  one encoder, 6 wide" in lines
    table = next(i for i, line in enumerate(lines) if line.startswith("aligner "))
    names = [line.split("  ")[0] for line in lines[table + 2 : table + 9]]
    assert names == [*ALIGNERS, "cca forward", "mean", "identity"]
    assert "of 100 new sentences land nearest to their own partner" in out
    assert Path("alignment.png").read_bytes().startswith(PNG)
    assert "wrote alignment.png" in err


def test_demo_shows_neighbours_that_are_right(small_demo, capsys):
    _, out, _ = in_process(capsys, "--no-plot")
    pair = _demo.load_sentence_pair()
    held_out = _demo._hold_out(pair, "cca")
    images = held_out.aligner.transform(held_out.X)
    unit = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (images, held_out.y)]
    cosines = unit[0] @ unit[1].T
    hits = int((cosines.argmax(axis=1) == np.arange(100)).sum())
    assert f"{hits} of 100 new sentences" in out
    lines = out.splitlines()
    shown = lines[
        next(i for i, line in enumerate(lines) if line.startswith("  new sentence ")) + 1 :
    ]
    examples = [line[2:].split("  ")[0] for line in shown if line]
    assert len(examples) == _demo._N_EXAMPLES
    for line, text in zip(shown, examples, strict=False):
        row = held_out.texts.index(text)
        other = next(j for j in np.argsort(-cosines[row]) if j != row)
        assert _demo._cut(held_out.texts[other], 27) in line


def test_demo_without_a_picture(small_demo, capsys):
    code, _, err = in_process(capsys, "--no-plot", "--quiet")
    assert (code, err, listing()) == (0, "", [])


def test_demo_without_matplotlib(small_demo, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    code, out, err = in_process(capsys, "--quiet")
    assert code == 0
    assert "procrustes" in out
    assert err.count("\n") == 1
    assert "pip install 'sklearn-bijection[plot]'" in err
    assert listing() == []


def test_demo_tells_when_the_picture_cannot_be_written(small_demo, capsys):
    code, out, err = in_process(capsys, "--quiet", "--plot", "no/p.png")
    assert code == 1
    assert "procrustes" in out
    assert "there is no folder no" in err


# The process


def test_version_and_help_in_a_process():
    done = subprocess.run(**process("--version", capture_output=True, text=True, check=True))
    assert done.stdout == f"sklearn-bijection {__version__}\n"
    assert done.stderr == ""


@pytest.mark.parametrize("command", [None, "demo", "compare", "fit", "transform", "inverse"])
def test_help_has_examples(command, capsys):
    with pytest.raises(SystemExit) as leaving:
        main([command, "--help"] if command else ["--help"])
    out = capsys.readouterr().out
    assert leaving.value.code == 0
    assert "examples:\n  sklearn-bijection" in out
    assert max(map(len, out.splitlines())) <= 100


def test_quiet_may_stand_before_the_command(files, capsys):
    code, _, err = in_process(
        capsys, "--quiet", "compare", "X.npy", "Y.npy", "--cv", "2", "--aligner", "procrustes"
    )
    assert (code, err) == (0, "")


def test_a_narrow_encoding_and_warnings_as_errors(files):
    args = ["compare", "X.npy", "Y.npy", "--quiet", "--cv", "2", "--aligner", "procrustes"]
    env = {"PYTHONIOENCODING": "ascii", "PYTHONWARNINGS": "error"}
    done = subprocess.run(**process(*args, env=env, capture_output=True, check=True))
    lines = done.stdout.decode("ascii").splitlines()
    assert lines[0].split()[1:3] == ["R2", "fwd"]
    assert len({len(line) for line in lines[:5]}) == 1
    assert "?" not in lines[2]


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_leaves(unbuffered, files):
    args = ["compare", "X.npy", "Y.npy", "--quiet", "--cv", "2", "--aligner", "procrustes"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    run = subprocess.Popen(**process(*args, env={"PYTHONUNBUFFERED": unbuffered}, **pipes))
    run.stdout.close()
    assert run.stderr.read() == b""
    assert run.wait() == 141
    run.stderr.close()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize(
    ("number", "code", "said"),
    [(signal.SIGINT, 130, b"interrupted"), (signal.SIGTERM, 143, b"")],
)
def test_signals(number, code, said, files):
    os.mkfifo("pipe.csv")
    # Where the tests run in the background a shell has them ignore some signals, and their children too.
    before = signal.signal(number, signal.SIG_DFL)
    run = subprocess.Popen(**process("compare", "pipe.csv", "Y.npy", stderr=subprocess.PIPE))
    signal.signal(number, before)
    # Opening waits for the process to open its end, which it then reads for ever.
    with open("pipe.csv", "w"):
        run.send_signal(number)
        err = run.stderr.read()
    assert run.wait() == code
    assert said in err
    assert b"Traceback" not in err
    run.stderr.close()
