"""Doubly robust prediction: one threshold from the efficient influence function of the target quantile."""

import math
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit

from lrqr.arrays import PAIR, FloatArray, IntArray
from lrqr.errors import DataError, UsageError
from lrqr.methods.estimator import OneThreshold, check_clip, warn_few
from lrqr.stats.folds import canonical_order, deal_folds, together
from lrqr.stats.quantiles import tolerant_ceil


@dataclass(repr=False, eq=False)
class DoublyRobust(OneThreshold):
    """Doubly robust prediction of Yang, Kuchibhotla and Tchetgen Tchetgen (2024), the paper's 2R-CP.

    With m(θ, x) = P(S <= θ | X = x), estimated by one logistic regression for each θ, the target
    distribution of the scores is::

        G(θ) = mean_source r(X)·(1{S <= θ} - m(θ, X)) + mean_target m(θ, X)

    which is right if either r or m is. The threshold is the smallest observed score from which on G stays
    at least 1-α. There is no finite-sample correction: coverage is right in the limit.

    Parameters
    ----------
    coverage : float
        The wanted coverage 1-α.
    grid : int
        Number of candidate scores: quantiles between the levels max(1/2, 1-α-0.4) and 1, continued
        below at the same distance where G asks for it. Fewer are faster and coarser.
    clip : (low, high), optional
        Bounds of the propensity P(target | x) of the calibration rows, of which the ratio is made. Unbounded
        by default; the authors' scripts use (.1, .9).
    classifier : {"logistic", "hist-gradient-boosting"}
        What estimates the ratio when none is given.
    cross_fit : int
        Folds for the ratio and for m; below 2, both are in-sample, as in the authors' scripts.
    random_state : int
        Seed of the folds.

    Attributes
    ----------
    threshold_ : float
        In score units, finite: at the largest score G is 1.
    max_score_ : float
        Largest calibration score.
    """

    _: KW_ONLY
    grid: int = 100
    clip: PAIR | None = None

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
        """Take the threshold from the scores y (n1,), their rows' ratios and the target's features.

        Without ``X_target`` there is nothing to average m over, and G is the weighted distribution of the
        scores alone.
        """
        features, scores, level = self._start(X, y)
        if self.grid < 2:
            raise UsageError(f"grid must be at least 2, got {self.grid!r}")
        check_clip(self.clip, 1.0)
        ratios = self._resolve(ratio, features, X_target, X_source, groups)
        target_rows = len(features) if X_target is None else len(X_target)
        weights = self._clipped(ratios.calibration, len(ratios.source) / target_rows)
        warn_few(weights, level, finite=True)
        if not weights.any():
            raise DataError("all likelihood ratios of the calibration rows are 0; the target is out of reach")
        target = None if X_target is None else self._rows(X_target, "X_target")
        held = together(features, scores, other=target, clusters=groups)
        order = canonical_order(features, scores)
        held = None if held is None else held[order]
        features, scores, weights = features[order], scores[order], weights[order] / weights.mean()
        candidates = falling_candidates(scores, level, self.grid)
        curve = self._curve(features, scores, weights, target, candidates, held)
        self.threshold_ = falling_threshold(candidates, curve, level)
        return self

    def _clipped(self, ratios: FloatArray, prior: float) -> FloatArray:
        """Return the ratios (n1,) of propensities within ``clip``; ``prior`` is n_source / n_target."""
        if self.clip is None:
            return ratios
        scale = 1.0 if self.ratio_ is None else self.ratio_.norm_
        odds = np.asarray(self.clip) / (1.0 - np.asarray(self.clip))
        return np.clip(ratios, *(odds * prior / scale))

    def _curve(
        self,
        X: FloatArray,
        scores: FloatArray,
        weights: FloatArray,
        target: FloatArray | None,
        candidates: FloatArray,
        groups: IntArray | None = None,
    ) -> Iterator[float]:
        """Yield G at each candidate, as long as the caller asks."""
        if target is None:
            yield from (float((weights * (scores <= theta)).mean()) for theta in candidates)
            return
        target = target[canonical_order(target)]
        fold = np.zeros(len(X), dtype=np.int64)
        folds = min(self.cross_fit, len(X) if groups is None else len(np.unique(groups)))
        if folds > 1:
            fold = deal_folds(len(X), folds, self.random_state, groups)
        models = [_FoldModel(X, target, fold, k) for k in np.unique(fold)]
        own = np.empty(len(X))
        for theta in candidates:
            below = (scores <= theta).astype(np.float64)
            among_target = 0.0
            for model in models:
                own[model.held], predicted = model.probabilities(below)
                among_target += float(predicted.mean()) / len(models)
            yield doubly_robust_level(weights, below, own, among_target)


def doubly_robust_level(
    weights: FloatArray, below: FloatArray, own: FloatArray, among_target: float
) -> float:
    """Return G(θ) from ratios, 1{S <= θ} and m(θ, X) of the source rows (n,), and the target mean of m."""
    return float((weights * (below - own)).mean()) + among_target


def falling_candidates(scores: FloatArray, level: float, grid: int) -> FloatArray:
    """Return observed scores, largest first: their quantiles at levels 1, 1-δ, 1-2δ, ...

    The distance δ puts ``grid`` of them between the levels max(1/2, level-0.4) and 1.
    """
    step = (1.0 - max(0.5, level - 0.4)) / (grid - 1)
    n = len(scores)
    ranks = [tolerant_ceil(n * (1.0 - i * step)) for i in range(math.floor(1.0 / step) + 1)]
    return np.unique(np.sort(scores)[[rank - 1 for rank in ranks if rank >= 1]])[::-1]


def falling_threshold(candidates: FloatArray, curve: Iterator[float], level: float) -> float:
    """Return the smallest candidate such that G is at least ``level`` there and at all larger ones.

    Going down and stopping at the first failure equals min{θ : min_{θ' >= θ} G(θ') >= level}, and asks
    for no G below. +inf when the largest fails.
    """
    threshold = math.inf
    for theta, value in zip(candidates, curve, strict=False):
        if value < level - 1e-9:
            break
        threshold = float(theta)
    return threshold


class _FoldModel:
    """m(θ, ·) of one fold for a sequence of θ: L2 logistic regressions, each started at the one before.

    scikit-learn's solver takes 12 to 19 ms for such a fit at 400 rows and 100 features, mostly because it
    forgets the curvature that hardly changes from one θ to the next. This keeps its Cholesky factor as
    long as the steps contract.
    """

    def __init__(self, X: FloatArray, target: FloatArray, fold: IntArray, k: int) -> None:
        together = np.vstack([X, target])
        scale = together.std(axis=0)
        scale[scale <= 1e-12 * np.abs(together).max(axis=0)] = 1.0
        center = together.mean(axis=0)
        alone = fold.max() == 0
        self.held = np.flatnonzero(fold == k)
        self._training = np.arange(len(X)) if alone else np.flatnonzero(fold != k)
        blocks = [(rows - center) / scale for rows in (X[self._training], X[self.held], target)]
        if blocks[0].shape[1] > len(blocks[0]):
            # the penalized coefficients lie in the span of the training rows
            basis = np.linalg.qr(blocks[0].T)[0]
            blocks = [block @ basis for block in blocks]
        self._train, self._own, self._target = (np.column_stack([np.ones(len(b)), b]) for b in blocks)
        self._coef = np.zeros(self._train.shape[1])
        self._factor: Any = None

    def probabilities(self, below: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return m of the held-out source rows and of the target rows for the labels ``below`` (n,)."""
        labels = below[self._training]
        share = float(labels.mean())
        if share in {0.0, 1.0}:
            return np.full(len(self._own), share), np.full(len(self._target), share)
        if self._factor is None:
            self._coef[0] = math.log(share / (1.0 - share))
        self._descend(labels)
        return expit(self._own @ self._coef), expit(self._target @ self._coef)

    def _descend(self, labels: FloatArray, tolerance: float = 1e-4, limit: int = 200) -> None:
        """Minimize Σ log(1+exp(η)) - label·η + ‖coef‖²/2 (C = 1, constant free) by guarded Newton steps."""
        value, gradient, odds = self._loss(self._coef, labels)
        stale, before = self._factor is not None, math.inf
        for _ in range(limit):
            size = float(np.abs(gradient).max())
            if size <= tolerance * len(labels):
                return
            if self._factor is None or (stale and size > 0.5 * before):
                self._refactor(odds)
                stale = False
            step = cho_solve(self._factor, gradient, check_finite=False)
            slope, length = float(gradient @ step), 1.0
            while True:
                trial = self._coef - length * step
                next_value, next_gradient, next_odds = self._loss(trial, labels)
                enough = value - 1e-4 * length * slope + 1e-13 * abs(value)
                if next_value <= enough or length < 1e-9:
                    break
                length /= 4.0
            self._coef, value, gradient, odds = trial, next_value, next_gradient, next_odds
            stale, before = True, size

    def _loss(self, coef: FloatArray, labels: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        linear = self._train @ coef
        odds = expit(linear)
        value = float(np.logaddexp(0.0, linear).sum() - labels @ linear + coef[1:] @ coef[1:] / 2.0)
        gradient = self._train.T @ (odds - labels)
        gradient[1:] += coef[1:]
        return value, gradient, odds

    def _refactor(self, odds: FloatArray) -> None:
        curvature = (self._train.T * (odds * (1.0 - odds))) @ self._train
        diagonal = np.einsum("ii->i", curvature)
        diagonal[1:] += 1.0
        diagonal[0] += 1e-8
        self._factor = cho_factor(curvature, lower=True, check_finite=False)


ESTIMATOR = DoublyRobust
