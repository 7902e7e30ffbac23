"""The one way from rows to thresholds, for the command line, the scikit-learn wrappers and experiments."""

from __future__ import annotations

import copy
import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lrqr import plugins
from lrqr.calibrate import labeled as labels
from lrqr.calibrate.base import BaseLearner
from lrqr.calibrate.offset import TEST_MASS
from lrqr.calibrate.threshold import ThresholdModel, prefers_few
from lrqr.errors import LrqrWarning, UsageError
from lrqr.stats.diagnosis import LITTLE_OVERLAP, NO_OVERLAP, NO_PROMISE, diagnose, weight_warning
from lrqr.stats.predictions import worse_than_a_constant
from lrqr.stats.quantiles import rows_needed
from lrqr.stats.repeats import Repeats

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lrqr.arrays import FloatArray
    from lrqr.calibrate.regions import Regions
    from lrqr.calibrate.rows import Rows
    from lrqr.plugins import FeatureMap, Guarantee
    from lrqr.stats.diagnosis import Diagnosis
    from lrqr.stats.ratio import LikelihoodRatio

_JUDGED = ("absolute", "cqr", "normalized", "lac", "aps", "raps", "neg-log")
_MOST = 0.5  # share of the rows that is called most of them: from here on "no overlap", below it "little"


@dataclass(frozen=True)
class Options:
    """How to calibrate.

    Attributes
    ----------
    score : str
        A name of ``lrqr.scores``.
    method : str or estimator
        A name of ``lrqr.methods``, or an unfitted estimator, which brings its own coverage and seed.
    coverage : float
        1-α.
    feature_map : {"auto", "given", "learned", "constant"}
        What the threshold is a function of; see `ThresholdModel`.
    seed : int or None
        Of everything random; ``random_state`` of the estimators.
    levels : tuple of float
        Further coverages to calibrate at.
    unlabeled : str
        What the caller calls the unlabeled source rows, for messages.
    certify : bool
        Whether to compute what may be promised without target labels; not done where there are some.
    at_least : float or None
        The coverage that the certificate's sensitivity is about; None for 1-α-0.05.
    guarantee : {"marginal", "pac"}
        Whether coverage is promised on average or with 95 % confidence.
    abstain : bool
        Whether rows outside the source's support get an infinite threshold.
    """

    score: str
    method: Any = "lrqr"
    coverage: float = 0.9
    feature_map: FeatureMap = "auto"
    seed: int | None = 0
    levels: tuple[float, ...] = ()
    unlabeled: str = "X_source"
    certify: bool = False
    at_least: float | None = None
    guarantee: Guarantee = "marginal"
    abstain: bool = False


def calibrate(
    source: Rows,
    target: Rows | None,
    options: Options,
    *,
    unlabeled: FloatArray | None = None,
    ratio: LikelihoodRatio | None = None,
    labeled: Rows | None = None,
    diagnosis: Diagnosis | None = None,
    stacklevel: int = 2,
) -> ThresholdModel:
    """Score the source rows and fit thresholds on them; with labeled target rows, correct these.

    Parameters
    ----------
    source : Rows of n1 labeled rows
        With predictions. Their known likelihood ratios, if they have any, take the place of an estimated one;
        a method that cannot use them refuses them.
    target : Rows of n2 rows, or None
        Their outcomes are not looked at. None: no shift, the source rows themselves.
    options : Options
    unlabeled : array of shape (n3, d), optional
        Features of unlabeled source rows, for methods that weigh rows; None means the source rows.
    ratio : LikelihoodRatio, optional
        Fitted on the source rows (``unlabeled`` ones if there are any) and the target rows, to be shared by
        several methods. Each method that needs one fits its own otherwise.
    labeled : Rows, optional
        Labeled target rows, with what the source rows have; see `lrqr.calibrate.labeled`. At least 20.
    diagnosis : Diagnosis, optional
        Of the source and the target rows; see `overlap`.
    stacklevel : int
        Of the warnings; 2 is the caller of this function.

    Warns
    -----
    LrqrWarning
        If the rows, or their known ratios, are too few for the coverage, if predicted quantiles are swapped,
        or if ``unlabeled`` is of no use.
    """
    if labeled is not None and options.guarantee == "pac":
        raise UsageError("the guarantee pac does without labels of the target: leave out one of them")
    if diagnosis is None and (options.abstain or options.certify or _guarded(options)):
        diagnosis = overlap(source, target, options)
    certify = (options.certify or options.guarantee == "pac") and labeled is None
    known = ratio if source.ratio is None else source.ratio
    model = ThresholdModel(
        options.method,
        feature_map=options.feature_map,
        classify=plugins.load("scores", options.score).TASK == "classification",
        coverage=options.coverage,
        random_state=options.seed,
        at_least=options.at_least,
        guarantee=options.guarantee,
        abstain=options.abstain,
    ).fit(
        source.features,
        scores_of(source, options.score),
        X_target=None if target is None else target.features,
        X_source=unlabeled,
        ratio=known,
        prediction=source.prediction,
        prediction_target=None if target is None else target.prediction,
        levels=options.levels,
        groups=source.groups,
        groups_target=None if target is None else target.groups,
        certify=certify,
        diagnosis=diagnosis,
    )
    if certify:
        model.certify(known)
    if labeled is not None:
        model = corrected(model, labeled, source, options.score)
    for message in _cautions(model, source, options, unlabeled=unlabeled is not None):
        warnings.warn(message, LrqrWarning, stacklevel=stacklevel)
    return model


def overlap(
    source: Rows, target: Rows | None, options: Options, names: Sequence[str] | None = None
) -> Diagnosis | None:
    """Diagnose how far source and target are apart, or None without rows or features to compare."""
    if target is None or 0 in source.features.shape or not len(target):
        return None
    coverage = options.coverage if isinstance(options.method, str) else options.method.coverage
    seed = options.seed or 0
    how: dict[str, Any] = {"names": names, "random_state": seed, "clusters": source.groups}
    return diagnose(source.features, target.features, coverage=coverage, **how)


def _guarded(options: Options) -> bool:
    """Return whether the thresholds may need a floor: those of LR-QR with few features."""
    few = options.method == "lrqr" or prefers_few(options.method)
    return options.feature_map in ("learned", "constant") or (options.feature_map == "auto" and few)


def price(model: ThresholdModel, target: Rows, regions: Regions) -> float | None:
    """Return how many times larger the raised level makes the finite answers to the target rows, or None.

    Sizes where the predictions of the rows are known, thresholds elsewhere.
    """
    if model.marginal_ is None or model.known_ratio_:
        return None
    inputs, means = plugins.load("scores", regions.score).INPUTS, []
    pair = [thresholds_of(one, target) for one in (model.marginal_, model)]
    finite = np.isfinite(pair[0]) & np.isfinite(pair[1])
    for found in pair:
        sizes = found
        if target.prediction is not None and target.prediction.shape[1] >= max(1, len(inputs)):
            sizes = regions.sizes(target.prediction, regions.of(target.prediction, found))
        means.append(float(sizes[finite].mean()) if finite.any() else np.inf)
    return means[1] / means[0] if np.isfinite(means[0]) and means[0] > 0.0 else None


def corrected(model: ThresholdModel, rows: Rows, source: Rows, score: str) -> ThresholdModel:
    """Return the model with a correction at every level, from labeled target rows, which also test it."""
    if model.support_ is not None:  # the promise is about the answered rows
        rows = rows.take(~model.support_.outside(rows.features))
    own, scores = scores_of(source, score), scores_of(rows, score)
    ours, theirs = {}, {}
    for level in (model.coverage_, *model.levels_):
        at = model if level == model.coverage_ else model.at(level)
        weights = np.asarray(getattr(at.estimator_, "weights_", np.ones(len(own))))
        if at.offset_ is None:
            thresholds = thresholds_of(at, source)
        else:  # of models that have not seen the row
            weights = at.offset_.ratios
            thresholds = own - at.offset_.residuals + at.offset_.lift(weights)
            thresholds = np.maximum(thresholds, -np.inf if at.floor_ is None else at.floor_)
        ours[level] = labels.Sample(own, thresholds, weights)
        theirs[level] = labels.Sample(scores, thresholds_of(at, rows), np.ones(len(scores)))
    other = copy.copy(model)
    other.labeled_ = labels.learn(ours, theirs, rows.features, model.coverage_)
    return other


def repeated(source: Rows, target: Rows | None) -> Repeats:
    """Count copies among labeled source rows, among target rows, and rows that both have."""
    known, other = source.known(target)
    return Repeats.of(known, other, source.outcome)


def scores_of(rows: Rows, score: str) -> FloatArray:
    """Return the scores (n,) of labeled rows with predictions."""
    scores: FloatArray = plugins.load("scores", score).score(rows.prediction, rows.outcome)
    return scores


def thresholds_of(model: ThresholdModel, rows: Rows, learned: FloatArray | None = None) -> FloatArray:
    """Return the thresholds (n,) of rows, by their known ratios if the model was fitted with known ratios.

    ``learned`` are their learned features where these are known, out-of-fold those of the fit's own rows.
    """
    known = rows.ratio if model.known_ratio_ else None
    return model.predict(rows.features, ratio=known, prediction=rows.prediction, learned=learned)


def fit_base(name: str, train: Rows, classes: Sequence[str], seed: int) -> BaseLearner:
    """Fit a built-in base learner on labeled rows that will not calibrate."""
    outcome: Any = train.outcome
    labels = np.asarray(classes)[outcome] if classes else outcome
    return BaseLearner(name, classify=bool(classes), random_state=seed).fit(
        train.features, labels, train.groups
    )


def with_predictions(learner: BaseLearner, rows: Rows, classes: Sequence[str]) -> Rows:
    """Return the rows with predictions (n, 1), or probabilities (n, K) in the order of ``classes``.

    Classes that the learner has not seen get the probability 0.
    """
    prediction = np.zeros((len(rows), len(classes) or 1))
    columns = [list(classes).index(name) for name in learner.classes_] or [0]
    prediction[:, columns] = learner.predict(rows.features)
    return replace(rows, prediction=prediction)


def _broken_guarantee(model: ThresholdModel) -> Iterator[str]:
    """Yield what to say where the bound stays below the promised coverage."""
    bound = model.certificate_
    if model.guarantee == "pac" and bound is not None and bound.lower_bound < model.coverage_:
        yield (
            f"the guarantee pac cannot be kept: {bound.effective_size:.0f} effective rows bound the coverage "
            f"by {bound.lower_bound:.3f} from below, not by {model.coverage_:g}; add source rows that "
            "look like target rows, lower the coverage, or pass --abstain (abstain=True)"
        )


def _cautions(model: ThresholdModel, source: Rows, options: Options, *, unlabeled: bool) -> Iterator[str]:
    """Yield what a user must be told of a fit."""
    needed = rows_needed(model.coverage_)
    yield from _broken_guarantee(model)
    # the other methods say it themselves, unless a feature map lets them fit at a lower level
    silent = model.method_ == "lrqr" or model.learned_ is not None
    if silent and model.n_source_ < needed:
        yield (
            f"{model.n_source_} calibration rows cannot support a coverage of {model.coverage_:g}, which "
            f"needs n >= {needed}: add rows or lower the coverage"
        )
    if source.ratio is not None:
        mass = 1.0 if model.offset_ is None else TEST_MASS
        message = weight_warning(np.asarray(source.ratio), model.coverage_, mass)
        if message:
            yield message
    if model.labeled_ is not None and model.labeled_.evidence["contradicted"]:
        found = model.labeled_.evidence
        yield (
            f"{found['n']} labeled target rows contradict that only the features shifted (the thresholds "
            f"fitted without them cover {100 * found['coverage']:.0f} %): answers now rest on these rows, "
            f"{100 * found['target_mass']:.0f} % of the offset, and on rows drawn like them"
        )
    if source.prediction is not None and source.outcome is not None and options.score in _JUDGED:
        center = source.prediction[:, :1] if options.score == "normalized" else source.prediction
        message = worse_than_a_constant(center, np.asarray(source.outcome))
        if message:
            yield message
    if options.score == "cqr" and source.prediction is not None:
        crossed = float(np.mean(source.prediction[:, 0] > source.prediction[:, 1]))
        if crossed > _MOST:
            yield f"lower above upper in {100 * crossed:.0f} % of rows: are the two columns swapped?"
    if unlabeled and model.feature_map_ != "given":
        yield (
            f"{options.unlabeled} is not used: the ratio is learned from labeled rows "
            "(the feature map given uses it)"
        )


def two_values(rows: Rows, name: str, remedy: str) -> str | None:
    """Return what to say of numbers that look like two classes, or None."""
    values = np.unique([] if rows.outcome is None else rows.outcome)
    if len(values) != 2:
        return None
    return f"{name} has only two values ({values[0]:g} and {values[1]:g}): if they are classes, use {remedy}"


def apart(diagnosis: Diagnosis, *, bare: bool = True) -> str | None:
    """Return what to say of a verdict of little or no overlap, else None; ``bare``: finite answers stay."""
    if diagnosis.verdict not in (LITTLE_OVERLAP, NO_OVERLAP):
        return None
    worth = f"effective size {diagnosis.effective_size:.3g} of {diagnosis.n_source}"
    outside = f"{100 * diagnosis.outside_support:.0f} % of the target outside the source's support"
    finite = f" {NO_PROMISE}" if bare and diagnosis.verdict == NO_OVERLAP else ""
    return f"{diagnosis.verdict} ({worth}, {outside}): {diagnosis.promise}{finite}"


def overlap_warning(model: ThresholdModel, diagnosis: Diagnosis | None, X_target: FloatArray) -> str | None:
    """Return what to say where source and target overlap little, or None.

    The command line says it in its summary, from the diagnosis and from ``unanswered_``.

    Parameters
    ----------
    model : ThresholdModel
        Fitted with ``X_target``.
    diagnosis : Diagnosis or None
        Of the source and ``X_target``.
    X_target : array of shape (n2, d)
    """
    share = model.unanswered_
    weighs = model.learned_ is None and model.estimator_.USES_RATIO and not model.known_ratio_
    # with fewer rows every threshold is infinite, wherever the target lies; that is said elsewhere
    if weighs and len(X_target) and model.n_source_ >= rows_needed(model.coverage_):
        share = float(np.isposinf(model.predict(X_target)).mean())
    if share <= 1.0 - model.coverage_:
        return None if diagnosis is None else apart(diagnosis, bare=model.support_ is None)
    taken = (
        "; the given features were taken instead, and thresholds there are extrapolated and carry no promise"
        if model.feature_map == "auto" and model.unanswered_ > 0.0
        else ""
    )
    extent = "no" if share >= _MOST else "little"
    without = (
        f" ({diagnosis.without[0].lower()}{diagnosis.without[1:]})"
        if diagnosis is not None and diagnosis.without
        else ""
    )
    return (
        f"{extent} overlap: {100 * share:.0f} % of the target rows lie where the source has "
        f"too few rows for a finite threshold{without}; no method can promise coverage there{taken}"
    )
