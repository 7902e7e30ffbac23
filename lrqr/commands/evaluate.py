"""``lrqr evaluate``: was the promise kept on labeled target rows? And what can be said without labels."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lrqr.calibrate import model as models
from lrqr.calibrate.model import PRECOMPUTED
from lrqr.data import tables
from lrqr.errors import CheckFailed
from lrqr.stats import metrics
from lrqr.stats.diagnosis import LITTLE_OVERLAP, NO_OVERLAP

if TYPE_CHECKING:
    from pathlib import Path

    from lrqr.arrays import BoolArray, FloatArray
    from lrqr.calibrate.infinity import Infinite
    from lrqr.calibrate.model import Answer, CalibratedModel
    from lrqr.data.tables import Sample

_NO_GROUP = "(missing)"  # the group of rows that name none: they count in the coverage too
_PROFILES = 3  # features whose effect on the threshold is drawn
_BINS = 12
_HISTOGRAM = 30
_SLAB_ROWS = 50  # with fewer rows in it, the coverage in the worst slab says little
# what the fit could not promise, labels may show to hold all the same
_REMARK = (
    "These rows are labeled: their coverage was measured, not promised, and holds for rows drawn like them."
)
_CRITERIA = {"auto": "weighted pinball loss", "paper": "norm of the held-out gradient"}
_ROUNDING = 1e-9  # lengths of intervals from one threshold differ in their last bits


def evaluate(
    model: Path,
    labeled: Path,
    *,
    group: str | None = None,
    infinite: Infinite = "allow",
    on_missing: str | None = None,
) -> dict[str, Any]:
    """Judge a model on a file.

    Parameters
    ----------
    model : Path
        A model directory.
    labeled : Path
        Target rows that took no part in the fit. Without the outcome column there is no coverage, but all
        else, and the importance-weighted source coverage.
    group : str, optional
        A column to report by.
    infinite : {"allow", "clip", "error"}
        What to do with infinite thresholds.
    on_missing : {"error", "drop", "impute"}, optional
        Default: ``"impute"`` if the model was fitted so, else ``"error"``.

    Returns
    -------
    dict
        The keys of ``evaluate --format json`` (docs/cli.md).
    """
    fitted = models.load(model)
    roles = replace(fitted.roles, group=group)
    need = fitted.needed(*(["group"] if group else []))
    labels = ("score" if fitted.score == PRECOMPUTED else "outcome",)
    policy = on_missing or fitted.on_missing
    sample = tables.read(labeled, roles, on_missing=policy, need=need, optional=labels)
    answer = fitted.answer(sample, infinite=infinite)
    inside = _inside(fitted, sample, answer)
    sizes = _sizes(fitted, answer)
    shift = fitted.details["shift"]
    return {
        "title": f"{fitted.threshold.method_} on {labeled.name}",
        "task": "classification" if fitted.task == "classification" else "regression",
        "outcome": fitted.roles.outcome or fitted.roles.score_column or "",
        "n": len(sample),
        "nominal": fitted.coverage,
        "confidence": 0.95,
        "coverage": None if inside is None else _without_n(inside, fitted.coverage),
        "weighted_coverage": _weighted(fitted),
        "size": _size(fitted, answer, sizes),
        **_details(fitted, sample, answer, inside, sizes, group),
        "shift": shift
        | {
            "outside_support_here": float(fitted.support.outside(answer.features).mean()),
            "remark": _remark(shift, inside),
        },
        "levels": _levels(fitted, sample, inside),
        "methods": _side_by_side(fitted, sample, infinite),
        "profiles": _profiles(fitted, answer),
        "selection": fitted.details["fit"]["selection"],
        "criterion": _CRITERIA.get(fitted.details["fit"]["parameters"].get("selection", ""), ""),
        "model": _describe(fitted),
        "provenance": fitted.details["provenance"],
    }


def check_coverage_above(results: dict[str, Any], floor: float) -> None:
    """Raise `CheckFailed` if the coverage is below ``floor``, or unknown."""
    coverage = results["coverage"]
    if coverage is None:
        raise CheckFailed("--fail-under: the file has no outcomes, so its coverage is not known")
    if coverage["value"] < floor:
        raise CheckFailed(
            f"coverage {coverage['value']:.4f} on {results['n']} rows is below --fail-under {floor:g} "
            f"(95 % interval {coverage['low']:.4f} to {coverage['high']:.4f})"
        )


def _remark(shift: dict[str, Any], inside: BoolArray | None) -> str | None:
    return None if inside is None or shift["verdict"] not in (LITTLE_OVERLAP, NO_OVERLAP) else _REMARK


def _inside(model: CalibratedModel, sample: Sample, answer: Answer) -> BoolArray | None:
    """Whether each row's outcome is in its region; None without outcomes."""
    scores = model.scores(sample, answer.prediction)
    return None if scores is None else scores <= answer.threshold


def _without_n(inside: BoolArray, nominal: float) -> dict[str, Any]:
    found = metrics.coverage_summary(covered=inside, nominal=nominal)
    return {key: value for key, value in found.items() if key != "n"}


def _weighted(model: CalibratedModel) -> dict[str, Any]:
    found = model.details["weighted_coverage"]
    return {"value": found["value"], "se": found["standard_error"]}


def _sizes(model: CalibratedModel, answer: Answer) -> FloatArray:
    """Lengths or numbers of classes; only the owner of a score knows what its regions are, so thresholds."""
    return answer.threshold if model.score == PRECOMPUTED else metrics.region_size(region=answer.region)


def _size(model: CalibratedModel, answer: Answer, sizes: FloatArray) -> dict[str, Any]:
    sets = answer.region.dtype == np.bool_
    if model.score == PRECOMPUTED:
        found = {**metrics.distribution(values=sizes), "empty": None, "full": None, "singleton": None}
        found["of"] = "threshold"
    else:
        found = {**metrics.size_summary(region=answer.region), "of": "set" if sets else "interval"}
    # a set is never infinite, but its threshold may be: then it holds all classes because it must
    found["infinite"] = float(np.isposinf(answer.threshold).mean())
    finite = sizes[np.isfinite(sizes)]
    if not finite.size:
        return found
    edges = np.arange(answer.region.shape[1] + 2) - 0.5 if sets else _edges(finite)
    counts = np.histogram(finite, edges)[0]
    return found | {"histogram": {"edges": edges.tolist(), "counts": counts.tolist()}}


def _edges(values: FloatArray) -> FloatArray:
    """Bins of a histogram; values that differ by rounding alone share one."""
    low, high = float(values.min()), float(values.max())
    if high - low <= _ROUNDING * max(abs(low), abs(high), 1e-300):
        half = 0.5 * abs(high) or 0.5
        return np.array([low - half, high + half])
    return np.linspace(low, high, _HISTOGRAM + 1)


def _details(
    model: CalibratedModel,
    sample: Sample,
    answer: Answer,
    inside: BoolArray | None,
    sizes: FloatArray,
    group: str | None,
) -> dict[str, Any]:
    """Return what takes labels: groups, sizes, the worst slab, the interval score."""
    if inside is None:
        return {"groups": [], "by_size": [], "worst_slab": None, "interval_score": None}
    nominal = model.coverage
    groups = []
    if sample.group is not None and group is not None:
        names = np.array([_NO_GROUP if name is None else name for name in sample.group])
        table = metrics.by_group(covered=inside, group=names, nominal=nominal, sizes=sizes)
        groups = [{"name": str(row.pop("group")), **row} for row in table]
    bins = metrics.size_stratified(covered=inside, sizes=_rounded(sizes), nominal=nominal)
    by_size = [{"name": _span(row), **row} for row in bins if len(bins) > 1]
    slab = metrics.worst_slab(X=answer.features, covered=inside, nominal=nominal)
    score = None
    if model.task == "regression" and sample.outcome is not None:
        lower, upper = answer.region.T
        score = metrics.winkler_score(y=sample.outcome, lower=lower, upper=upper, nominal=nominal)["mean"]
    return {
        "groups": groups,
        "group_column": group or "",
        "by_size": by_size,
        "worst_slab": None if slab["n"] < _SLAB_ROWS else _as_slab(slab),
        "interval_score": score,
    }


def _span(row: dict[str, Any]) -> str:
    low, high = row["smallest"], row["largest"]
    return f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"


def _rounded(sizes: FloatArray) -> FloatArray:
    finite = np.abs(sizes[np.isfinite(sizes)])
    unit = _ROUNDING * float(finite.max(initial=0.0))
    return sizes if unit == 0.0 else np.where(np.isfinite(sizes), np.round(sizes / unit) * unit, sizes)


def _as_slab(slab: dict[str, Any]) -> dict[str, Any]:
    return {"coverage": slab["value"], "low": slab["low"], "high": slab["high"], "n": slab["n"], "share": 0.1}


def _levels(model: CalibratedModel, sample: Sample, inside: BoolArray | None) -> list[dict[str, Any]]:
    """Return the coverage reached at each level that the method was calibrated at; nothing without labels."""
    if inside is None or not model.threshold.levels_:
        return []
    reached = {model.coverage: inside}
    for level in model.threshold.levels_:
        other = _inside(model, sample, model.answer(sample, by=model.threshold.at(level)))
        reached |= {} if other is None else {level: other}
    found = []
    for level in sorted(reached):
        row = metrics.coverage_summary(covered=reached[level], nominal=level)
        found.append({"nominal": level, "coverage": row["value"], "low": row["low"], "high": row["high"]})
    return found


def _side_by_side(model: CalibratedModel, sample: Sample, infinite: Infinite) -> list[dict[str, Any]]:
    """Return the model and its companions on the same rows."""
    rows = []
    for name, method in {model.threshold.method_: model.threshold, **model.companions}.items():
        answer = model.answer(sample, infinite="allow" if infinite == "error" else infinite, by=method)
        sizes = _sizes(model, answer)
        inside = _inside(model, sample, answer)
        row: dict[str, Any] = {"name": name}
        if inside is not None:
            found = metrics.coverage_summary(covered=inside, nominal=model.coverage)
            row |= {"coverage": found["value"], "low": found["low"], "high": found["high"]}
        row |= {"size": float(sizes.mean()) if sizes.size else None}
        row |= {"infinite": float(np.isposinf(answer.threshold).mean())}
        if np.isposinf(sizes).any():
            clipped = _sizes(model, model.answer(sample, infinite="clip", by=method))
            row["size_clipped"] = float(clipped.mean())
        rows.append(row)
    return rows


def _profiles(model: CalibratedModel, answer: Answer) -> list[dict[str, Any]]:
    """Thresholds against the most shifted features: quartiles in bins of about equal count."""
    names = list(model.encoder.names_)
    found = []
    for feature in model.details["shift"]["features"][:_PROFILES]:
        values = answer.features[:, names.index(feature["name"])]
        edges = np.unique(np.quantile(values, np.linspace(0, 1, _BINS + 1)[1:-1]))
        bins = np.searchsorted(edges, values, side="left")
        parts = [answer.threshold[bins == k] for k in np.unique(bins)]
        quartiles = [np.quantile(part, [0.25, 0.5, 0.75], method="inverted_cdf").tolist() for part in parts]
        low, middle, high = (list(column) for column in zip(*quartiles, strict=True))
        x = [float(np.median(values[bins == k])) for k in np.unique(bins)]
        found.append({"feature": feature["name"], "x": x, "threshold": middle, "low": low, "high": high})
    return found


def _describe(model: CalibratedModel) -> dict[str, Any]:
    """Return what the model is, without its tables."""
    fit = {key: value for key, value in model.details["fit"].items() if key != "selection"}
    return {"score": model.score, "base": None if model.base is None else model.base.name} | fit
