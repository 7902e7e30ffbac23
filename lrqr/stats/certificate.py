"""What may be promised before any target label is seen: a lower bound, a sensitivity, a tail index.

All of it assumes that only the features shifted, p(y | x) being the same in source and target, and is
asymptotic. Sources: one-step estimation of the coverage (Qiu, Dobriban & Tchetgen Tchetgen 2022; Yang,
Kuchibhotla & Tchetgen Tchetgen 2024), the marginal sensitivity model (Jin, Ren & Candès 2023), and the tail
index of importance weights (Vehtari, Simpson, Gelman, Yao & Gabry 2024). docs/certificate.md has the figures.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import brentq
from scipy.stats import beta
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lrqr.stats.folds import deal_folds
from lrqr.stats.ratio import effective_size

if TYPE_CHECKING:
    from lrqr.arrays import BoolArray, FloatArray, IntArray

CONFIDENCE = 0.95
TAIL_TOO_HEAVY = 0.7
"""A Pareto k̂ above this says that averages under the weights cannot be trusted, whatever the sample size."""

_FOLDS = 5
_LARGEST_FACTOR = 1e6


@dataclass(frozen=True)
class Certificate:
    """What the calibration rows say of the coverage on the target, without target labels.

    Attributes
    ----------
    lower_bound : float
        With ``confidence``, at least this share of the target is covered, if only the features shifted.
    estimate : float
        The one-step estimate of that share.
    confidence : float
    sensitivity : float
        Γ*: the largest factor by which every likelihood ratio may be off, up or down, while the coverage
        stays at ``at_least`` or above; 0 where it does not even with exact ratios, ``inf`` where it always
        does.
    at_least : float
    pareto_k : float
        Tail index of the ratios; above 0.7 they cannot be trusted.
    effective_size : float
        (Σw)²/Σw² of the ratios.
    """

    lower_bound: float
    estimate: float
    confidence: float
    sensitivity: float
    at_least: float
    pareto_k: float
    effective_size: float


def certify(
    covered: BoolArray,
    ratio: FloatArray,
    features: FloatArray,
    features_target: FloatArray,
    *,
    coverage: float,
    at_least: float | None = None,
    confidence: float = CONFIDENCE,
    outside: float = 0.0,
    groups: IntArray | None = None,
) -> Certificate:
    """Bound the coverage on the target from below, without target labels.

    Parameters
    ----------
    covered : bool array of shape (n,)
        Whether the score of each source row is at most a threshold that was fitted without that row.
    ratio : array of shape (n,)
        Out-of-fold likelihood ratios of these rows; rescaled to mean 1 here.
    features, features_target : arrays of shape (n, p), (m, p)
        Few features (the learned ones) of source and target rows, of which coverage may be a function.
    coverage : float
        The promised coverage, 1-α.
    at_least : float, optional
        The coverage that ``sensitivity`` is about; by default 1-α-0.05.
    confidence : float, default=0.95
    outside : float, default=0
        Share of the target of which the source says nothing; counted as not covered.
    groups : (n,) array, optional
        Numbers of clusters of rows that are not independent, copies among them.

    Notes
    -----
    With m(x) a cross-fitted logistic model of the chance to be covered, the estimate is the mean of m over
    the target plus the mean of ``ratio * (covered - m)`` over the source. The bound is Clopper and
    Pearson's with the effective size for the number of trials and min(estimate, 1-α) for the share of
    successes. Clusters divide the effective size by the design effect: the variance of their weighted sums
    over that of independent rows, where it is more than 1 (as in `lrqr.stats.metrics.clustered_interval`).
    """
    floor = max(coverage - 0.05, 0.0) if at_least is None else at_least
    if not len(covered) or not len(features_target):  # nothing is known, or asked
        return Certificate(0.0, 0.0, confidence, 0.0, floor, -np.inf, 0.0)
    weights = ratio / ratio.mean() if ratio.any() else ratio
    own, of_target = _chance_of_cover(covered, features, features_target)
    inside = 1.0 - outside
    estimate = float(of_target.mean() + np.mean(weights * (covered - own)))
    size = _worth(weights, covered, groups)
    hits = size * float(np.clip(estimate, 0.0, coverage))
    low = float(beta.ppf(1.0 - confidence, hits, size - hits + 1.0)) if hits > 0.0 else 0.0
    return Certificate(
        lower_bound=inside * low,
        estimate=inside * estimate,
        confidence=confidence,
        sensitivity=sensitivity(inside * own, weights, floor),
        at_least=floor,
        pareto_k=pareto_k(weights),
        effective_size=size,
    )


def _worth(weights: FloatArray, covered: BoolArray, groups: IntArray | None) -> float:
    """Return how many independent, equally weighted rows these (n,) are worth."""
    size = effective_size(weights)
    if groups is None or not weights.any():
        return size
    names = np.unique(groups, return_inverse=True)[1]
    apart = weights * (covered - weights @ covered / weights.sum())
    alone = float(np.square(apart).sum())
    if alone == 0.0:  # nothing varies: each cluster counts as one row
        return effective_size(np.sort(np.bincount(names, weights=weights)))
    # sorted: the same sum, to the last bit, however the rows are shuffled
    together = float(np.sort(np.square(np.bincount(names, weights=apart))).sum())
    return size / max(together / alone, 1.0)


def level_for(coverage: float, size: float, confidence: float = CONFIDENCE) -> float:
    """Return the least level whose lower bound from ``size`` effective rows reaches ``coverage``, below 1."""

    def excess(level: float) -> float:
        return float(beta.ppf(1.0 - confidence, size * level, size * (1.0 - level) + 1.0)) - coverage

    highest = 1.0 - 1e-9
    if size <= 0.0 or excess(highest) <= 0.0:
        return highest
    return float(brentq(excess, coverage, highest))


def sensitivity(chance: FloatArray, weights: FloatArray, at_least: float) -> float:
    """Return Γ*, the largest factor of error in the ratios that leaves a coverage of ``at_least``.

    Under the marginal sensitivity model with factor G the smallest weighted mean of m is
    (1/G) E[m] + (1 - 1/G) E[m | lowest share 1/(G+1)], shares and means under the weights.
    """
    if not weights.any():
        return 0.0
    order = np.argsort(chance, kind="stable")
    m, w = chance[order], weights[order] / weights.sum()
    below = np.cumsum(w) - w

    def worst(factor: float) -> float:
        share = 1.0 / (factor + 1.0)
        lowest = float(np.clip(share - below, 0.0, w) @ m) / share
        return float(w @ m) / factor + (1.0 - 1.0 / factor) * lowest

    if worst(1.0) < at_least:
        return 0.0
    if worst(_LARGEST_FACTOR) >= at_least:
        return np.inf
    return float(np.exp(brentq(lambda log: worst(np.exp(log)) - at_least, 0.0, np.log(_LARGEST_FACTOR))))


def pareto_k(weights: FloatArray) -> float:
    """Return the tail index k̂ of importance weights by Pareto smoothing's rule; ``-inf`` where none varies.

    A generalized Pareto law is fitted to the min(n/5, 3√n) largest weights by Zhang and Stephens' (2009)
    estimator with the prior that k̂ is shrunk to 0.5 by ten rows.
    """
    n = len(weights)
    count = int(min(np.ceil(0.2 * n), np.ceil(3.0 * np.sqrt(n))))
    ordered = np.sort(weights)
    excess = ordered[n - count :] - ordered[max(n - count - 1, 0)]
    excess = excess[excess > 0.0]
    if len(excess) < 5:
        return -np.inf
    grid = 30 + int(np.sqrt(len(excess)))
    quartile = excess[int(len(excess) / 4 + 0.5) - 1]
    theta = 1.0 / excess[-1] + (1.0 - np.sqrt(grid / (np.arange(1, grid + 1) - 0.5))) / (3.0 * quartile)
    shape = np.log1p(-np.outer(theta, excess)).mean(axis=1)
    profile = len(excess) * (np.log(-theta / shape) - shape - 1.0)
    posterior = np.exp(profile - profile.max())
    best = float(theta @ posterior / posterior.sum())
    k = float(np.log1p(-best * excess).mean())
    return (len(excess) * k + 5.0) / (len(excess) + 10.0)


def _chance_of_cover(
    covered: BoolArray, features: FloatArray, features_target: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Cross-fitted chance to be covered, of source rows (out of fold) and target rows (mean of the folds)."""
    n = len(covered)
    if n < _FOLDS:
        share = float(covered.mean())
        return np.full(n, share), np.full(len(features_target), share)
    own, of_target = np.empty(n), np.zeros(len(features_target))
    fold = deal_folds(n, _FOLDS, 0)
    for k in range(_FOLDS):
        training, held = fold != k, fold == k
        share = float(covered[training].mean())
        if 0.0 < share < 1.0:
            model = make_pipeline(StandardScaler(), LogisticRegression(C=1.0))
            model.fit(features[training], covered[training])
            own[held] = model.predict_proba(features[held])[:, 1]
            of_target += model.predict_proba(features_target)[:, 1] / _FOLDS
        else:
            own[held] = share
            of_target += share / _FOLDS
    return own, of_target
