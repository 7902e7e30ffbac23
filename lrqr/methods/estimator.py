"""What the threshold estimators share: checks, tags, a state of plain values, ratios."""

import warnings
from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from pydantic import AfterValidator
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from lrqr.arrays import (
    COUNT,
    LEVEL,
    NAMES,
    PAIR,
    SEED,
    THRESHOLD,
    FloatArray,
    Stored,
    agree,
    array,
    as_matrix,
    as_vector,
    check_seed,
    nested,
    optional,
    same,
)
from lrqr.errors import ArtifactError, DataError, LrqrWarning, UsageError
from lrqr.stats.folds import group_size
from lrqr.stats.quantiles import rows_needed, weighted_quantile
from lrqr.stats.ratio import Classifier, LikelihoodRatio, effective_size

_ROWS_SHOWN = 5
_EXTREME = 1e300


def check_coverage(coverage: float) -> float:
    """Return the level 1-α as a float strictly between 0 and 1.

    Raises
    ------
    UsageError
        If it is not; a percentage gets "did you mean".
    """
    level = float(coverage)
    if 0.0 < level < 1.0:
        return level
    hint = f"; did you mean {level / 100:g}?" if 1.0 < level < 100.0 else ""
    raise UsageError(f"coverage must lie strictly between 0 and 1, got {coverage!r}{hint}")


@dataclass(repr=False, eq=False)
class ThresholdEstimator(Stored, RegressorMixin, BaseEstimator):
    """Base of the methods: a regressor whose predictions are thresholds in score units.

    Every method is a dataclass whose fields are its parameters, which is what scikit-learn asks of
    ``__init__``: one assignment for each parameter and nothing else.

    Attributes
    ----------
    max_score_ : float
        The largest calibration score, to which a caller may clip infinite thresholds.
    n_features_in_ : int
    """

    USES_RATIO: ClassVar[bool] = False
    GROUPED: ClassVar[bool] = True
    # what ``predict`` and ``inspect`` need
    STATE: ClassVar[dict[str, Any]] = {
        "n_features_in_": Annotated[COUNT, same("d")],
        "feature_names_in_": optional(
            Annotated[NAMES, AfterValidator(lambda names: np.array(names, dtype=object))]
        ),
        "max_score_": Annotated[float, same("largest")],
    }

    coverage: LEVEL = 0.9

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # a quantile is a poor predictor of the mean
        return tags

    def _start(self, X: Any, y: Any) -> tuple[FloatArray, FloatArray, float]:
        """Check the calibration rows; return features (n,d), scores (n,) and the level."""
        level = check_coverage(self.coverage)
        check_seed(getattr(self, "random_state", None))
        features = as_matrix(X, "X", squared=True)
        if features.shape[1] == 0:
            shape = features.shape
            raise DataError(f"X has 0 feature(s) (shape={shape}) while a minimum of 1 is required.")
        if features.shape[0] == 0:
            raise DataError("X has 0 rows; at least one calibration row is needed")
        validate_data(self, X, skip_check_array=True)
        self.n_features_in_ = features.shape[1]
        scores = as_vector(column_or_1d(y, warn=True), "y", length=features.shape[0], allow_infinite=True)
        infinite = np.flatnonzero(np.isinf(scores))
        if infinite.size:
            shown = ", ".join(str(row) for row in infinite[:_ROWS_SHOWN])
            more = ", ..." if infinite.size > _ROWS_SHOWN else ""
            raise DataError(
                f"y holds infinity in {infinite.size} of {len(scores)} rows (rows {shown}{more}, counted "
                "from 0), and thresholds are fitted to finite scores; where the score is neg-log, give every "
                "class a probability above 0, or use lac or aps"
            )
        size = float(np.abs(scores).max())
        if size > _EXTREME or 0.0 < size < 1.0 / _EXTREME:  # sums or quotients of such scores leave float64
            raise DataError(
                f"the largest score in size is {size:.3g}, outside of {1.0 / _EXTREME:g} to {_EXTREME:g}; "
                "put y in other units"
            )
        self.max_score_ = float(scores.max())
        return features, scores, level

    def _complete(self, sizes: dict[str, Any]) -> None:
        threshold = vars(self).get("threshold_", -np.inf)
        if sizes["largest"] < threshold < np.inf:
            raise ArtifactError(f"fitted.threshold_: must be a score or infinite, got {threshold}")

    def _rows(self, X: Any, name: str = "X") -> FloatArray:
        """Return rows (n, d) as floats after checking that they have the columns seen in ``fit``."""
        check_is_fitted(self)
        features = as_matrix(X, name, squared=True)
        validate_data(self, X, reset=False, skip_check_array=True)
        return features


@dataclass(frozen=True)
class Ratios:
    """The likelihood ratios of the rows a method is fitted on.

    Attributes
    ----------
    calibration : (n1,) array
        Of the calibration rows: out-of-fold where they took part in the fit of the ratio.
    source : (n3,) array
        Of the unlabeled source rows (the calibration rows where there are none).
    target : (n2,) array or None
        Of the target rows; None when the ratio is known, since those are not asked for.
    """

    calibration: FloatArray
    source: FloatArray
    target: FloatArray | None


@dataclass(repr=False, eq=False)
class RatioEstimator(ThresholdEstimator):
    """Base of the methods that use a likelihood ratio: known ratios, a fitted one, or one fitted here.

    Attributes
    ----------
    ratio_ : LikelihoodRatio or None
        None with known ratios, or without a target (then there is no shift and the ratio is 1).
    known_ratio_ : bool
        The caller gave the ratios of the calibration rows, and must give those of new rows.
    """

    USES_RATIO: ClassVar[bool] = True
    STATE: ClassVar[dict[str, Any]] = {"known_ratio_": optional(bool)}

    _: KW_ONLY
    classifier: Classifier = "logistic"
    cross_fit: int = 5
    random_state: SEED = 0

    def _resolve(self, ratio: Any, X: FloatArray, X_target: Any, X_source: Any, groups: Any) -> Ratios:
        """Turn ``fit``'s ``ratio`` into ratios of the rows X (n1,d), X_source (n3,d) and X_target (n2,d).

        None fits a likelihood ratio on ``X_source`` (or ``X``) and ``X_target``; a fitted one must have
        been fitted on those very rows; an array (n1,) is the known ratio of the rows of X.
        ``groups`` are those of X.
        """
        target = None if X_target is None else self._rows(X_target, "X_target")
        source = X if X_source is None else self._rows(X_source, "X_source")
        self.ratio_: LikelihoodRatio | None = None
        self.known_ratio_ = False
        if ratio is None and target is None:
            return Ratios(np.ones(len(X)), np.ones(len(source)), np.ones(len(X)))
        if ratio is not None and not isinstance(ratio, LikelihoodRatio):
            self.known_ratio_ = True
            known = as_ratio(ratio, len(X))
            return Ratios(known, known, None)
        if ratio is None:
            fresh = LikelihoodRatio(self.classifier, self.cross_fit, random_state=self.random_state)
            self.ratio_ = fresh.fit(source, target, groups=groups if X_source is None else None)
        else:
            self.ratio_ = ratio
        if len(self.ratio_.source_) != len(source):
            raise UsageError(
                f"the likelihood ratio was fitted on {len(self.ratio_.source_)} source rows, but "
                f"{len(source)} were given; fit it on the same rows, or pass them as X_source"
            )
        own = self.ratio_.source_ if X_source is None else self.ratio_.predict(X)
        return Ratios(own, self.ratio_.source_, self.ratio_.target_)

    def _rows_ratio(self, rows: FloatArray, ratio: Any) -> FloatArray:
        """Return the ratios (n,) of new rows: those given if the ratio is known, else the model's."""
        if self.known_ratio_:
            if ratio is None:
                raise UsageError("this method was fitted with known ratios: pass ratio= for these rows too")
            return as_ratio(ratio, len(rows))
        refuse_known(ratio, "it was fitted without")
        return np.ones(len(rows)) if self.ratio_ is None else self.ratio_.predict(rows)


class OneThreshold(RatioEstimator):
    """Base of the methods whose threshold is the same for all rows; the ratio matters in ``fit`` only.

    Attributes
    ----------
    threshold_ : float
        In score units.
    """

    STATE: ClassVar[dict[str, Any]] = {"threshold_": THRESHOLD}

    threshold_: float

    def predict(self, X: Any, *, ratio: Any = None) -> FloatArray:
        """Return the same threshold (n,) for every row; ratios of these rows change nothing."""
        del ratio
        return np.full(len(self._rows(X)), self.threshold_)


@dataclass(repr=False, eq=False)
class WeightedThreshold(RatioEstimator):
    """Base of the methods whose threshold is a quantile of the scores weighted by the ratio.

    Attributes
    ----------
    scores_, weights_ : (n,) arrays
        Calibration scores and their ratios.
    level_ : float
        The level of the quantile, where that is not the coverage.
    unit_ : float
        Rows that a new row stands for: 1, or the mean size of its group where rows come in groups.
    """

    STATE: ClassVar[dict[str, Any]] = {
        "known_ratio_": bool,
        "scores_": array("n"),
        "ratio_": nested(LikelihoodRatio, d="d") | None,
        "weights_": array("n", within="[0, inf)"),
        "unit_": optional(float),
    }

    _: KW_ONLY
    clip: PAIR | None = None

    def _complete(self, sizes: dict[str, Any]) -> None:
        agree(sizes, "largest", float(self.scores_.max()), "fitted.scores_")

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        X_target: Any = None,
        X_source: Any = None,
        ratio: Any = None,
        groups: Any = None,
    ) -> Self:
        """Store the scores y (n1,) with the ratios of their rows; without ``X_target`` all ratios are 1."""
        features, self.scores_, level = self._start(X, y)
        level = self._nominal(level)
        check_clip(self.clip, np.inf)
        ratios = self._resolve(ratio, features, X_target, X_source, groups)
        self.weights_ = self._clipped(ratios.calibration)
        self.unit_ = group_size(groups, self.weights_)
        warn_few(self.weights_, level)
        return self

    def predict(self, X: Any, *, ratio: Any = None) -> FloatArray:
        """Return each row's threshold (n,) in score units, +inf where its ratio is too large."""
        rows = self._rows(X)
        level = vars(self).get("level_", self.coverage)
        mass = vars(self).get("unit_", 1.0) * self._clipped(self._rows_ratio(rows, ratio))
        return weighted_quantile(self.scores_, self.weights_, mass, level)

    def _clipped(self, weights: FloatArray) -> FloatArray:
        """Return the weights within ``clip``."""
        return weights if self.clip is None else np.clip(weights, *self.clip)

    def _nominal(self, level: float) -> float:
        """Return the level of the quantile for the wanted coverage."""
        return level


def check_clip(clip: tuple[float, float] | None, limit: float) -> None:
    """Refuse bounds that are not 0 <= low < high < limit."""
    if clip is None:
        return
    given: list[Any] = list(clip)
    numbers = [float(value) for value in given if isinstance(value, Real)]
    if len(numbers) == len(given) == 2 and 0.0 <= numbers[0] < numbers[1] < limit:
        return
    above = f" < {limit:g}" if np.isfinite(limit) else ", both finite"
    raise UsageError(f"clip must be two numbers, 0 <= low < high{above}, got {clip!r}")


def refuse_known(ratio: Any, reason: str) -> None:
    """Raise if known ratios are given where they could not be used."""
    if ratio is not None and not isinstance(ratio, LikelihoodRatio):
        raise UsageError(f"known ratios (weights) would be ignored: {reason}; leave ratio= out")


def as_ratio(values: Any, length: int) -> FloatArray:
    """Return known ratios as finite, non-negative floats (n,); one message names all kinds of bad rows."""
    ratio = np.asarray(values, dtype=np.float64)
    if ratio.shape != (length,):
        raise DataError(f"ratio must have shape ({length},), one value per row, got {ratio.shape}")
    bad = np.flatnonzero(~(np.isfinite(ratio) & (ratio >= 0.0)))
    if bad.size:
        shown = ", ".join(f"row {row}: {ratio[row]:g}" for row in bad[:_ROWS_SHOWN])
        more = ", ..." if bad.size > _ROWS_SHOWN else ""
        raise DataError(
            f"ratio is negative, NaN or infinite in {bad.size} of {length} rows "
            f"({shown}{more}; counted from 0)"
        )
    largest = float(ratio.max(initial=0.0))
    if largest and not 1.0 / _EXTREME <= largest <= _EXTREME:
        raise DataError(
            f"the largest ratio is {largest:.3g}, outside of {1.0 / _EXTREME:g} to {_EXTREME:g}; divide all "
            "of them, those of new rows too, by one number"
        )
    return ratio


def warn_few(weights: FloatArray, level: float, *, finite: bool = False, stacklevel: int = 3) -> None:
    """Warn where the calibration rows, or what their weights leave of them, are too few for the level.

    ``finite`` says that the method's thresholds are finite all the same.
    """
    needed, n = rows_needed(level), len(weights)
    worth = effective_size(weights)
    if n < needed:
        fact = "the threshold is finite but promises less" if finite else "all thresholds may be infinite"
        message = (
            f"{fact}: coverage {level:g} needs n >= {needed} calibration rows, got {n}; "
            "add rows or lower the coverage"
        )
    elif worth < needed:
        rest = "the threshold rests on them" if finite else "thresholds will be infinite or rest on them"
        message = (
            f"the effective sample size is {worth:.1f} of {n} rows, but coverage {level:g} needs at least "
            f"{needed}: a few rows carry nearly all weight, and {rest}. "
            "Check the overlap of source and target, use fewer features, or clip the ratio"
        )
    else:
        return
    warnings.warn(message, LrqrWarning, stacklevel=stacklevel)
