"""Results as text for people, JSON or CSV for programs: one layout for each kind of result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lrqr.show.terminal import cell, fitting, percent, table, to_csv, wrapped

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Results = dict[str, Any]

_VERDICTS = {
    "below": "BELOW the promise: the interval lies under it",
    "compatible": "compatible with the promise: the interval holds it",
    "above": "above the promise: safe, but larger than needed",
}


_GROUPS = 20  # as many are shown
_CLIPPED = "infinite thresholds count as the largest calibration score in sizes"
_BELOW = (
    "these rows may differ from the target of the fit, or the outcome may depend on the features in another "
    "way than in the source, which no weighting can repair"
)

_BELOW_SPLIT = "split takes no account of the shift: calibrate with --method lrqr"


def render(kind: str, results: Results, output_format: str) -> str:
    """Write results of a kind as ``table``, ``json`` or ``csv``."""
    if output_format == "json":
        from lrqr.show.plain import to_json

        return to_json(results)
    if output_format == "csv":
        return to_csv(_records(kind, results))
    text = {
        "evaluation": _evaluation,
        "comparison": _comparison,
        "diagnosis": _diagnosis,
        "model": _model,
        "schema": _schema,
        "experiments": _experiments,
        "datasets": _datasets,
        "dataset": _dataset,
        "verification": _verification,
    }[kind](results)
    return text.rstrip() + "\n"


def _records(kind: str, results: Results) -> list[dict[str, Any]]:
    """Return the rows of the CSV: the list that a result is about, or else key and value."""
    lists = {
        "comparison": "methods",
        "schema": "columns",
        "experiments": "experiments",
        "datasets": "datasets",
        "verification": "files",
    }
    rows: Sequence[Mapping[str, Any]] = results.get(lists.get(kind, ""), [])
    if kind == "comparison" and "panels" in results:
        rows = [{"panel": panel["name"], **row} for panel in results["panels"] for row in panel["methods"]]
    if rows:
        return [{key: _flat(value) for key, value in row.items()} for row in rows]
    from lrqr.show.plain import to_rows

    return [{"key": key, "value": value} for key, value in to_rows(results)]


def _flat(value: Any) -> Any:
    return "; ".join(map(str, value)) if isinstance(value, list | tuple) else value


# ---------------------------------------------------------------------------------------------- layouts


def _evaluation(results: Results) -> str:
    coverage, nominal, size = results["coverage"], results["nominal"], results["size"]
    weighted = results["weighted_coverage"]
    rows: list[tuple[str, str]] = [("rows", str(results["n"])), ("promised coverage", percent(nominal))]
    if coverage is None:
        rows.append(("coverage", "not known: the file has no outcomes"))
        value = f"{percent(weighted['value'])} ± {percent(weighted['se'])} (standard error)"
        rows.append(("weighted source coverage", value))
        rows.append(("", "measured on the source, weighted towards the target: as good as those weights"))
    else:
        interval = f"{percent(coverage['low'])} to {percent(coverage['high'])}"
        rows.append(("coverage", f"{percent(coverage['value'])}  (95 % interval {interval})"))
        rows.append(("verdict", _VERDICTS[coverage["verdict"]]))
        if coverage["verdict"] == "below":
            rows.append(("", _BELOW_SPLIT if results["model"]["method"] == "split" else _BELOW))
    of = {"set": "set size", "interval": "interval length", "threshold": "threshold"}[size["of"]]
    finite = " of the finite ones" if 0.0 < (size["infinite"] or 0.0) < 1.0 and size["of"] != "set" else ""
    rows.append((of, f"mean {cell(size['mean'])}{finite}, median {cell(size['median'])}"))
    shares = ("infinite", "empty") if size["of"] == "interval" else ("infinite", "empty", "full", "singleton")
    rows.append(
        ("shares", ", ".join(f"{name} {percent(size[name])}" for name in shares if size[name] is not None))
    )
    if results["interval_score"] is not None:
        rows.append(("interval score", f"{cell(results['interval_score'])}{finite}"))
    slab = results["worst_slab"]
    if slab:
        interval = f"{percent(slab['low'])} to {percent(slab['high'])}"
        rows.append(("worst slab", f"{percent(slab['coverage'])} of {slab['n']} held-out rows ({interval})"))
    shift = results["shift"]
    effective = f"effective size {shift['effective_size']:.0f} of {shift['n_source']}"
    rows.append(("shift", f"{shift['verdict']}; domain AUC {shift['auc']:.2f}, {effective}"))
    if shift["remark"]:
        rows.append(("", f"{shift['promise']} {shift['remark']}"))
    rows.append(("outside support", percent(shift["outside_support_here"]) + " of these rows"))
    blocks = [_pairs(results["title"], rows)]
    if results["groups"]:
        blocks.append(_groups(f"by {results['group_column']}", results["groups"]))
    if results["by_size"]:
        blocks.append(_groups(f"by {of}", results["by_size"], of.rpartition(" ")[2]))
    blocks.append(_methods("the same rows by other methods", results["methods"]))
    return "\n\n".join(blocks)


def _groups(title: str, groups: Sequence[Mapping[str, Any]], name: str = "group") -> str:
    rows = [
        (
            row["name"],
            row["n"],
            percent(row["coverage"]),
            f"{percent(row['low'])} to {percent(row['high'])}",
            row["verdict"] + (" (few rows)" if row.get("small") else ""),
            row.get("size"),
        )
        for row in groups[:_GROUPS]
    ]
    columns = (name, "n", "coverage", "interval (Holm)", "verdict", "mean size")
    more = (
        f"\n and {len(groups) - _GROUPS} more: --format json has them all." if len(groups) > _GROUPS else ""
    )
    return table(columns, rows, title=title) + more


def _methods(title: str, methods: Sequence[Mapping[str, Any]]) -> str:
    judged = ("coverage", "95 % interval") if all("coverage" in row for row in methods) else ()
    rows = []
    for row in methods:
        found = (
            [percent(row["coverage"]), f"{percent(row['low'])} to {percent(row['high'])}"] if judged else []
        )
        size = row.get("size_clipped", row["size"])
        rows.append((row["name"], *found, size, percent(row["infinite"])))
    laid_out = table(("method", *judged, "mean size", "infinite"), rows, title=title)
    clipped = any("size_clipped" in row for row in methods)
    return laid_out + (f"\n {_CLIPPED}." if clipped else "")


def _comparison(results: Results) -> str:
    panels = results.get("panels") or [results | {"name": results["title"]}]
    columns = ("method", "coverage", "size", "infinite", "Δ coverage", "Δ size", "seconds")
    blocks = []
    left_out: dict[str, None] = {}
    for panel in panels:
        rows = [
            (
                row["name"],
                _plus_minus(row["coverage"], row["coverage_se"], 100.0, " %"),
                # where infinite thresholds are clipped to the largest calibration score
                _plus_minus(row.get("size_clipped", row["size"]), row.get("size_clipped_se", row["size_se"])),
                percent(row["infinite"]),
                *_differences(row, results["reference"]),
                row["seconds"],
            )
            for row in panel["methods"]
        ]
        title = f"{panel['name']}: promised {percent(panel['nominal'])}, splits: {panel['splits']}"
        shown, cut, lost = fitting(columns, rows, ("seconds", "Δ size", "Δ coverage"))
        blocks.append(table(shown, cut, title=title))
        left_out |= dict.fromkeys(lost)
    notes = (
        f"Means ± standard errors over splits; Δ: paired difference to {results['reference']}, of coverage "
        f"in percentage points; {_CLIPPED}."
    )
    lines = [notes]
    if left_out:
        lines.append(f"For want of room without {', '.join(left_out)}: see --format csv or a wider terminal.")
    lines += [
        f"{check['verdict']}: {check['claim']} {check['found']} (expected {check['expected']})"
        for check in results.get("checks", [])
    ]
    return "\n\n".join([*blocks, "\n".join(wrapped(line, rest="  ") for line in lines)])


def _differences(row: Mapping[str, Any], reference: str) -> tuple[str, str]:
    if row["name"] == reference:
        return "–", "–"
    return (
        _plus_minus(row["coverage_difference"], row["coverage_difference_se"], 100.0, sign="+"),
        _plus_minus(row["size_difference"], row["size_difference_se"], sign="+"),
    )


def _plus_minus(
    value: float | None, error: float | None, scale: float = 1.0, unit: str = "", sign: str = ""
) -> str:
    if value is None:
        return "–"
    shown = f"{scale * value:{sign}.4g}{unit}"
    return shown if error is None else f"{shown} ±{scale * error:.2g}"


def _diagnosis(results: Results) -> str:
    auc = f"{results['auc']:.3f}  (95 % interval {results['auc_low']:.3f} to {results['auc_high']:.3f})"
    effective = f"{results['effective_size']:.1f} of {results['n_source']} source rows"
    rows = [
        ("verdict", f"{results['verdict']} (for a coverage of {percent(results['nominal'])})"),
        ("what may be promised", results["promise"]),
        ("rows", f"{results['n_source']} source, {results['n_target']} target"),
        ("domain AUC", auc),
        ("effective size", effective),
        ("largest weight", percent(results["largest_weight"]) + " of the total on one row"),
        ("outside support", percent(results["outside_support"]) + " of the target rows"),
        ("negative mass", percent(results["negative_mass"]) + " of the least-squares ratio"),
    ]
    columns = results["columns"]
    rows += [
        (f"columns only in the {side}", ", ".join(columns[f"only_{side}"]))
        for side in ("source", "target")
        if columns[f"only_{side}"]
    ]
    rows += [
        (f"{c['name']}", f"{c['source']} in the source, {c['target']} in the target")
        for c in columns["changed_types"]
    ]
    rows += [
        (f"{c['name']}", f"{c['rows']} target rows hold categories never seen: {', '.join(c['categories'])}")
        for c in columns["unseen_categories"]
    ]
    features = [
        (f["name"], f["standardized_difference"], f["coefficient"], f["mean_source"], f["mean_target"])
        for f in results["features"][:10]
    ]
    names = ("feature", "difference", "coefficient", "source mean", "target mean")
    return "\n\n".join(
        [
            _pairs("source and target", rows),
            table(
                names, features, title="most shifted features: difference of the means in standard deviations"
            ),
        ]
    )


def _model(results: Results) -> str:
    fit, shift = results["fit"], results["shift"]
    roles = [(name, value) for name, value in results["roles"].items() if value]
    chosen = [(k, v) for k, v in fit.items() if k not in ("parameters", "selection", "thresholds")]
    about = [("score", results["score"]), ("base learner", results["base"]), *chosen, *roles]
    about.append(("shift", f"{shift['verdict']}: {shift['promise']}"))
    blocks = [_pairs("model", about)]
    if results["coefficients"]:
        ranked = sorted(results["coefficients"].items(), key=lambda item: -abs(item[1]))
        blocks.append(table(("feature", "coefficient"), ranked[:20], title="threshold, largest coefficients"))
    if fit["selection"]:
        names = list(fit["selection"][0])
        rows = [[row.get(name) for name in names] for row in fit["selection"]]
        blocks.append(table(names, rows, title="cross-validation"))
    flat = [(k, v) for k, v in results["provenance"].items() if not isinstance(v, dict)]
    flat += [
        (f"{k} file", f"{v['name']} {v['sha256'][:12]}…") for k, v in results["provenance"]["inputs"].items()
    ]
    blocks.append(_pairs("provenance", flat))
    return "\n\n".join(blocks)


def _schema(results: Results) -> str:
    rows = [(c["name"], c["kind"], c["missing"], ", ".join(c["examples"])) for c in results["columns"]]
    title = f"{results['rows']} rows, {len(rows)} columns"
    return table(("column", "read as", "missing", "examples"), rows, title=title)


def _experiments(results: Results) -> str:
    rows = [
        (e["name"], e["title"], len(e["shifts"]), len(e["methods"]), e["splits"], e["fits"])
        for e in results["experiments"]
    ]
    return table(("experiment", "title", "shifts", "methods", "splits", "fits"), rows)


def _datasets(results: Results) -> str:
    rows = [(d["name"], d["title"], len(d["shifts"]), d["license"]) for d in results["datasets"]]
    return table(("data set", "title", "shifts", "license"), rows)


def _dataset(results: Results) -> str:
    rows = [(key, value) for key, value in results.items() if key != "files"]
    files = [(file["name"], file["size"], file["sha256"]) for file in results["files"]]
    return "\n\n".join([_pairs(results["name"], rows), table(("file", "bytes", "sha256"), files)])


def _verification(results: Results) -> str:
    return table(("data set", "status"), [(row["name"], row["status"]) for row in results["files"]])


def _pairs(title: str, rows: Sequence[tuple[str, Any]]) -> str:
    width = max(len(name) for name, _ in rows)
    lines = [
        wrapped(cell(value), first=f"  {name:<{width}}  ", rest=" " * (width + 4)) for name, value in rows
    ]
    return "\n".join([title, *lines])
