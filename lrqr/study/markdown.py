"""The tables of a run as Markdown, the paper's numbers beside ours where they are recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def to_markdown(results: Mapping[str, Any]) -> str:
    """Return one table per shift, and one of the recorded claims, from the results of a run.

    Coverage and its spread are in percent; ± is the standard deviation over splits, as in the paper, and
    "se" the standard error of the mean.
    """
    parts = [f"# {results['title']}", ""]
    if results["paper"]:
        parts += [f"Paper: {results['paper']}. Nominal coverage {results['nominal']:.0%}.", ""]
    for panel in results["panels"]:
        parts += [f"## {panel['name']} ({panel['splits']} splits)", "", *_panel(panel["methods"]), ""]
    if results["checks"]:
        parts += ["## Recorded expectations", "", *_checks(results["checks"]), ""]
    return "\n".join(parts)


def _panel(methods: Sequence[Mapping[str, Any]]) -> list[str]:
    published = any("published_coverage" in row for row in methods)
    head = ["method", "coverage % ± sd (se)", "size (se)", "infinite %", "Δ coverage % (se)"]
    head += ["paper: coverage %", "paper: size"] if published else []
    lines = [_row(head), _row(["---", *["---:"] * (len(head) - 1)])]
    for row in methods:
        cells = [
            row["name"],
            f"{_percent(row['coverage'])} ± {_percent(row['coverage_sd'])} ({_percent(row['coverage_se'])})",
            f"{_number(row['size'])} ({_number(row['size_se'], 2)})",
            _percent(row["infinite"]),
            f"{_percent(row['coverage_difference'], '+')} ({_percent(row['coverage_difference_se'])})",
        ]
        if published:
            spread = row.get("published_coverage_sd")
            paper = _percent(row.get("published_coverage"))
            cells.append(paper if spread is None else f"{paper} ± {_percent(spread)}")
            cells.append(_number(row.get("published_size")))
        lines.append(_row(cells))
    return lines


def _checks(checks: Sequence[Mapping[str, Any]]) -> list[str]:
    head = ["claim", "expected", "found", "", "why"]
    rows = [[row[key] for key in ("claim", "expected", "found", "verdict", "reason")] for row in checks]
    return [_row(head), _row(["---"] * len(head)), *map(_row, rows)]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _percent(value: float | None, sign: str = "") -> str:
    return "–" if value is None else f"{100 * value:{sign}.1f}"


def _number(value: float | None, digits: int = 3) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.{digits}g}"
