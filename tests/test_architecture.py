import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import sklearn_bijection

PACKAGE = Path(sklearn_bijection.__file__).parent
PROJECT = Path(__file__).parents[1]
ROOT = "__init__"

# Every module of the package and the modules that it may import. A folder counts as one module.
LAYERS_0_TO_4 = {"_compat", "_validation", "_linalg", "_moments", "_maps", "_solvers", "_base"}
ALLOWED: dict[str, set[str]] = {
    "_compat": set(),
    "_validation": {"_compat"},
    "_linalg": {"_compat"},
    "_moments": {"_compat"},
    "_maps": {"_linalg"},
    "_flow": set(),
    "_objectives": set(),
    "_solvers": {"_moments", "_maps", "_linalg"},
    "_base": {"_compat", "_validation", "_maps", "_moments", "_linalg", "_flow"},
    "_linear": LAYERS_0_TO_4 | {"_flow"},
    "_inn": LAYERS_0_TO_4 | {"_flow", "_objectives"},
    "metrics": {"_compat", "_validation", "_moments", "_solvers", "_linalg"},
    "displays": {"metrics", "_compat"},
    "datasets": set(),
    "huggingface": {"_compat", "metrics"},
    ROOT: {"_inn", "_linear", "metrics", "displays", "datasets"},
    "_cli": {ROOT, "metrics", "displays", "datasets", "_compat"},
    "__main__": {"_cli"},
}
FILES = sorted(PACKAGE.rglob("*.py"))

HEAVY = ["matplotlib", "pandas", "skorch", "torch", "transformers"]
# scikit-learn may import some of these itself, when they are installed; the package must add none.
FIT_CLOSED_FORMS = """
import sys
import numpy as np
from sklearn.linear_model import Ridge

X, y = np.random.default_rng(0).normal(size=(2, 40, 3))
Ridge().fit(X, y)
before = set(sys.modules)

from sklearn_bijection import CCAAligner, PermutationAligner, ProcrustesAligner

for aligner in [CCAAligner(), PermutationAligner(), ProcrustesAligner()]:
    aligner.fit(X, y).inverse_transform(aligner.transform(X))
    aligner.score(X, y)
print(*sorted(set(sys.modules) - before))
"""


def owner(dotted: list[str]) -> str:
    """Module of the table that a name such as ``["_linear", "cca"]`` lies in."""
    return dotted[0] if dotted and dotted[0] in ALLOWED else ROOT


def imported(node: ast.AST, location: list[str]) -> Iterator[str]:
    """Modules of the table that one statement imports, seen from the folder `location`."""
    if isinstance(node, ast.Import):
        names = [alias.name.split(".") for alias in node.names]
        yield from (owner(name[1:]) for name in names if name[0] == PACKAGE.name)
    elif isinstance(node, ast.ImportFrom):
        name = node.module.split(".") if node.module else []
        if node.level:
            name = [PACKAGE.name, *location[: len(location) + 1 - node.level], *name]
        if name[0] == PACKAGE.name:
            yield from (owner([*name[1:], alias.name]) for alias in node.names)


def imports(source: str, location: list[str]) -> set[str]:
    tree = ast.walk(ast.parse(source))
    return {module for node in tree for module in imported(node, location)}


@pytest.mark.parametrize(
    ("source", "location", "expected"),
    [
        ("import numpy, os.path", [], set()),
        ("from sklearn_bijection_extra import metrics", [], set()),
        ("import sklearn_bijection", [], {ROOT}),
        (
            "import sklearn_bijection.metrics as m, sklearn_bijection._maps",
            [],
            {"metrics", "_maps"},
        ),
        ("from sklearn_bijection import CCAAligner, metrics", [], {ROOT, "metrics"}),
        ("from sklearn_bijection._linear import CCAAligner", [], {"_linear"}),
        ("from . import _linalg", [], {"_linalg"}),
        ("from ._linear.cca import CCAAligner", [], {"_linear"}),
        ("from .cca import CCAAligner", ["_linear"], {"_linear"}),
        ("from . import cca", ["_linear"], {"_linear"}),
        ("from .._maps import AffineMap", ["_linear"], {"_maps"}),
        ("from .. import __version__, _maps", ["_linear"], {ROOT, "_maps"}),
        ("def late():\n    from sklearn_bijection import _base", [], {"_base"}),
    ],
)
def test_imports_are_read_in_every_form(
    source: str, location: list[str], expected: set[str]
) -> None:
    assert imports(source, location) == expected


def test_the_table_has_no_cycle() -> None:
    assert set(TopologicalSorter(ALLOWED).static_order()) == set(ALLOWED)


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_module_imports_only_what_its_layer_allows(file: Path) -> None:
    *folder, _ = place = file.relative_to(PACKAGE).with_suffix("").parts
    module = place[0]
    assert module in ALLOWED, f"{module} is new: enter it in ALLOWED and in docs/contributing.md"
    forbidden = imports(file.read_text("utf-8"), list(folder)) - ALLOWED[module] - {module}
    assert not forbidden, f"{module} may not import {', '.join(sorted(forbidden))}"


def test_contributing_shows_every_module() -> None:
    table = (PROJECT / "docs" / "contributing.md").read_text("utf-8")
    rows = [line.split("|")[2] for line in table.splitlines() if line.startswith("| ")]
    assert set(re.findall(r"`(\w+)`", " ".join(rows))) == set(ALLOWED)


def test_closed_forms_load_nothing_heavy() -> None:
    run = subprocess.run(
        [sys.executable, "-c", FIT_CLOSED_FORMS], capture_output=True, text=True, check=True
    )
    loaded = run.stdout.split()
    assert "sklearn_bijection" in loaded
    assert not set(HEAVY) & set(loaded)


def test_no_text_names_a_folder_of_one_machine() -> None:
    texts = [
        file
        for folder in [PACKAGE, PROJECT / "docs", PROJECT / "tests", PROJECT / "benchmarks"]
        for file in folder.rglob("*")
        if file.suffix in {".py", ".md", ".rst", ".txt", ".tsv"} and "_build" not in file.parts
    ]
    absolute = re.compile(r"(?<![\w.~-])/(?:work|tmp|home|root)/")
    assert texts
    assert [str(file) for file in texts if absolute.search(file.read_text("utf-8"))] == []
