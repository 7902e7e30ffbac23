"""One random split: base model, scores, one shared likelihood ratio, every method, what came out."""

from __future__ import annotations

import time
import warnings
import zlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lrqr import plugins
from lrqr.calibrate.base import BaseLearner
from lrqr.calibrate.threshold import ThresholdModel, cap_infinite, make_estimator
from lrqr.errors import DataError, LrqrError, UsageError
from lrqr.stats.ratio import LikelihoodRatio, effective_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lrqr.arrays import FloatArray
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
    "warning",
)


def seed_of(seed: int, shift: str, split: int) -> int:
    """Return the seed of one split of one shift: it depends on nothing else, least of all on the jobs."""
    entropy = (seed, zlib.crc32(shift.encode()), split)
    return int(np.random.SeedSequence(entropy).generate_state(1)[0])


def predict_with_base(data: ShiftData, base: str, seed: int) -> ShiftData:
    """Fit the base learner on the training rows and fill in the predictions of all other rows."""
    if data.train is None or data.train.outcome is None:
        raise UsageError(f"base = {base!r} needs training rows, and {data.name} has none")
    names = [f"{index:06d}" for index in range(len(data.classes))]  # sorted as the classes are
    outcome = [names[index] for index in data.train.outcome] if names else data.train.outcome
    learner = BaseLearner(base, classify=bool(names), random_state=seed).fit(data.train.features, outcome)
    known = [names.index(name) for name in learner.classes_] or [0]

    def filled(rows: Rows) -> Rows:
        prediction = np.zeros((len(rows), len(names) or 1))  # classes that training has not seen stay at zero
        prediction[:, known] = learner.predict(rows.features)
        return replace(rows, prediction=prediction)

    return replace(data, source=filled(data.source), target=filled(data.target), test=filled(data.test))


def evaluate(
    data: ShiftData, methods: Sequence[Method], *, score: str, coverage: float, ratio: Ratio, seed: int
) -> list[Record]:
    """Calibrate every method on the same rows with one shared likelihood ratio; judge it on the test rows.

    Parameters
    ----------
    data : ShiftData with predictions
    methods : sequence of Method without grids
    score : str
        A name of ``lrqr.scores``.
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
    module = plugins.load("scores", score)
    scores = module.score(_prediction(data.source, data.name), data.source.outcome)
    test_scores = module.score(_prediction(data.test, data.name), data.test.outcome)
    common: Record = {
        "shift": data.name,
        "n_source": len(data.source),
        "n_target": len(data.target),
        "n_test": len(data.test),
    }
    models = [_make(method, coverage, seed, module.TASK == "classification") for method in methods]
    shared, waited = None, 0.0
    weighing = [bool(model.method.USES_RATIO) for model in models]
    knows = [_knows_ratio(method, data) for method in methods]
    if any(weighs and not known for known, weighs in zip(knows, weighing, strict=True)):
        start = time.perf_counter()
        shared = LikelihoodRatio(**ratio.model_dump(), random_state=seed)
        shared.fit(data.source.features, data.target.features)
        waited = time.perf_counter() - start
        common |= {"auc": shared.auc_, "effective_size": effective_size(shared.source_)}
    records = []
    for method, model, weighs, known in zip(methods, models, weighing, knows, strict=True):
        used = _true_ratio(data.source, data.name) if known else shared if weighs else None
        start = time.perf_counter()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                model.fit(
                    data.source.features,
                    scores,
                    X_target=data.target.features,
                    ratio=used,
                    prediction=data.source.prediction,
                    prediction_target=data.target.prediction,
                )
                thresholds = model.predict(
                    data.test.features,
                    ratio=_true_ratio(data.test, data.name) if known else None,
                    prediction=data.test.prediction,
                )
                seconds = time.perf_counter() - start
                outcome = _judge(module, data, test_scores, thresholds, model.largest_score_)
            except LrqrError as error:
                raise type(error)(f"method {method.label}: {error}") from error
        seconds += waited if weighs and not known else 0.0
        fitted = _fitted(model.estimator_)
        text = str(caught[0].message) if caught else ""
        records.append(
            common | {"method": method.label, "seconds": seconds, "warning": text} | outcome | fitted
        )
    return records


def _make(method: Method, coverage: float, seed: int, classify: bool) -> ThresholdModel:
    estimator = plugins.load("methods", method.name).ESTIMATOR
    made = make_estimator(estimator, coverage=coverage, random_state=seed).set_params(**method.parameters)
    return ThresholdModel(
        made, feature_map=method.features, classify=classify, coverage=coverage, random_state=seed
    )


def _prediction(rows: Rows, name: str) -> FloatArray:
    if rows.prediction is None:
        raise UsageError(f'{name} brings no predictions: name a base learner, base = "ridge" for example')
    return rows.prediction


def _knows_ratio(method: Method, data: ShiftData) -> bool:
    """Return whether the method is to use the true ratio (and fail if it is asked to and there is none)."""
    return method.ratio == "true" or (method.ratio == "best" and data.source.ratio is not None)


def _true_ratio(rows: Rows, name: str) -> FloatArray:
    if rows.ratio is None:
        raise UsageError(f'ratio = "true": the true likelihood ratio of {name} is not known')
    return rows.ratio


def _judge(
    module: Any, data: ShiftData, test_scores: FloatArray, thresholds: FloatArray, largest: float
) -> Record:
    """Coverage, mean size under both infinity policies, and the shares of infinite and empty sets."""
    if np.isnan(thresholds).any():
        raise DataError(f"{int(np.isnan(thresholds).sum())} thresholds are NaN")
    allowed = _sizes(module, data.test, thresholds)
    clipped_thresholds = cap_infinite(thresholds, "clip", largest)
    clipped = _sizes(module, data.test, clipped_thresholds)
    return {
        "coverage": float((test_scores <= thresholds).mean()),
        "size": float(clipped.mean()),
        "size_allow": float(allowed.mean()),
        "threshold": float(np.maximum(clipped_thresholds, module.LOWEST).mean()),
        "infinite": float(np.isposinf(thresholds).mean()),
        "empty": float((allowed == 0).mean())
        if module.TASK == "classification"
        else _below(thresholds, module),
    }


def _below(thresholds: FloatArray, module: Any) -> float:
    """Share of empty intervals: thresholds below the smallest possible score."""
    return float((thresholds < module.LOWEST).mean())


def _sizes(module: Any, rows: Rows, thresholds: FloatArray) -> FloatArray:
    """Length of each interval (0 if empty) or number of classes in each set, shape (n,)."""
    region: NDArray[Any] = module.region(rows.prediction, thresholds)
    if region.dtype == np.bool_:
        return np.asarray(region.sum(axis=1), dtype=np.float64)
    return np.asarray(np.maximum(region[:, 1] - region[:, 0], 0.0))


def _fitted(estimator: Any) -> Record:
    """Return what a fitted LR-QR chose and certifies; NaN for methods that choose nothing."""
    names = ("regularization", "ridge", "gap", "converged")
    return {name: float(getattr(estimator, f"{name}_", np.nan)) for name in names}
