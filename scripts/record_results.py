"""Keep what an experiment found, and write the numbers of the pages about it from what is kept.

``python scripts/record_results.py RUN/communities RUN/mmlu`` turns the ``results.csv`` of each run into
``docs/results/NAME.csv``, one row per split, method and ridge, copies its figure, and rewrites the numbers;
without arguments it rewrites the numbers only.

A table follows a line like ``<!-- table communities coverage -->`` and ends with a blank line: rows are
methods (those that match the pattern after ``rows``, if there is one), columns are the listed metrics of each
shift, means over splits. A single number comes before ``<!--communities; SCP; coverage; racepctblack-->``;
without a shift it is the mean over shifts. ``distance`` is that of a shift's mean coverage from 90 %, and
``<!--communities; splits-->`` follows the number of splits.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pandas as pd

DOCS = Path(__file__).parents[1] / "docs"
COLUMNS = [
    "split",
    "method",
    "ridge",
    "coverage",
    "size",
    "infinite",
    "shift",
    "regularization",
    "effective_size",
    "auc",
    "size_matched",
    "contradicted",
]
PAGES = ("reproduction.md", "natural-shifts.md")
# what a metric is multiplied with, its decimals, and its heading
METRICS = {
    "coverage": (100.0, 1, "coverage %"),
    "deviation": (100.0, 1, "sd"),
    "distance": (100.0, 1, "distance"),
    "size": (1.0, 2, "size"),
    "infinite": (100.0, 0, "infinite %"),
    "regularization": (1.0, 3, "λ"),
    "effective_size": (1.0, 0, "effective size"),
    "auc": (1.0, 3, "AUC"),
    "size_matched": (1.0, 2, "matched size"),
    "contradicted": (100.0, 0, "contradicted %"),
}
MARK = re.compile(r"<!-- table (\S+) ([a-z_,]+)(?: rows (.+?))? -->\n(?:\|.*\n)*")
NUMBER = re.compile(r"[\d.]+<!--([\w-]+); ([^;]+?)(?:; (\w+)(?:; ([^;]+?))?)?-->")


def main(folders: list[str]) -> None:
    """Record the runs in these folders and rewrite the numbers."""
    for folder in map(Path, folders):
        runs = pd.read_csv(folder / "results.csv")
        target = DOCS / "results" / f"{folder.name}.csv"
        runs[COLUMNS].to_csv(target, index=False, float_format="%.6g", lineterminator="\n")
        for suffix in (".svg", ".png"):
            shutil.copyfile(folder / f"figure{suffix}", DOCS / "figures" / f"{folder.name}{suffix}")
    for page in (DOCS / name for name in PAGES):
        page.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")


def filled(page: str) -> str:
    """Return the page with its tables and numbers made anew."""
    page = MARK.sub(lambda mark: mark[0].partition("\n")[0] + "\n" + table(*mark.groups()), page)
    return NUMBER.sub(lambda mark: number(*mark.groups()) + "<!--" + mark[0].partition("<!--")[2], page)


def means(name: str, metric: str) -> pd.Series[float]:
    """Return the printed value of every method and shift of an experiment."""
    runs = pd.read_csv(DOCS / "results" / f"{name}.csv")
    column = metric if metric in runs else "coverage"
    groups = runs.groupby(["method", "shift"], sort=False)[column]
    values = groups.std() if metric == "deviation" else groups.mean()
    return METRICS[metric][0] * ((values - 0.9).abs() if metric == "distance" else values)


def number(name: str, method: str, metric: str | None, shift: str | None) -> str:
    """Return one number."""
    if metric is None:
        return str(pd.read_csv(DOCS / "results" / f"{name}.csv")["split"].nunique())
    values = means(name, metric)[method]
    return f"{values.mean() if shift is None else values[shift]:.{METRICS[metric][1]}f}"


def table(name: str, metrics: str, rows: str | None) -> str:
    """Return one table as Markdown."""
    columns = {metric: means(name, metric) for metric in metrics.split(",")}
    methods, shifts = (
        list(level) for level in map(dict.fromkeys, zip(*next(iter(columns.values())).index, strict=True))
    )
    head = [
        METRICS[metric][2] if len(shifts) == 1 else shift + f", {METRICS[metric][2]}" * (len(columns) > 1)
        for metric in columns
        for shift in shifts
    ]
    lines = [[f"{number(name, 'splits', None, None)} splits", *head], ["---", *["---:"] * len(head)]]
    for method in methods:
        if rows is None or re.search(rows, method):
            cells = [(columns[m][method][shift], METRICS[m][1]) for m in columns for shift in shifts]
            lines.append([method, *(f"{value:.{decimals}f}" for value, decimals in cells)])
    return "".join("| " + " | ".join(cells) + " |\n" for cells in lines)


if __name__ == "__main__":
    main(sys.argv[1:])
