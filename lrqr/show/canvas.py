"""Drawing with matplotlib so that the page owns the colors: light, dark and print share one SVG.

matplotlib draws in stand-in colors; :func:`finish` replaces them by ``currentColor`` and CSS variables,
keeps texts as texts, makes the ids unique in the page, and says in words what the picture shows.
"""

from __future__ import annotations

import io
import re
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import FuncFormatter, NullFormatter

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from matplotlib.axes import Axes

INK, GRID = "#010101", "#020202"
SERIES = ("#0a0a01", "#0a0a02", "#0a0a03", "#0a0a04", "#0a0a05", "#0a0a06")
_CSS = {INK: "currentColor", GRID: "var(--grid)"} | {
    color: f"var(--series-{index})" for index, color in enumerate(SERIES, start=1)
}
MARKERS = ("o", "s", "^", "D", "v", "P")
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1)), (0, (1, 1)))
_WIDTH = 4.4  # inches; narrow, so that a phone need not shrink the letters much
_STYLE: Any = {
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
    """A picture: its name in the page, its caption, what it shows in words, and the SVG itself."""

    name: str
    caption: str
    description: str
    svg: str


@contextmanager
def canvas(height: float) -> Iterator[tuple[Canvas, Axes]]:
    """Yield an empty figure, ``height`` inches high, and its axes, in the report's style."""
    with mpl.rc_context(_STYLE):
        drawing = Canvas(figsize=(_WIDTH, height))
        yield drawing, drawing.subplots()


def short(text: str, longest: int = 24) -> str:
    """Return ``text``, cut with an ellipsis when longer than ``longest``."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def percent_axis(axes: Axes, which: str) -> None:
    """Label the axes in ``which`` ("x", "y" or "xy") in percent."""
    formatter = FuncFormatter(lambda value, _: f"{100 * value:.4g}%")
    if "x" in which:
        axes.xaxis.set_major_formatter(formatter)
    if "y" in which:
        axes.yaxis.set_major_formatter(formatter)


def lambda_axis(axes: Axes, values: Sequence[float]) -> None:
    """Make the x axis one of λ: logarithmic when the values span much, with a place for 0."""
    positive = [value for value in values if value > 0]
    if positive and max(positive) > 20 * min(positive):
        axes.set_xscale("symlog" if min(values) <= 0 else "log", **_linear_part(values, positive))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_xlabel("regularization λ")


def _linear_part(values: Sequence[float], positive: Sequence[float]) -> dict[str, float]:
    return {"linthresh": min(positive)} if min(values) <= 0 else {}


def finish(drawing: Canvas, name: str, caption: str, description: str) -> Figure:
    """Return the drawing as SVG that fits into the page."""
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
    return Figure(name, caption, description, re.sub(r"<svg[^>]*>", lambda _: head, svg, count=1))
