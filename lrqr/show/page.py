"""A result as one self-contained HTML page, with the same numbers as JSON and CSV beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from lrqr.data.writing import write_texts
from lrqr.errors import UsageError
from lrqr.results import Comparison, Evaluation, Panel, parse
from lrqr.show import figures, words
from lrqr.show.text import won
from lrqr.stats.diagnosis import PROMISES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lrqr.results import Reported, Shift
    from lrqr.show.figures import Figure

_CSV_HEAD = "quantity,value\n"


def render(result: Reported) -> str:
    """Return the report on what ``evaluate``, ``compare``, ``reproduce`` or ``diagnose`` found as HTML.

    Style and figures (SVG) are inside the page: no script, no request to a network or another file.
    """
    environment = Environment(
        loader=PackageLoader("lrqr.show", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: words.visible(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        {name: getattr(words, name) for name in ("percent", "number", "flat", "certified", "learned")}
    )
    environment.globals.update(
        verdicts=words.VERDICTS,
        shift_words=PROMISES,
        level_of=words.LEVEL_OF,
        won=won,
        picture=lambda figure: Markup(figure.svg),  # noqa: S704 - drawn by lrqr.show.figures, escaped there
    )
    template = environment.get_template(f"{type(result).__name__.lower()}.html.j2")
    return template.render(page=result, figures=draw(result)) + "\n"


def card(rows: Sequence[tuple[str, Any]]) -> str:
    """Return pairs of words and values as an HTML table, for notebooks."""
    line = Markup(
        '<tr><th style="text-align:left;vertical-align:top">{}</th><td style="text-align:left">{}</td></tr>'
    )
    body = Markup("").join(
        line.format(words.visible(name), words.visible(words.cell(value))) for name, value in rows
    )
    return str(Markup('<table class="lrqr">{}</table>').format(body))


def write(result: Reported, path: str | Path, *, force: bool = False) -> tuple[Path, Path, Path]:
    """Write the page to ``path`` and the same numbers as ``.json`` and ``.csv`` beside it.

    Returns
    -------
    tuple of Path
        The page; the JSON; the CSV, whose columns are ``quantity``, such as ``groups.0.coverage``, and
        ``value``.

    Raises
    ------
    UsageError
        As `check_free`; nothing is then written.
    """
    paths = check_free(path, force=force)
    numbers = words.to_csv([{"quantity": path, "value": value} for path, value in words.flatten(result)])
    write_texts(dict(zip(paths, (render(result), words.to_json(result), numbers), strict=True)))
    return paths


def check_free(path: str | Path, *, force: bool = False) -> tuple[Path, Path, Path]:
    """Return the page, the JSON and the CSV that `write` would write (worth asking before the work).

    Raises
    ------
    UsageError
        If there is no such folder; if one of the three exists and ``force`` is False; or, with ``force`` too,
        if what is beside the page is no report of lrqr: ``test.html`` must not replace the data in
        ``test.csv``.
    """
    page = Path(path)
    if page.suffix.lower() not in {".html", ".htm"}:
        page = page.with_name(page.name + ".html")
    if not page.parent.is_dir():
        raise UsageError(f"{page}: the directory {page.parent} does not exist; make it first")
    paths = (page, page.with_suffix(".json"), page.with_suffix(".csv"))
    there = [item for item in paths if item.exists()]
    strange = [str(item) for item in there if item != page and not _is_report(item)]
    if strange:
        raise UsageError(
            f"the report {page} brings its numbers beside it, and {', '.join(strange)} would be overwritten, "
            "which is no report of lrqr; give the report another name"
        )
    if there and not force:
        verb = "exists" if len(there) == 1 else "exist"
        raise UsageError(
            f"{', '.join(map(str, there))} {verb} already; pass --force (force=True) to replace a report, or "
            "choose another name"
        )
    return paths


def _is_report(path: Path) -> bool:
    """Whether a JSON or CSV file was written with a report."""
    try:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".csv":
            return text.startswith(_CSV_HEAD)
        parse(json.loads(text))
    except (OSError, ValueError, TypeError):
        return False
    return True


def draw(result: Reported) -> dict[str, list[Figure]]:
    """Return the figures of each section."""
    drawn: dict[str, Sequence[Figure | None]] = {}
    if isinstance(result, Evaluation):
        drawn = _draw_evaluation(result)
    elif isinstance(result, Comparison):
        drawn = {
            f"panel-{index}": figures.methods(panel, name=f"methods-{index}")
            for index, panel in enumerate(result.all_panels())
        }
    else:
        drawn = {"shift": _draw_shift(result)}
    return {section: [item for item in items if item is not None] for section, items in drawn.items()}


def _draw_shift(shift: Shift | None) -> list[Figure | None]:
    if shift is None:
        return []
    return [
        figures.overlap(shift.overlap),
        figures.concentration(shift.concentration),
        figures.differences(shift.features),
    ]


def _draw_evaluation(page: Evaluation) -> dict[str, Sequence[Figure | None]]:
    bars = figures.coverage_bars
    of = "length" if page.task == "regression" else "size"
    return {
        "examples": [figures.intervals(page.examples, outcome=page.outcome, nominal=page.nominal)],
        "coverage": [figures.calibration(page.levels, page.nominal)],
        "size": [figures.sizes(page.size.histogram, unit=size_name(page), median=page.size.median)],
        "groups": [bars(page.groups, page.nominal, name="groups", caption="Coverage by group")],
        "by_size": [bars(page.by_size, page.nominal, name="by-size", caption=f"Coverage by {of}")],
        "shift": _draw_shift(page.shift),
        "methods": figures.methods(Panel(nominal=page.nominal, methods=page.methods), name="methods"),
        "thresholds": figures.profiles(page.profiles),
        "selection": [figures.selection(page.selection, page.criterion)],
    }


def size_name(page: Evaluation) -> str:
    """Return what a size is called: the length of an interval or the number of classes in a set."""
    if page.task == "classification":
        return "number of classes in a set"
    return f"interval length ({page.outcome})" if page.outcome else "interval length"
