"""The likelihood ratio r = dP_target/dP_source from a domain classifier, cross-fitted.

By Bayes' rule r(x) = p(x) / (1 - p(x)) · n_source / n_target with p(x) = P(target | x); everything is
computed from log-odds, so that nothing saturates. Source: docs/methods.md; the paper's experiments use
the logistic regression without the prior factor (section 5.2 of arXiv:2502.13030).
"""

from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

import numpy as np
from scipy.stats import rankdata
from sklearn.base import BaseEstimator
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_is_fitted

from lrqr.arrays import (
    COUNT,
    OR_NAN,
    PAIR,
    POSITIVE,
    SEED,
    SHARE,
    BoolArray,
    FloatArray,
    IntArray,
    Stored,
    array,
    as_matrix,
    check_seed,
    distinct_columns,
    few_threads,
    mean_of,
    optional,
    row_dot,
    same,
)
from lrqr.errors import ArtifactError, DataError, UsageError
from lrqr.plugins import suggest
from lrqr.stats.folds import canonical_order, deal_folds, together
from lrqr.stats.trees import Trees, grown

TRAINING_ROWS = 50_000
"""The most rows that one model is trained on, of the two domains alike: more hardly change its log-odds."""

LOG_ODDS_LIMIT = 30.0
PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
Classifier = Literal["logistic", "hist-gradient-boosting"]
CLASSIFIERS: tuple[str, ...] = get_args(Classifier)
_FITTED = {
    "logistic": {"center_", "scale_", "coef_", "intercept_"},
    "hist-gradient-boosting": {"models_", "priors_"},
}


def effective_size(weights: FloatArray) -> float:
    """Return (Σw)² / Σw², the number of equally weighted rows that are worth as much.

    Examples
    --------
    >>> round(effective_size(np.array([3.0, 1.0, 4.0, 2.0])), 4)
    3.3333
    """
    largest = float(weights.max(initial=0.0))
    if largest == 0.0:
        return 0.0
    scaled = weights / largest
    return float(scaled.sum() ** 2 / np.square(scaled).sum())


def largest_share(weights: FloatArray) -> float:
    """Return the share of the total weight that the heaviest row carries."""
    total = float(weights.sum())
    return float(weights.max()) / total if total > 0.0 else 1.0


def sampled(rows: IntArray, most: int, random_state: int) -> IntArray:
    """Return at most so many of these rows, drawn without replacement, in their order."""
    if len(rows) <= most:
        return rows
    return np.sort(np.random.default_rng(random_state).choice(rows, most, replace=False))


@dataclass(repr=False, eq=False)
class LikelihoodRatio(Stored, BaseEstimator):
    """Likelihood ratio of target to source, from a classifier that tells them apart.

    Parameters
    ----------
    classifier : {"logistic", "hist-gradient-boosting"}
        L2 logistic regression on standardized features, or gradient boosted trees.
    cross_fit : int
        Number of folds. Each row's own ratio comes from the model that has not seen it, new rows get the
        mean log-odds of all. Below 2: one model, in-sample values, which are too extreme.
    C : float or "cv"
        Inverse strength of the logistic penalty. "cv" takes that of 1e-4, ..., 1 with the smallest
        out-of-fold log loss. 1 is what the reproduction of the paper uses (which names no penalty).
    clip : (float, float), optional
        Bounds for the ratio, applied before it is normalized.
    normalize : bool
        Rescale so that the mean over the source rows is 1, as E_source r = 1 asks.
    random_state : int
        Seed of the folds.

    Attributes
    ----------
    source_, target_ : (n_s,), (n_t,) arrays
        Out-of-fold ratios of the rows given to ``fit``.
    source_log_odds_, target_log_odds_ : (n_s,), (n_t,) arrays
        Their logarithms before clipping and normalizing.
    auc_ : float
        Out-of-fold area under the curve: 0.5 is no shift, 1 is disjoint supports.
    C_ : float
        The inverse penalty in use (nan for trees).
    """

    GROUPED: ClassVar[bool] = True
    STATE: ClassVar[dict[str, Any]] = {
        "n_features_in_": Annotated[COUNT, same("d")],
        "kept_": array("k", of=int, within="[0, d)", rising=True),
        "norm_": POSITIVE,
        "auc_": SHARE,
        "center_": optional(array("d")),
        "scale_": optional(array("d", within="(0, inf)")),
        "coef_": optional(array("d")),
        "intercept_": optional(float),
        "C_": optional(OR_NAN),
        "models_": optional(grown("k")),
        "priors_": optional(list[float]),
    }

    classifier: Classifier = "logistic"
    cross_fit: int = 5
    _: KW_ONLY
    C: POSITIVE | Literal["cv"] = "cv"
    clip: PAIR | None = None
    normalize: bool = True
    random_state: SEED = 0

    @few_threads()
    def fit(
        self, X_source: Any, X_target: Any, *, groups: IntArray | None = None, groups_target: Any = None
    ) -> Self:
        """Fit on source rows (n_s, d) and target rows (n_t, d).

        ``groups`` (n_s,) and ``groups_target`` (n_t,) name clusters of rows that share a fold, as copies do.
        """
        check_seed(self.random_state)
        source = as_matrix(X_source, "X_source", squared=True)
        target = as_matrix(X_target, "X_target", columns=source.shape[1], squared=True)
        if min(len(source), len(target)) == 0:
            raise DataError(
                f"a likelihood ratio needs rows of both domains, got {len(source)} source and "
                f"{len(target)} target rows"
            )
        if self.classifier not in CLASSIFIERS:
            hint = suggest(str(self.classifier), CLASSIFIERS)
            raise UsageError(
                f"unknown classifier {self.classifier!r}{hint}; choose one of: {', '.join(CLASSIFIERS)}"
            )
        self.n_features_in_ = source.shape[1]
        self.kept_ = distinct_columns(source, target)
        source, target = source[:, self.kept_], target[:, self.kept_]
        orders = canonical_order(source), canonical_order(target)
        rows = np.vstack([source[orders[0]], target[orders[1]]])
        labels = np.repeat([0, 1], [len(source), len(target)])
        folds = self._folds(
            together(source, other=target, clusters=groups),
            together(target, other=source, clusters=groups_target),
            *orders,
        )
        fit = self._fit_logistic if self.classifier == "logistic" else self._fit_trees
        fitted, own = fit(rows, labels, folds), np.empty(len(rows))
        own[np.concatenate([orders[0], len(source) + orders[1]])] = fitted
        self.source_log_odds_, self.target_log_odds_ = own[: len(source)], own[len(source) :]
        self.auc_ = area(self.source_log_odds_, self.target_log_odds_)
        # summed in canonical order: the same mean, to the last bit, however the rows are shuffled
        self.norm_ = float(self._ratio(fitted[: len(source)]).mean()) if self.normalize else 1.0
        self.source_ = self._ratio(self.source_log_odds_) / self.norm_
        self.target_ = self._ratio(self.target_log_odds_) / self.norm_
        return self

    def log_odds(self, X: Any) -> FloatArray:
        """Return log r̂ (n,) of new rows before clipping and normalizing: the fold models' mean."""
        check_is_fitted(self)
        rows = as_matrix(X, "X", columns=self.n_features_in_, squared=True)
        if self.classifier == "logistic":
            linear = row_dot((rows - self.center_) / self.scale_, self.coef_) + self.intercept_
            return _limited(linear)
        if len(rows) == 0:
            return np.empty(0)
        rows = rows[:, self.kept_]
        said = zip(self.models_.predict(rows), self.priors_, strict=True)
        return _limited(mean_of([log_odds + prior for log_odds, prior in said]))

    def predict(self, X: Any) -> FloatArray:
        """Return r̂ (n,) of new rows."""
        return self._ratio(self.log_odds(X)) / self.norm_

    def _complete(self, sizes: dict[str, Any]) -> None:
        del sizes
        needed = _FITTED[self.classifier] - {name for name, value in vars(self).items() if value is not None}
        if needed:
            raise ArtifactError(f"fitted.{min(needed)} is missing")
        if self.classifier != "logistic" and len(self.models_.base) != len(self.priors_):
            raise ArtifactError(f"fitted.priors_ must hold {len(self.models_.base)} numbers")

    def _folds(
        self, source: IntArray | None, target: IntArray | None, *orders: IntArray
    ) -> list[tuple[IntArray, IntArray]]:
        """Return (training rows, held-out rows) of each fold, in canonical order; all of both below 2."""
        groups = [
            own if own is None else own[order] for own, order in zip((source, target), orders, strict=True)
        ]
        counts = [
            len(order) if own is None else len(np.unique(own))
            for own, order in zip(groups, orders, strict=True)
        ]
        count = min(self.cross_fit, *counts)
        if count < 2:
            everything = np.arange(sum(map(len, orders)))
            return [(everything, everything)]
        fold = np.concatenate(
            [
                deal_folds(len(order), count, self.random_state, own)
                for own, order in zip(groups, orders, strict=True)
            ]
        )
        return [
            (self._training(fold != k, len(orders[0])), np.flatnonzero(fold == k)) for k in np.unique(fold)
        ]

    def _training(self, kept: BoolArray, n_source: int) -> IntArray:
        """Return the rows to train on, `TRAINING_ROWS` at most: of the smaller domain all, up to a half."""
        parts = np.flatnonzero(kept[:n_source]), n_source + np.flatnonzero(kept[n_source:])
        most = max(TRAINING_ROWS // 2, TRAINING_ROWS - min(map(len, parts)))
        return np.concatenate([sampled(part, most, self.random_state) for part in parts])

    def _fit_logistic(
        self, rows: FloatArray, labels: IntArray, folds: list[tuple[IntArray, IntArray]]
    ) -> FloatArray:
        self.center_, self.scale_ = rows.mean(axis=0), _safe_scale(rows)
        Z = (rows - self.center_) / self.scale_
        penalties = PENALTIES if self.C == "cv" else (float(self.C),)
        own = np.empty((len(penalties), len(rows)))
        linear = np.zeros((len(penalties), Z.shape[1] + 1))
        for training, held in folds:
            model = LogisticRegression(warm_start=True, max_iter=1000)
            prior = _prior(labels[training])
            for i, penalty in enumerate(penalties):
                model.set_params(C=penalty).fit(Z[training], labels[training])
                own[i, held] = model.decision_function(Z[held]) + prior
                linear[i] += np.append(model.coef_[0], model.intercept_[0] + prior) / len(folds)
        # log loss of the label with the log-odds as they would be at equal class sizes up to the prior
        signed = np.where(labels == 1, -1.0, 1.0) * (own - _prior(labels))
        best = int(np.argmin(np.logaddexp(0.0, signed).mean(axis=1)))
        self.C_ = penalties[best]
        self.coef_, self.intercept_ = self._spread(linear[best, :-1], 0.0), float(linear[best, -1])
        self.center_, self.scale_ = self._spread(self.center_, 0.0), self._spread(self.scale_, 1.0)
        return _limited(own[best])

    def _spread(self, values: FloatArray, rest: float) -> FloatArray:
        """Return values of the kept columns as values of all columns."""
        full = np.full(self.n_features_in_, rest)
        full[self.kept_] = values
        return full

    def _fit_trees(
        self, rows: FloatArray, labels: IntArray, folds: list[tuple[IntArray, IntArray]]
    ) -> FloatArray:
        own = np.empty(len(rows))
        self.C_, models, self.priors_ = np.nan, [], []
        for training, held in folds:
            # few, small, penalized trees: ratios of stronger ones are noisy (docs/selection.md)
            model = HistGradientBoostingClassifier(
                max_iter=40,
                max_leaf_nodes=8,
                min_samples_leaf=15,
                l2_regularization=5.0,
                max_features=0.3,
                early_stopping=False,
                random_state=self.random_state,
            ).fit(rows[training], labels[training])
            prior = _prior(labels[training])
            own[held] = model.decision_function(rows[held]) + prior
            models.append(model)
            self.priors_.append(prior)
        self.models_ = Trees.of(models)
        return _limited(own)

    def _ratio(self, log_odds: FloatArray) -> FloatArray:
        ratio: FloatArray = np.exp(log_odds)
        return ratio if self.clip is None else np.clip(ratio, *self.clip)


def _limited(log_odds: FloatArray) -> FloatArray:
    return np.clip(log_odds, -LOG_ODDS_LIMIT, LOG_ODDS_LIMIT)


def _prior(labels: IntArray) -> float:
    """Return log(n_source / n_target), which turns log-odds into the log-ratio."""
    targets = int(labels.sum())
    return float(np.log((len(labels) - targets) / targets))


def _safe_scale(rows: FloatArray) -> FloatArray:
    """Return the spread of each column, 1 where it is constant up to rounding."""
    scale = rows.std(axis=0)
    return np.where(scale <= 1e-12 * np.abs(rows).max(axis=0), 1.0, scale)


def area(source: FloatArray, target: FloatArray) -> float:
    """Return P(log-odds of a target row > of a source row), ties half."""
    ranks = rankdata(np.concatenate([source, target]))[len(source) :]
    return float((ranks.sum() / len(target) - (len(target) + 1) / 2) / len(source))
