"""The figure of an experiment in the paper's layout: one column a shift, coverage above size."""

from __future__ import annotations

import io
import math
import textwrap
from typing import TYPE_CHECKING, Any

from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from lrqr.show.figures import INK, MARKERS, SERIES, STYLE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from lrqr.results import Comparison, Method
    from lrqr.study.config import Experiment

_STYLE = STYLE | {"font.size": 9, "legend.fontsize": 7, "svg.hashsalt": "lrqr"}
_BARS = 2.0  # standard errors
_CHARACTERS = 11.0  # of a title, per inch


def draw(experiment: Experiment, result: Comparison) -> Figure:
    """Draw the figure that the experiment asks for, from its result."""
    with rc_context(_STYLE):
        return (_path if experiment.figure.kind == "path" else _methods)(experiment, result)


def save(experiment: Experiment, result: Comparison) -> dict[str, bytes]:
    """Return ``figure.svg`` and ``figure.png``; the same numbers give the same bytes."""
    figure = draw(experiment, result)
    vector, pixels = io.BytesIO(), io.BytesIO()
    with rc_context(_STYLE):
        figure.savefig(vector, format="svg", metadata={"Date": None}, bbox_inches="tight")
        figure.savefig(pixels, format="png", metadata={"Software": None}, dpi=150, bbox_inches="tight")
    return {"figure.svg": vector.getvalue(), "figure.png": pixels.getvalue()}


def _grid(experiment: Experiment, count: int, rows: int, height: float) -> tuple[Figure, list[list[Axes]]]:
    """Return a figure and the ``rows`` axes, one above the other, of each of ``count`` shifts."""
    columns = min(experiment.figure.columns, count)
    blocks = -(-count // columns)
    width = max(2.7 * columns + 0.6, 4.0)
    figure = Figure(figsize=(width, height * rows * blocks + 0.6))
    FigureCanvasAgg(figure)
    axes: Any = figure.subplots(rows * blocks, columns, squeeze=False)
    places = [divmod(position, columns) for position in range(blocks * columns)]
    stacks = [[axes[block * rows + row, column] for row in range(rows)] for block, column in places]
    for stack in stacks[count:]:
        for axis in stack:
            axis.axis("off")
    title = experiment.figure.title or experiment.title
    figure.suptitle(textwrap.fill(title, round(_CHARACTERS * width)))
    return figure, stacks[:count]


def _finish_coverage(axes: Sequence[Axes], result: Comparison) -> None:
    """Mark the nominal coverage, name the shifts, and give all axes the same vertical limits."""
    limits = [axis.get_ylim() for axis in axes]
    for axis, panel in zip(axes, result.panels, strict=True):
        axis.axhline(panel.nominal, color=INK, linewidth=0.8, linestyle="--", zorder=0)
        axis.set_title(panel.name)
        axis.set_ylim(min(low for low, _ in limits), max(high for _, high in limits))


def _methods(experiment: Experiment, result: Comparison) -> Figure:
    """Coverage and size of every method: a point is the mean over splits.

    Thick bars are two standard errors of the mean, thin bars one standard deviation over splits; hollow
    diamonds are published numbers.
    """
    labels = list(dict.fromkeys(method.name for panel in result.panels for method in panel.methods))
    figure, stacks = _grid(experiment, len(result.panels), rows=2, height=2.1)
    columns = min(experiment.figure.columns, len(stacks))
    for position, ((upper, lower), panel) in enumerate(zip(stacks, result.panels, strict=True)):
        for axis, metric in ((upper, "coverage"), (lower, "size")):
            for method in panel.methods:
                _point(axis, labels.index(method.name), method, metric)
            axis.set_xticks(range(len(labels)), [] if axis is upper else labels, rotation=60, ha="right")
        for method in panel.methods:
            _note_infinite(lower, labels.index(method.name), method)
        lower.set_ylim(0.0, 1.15 * lower.get_ylim()[1])
        if position % columns == 0:
            upper.set_ylabel("target coverage")
            lower.set_ylabel(experiment.figure.size_label)
    _finish_coverage([upper for upper, _ in stacks], result)
    return figure


def _point(axis: Axes, place: int, method: Method, metric: str) -> None:
    """Draw a mean with its bars, and the paper's number where it is recorded."""
    values = method.to_dict()
    color, marker = SERIES[place % len(SERIES)], MARKERS[place % len(MARKERS)]
    spread, error = (values[f"{metric}_{kind}"] or 0.0 for kind in ("sd", "se"))
    axis.errorbar(place, values[metric], yerr=spread, color=color, linewidth=0.9, capsize=2)
    axis.errorbar(place, values[metric], yerr=_BARS * error, color=color, linewidth=3, marker=marker)
    published = values.get(f"published_{metric}")
    if published is not None:
        axis.plot(place, published, "d", color=INK, fillstyle="none", markersize=9)


def _note_infinite(axis: Axes, place: int, method: Method) -> None:
    """Print the share of infinite thresholds above a method's size, where it is not nil."""
    share = method.infinite or 0.0
    if share > 0.0005:
        text = f"∞ {share:.0%}" if share >= 0.005 else "∞ <1%"
        top = (place, (method.size or 0.0) + (method.size_sd or 0.0))
        axis.annotate(text, top, xytext=(0, 3), textcoords="offset points", ha="center", fontsize=7)


def _path(experiment: Experiment, result: Comparison) -> Figure:
    """Coverage along λ, one line a ridge; a star marks the λ that the selection chose (mean over splits)."""
    fixed = {
        entry.label
        for entry in experiment.expanded()
        if entry.parameters.get("regularization", "auto") != "auto"
    }
    ridges = sorted(
        {m.ridge for p in result.panels for m in p.methods if m.name in fixed and m.ridge is not None}
    )
    figure, stacks = _grid(experiment, len(result.panels), rows=1, height=2.6)
    for (axis,), panel in zip(stacks, result.panels, strict=True):
        for place, ridge in enumerate(ridges):
            own = [m for m in panel.methods if m.ridge is not None and abs(m.ridge - ridge) <= 1e-5 * ridge]
            line = sorted((m for m in own if m.name in fixed), key=lambda m: m.regularization or 0.0)
            chosen = [m for m in own if m.name not in fixed]
            color = SERIES[place % len(SERIES)]
            axis.errorbar(
                [m.regularization or 0.0 for m in line],
                [m.coverage or 0.0 for m in line],
                yerr=[_BARS * (m.coverage_se or 0.0) for m in line],
                color=color,
                marker=MARKERS[place % len(MARKERS)],
                markersize=4,
                linewidth=1.2,
                capsize=2,
                label=f"ridge {ridge:g}",
            )
            stars = [m.regularization or 0.0 for m in chosen], [m.coverage or 0.0 for m in chosen]
            axis.plot(*stars, linestyle="none", marker="*", markersize=13, color=color, markeredgecolor=INK)
        axis.set_xlabel("λ")
        if experiment.figure.logarithmic:
            smallest = min(m.regularization for m in line if m.regularization)
            axis.set_xscale("symlog", linthresh=10.0 ** math.ceil(math.log10(smallest)))
            axis.xaxis.set_major_formatter("{x:g}")
    _finish_coverage([axis for (axis,) in stacks], result)
    stacks[0][0].set_ylabel("target coverage")
    stacks[0][0].legend()
    return figure
