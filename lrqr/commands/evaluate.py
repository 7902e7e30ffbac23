"""``lrqr evaluate``: was the promise kept on labeled target rows? And what can be said without labels."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lrqr.calibrate.labeled import fingerprints
from lrqr.calibrate.model import PRECOMPUTED
from lrqr.commands import inputs
from lrqr.commands.causes import causes
from lrqr.commands.engine import LOCAL, Place, spread
from lrqr.commands.inputs import clusters_of, digest
from lrqr.data import tables
from lrqr.data.encoder import warn_unseen
from lrqr.data.formats import is_path
from lrqr.data.roles import ends_of
from lrqr.errors import CheckFailed, UsageError
from lrqr.results import (
    Candidate,
    Coverage,
    Evaluation,
    Examples,
    Fit,
    Group,
    Histogram,
    Level,
    Method,
    Profile,
    Shift,
    Size,
    WeightedCoverage,
    WorstSlab,
)
from lrqr.show.words import cell
from lrqr.stats import metrics
from lrqr.stats.diagnosis import LITTLE_OVERLAP, NO_OVERLAP

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lrqr.arrays import BoolArray, FloatArray, IntArray
    from lrqr.calibrate.model import Answer, CalibratedModel
    from lrqr.data.formats import Data
    from lrqr.data.tables import Sample
    from lrqr.plugins import Infinite

_NO_GROUP = "(missing)"  # the group of rows that name none: they count in the coverage too
_PROFILES = 3  # features whose effect on the threshold is drawn
_BINS = 12
_HISTOGRAM = 30
_EXAMPLES = 60  # rows whose intervals are drawn
_SLAB_ROWS = 50  # with fewer rows in it, the coverage in the worst slab says little
# what the fit could not promise, labels may show to hold all the same
_REMARK = (
    "These rows are labeled: their coverage was measured, not promised, and holds for rows drawn like them."
)
_CRITERIA = {"auto": "weighted pinball loss", "paper": "norm of the held-out gradient"}
_DISTINCT = 0.9  # of the calibration scores: a row that has one of them by chance is then rare
_ROUNDING = 1e-9  # lengths of intervals from one threshold differ in their last bits


def evaluate(
    model: Any,
    labeled: Data,
    y: Any = None,
    *,
    group: Any = None,
    infinite: Infinite = "allow",
    on_missing: str | None = None,
    cluster: str | None = None,
    place: Place = LOCAL,
    separator: str | None = None,
    decimal: str | None = None,
) -> Evaluation:
    """Say whether a model kept its promise on labeled rows.

    Parameters
    ----------
    model : path, `CalibratedModel`, `ConformalRegressor` or `ConformalClassifier`
        A fitted model.
    labeled : path or data frame
        Target rows that took no part in the fit. Without the outcome column there is no coverage, but all
        else, and what the fit certified without labels. For the two estimators: X, as for their ``predict``.
    y : array-like of shape (n,), optional
        For the two estimators: the outcomes of these rows.
    group : str, optional
        A column to report by. For the two estimators an array of shape (n,) will do.
    infinite : {"allow", "clip", "error"}
        What to do with infinite thresholds.
    on_missing : {"error", "drop", "impute"}, optional
        Default: ``"impute"`` if the model was fitted so, else ``"error"``.
    cluster : str, optional
        Column that names rows which are not independent, for the intervals of the coverage. Default: that of
        the fit, where these rows have it.
    place : Place
        Where batches are answered; see `lrqr.commands.engine`.
    separator, decimal : str, optional
        Marks of a text file, which are recognized if not given.

    Returns
    -------
    Evaluation
        Coverage with its exact interval, sizes, groups, methods side by side and more, as typed fields. Lacks
        what takes labels if there are none. ``to_dict()`` gives JSON.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from lrqr import ConformalRegressor
    >>> rng = np.random.default_rng(0)
    >>> X, X_new = rng.normal(size=(400, 2)), rng.normal(0.5, 1.0, size=(600, 2))
    >>> y, y_new = (Z[:, 0] + rng.normal(size=len(Z)) for Z in (X, X_new))
    >>> model = ConformalRegressor(Ridge()).fit(X, y, X_target=X_new[:300])
    >>> found = evaluate(model, X_new[300:], y_new[300:])
    >>> found.n, found.coverage.verdict
    (300, 'compatible')
    """
    if hasattr(model, "table"):
        labeled, group = model.table(labeled, y, group=group)
    elif y is not None:
        raise UsageError("y= goes with an estimator; of a file or a data frame the outcome is a column")
    fitted, path = inputs.opened(model), Path(labeled) if is_path(labeled) else None
    named = cluster or fitted.roles.cluster
    roles = replace(fitted.roles, group=group, cluster=named, separator=separator, decimal=decimal)
    need = fitted.needed(*(name for name, asked in (("group", group), ("cluster", cluster)) if asked))
    labels = ("cluster", "score" if fitted.score == PRECOMPUTED else "outcome")
    policy = on_missing or fitted.on_missing
    samples = tables.batches(labeled, roles, on_missing=policy, need=need, optional=labels)
    sample, answer, outside = _gather(fitted, samples, place)
    abstained = np.isposinf(answer.threshold) if fitted.threshold.support_ is not None else None
    if abstained is not None:
        sample, answer, outside = (
            _picked(sample, ~abstained),
            _picked(answer, ~abstained),
            outside[~abstained],
        )
    if infinite != "allow":
        answer = fitted.answer_again(sample, answer, infinite=infinite)
    rows = _judged(fitted, sample, answer)
    clusters, weighted = clusters_of(sample), fitted.details["weighted_coverage"]
    facts = fitted.details["fit"]
    found = Evaluation(
        title=f"{fitted.threshold.method_} on {path.name if path else 'the rows given'}",
        task="classification" if fitted.task == "classification" else "regression",
        outcome=fitted.roles.outcome or fitted.roles.score_column or "",
        n=len(sample),
        nominal=fitted.coverage,
        confidence=0.95,
        coverage=None
        if rows.inside is None
        else Coverage(**_coverage(rows.inside, fitted.coverage, clusters)),
        clusters=None if clusters is None else len(np.unique(clusters)),
        weighted_coverage=WeightedCoverage(value=weighted["value"], se=weighted["standard_error"]),
        certificate=fitted.details.get("certificate"),
        size=_size(fitted, rows),
        **_with_labels(fitted, sample, rows, group),
        shift=_shift(fitted, rows, outside),
        levels=_levels(fitted, sample, rows),
        methods=_side_by_side(fitted, sample, infinite, rows),
        examples=_examples(sample, rows.answer),
        profiles=_profiles(fitted, rows.answer),
        selection=[Candidate.read(row) for row in facts["selection"]],
        criterion=_CRITERIA.get(facts["parameters"].get("selection", ""), ""),
        model=Fit.read(
            {"score": fitted.score, "base": None if fitted.base is None else fitted.base.name}
            | {key: value for key, value in facts.items() if key != "selection"}
        ),
        provenance=fitted.details["provenance"],
        known_file="" if path is None else _known_file(fitted, path),
        known_rows=_known_rows(fitted, rows),
        **_known_labels(fitted, rows),
    )
    told = {"causes": causes(found)} | ({} if abstained is None else {"abstained": int(abstained.sum())})
    return found.model_copy(update=told)


def check_coverage_above(results: Evaluation, floor: float) -> None:
    """Raise `CheckFailed` if the coverage is below ``floor``, or unknown."""
    found = results.coverage
    if found is None:
        raise CheckFailed("--fail-under: the file has no outcomes, so its coverage is not known")
    if found.value is None or found.value < floor:
        raise CheckFailed(
            f"coverage {found.value or 0.0:.4f} on {results.n} rows is below --fail-under {floor:g} "
            f"(95 % interval {found.low:.4f} to {found.high:.4f})"
        )


@dataclass(frozen=True)
class _Judged:
    """The rows of a file as one calibrated method answers them.

    Attributes
    ----------
    answer : Answer
    sizes : array of shape (n,)
        Lengths of intervals or numbers of classes. For a score of the user's own, whose regions are not known
        here, the thresholds.
    scores : array of shape (n,) or None
        None without outcomes.
    """

    answer: Answer
    sizes: FloatArray
    scores: FloatArray | None

    @property
    def inside(self) -> BoolArray | None:
        """Whether each outcome is in its interval or set; None without outcomes."""
        return None if self.scores is None else self.scores <= self.answer.threshold


def _known_file(model: CalibratedModel, path: Path) -> str:
    """Return which input of the fit a file is, by its sha256; empty if none."""
    own, inputs = digest(path), model.details["provenance"]["inputs"]
    return next((name for name, recorded in inputs.items() if recorded["sha256"] == own), "")


def _known_rows(model: CalibratedModel, rows: _Judged) -> float | None:
    """Return the share of rows whose score is, to the last digit, that of a calibration row.

    None without labels, and where so many calibration scores repeat that a new row may well have one of them.
    """
    weighted = model.companions.get("weighted", model.threshold).estimator_
    calibrated = getattr(weighted, "scores_", None)
    if rows.scores is None or calibrated is None or not len(rows.scores):
        return None
    if len(np.unique(calibrated)) < _DISTINCT * len(calibrated):
        return None
    return float(np.isin(rows.scores, calibrated).mean())


def _known_labels(model: CalibratedModel, rows: _Judged) -> dict[str, Any]:
    """Return how many of the rows the fit had as labeled target rows; nothing without such rows or labels."""
    labeled = model.threshold.labeled_
    if labeled is None or rows.scores is None:
        return {}
    here = fingerprints(rows.answer.features, rows.scores)
    return {"known_labels": int(np.isin(here, labeled.rows).sum())}


def _gather(
    model: CalibratedModel, samples: Iterable[Sample], place: Place
) -> tuple[Sample, Answer, BoolArray]:
    """Answer a file batch by batch; return its rows without their table, the answers, and what is outside.

    All that is kept of a row is its encoded features and what the model says of it.
    """
    parts: list[tuple[Sample, Answer, BoolArray]] = []
    unseen: Counter[tuple[str, str]] = Counter()
    with place.ready():
        for *part, new in spread(partial(_answered, model), samples):
            parts.append(tuple(part))
            unseen.update(new)
    warn_unseen(unseen)
    found, answers, outside = zip(*parts, strict=True)
    return _joined(found), _joined(answers), np.concatenate(outside)


def _answered(
    model: CalibratedModel, sample: Sample
) -> tuple[Sample, Answer, BoolArray, Counter[tuple[str, str]]]:
    """Answer a batch, wherever it is done."""
    unseen: Counter[tuple[str, str]] = Counter()
    answer = model.answer(sample, unseen=unseen)
    outside = model.outside(sample, answer)
    return replace(sample, features=sample.features.iloc[:0]), answer, outside, unseen


def _picked(part: Any, kept: BoolArray) -> Any:
    """Return a dataclass with these rows (n,) of its arrays."""
    arrays = [name for name, value in vars(part).items() if isinstance(value, np.ndarray)]
    return replace(part, **{name: getattr(part, name)[kept] for name in arrays})


def _joined(parts: Sequence[Any]) -> Any:
    """Put the arrays of dataclasses one below the other."""
    arrays = [name for name, value in vars(parts[0]).items() if isinstance(value, np.ndarray)]
    return replace(
        parts[0], **{name: np.concatenate([getattr(one, name) for one in parts]) for name in arrays}
    )


def _judged(model: CalibratedModel, sample: Sample, answer: Answer) -> _Judged:
    scores = model.scores(sample, answer.prediction)
    sizes = (
        answer.threshold
        if model.score == PRECOMPUTED
        else model.regions.sizes(answer.prediction, answer.region)
    )
    return _Judged(answer, sizes, scores)


def _coverage(inside: BoolArray, nominal: float, clusters: IntArray | None) -> dict[str, Any]:
    found = metrics.coverage_summary(covered=inside, nominal=nominal, clusters=clusters)
    return {key: found[key] for key in ("value", "low", "high", "verdict")}


def _interval(inside: BoolArray, nominal: float, sample: Sample) -> dict[str, Any]:
    found = metrics.coverage_summary(covered=inside, nominal=nominal, clusters=clusters_of(sample))
    return {"coverage": found["value"], "low": found["low"], "high": found["high"]}


def _size(model: CalibratedModel, rows: _Judged) -> Size:
    sets = rows.answer.region.dtype == np.bool_
    if model.score == PRECOMPUTED:
        found = {**metrics.distribution(values=rows.sizes), "empty": None, "full": None, "singleton": None}
    else:
        found = metrics.size_summary(
            region=rows.answer.region, sizes=rows.sizes, whole=ends_of(model.roles.bounds)
        )
    kind = "distance" if model.regions.one_sided else "interval"
    found["of"] = "threshold" if model.score == PRECOMPUTED else "set" if sets else kind
    # a set is never infinite, but its threshold may be: then it holds all classes because it must
    found["infinite"] = float(np.isposinf(rows.answer.threshold).mean())
    finite = rows.sizes[np.isfinite(rows.sizes)]
    if finite.size:
        edges = np.arange(rows.answer.region.shape[1] + 2) - 0.5 if sets else _edges(finite)
        counts = np.histogram(finite, edges)[0]
        found["histogram"] = Histogram(edges=edges.tolist(), counts=counts.tolist())
    return Size(**found)


def _edges(values: FloatArray) -> FloatArray:
    """Bins of a histogram; values that differ by rounding alone share one."""
    low, high = float(values.min()), float(values.max())
    if high - low <= _ROUNDING * max(abs(low), abs(high), 1e-300):
        half = 0.5 * abs(high) or 0.5
        return np.array([low - half, high + half])
    return np.linspace(low, high, _HISTOGRAM + 1)


def _with_labels(model: CalibratedModel, sample: Sample, rows: _Judged, group: str | None) -> dict[str, Any]:
    """Return what takes labels: groups, ranges of sizes, the worst slab, the interval score."""
    if rows.inside is None:
        return {"groups": [], "by_size": [], "worst_slab": None, "interval_score": None}
    nominal, groups, score = model.coverage, [], None
    judged: dict[str, Any] = {"covered": rows.inside, "nominal": nominal, "clusters": clusters_of(sample)}
    if sample.group is not None and group is not None:
        names = np.array([_NO_GROUP if name is None else name for name in sample.group])
        groups = metrics.by_group(group=names, sizes=rows.sizes, **judged)
    bins = metrics.size_stratified(sizes=_rounded(rows.sizes), **judged)
    slab = metrics.worst_slab(X=rows.answer.features, covered=rows.inside, nominal=nominal)
    if model.task == "regression" and sample.outcome is not None and not model.regions.one_sided:
        lower, upper = rows.answer.region.T
        score = metrics.winkler_score(y=sample.outcome, lower=lower, upper=upper, nominal=nominal)["mean"]
    return {
        "groups": [Group(name=str(row.pop("group")), **row) for row in groups],
        "group_column": group or "",
        "by_size": [Group(name=_span(row), **row) for row in bins if len(bins) > 1],
        "worst_slab": None
        if slab["n"] < _SLAB_ROWS
        else WorstSlab(coverage=slab["value"], low=slab["low"], high=slab["high"], n=slab["n"], share=0.1),
        "interval_score": score,
    }


def _span(row: dict[str, Any]) -> str:
    low, high = row["smallest"], row["largest"]
    return cell(low) if low == high else f"{cell(low)} to {cell(high)}"


def _rounded(sizes: FloatArray) -> FloatArray:
    finite = np.abs(sizes[np.isfinite(sizes)])
    unit = _ROUNDING * float(finite.max(initial=0.0))
    return sizes if unit == 0.0 else np.where(np.isfinite(sizes), np.round(sizes / unit) * unit, sizes)


def _shift(model: CalibratedModel, rows: _Judged, beyond: BoolArray) -> Shift:
    """Return the shift at the fit, and what these rows add to it."""
    stored = model.details["shift"]
    unreachable = stored["verdict"] in (LITTLE_OVERLAP, NO_OVERLAP)
    outside = float(beyond.mean())
    remark = _REMARK if unreachable and rows.inside is not None else None
    means = dict(zip(model.encoder.names_, rows.answer.features.mean(axis=0).tolist(), strict=True))
    features = [row | {"mean_here": means[row["name"]]} for row in stored["features"]]
    return Shift.read(stored | {"features": features, "outside_support_here": outside, "remark": remark})


def _levels(model: CalibratedModel, sample: Sample, rows: _Judged) -> list[Level]:
    """Return the coverage reached at each level that the method was calibrated at; nothing without labels."""
    if rows.scores is None or rows.inside is None or not model.threshold.levels_:
        return []
    reached = {model.coverage: rows.inside}
    for level in model.threshold.levels_:
        thresholds = model.thresholds_again(sample, rows.answer, by=model.threshold.at(level))
        reached[level] = rows.scores <= thresholds
    return [Level(nominal=level, **_interval(reached[level], level, sample)) for level in sorted(reached)]


def _side_by_side(model: CalibratedModel, sample: Sample, infinite: Infinite, own: _Judged) -> list[Method]:
    """Return the model and its companions on the same rows."""
    found = []
    for name, method in {model.threshold.method_: model.threshold, **model.companions}.items():
        rows = own
        if method is not model.threshold:
            allowed: Infinite = "allow" if infinite == "error" else infinite
            rows = _judged(model, sample, model.answer_again(sample, own.answer, infinite=allowed, by=method))
        row = {} if rows.inside is None else _interval(rows.inside, model.coverage, sample)
        row["size"] = float(rows.sizes.mean()) if rows.sizes.size else None
        row["infinite"] = float(np.isposinf(rows.answer.threshold).mean())
        if np.isposinf(rows.sizes).any():
            clipped = model.answer_again(sample, own.answer, infinite="clip", by=method)
            row["size_clipped"] = float(_judged(model, sample, clipped).sizes.mean())
        found.append(Method(name=name, **row))
    return found


def _examples(sample: Sample, answer: Answer) -> Examples | None:
    """Return the intervals of a few rows beside their outcomes, to be looked at."""
    if sample.outcome is None or answer.region.dtype == np.bool_ or answer.region.ndim != 2:
        return None
    rows = np.random.default_rng(0).permutation(len(sample))[:_EXAMPLES]
    outcome, (lower, upper) = np.asarray(sample.outcome)[rows], answer.region[rows].T
    bound = np.where(np.isfinite(upper), upper, np.where(np.isfinite(lower), lower, outcome))
    middle = np.where(np.isfinite(upper - lower), (lower + upper) / 2.0, bound)
    order = np.argsort(middle, kind="stable")
    return Examples(
        **{
            k: v[order].tolist()
            for k, v in zip(("outcome", "lower", "upper"), (outcome, lower, upper), strict=True)
        }
    )


def _profiles(model: CalibratedModel, answer: Answer) -> list[Profile]:
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
        found.append(Profile(feature=feature["name"], x=x, threshold=middle, low=low, high=high))
    return found
