"""``lrqr fit``: from a labeled source and an unlabeled target to a model directory."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lrqr import plugins
from lrqr.calibrate import maps
from lrqr.calibrate import store as artifact
from lrqr.calibrate.base import BaseLearner, training_rows
from lrqr.calibrate.model import PRECOMPUTED, CalibratedModel
from lrqr.calibrate.threshold import ThresholdModel, make_estimator
from lrqr.commands import cautions, inputs, summary
from lrqr.commands.inputs import Choices
from lrqr.commands.predict import check_id
from lrqr.data import tables
from lrqr.data.columns import schema_differences
from lrqr.data.encoder import TableEncoder
from lrqr.errors import CheckFailed, DataError, NotConverged, UsageError
from lrqr.methods.estimator import check_coverage
from lrqr.stats import metrics
from lrqr.stats.diagnosis import diagnose
from lrqr.stats.ratio import LikelihoodRatio

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from lrqr.arrays import FloatArray, IntArray
    from lrqr.data.roles import Roles
    from lrqr.data.tables import Sample
    from lrqr.plugins import FeatureMap

COMPANIONS = ("split", "weighted")
"""Methods that are calibrated beside the chosen one, for `evaluate` to compare."""

LEVELS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
"""Coverages at which `evaluate` says what the method reaches."""

_AT_LEVELS = ("lrqr", "split")  # others would store the calibration rows once more for each level


@dataclass(frozen=True)
class FitOptions(Choices):
    """What `fit` is asked for beyond what `compare` is."""

    method: str = "lrqr"
    feature_map: FeatureMap = "auto"
    regularization: float | str = "auto"
    ridge: float | str = "auto"
    selection: str = "auto"
    strict: bool = False

    @property
    def tuned(self) -> dict[str, float | str]:
        """The parameters of LR-QR."""
        return {"regularization": self.regularization, "ridge": self.ridge, "selection": self.selection}


def fit(
    source: Path,
    target: Path,
    output: Path,
    options: FitOptions,
    *,
    unlabeled_source: Path | None = None,
    force: bool = False,
    step: Callable[[str], None] = lambda _: None,
) -> CalibratedModel:
    """Calibrate on two files and write the model.

    Parameters
    ----------
    source, target : Path
        Labeled source rows; unlabeled target rows.
    output : Path
        The model directory to make.
    options : FitOptions
    unlabeled_source : Path, optional
        Further source rows without outcomes.
    force : bool
        Replace an existing model.
    step : callable
        Is told what is being done.
    """
    artifact.check_target(output, force=force)
    check_coverage(options.coverage)
    step("reading the files")
    roles, feature_map = inputs.without_map(options.roles, source, options.feature_map)
    options = replace(options, roles=roles, feature_map=feature_map)
    data = read(source, target, options, unlabeled_source)
    model = calibrate(data, options, step)
    files = {"source": source, "target": target, "unlabeled_source": unlabeled_source}
    model.details["provenance"]["inputs"] = {
        name: {"name": path.name, "sha256": summary.digest(path)}
        for name, path in files.items()
        if path is not None
    }
    check_id(model, model.roles.id)
    _check_strict(model, options)
    step("writing the model")
    model.save(output, force=force)
    return model


@dataclass(frozen=True)
class Samples:
    """The samples of a fit, and what the columns are."""

    source: Sample
    target: Sample
    unlabeled: Sample | None
    roles: Roles
    score: str


def read(source: Path, target: Path, options: FitOptions, unlabeled_source: Path | None = None) -> Samples:
    """Read the files of a fit; features are the columns that all of them have, unless they are named."""
    others = [target, *([unlabeled_source] if unlabeled_source else [])]
    roles, score = inputs.resolve(options, source, *others)
    _check_weight(roles, options)
    left_out = tables.one_sided(roles, source, target) if options.roles.features is None else ""
    if left_out:
        cautions.warn(left_out)
    labeled = inputs.read(source, roles, options, need=inputs.needed(options, roles, score))
    # learned features use the predictions of target rows, where the file has them
    rest = [inputs.read(path, roles, options, optional=("prediction",)) for path in others]
    return Samples(labeled, rest[0], rest[1] if len(rest) > 1 else None, roles, score)


def calibrate(data: Samples, options: FitOptions, step: Callable[[str], None]) -> CalibratedModel:
    """Everything between the files: encode, fit the base learner, score, diagnose, fit the threshold."""
    step("encoding the features")
    encoder = TableEncoder().fit(
        data.source.features,
        data.target.features,
        categorical=data.roles.categorical,
        on_missing=options.on_missing,
    )
    X, sample, base = encoder.transform(data.source.features, row=data.source.row), data.source, None
    if options.base:
        step(f"fitting the base learner {options.base}")
        base, rows = _fit_base(data, options, X)
        X, sample = X[rows], sample.take(rows)
    X_target = encoder.transform(data.target.features, row=data.target.row)
    X_source = None if data.unlabeled is None else encoder.transform(data.unlabeled.features)
    prediction = _prediction(data, base, sample, X)
    prediction_target = _prediction(data, base, data.target, X_target)
    cautions.about_outcome(sample, data.roles.outcome, data.score)
    cautions.about_order(prediction, data.score)
    scores = _scores(data, sample, prediction)

    step("comparing source and target")
    ratio = LikelihoodRatio(random_state=options.seed).fit(X, X_target)
    weights = ratio.source_ if sample.weight is None else sample.weight
    diagnosis = diagnose(
        X, X_target, names=encoder.names_, coverage=options.coverage, random_state=options.seed, ratio=ratio
    )

    step(f"fitting {options.method} on {len(scores)} rows")
    if X_source is not None:  # methods that weigh rows learn the ratio from all source rows
        ratio = LikelihoodRatio(random_state=options.seed).fit(X_source, X_target)
    classify = plugins.load("scores", data.score).TASK == "classification"
    rows_of = _Rows(
        X, scores, X_target, X_source, ratio, sample.weight, prediction, prediction_target, classify
    )
    threshold = _fit_threshold(options.method, options, rows_of)
    cautions.about_rows(threshold, sample.weight, unlabeled=X_source is not None)
    step("fitting the methods to compare with")
    companions = _fit_companions(options, rows_of)
    known = sample.weight if threshold.known_ratio_ else None
    inside = scores <= threshold.predict(X, ratio=known, prediction=prediction)
    shift = diagnosis.to_dict(pictures=True) | {
        "promise": diagnosis.promise,
        "columns": schema_differences(data.source.features, data.target.features),
    }
    details = {
        "fit": summary.of_fit(threshold, X_target, prediction_target) | {"dropped": data.source.dropped},
        "weighted_coverage": metrics.importance_weighted_coverage(covered=inside, weights=weights),
        "shift": shift,
        "provenance": summary.provenance(options.seed, options.on_missing),
    }
    return CalibratedModel(
        roles=replace(data.roles, features=encoder.columns_, categorical=encoder.categorical_),
        score=data.score,
        encoder=encoder,
        threshold=threshold,
        base=base,
        support=diagnosis.support,
        companions=companions,
        details=details,
    )


def _check_weight(roles: Roles, options: FitOptions) -> None:
    weighs = plugins.load("methods", options.method).ESTIMATOR.USES_RATIO
    if (
        not roles.weight
        or weighs
        or options.feature_map in ("learned", "constant")
        or _lifts_by_default(options)
    ):
        return
    others = [name for name in plugins.names("methods") if plugins.load("methods", name).ESTIMATOR.USES_RATIO]
    raise UsageError(
        f"--weight-column: method {options.method!r} with given features uses no likelihood ratio; "
        f"use --feature-map learned or constant, or a method that does: {', '.join(others)}"
    )


def _lifts_by_default(options: FitOptions) -> bool:
    """Return whether the default can use known ratios, whatever the number of rows."""
    return options.feature_map == "auto" and maps.prefers_few(_method(options.method, options))


def _method(name: str, options: FitOptions) -> Any:
    """Make an unfitted method with what the user chose."""
    estimator = plugins.load("methods", name).ESTIMATOR
    return make_estimator(estimator, coverage=options.coverage, random_state=options.seed, **options.tuned)


def _fit_base(data: Samples, options: FitOptions, X: FloatArray) -> tuple[BaseLearner, IntArray]:
    """Fit the base learner on one part of the source; return it and the rows that are left to calibrate."""
    classes = data.roles.classes
    outcome = np.asarray(data.source.outcome)
    labels = np.asarray(classes)[outcome] if classes else None
    training = training_rows(len(X), options.seed, classes=None if labels is None else labels.tolist())
    if training.all():
        raise DataError(f"{len(X)} source rows are too few to fit a base learner and to calibrate")
    learner = BaseLearner(str(options.base), classify=bool(classes), random_state=options.seed)
    learner.fit(X[training], (outcome if labels is None else labels)[training])
    return learner, np.flatnonzero(~training)


def _prediction(data: Samples, base: BaseLearner | None, sample: Sample, X: FloatArray) -> FloatArray:
    if data.score == PRECOMPUTED:
        return np.empty((len(sample), 0))
    return sample.prediction if base is None else base.predict(X)


def _scores(data: Samples, sample: Sample, prediction: FloatArray) -> FloatArray:
    outcome: Any = sample.score if data.score == PRECOMPUTED else sample.outcome
    scores: FloatArray = plugins.load("scores", data.score).score(prediction, outcome)
    return scores


@dataclass(frozen=True)
class _Rows:
    """What every method is fitted on."""

    X: FloatArray
    scores: FloatArray
    X_target: FloatArray
    X_source: FloatArray | None
    ratio: LikelihoodRatio
    known: FloatArray | None
    prediction: FloatArray
    prediction_target: FloatArray
    classify: bool

    @property
    def hints(self) -> dict[str, FloatArray]:
        """Predictions for features to be learned from, if source and target have them alike."""
        columns = self.prediction.shape[1]
        if not columns or self.prediction_target.shape[1] != columns:
            return {}
        return {"prediction": self.prediction, "prediction_target": self.prediction_target}


def _fit_threshold(name: str, options: FitOptions, rows: _Rows) -> ThresholdModel:
    method = _method(name, options)
    chosen = name == options.method
    constant = options.feature_map == "constant"
    unused = [
        f"--{key}"
        for key, value in options.tuned.items()
        if value != "auto" and (constant or not hasattr(method, key))
    ]
    if chosen and unused:
        where = "with --feature-map constant " if constant else ""
        raise UsageError(f"method {name!r} {where}has no {', '.join(unused)}")
    feature_map = options.feature_map if chosen else "given"
    if chosen and rows.known is not None and _lifts_by_default(options):
        feature_map = maps.best(classify=rows.classify)
    model = ThresholdModel(method, feature_map=feature_map, classify=rows.classify, random_state=options.seed)
    uses_known = method.USES_RATIO or feature_map in ("learned", "constant")
    ratio = rows.known if rows.known is not None and uses_known else rows.ratio
    further = chosen and name in _AT_LEVELS
    return model.fit(
        rows.X,
        rows.scores,
        X_target=rows.X_target,
        X_source=rows.X_source,
        ratio=ratio,
        levels=[level for level in LEVELS if further and level != options.coverage],
        **rows.hints,
    )


def _fit_companions(options: FitOptions, rows: _Rows) -> dict[str, ThresholdModel]:
    """Fit the methods to compare with; what they warn of concerns nobody who did not ask for them."""
    names = [name for name in COMPANIONS if name != options.method]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {name: _fit_threshold(name, options, rows) for name in names}


def _check_strict(model: CalibratedModel, options: FitOptions) -> None:
    if not options.strict:
        return
    shift, found = model.details["shift"], model.details["fit"]
    if shift["verdict"] == "no overlap":
        raise CheckFailed(
            f"no overlap: {100 * shift['outside_support']:.0f} % of the target rows lie where the source has "
            "none; no model was written (--strict)"
        )
    if found.get("converged") is False:
        raise NotConverged(
            f"the solver stopped with a gap of {found['gap']:.3g}; no model was written (--strict); "
            "a larger --regularization or --ridge is easier to solve"
        )
