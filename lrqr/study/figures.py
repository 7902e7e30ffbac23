"""The figures of an experiment in the paper's layout: one column a shift, coverage above size.

Colors are those of Okabe and Ito (2008), which the color-blind can tell apart; markers differ too.
"""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from lrqr.study.config import Experiment

_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F", "#000000")
_MARKERS = "osD^vPX*"
_STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.hashsalt": "lrqr",
    "svg.fonttype": "none",
}
_BARS = 2.0
_CHARACTERS = 11.0  # of a title, per inch


def draw(experiment: Experiment, summary: pd.DataFrame) -> Figure:
    """Draw the figure that the experiment asks for, from a summary over splits."""
    from matplotlib import rc_context

    with rc_context(_STYLE):
        if experiment.figure.kind == "path":
            return _path(experiment, summary)
        return _methods(experiment, summary)


def save(experiment: Experiment, summary: pd.DataFrame, stem: Path) -> list[Path]:
    """Write the figure as ``stem.svg`` and ``stem.png``; the same numbers give the same bytes."""
    from matplotlib import rc_context

    figure = draw(experiment, summary)
    paths = [stem.with_name(stem.name + suffix) for suffix in (".svg", ".png")]
    with rc_context(_STYLE):
        figure.savefig(paths[0], metadata={"Date": None}, bbox_inches="tight")
        figure.savefig(paths[1], metadata={"Software": None}, dpi=150, bbox_inches="tight")
    return paths


def _grid(experiment: Experiment, shifts: list[str], rows: int, height: float) -> tuple[Figure, Any]:
    """Make a grid of axes: blocks of ``rows`` rows, as many columns as the figure allows."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    columns = min(experiment.figure.columns, len(shifts))
    blocks = -(-len(shifts) // columns)
    width = max(2.7 * columns + 0.6, 4.0)
    figure = Figure(figsize=(width, height * rows * blocks + 0.6), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows * blocks, columns, squeeze=False)
    for position in range(len(shifts), blocks * columns):
        for row in range(rows):
            axes[position // columns * rows + row, position % columns].axis("off")
    title = experiment.figure.title or experiment.title
    figure.suptitle(textwrap.fill(title, round(_CHARACTERS * width)))
    return figure, axes


def _share(axes: Sequence[Axes]) -> None:
    """Give all axes the same vertical limits."""
    limits = [axis.get_ylim() for axis in axes]
    for axis in axes:
        axis.set_ylim(min(low for low, _ in limits), max(high for _, high in limits))


def _methods(experiment: Experiment, summary: pd.DataFrame) -> Figure:
    """Coverage and size of every method: a point is the mean over splits.

    Thick bars are two standard errors of the mean, thin bars one standard deviation over splits; hollow
    diamonds are published numbers.
    """
    shifts = list(dict.fromkeys(summary["shift"]))
    labels = list(dict.fromkeys(summary["method"]))
    figure, axes = _grid(experiment, shifts, rows=2, height=2.1)
    columns = axes.shape[1]
    for position, shift in enumerate(shifts):
        block, column = divmod(position, columns)
        table = summary[summary["shift"] == shift].set_index("method").reindex(labels)
        upper, lower = axes[2 * block, column], axes[2 * block + 1, column]
        for axis, metric in ((upper, "coverage"), (lower, "size")):
            _points(axis, table, metric)
            axis.set_xticks(range(len(labels)), [] if axis is upper else labels, rotation=60, ha="right")
            _published(axis, experiment, shift, labels, metric)
        upper.axhline(experiment.coverage, color="black", linewidth=0.8, linestyle="--", zorder=0)
        upper.set_title(shift)
        _note_infinite(lower, table)
        lower.set_ylim(0.0, 1.15 * lower.get_ylim()[1])
        if column == 0:
            upper.set_ylabel("target coverage")
            lower.set_ylabel(experiment.figure.size_label)
    _share([axes[2 * (position // columns), position % columns] for position in range(len(shifts))])
    return figure


def _points(axis: Axes, table: pd.DataFrame, metric: str) -> None:
    for place, (_, row) in enumerate(table.iterrows()):
        color, marker = _COLORS[place % len(_COLORS)], _MARKERS[place % len(_MARKERS)]
        spread, error = (float(np.nan_to_num(row[f"{metric}_{kind}"])) for kind in ("sd", "se"))
        axis.errorbar(place, row[metric], yerr=spread, color=color, linewidth=0.9, capsize=2)
        axis.errorbar(place, row[metric], yerr=_BARS * error, color=color, linewidth=3, marker=marker)


def _published(axis: Axes, experiment: Experiment, shift: str, labels: list[str], metric: str) -> None:
    """Mark the paper's numbers with hollow diamonds."""
    for row in experiment.published:
        value = row.coverage if metric == "coverage" else row.size
        if value is not None and row.shift in (None, shift):
            axis.plot(labels.index(row.method), value, "d", color="black", fillstyle="none", markersize=9)


def _note_infinite(axis: Axes, table: pd.DataFrame) -> None:
    """Print the share of infinite thresholds above a method's size, where it is not nil."""
    for place, share in enumerate(table["infinite"]):
        if share > 0.0005:
            top = table["size"].iloc[place] + float(np.nan_to_num(table["size_sd"].iloc[place]))
            axis.annotate(
                f"∞ {share:.0%}" if share >= 0.005 else "∞ <1%",
                (place, top),
                xytext=(0, 3),
                textcoords="offset points",
                ha="center",
                fontsize=7,
            )


def _path(experiment: Experiment, summary: pd.DataFrame) -> Figure:
    """Coverage along λ, one line a ridge; a star marks the λ that the selection chose (mean over splits)."""
    shifts = list(dict.fromkeys(summary["shift"]))
    figure, axes = _grid(experiment, shifts, rows=1, height=2.6)
    fixed = {
        entry.label
        for entry in experiment.expanded()
        if entry.parameters.get("regularization", "auto") != "auto"
    }
    ridges = sorted(set(summary["ridge"].dropna()[summary["method"].isin(fixed)]))
    for position, shift in enumerate(shifts):
        axis = axes[divmod(position, axes.shape[1])]
        table = summary[summary["shift"] == shift]
        for place, ridge in enumerate(ridges):
            color, marker = _COLORS[place % len(_COLORS)], _MARKERS[place % len(_MARKERS)]
            own = table[np.isclose(table["ridge"], ridge)]
            line = own[own["method"].isin(fixed)].sort_values("regularization")
            chosen = own[~own["method"].isin(fixed)]
            errors = _BARS * line["coverage_se"].fillna(0.0)
            axis.errorbar(
                line["regularization"],
                line["coverage"],
                yerr=errors,
                color=color,
                marker=marker,
                markersize=4,
                linewidth=1.2,
                capsize=2,
                label=f"ridge {ridge:g}",
            )
            axis.plot(
                chosen["regularization"],
                chosen["coverage"],
                linestyle="none",
                marker="*",
                markersize=13,
                color=color,
                markeredgecolor="black",
            )
        axis.axhline(experiment.coverage, color="black", linewidth=0.8, linestyle="--", zorder=0)
        axis.set_title(shift)
        axis.set_xlabel("λ")
    _share([axes[divmod(position, axes.shape[1])] for position in range(len(shifts))])
    axes[0, 0].set_ylabel("target coverage")
    axes[0, 0].legend(fontsize=7, frameon=False)
    return figure
