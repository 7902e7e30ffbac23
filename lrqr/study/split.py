"""One random split: base model, scores, one shared likelihood ratio, every method, what came out."""

from __future__ import annotations

import time
import warnings
import zlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lrqr import plugins
from lrqr.calibrate.calibrate import (
    Options,
    calibrate,
    corrected,
    fit_base,
    scores_of,
    thresholds_of,
    with_predictions,
)
from lrqr.calibrate.threshold import cap_infinite, make_estimator
from lrqr.errors import DataError, LrqrError, UsageError
from lrqr.stats.quantiles import order_statistic, tolerant_ceil
from lrqr.stats.ratio import LikelihoodRatio, effective_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lrqr.arrays import FloatArray
    from lrqr.calibrate.regions import Regions
    from lrqr.calibrate.threshold import ThresholdModel
    from lrqr.study.config import Method, Ratio
    from lrqr.study.datasets import Rows, ShiftData

Record = dict[str, Any]

# what the tidy tables hold, in this order
COLUMNS = (
    "shift",
    "split",
    "method",
    "coverage",
    "size",
    "size_allow",
    "threshold",
    "infinite",
    "empty",
    "seconds",
    "regularization",
    "ridge",
    "gap",
    "converged",
    "auc",
    "effective_size",
    "n_source",
    "n_target",
    "n_test",
    "size_matched",
    "contradicted",
    "warning",
)


_FITTED = ("regularization", "ridge", "gap", "converged")


def seed_of(seed: int, shift: str, split: int) -> int:
    """Return the seed of one split of one shift: it depends on nothing else, least of all on the jobs."""
    entropy = (seed, zlib.crc32(shift.encode()), split)
    return int(np.random.SeedSequence(entropy).generate_state(1)[0])


def predict_with_base(data: ShiftData, base: str, seed: int) -> ShiftData:
    """Fit the base learner on the training rows and fill in the predictions of all other rows."""
    if data.train is None or data.train.outcome is None:
        raise UsageError(f"base = {base!r} needs training rows, and {data.name} has none")
    learner = fit_base(base, data.train, data.classes, seed)

    def filled(rows: Rows) -> Rows:
        return with_predictions(learner, rows, data.classes)

    return replace(data, source=filled(data.source), target=filled(data.target), test=filled(data.test))


def evaluate(
    data: ShiftData, methods: Sequence[Method], *, regions: Regions, coverage: float, ratio: Ratio, seed: int
) -> list[Record]:
    """Calibrate every method on the same rows with one shared likelihood ratio; judge it on the test rows.

    Parameters
    ----------
    data : ShiftData with predictions
    methods : sequence of Method without grids
    regions : Regions
        The score, and what an outcome can be.
    coverage : float
    ratio : Ratio
        Parameters of the shared likelihood ratio.
    seed : int
        Random state of the ratio and of every method.

    Returns
    -------
    list of records
        ``seconds`` is what a user of that method alone would wait: fit, prediction of the test rows, and the
        fit of the ratio if the method uses one.
    """
    if data.source.prediction is None or data.test.prediction is None:
        raise UsageError(
            f'{data.name} brings no predictions: name a base learner, base = "ridge" for example'
        )
    few, judged = _labeled(data.test, max(method.labels for method in methods))
    data = replace(data, test=judged)
    test_scores = scores_of(data.test, regions.score)
    common: Record = {
        "shift": data.name,
        "n_source": len(data.source),
        "n_target": len(data.target),
        "n_test": len(data.test),
    }
    made = [_make(method, coverage, seed) for method in methods]
    knows = [_knows_ratio(method, data) for method in methods]
    estimates = [bool(one.USES_RATIO) and not known for one, known in zip(made, knows, strict=True)]
    shared, waited, facts = _shared(data, ratio, seed) if any(estimates) else (None, 0.0, {})
    common |= facts
    records = []
    before: dict[str, tuple[ThresholdModel, float]] = {}
    for method, one, known, estimate in zip(methods, made, knows, estimates, strict=True):
        how = Options(regions.score, one, coverage, method.feature_map, seed, abstain=method.abstain)
        source, test, labeled = data.source, data.test, few.take(np.arange(method.labels))
        if not known:
            source, test, labeled = (replace(rows, ratio=None) for rows in (source, test, labeled))
        if method.labels_alone:
            source = labeled
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                model, fitting = _fitted(
                    before,
                    method,
                    (source, data.target, labeled, data.unlabeled),
                    how,
                    shared if estimate else None,
                )
                start = time.perf_counter()
                thresholds = thresholds_of(model, test)
                seconds = fitting + time.perf_counter() - start
                outcome = _judge(regions, coverage, test, test_scores, thresholds, model.largest_score_)
            except LrqrError as error:
                raise type(error)(f"method {method.label}: {error}") from error
        # what a fitted LR-QR chose and certifies; NaN for methods that choose nothing
        fitted = {name: float(getattr(model.estimator_, f"{name}_", np.nan)) for name in _FITTED}
        if model.labeled_ is not None:
            fitted["contradicted"] = float(model.labeled_.evidence["contradicted"])
        text = str(caught[0].message) if caught else ""
        own = {"method": method.label, "seconds": seconds + waited * estimate, "warning": text}
        records.append(common | own | outcome | fitted)
    return records


def _shared(data: ShiftData, ratio: Ratio, seed: int) -> tuple[LikelihoodRatio, float, Record]:
    """Fit the ratio that all methods share; return it, how long that took, and what it says of the split."""
    start = time.perf_counter()
    shared = LikelihoodRatio(**ratio.model_dump(), random_state=seed)
    shared.fit(data.source.features if data.unlabeled is None else data.unlabeled, data.target.features)
    facts = {"auc": shared.auc_, "effective_size": effective_size(shared.source_)}
    return shared, time.perf_counter() - start, facts


def _fitted(
    before: dict[str, tuple[ThresholdModel, float]],
    method: Method,
    rows: tuple[Rows, Rows, Rows, FloatArray | None],
    how: Options,
    ratio: LikelihoodRatio | None,
) -> tuple[ThresholdModel, float]:
    """Return a model and how long it takes; one fit serves all numbers of labels that correct it.

    ``before`` keeps what was fitted; ``rows`` are the source, the target, labeled target rows, and features
    of unlabeled source rows.
    """
    source, target, labeled, unlabeled = rows
    fit = method.model_copy(update={"label": "", "labels": method.labels * method.labels_alone})
    key = fit.model_dump_json()
    start = time.perf_counter()
    if key not in before:
        model = calibrate(source, target, how, unlabeled=unlabeled, ratio=ratio)
        before[key] = model, time.perf_counter() - start
        start = time.perf_counter()
    model, seconds = before[key]
    if fit.labels == method.labels:
        return model, seconds
    return corrected(model, labeled, source, how.score), seconds + time.perf_counter() - start


def _make(method: Method, coverage: float, seed: int) -> Any:
    """Make an unfitted method with its parameters."""
    estimator = plugins.load("methods", method.name).ESTIMATOR
    return make_estimator(estimator, coverage=coverage, random_state=seed).set_params(**method.parameters)


def _knows_ratio(method: Method, data: ShiftData) -> bool:
    """Return whether the method is to use the true ratio (and fail if it is asked to and there is none)."""
    unknown = data.source.ratio is None or data.test.ratio is None
    if method.ratio == "true" and unknown:
        raise UsageError(f'ratio = "true": the true likelihood ratio of {data.name} is not known')
    return method.ratio != "estimated" and not unknown


def _labeled(test: Rows, count: int) -> tuple[Rows, Rows]:
    """Divide test rows, which are in random order, into labeled ones for the fits and those for judging."""
    if count >= len(test):
        raise UsageError(f"labels = {count}: there are only {len(test)} labeled target rows, to judge by too")
    index = np.arange(len(test))
    return test.take(index[:count]), test.take(index[count:])


def _judge(
    regions: Regions,
    coverage: float,
    test: Rows,
    test_scores: FloatArray,
    thresholds: FloatArray,
    largest: float,
) -> Record:
    """Coverage, sizes under both infinity policies and to the best constant's, infinite and empty sets."""
    if np.isnan(thresholds).any():
        raise DataError(f"{int(np.isnan(thresholds).sum())} thresholds are NaN")
    module = plugins.load("scores", regions.score)

    def sizes_at(at: FloatArray) -> FloatArray:
        return regions.sizes(test.prediction, regions.of(test.prediction, at))

    clipped = cap_infinite(thresholds, "clip", largest)
    sizes = sizes_at(thresholds)
    classify = module.TASK == "classification"
    size = float(sizes_at(clipped).mean())
    # the constant threshold that would have kept the promise: it is chosen with the labels of these rows
    constant = order_statistic(test_scores, tolerant_ceil(coverage * len(test_scores)))
    best = float(sizes_at(np.full(len(test), constant)).mean())
    return {
        "coverage": float((test_scores <= thresholds).mean()),
        "size": size,
        "size_matched": size / best if 0.0 < best < np.inf else np.nan,
        "size_allow": float(sizes.mean()),
        "threshold": float(np.maximum(clipped, module.LOWEST).mean()),
        "infinite": float(np.isposinf(thresholds).mean()),
        # an interval is empty where the threshold is below the smallest possible score
        "empty": float((sizes == 0 if classify else thresholds < module.LOWEST).mean()),
    }
