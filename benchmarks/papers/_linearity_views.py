"""Tables and figures of the experiments on linearity and commutativity."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from _judging import Array, grouped, spread_of
from _models import Record
from _report import table
from matplotlib.figure import Figure

LINEARITY, COSINES, REARRANGED = "linearity", "cosines", "rearranged"
AS_IS, SWAPPED = "as it is", "swapped"
#: What `linearity` found, beside the cosines of the approximators.
BESIDE = {
    "linearity: cosine": "cosine",
    "best constant": "baseline",
    "cone": "cone",
    "gamma": "gamma",
    "R²": "r2",
}


def of(records: Sequence[Record], **wanted: Any) -> list[Record]:
    """Those that hold all that is wanted."""
    return [r for r in records if all(r.get(key) == value for key, value in wanted.items())]


def tables(records: Sequence[Record]) -> str:
    """All of them, one after the other, for each kind of models."""
    texts = []
    for models, found in grouped(records, "models").items():
        for title, measure in (("gamma", "gamma"), ("R²", "r2")):
            texts.append(_parts(f"{models}: {title} of each part of each layer", found, measure))
        if of(found, section=COSINES):
            texts.append(_cosines(f"{models}, the first model: cosines, mean over layers", found))
        if changed := of(found, section=REARRANGED):
            texts += [_removed(models, changed), _swapped(models, changed)]
    return "\n".join(texts)


def _parts(title: str, records: Sequence[Record], measure: str) -> str:
    found = of(records, section=LINEARITY)
    layers = list(grouped(found, "layer"))
    rows = [
        (part, *(spread_of([r[measure] for r in of(same, layer=layer)]) for layer in layers))
        for part, same in grouped(found, "part").items()
    ]
    return table(title, ("", *(f"layer {layer}" for layer in layers)), rows)


def _cosines(title: str, records: Sequence[Record]) -> str:
    """What the faults cost."""
    published = of(records, section=COSINES)
    names = list(grouped(published, "name"))
    rows = []
    for part in grouped(published, "part"):
        ours = of(records, section=LINEARITY, part=part, seed=0)
        layers = grouped(ours, "layer")
        theirs = [r for r in of(published, part=part) if r["layer"] in layers]
        numbers = [[r["cosine"] for r in of(theirs, name=name)] for name in names]
        numbers += [[r[key] for r in ours] for key in BESIDE.values()]
        rows.append((part, *(f"{np.mean(values):.3f}" for values in numbers)))
    return table(title, ("", *names, *BESIDE), rows)


def _removed(models: str, records: Sequence[Record]) -> str:
    found = [r for r in records if r["name"] != SWAPPED]
    layers = sorted({r["layer"] for r in found if "layer" in r})
    rows = []
    for name, same in grouped(found, "name").items():
        whole = [r["loss"] for r in same if "layer" not in r]
        cells = [[r["loss"] for r in of(same, layer=layer)] for layer in layers]
        rows.append((name, *(spread_of(losses) if losses else "" for losses in (whole, *cells))))
    header = ("", "whole", *(f"layer {layer}" for layer in layers))
    return table(f"{models}: masked-language loss without a layer, in nats", header, rows)


def _swapped(models: str, records: Sequence[Record]) -> str:
    losses = swap_matrix(records)
    rows = [(i, *(f"{value:.3f}" for value in row)) for i, row in enumerate(losses)]
    title = f"{models}: masked-language loss with two layers swapped, in nats (diagonal: none)"
    return table(title, ("", *range(len(losses))), rows)


def swap_matrix(records: Sequence[Record]) -> Array:
    """Mean loss over the models for each pair of layers."""
    found = of(records, name=SWAPPED)
    n_layers = 1 + max(r["onto"] for r in found)
    losses = np.full((n_layers, n_layers), mean_loss(of(records, name=AS_IS)))
    for r in found:
        same = of(found, layer=r["layer"], onto=r["onto"])
        losses[r["layer"], r["onto"]] = losses[r["onto"], r["layer"]] = mean_loss(same)
    return losses


def mean_loss(records: Sequence[Record]) -> float:
    """Over the models."""
    return float(np.mean([r["loss"] for r in records]))


def gammas(records: Sequence[Record]) -> Any:
    """Bars of gamma for each part, one for each layer; a panel for each kind of models."""
    groups = grouped(of(records, section=LINEARITY), "models")
    figure = Figure(figsize=(9, 2.6 * len(groups) + 0.8), layout="constrained")
    panels = figure.subplots(len(groups), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    for ax, (models, found) in zip(panels, groups.items(), strict=True):
        parts, layers = grouped(found, "part"), list(grouped(found, "layer"))
        width = 0.8 / len(layers)
        for i, layer in enumerate(layers):
            places = np.arange(len(parts)) + (i - (len(layers) - 1) / 2) * width
            heights = [np.mean([r["gamma"] for r in of(p, layer=layer)]) for p in parts.values()]
            label = "first layer" if i == 0 else "last layer" if i == len(layers) - 1 else None
            colour = (0.15, 0.35, 0.6, 1 - 0.8 * i / max(len(layers), 2))
            ax.bar(places, heights, width=width, color=colour, label=label)
        ax.set(title=models, ylabel="gamma", ylim=(0, 1))
        ax.set_xticks(
            range(len(parts)), [part.replace(" + ", "\n+ ") for part in parts], fontsize=8
        )
        ax.spines[["top", "right"]].set_visible(False)
    figure.legend(
        *panels[0].get_legend_handles_labels(), loc="outside upper right", ncols=2, frameon=False
    )
    return figure


def curves(records: Sequence[Record]) -> Any:
    """Loss over the layer that is removed."""
    groups = grouped(of(records, section=REARRANGED), "models")
    figure = Figure(figsize=(4.6 * len(groups), 3.8), layout="constrained")
    panels = figure.subplots(1, len(groups), sharey=True, squeeze=False)[0]
    for ax, (models, found) in zip(panels, groups.items(), strict=True):
        ax.axhline(mean_loss(of(found, name=AS_IS)), color="black", linewidth=1, label="whole")
        names = [name for name in grouped(found, "name") if name not in (AS_IS, SWAPPED)]
        for name, style in zip(names, ("o-", "s--", "^:"), strict=True):
            lines = grouped(of(found, name=name), "layer")
            ax.plot(list(lines), list(map(mean_loss, lines.values())), style, label=name)
        ax.set(title=models, xlabel="layer removed", xticks=list(lines))
        ax.spines[["top", "right"]].set_visible(False)
    panels[0].set(ylabel="masked-language loss, in nats")
    panels[0].legend(frameon=False, fontsize=8)
    return figure


def swaps(records: Sequence[Record]) -> Any:
    """Heat maps of what a swap adds to the loss."""
    groups = grouped(of(records, section=REARRANGED), "models")
    figure = Figure(figsize=(4.4 * len(groups), 3.8), layout="constrained")
    panels = figure.subplots(1, len(groups), squeeze=False)[0]
    added = {name: swap_matrix(found) for name, found in groups.items()}
    added = {name: losses - losses[0, 0] for name, losses in added.items()}
    most = max(abs(losses).max() for losses in added.values())
    for ax, (models, losses) in zip(panels, added.items(), strict=True):
        image = ax.imshow(losses, cmap="RdBu_r", vmin=-most, vmax=most)
        for (i, j), value in np.ndenumerate(losses):
            colour = "white" if abs(value) > most / 2 else "black"
            text = "" if i == j else f"{value:+.2f}"
            ax.text(j, i, text, ha="center", va="center", fontsize=8, color=colour)
        ax.set(title=models, xlabel="layer", ylabel="layer")
        ax.set(xticks=range(len(losses)), yticks=range(len(losses)))
    figure.colorbar(image, ax=panels, label="added to the loss by the swap, in nats")
    return figure
