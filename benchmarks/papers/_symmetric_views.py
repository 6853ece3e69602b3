"""Tables and figures of the experiments on symmetries."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from _judging import grouped
from _models import CONTROL, Record
from _report import table
from _symmetric import ALIGNERS, AS_IS, REORDERED, ROTATED, VARIANTS
from matplotlib.figure import Figure

#: Of Okabe and Ito, which colour-blind readers can tell apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
#: What is left as it is lies below what does not differ from it.
STYLES: dict[str, dict[str, Any]] = {
    AS_IS: {"color": "#BBBBBB", "linewidth": 5},
    ROTATED: {"color": COLOURS[1], "marker": "."},
    REORDERED: {"color": COLOURS[0], "marker": "."},
}
HELD_OUT = ("train", "held-out")


def mean_of(records: Sequence[Record], **wanted: Any) -> float:
    """Mean value of the records that hold all that is wanted; not a number if there is none."""
    kept = [r["value"] for r in records if all(r.get(key) == want for key, want in wanted.items())]
    return float(np.mean(kept)) if kept else np.nan


def tables(records: Sequence[Record]) -> str:
    """All experiments, one table for each kind of models."""
    return "\n".join(
        text
        for experiment, same in grouped(records, "experiment").items()
        for models, found in grouped(same, "models").items()
        for text in _views(f"{experiment}, {models}", found)
    )


def _views(title: str, records: Sequence[Record]) -> list[str]:
    if "variant" not in records[0]:
        return [_accuracies(title, records)]
    return [_measures(title, records), _fits(title, records), _changes(title, records)]


def _measures(title: str, records: Sequence[Record]) -> str:
    cells = list(product(grouped(records, "layer"), VARIANTS))
    rows = [
        (name, *(_cell(mean_of(same, layer=la, variant=v, rows="held-out")) for la, v in cells))
        for name, same in grouped(records, "name").items()
    ]
    header = ("", *(f"{layer} {variant}" for layer, variant in cells))
    return table(f"{title}: measures and R² of aligners at each layer, rows held out", header, rows)


def _fits(title: str, records: Sequence[Record]) -> str:
    cells = list(product(grouped(records, "layer"), HELD_OUT))
    asis = [r for r in records if r["variant"] == AS_IS]
    rows = [
        (
            f"{name}, {way}",
            *(_cell(mean_of(asis, name=name, way=way, layer=la, rows=r)) for la, r in cells),
        )
        for name, way in product(ALIGNERS, ("forward", "inverse"))
    ]
    header = ("", *(f"{layer} {which}" for layer, which in cells))
    return table(
        f"{title}: R² on the rows learned from and on others, spaces as they are", header, rows
    )


def _changes(title: str, records: Sequence[Record]) -> str:
    """Who is blind to what."""
    rows = []
    for name, same in grouped(records, "name").items():
        by_layer = [
            [mean_of(same, layer=layer, variant=v, rows="held-out") for v in VARIANTS]
            for layer in grouped(same, "layer")
        ]
        before = np.array(by_layer)
        change = np.abs(before[:, 1:] - before[:, :1]).max(axis=0)
        rows.append(
            (name, *(f"{value:.1e}" if value < 5e-4 else f"{value:.3f}" for value in change))
        )
    header = ("", *(f"by {variant}" for variant in VARIANTS[1:]))
    return table(f"{title}: largest change at any layer", header, rows)


def _accuracies(title: str, records: Sequence[Record]) -> str:
    layers = list(grouped(records, "layer"))
    rows = [
        (name, *(_cell(mean_of(same, layer=layer)) for layer in layers))
        for name, same in grouped(records, "name").items()
    ]
    header = ("", *(f"layer {layer}" for layer in layers))
    return table(f"{title}: accuracy on images held out", header, rows)


def _cell(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.3f}"


def curves(records: Sequence[Record], experiments: Sequence[str]) -> Any:
    """Each measure over the layers: a column each, a row for each experiment."""
    kept = [r for r in records if r["experiment"] in experiments and r["rows"] == "held-out"]
    names = list(grouped(kept, "name"))
    figure = Figure(figsize=(2.3 * len(names), 2.6 * len(experiments) + 0.6), layout="constrained")
    axes = figure.subplots(len(experiments), len(names), squeeze=False)
    for (row, experiment), (column, name) in product(enumerate(experiments), enumerate(names)):
        same = [r for r in kept if r["experiment"] == experiment and r["name"] == name]
        _variants(axes[row, column], same)
        axes[row, column].set_title(_wrapped(name) if row == 0 else "", fontsize=8)
        axes[row, column].set_xlabel("layer" if row == len(experiments) - 1 else "")
    for row, experiment in enumerate(experiments):
        axes[row, 0].set_ylabel(experiment)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    return figure


def _variants(ax: Any, records: Sequence[Record]) -> None:
    for models, found in grouped(records, "models").items():
        layers = list(grouped(found, "layer"))
        for variant, style in STYLES.items():
            values = [mean_of(found, layer=layer, variant=variant) for layer in layers]
            dashes = ":" if models == CONTROL else "-"
            ax.plot(layers, values, label=f"{variant}, {models}", linestyle=dashes, **style)
            ax.set_xticks(layers)
    ax.tick_params(labelsize=7)
    ax.spines[["top", "right"]].set_visible(False)


def _wrapped(name: str) -> str:
    return name.replace(" (", "\n(").replace(", ", ",\n").replace("orthogonal ", "orthogonal\n", 1)


def bars(records: Sequence[Record], experiments: Sequence[str]) -> Any:
    """Accuracies of the last tables: a row for each experiment, a panel for each kind of models."""
    figure = Figure(figsize=(11, 3.6 * len(experiments)), layout="constrained")
    for part, experiment in zip(figure.subfigures(len(experiments), 1), experiments, strict=True):
        groups = grouped([r for r in records if r["experiment"] == experiment], "models")
        axes = part.subplots(1, len(groups), sharey=True)
        for ax, (models, found) in zip(axes, groups.items(), strict=True):
            _bars(ax, found)
            ax.set(title=f"{experiment}, {models}", xlabel="accuracy", xlim=(0, 1))
        axes[0].invert_yaxis()
        axes[-1].legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    return figure


def _bars(ax: Any, records: Sequence[Record]) -> None:
    names = grouped(records, "name")
    for i, (layer, colour) in enumerate(zip(grouped(records, "layer"), COLOURS, strict=False)):
        values = [mean_of(same, layer=layer) for same in names.values()]
        places = np.arange(len(names)) + (i - 1) * 0.25
        ax.barh(places, values, height=0.25, color=colour, label=f"layer {layer}")
    ax.set_yticks(range(len(names)), list(names), fontsize=8)
    ax.spines[["top", "right"]].set_visible(False)
