"""A few labeled target rows: do they contradict that only the features shifted, and how they calibrate.

The thresholds t(x) were fitted without them. Two tests ask whether the labels agree with these: an exact one
of their coverage, and a two-sample test of S - t(x) against the source rows, weighted by their likelihood
ratios. If only the features shifted, both samples have one law.

The labels then correct the thresholds to ``offset + share·t(x) + (1 - share)·constant``. The share, 1, ½ or
0, is the one whose shape predicts the labeled scores best. The offset is a conformal quantile of the
residuals of the labeled rows, pooled with those of the source: the source's part of the mass is ½ where the
labels agree with it, and goes to 0 as they disagree. Share and mass that concern a labeled row are chosen
without it, by cross-fitting. docs/natural-shifts.md has the evidence.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.stats import kstwobign, norm

from lrqr.arrays import SHARE, THRESHOLD, Stored, array, by_level, nested
from lrqr.calibrate.offset import TEST_MASS, shape_level
from lrqr.errors import DataError
from lrqr.stats.folds import fold_rows, together
from lrqr.stats.metrics import coverage_interval, holm
from lrqr.stats.power import SIZE, power
from lrqr.stats.quantiles import weighted_quantile
from lrqr.stats.ratio import effective_size

if TYPE_CHECKING:
    from lrqr.arrays import FloatArray, IntArray

LEAST = 20
"""Labeled target rows below which they are refused."""

DROP = 0.1
"""The drop of the coverage whose chance to be seen is said."""

# The least part of the mass that the labels have. Whatever happened to the outcomes, the pooled quantile
# then covers at least 1 - α/½ of rows like the labeled ones, on average.
_FLOOR = 0.5
# The p-value of both tests, as a squared standard normal number, at which the labels have half of what they
# can win above that. Of ½, 1, 2 and 4 it is the largest that brought 28 tasks within .02 on average.
_TRUST = 1.0
_SHARES = (1.0, 0.5, 0.0)
_FOLDS = 5
_ROUNDING = 2.0 * np.finfo(np.float64).eps


@dataclass(frozen=True)
class Correction(Stored):
    """What labels make of a threshold at one level: ``offset + share·t + (1 - share)·constant``."""

    STATE: ClassVar[dict[str, Any]] = {"share": SHARE, "constant": float, "offset": THRESHOLD}

    share: float
    constant: float
    offset: float

    def apply(self, thresholds: FloatArray) -> FloatArray:
        """Return the corrected thresholds (n,) of finite ones."""
        shape = _shape(thresholds, self.share, self.constant)
        # rounded up by the last bits: h + (S - h) may fall short of S, and ties are covered
        slack = _ROUNDING * (np.abs(shape) + abs(self.offset)) if np.isfinite(self.offset) else 0.0
        corrected: FloatArray = shape + self.offset + slack
        return corrected


@dataclass(frozen=True)
class Labeled(Stored):
    """What was learned from labeled target rows.

    Attributes
    ----------
    corrections : dict of float to Correction
        By the coverage.
    lowest, largest : float
        What takes the place of infinite thresholds before they are corrected.
    rows : (n,) array of str
        Fingerprints of the rows, see `fingerprints`.
    evidence : dict
        The fields of `lrqr.results.Labels`.
    """

    STATE: ClassVar[dict[str, Any]] = {
        "corrections": by_level(nested(Correction)),
        "lowest": float,
        "largest": float,
        "rows": array("labeled", of=str),
        "evidence": dict[str, Any],
    }

    corrections: dict[float, Correction]
    lowest: float
    largest: float
    rows: Any
    evidence: dict[str, Any]

    def apply(self, thresholds: FloatArray, level: float) -> FloatArray:
        """Return corrected thresholds (n,)."""
        return self.corrections[level].apply(_finite(thresholds, self.lowest, self.largest))


@dataclass(frozen=True)
class Sample:
    """Rows of one domain as the correction sees them.

    Attributes
    ----------
    scores, thresholds, weights : (n,) arrays
        Scores, the thresholds of models that have not seen them, and the rows' weights: their likelihood
        ratios for source rows, 1 for target rows.
    """

    scores: FloatArray
    thresholds: FloatArray
    weights: FloatArray

    def residuals(self, share: float, constant: float) -> FloatArray:
        """Return S minus a shape, (n,)."""
        return self.scores - _shape(self.thresholds, share, constant)


def learn(
    source: dict[float, Sample], target: dict[float, Sample], features: FloatArray, level: float
) -> Labeled:
    """Test labeled target rows and calibrate with them.

    Parameters
    ----------
    source, target : dict of float to Sample
        By the coverage: the calibration rows, and the labeled target rows.
    features : array of shape (n, d)
        Of the target rows.
    level : float
        The promised coverage.

    Raises
    ------
    DataError
        If there are fewer than `LEAST` rows.
    """
    scores = target[level].scores
    n = len(scores)
    if n < LEAST:
        raise DataError(
            f"{n} labeled target rows are too few to test and to calibrate with: {LEAST} or more are needed; "
            "label more rows, or leave them out and keep them for evaluate"
        )
    everything = np.concatenate([source[level].scores, scores])
    span = float(everything.min()), float(everything[np.isfinite(everything)].max(initial=-np.inf))
    folds = fold_rows((features, scores), _FOLDS, 0, together(features, scores))
    evidence = agreement(source[level], target[level], level)
    corrections: dict[float, Correction] = {}
    for at, sample in target.items():
        ours, theirs = (
            Sample(one.scores, _finite(one.thresholds, *span), one.weights) for one in (source[at], sample)
        )
        corrections[at], mass = correct(ours, theirs, at, folds)
        if at == level:
            evidence |= {
                "target_mass": mass,
                "share": corrections[at].share,
                "offset": corrections[at].offset,
            }
    return Labeled(corrections, *span, fingerprints(features, scores), evidence)


def agreement(source: Sample, target: Sample, level: float) -> dict[str, Any]:
    """Test whether labeled target rows contradict that only the features shifted.

    Returns
    -------
    dict
        The covered share by the thresholds that were fitted without these rows, with its exact interval and
        p-value; the p-value of a weighted Kolmogorov–Smirnov test of the residuals, with the effective number
        of source rows in place of their number; whether the smaller one, doubled, is below 5 %; and the
        chance that so many rows show a coverage lower by `DROP`.
    """
    inside, n = target.scores <= target.thresholds, len(target.scores)
    low, high = coverage_interval(int(inside.sum()), n)
    drop = max(level - DROP, level / 2.0)
    return {
        "n": n,
        "coverage": float(inside.mean()),
        "low": low,
        "high": high,
        "p_coverage": _coverage_test(target, level),
        "p_scores": same_law(source, target),
        "contradicted": _p_value(source, target, level) < SIZE,
        "drop": drop,
        "power": float(power(n, level, drop)),
    }


def same_law(source: Sample, target: Sample) -> float:
    """Return the p-value of a two-sample Kolmogorov–Smirnov test of S - t(x), the source weighted."""
    with np.errstate(invalid="ignore"):  # infinity minus infinity: a tie with itself
        ours, theirs = (np.nan_to_num(one.scores - one.thresholds, nan=0.0) for one in (source, target))
    points = np.unique(np.concatenate([ours, theirs]))
    order = np.argsort(ours)
    mass = np.append(0.0, np.cumsum(source.weights[order]) / source.weights.sum())
    below = mass[np.searchsorted(ours[order], points, side="right")]
    seen = np.searchsorted(np.sort(theirs), points, side="right") / len(theirs)
    size, n = effective_size(source.weights), len(theirs)
    return float(kstwobign.sf(np.abs(below - seen).max() * np.sqrt(size * n / (size + n))))


def correct(source: Sample, target: Sample, level: float, folds: IntArray) -> tuple[Correction, float]:
    """Return the correction at one level, and the part of the mass that the labels have.

    Parameters
    ----------
    source, target : Sample
        With finite thresholds.
    level : float
    folds : (n,) array of int
        Of the target rows: what concerns a row is chosen on those of the other folds.
    """
    total = source.weights.sum()
    constant = float(weighted_quantile(source.scores, source.weights, np.zeros(1), level)[0])
    constant = constant if np.isfinite(constant) else 0.0
    # a floor above what the source's ratios ask for is there because they are not trusted: nor are they here
    excess = float(weighted_quantile(source.residuals(1.0, 0.0), source.weights, np.zeros(1), level)[0])
    excess = min(excess, 0.0) if np.isfinite(excess) else 0.0
    residuals, masses = np.empty(len(folds)), np.empty(len(folds))
    for fold in range(_FOLDS):
        held = folds == fold
        kept = Sample(*(part[~held] for part in vars(target).values()))
        share, masses[held] = _choose(source, kept, level, constant)
        residuals[held] = target.residuals(share, constant)[held]
    share, _ = _choose(source, target, level, constant)
    mass = float(masses.mean())
    pooled = weighted_quantile(
        np.concatenate([residuals, source.residuals(share, constant) - excess]),
        np.concatenate([masses / len(folds), (1.0 - mass) * source.weights / total]),
        np.array([TEST_MASS * mass / len(folds)]),
        level,
    )
    return Correction(share, constant, float(pooled[0])), mass


def fingerprints(features: FloatArray, scores: FloatArray) -> Any:
    """Return a short text for each row (n,), the same for the same features and score."""
    rows = np.ascontiguousarray(np.column_stack([features, scores]), dtype=np.float64) + 0.0  # no -0.0
    return np.array([hashlib.sha256(row.tobytes()).hexdigest()[:16] for row in rows], dtype=np.str_)


def _choose(source: Sample, target: Sample, level: float, constant: float) -> tuple[float, float]:
    """Return the share of the shape that predicts the scores best, and the labels' part of the mass."""
    losses = [_loss(target.residuals(share, constant), level) for share in _SHARES]
    n, size = len(target.scores), effective_size(source.weights)
    # the source never counts for more rows than it is worth
    least = max(_FLOOR, n / (n + size)) if size > 0.0 else 1.0
    found = float(norm.isf(0.5 * _p_value(source, target, level))) ** 2
    return _SHARES[int(np.argmin(losses))], least + (1.0 - least) * found / (found + _TRUST)


def _p_value(source: Sample, target: Sample, level: float) -> float:
    """Return the smaller p-value of the two tests, doubled."""
    tests = _coverage_test(target, level), same_law(source, target)
    return max(min(1.0, 2.0 * min(tests)), float(np.finfo(np.float64).tiny))


def _coverage_test(target: Sample, level: float) -> float:
    covered = int((target.scores <= target.thresholds).sum())
    return float(holm([(covered, len(target.scores))], level)[0]["p_value"])


def _loss(residuals: FloatArray, level: float) -> float:
    """Return the pinball loss after the best offset, at the level and at that of a shape."""
    total = 0.0
    for at in (level, shape_level(level)):
        left = residuals - np.quantile(residuals, at, method="inverted_cdf")
        total += float(np.maximum(at * left, (at - 1.0) * left).mean())
    return total


def _shape(thresholds: FloatArray, share: float, constant: float) -> FloatArray:
    return share * thresholds + (1.0 - share) * constant


def _finite(thresholds: FloatArray, lowest: float, largest: float) -> FloatArray:
    return np.where(np.isinf(thresholds), np.clip(thresholds, lowest, largest), thresholds)
