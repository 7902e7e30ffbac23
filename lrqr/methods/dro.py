"""Distributionally robust conformal prediction: one threshold for a ball around the scores' distribution."""

import math
import warnings
from bisect import bisect_left
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np

from lrqr.arrays import OR_NAN, FloatArray
from lrqr.errors import LrqrWarning, UsageError
from lrqr.methods.divergences import (
    bernoulli_divergence,
    check_divergence,
    check_radius,
    plug_in_radius,
    robust_level,
)
from lrqr.methods.estimator import OneThreshold, warn_few
from lrqr.plugins import check_choice
from lrqr.stats.folds import canonical_order
from lrqr.stats.quantiles import conformal_rank, order_statistic, rows_needed, tolerant_ceil

RANKS = ("n+1", "plug-in", "alpha-first")


@dataclass(repr=False, eq=False)
class DistributionallyRobust(OneThreshold):
    """Robust validation of Cauchois, Gupta, Ali and Duchi (2024), the paper's DRO-CP.

    Covers at least 1-α of every distribution of scores within ``radius`` of the source's. The threshold
    is the source quantile at the level g⁻¹(1-α) of the ball. Balls become vacuous soon: for KL and α = .1
    the threshold is infinite beyond a radius of .30 at n = 500.

    Parameters
    ----------
    coverage : float
        The wanted coverage 1-α.
    divergence : {"kl", "chi2", "chi2full", "tv"}
        The LR-QR paper names none. KL is what the code of Ai and Ren (2024) takes for this baseline.
    radius : float, "estimate" or "worst-slab"
        "estimate" plugs the likelihood ratio into the divergence between the features of target and
        source, as Ai and Ren do. "worst-slab" looks at no target: it covers 1-α of the worst slab of
        features that holds a share ``slab`` of the rows, across the direction in which a linear model
        of the scores grows (algorithm 2 of Cauchois et al.).
    rank : {"n+1", "plug-in", "alpha-first"}
        The k-th smallest score is the threshold, with k = ⌈(n+1)·g⁻¹(1-α)⌉ (valid when the radius is
        right), ⌈n·g⁻¹(1-α)⌉ (always finite), or ⌈n·g⁻¹((1+1/n)(1-α))⌉ (the authors' notebook).
    slab : float
        δ of "worst-slab"; 0.1 is the authors' default.
    classifier, cross_fit, random_state
        How the ratio is estimated; see ``lrqr.stats.ratio.LikelihoodRatio``.

    Attributes
    ----------
    threshold_ : float
        In score units, possibly +inf.
    radius_ : float
        The radius in use (nan for "worst-slab", which needs none).
    level_ : float
        g⁻¹(1-α) (nan for "worst-slab").
    max_score_ : float
        Largest calibration score.
    """

    STATE: ClassVar[dict[str, Any]] = {"radius_": OR_NAN, "level_": OR_NAN}

    _: KW_ONLY
    divergence: str = "kl"
    radius: float | Literal["estimate", "worst-slab"] = "estimate"
    rank: str = "n+1"
    slab: float = 0.1

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
        """Take the threshold from the scores y (n1,); the target matters through the radius only."""
        features, scores, level = self._start(X, y)
        check_divergence(self.divergence)
        check_choice("rank", self.rank, RANKS)
        if self.radius == "worst-slab":
            self.radius_, self.level_ = math.nan, math.nan
            self.threshold_ = self._slab_threshold(features, scores, level)
            return self
        if self.radius == "estimate":
            ratios = self._resolve(ratio, features, X_target, X_source, groups)
            self.radius_ = plug_in_radius(ratios.source, ratios.target, self.divergence)
        else:
            self.radius_ = check_radius(float(self.radius))
        n = len(scores)
        nominal = min(1.0, level * (1.0 + 1.0 / n)) if self.rank == "alpha-first" else level
        self.level_ = 1.0 if nominal == 1.0 else robust_level(nominal, self.radius_, self.divergence)
        k = conformal_rank(n, self.level_) if self.rank == "n+1" else tolerant_ceil(n * self.level_)
        self.threshold_ = order_statistic(scores, k)
        if math.isinf(self.threshold_):
            self._warn_infinite(n, level)
        return self

    def _warn_infinite(self, n: int, level: float) -> None:
        if n < rows_needed(level):
            warn_few(np.ones(n), level, stacklevel=4)
            return
        largest = bernoulli_divergence(level, n / (n + 1), self.divergence)
        warnings.warn(
            f"the threshold is infinite: {n} rows support a {self.divergence} radius up to {largest:.3g}, "
            f"but it is {self.radius_:.3g}; use fewer features, another divergence or method, or clip to the "
            "largest score",
            LrqrWarning,
            stacklevel=3,
        )

    def _slab_threshold(self, X: FloatArray, scores: FloatArray, level: float) -> float:
        """Fit the direction on one half of the rows, cover the worst slab across it on the other."""
        if not 0.0 < self.slab <= 1.0:
            raise UsageError(f"slab must lie in (0, 1], got {self.slab!r}")
        if len(scores) < 2:
            return math.inf
        order = canonical_order(X, scores)
        shuffled = order[np.random.default_rng(self.random_state).permutation(len(scores))]
        first, second = np.array_split(shuffled, 2)
        center = X[first].mean(axis=0)
        direction = np.linalg.lstsq(X[first] - center, scores[first] - scores[first].mean(), rcond=None)[0]
        along = X[second] @ direction
        return worst_slab_quantile(scores[second][np.lexsort((scores[second], along))], self.slab, level)


def worst_slab_coverage(covered: FloatArray, slab: float) -> float:
    """Return the smallest share of covered rows in any window of at least ⌈slab·n⌉ consecutive rows.

    Dinkelbach's iteration: the window with the smallest Σ(covered - c) improves on the share c until none
    does; each step costs O(n).
    """
    sums = np.concatenate([[0.0], np.cumsum(covered)])
    width = max(1, tolerant_ceil(slab * len(covered)))
    share = float(sums[-1] / len(covered))
    while True:
        level = sums - share * np.arange(len(sums))
        best = np.maximum.accumulate(level[: len(sums) - width])
        end = int(np.argmin(level[width:] - best)) + width
        start = int(np.argmax(level[: end - width + 1]))
        found = float((sums[end] - sums[start]) / (end - start))
        if found >= share - 1e-12:
            return share
        share = found


def worst_slab_quantile(scores: FloatArray, slab: float, level: float) -> float:
    """Return the smallest observed score that covers at least ``level`` of every slab.

    Parameters
    ----------
    scores : (n,) array
        In the order of the rows along the direction.
    """
    candidates = np.unique(scores)

    def covers(index: int) -> bool:
        covered = (scores <= candidates[index]).astype(np.float64)
        return worst_slab_coverage(covered, slab) >= level - 1e-12

    # the largest covers all
    return float(candidates[bisect_left(range(len(candidates) - 1), x=True, key=covers)])


ESTIMATOR = DistributionallyRobust
