"""The page: results and figures poured into the template."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lrqr.errors import UsageError
from lrqr.results import Comparison, Evaluation, Panel, Shift, parse
from lrqr.show import texts
from lrqr.show.plain import CSV_HEAD, to_csv, to_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lrqr.results import Diagnosed
    from lrqr.show.canvas import Figure


def render(results: Mapping[str, Any]) -> str:
    """Return the report on ``results`` as one self-contained HTML page.

    Parameters
    ----------
    results : mapping
        What ``evaluate``, ``compare``, ``reproduce`` or ``diagnose`` found, as ``--format json`` prints it;
        :mod:`lrqr.results` documents every key.

    Returns
    -------
    str
        HTML with inline style and inline SVG: no script, no request to a network or another file.

    Raises
    ------
    DataError
        If the results are of no known kind, or lack or mistype a key.
    """
    # Heavy libraries are loaded here, since `--format json` needs this package too, but no page.
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    from lrqr.stats.diagnosis import PROMISES

    parsed = parse(results)
    environment = Environment(
        loader=PackageLoader("lrqr.show", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(percent=texts.percent, number=texts.number, plain=texts.plain, flat=texts.flat)
    environment.globals.update(
        coverage_words=texts.COVERAGE_WORDS,
        shift_words=PROMISES,
        advice=texts.ADVICE,
        level_of=texts.LEVEL_OF,
        picture=lambda figure: Markup(figure.svg),  # noqa: S704 - drawn by lrqr.show.figures, escaped there
    )
    kind = type(parsed).__name__.lower()
    return environment.get_template(f"{kind}.html.j2").render(page=parsed, figures=_draw(parsed)) + "\n"


def write(results: Mapping[str, Any], path: str | Path, *, force: bool = False) -> tuple[Path, Path, Path]:
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
    for item, text in zip(paths, (render(results), to_json(results), to_csv(results)), strict=True):
        item.write_text(text, encoding="utf-8", newline="\n")
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
            return text.startswith(CSV_HEAD)
        parse(json.loads(text))
    except (OSError, ValueError, TypeError):
        return False
    return True


def _draw(page: Evaluation | Comparison | Diagnosed) -> dict[str, list[Figure]]:
    """Return the figures of each section."""
    if isinstance(page, Evaluation):
        drawn = _draw_evaluation(page)
    elif isinstance(page, Comparison):
        drawn = _draw_comparison(page)
    else:
        drawn = {"shift": _draw_shift(page)}
    return {section: [item for item in items if item is not None] for section, items in drawn.items()}


def _draw_shift(shift: Shift | None) -> list[Figure | None]:
    from lrqr.show import shift_figures

    if shift is None:
        return []
    return [
        shift_figures.overlap(shift.overlap),
        shift_figures.concentration(shift.concentration),
        shift_figures.differences(shift.features),
    ]


def _draw_evaluation(page: Evaluation) -> dict[str, list[Figure | None]]:
    from lrqr.show import figures

    unit = size_name(page)
    by_size = f"Coverage by {'length' if page.task == 'regression' else 'size'}"
    panel = Panel(nominal=page.nominal, methods=page.methods)
    return {
        "coverage": [figures.calibration(page.levels, page.nominal)],
        "size": [figures.sizes(page.size.histogram, unit=unit, median=page.size.median)],
        "groups": [
            figures.coverage_bars(page.groups, page.nominal, name="groups", caption="Coverage by group")
        ],
        "by_size": [figures.coverage_bars(page.by_size, page.nominal, name="by-size", caption=by_size)],
        "shift": _draw_shift(page.shift),
        "methods": list(figures.methods(panel, name="methods")),
        "thresholds": list(figures.profiles(page.profiles)),
        "selection": [figures.selection(page.selection, page.criterion)],
    }


def _draw_comparison(page: Comparison) -> dict[str, list[Figure | None]]:
    from lrqr.show import figures

    drawn: dict[str, list[Figure | None]] = {
        f"panel-{index}": list(figures.methods(panel, name=f"methods-{index}", spread=page.spread))
        for index, panel in enumerate(page.all_panels())
    }
    drawn["shift"] = _draw_shift(page.shift)
    return drawn


def size_name(page: Evaluation) -> str:
    """Return what a size is called: the length of an interval or the number of classes in a set."""
    if page.task == "classification":
        return "number of classes in a set"
    return f"interval length ({page.outcome})" if page.outcome else "interval length"
