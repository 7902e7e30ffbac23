"""Draw a picture twice, for light and for dark pages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure

FOLDER = Path("docs/figures/gallery")
INK = {"light": "#303030", "dark": "#e0e0e0"}
INKED = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
ORANGE, BLUE, GREY = "#e07b39", "#3f8fd2", "#8c8c8c"


def save(name: str, draw: Callable[[], Figure]) -> None:
    """Write ``name-light.svg`` and ``name-dark.svg``: transparent, and the same bytes each time."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for theme, ink in INK.items():
        style = dict.fromkeys(
            ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), ink
        )
        fixed = {
            "svg.hashsalt": "lrqr",
            "font.size": 11,
            "axes.spines.top": False,
            "axes.spines.right": False,
        }
        with plt.rc_context({**style, **fixed}):
            figure = draw()
            figure.savefig(
                FOLDER / f"{name}-{theme}.svg", transparent=True, bbox_inches="tight", metadata={"Date": None}
            )
            plt.close(figure)
