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
    return number(float(text), len(text)) + "%"


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
    if isinstance(value, list | tuple):
        return ", ".join(plain(item) for item in value)
    return str(value)


def flat(values: dict[str, Any], above: str = "") -> list[tuple[str, str]]:
    """Return nested facts as (name, text) pairs, the names of what is nested joined by dots."""
    pairs: list[tuple[str, str]] = []
    for key, value in values.items():
        name = f"{above} · {key}" if above else str(key)
        if isinstance(value, dict) and value:
            pairs += flat(value, name)
        else:
            pairs.append((name.replace("_", " "), plain(value)))
    return pairs


COVERAGE_WORDS = {
    "below": "below the promise: even the upper end of the interval lies under it",
    "compatible": "compatible with the promise: it lies inside the interval",
    "above": "above the promise: the sets are larger than they need to be",
}

ADVICE = {
    "below": (
        "What to do: see which groups fall short; label some target rows and calibrate on them. The "
        "correction is for features that changed; if the same features now mean another outcome, only labels "
        "help."
    ),
    "compatible": "",
    "above": "What to do: nothing must be done. Another method, or more target rows, may give smaller sets.",
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
