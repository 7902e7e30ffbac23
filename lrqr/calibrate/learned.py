"""Two learned features in place of many given ones: domain log-odds and predicted score, cross-fitted.

LR-QR with few, informative features is the default of ``lrqr fit``; docs/selection.md has the evidence.
Both features are scalar functions of a row, so what is said of LR-QR in docs/method.md holds for them too.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import numpy as np
from joblib import Parallel, delayed
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.exceptions import NotFittedError

from lrqr.arrays import (
    COUNT,
    LARGEST_SEED,
    POSITIVE,
    FloatArray,
    IntArray,
    Stored,
    agree,
    array,
    as_matrix,
    as_vector,
    distinct_columns,
    few_threads,
    many,
    mean_of,
    nested,
    same,
    without_outliers,
)
from lrqr.errors import DataError
from lrqr.stats.folds import canonical_order, deal_folds, together
from lrqr.stats.ratio import LOG_ODDS_LIMIT, TRAINING_ROWS, LikelihoodRatio, sampled
from lrqr.stats.trees import Trees, grown

NAMES = ("log_odds", "predicted_score")
FOLDS = 5
REPEATS = 2
# More given features than that are replaced by their principal components before trees are grown on them.
WIDE = 128
COMPONENTS = 30
_BLOCK = 1 << 18  # rows that one task scores
# Level of the predicted quantile: that of the shape at 90 % coverage, and still easy to learn.
_LEVEL = 0.8


class LearnedFeatures(Stored):
    """Map rows to φ(x) = (domain log-odds, predicted score), in which LR-QR is then fitted.

    The log-odds come from gradient boosted trees that tell target from source rows
    (:class:`~lrqr.stats.ratio.LikelihoodRatio`), the predicted score from trees that predict its 80 %
    quantile from the same rows. Both are cross-fitted: a row that took part in the fit gets values from
    models that have not seen it, averaged over two random partitions; a new row gets the mean over all fold
    models.

    Parameters
    ----------
    predict_score : bool, default=True
        False leaves the predicted score out: the log-odds alone, for thresholds that vary with the
        likelihood ratio only.
    random_state : int, default=0
        Seed of the partitions and of the trees.

    Attributes
    ----------
    source_ratio_ : ndarray of shape (n1,)
        Out-of-fold likelihood ratios of the source rows, mean 1.
    n_features_in_ : int
        d.
    n_predictions_ : int
        Columns of the predictions that were given at fit; 0 without.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> source, target = rng.normal(size=(200, 3)), rng.normal(1.0, 1.0, size=(100, 3))
    >>> scores = np.abs(rng.normal(size=200)) * np.exp(source[:, 0])
    >>> features = LearnedFeatures()
    >>> own, of_target = features.fit_transform(source, scores, target)
    >>> own.shape, of_target.shape, features.transform(target[:7]).shape
    ((200, 2), (100, 2), (7, 2))
    """

    STATE: ClassVar[dict[str, Any]] = {
        "n_features_in_": Annotated[COUNT, same("d")],
        "n_predictions_": COUNT,
        "norm_": POSITIVE,
        "kept_": array("k", of=int, within="[0, d)", rising=True),
        "center_": array("k"),
        "directions_": array("k", "components") | None,
        "ratios_": many(nested(LikelihoodRatio, d="inputs"), least=1),
        "models_": grown("inputs"),
    }

    def __init__(self, *, predict_score: bool = True, random_state: int | None = 0) -> None:
        self.predict_score = predict_score
        self.random_state = random_state

    @few_threads()
    def fit_transform(
        self,
        X: Any,
        y: Any,
        X_target: Any,
        *,
        prediction: Any = None,
        prediction_target: Any = None,
        groups: Any = None,
        groups_target: Any = None,
    ) -> tuple[FloatArray, FloatArray]:
        """Learn the features; return those of the rows it learned from, out-of-fold.

        Parameters
        ----------
        X : array-like of shape (n1, d)
            Labeled source rows.
        y : array-like of shape (n1,)
            Their scores.
        X_target : array-like of shape (n2, d)
            Unlabeled target rows.
        prediction, prediction_target : array-like of shape (n1, k), (n2, k), optional
            What the user's model says of these rows. It is a function of the row and says much about how
            large its score will be. Both or neither.
        groups, groups_target : array-like of shape (n1,), (n2,), optional
            Clusters of rows, which are held out together, as copies are.

        Returns
        -------
        source, target : ndarrays of shape (n1, 2), (n2, 2)
            Or one column, without the predicted score.
        """
        rows = as_matrix(X, "X", squared=True)
        scores = as_vector(y, "y", length=len(rows))
        target = as_matrix(X_target, "X_target", columns=rows.shape[1], squared=True)
        if len(rows) < 2 or len(target) < 2:
            raise DataError(
                f"learned features need 2 rows or more of each domain, got {len(rows)} source and "
                f"{len(target)} target rows; use --feature-map given"
            )
        if (prediction is None) != (prediction_target is None):
            raise DataError("learned features need the predictions of source and target, or of neither")
        self.n_features_in_ = rows.shape[1]
        hints = None if prediction is None else as_matrix(prediction, "prediction")
        self.n_predictions_ = 0 if hints is None else hints.shape[1]
        self.kept_ = distinct_columns(rows, target)
        self._compress(np.vstack([rows[:, self.kept_], target[:, self.kept_]]))
        inputs = self._inputs(rows, prediction)
        target_inputs = self._inputs(target, prediction_target)
        return self._learn(inputs, scores, target_inputs, groups, groups_target)

    @few_threads()
    def transform(self, X: Any, *, prediction: Any = None) -> FloatArray:
        """Return the learned features (n, 2 or 1) of new rows; pass their predictions if fit had them."""
        self._check_fitted()
        rows = as_matrix(X, "X", columns=self.n_features_in_, squared=True)
        if len(rows) == 0:
            return np.empty((0, 1 if self.models_ is None else len(NAMES)))
        inputs = self._inputs(rows, prediction)
        log_odds = mean_of([ratio.log_odds(inputs) for ratio in self.ratios_])
        return self._features(log_odds, self._predicted(inputs))

    def ratio(self, features: FloatArray) -> FloatArray:
        """Return the likelihood ratio (n,), on the scale of ``source_ratio_``, of learned features."""
        ratio: FloatArray = np.exp(np.clip(features[:, 0], -LOG_ODDS_LIMIT, LOG_ODDS_LIMIT)) / self.norm_
        return ratio

    def _complete(self, sizes: dict[str, Any]) -> None:
        self.predict_score, self.random_state = self.models_ is not None, 0
        columns = len(self.kept_) if self.directions_ is None else self.directions_.shape[1]
        agree(sizes, "inputs", columns + min(self.n_predictions_, 2), "ratios")

    def _check_fitted(self) -> None:
        if not hasattr(self, "models_"):
            raise NotFittedError("the learned features are not fitted yet: call fit_transform first")

    def _compress(self, pooled: FloatArray) -> None:
        """Find the principal components of standardized rows where there are too many features for trees."""
        self.center_, self.directions_ = pooled.mean(axis=0), None
        if pooled.shape[1] <= WIDE:
            return
        spread = pooled.std(axis=0)
        scale = np.where(spread > 1e-12 * np.abs(pooled).max(axis=0), spread, np.inf)  # constants drop out
        # rows in canonical order: the same components, to the last bit, however the rows are shuffled
        standard = ((pooled - self.center_) / scale)[canonical_order(pooled)]
        right = np.linalg.svd(standard, full_matrices=False)[2][:COMPONENTS]
        signs = np.sign(right[np.arange(len(right)), np.abs(right).argmax(axis=1)])
        self.directions_ = (right * signs[:, None] / scale).T

    def _inputs(self, rows: FloatArray, prediction: Any) -> FloatArray:
        """Return what the trees see of rows (n, d): features or components, then the predictions."""
        rows = rows[:, self.kept_]
        if self.directions_ is not None:
            # row by row: a row's components do not depend on its batch by one bit
            rows = np.einsum("ij,jk->ik", rows - self.center_, self.directions_, optimize=False)
        if not self.n_predictions_:
            return rows
        if prediction is None:
            raise DataError("the learned features were fitted with predictions: pass those of these rows too")
        hints = as_matrix(prediction, "prediction", columns=self.n_predictions_)
        if len(hints) != len(rows):
            raise DataError(f"prediction has {len(hints)} rows, expected {len(rows)}")
        return np.hstack([rows, _summary(hints)])

    def _learn(
        self,
        inputs: FloatArray,
        scores: FloatArray,
        target_inputs: FloatArray,
        groups: Any,
        groups_target: Any,
    ) -> tuple[FloatArray, FloatArray]:
        """Grow all trees; return the features of the rows, out-of-fold."""
        scores = without_outliers(scores)
        seeds = [((self.random_state or 0) + repeat) % (LARGEST_SEED + 1) for repeat in range(REPEATS)]
        # spread over whatever processes or cluster the caller has set with joblib.parallel_config
        tasks = [delayed(_ratio)(inputs, target_inputs, seed, groups, groups_target) for seed in seeds]
        if self.predict_score:
            held = together(inputs, scores, other=target_inputs, clusters=groups)
            tasks += [delayed(_cross_fit)(inputs, scores, seed, held) for seed in seeds]
        done = list(Parallel()(tasks))
        self.ratios_, fitted = done[:REPEATS], done[REPEATS:]
        log_odds = np.mean([ratio.source_log_odds_ for ratio in self.ratios_], axis=0)
        target_log_odds = np.mean([ratio.target_log_odds_ for ratio in self.ratios_], axis=0)
        # sorted: the same mean, to the last bit, however the rows are shuffled
        self.norm_ = float(np.exp(np.sort(log_odds)).mean())
        self.source_ratio_ = np.exp(log_odds) / self.norm_
        models = [model for models, _ in fitted for model in models]
        self.models_ = Trees.of(models) if models else None
        return (
            self._features(log_odds, [own for _, own in fitted]),
            self._features(target_log_odds, self._predicted(target_inputs)),
        )

    def _predicted(self, inputs: FloatArray) -> list[FloatArray]:
        if self.models_ is None:
            return []
        blocks = [inputs[start : start + _BLOCK] for start in range(0, len(inputs), _BLOCK)]
        parts = Parallel()(delayed(self.models_.predict)(block) for block in blocks)
        return [np.concatenate(values) for values in zip(*parts, strict=True)]

    def _features(self, log_odds: FloatArray, predicted: list[FloatArray]) -> FloatArray:
        """Put the columns together; of several predictions of the score the mean, of none no column."""
        return np.column_stack([log_odds, mean_of(predicted)] if predicted else [log_odds])


def _summary(prediction: FloatArray) -> FloatArray:
    """Return predictions as they are; of three probabilities or more, the largest and the entropy."""
    if prediction.shape[1] <= 2:
        return prediction
    safe = np.clip(prediction, np.finfo(np.float64).tiny, None)
    return np.column_stack([prediction.max(axis=1), -(prediction * np.log(safe)).sum(axis=1)])


def _ratio(
    inputs: FloatArray,
    target_inputs: FloatArray,
    seed: int,
    groups: IntArray | None,
    groups_target: IntArray | None,
) -> LikelihoodRatio:
    ratio = LikelihoodRatio("hist-gradient-boosting", FOLDS, random_state=seed)
    return ratio.fit(inputs, target_inputs, groups=groups, groups_target=groups_target)


@few_threads()
def _cross_fit(
    inputs: FloatArray, scores: FloatArray, seed: int, groups: IntArray | None
) -> tuple[list[Any], FloatArray]:
    """Return the fold models and the out-of-fold predictions (n,) of the scores' quantile."""
    order: IntArray = canonical_order(inputs, scores)
    rows, ordered = inputs[order], scores[order]
    groups = None if groups is None else groups[order]
    count = len(rows) if groups is None else len(np.unique(groups))
    folds = deal_folds(len(rows), min(FOLDS, count), seed, groups)
    own, models = np.empty(len(rows)), []
    for fold in np.unique(folds):
        held = folds == fold
        training = sampled(np.flatnonzero(~held), TRAINING_ROWS, seed)
        model = HistGradientBoostingRegressor(
            loss="quantile",
            quantile=_LEVEL,
            learning_rate=0.05,
            max_iter=80,
            max_leaf_nodes=8,
            min_samples_leaf=15,
            max_features=0.3,
            early_stopping=False,
            random_state=seed,
        ).fit(rows[training], ordered[training])
        own[held] = model.predict(rows[held])
        models.append(model)
    back = np.empty(len(rows))
    back[order] = own
    return models, back
