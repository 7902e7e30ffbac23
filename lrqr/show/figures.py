"""The figures of a report. Each function returns one, or None when its data are missing.

Shapes and dashes repeat what color says; the description repeats what the picture says.
"""

from __future__ import annotations

import math
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from lrqr.show.canvas import (
    DASHES,
    INK,
    MARKERS,
    SERIES,
    Figure,
    canvas,
    finish,
    lambda_axis,
    percent_axis,
    short,
)
from lrqr.show.texts import number, percent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

    from lrqr.results import Candidate, Group, Histogram, Level, Method, Panel, Profile


def calibration(levels: Sequence[Level], nominal: float) -> Figure | None:
    """Coverage reached against the nominal level that was asked for."""
    if len(levels) < 2:
        return None
    x, y = [level.nominal for level in levels], [level.coverage for level in levels]
    with canvas(3.4) as (drawing, axes):
        low = min(*x, *y, *(level.low for level in levels if level.low is not None))
        axes.plot([low, 1], [low, 1], color=INK, linewidth=0.9, dashes=(4, 3), label="as promised")
        if all(level.low is not None and level.high is not None for level in levels):
            lows = [float(level.low or 0) for level in levels]
            highs = [float(level.high or 0) for level in levels]
            axes.fill_between(x, lows, highs, color=SERIES[0], alpha=0.2, linewidth=0)
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


def coverage_bars(groups: Sequence[Group], nominal: float, *, name: str, caption: str) -> Figure | None:
    """Coverage of each group with its interval, beside the promised level."""
    shown = [group for group in groups if group.coverage is not None][:30]
    if not shown:
        return None
    with _rows([f"{short(group.name)} ({group.n})" for group in shown]) as (drawing, axes):
        for place, group in enumerate(shown):
            value = float(group.coverage or 0)
            low = value if group.low is None else group.low
            high = value if group.high is None else group.high
            color = SERIES[1] if group.verdict == "below" else SERIES[0]
            axes.plot([low, high], [place, place], color=color, linewidth=2, alpha=0.7, solid_capstyle="butt")
            face = "none" if group.small else color
            marker = "s" if group.verdict == "below" else "o"
            axes.plot(value, place, marker, color=color, markerfacecolor=face, markersize=6)
        axes.axvline(nominal, color=INK, linewidth=1, dashes=(4, 3))
        percent_axis(axes, "x")
        axes.set_xlabel(f"coverage (promised: {percent(nominal)})")
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
        axes.set(xlabel=unit, ylabel="rows")
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
                lows = np.array([math.nan if value is None else value for value in profile.low])
                highs = np.array([math.nan if value is None else value for value in profile.high])
                known = np.isfinite(lows) & np.isfinite(highs)
                axes.fill_between(
                    np.asarray(profile.x)[known], lows[known], highs[known], color=SERIES[0], alpha=0.2, lw=0
                )
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


def methods(panel: Panel, *, name: str, spread: str = "standard error") -> list[Figure]:
    """Coverage and size of the methods side by side, with their spread."""
    about = f" on {panel.name}" if panel.name else ""
    bars = f" (bars: one {spread} over splits)" if panel.splits and panel.splits > 1 else ""
    figures = [_coverages(panel, name=name, about=about + bars), _sizes(panel, name=name, about=about + bars)]
    return [figure for figure in figures if figure is not None]


def _coverages(panel: Panel, *, name: str, about: str) -> Figure | None:
    shown = [method for method in panel.methods if method.coverage is not None]
    if not shown:
        return None
    with _rows([method.name for method in shown]) as (drawing, axes):
        for place, method in enumerate(shown):
            axes.errorbar(float(method.coverage or 0), place, xerr=_bars(method), **_style(method))
        axes.axvline(panel.nominal, color=INK, linewidth=1, dashes=(4, 3))
        percent_axis(axes, "x")
        axes.set_xlabel(f"coverage (promised: {percent(panel.nominal)})")
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


def _style(method: Method) -> dict[str, Any]:
    ours = method.name.casefold() in {"lrqr", "lr-qr"}
    color, marker = (SERIES[1], "D") if ours else (SERIES[0], "o")
    return {"color": color, "marker": marker, "markersize": 6, "linewidth": 2}


def _bars(method: Method) -> Any:
    if _finite(method.coverage_se):
        return method.coverage_se
    if _finite(method.low) and _finite(method.high) and method.coverage is not None:
        low, high = float(method.low or 0), float(method.high or 0)
        return [[max(method.coverage - low, 0.0)], [max(high - method.coverage, 0.0)]]
    return None


def _finite(value: float | None) -> bool:
    return value is not None and math.isfinite(value)
