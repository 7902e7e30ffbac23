"""A feature map and a method together: from features and scores to a threshold for any row."""

from __future__ import annotations

import copy
import inspect
import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from lrqr import plugins
from lrqr.arrays import (
    COUNT,
    LEVEL,
    SHARE,
    Stored,
    agree,
    array,
    as_matrix,
    as_vector,
    by_level,
    nested,
    one_of,
    optional,
    same,
)
from lrqr.calibrate.labeled import Labeled
from lrqr.calibrate.learned import LearnedFeatures
from lrqr.calibrate.offset import Evidence, Offset, shape_level
from lrqr.errors import ArtifactError, DataError, UsageError
from lrqr.methods.estimator import as_ratio, check_coverage
from lrqr.methods.selection import lighten
from lrqr.plugins import FEATURE_MAPS, GUARANTEES, INFINITE, check_choice
from lrqr.stats.certificate import level_for
from lrqr.stats.diagnosis import LITTLE_OVERLAP, NO_OVERLAP
from lrqr.stats.folds import group_size, together
from lrqr.stats.quantiles import conformal_quantile
from lrqr.stats.ratio import LikelihoodRatio
from lrqr.stats.support import Support

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lrqr.arrays import FloatArray, IntArray
    from lrqr.plugins import FeatureMap, Guarantee, Infinite
    from lrqr.stats.certificate import Certificate
    from lrqr.stats.diagnosis import Diagnosis

_TUNED = ("regularization", "ridge")
_ROUNDING = 2.0 * np.finfo(np.float64).eps
_ACCURACY = 1e-6  # of a solved threshold, in units of the scores
_SAME = 1e-9  # in the same units: scores that differ by no more differ by rounding alone

ENOUGH = (200, 100)
"""Source and target rows from which on ``"auto"`` learns: docs/selection.md measures it."""


def resolve_map(
    feature_map: str, estimator: Any, *, classify: bool, n_source: int, n_target: int, known: bool = False
) -> str:
    """Return the feature map that is to be used: the one place that decides what ``"auto"`` means.

    ``"auto"`` is a map of few features for LR-QR with nothing chosen by the user, if there are `ENOUGH` rows
    to learn it from or the likelihood ratios are known; otherwise it is ``"given"``. A threshold on class
    probabilities already adapts its set to the row, and of all thresholds with the same coverage the constant
    gives the fewest classes on average (Sadinle, Lei & Wasserman 2019); so classes get the constant,
    intervals the learned features (docs/selection.md).

    Parameters
    ----------
    feature_map : {"auto", "given", "learned", "constant"}
    estimator : an unfitted method
    classify : bool
        Whether the answers are sets of classes.
    n_source, n_target : int
        Calibration rows; unlabeled target rows.
    known : bool
        Whether the likelihood ratios of the calibration rows are known. Only with few features can LR-QR use
        them, so then the number of rows does not matter.

    Raises
    ------
    UsageError
        If there is no such map, or if the method weighs rows by a ratio of the given features.
    """
    check_choice("feature map", feature_map, FEATURE_MAPS)
    if feature_map == "auto":
        enough = known or (n_source >= ENOUGH[0] and n_target >= ENOUGH[1])
        few = "constant" if classify else "learned"
        return few if enough and prefers_few(estimator) else "given"
    if feature_map != "given" and estimator.USES_RATIO:
        raise UsageError(
            f"{type(estimator).__name__} weighs rows by a likelihood ratio of the given features; "
            f"{feature_map} features are for the methods that use none (lrqr, split, conditional)"
        )
    return feature_map


def prefers_few(estimator: Any) -> bool:
    """Return whether a method is LR-QR with λ, ridge and rule left to it: it does best on few features."""
    chosen = [getattr(estimator, name, None) for name in ("regularization", "ridge", "selection")]
    return chosen == ["auto", "auto", "auto"]


def uses_known(estimator: Any, feature_map: str) -> bool:
    """Return whether known ratios make a difference to a method with this feature map."""
    lifts = feature_map in ("learned", "constant") or (feature_map == "auto" and prefers_few(estimator))
    return bool(estimator.USES_RATIO) or lifts


def _method(sizes: dict[str, Any]) -> Any:
    """Return the class of the method that a stored object names."""
    if "method" not in sizes:
        raise ValueError("is of no known method")
    return plugins.load("methods", sizes["method"]).ESTIMATOR


@dataclass(frozen=True)
class Level(Stored):
    """A method at a further coverage: the fitted estimator, and the residuals of its offset if it has one."""

    STATE: ClassVar[dict[str, Any]] = {
        "estimator": nested(_method, d="shape", n="n", largest="largest"),
        "residuals": array("n") | None,
        "floor": optional(float | None),
    }

    estimator: Any
    residuals: FloatArray | None
    floor: float | None = None


def cap_infinite(thresholds: FloatArray, infinite: Infinite, largest: float) -> FloatArray:
    """Apply the policy for thresholds of ``+inf`` (docs/methods.md): keep, clip to ``largest``, or refuse."""
    check_choice("policy for infinite thresholds", infinite, INFINITE)
    unbounded = np.isposinf(thresholds)
    if infinite == "allow" or not unbounded.any():
        return thresholds
    if infinite == "clip":
        return np.where(unbounded, largest, thresholds)
    first = ", ".join(str(row) for row in np.flatnonzero(unbounded)[:5])
    raise DataError(
        f"{int(unbounded.sum())} of {len(thresholds)} rows have an infinite threshold (rows {first}, counted "
        "from 0): no finite set keeps the promise there; calibrate on more rows, lower the coverage, or "
        "allow or clip infinite thresholds"
    )


class ThresholdModel(Stored, BaseEstimator):
    """Thresholds as a function of features, by any method of ``lrqr.methods``.

    Parameters
    ----------
    method : str or estimator, default="lrqr"
        A name of ``lrqr.methods``, or an unfitted estimator of one of its classes.
    feature_map : {"auto", "given", "learned", "constant"}, default="auto"
        ``"given"``: the method sees the features as they are. ``"learned"``: it sees the cross-fitted domain
        log-odds and predicted score, gives the shape of the threshold at a lower level, and a weighted
        conformal quantile of its residuals lifts it to the promised one (docs/selection.md). ``"constant"``:
        the same with a constant shape. ``"auto"``: for LR-QR whose λ, ridge and rule are left to it,
        constant for classes and learned for all else, if the likelihood ratios are known or there are at
        least 200 source and 100 target rows; but given if more than α of these target rows would get an
        infinite threshold, and given for all other methods.
    classify : bool, default=False
        Whether the sets are sets of classes, for ``feature_map="auto"``.
    coverage : float, default=0.9
        1-α. Not used when ``method`` is an estimator, which brings its own.
    random_state : int, default=0
        Seed of everything random. Not used when ``method`` is an estimator.
    at_least : float, optional
        The coverage that the certificate's sensitivity is about; by default 1-α-0.05.
    guarantee : {"marginal", "pac"}, default="marginal"
        ``"marginal"``: the coverage is 1-α on average. ``"pac"``: the level is raised until the certified
        lower bound is 1-α, so that with 95 % confidence at least so much is covered.
    abstain : bool, default=False
        Whether rows outside the source's support get an infinite threshold.

    Attributes
    ----------
    certificate_ : Certificate or None
        What may be promised without target labels, after `certify`.
    floor_ : float or None
        What no threshold is below: split conformal's, where source and target do not
        overlap, or in too few rows, and where the given features were taken for that; None elsewhere.
    support_ : Support or None
        Where the source has rows, if the model abstains elsewhere.
    level_ : float
        The level that ``guarantee="pac"`` took; without it ``coverage_``.
    marginal_ : ThresholdModel or None
        The model as it was before its level was raised.
    estimator_ : the fitted method
    method_ : str
        Its name.
    coverage_ : float
    feature_map_ : str
        ``"given"``, ``"learned"`` or ``"constant"``.
    learned_ : LearnedFeatures or None
        None with given features.
    offset_ : Offset or None
        None with given features.
    unanswered_ : float
        Share of the target rows that would get, or get, an infinite threshold with learned features or the
        constant; 0 where these were not tried.
    levels_ : dict of float to Level
        The method at the further levels that `fit` was asked for; see `at`.
    largest_score_ : float
        The largest finite calibration score, in score units (what ``infinite="clip"`` puts for infinity).
    lattice_ : array of shape (k,) or None
        The calibration scores that occur more than once, as scores of ratings and counts do.
    accuracy_ : float
        How far from one of these a threshold may be by the solver's accuracy alone: then it is put there.
    known_ratio_ : bool
        Whether `predict` asks for the known ratios of its rows.
    n_source_ : int
        The number of calibration rows.
    labeled_ : Labeled or None
        What labeled target rows say of the thresholds, and how they correct them; set by `calibrate`.
    """

    STATE: ClassVar[dict[str, Any]] = {
        "labeled_": optional(nested(Labeled) | None),
        "lattice_": optional(array("k", rising=True) | None),
        "accuracy_": optional(float),
        "method_": Annotated[one_of(*plugins.names("methods")), same("method")],
        "feature_map_": one_of("given", "learned", "constant"),
        "coverage_": LEVEL,
        "largest_score_": Annotated[float, same("largest")],
        "n_source_": Annotated[COUNT, same("n")],
        "n_features_in_": Annotated[COUNT, same("d")],
        "known_ratio_": bool,
        "unanswered_": SHARE,
        "estimator_": nested(_method, d="shape", n="n", largest="largest"),
        "learned_": nested(LearnedFeatures, d="d") | None,
        "offset_": nested(Offset, n="n") | None,
        "floor_": optional(float | None),
        "level_": optional(LEVEL),
        "support_": optional(nested(Support, d="d") | None),
        "levels_": by_level(nested(Level, method="method", shape="shape", n="n", largest="largest")),
    }

    labeled_: Labeled | None = None
    lattice_: FloatArray | None = None
    accuracy_: float = 0.0
    own_features_: tuple[FloatArray | None, FloatArray | None] = None, None  # out-of-fold, not stored
    feature_map_: str
    learned_: LearnedFeatures | None
    offset_: Offset | None
    levels_: dict[float, Level]
    level_: float
    floor_: float | None = None
    certificate_: Certificate | None = None
    support_: Support | None = None
    marginal_: Self | None = None
    _evidence: Evidence | None = None

    def __init__(
        self,
        method: Any = "lrqr",
        *,
        feature_map: FeatureMap = "auto",
        classify: bool = False,
        coverage: float = 0.9,
        random_state: int | None = 0,
        at_least: float | None = None,
        guarantee: Guarantee = "marginal",
        abstain: bool = False,
    ) -> None:
        self.method = method
        self.feature_map = feature_map
        self.classify = classify
        self.coverage = coverage
        self.random_state = random_state
        self.at_least = at_least
        self.guarantee = guarantee
        self.abstain = abstain

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        X_target: Any = None,
        X_source: Any = None,
        ratio: LikelihoodRatio | FloatArray | None = None,
        prediction: Any = None,
        prediction_target: Any = None,
        levels: Iterable[float] = (),
        certify: bool = False,
        groups: Any = None,
        groups_target: Any = None,
        diagnosis: Diagnosis | None = None,
    ) -> Self:
        """Fit the feature map and the method.

        Parameters
        ----------
        X : array-like of shape (n1, d)
            Features of the labeled source rows, without a constant column.
        y : array-like of shape (n1,)
            Their scores.
        X_target : array-like of shape (n2, d), optional
            Unlabeled target rows; None means that there is no shift (X itself).
        X_source : array-like of shape (n3, d), optional
            Unlabeled source rows; None means X itself. Learned features do without.
        ratio : LikelihoodRatio or array of shape (n1,), optional
            A likelihood ratio fitted with X as its source, or its known values at the rows of X.
        prediction, prediction_target : array-like of shape (n1, k), (n2, k), optional
            What the user's model says of the rows of X and X_target. Learned features use them if both are
            given, and `predict` then needs those of its rows; given features do not.
        levels : iterable of float, optional
            Further coverages to calibrate at, on the same features and ratios and with the λ and the ridge
            that were chosen for ``coverage``, so that each costs one fit without cross-validation.
        certify : bool
            Whether to keep what `certify` needs: it takes five further fits without cross-validation.
        groups, groups_target : array-like of shape (n1,), (n2,), optional
            Clusters of the rows: folds keep them whole, as they keep copies of a row, and calibration leaves
            room for the whole cluster of a new row.
        diagnosis : Diagnosis, optional
            Of X and X_target: whether they overlap little, and where the source has rows.
        """
        X, y, X_target, X_source = _checked(X, y, X_target, X_source)
        method = self._start(X, y, X_target, ratio)
        held = _together(X, y, X_target, prediction, prediction_target, groups)
        levels = (self.coverage_, *map(float, levels))
        known = as_ratio(ratio, len(y)) if self.known_ratio_ else None
        found = None
        if self.feature_map_ != "given":
            if X_target is None:
                X_target, prediction_target = X, prediction
            clusters = {"groups": groups, "groups_target": groups_target}
            learned, own, of_target = self._learn(X, y, X_target, prediction, prediction_target, clusters)
            self.learned_, light = learned, clone(method)
            lighten(light, len(X), len(X_target))
            found = own, of_target, learned.source_ratio_ if known is None else known
            few, of_target_few = self._shape_features(own), self._shape_features(of_target)
            self._calibrate(light, levels, few, y, found[2], held, X_target=of_target_few)
            if known is None and self.offset_ is not None:
                lift = self.offset_.lift(learned.ratio(of_target))
                self.unanswered_ = float(np.isposinf(lift).mean())
            if self.feature_map == "auto" and self.unanswered_ > 1.0 - self.coverage_:
                self.feature_map_, self.learned_ = "given", None
        samples = {"X_target": X_target, "X_source": X_source}
        if self.feature_map_ == "given":
            self._calibrate(method, levels, X, y, None, held, **samples, ratio=ratio)
        self.lattice_, self.accuracy_ = _lattice(y, getattr(self.estimator_, "score_scale_", None))
        fell_back = found is not None and self.feature_map_ == "given"
        guarded = found is not None or (self.feature_map == "auto" and prefers_few(method))
        if guarded and (fell_back or (diagnosis is not None and diagnosis.speechless(self.coverage_))):
            self.floor_ = _floor(y, self.coverage_)
            self.levels_ = {k: replace(fit, floor=_floor(y, k)) for k, fit in self.levels_.items()}
        if self.abstain:
            self.support_ = Support.of(X) if diagnosis is None else diagnosis.support
        if certify:
            self._evidence = self._gather(X, y, found or self._domains(X, X_target, ratio), samples, held)
            self._about = self._speaks_of(X, X_target, diagnosis)
        return self

    def certify(self, ratio: LikelihoodRatio | FloatArray | None = None) -> Self:
        """Compute ``certificate_`` and, for the guarantee pac, raise the level until its bound is 1-α.

        Parameters
        ----------
        ratio : LikelihoodRatio or array of shape (n1,), optional
            As `fit` was given.
        """
        evidence, self._evidence = self._evidence, None
        if evidence is None:
            raise UsageError("call fit with certify=True first")
        found = evidence.certificate(evidence.thresholds(self.coverage_), self.coverage_, **self._about)
        if self.guarantee == "pac":
            self.marginal_ = copy.copy(self)
            outside, level = self._about.get("outside", 0.0), 0.0
            most = 1.0 - 0.25 / self.n_source_  # no score is that large: from here on nothing finite
            while found.lower_bound < self.coverage_ and level < most:
                first = level_for(min(self.coverage_ / (1.0 - outside), most), found.effective_size)
                level = min(1.0 - 0.8 * (1.0 - level) if level else first, most)
                found = evidence.certificate(evidence.thresholds(level), level, **self._about)
            if level:
                self._raise(evidence, level, ratio)
        self.certificate_ = found
        return self

    def _raise(self, evidence: Evidence, level: float, ratio: Any) -> None:
        """Calibrate at another level than the promised one, with the shape or the λ and ridge as they are."""
        self.level_ = level
        if self.floor_ is not None:
            self.floor_ = _floor(evidence.scores, level)
        if self.offset_ is not None:
            self.offset_ = replace(self.offset_, level=level)
            return
        levels, samples = self.levels_, evidence.unlabeled
        with warnings.catch_warnings():  # of too few rows for this level: said by `calibrate`
            warnings.simplefilter("ignore")
            self._calibrate(
                evidence.method,
                (level,),
                evidence.rows,
                evidence.scores,
                None,
                evidence.groups,
                **samples,
                ratio=ratio,
            )
        self.levels_ = levels

    def _start(self, X: FloatArray, y: FloatArray, X_target: FloatArray | None, ratio: Any) -> Any:
        """Forget any earlier fit; return the unfitted method."""
        check_choice("guarantee", self.guarantee, GUARANTEES)
        method = self._make()
        self.method_, self.coverage_ = _name_of(method), check_coverage(method.coverage)
        self.n_source_, self.n_features_in_ = X.shape
        self.largest_score_ = float(y.max())
        self.known_ratio_ = ratio is not None and not isinstance(ratio, LikelihoodRatio)
        self.feature_map_ = resolve_map(
            self.feature_map,
            method,
            classify=self.classify,
            n_source=len(X),
            n_target=0 if X_target is None else len(X_target),
            known=self.known_ratio_,
        )
        if not self.n_features_in_:  # nothing to learn from: every map is a constant
            self.feature_map_ = "given"
        self.learned_ = self.certificate_ = None
        self.unanswered_, self.level_, self.floor_ = 0.0, self.coverage_, None
        self.support_ = self.marginal_ = None
        return method

    def _speaks_of(
        self, X: FloatArray, X_target: FloatArray | None, diagnosis: Diagnosis | None
    ) -> dict[str, Any]:
        """Return which rows the certificate is about, for `Evidence.certificate`."""
        about: dict[str, Any] = {"at_least": self.at_least}
        if self.support_ is not None:
            both = (X, X if X_target is None else X_target)
            about["answered"] = tuple(~self.support_.outside(rows) for rows in both)
        elif diagnosis is not None and diagnosis.verdict in (LITTLE_OVERLAP, NO_OVERLAP):
            about["outside"] = diagnosis.outside_support
        return about

    def at(self, level: float) -> Self:
        """Return the model at another coverage, one of those that `fit` was asked for."""
        if level not in self.levels_:
            known = ", ".join(f"{value:g}" for value in self.levels_) or "none"
            raise UsageError(f"the model was not calibrated at {level:g}; its further levels are: {known}")
        other = copy.copy(self)
        other.coverage_, other.levels_ = level, {}
        found = self.levels_[level]
        other.estimator_, other.floor_ = found.estimator, found.floor
        if self.offset_ is not None and found.residuals is not None:
            other.offset_ = replace(self.offset_, residuals=found.residuals, level=level)
        return other

    def predict(
        self,
        X: Any,
        *,
        ratio: FloatArray | None = None,
        prediction: Any = None,
        infinite: Infinite = "allow",
        learned: FloatArray | None = None,
    ) -> FloatArray:
        """Thresholds of shape (n,), in score units; ``+inf`` where nothing smaller keeps the promise.

        Parameters
        ----------
        X : array-like of shape (n, d)
        ratio : array-like of shape (n,), optional
            The known likelihood ratios of these rows; needed if `fit` was given known ratios.
        prediction : array-like of shape (n, k), optional
            What the user's model says of these rows; needed if `fit` learned from predictions.
        infinite : {"allow", "clip", "error"}, default="allow"
            What to do with ``+inf``: keep it, put the largest finite calibration score, or refuse.
        learned : array of shape (n, 1 or 2), optional
            What `features` says of these rows, where that is known already.
        """
        X = as_matrix(X, "X", columns=self.n_features_in_, squared=True)
        if X.shape[0] == 0:
            return np.empty(0)
        known = None if ratio is None else as_ratio(ratio, X.shape[0])
        if self.learned_ is None or self.offset_ is None:
            thresholds = np.asarray(self.estimator_.predict(X, ratio=known), dtype=np.float64)
            return self._answer(X, thresholds, infinite)
        if self.known_ratio_ != (known is not None):
            raise UsageError(
                "the model was fitted with known ratios: pass ratio= for these rows too"
                if self.known_ratio_
                else "the model was fitted without known ratios: leave ratio= out"
            )
        features = self.features(X, prediction) if learned is None else learned
        weights = self.learned_.ratio(features) if known is None else known
        shape = self.estimator_.predict(self._shape_features(features))
        lift = self.offset_.lift(weights)
        # rounded up by the last bits: h + (S - h) may fall short of S, and ties are covered
        slack = np.where(np.isfinite(lift), _ROUNDING * (np.abs(shape) + np.abs(lift)), 0.0)
        return self._answer(X, np.asarray(shape + lift + slack, dtype=np.float64), infinite)

    def features(self, X: FloatArray, prediction: Any = None) -> Any:
        """Return learned features (n, 1 or 2) of rows, which all levels share; None with given features."""
        if self.learned_ is None:
            return None
        return self.learned_.transform(X, prediction=prediction if self.learned_.n_predictions_ else None)

    def _answer(self, X: FloatArray, thresholds: FloatArray, infinite: Infinite) -> FloatArray:
        """Lift thresholds to the floor, put them on repeated scores, correct them by labels, abstain."""
        if self.floor_ is not None:
            thresholds = np.maximum(thresholds, self.floor_)
        if self.lattice_ is not None:
            thresholds = _snapped(thresholds, self.lattice_, self.accuracy_)
        if self.labeled_ is not None:
            thresholds = self.labeled_.apply(thresholds, self.coverage_)
        thresholds = cap_infinite(thresholds, infinite, self.largest_score_)
        return thresholds if self.support_ is None else np.where(self.support_.outside(X), np.inf, thresholds)

    def _complete(self, sizes: dict[str, Any]) -> None:
        chosen: Any = self.feature_map_
        ThresholdModel.__init__(self, self.method_, feature_map=chosen, coverage=self.coverage_)
        self.abstain = self.support_ is not None
        given = self.feature_map_ == "given"
        if self.offset_ is not None and self.offset_.level != vars(self).get("level_", self.coverage_):
            raise ArtifactError(f"offset.level {self.offset_.level:g} is not that of the model")
        if (self.offset_ is None) != given or (self.learned_ is None) != given:
            raise ArtifactError(f"offset and learned do not fit feature_map {self.feature_map_!r}")
        columns = {"given": self.n_features_in_, "constant": 1, "learned": 2}[self.feature_map_]
        agree(sizes, "shape", columns, "estimator")
        if self.learned_ is not None and self.learned_.predict_score != (columns == 2):
            raise ArtifactError(f"learned.models do not fit feature_map {self.feature_map_!r}")
        own = vars(self).get("level_", self.coverage_) if given else self.coverage_
        fits = [(own, self.estimator_), *((level, fit.estimator) for level, fit in self.levels_.items())]
        for level, fit in fits:
            wanted = level if given else shape_level(level)
            agree({"coverage": wanted}, "coverage", fit.coverage, f"the estimator for {level}")
        if any((level.residuals is None) != given for level in self.levels_.values()):
            raise ArtifactError("levels: residuals must be there unless features are given")

    def _learn(
        self,
        X: FloatArray,
        y: FloatArray,
        X_target: FloatArray,
        prediction: Any,
        prediction_target: Any,
        clusters: dict[str, Any],
    ) -> tuple[LearnedFeatures, FloatArray, FloatArray]:
        """Learn features, from predictions too if source and target have them alike; return those of both."""
        both = _both_predicted(prediction, prediction_target)
        hints = {"prediction": prediction, "prediction_target": prediction_target} if both else {}
        learned = LearnedFeatures(
            predict_score=self.feature_map_ == "learned", random_state=self.random_state
        )
        self.own_features_ = learned.fit_transform(X, y, X_target, **hints, **clusters)
        return learned, *self.own_features_

    def _calibrate(
        self,
        method: Any,
        levels: Iterable[float],
        X: FloatArray,
        y: FloatArray,
        ratios: FloatArray | None,
        groups: IntArray | None,
        **samples: Any,
    ) -> None:
        """Fit the method at each level, and lift it if there are ``ratios`` (n1,) of the calibration rows.

        The first level is the promised one. The others take the λ and the ridge that were chosen there, and
        what they warn of concerns nobody.
        """
        if groups is not None:
            samples["groups"] = groups
        unit = 1.0 if ratios is None else group_size(groups, ratios)
        fits: list[tuple[Any, Any]] = []
        tuned: dict[str, float] = {}
        for level in levels:
            fitted = clone(method).set_params(
                coverage=level if ratios is None else shape_level(level), **tuned
            )
            with warnings.catch_warnings():
                if fits:
                    warnings.simplefilter("ignore")
                fitted.fit(X, y, **samples)
            fits.append((fitted, None if ratios is None else y - fitted.predict(X)))
            tuned = {name: getattr(fitted, f"{name}_") for name in _TUNED if hasattr(fitted, f"{name}_")}
        self.estimator_, residuals = fits[0]
        self.offset_ = None if ratios is None else Offset(residuals, ratios, self.coverage_, unit)
        self.levels_ = {level: Level(*fit) for level, fit in zip(list(levels)[1:], fits[1:], strict=True)}

    def _domains(
        self, X: FloatArray, X_target: FloatArray | None, ratio: LikelihoodRatio | FloatArray | None
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the logistic log-odds of source (n1, 1) and target (n2, 1), and the ratios (n1,)."""
        if X_target is None:
            alike = np.zeros((len(X), 1))
            return alike, alike, np.ones(len(X)) if ratio is None else np.asarray(ratio)
        fitted = ratio
        if not isinstance(fitted, LikelihoodRatio):
            fitted = LikelihoodRatio(random_state=self.random_state or 0).fit(X, X_target)
        own = fitted.source_log_odds_ if len(fitted.source_) == len(X) else fitted.log_odds(X)
        ratios = ratio if self.known_ratio_ else np.exp(own)
        return own[:, None], fitted.target_log_odds_[:, None], np.asarray(ratios)

    def _gather(
        self, X: FloatArray, y: FloatArray, found: Any, samples: dict[str, Any], groups: IntArray | None
    ) -> Evidence:
        """Put together what the method was fitted on, with the λ and the ridge that it chose."""
        own, of_target, ratios = found
        lifted = self.offset_ is not None
        if lifted:
            X, samples = self._shape_features(own), {"X_target": self._shape_features(of_target)}
        estimator = self.estimator_
        tuned = {name: getattr(estimator, f"{name}_") for name in _TUNED if hasattr(estimator, f"{name}_")}
        method = clone(estimator).set_params(**tuned)
        shape = estimator.coverage if lifted else None
        floored = self.floor_ is not None
        return Evidence(method, X, y, ratios, own, of_target, samples, shape, floored, groups)

    def _shape_features(self, features: FloatArray) -> FloatArray:
        """Return what the method sees: learned features as they are, or one that never varies."""
        return features if self.feature_map_ == "learned" else np.zeros((len(features), 1))

    def _make(self) -> Any:
        if not isinstance(self.method, str):
            return clone(self.method)
        estimator = plugins.load("methods", self.method).ESTIMATOR
        return make_estimator(estimator, coverage=self.coverage, random_state=self.random_state)


def _floor(scores: FloatArray, level: float) -> float | None:
    """Return split conformal's threshold, None where it is infinite."""
    threshold = conformal_quantile(scores, level)
    return threshold if np.isfinite(threshold) else None


def make_estimator(estimator: type[Any], **parameters: Any) -> Any:
    """Make an estimator with those of ``parameters`` that it has."""
    known = inspect.signature(estimator).parameters
    return estimator(**{name: value for name, value in parameters.items() if name in known})


def _lattice(scores: FloatArray, scale: float | None) -> tuple[FloatArray | None, float]:
    """Return the scores that occur more than once (of those alike but for rounding the largest), an accuracy.

    ``scale`` is the unit of the scores; None: their largest in size, but for the largest tenth.
    """
    unit = float(np.quantile(np.abs(scores), 0.9)) if scale is None else scale
    ordered = np.sort(scores)
    last = np.append(np.diff(ordered) > _SAME * unit, True)
    repeated = np.diff(np.flatnonzero(last), prepend=-1) > 1
    lattice = ordered[last][repeated]
    return (lattice, _ACCURACY * unit) if lattice.size else (None, 0.0)


def _snapped(thresholds: FloatArray, lattice: FloatArray, accuracy: float) -> FloatArray:
    """Return thresholds (n,), those within ``accuracy`` of a point of the lattice at that point."""
    ends = np.concatenate([[-np.inf], lattice, [np.inf]])
    above = np.searchsorted(ends, thresholds, side="left").clip(1, len(ends) - 1)
    up, down = ends[above], ends[above - 1]
    finite = np.where(np.isfinite(thresholds), thresholds, np.nan)
    lowered = np.where(finite - down <= accuracy, down, thresholds)
    return np.where(up - finite <= accuracy, up, lowered)


def _checked(X: Any, y: Any, X_target: Any, X_source: Any) -> tuple[FloatArray, FloatArray, Any, Any]:
    """Return features (n1, d), scores (n1,), and the other rows' features where there are such rows."""
    X = as_matrix(X, "X", squared=True)
    y = as_vector(y, "y", length=X.shape[0])
    if X.shape[0] == 0:
        raise DataError("there is no labeled source row to calibrate on")
    X_target = None if X_target is None else as_matrix(X_target, "X_target", columns=X.shape[1], squared=True)
    X_source = None if X_source is None else as_matrix(X_source, "X_source", columns=X.shape[1], squared=True)
    return X, y, X_target, X_source


def _both_predicted(prediction: Any, prediction_target: Any) -> bool:
    """Return whether source and target bring predictions of the same kind."""
    if prediction is None or prediction_target is None:
        return False
    columns = np.shape(prediction)[1:]
    return bool(columns != (0,) and np.shape(prediction_target)[1:] == columns)


def _together(
    X: FloatArray, y: FloatArray, X_target: Any, prediction: Any, prediction_target: Any, groups: Any
) -> IntArray | None:
    """Return which calibration rows belong together, by all that is known of them."""
    if _both_predicted(prediction, prediction_target):
        X = np.column_stack([X, prediction])
        X_target = None if X_target is None else np.column_stack([X_target, prediction_target])
    return together(X, y, other=X_target, clusters=groups)


def _name_of(estimator: Any) -> str:
    name = plugins.name_of("methods", "ESTIMATOR", type(estimator))
    if name is None:
        raise UsageError(
            f"method must be a name or an estimator of lrqr.methods, got {type(estimator).__name__}; "
            f"the names are: {', '.join(plugins.names('methods'))}"
        )
    return name
