"""Distributionally robust conformal prediction with weights that grow along the estimated ratio."""

from bisect import bisect_left
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.isotonic import isotonic_regression

from lrqr.arrays import OR_NAN, FloatArray
from lrqr.methods.divergences import check_divergence, check_radius, plug_in_radius, worst_case_mean
from lrqr.methods.estimator import OneThreshold, warn_few


@dataclass(repr=False, eq=False)
class IsotonicRobust(OneThreshold):
    """Isotonic distributionally robust prediction after Gui, Barber and Ma (2024), the paper's DR-iso.

    The estimated ratio may be wrong in size but is trusted in order: the worst case is taken over all
    reweightings of the source within ``radius`` that do not decrease in it. The threshold is the smallest
    observed score whose worst-case miscoverage is at most α, so it is always finite; like the plug-in
    quantile it has no finite-sample correction.

    The authors' code instead shifts α once, by the worst case of the *coverage* indicator. When the shift
    is harmful that corrects nothing, so this searches the threshold and takes the worst miscoverage.

    Parameters
    ----------
    coverage : float
        The wanted coverage 1-α.
    divergence : {"kl", "chi2", "chi2full", "tv"}
        KL is the authors' choice.
    radius : float or "estimate"
        "estimate" plugs the likelihood ratio into the divergence between target and source features. The
        LR-QR paper names no radius.
    classifier, cross_fit, random_state
        How the ratio is estimated; see ``lrqr.stats.ratio.LikelihoodRatio``.

    Attributes
    ----------
    threshold_ : float
        In score units, finite.
    radius_ : float
        The radius in use.
    max_score_ : float
        Largest calibration score.
    """

    STATE: ClassVar[dict[str, Any]] = {"radius_": OR_NAN}

    _: KW_ONLY
    divergence: str = "kl"
    radius: float | Literal["estimate"] = "estimate"

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
        """Take the threshold from the scores y (n1,) in the order of their rows' ratios."""
        features, scores, level = self._start(X, y)
        check_divergence(self.divergence)
        ratios = self._resolve(ratio, features, X_target, X_source, groups)
        self.radius_ = (
            plug_in_radius(ratios.source, ratios.target, self.divergence)
            if self.radius == "estimate"
            else check_radius(float(self.radius))
        )
        self.threshold_ = isotonic_quantile(
            scores, ratios.calibration, 1.0 - level, self.radius_, self.divergence
        )
        warn_few(np.ones(len(scores)), level, finite=True)
        return self


def isotonic_projection(risk: FloatArray, key: FloatArray) -> FloatArray:
    """Return the least-squares projection of ``risk`` (n,) on functions that do not decrease in ``key`` (n,).

    Rows of equal key get the same value.
    """
    _, group, counts = np.unique(key, return_inverse=True, return_counts=True)
    means = np.bincount(group, weights=risk) / counts
    projected: FloatArray = np.asarray(isotonic_regression(means, sample_weight=counts), dtype=np.float64)
    return projected[group]


def isotonic_quantile(
    scores: FloatArray, key: FloatArray, alpha: float, radius: float, divergence: str
) -> float:
    """Return min{ q in scores : sup E[w·1{S > q}] <= α } over w within the radius, non-decreasing in the key.

    The supremum equals the unconstrained one of the isotonic projection of the indicator (Gui, Barber and
    Ma 2024), and does not increase in q, so bisection finds q.
    """
    candidates = np.unique(scores)

    def harmless(index: int) -> bool:
        missed = isotonic_projection((scores > candidates[index]).astype(np.float64), key)
        return worst_case_mean(missed, radius, divergence) <= alpha + 1e-9

    # nothing lies above the largest score
    return float(candidates[bisect_left(range(len(candidates) - 1), x=True, key=harmless)])


ESTIMATOR = IsotonicRobust
