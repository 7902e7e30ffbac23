"""Numbers and verdicts in words, the same in the page and in the figures."""

from __future__ import annotations

import math
from typing import Any

MISSING = "–"


def percent(value: float | None, digits: int = 1) -> str:
    """Return a share as a percentage: 0.9 -> "90%", 0.9123 -> "91.2%"."""
    if value is None or math.isnan(value):
        return MISSING
    if math.isinf(value):
        return number(value)
    text = f"{100 * value:.{digits}f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text) + "%"


def number(value: float | None, digits: int = 4) -> str:
    """Return a number with ``digits`` significant digits and no needless zeros; infinity as ∞."""
    if value is None or math.isnan(value):
        return MISSING
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value == int(value) and abs(value) < 1e9:
        return f"{int(value):,}".replace("-", "−")
    if abs(value) >= 10 ** (digits - 1):
        return f"{value:,.{1 if abs(value) < 10**digits else 0}f}".replace("-", "−")
    return f"{value:.{digits}g}".replace("-", "−")


def plain(value: Any) -> str:
    """Return any value of a model or provenance table for a reader."""
    if value is None or value == "":
        return MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return number(value)
    if isinstance(value, dict):
        return ", ".join(f"{key}: {plain(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(plain(item) for item in value)
    return str(value)


COVERAGE_WORDS = {
    "below": "below the promise: even the upper end of the interval lies under it",
    "compatible": "compatible with the promise: it lies inside the interval",
    "above": "above the promise: the sets are larger than they need to be",
}

SHIFT_WORDS = {
    "no shift detected": "Source and target look alike; plain split conformal prediction would do here.",
    "shift within reach": (
        "Source and target differ, and enough source rows look like the target for a correction to work."
    ),
    "little overlap": (
        "Few source rows look like the target. Thresholds rest on those few or on extrapolation: "
        "check the coverage on some labeled target rows before relying on it."
    ),
    "no overlap": (
        "Most target rows lie where there is no source row. No method can promise coverage there "
        "from these data; labels from the target are needed."
    ),
}

LEVEL_OF = {
    "below": "bad",
    "compatible": "good",
    "above": "fair",
    "no shift detected": "good",
    "shift within reach": "good",
    "little overlap": "fair",
    "no overlap": "bad",
    "agree": "good",
    "holds": "good",
    "differ": "bad",
    "fails": "bad",
}
