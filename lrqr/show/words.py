"""Values in words, as JSON and as CSV: the same everywhere that a result is shown."""

from __future__ import annotations

import csv
import io
import json
import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from lrqr.results import Certificate, Labels, Result

MISSING = "–"
_FORMULAS = ("=", "+", "-", "@", "\t", "\r")
_JOINERS = "\u200c\u200d"  # which some scripts and emoji need between letters
_ANY = 1000.0  # by so much no ratio is off
_LONGEST = 1e15  # from here on the digits are no longer exact

VERDICTS = {
    "below": "below the promise: even the upper end of the interval lies under it",
    "compatible": "compatible with the promise: it lies inside the interval",
    "above": "above the promise: safe, but larger than needed",
}
"""What the verdict on a coverage means."""

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
"""How good a verdict is: the color of its badge."""


# ---------------------------------------------------------------------------------------- numbers


def percent(value: float | None, digits: int = 1) -> str:
    """Return a share as a percentage without needless zeros: 0.9 -> "90%", 0.9123 -> "91.2%"."""
    if value is None or math.isnan(value):
        return MISSING
    if math.isinf(value):
        return number(value)
    text = f"{100 * value:.{digits}f}"
    return number(float(text), len(text)) + "%"


def fixed_percent(value: float | None, sign: str = "", unit: str = " %") -> str:
    """Return a share as a percentage with one decimal, for columns of text: 0.9 -> "90.0 %"."""
    return MISSING if value is None else f"{100 * value:{sign}.1f}{unit}"


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


def short_number(value: float, digits: int = 4, sign: str = "") -> str:
    """Return a number for the terminal, to copy from, with ``digits`` significant digits.

    Integers, and numbers with more digits than that before the point, are written whole: 121234.5 as 121234.
    """
    if isinstance(value, int):
        return str(value)
    if not math.isfinite(value):
        return number(value)
    long = 10.0**digits - 0.5 <= abs(value) < _LONGEST
    return f"{value:{sign}.0f}" if long else f"{value:{sign}.{digits}g}"


def visible(text: str) -> str:
    """Return a text from a user's file with its control characters and marks of direction spelled out.

    Names may hold escape sequences, which a terminal obeys, or marks that reorder what stands around them.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in _JOINERS else ascii(c)[1:-1] for c in text)


def plain(value: Any, figure: Callable[[float], str] = number) -> str:
    """Return any value for a reader, with numbers as ``figure`` writes them."""
    if value is None or value == "":
        return MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return figure(value)
    if isinstance(value, list | tuple):
        return ", ".join(plain(item, figure) for item in value)
    return visible(str(value))


def cell(value: Any) -> str:
    """Return any value for the terminal."""
    return plain(value, short_number)


def flat(values: Mapping[str, Any], above: str = "") -> list[tuple[str, str]]:
    """Return nested facts as (name, text) pairs, the names of what is nested joined by dots."""
    pairs: list[tuple[str, str]] = []
    for key, value in values.items():
        name = f"{above} · {key}" if above else str(key)
        if isinstance(value, dict) and value:
            pairs += flat(value, name)
        else:
            pairs.append((name.replace("_", " "), plain(value)))
    return pairs


def certified(found: Certificate, *, brief: bool = False) -> list[str]:
    """Say in one line each: the bound, how far the ratios may be off, and how much they can be trusted.

    ``brief`` leaves the last one out unless they cannot be trusted.
    """
    whom = "of the target"
    if found.answered is not None:
        whom = f"of the answered rows ({fixed_percent(found.answered)} of the target)"
    bound = f"{100 * found.confidence:.0f} % sure: at least {fixed_percent(found.lower_bound)} {whom}"
    trust = _trust(found)
    lines = [f"{bound} is covered, if only the features shifted", _robust(found)]
    return lines if brief and ":" not in trust else [*lines, trust]


def _robust(found: Certificate) -> str:
    floor, factor = fixed_percent(found.at_least).replace(".0 %", " %"), found.sensitivity or 0.0
    if factor == 0.0:
        return f"by estimate not at least {floor}, even if the likelihood ratios are exact"
    if factor > _ANY:
        return f"by estimate at least {floor}, however far the likelihood ratios are off"
    return f"even if the likelihood ratios were off by a factor of {factor:.2g}, by estimate at least {floor}"


def _trust(found: Certificate) -> str:
    from lrqr.stats.certificate import TAIL_TOO_HEAVY  # late: it takes scipy and scikit-learn

    worth = f"the likelihood ratios leave {found.effective_size or 0.0:.0f} effective rows"
    if found.pareto_k is None or math.isinf(found.pareto_k):
        return worth
    heavy = ": too heavy a tail to trust them, however many rows" if found.pareto_k > TAIL_TOO_HEAVY else ""
    return f"{worth}, Pareto k {found.pareto_k:.2f}{heavy}"


def learned(found: Labels) -> list[str]:
    """Say what labeled target rows tell of the fit without them, and how they changed it."""
    reached = f"{fixed_percent(found.coverage)} ({between(found.low, found.high)})"
    says = "contradict" if found.contradicted else "do not contradict"
    p = f"p = {cell(found.p_coverage)} by coverage, {cell(found.p_scores)} by scores"
    seen = f"a drop to {fixed_percent(found.drop)} is seen in {fixed_percent(found.power)} of cases"
    shape = {1.0: "the source's", 0.0: "a constant"}.get(
        found.share or 0.0, "half the source's, half a constant"
    )
    level = f"{fixed_percent(found.target_mass)} of their level is from the labels, the rest from the source"
    return [
        f"without them the thresholds cover {reached} of {found.n} labeled target rows",
        f"they {says} that only the features shifted ({p}; with so many rows {seen})",
        f"thresholds now have {shape} shape; {level}",
    ]


def between(low: float | None, high: float | None) -> str:
    """Return an interval of shares."""
    return f"{fixed_percent(low)} to {fixed_percent(high)}"


# ----------------------------------------------------------------------------------- JSON and CSV


def to_json(result: Result) -> str:
    """Return a result as strict JSON: infinities become the strings "inf" and "-inf", NaN null."""
    return json.dumps(_strict(result.to_dict()), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _strict(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _strict(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_strict(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value


def to_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return records as CSV; the columns are the keys of all of them, in the order of their appearance."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _inert(value) for name, value in row.items()} for row in rows)
    return buffer.getvalue()


def _inert(value: Any) -> Any:
    """Quote a text that a spreadsheet would run as a formula; numbers stay as they are."""
    if not isinstance(value, str) or not value.startswith(_FORMULAS):
        return value
    try:
        float(value)
    except ValueError:
        return "'" + value
    return value


def flatten(result: Result) -> list[tuple[str, str]]:
    """Return a result as pairs of a path and a value: ``("groups.0.coverage", "0.91")``."""
    rows: list[tuple[str, str]] = []

    def walk(path: str, value: Any) -> None:
        if isinstance(value, dict | list):
            for key, item in value.items() if isinstance(value, dict) else enumerate(value):
                walk(f"{path}.{key}" if path else str(key), item)
        else:
            rows.append((path, "" if value is None else str(value)))

    walk("", _strict(result.to_dict()))
    return rows
