"""The figures of results: one style, drawn with matplotlib.

Each function of a figure on the page returns it, or None when its data are missing. Shapes and dashes repeat
what color says, for the color-blind; a description repeats in words what the picture shows. The page owns its
colors, so that light, dark and print share one SVG: `finish` replaces ours by CSS variables.
"""

from __future__ import annotations

import io
import math
import re
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import FuncFormatter, NullFormatter

from lrqr.results import Group
from lrqr.show.words import number, percent, visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from matplotlib.axes import Axes

    from lrqr.results import (
        Candidate,
        Concentration,
        Examples,
        Feature,
        Histogram,
        Level,
        Method,
        Overlap,
        Panel,
        Profile,
    )

INK, GRID = "#1a1d21", "#e1e4e8"
SERIES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", "#332288")
"""Colors after Okabe and Ito (2008), which the color-blind can tell apart."""
MARKERS = "osD^vPX*"
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1)), (0, (1, 1)))
_CSS = {INK: "currentColor", GRID: "var(--grid)"} | {
    color: f"var(--series-{index})" for index, color in enumerate(SERIES, start=1)
}
_WIDTH = 4.4  # inches; narrow, so that a phone need not shrink the letters much
STYLE: Any = {
    "svg.fonttype": "none",
    "text.parse_math": False,  # a feature may be called "$"
    "font.size": 11,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "xtick.color": INK,
    "ytick.color": INK,
    "text.color": INK,
    "legend.frameon": False,
    "legend.fontsize": 10,
    "figure.constrained_layout.use": True,
}


@dataclass(frozen=True)
class Figure:
    """A picture: its name in the page, its caption, what it shows in words, SVG and drawing."""

    name: str
    caption: str
    description: str
    svg: str
    drawing: Canvas


@contextmanager
def canvas(height: float) -> Iterator[tuple[Canvas, Axes]]:
    """Yield an empty figure, ``height`` inches high, and its axes, in the report's style."""
    with mpl.rc_context(STYLE):
        drawing = Canvas(figsize=(_WIDTH, height))
        yield drawing, drawing.subplots()


def short(text: str, longest: int = 24) -> str:
    """Return ``text``, cut with an ellipsis when longer than ``longest``."""
    text = visible(text)
    return text if len(text) <= longest else text[: longest - 1] + "…"


def percent_axis(axes: Axes, which: str) -> None:
    """Label the axes in ``which`` ("x", "y" or "xy") in percent."""
    formatter = FuncFormatter(lambda value, _: f"{100 * value:.4g}%")
    for name in which:
        getattr(axes, f"{name}axis").set_major_formatter(formatter)


def lambda_axis(axes: Axes, values: Sequence[float]) -> None:
    """Make the x axis one of λ: logarithmic when the values span much, with a place for 0."""
    positive = [value for value in values if value > 0]
    if positive and max(positive) > 20 * min(positive):
        scale: dict[str, Any] = {"value": "log"}
        if min(values) <= 0:
            scale = {"value": "symlog", "linthresh": min(positive)}
        axes.set_xscale(**scale)
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_xlabel("regularization λ")


def _band(axes: Axes, x: Sequence[float], low: Sequence[float | None], high: Sequence[float | None]) -> None:
    """Fill between two lines where both are known."""
    lows, highs = np.array(low, dtype=np.float64), np.array(high, dtype=np.float64)
    known = np.isfinite(lows) & np.isfinite(highs)
    axes.fill_between(np.asarray(x)[known], lows[known], highs[known], color=SERIES[0], alpha=0.2, lw=0)


def finish(drawing: Canvas, name: str, caption: str, description: str) -> Figure:
    """Return the drawing as SVG that fits into the page."""
    caption, description = visible(caption), visible(description)
    buffer = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": name}):  # same numbers, same bytes
        drawing.savefig(
            buffer,
            format="svg",
            transparent=True,
            metadata={"Date": None, "Creator": None, "Format": None, "Type": None},
        )
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    for stand_in, color in _CSS.items():
        svg = svg.replace(stand_in, color)
    # Many figures share one page: their ids must not meet.
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = re.sub(r'href="#', f'href="#{name}-', svg)
    svg = re.sub(r"url\(#", f"url(#{name}-", svg)
    svg = re.sub(r"font: ([^;\"]*?)px [^;\"]*", r"font-size: \1px; font-family: inherit", svg)
    box = re.search(r'viewBox="([^"]*)"', svg)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'viewBox="{box.group(1) if box else ""}" role="img" '
        f'aria-labelledby="{name}-title {name}-desc">'
        f'<title id="{name}-title">{escape(caption)}</title>'
        f'<desc id="{name}-desc">{escape(description)}</desc>'
    )
    return Figure(name, caption, description, re.sub(r"<svg[^>]*>", lambda _: head, svg, count=1), drawing)


def calibration(levels: Sequence[Level], nominal: float) -> Figure | None:
    """Coverage reached against the nominal level that was asked for."""
    if len(levels) < 2:
        return None
    x, y = [level.nominal for level in levels], [level.coverage for level in levels]
    with canvas(3.4) as (drawing, axes):
        low = min(*x, *y, *(level.low for level in levels if level.low is not None))
        axes.plot([low, 1], [low, 1], color=INK, linewidth=0.9, dashes=(4, 3), label="as promised")
        _band(axes, x, [level.low for level in levels], [level.high for level in levels])
        axes.plot(x, y, color=SERIES[0], marker="o", markersize=4, label="reached")
        axes.axvline(nominal, color=INK, linewidth=0.7, dashes=(1, 2))
        percent_axis(axes, "xy")
        axes.set(xlabel="promised coverage", ylabel="reached coverage")
        axes.legend(loc="upper left")
        worst = max(levels, key=lambda level: abs(level.coverage - level.nominal))
        words = (
            f"Reached coverage at {len(levels)} promised levels from {percent(min(x))} to {percent(max(x))}. "
            f"Farthest from its promise: {percent(worst.coverage)} where it was {percent(worst.nominal)}."
        )
        return finish(drawing, "calibration", "Coverage against nominal level", words)


def intervals(examples: Examples | None, *, outcome: str, nominal: float) -> Figure | None:
    """Intervals of a few rows with the outcomes that came; those outside stand out."""
    if examples is None or not examples.outcome:
        return None
    y = np.array(examples.outcome, dtype=np.float64)
    lower, upper = np.array(examples.lower, dtype=np.float64), np.array(examples.upper, dtype=np.float64)
    inside, place = (lower <= y) & (y <= upper), np.arange(len(y))
    ends = np.concatenate([y, lower, upper])
    ends = ends[np.isfinite(ends)]
    edge = 0.03 * float(np.ptp(ends)) or 1.0  # infinite ends run out of the picture
    low, high = float(ends.min()) - edge, float(ends.max()) + edge
    order = "interval's middle" if np.isfinite(upper - lower).any() else "bound"
    with canvas(3.4) as (drawing, axes):
        axes.vlines(
            place, np.clip(lower, low, high), np.clip(upper, low, high), color=SERIES[0], alpha=0.45, lw=3
        )
        axes.plot(place[inside], y[inside], "o", color=INK, markersize=3, label="outcome inside")
        axes.plot(place[~inside], y[~inside], "X", color=SERIES[1], markersize=7, label="outcome outside")
        axes.set(xlabel=f"rows, in the order of their {order}", ylabel=short(outcome, 30) or "outcome")
        axes.set_xticks([])
        axes.set_ylim(low, high + 0.2 * (high - low))  # room for the legend
        axes.legend(loc="upper left", ncols=2)
        caption = f"Intervals of {len(y)} of the rows, drawn at random, and their outcomes"
        words = (
            f"{len(y)} rows with their intervals; {int(inside.sum())} outcomes lie inside and "
            f"{int((~inside).sum())} outside, where {percent(nominal)} inside was promised."
        )
        return finish(drawing, "intervals", caption, words)


def coverage_bars(groups: Sequence[Group], nominal: float, *, name: str, caption: str) -> Figure | None:
    """Coverage of each group with its interval, beside the promised level."""
    shown = [group for group in groups if group.coverage is not None][:30]
    if not shown:
        return None
    with _rows([f"{short(group.name)} ({group.n})" for group in shown]) as (drawing, axes):
        _coverage_of_each(axes, shown, nominal)
        lowest = min(shown, key=lambda group: float(group.coverage or 0))
        highest = max(shown, key=lambda group: float(group.coverage or 0))
        words = (
            f"Coverage of {len(shown)} groups with intervals, promised {percent(nominal)}. "
            f"Lowest: {lowest.name} with {percent(lowest.coverage)} of {lowest.n} rows; "
            f"highest: {highest.name} with {percent(highest.coverage)} of {highest.n} rows."
        )
        return finish(drawing, name, caption, words)


def sizes(histogram: Histogram | None, *, unit: str, median: float | None) -> Figure | None:
    """Histogram of the finite sizes."""
    if histogram is None or not histogram.counts:
        return None
    with canvas(2.7) as (drawing, axes):
        edges, counts = np.asarray(histogram.edges), np.asarray(histogram.counts)
        axes.bar(
            edges[:-1], counts, width=np.diff(edges), align="edge", color=SERIES[0], alpha=0.75, linewidth=0
        )
        if median is not None and math.isfinite(median):
            axes.axvline(median, color=INK, linewidth=1, dashes=(4, 3), label=f"median {number(median)}")
            axes.legend(loc="upper right")
        axes.grid(visible=False, axis="x")
        axes.set(xlabel=short(unit, 50), ylabel="rows")
        busiest = int(np.argmax(counts))
        words = (
            f"Histogram of {number(float(counts.sum()))} finite sizes from {number(edges[0])} to "
            f"{number(edges[-1])}; most between {number(edges[busiest])} and {number(edges[busiest + 1])}."
        )
        return finish(drawing, "sizes", f"Distribution of the {unit}", words)


def profiles(items: Sequence[Profile]) -> list[Figure]:
    """Threshold against each of its top features."""
    figures = []
    for index, profile in enumerate(items[:4]):
        heights = [math.nan if value is None else value for value in profile.threshold]
        finite = [value for value in heights if math.isfinite(value)]
        if not finite:
            continue
        with canvas(2.5) as (drawing, axes):
            if len(profile.low) == len(profile.high) == len(heights):
                _band(axes, profile.x, profile.low, profile.high)
            axes.plot(profile.x, heights, color=SERIES[0], marker="o", markersize=4)
            axes.set(xlabel=short(profile.feature, 40), ylabel="threshold")
            words = (
                f"Median threshold over {len(heights)} bins of {profile.feature}: "
                f"{number(heights[0])} at {number(profile.x[0])}, "
                f"{number(heights[-1])} at {number(profile.x[-1])}; "
                f"lowest {number(min(finite))}, highest {number(max(finite))}."
            )
            caption = f"Threshold against {profile.feature}"
            figures.append(finish(drawing, f"threshold-{index + 1}", caption, words))
    return figures


def selection(table: Sequence[Candidate], criterion: str) -> Figure | None:
    """Cross-validation curve: the criterion against λ, one line a ridge, the chosen one marked."""
    rows = [row for row in table if row.criterion is not None and math.isfinite(row.criterion)]
    if len({row.regularization for row in rows}) < 2:
        return None
    with canvas(3.0) as (drawing, axes):
        ridges = sorted({row.ridge for row in rows}, key=lambda ridge: (ridge is not None, ridge or 0.0))
        for index, ridge in enumerate(ridges):
            line = sorted(
                (row for row in rows if row.ridge == ridge), key=lambda row: float(row.regularization)
            )
            axes.plot(
                [row.regularization for row in line],
                [float(row.criterion or 0) for row in line],
                color=SERIES[index % len(SERIES)],
                linestyle=DASHES[index % len(DASHES)],
                marker=MARKERS[index % len(MARKERS)],
                markersize=4,
                label="" if ridge is None else f"ridge {number(ridge)}",
            )
        chosen = [row for row in rows if row.chosen]
        for row in chosen:
            axes.plot(
                row.regularization,
                float(row.criterion or 0),
                "o",
                markersize=12,
                mfc="none",
                mec=INK,
                mew=1.4,
            )
        lambda_axis(axes, [row.regularization for row in rows])
        axes.set_ylabel(short(criterion, 40) or "criterion")
        if ridges != [None]:
            axes.legend(loc="best")
        best = min(rows, key=lambda row: float(row.criterion or 0))
        mark = chosen[0] if chosen else best
        words = (
            f"Cross-validation criterion at {len(rows)} pairs of λ and ridge; the circle marks the chosen "
            f"λ = {number(mark.regularization)}"
            + ("" if mark.ridge is None else f", ridge = {number(mark.ridge)}")
            + f", criterion {number(mark.criterion)}."
        )
        return finish(drawing, "selection", "Cross-validation curve", words)


def methods(panel: Panel, *, name: str) -> list[Figure]:
    """Coverage and size of the methods side by side, with their spread."""
    about = f" on {panel.name}" if panel.name else ""
    bars = " (bars: one standard error over splits)" if panel.splits and panel.splits > 1 else ""
    figures = [_coverages(panel, name=name, about=about + bars), _sizes(panel, name=name, about=about + bars)]
    return [figure for figure in figures if figure is not None]


def _coverages(panel: Panel, *, name: str, about: str) -> Figure | None:
    shown = [method for method in panel.methods if method.coverage is not None]
    if not shown:
        return None
    with _rows([method.name for method in shown]) as (drawing, axes):
        _coverage_of_each(axes, shown, panel.nominal)
        words = f"Coverage, promised {percent(panel.nominal)}: " + "; ".join(
            f"{method.name} {percent(method.coverage)}" for method in shown
        )
        return finish(drawing, f"{name}-coverage", f"Coverage{about}", words + ".")


def _sizes(panel: Panel, *, name: str, about: str) -> Figure | None:
    shown = [method for method in panel.methods if _finite(method.finite_size[0])]
    if not shown:
        return None
    with _rows([method.name for method in shown]) as (drawing, axes):
        for place, method in enumerate(shown):
            size, half = method.finite_size
            axes.errorbar(float(size or 0), place, xerr=half if _finite(half) else None, **_style(method))
            if not _finite(method.mean_size[0]):
                axes.annotate(
                    "∞ cut", (size, place), (0, 5), textcoords="offset points", fontsize=9, ha="center"
                )
        axes.set_xlabel("mean size")
        words = "Mean size: " + "; ".join(f"{method.name} {number(method.mean_size[0])}" for method in shown)
        cut = any(not _finite(method.mean_size[0]) for method in shown)
        note = "; ∞ cut: infinite ones count as the largest calibration score" if cut else ""
        return finish(drawing, f"{name}-size", f"Mean size{about}{note}", words + ".")


@contextmanager
def _rows(labels: Sequence[str]) -> Iterator[tuple[Canvas, Axes]]:
    with canvas(1.0 + 0.32 * len(labels)) as (drawing, axes):
        axes.set_yticks(range(len(labels)), [short(label) for label in labels])
        axes.set_ylim(len(labels) - 0.5, -0.5)
        axes.grid(visible=False, axis="y")
        axes.margins(x=0.12)
        yield drawing, axes


def _coverage_of_each(axes: Axes, rows: Sequence[Group | Method], nominal: float) -> None:
    """Mark the coverage of each row with its spread, and the promised level."""
    for place, row in enumerate(rows):
        axes.errorbar(float(row.coverage or 0), place, xerr=_bars(row), **_style(row))
    axes.axvline(nominal, color=INK, linewidth=1, dashes=(4, 3))
    percent_axis(axes, "x")
    axes.set_xlabel(f"coverage (promised: {percent(nominal)})")


def _style(row: Group | Method) -> dict[str, Any]:
    """Return how a row is marked: groups below the promise and LR-QR stand out, small groups are hollow."""
    color, marker = SERIES[0], "o"
    if isinstance(row, Group):
        small, standing_out, other = row.small, row.verdict == "below", "s"
    else:
        small, standing_out, other = False, row.name.casefold() in {"lrqr", "lr-qr"}, "D"
    if standing_out:
        color, marker = SERIES[1], other
    face = "none" if small else color
    return {"color": color, "marker": marker, "markersize": 6, "markerfacecolor": face, "linewidth": 2}


def _bars(row: Group | Method) -> Any:
    """Return the standard error over splits, else the distances to the ends of the interval, if known."""
    error = getattr(row, "coverage_se", None)
    if _finite(error):
        return error
    if row.coverage is None or row.low is None or row.high is None:
        return None
    return [[max(row.coverage - row.low, 0.0)], [max(row.high - row.coverage, 0.0)]]


def _finite(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


def overlap(scores: Overlap | None) -> Figure | None:
    """Domain scores of source and target, one over the other."""
    if scores is None or not scores.source:
        return None
    with canvas(2.7) as (drawing, axes):
        shares = [
            np.asarray(counts) / max(float(np.sum(counts)), 1.0) for counts in (scores.source, scores.target)
        ]
        shared = float(np.minimum(*shares).sum())
        for index, (share, label) in enumerate(zip(shares, ("source", "target"), strict=True)):
            axes.stairs(share, scores.edges, fill=True, color=SERIES[index], alpha=0.25, linewidth=0)
            axes.stairs(
                share,
                scores.edges,
                color=SERIES[index],
                label=label,
                linewidth=1.6,
                linestyle=DASHES[index],
            )
        percent_axis(axes, "y")
        axes.set(xlabel="domain score (log-odds of being a target row)", ylabel="rows")
        axes.set_ylim(top=1.3 * float(np.max(shares)))  # room for the legend
        axes.legend(loc="upper right", ncols=2)
        words = (
            f"Histograms of the domain score of source and target rows; they share {percent(shared)} of "
            "their area. Where the target has rows and the source has none, nothing was learned."
        )
        return finish(drawing, "overlap", "Overlap of source and target", words)


def concentration(weights: Concentration | None) -> Figure | None:
    """Which share of the weight the heaviest source rows carry."""
    if weights is None or len(weights.rows) < 2:
        return None
    with canvas(2.7) as (drawing, axes):
        axes.plot([0, 1], [0, 1], color=INK, linewidth=0.9, dashes=(4, 3), label="equal weights")
        axes.plot(weights.rows, weights.weight, color=SERIES[0], label="estimated weights")
        percent_axis(axes, "xy")
        axes.set(xlabel="heaviest source rows", ylabel="share of the weight")
        axes.legend(loc="lower right")
        tenth = float(np.interp(0.1, weights.rows, weights.weight))
        words = f"The heaviest 10% of the source rows carry {percent(tenth)} of the weight."
        return finish(drawing, "concentration", "How the weight is spread over source rows", words)


def differences(features: Sequence[Feature]) -> Figure | None:
    """Standardized differences of the most shifted features."""
    shown = [feature for feature in features if feature.standardized_difference is not None][:12]
    if not shown:
        return None
    with _rows([feature.name for feature in shown]) as (drawing, axes):
        values = [float(feature.standardized_difference or 0) for feature in shown]
        for place, value in enumerate(values):
            axes.plot([0, value], [place, place], color=SERIES[0], linewidth=2)
        axes.plot(values, range(len(shown)), "o", color=SERIES[0], markersize=5)
        axes.axvline(0, color=INK, linewidth=0.8)
        axes.set_xlabel("standardized difference")
        caption = "Most shifted features: target minus source, in standard deviations"
        words = "Standardized differences of the most shifted features: " + ", ".join(
            f"{feature.name} {value:+.2f}" for feature, value in zip(shown[:5], values[:5], strict=True)
        )
        return finish(drawing, "differences", caption, words + ".")
