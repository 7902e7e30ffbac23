"""Results as text: a layout for each type, what a command says when it is done, Markdown, JSON, CSV."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lrqr.results import (
    Comparison,
    DataSet,
    DataSets,
    Diagnosed,
    Evaluation,
    Experiments,
    Model,
    Table,
    Verification,
)
from lrqr.show.terminal import fitting, table, tinted, wrapped
from lrqr.show.words import (
    MISSING,
    VERDICTS,
    between,
    cell,
    certified,
    fixed_percent,
    flatten,
    learned,
    short_number,
    to_csv,
    to_json,
    visible,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from lrqr.results import Check, Distribution, Fit, Group, Method, Predicted, Result, Size

_GROUPS = 20  # as many are shown
_MATCHED = "matched: size over that of the constant threshold that would just have kept the promise there"
_CLIPPED = "infinite thresholds count as the largest calibration score in sizes"
_FIT = {
    "n_source": "source rows",
    "dropped": "rows left out",
    "n_target": "target rows",
    "n_features": "features",
    "regularization": "regularization λ",
    "ridge": "ridge",
    "largest_score": "largest score",
}
_LISTS = {
    Comparison: "methods",
    Table: "columns",
    Experiments: "experiments",
    DataSets: "datasets",
    Verification: "files",
}


def render(result: Result, output_format: str) -> str:
    """Write the result of a command as ``table`` (text for people), ``json`` or ``csv``.

    The CSV has a row for each entry of the list that a result is about (methods, columns, experiments, data
    sets), or else a row ``key,value`` for each number.
    """
    if output_format == "json":
        return to_json(result)
    if output_format == "csv":
        return to_csv(_records(result))
    return _LAYOUTS[type(result)](result).rstrip() + "\n"


def _records(result: Result) -> list[dict[str, Any]]:
    values = result.to_dict()
    rows = values.get(_LISTS.get(type(result), ""), [])
    if "panels" in values:
        rows = [{"panel": panel["name"], **row} for panel in values["panels"] for row in panel["methods"]]
    if not rows:
        return [{"key": key, "value": value} for key, value in flatten(result)]
    return [{k: "; ".join(map(str, v)) if isinstance(v, list) else v for k, v in row.items()} for row in rows]


# ------------------------------------------------------------------------------- what a command says


def fit_summary(model: Model, output: Path, *, verbose: bool = False) -> str:
    """Say in a few lines what a fit came to and what to do next; ``verbose`` also what the solver chose."""
    fit, shift = model.fit, model.shift
    base = "" if model.base is None else f" (base learner {model.base}, fitted on the other half)"
    outside = f"{fixed_percent(shift.outside_support)} of the target outside the source's support"
    rows = f"{fit.n_source} source rows{base} for {fit.n_target} target rows"
    asked = f"{100 * (fit.coverage or 0.0):g} % coverage, score {model.score}"
    lines = [
        f"{fit.method}: calibrated on {rows}, {_features(fit)}, {asked}",
        f"shift: {shift.verdict} ({_apart(shift)}, {outside})",
        f"  {shift.promise}",
    ]
    if model.certificate is not None:
        lines += [f"  {line}" for line in certified(model.certificate, brief=not verbose)]
    lines += _kept(fit)
    if verbose and fit.gap is not None and fit.feature_map != "constant":  # there, nothing is pulled anywhere
        lines.append(f"chosen: ridge {cell(fit.ridge)}, regularization {cell(fit.regularization)}")
    if fit.labeled is not None:
        lines += [
            "labels: " + said if row == 0 else f"  {said}" for row, said in enumerate(learned(fit.labeled))
        ]
    if fit.thresholds is not None:
        state = "" if fit.gap is None else f"; {_state(fit)}"
        lines.append(f"thresholds on the target: {_thresholds(fit.thresholds)}{state}")
    answers = "sets" if model.roles["classes"] else "intervals"
    lines += [f"Wrote {output}", f"Next: lrqr predict {output} NEW_ROWS -o {answers}.csv"]
    lines.append(f"      lrqr evaluate {output} LABELED_TARGET_ROWS")
    return "\n".join(lines)


def _kept(fit: Fit) -> list[str]:
    """Say what was done to keep the promise: a floor, a raised level, rows without an answer."""
    lines = []
    if fit.floor is not None:
        lines.append(f"for want of overlap no threshold is below that of split conformal, {cell(fit.floor)}")
    if fit.answered is not None:
        lines.append(f"abstains: {fixed_percent(fit.answered)} of the target rows get a finite answer")
    if fit.guarantee == "pac":
        cost = (
            "" if fit.price is None else f"; that makes answers to the target {fit.price:.2f} times as large"
        )
        level = f"{fixed_percent(fit.level)} to promise {fixed_percent(fit.coverage)}"
        lines.append(f"guarantee pac: calibrated at {level}{cost}")
    return lines


def _state(fit: Fit) -> str:
    if fit.converged:
        return "converged"
    return f"NOT CONVERGED, up to {cell(fit.gap)} above the least loss: thresholds may be wrong"


def _features(fit: Fit) -> str:
    given = f"{fit.n_features} feature{'s' if fit.n_features != 1 else ''}"
    if fit.feature_map == "learned":
        return f"2 features learned from {given}"
    if fit.feature_map == "constant":
        weights = "given" if fit.thresholds is None else f"learned from {given}"
        return f"one constant threshold, corrected for the shift by likelihood ratios {weights}"
    if fit.unanswered:
        lost = f"{fixed_percent(fit.unanswered)} of the target rows without a finite threshold"
        return f"{given} as given (features learned from them would leave {lost})"
    return given


def _thresholds(found: Distribution) -> str:
    if found.infinite == 1.0:
        return "all infinite, since no finite answer keeps the promise there"
    low, high = cell(found.quantiles["0.05"]), cell(found.quantiles["0.95"])
    shares = f"90 % between {low} and {high}, {fixed_percent(found.infinite)} infinite"
    return f"median {cell(found.median)}, {shares}"


def predict_summary(count: Predicted, output: Path) -> str:
    """Say how many rows were written and what is remarkable about them."""
    notes = {
        "with an infinite threshold": count.infinite,
        "empty": count.empty,
        "without an answer (abstained)": count.abstained,
        "outside the source's support, where nothing can be promised": count.outside,
    }
    remarks = "; ".join(f"{rows} {what}" for what, rows in notes.items() if rows)
    return f"Wrote {count.rows} rows to {output}" + (f" ({remarks})" if remarks else "")


def won(result: Evaluation) -> str:
    """Say in a line what each method covered and, where it kept the promise, at which size against the first.

    Parameters
    ----------
    result : Evaluation
        Of labeled rows. The first of its methods is that of the model.
    """
    own, *others = result.methods
    of = "length" if result.size.of == "interval" else "size"
    parts = []
    for row in others:
        part = f"{row.name} {_whole(row.coverage)}"
        if row.high is not None and row.high >= result.nominal and own.finite_size[0]:
            part += f" at {(row.finite_size[0] or 0.0) / own.finite_size[0]:.2g} times the {of}"
            part += f" ({fixed_percent(row.infinite)} infinite)" if row.infinite else ""
        parts.append(part)
    kept = ", ".join([*parts, f"{own.name} {_whole(own.coverage)}"])
    return f"Promised {_whole(result.nominal)}, kept on {result.n} rows whose labels no fit had seen: {kept}."


def _whole(share: float | None) -> str:
    return MISSING if share is None else f"{100 * share:.0f} %"


# ------------------------------------------------------------------------------------------- layouts

_MEASURES = {
    "set": "set size",
    "interval": "interval length",
    "distance": "bound's distance",
    "threshold": "threshold",
}


def _evaluation(result: Evaluation) -> str:
    of = _MEASURES[result.size.of]
    rows: list[tuple[str, Any]] = [("rows", result.n)]
    if result.abstained is not None:
        rows.append(("abstained", f"{result.abstained} further rows without an answer, which are not judged"))
    rows.append(("promised coverage", fixed_percent(result.nominal)))
    rows += [*_coverage(result), *_sizes(result.size, of, result.interval_score)]
    slab = result.worst_slab
    if slab:
        held_out = f"{slab.n} held-out rows ({between(slab.low, slab.high)})"
        rows.append(("worst slab", f"{fixed_percent(slab.coverage)} of {held_out}"))
    if result.shift:
        rows.append(("shift", f"{result.shift.verdict}; {_apart(result.shift)}"))
        if result.shift.remark:
            rows.append(("", f"{result.shift.promise} {result.shift.remark}"))
        outside = fixed_percent(result.shift.outside_support_here)
        rows.append(("outside support", f"{outside} of these rows"))
    blocks = [_pairs(result.title, rows)]
    if result.groups:
        blocks.append(_groups(f"by {result.group_column}", result.groups))
    if result.by_size:
        blocks.append(_groups(f"by {of}", result.by_size, of.rpartition(" ")[2]))
    return "\n\n".join([*blocks, _methods("the same rows by other methods", result.methods)])


def _coverage(result: Evaluation) -> list[tuple[str, Any]]:
    found = result.coverage
    told = [] if result.certificate is None else certified(result.certificate, brief=True)
    promised = list(zip(["certified without labels", *[""] * len(told)], told, strict=False))
    if result.model is not None and result.model.labeled is not None:
        promised += [
            ("" if row else "labels at the fit", said)
            for row, said in enumerate(learned(result.model.labeled))
        ]
    if found is not None:
        among = "" if result.clusters is None else f", with dependence in {result.clusters} clusters"
        value = f"{fixed_percent(found.value)}  (95 % interval {between(found.low, found.high)}{among})"
        rows = [("coverage", value), ("verdict", VERDICTS.get(found.verdict, found.verdict))]
        return rows + [("", sentence) for sentence in result.causes] + promised
    return [("coverage", "not known: the file has no outcomes"), *promised]


def _sizes(size: Size, of: str, interval_score: float | None) -> list[tuple[str, Any]]:
    finite = " of the finite ones" if 0.0 < (size.infinite or 0.0) < 1.0 and size.of != "set" else ""
    names = (
        ("infinite", "empty")
        if size.of in ("interval", "distance")
        else ("infinite", "empty", "full", "singleton")
    )
    measured = ", from the prediction" if size.of == "distance" else ""
    shares = {name: getattr(size, name) for name in names}
    rows = [
        (of, f"mean {cell(size.mean)}{finite}, median {cell(size.median)}{measured}"),
        ("shares", ", ".join(f"{k} {fixed_percent(v)}" for k, v in shares.items() if v is not None)),
    ]
    if interval_score is not None:
        rows.append(("interval score", f"{cell(interval_score)}{finite}"))
    return rows


def _groups(title: str, groups: Sequence[Group], name: str = "group") -> str:
    rows = [
        (
            group.name,
            group.n,
            fixed_percent(group.coverage),
            between(group.low, group.high),
            group.verdict + (" (few rows)" if group.small else ""),
            group.size,
        )
        for group in groups[:_GROUPS]
    ]
    columns = (name, "n", "coverage", "interval (Holm)", "verdict", "mean size")
    left = len(groups) - _GROUPS
    more = f"\n and {left} more: --format json has them all." if left > 0 else ""
    return table(columns, rows, title=title) + more


def _methods(title: str, methods: Sequence[Method]) -> str:
    judged = ("coverage", "95 % interval") if all(row.coverage is not None for row in methods) else ()
    rows = [
        (
            row.name,
            *([fixed_percent(row.coverage), between(row.low, row.high)] if judged else []),
            row.finite_size[0],
            fixed_percent(row.infinite),
        )
        for row in methods
    ]
    laid_out = table(("method", *judged, "mean size", "infinite"), rows, title=title)
    return laid_out + (f"\n {_CLIPPED}." if any(row.clipped for row in methods) else "")


def _comparison(result: Comparison) -> str:
    columns = ("method", "coverage", "size", "matched", "infinite", "Δ coverage", "Δ size", "seconds")
    blocks = []
    left_out: dict[str, None] = {}
    for panel in result.all_panels():
        rows = [
            (
                row.name,
                _plus_minus(row.coverage, row.coverage_se, 100.0, " %"),
                _plus_minus(*row.finite_size),
                _number(row.size_matched),
                fixed_percent(row.infinite),
                *_differences(row, result.reference),
                row.seconds,
            )
            for row in panel.methods
        ]
        name = panel.name or result.title
        title = f"{name}: promised {fixed_percent(panel.nominal)}, splits: {panel.splits}"
        shown, cut, lost = fitting(columns, rows, ("seconds", "Δ size", "matched", "Δ coverage"))
        blocks.append(table(shown, cut, title=title))
        left_out |= dict.fromkeys(lost)
    differences = f"Δ: paired difference to {result.reference}, of coverage in percentage points"
    lines = [f"Means ± standard errors over splits; {differences}; {_CLIPPED}; {_MATCHED}."]
    if left_out:
        lines.append(f"For want of room without {', '.join(left_out)}: see --format csv or a wider terminal.")
    lines += [f"{c.verdict}: {c.claim} {c.found} (expected {c.expected})" for c in result.checks]
    return "\n\n".join([*blocks, "\n".join(wrapped(line, rest="  ") for line in lines)])


def _differences(row: Method, reference: str) -> tuple[str, str]:
    if row.name == reference:
        return MISSING, MISSING
    return (
        _plus_minus(row.coverage_difference, row.coverage_difference_se, 100.0, sign="+"),
        _plus_minus(row.size_difference, row.size_difference_se, sign="+"),
    )


def _plus_minus(
    value: float | None, error: float | None, scale: float = 1.0, unit: str = "", sign: str = ""
) -> str:
    if value is None:
        return MISSING
    shown = short_number(float(scale * value), sign=sign) + unit
    return shown if error is None else f"{shown} ±{short_number(float(scale * error), 2)}"


def _copies(result: Diagnosed) -> str:
    counts = {
        "source rows": result.copies_source,
        "target rows": result.copies_target,
        "target rows that the source has too": result.shared_rows,
    }
    return ", ".join(f"{count} {what}" for what, count in counts.items() if count)


def _diagnosis(result: Diagnosed) -> str:
    auc = f"{result.auc:.3f}  (95 % interval {result.auc_low:.3f} to {result.auc_high:.3f})"
    rows: list[tuple[str, Any]] = [
        ("verdict", f"{result.verdict} (for a coverage of {fixed_percent(result.nominal)})"),
        ("what may be promised", result.promise),
        ("rows", f"{result.n_source} source, {result.n_target} target"),
        *[("copies", text) for text in [_copies(result)] if text],
        ("domain AUC", auc),
        ("effective size", f"{result.effective_size:.1f} of {result.n_source} source rows"),
        ("largest weight", f"{fixed_percent(result.largest_weight)} of the total on one row"),
        (
            "Pareto k",
            f"{short_number(result.pareto_k or 0.0, 2)} of the weights; above 0.7 their tail is too heavy",
        ),
        ("outside support", f"{fixed_percent(result.outside_support)} of the target rows"),
        (
            "ratio below zero",
            f"{fixed_percent(result.negative_mass)} of the linear ratio's mass on the source",
        ),
    ]
    if result.labels is not None:
        need = result.labels
        rows += [
            (
                "labels to tell a drop",
                f"{need.to_tell} target rows show {fixed_percent(need.drop)}, 4 times in 5",
            ),
            (
                "labels to calibrate",
                f"{need.to_halve} halve the spread of {fixed_percent(need.spread)} around it",
            ),
        ]
    if result.certificate is not None:
        rows += [("certified" if not i else "", line) for i, line in enumerate(certified(result.certificate))]
    if result.columns is not None:
        one_sided = {"source": result.columns.only_source, "target": result.columns.only_target}
        rows += [(f"columns only in the {side}", names) for side, names in one_sided.items() if names]
        rows += [
            (c["name"], f"{c['source']} in the source, {c['target']} in the target")
            for c in result.columns.changed_types
        ]
        rows += [
            (c["name"], f"{c['rows']} target rows hold categories never seen: {cell(c['categories'])}")
            for c in result.columns.unseen_categories
        ]
    features = [
        (f.name, f.standardized_difference, f.coefficient, f.mean_source, f.mean_target)
        for f in result.features[:10]
    ]
    names = ("feature", "difference", "coefficient", "source mean", "target mean")
    title = "most shifted features: difference of the means in standard deviations"
    shown, kept, _ = fitting(names, features, ("coefficient",))
    return _pairs("source and target", rows) + "\n\n" + table(shown, kept, title=title)


def chosen(result: Model) -> list[tuple[str, Any]]:
    """Return what was promised and chosen, and what came out, in words."""
    fit = result.fit.to_dict()
    about: list[tuple[str, Any]] = [
        ("method", result.fit.method),
        ("score", result.score),
        ("base learner", result.base),
        ("promised coverage", fixed_percent(result.fit.coverage)),
    ]
    about += [(words, fit[key]) for key, words in _FIT.items() if fit.get(key) is not None]
    about.append(("threshold from", _features(result.fit)))
    about += [("", line) for line in _kept(result.fit)]
    if result.fit.thresholds is not None:
        about.append(("thresholds on the target", _thresholds(result.fit.thresholds)))
    if result.fit.labeled is not None:
        about += [("" if row else "labels", said) for row, said in enumerate(learned(result.fit.labeled))]
    if result.fit.converged is not None:
        about.append(("solver", _state(result.fit)))
    about += [(name.replace("_", " "), value) for name, value in result.roles.items() if value]
    about.append(("shift", f"{result.shift.verdict}: {result.shift.promise}"))
    if result.certificate is not None:
        about += [
            ("certified" if not i else "", line) for i, line in enumerate(certified(result.certificate))
        ]
    return about


def _model(result: Model) -> str:
    fit, about = result.fit.to_dict(), chosen(result)
    blocks = [_pairs("model (--format json has what the solver says, too)", about)]
    if result.coefficients:
        ranked = sorted(result.coefficients.items(), key=lambda item: -abs(item[1]))
        blocks.append(table(("feature", "coefficient"), ranked[:20], title="threshold, largest coefficients"))
    if result.fit.selection:
        names = list(fit["selection"][0])
        rows = [[row.get(name) for name in names] for row in fit["selection"]]
        heads = [name.replace("_", " ") for name in names]
        blocks.append(table(heads, rows, title="cross-validation"))
    files = {f"{k} file": f"{v['name']} {v['sha256'][:12]}…" for k, v in result.provenance["inputs"].items()}
    versions = {k.replace("_", " "): v for k, v in result.provenance.items() if not isinstance(v, dict)}
    blocks.append(_pairs("provenance", [*versions.items(), *files.items()]))
    return "\n\n".join(blocks)


def _table(result: Table) -> str:
    rows = [(c.name, c.kind, c.missing, c.examples) for c in result.columns]
    title = f"{result.rows} rows, {len(rows)} columns"
    return table(("column", "read as", "missing", "examples"), rows, title=title)


def _experiments(result: Experiments) -> str:
    rows = [(e.name, e.title, len(e.shifts), len(e.methods), e.splits, e.fits) for e in result.experiments]
    return table(("experiment", "title", "shifts", "methods", "splits", "fits"), rows)


def _datasets(result: DataSets) -> str:
    rows = [(d.name, d.title, len(d.shifts), d.license) for d in result.datasets]
    return table(("data set", "title", "shifts", "license"), rows)


def _dataset(result: DataSet) -> str:
    rows = [(key, value) for key, value in result.to_dict().items() if key != "files"]
    files = [(file.name, file.size, file.sha256) for file in result.files]
    return "\n\n".join([_pairs(result.name, rows), table(("file", "bytes", "sha256"), files)])


def _verification(result: Verification) -> str:
    return table(("data set", "status"), [(row.name, row.status) for row in result.files])


_LAYOUTS: dict[type[Result], Callable[[Any], str]] = {
    Evaluation: _evaluation,
    Comparison: _comparison,
    Diagnosed: _diagnosis,
    Model: _model,
    Table: _table,
    Experiments: _experiments,
    DataSets: _datasets,
    DataSet: _dataset,
    Verification: _verification,
}


def _pairs(title: str, rows: Sequence[tuple[str, Any]]) -> str:
    width = max(len(name) for name, _ in rows)
    lines = []
    for name, value in rows:
        text, first = cell(value), f"  {name:<{width}}  "
        shown = wrapped(text, first=first, rest=" " * (width + 4))
        verdict = name in {"verdict", "shift"}
        lines.append(first + tinted(shown.removeprefix(first)) if verdict else shown)
    return "\n".join([visible(title), *lines])


def _apart(shift: Any) -> str:
    return f"domain AUC {shift.auc:.2f}, effective size {shift.effective_size:.0f} of {shift.n_source}"


# ------------------------------------------------------------------------------------------ Markdown


def to_markdown(result: Comparison) -> str:
    """Return one table per shift, and one of the recorded claims, the paper's numbers beside ours.

    Coverage and its spread are in percent; ± is the standard deviation over splits, as in the paper, and
    "se" the standard error of the mean.
    """
    parts = [f"# {result.title}", ""]
    if result.paper:
        parts += [f"Paper: {result.paper}. Nominal coverage {result.nominal:.0%}.", ""]
    for panel in result.panels:
        parts += [f"## {panel.name} ({panel.splits} splits)", "", *_panel(panel.methods), ""]
    if result.checks:
        parts += ["## Recorded expectations", "", *_checks(result.checks), ""]
    return "\n".join(parts)


def _panel(methods: Sequence[Method]) -> list[str]:
    published = any(m.published_coverage is not None or m.published_size is not None for m in methods)
    head = ["method", "coverage % ± sd (se)", "size (se)", "matched", "infinite %", "Δ coverage % (se)"]
    head += ["paper: coverage %", "paper: size"] if published else []
    lines = [_row(head), _row(["---", *["---:"] * (len(head) - 1)])]
    for m in methods:
        cells = [
            m.name,
            f"{_spread(m.coverage, m.coverage_sd)} ({_percent(m.coverage_se)})",
            f"{_number(m.size)} ({_number(m.size_se, 2)})",
            _number(m.size_matched),
            _percent(m.infinite),
            f"{_percent(m.coverage_difference, '+')} ({_percent(m.coverage_difference_se)})",
        ]
        if published:
            sd = m.published_coverage_sd
            paper = _percent(m.published_coverage) if sd is None else _spread(m.published_coverage, sd)
            cells += [paper, _number(m.published_size)]
        lines.append(_row(cells))
    return lines


def _checks(checks: Sequence[Check]) -> list[str]:
    head = ["claim", "expected", "found", "", "why"]
    rows = [[c.claim, c.expected, c.found, c.verdict, c.reason] for c in checks]
    return [_row(head), _row(["---"] * len(head)), *map(_row, rows)]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _percent(value: float | None, sign: str = "") -> str:
    return fixed_percent(value, sign, unit="")


def _spread(value: float | None, sd: float | None) -> str:
    return f"{_percent(value)} ± {_percent(sd)}"


def _number(value: float | None, digits: int = 3) -> str:
    if value is None:
        return MISSING
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.{digits}g}"
