"""``lrqr fit``: from a labeled source and an unlabeled target to a model directory."""

from __future__ import annotations

import platform
import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lrqr import __version__, plugins
from lrqr.calibrate import calibrate as one_way
from lrqr.calibrate import store as artifact
from lrqr.calibrate.base import training_rows
from lrqr.calibrate.model import PRECOMPUTED, CalibratedModel
from lrqr.calibrate.regions import Regions
from lrqr.calibrate.threshold import make_estimator, uses_known
from lrqr.commands import inputs
from lrqr.commands.engine import LOCAL, Place
from lrqr.commands.inputs import Choices
from lrqr.commands.predict import check_written
from lrqr.data import tables
from lrqr.data.columns import schema_differences
from lrqr.data.formats import open_table
from lrqr.errors import CheckFailed, DataError, LrqrWarning, NotConverged, UsageError
from lrqr.methods.estimator import check_coverage
from lrqr.stats import metrics
from lrqr.stats.diagnosis import NO_OVERLAP, NO_PROMISE, Diagnosis, diagnose
from lrqr.stats.ratio import TRAINING_ROWS, LikelihoodRatio

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from lrqr.calibrate.base import BaseLearner
    from lrqr.calibrate.rows import Rows
    from lrqr.calibrate.threshold import ThresholdModel
    from lrqr.data.encoder import TableEncoder
    from lrqr.data.roles import Roles
    from lrqr.data.tables import Sample
    from lrqr.plugins import FeatureMap, Guarantee

COMPANIONS = ("split", "weighted")
"""Methods that are calibrated beside the chosen one, for `evaluate` to compare."""

LEVELS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
"""Coverages at which `evaluate` says what the method reaches."""

_FILES = ("source", "target", "unlabeled_source", "labeled_target")
_AT_LEVELS = ("lrqr", "split")  # others would store the calibration rows once more for each level
_LEARNED = (
    "regularization",
    "ridge",
    "beta",
    "objective",
    "gap",
    "n_iter",
    "converged",
    "branch",
    "score_scale",
    "score_offset",
)


@dataclass(frozen=True)
class FitOptions(Choices):
    """What `fit` is asked for beyond what `compare` is."""

    method: str = "lrqr"
    feature_map: FeatureMap = "auto"
    regularization: float | str = "auto"
    ridge: float | str = "auto"
    selection: str = "auto"
    strict: bool = False
    at_least: float | None = None
    guarantee: Guarantee = "marginal"
    abstain: bool = False

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
    labeled_target: Path | None = None,
    place: Place = LOCAL,
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
    labeled_target : Path, optional
        20 or more labeled target rows, which test the fit and correct it (`lrqr.calibrate.labeled`).
    place : Place
        Where the models of the learned features are trained, and the target rows scored by them.
    force : bool
        Replace an existing model.
    step : callable
        Is told what is being done.
    """
    artifact.check_target(output, force=force)
    check_coverage(options.coverage)
    step("reading the files")
    paths = [source, target, unlabeled_source, labeled_target]
    samples, roles, options = _read(paths, options)
    how = _how(options)
    step("encoding the features")
    encoder, (rows, target_rows, *more) = inputs.encode(samples, roles, how.score, options.on_missing)
    labeled = more.pop() if labeled_target else None
    for note in one_way.repeated(rows, target_rows).notes:
        warnings.warn(note, LrqrWarning, stacklevel=2)
    base = None
    if options.base:
        step(f"fitting the base learner {options.base}")
        base, rows, target_rows = _with_base(options, roles.classes, rows, target_rows)
        labeled = labeled and one_way.with_predictions(base, labeled, roles.classes)
    _warn_of_outcome(samples[0], rows, roles.outcome, how.score)

    step("comparing source and target")
    ratio = LikelihoodRatio(random_state=options.seed).fit(rows.features, target_rows.features)
    diagnosis = diagnose(
        rows.features,
        target_rows.features,
        names=encoder.names_,
        coverage=options.coverage,
        random_state=options.seed,
        ratio=ratio,
        predictions=_predictions(rows, target_rows),
        clusters=rows.groups,
    )
    if diagnosis.predictions:
        warnings.warn(diagnosis.predictions, LrqrWarning, stacklevel=2)

    step(f"fitting {options.method} on {len(rows)} rows")
    shared: dict[str, Any] = {"ratio": ratio}
    if more:  # methods that weigh rows learn the ratio from all source rows
        everything = LikelihoodRatio(random_state=options.seed).fit(more[0].features, target_rows.features)
        shared = {"ratio": everything, "unlabeled": more[0].features}
    with place.ready():
        threshold = one_way.calibrate(rows, target_rows, how, labeled=labeled, diagnosis=diagnosis, **shared)
    step("fitting the methods to compare with")
    companions = companions_of(options.method, how, rows, target_rows, shared)
    model = packed(
        threshold,
        (rows, target_rows),
        (diagnosis, ratio),
        companions,
        encoder=encoder,
        roles=_kept(roles, encoder),
        score=how.score,
        base=base,
        columns=schema_differences(*(sample.features for sample in samples[:2])),
        dropped=samples[0].dropped,
        provenance=provenance(options.seed, options.on_missing, paths),
    )
    check_written(model, [model.roles.id] if model.roles.id else [])
    _check_strict(model, options)
    step("writing the model")
    model.save(output, force=force)
    return model


def packed(
    threshold: ThresholdModel,
    rows: tuple[Rows, Rows],
    shift: tuple[Diagnosis, LikelihoodRatio],
    companions: dict[str, ThresholdModel],
    *,
    columns: dict[str, Any],
    dropped: int,
    provenance: dict[str, Any],
    **model: Any,
) -> CalibratedModel:
    """Put together what is stored: fitted thresholds, and what is known of source, target and their shift."""
    (source, target), (diagnosis, ratio), score = rows, shift, model["score"]
    regions = Regions(score, model["roles"].bounds)
    bare = diagnosis.verdict == NO_OVERLAP and threshold.support_ is None
    return CalibratedModel(
        threshold=threshold,
        support=diagnosis.support,
        companions=companions,
        details={
            "fit": _fit_details(threshold, target, regions) | {"dropped": dropped},
            "certificate": _certificate(threshold, target),
            "weighted_coverage": _weighted_coverage(threshold, source, score, ratio),
            "shift": diagnosis.to_dict(pictures=True)
            | {
                "promise": f"{diagnosis.promise} {NO_PROMISE}" if bare else diagnosis.promise,
                "pareto_k": diagnosis.pareto_k,
                "columns": columns,
            },
            "provenance": provenance,
        },
        **model,
    )


def _kept(roles: Roles, encoder: TableEncoder) -> Roles:
    """Return the roles that the model keeps: the marks of a text file are its own."""
    found = replace(roles, features=encoder.columns_, categorical=encoder.categorical_)
    return replace(found, separator=None, decimal=None)


def _read(paths: Sequence[Path | None], options: FitOptions) -> tuple[list[Sample], Roles, FitOptions]:
    """Read source, target and perhaps unlabeled source; return also what was resolved from their columns.

    Features are the columns that all files have, unless they are named.
    """
    source, *others = (path for path in paths if path is not None)
    few = paths[-1]
    asked, feature_map = inputs.without_map(options.roles, source, options.feature_map)
    roles, score = inputs.resolve(replace(options, roles=asked), source, *others)
    options = replace(options, roles=asked, feature_map=feature_map, score=score)
    _check(options, roles)
    left_out = tables.one_sided(roles, source, others[0]) if asked.features is None else ""
    if left_out:
        warnings.warn(left_out, LrqrWarning, stacklevel=3)
    if roles.weight and roles.weight not in open_table(others[0], roles).columns:
        warnings.warn(
            f"{others[0]}: the target has no column {roles.weight!r}, and predict needs known likelihood "
            "ratios of the rows that it answers: add the column to the files to be predicted",
            LrqrWarning,
            stacklevel=3,
        )
    labeled = {"need": inputs.needed(options, roles, score)}
    # learned features use the predictions of target rows, where the file has them
    also = ("prediction", "cluster", "weight")  # and what predict would refuse is refused now
    bare = {"optional": also, "most": tables.UNLABELED_ROWS}
    rest = [(path, labeled if path is few else bare) for path in others]
    return inputs.read_all([(source, labeled), *rest], roles, options), roles, options


def _check(options: FitOptions, roles: Roles) -> None:
    """Refuse parameters of LR-QR, and weights, that the method cannot use, and a floor above the promise."""
    if options.at_least is not None and options.at_least > options.coverage:
        raise UsageError(
            f"--at-least {options.at_least:g} is above the promised coverage {options.coverage:g}; "
            "give a lower share, or raise --coverage"
        )
    method = _method(options.method, options)
    constant = options.feature_map == "constant"
    unused = [
        f"--{key}"
        for key, value in options.tuned.items()
        if value != "auto" and (constant or not hasattr(method, key))
    ]
    if unused:
        where = "with --feature-map constant " if constant else ""
        raise UsageError(f"method {options.method!r} {where}has no {', '.join(unused)}")
    if roles.weight and not uses_known(method, options.feature_map):
        names = plugins.names("methods")
        others = [name for name in names if plugins.load("methods", name).ESTIMATOR.USES_RATIO]
        raise UsageError(
            f"--weight-column: method {options.method!r} with given features uses no likelihood ratio; "
            f"use --feature-map learned or constant, or a method that does: {', '.join(others)}"
        )


def _method(name: str, options: FitOptions) -> Any:
    """Make an unfitted method with what the user chose."""
    estimator = plugins.load("methods", name).ESTIMATOR
    return make_estimator(estimator, coverage=options.coverage, random_state=options.seed, **options.tuned)


def _how(options: FitOptions) -> one_way.Options:
    """Return the options of the calibration, with every level that `evaluate` asks for."""
    return one_way.Options(
        score=str(options.score),
        method=_method(options.method, options),
        coverage=options.coverage,
        feature_map=options.feature_map,
        seed=options.seed,
        levels=tuple(level for level in LEVELS if options.method in _AT_LEVELS and level != options.coverage),
        unlabeled="--unlabeled-source",
        certify=True,
        at_least=options.at_least,
        guarantee=options.guarantee,
        abstain=options.abstain,
    )


def _with_base(
    options: FitOptions, classes: Sequence[str], source: Rows, target: Rows
) -> tuple[BaseLearner, Rows, Rows]:
    """Fit the base learner on one part of the source; return it, the other part and the target, predicted."""
    labels = np.asarray(classes)[source.outcome].tolist() if classes else None
    held = source.together(target)
    training = training_rows(len(source), options.seed, classes=labels, groups=held)
    if training.all():
        raise DataError(f"{len(source)} source rows are too few to fit a base learner and to calibrate")
    learner = one_way.fit_base(str(options.base), source.take(training), classes, options.seed)
    rest = one_way.with_predictions(learner, source.take(~training), classes)
    return learner, rest, one_way.with_predictions(learner, target, classes)


def _predictions(source: Rows, target: Rows) -> tuple[Any, Any] | None:
    """Return the predictions of both, if both have some."""
    both = source.prediction, target.prediction
    return None if both[0] is None or both[1] is None else (both[0], both[1])


def _warn_of_outcome(sample: Sample, rows: Rows, name: str | None, score: str) -> None:
    """Warn of classes without a calibration row, and of an outcome that looks like two classes."""
    if sample.classes:
        tables.warn_absent_classes(replace(sample, outcome=rows.outcome))
    elif score != PRECOMPUTED:
        message = one_way.two_values(rows, f"the outcome {name!r}", "--probability, or --base logistic")
        if message:
            warnings.warn(message, LrqrWarning, stacklevel=3)


def companions_of(
    chosen: str, how: one_way.Options, source: Rows, target: Rows, shared: dict[str, Any]
) -> dict[str, ThresholdModel]:
    """Fit the methods to compare with; what they warn of concerns nobody who did not ask for them."""
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in COMPANIONS:
            weighs = plugins.load("methods", name).ESTIMATOR.USES_RATIO
            rows = source if weighs else replace(source, ratio=None)
            rest: dict[str, Any] = {"certify": False, "guarantee": "marginal", "abstain": False}
            given = replace(how, method=name, feature_map="given", levels=(), **rest)
            if name != chosen:
                found[name] = one_way.calibrate(rows, target, given, **shared)
    return found


def _weighted_coverage(
    threshold: ThresholdModel, rows: Rows, score: str, ratio: LikelihoodRatio
) -> dict[str, Any]:
    """Return the importance-weighted coverage of the calibration rows."""
    thresholds = one_way.thresholds_of(threshold, rows, threshold.own_features_[0])
    inside = one_way.scores_of(rows, score) <= thresholds
    weights = ratio.source_ if rows.ratio is None else rows.ratio
    return metrics.importance_weighted_coverage(covered=inside, weights=weights)


def _certificate(threshold: ThresholdModel, target: Rows) -> dict[str, Any] | None:
    """Return what is certified and, where the model abstains, of which share of the target."""
    if threshold.certificate_ is None:
        return None
    share = {} if threshold.support_ is None else {"answered": _answered(threshold, target)}
    return vars(threshold.certificate_) | share


def _answered(threshold: ThresholdModel, target: Rows) -> float:
    """Return the share of the target rows that a model which abstains answers."""
    if threshold.known_ratio_ and threshold.support_ is not None:  # ratios of target rows are not asked for
        return float((~threshold.support_.outside(target.features)).mean())
    return float(np.isfinite(one_way.thresholds_of(threshold, target)).mean())


def _fit_details(threshold: ThresholdModel, target: Rows, regions: Regions) -> dict[str, Any]:
    """Sizes, choices, certificate, the cross-validation table, and thresholds on the target rows."""
    estimator = threshold.estimator_
    names = ("gap", "converged") if threshold.feature_map_ == "constant" else _LEARNED
    found = {name: getattr(estimator, f"{name}_") for name in names if hasattr(estimator, f"{name}_")}
    # the known ratios of the target rows are not asked for at fit
    thresholds = None
    if not threshold.known_ratio_:
        found_there = one_way.thresholds_of(threshold, target, threshold.own_features_[1])
        thresholds = metrics.distribution(values=found_there)
    parameters = {
        name: value
        for name, value in estimator.get_params(deep=False).items()
        if value is None or isinstance(value, str | int | float)
    }
    return {
        "method": threshold.method_,
        "coverage": threshold.coverage_,
        "n_source": threshold.n_source_,
        "n_target": len(target),
        "n_features": threshold.n_features_in_,
        "feature_map": threshold.feature_map_,
        "unanswered": threshold.unanswered_,
        "training_rows": TRAINING_ROWS,
        "largest_score": threshold.largest_score_,
        **found,
        "parameters": parameters,
        "thresholds": thresholds,
        "selection": [dict(row) for row in getattr(estimator, "selection_table_", [])],
        **({} if threshold.labeled_ is None else {"labeled": threshold.labeled_.evidence}),
        **({} if threshold.floor_ is None else {"floor": threshold.floor_}),
        **({} if threshold.support_ is None else {"answered": _answered(threshold, target)}),
        **_raised(threshold, target, regions),
    }


def _raised(threshold: ThresholdModel, target: Rows, regions: Regions) -> dict[str, Any]:
    """Return the level that the guarantee took and what it costs in size; nothing for a marginal one."""
    if threshold.guarantee == "marginal":
        return {}
    price = one_way.price(threshold, target, regions)
    return {"guarantee": threshold.guarantee, "level": threshold.level_, "price": price}


def provenance(seed: int | None, on_missing: str, paths: Sequence[Path | None] = ()) -> dict[str, Any]:
    """Versions, options and inputs; no time and no machine, so that the same input gives the same bytes."""
    import scipy
    import sklearn

    return {
        "lrqr": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "seed": seed,
        "on_missing": on_missing,
        "inputs": {
            name: {"name": path.name, "sha256": inputs.digest(path)}
            for name, path in zip(_FILES, paths, strict=False)
            if path is not None
        },
    }


def _check_strict(model: CalibratedModel, options: FitOptions) -> None:
    if not options.strict:
        return
    shift, found = model.details["shift"], model.details["fit"]
    if shift["verdict"] == NO_OVERLAP:
        raise CheckFailed(
            f"no overlap: {100 * shift['outside_support']:.0f} % of the target rows lie where the source has "
            "none; no model was written (--strict)"
        )
    if found.get("converged") is False:
        raise NotConverged(
            f"the solver stopped with a gap of {found['gap']:.3g}; no model was written (--strict); "
            "a larger --regularization or --ridge is easier to solve"
        )
