"""The figures of the shift between source and target."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lrqr.show.canvas import DASHES, INK, SERIES, Figure, canvas, finish, percent_axis, short
from lrqr.show.texts import percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lrqr.results import Concentration, Feature, Overlap


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
    with canvas(0.9 + 0.26 * len(shown)) as (drawing, axes):
        values = [float(feature.standardized_difference or 0) for feature in shown]
        for place, value in enumerate(values):
            axes.plot([0, value], [place, place], color=SERIES[0], linewidth=2)
        axes.plot(values, range(len(shown)), "o", color=SERIES[0], markersize=5)
        axes.axvline(0, color=INK, linewidth=0.8)
        axes.set_yticks(range(len(shown)), [short(feature.name) for feature in shown])
        axes.set_ylim(len(shown) - 0.5, -0.5)
        axes.grid(visible=False, axis="y")
        axes.set_xlabel("standardized difference")
        caption = "Most shifted features: target minus source, in standard deviations"
        words = "Standardized differences of the most shifted features: " + ", ".join(
            f"{feature.name} {value:+.2f}" for feature, value in zip(shown[:5], values[:5], strict=True)
        )
        return finish(drawing, "differences", caption, words + ".")
