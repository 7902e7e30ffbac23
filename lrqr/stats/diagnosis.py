"""The diagnosis of a shift between source and target: its numbers and the rules of its verdict.

Every rule asks whether a coverage of 1 - α can be promised on the target. The constants of the rules stand
here with their reasons; docs/faq.md explains the verdicts to users.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import linalg
from scipy.optimize import brentq
from scipy.special import kolmogorov
from scipy.stats import betabinom, norm

from lrqr.arrays import FloatArray, IntArray, as_matrix, matched_columns, refuse_large
from lrqr.errors import DataError, UsageError
from lrqr.stats.certificate import TAIL_TOO_HEAVY, pareto_k
from lrqr.stats.folds import canonical_order, copies
from lrqr.stats.moments import Moments
from lrqr.stats.predictions import differing
from lrqr.stats.ratio import LikelihoodRatio, area, effective_size, largest_share
from lrqr.stats.repeats import Repeats
from lrqr.stats.support import LEVEL, Support

NO_SHIFT, WITHIN_REACH, LITTLE_OVERLAP, NO_OVERLAP = VERDICTS = (
    "no shift detected",
    "shift within reach",
    "little overlap",
    "no overlap",
)

PROMISES = {
    NO_SHIFT: "Source and target look alike; plain split conformal prediction would do here as well.",
    WITHIN_REACH: (
        "Source and target differ, and enough source rows look like target rows for a correction to work."
    ),
    LITTLE_OVERLAP: (
        "Few source rows look like target rows. Thresholds rest on those few or on extrapolation: "
        "check the coverage on some labeled target rows before relying on it."
    ),
    NO_OVERLAP: (
        "Most target rows lie where there is no source row. No method can promise coverage there from "
        "these data; labels from the target are needed."
    ),
}

NO_PROMISE = "Finite answers are given all the same, and carry no promise."
"""What is said besides where there is no overlap, of a model that does not abstain."""

# Half of the target or more lies outside the source's support: what is said of the target is said mostly
# of rows about which the source says nothing.
_MOSTLY_OUTSIDE = 0.5
# Chance of a false alarm of each of the two further questions (more rows outside than by chance, a feature
# distributed otherwise); small, since the interval of the AUC already spends 2.5 % on the same verdict.
_SURPRISE = 0.005
# Smallest ridge of the selection grid: more would hide negative parts, less would show those of noise.
_RIDGE = 0.1
# AUC of a shift by one standard deviation: where the interval reaches that far, "alike" says too much.
_BLIND = 0.76
_BINS = 40
_SHOWN = 5
_POINTS = 51


# Variance of an out-of-fold area, in units of that of a classifier that was fixed beforehand. Without a
# shift each pair of folds enters twice (once as training, once as held-out rows), which doubles it; the
# penalty that is chosen on the same folds adds the rest. tests/test_diagnostics.py measures it.
CROSS_FITTED = 2.5
_STEP = 1e-12


def effective_rows_needed(coverage: float) -> float:
    """Return the effective sample size below which overlap is called little: 4 · (1-α)/α.

    There the coverage of a threshold from that many rows, whose standard deviation is about
    sqrt(α(1-α)/n), is still known to half of α. It is 36 for 90 %; (1-α)/α, 9, is the least for a finite one.
    """
    return 4.0 * coverage / (1.0 - coverage)


@dataclass(frozen=True)
class Diagnosis:
    """How far source and target are apart.

    Attributes
    ----------
    n_source, n_target : int
        Rows.
    auc, auc_low, auc_high : float
        Out-of-fold area under the curve of the domain classifier and its 95 % interval. The upper end
        is at least 1/2: cross-fitting biases the estimate downwards where there is no shift.
    effective_size : float
        (Σw)²/Σw² of the out-of-fold likelihood ratios of the source rows.
    largest_weight : float
        Share of the total weight that one source row carries.
    pareto_k : float
        Tail index of these ratios; above 0.7 averages under them cannot be trusted.
    outside_support : float
        Share of target rows outside the source's support (:class:`Support`), beyond chance.
    negative_mass : float
        Σ max(-r̂, 0) / Σ |r̂| over source rows, r̂ the least-squares ratio: LR-QR at λ = ∞, section 2 of
        docs/method.md.
    verdict : str
        One of ``VERDICTS``.
    features : tuple of dict
        name, standardized_difference, coefficient (log-odds per pooled standard deviation; None for trees),
        mean_source, mean_target; the most shifted first.
    overlap, concentration : dict
        Histograms of domain scores; weight carried by the heaviest rows. Pictures for the report.
    support : Support
        Flags new rows.
    copies_source, copies_target, shared_rows : int
        Rows that are copies, and target rows that the source has too; see `lrqr.stats.repeats.Repeats`. All
        other numbers are of distinct rows.
    predictions : str
        How predictions differ as features do not (`lrqr.stats.predictions`); empty if they do not.
    without : str
        Where there is no overlap: the columns that rule it out each alone, and the verdict without them.
    """

    n_source: int
    n_target: int
    auc: float
    auc_low: float
    auc_high: float
    effective_size: float
    largest_weight: float
    pareto_k: float
    outside_support: float
    negative_mass: float
    verdict: str
    features: tuple[dict[str, Any], ...]
    overlap: dict[str, list[float]] = field(repr=False)
    concentration: dict[str, list[float]] = field(repr=False)
    support: Support = field(repr=False)
    copies_source: int = 0
    copies_target: int = 0
    shared_rows: int = 0
    predictions: str = ""
    without: str = ""

    @property
    def promise(self) -> str:
        """What may be promised, in a sentence."""
        if self.predictions:
            return self.predictions
        if self.verdict == NO_SHIFT and max(self.auc_high, 1.0 - self.auc_low) > _BLIND:
            return (
                f"No shift shows, but {self.n_source} source and {self.n_target} target rows are too few to "
                f"see a moderate one (domain AUC between {self.auc_low:.2f} and {self.auc_high:.2f})."
            )
        return PROMISES[self.verdict] + (f" {self.without}." if self.without else "")

    @property
    def notes(self) -> list[str]:
        """What to say of rows that occur more than once."""
        counts = self.copies_source, self.copies_target, self.shared_rows
        return Repeats(self.n_source, self.n_target, *counts).notes

    def speechless(self, coverage: float) -> bool:
        """Return whether the data cannot speak for this coverage: no overlap, or one of too few rows."""
        few = self.verdict == LITTLE_OVERLAP and self.effective_size < effective_rows_needed(coverage)
        return few or self.verdict == NO_OVERLAP

    def to_dict(self, *, pictures: bool = False) -> dict[str, Any]:
        """Return the numbers as plain JSON values, with ``pictures`` also those that the report draws."""
        left_out = {"support", "pareto_k", "without"} | (set() if pictures else {"overlap", "concentration"})
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__ if name not in left_out}
        plain["features"] = [dict(feature) for feature in self.features]
        return plain


def diagnose(
    X_source: Any,
    X_target: Any,
    *,
    names: Sequence[str] | None = None,
    coverage: float = 0.9,
    random_state: int = 0,
    ratio: LikelihoodRatio | None = None,
    predictions: tuple[Any, Any] | None = None,
    clusters: Any = None,
) -> Diagnosis:
    """Compare unlabeled source rows (n_s, d) with target rows (n_t, d).

    Parameters
    ----------
    X_source, X_target : array-like or data frame
        Features: the same columns in the same order, or two data frames, which are matched by name.
    names : sequence of str, optional
        Names of the d features; if not given, those of a data frame, or x0, x1, ...
    coverage : float
        The promise 1 - α that the verdict is about.
    random_state : int
        Seed of the folds and of the reference rows.
    ratio : LikelihoodRatio, optional
        Fitted on exactly these rows; if None a logistic one is fitted here.
    predictions : (array of shape (n_s, k), array of shape (n_t, k)), optional
        What a model says of these rows: it may have changed where the features have not.
    clusters : array-like of shape (n_s,), optional
        Names of clusters of source rows. How near source rows are to one another, and so what lies outside
        their support, is then asked of one row of each: readings of one subject are near by nature.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> diagnose(rng.uniform(0, 1, (200, 1)), rng.uniform(2, 3, (200, 1))).verdict
    'no overlap'
    """
    source, target, names = _compared(X_source, X_target, names, coverage)
    ratio = ratio or LikelihoodRatio(random_state=random_state).fit(source, target)
    if (len(ratio.source_), len(ratio.target_)) != (len(source), len(target)):
        raise UsageError("the ratio was not fitted on these source and target rows")

    repeats = Repeats.of(source, target)
    counts = len(source), len(target)
    # of copies one: they are no further evidence
    own, other = _distinct(source, target), _distinct(target, source)
    everyone, source, target = source, source[own], target[other]
    source_odds, target_odds, weights = (
        ratio.source_log_odds_[own],
        ratio.target_log_odds_[other],
        ratio.source_[own],
    )
    auc = area(source_odds, target_odds)
    low, high = area_interval(auc, len(source), len(target))
    ceiling = _ceiling(source_odds)
    apart = source
    if clusters is not None:
        # one row of each, whichever it is: the first in an order by value would be those with low values
        order = np.random.default_rng(random_state).permutation(own[canonical_order(source)])
        apart = everyone[order[np.unique(np.asarray(clusters)[order], return_index=True)[1]]]
    support = _with_direction(Support.of(apart, random_state=random_state), ratio, ceiling)
    beyond = target_odds > ceiling
    far = int((support.far(target) | beyond).sum())
    expected = support.expected + (1.0 - support.expected) / (len(source) + 1.0)
    outside = max(far / len(target) - expected, 0.0) / (1.0 - expected)
    size, share, tail = effective_size(weights), largest_share(weights), pareto_k(weights)
    alike = (
        low <= 0.5
        and _chance(far, len(target), expected, len(support.reference)) > _SURPRISE
        and _least_chance(source, target) > _SURPRISE
    )
    verdict = _verdict(alike, outside, size, share, tail, coverage)
    said = [np.asarray(part)[rows] for part, rows in zip(predictions or (), (own, other), strict=False)]
    return Diagnosis(
        n_source=counts[0],
        n_target=counts[1],
        auc=auc,
        auc_low=low,
        auc_high=max(high, 0.5),
        effective_size=size,
        largest_weight=share,
        pareto_k=tail,
        outside_support=float(outside),
        negative_mass=_negative_mass(source, target),
        verdict=verdict,
        features=_features(source, target, names, ratio),
        overlap=_overlap(ratio),
        concentration=_concentration(weights),
        support=support,
        **repeats.to_dict(),
        predictions=differing(*said, alike=verdict == NO_SHIFT) if said else "",
        without=_without(source, target, names, coverage, random_state) if verdict == NO_OVERLAP else "",
    )


def _without(
    source: FloatArray, target: FloatArray, names: Sequence[str], coverage: float, random_state: int
) -> str:
    """Say which columns rule out overlap each alone, and the verdict without them; nothing if none or all."""
    columns: dict[str, list[int]] = {}
    for index, name in enumerate(names):  # a category has one feature per label
        columns.setdefault(str(name).partition("=")[0], []).append(index)
    blamed = [
        name for name, own in columns.items() if _strange(source[:, own], target[:, own]) >= _MOSTLY_OUTSIDE
    ]
    rest = [index for name, own in columns.items() if name not in blamed for index in own]
    if not blamed or not rest:
        return ""
    other = diagnose(source[:, rest], target[:, rest], coverage=coverage, random_state=random_state)
    listed = ", ".join(blamed[:_SHOWN]) + (", ..." if len(blamed) > _SHOWN else "")
    return f"Without {listed}: {other.verdict}"


def _strange(source: FloatArray, target: FloatArray) -> float:
    """Return the share of target values of a column (d = 1), or labels of one, far from the source's."""
    if source.shape[1] > 1:
        known = set(map(bytes, np.ascontiguousarray(source)))
        return float(np.mean([bytes(row) not in known for row in np.ascontiguousarray(target)]))
    ordered = np.concatenate([[-np.inf], np.sort(source[:, 0]), [np.inf]])
    place = np.clip(np.searchsorted(ordered, target[:, 0]), 1, len(ordered) - 1)
    nearest = np.minimum(target[:, 0] - ordered[place - 1], ordered[place] - target[:, 0])
    return float(np.mean(nearest > _margin(ordered[1:-1])))


def _compared(
    X_source: Any, X_target: Any, names: Sequence[str] | None, coverage: float
) -> tuple[FloatArray, FloatArray, list[str]]:
    """Return source and target rows with the names of their features; refuse what cannot be compared."""
    X_source, X_target, found = matched_columns(X_source, X_target)
    names = found if names is None else list(names)
    source = as_matrix(X_source, "X_source")
    target = as_matrix(X_target, "X_target", columns=source.shape[1])
    if 0 in source.shape or not len(target):
        raise DataError(
            "a diagnosis needs at least one source row, one target row and one feature, got "
            f"X_source {source.shape} and X_target {target.shape}"
        )
    if not 0.0 < coverage < 1.0:
        raise UsageError(f"coverage must lie between 0 and 1, got {coverage}")
    names = names or [f"x{index}" for index in range(source.shape[1])]
    if len(names) != source.shape[1]:
        raise UsageError(f"{len(names)} names were given for {source.shape[1]} features")
    for rows in (source, target):
        for name, column in zip(names, rows.T, strict=True):
            refuse_large(column, name)
    return source, target, names


def _distinct(rows: FloatArray, other: FloatArray) -> IntArray:
    """Return the first of each row and its copies, in order."""
    return np.sort(np.unique(copies(rows, other=other), return_index=True)[1])


def area_interval(
    area: float, n_source: int, n_target: int, confidence: float = 0.95, *, inflation: float = CROSS_FITTED
) -> tuple[float, float]:
    """Return the interval (low, high) for an area under the ROC curve.

    All θ with |area - θ| <= z · sd(θ), where sd(θ) is that of Hanley & McNeil (1982) with the two sample
    sizes averaged: method 5 of Newcombe, Statistics in Medicine 25 (2006) 559-573. It stays in [0, 1], is
    never empty or a point, also when the samples are separated, and at θ = 1/2 its sd is the exact one of the
    Mann-Whitney statistic: with ``inflation`` 1 it holds 1/2 just when that test (no ties) does not reject.

    Parameters
    ----------
    area : float
        Estimated area.
    n_source, n_target : int
        Rows that it was estimated from.
    confidence : float
        Of the interval.
    inflation : float
        Factor on the variance: 1 for scores that were fixed before these rows were seen.

    Examples
    --------
    >>> [round(end, 3) for end in area_interval(1.0, 50, 50, inflation=1)]
    [0.96, 1.0]
    """
    z = float(norm.ppf(0.5 + confidence / 2.0)) * math.sqrt(inflation)

    def excess(theta: float) -> float:
        return abs(area - theta) - z * _spread(theta, n_source, n_target)

    # An area of 0 or 1 solves the equation itself; the end that is wanted lies on the other side of the step.
    inside = min(max(area, _STEP), 1.0 - _STEP)
    low = 0.0 if excess(0.0) <= 0.0 else float(brentq(excess, 0.0, inside, xtol=1e-12))
    high = 1.0 if excess(1.0) <= 0.0 else float(brentq(excess, inside, 1.0, xtol=1e-12))
    return low, high


def _spread(theta: float, n_source: int, n_target: int) -> float:
    """Return the standard deviation of the estimated area when the true one is θ."""
    others = (n_source + n_target) / 2.0 - 1.0
    inner = 1.0 + others * ((1.0 - theta) / (2.0 - theta) + theta / (1.0 + theta))
    return math.sqrt(theta * (1.0 - theta) * inner / (n_source * n_target))


def weight_warning(weights: FloatArray, coverage: float, mass: float = 1.0) -> str | None:
    """Return what to say of source weights (n,) worth too few rows for this coverage, or None.

    A weighted threshold is finite only where w / (Σw_i + w) <= α, with w ``mass`` times the row's own weight.
    """
    size, share, alpha = effective_size(weights), largest_share(weights), 1.0 - coverage
    needed = effective_rows_needed(coverage)
    if size >= needed or not len(weights):
        return None
    limit = float(weights.sum()) * alpha / coverage / mass
    return (
        f"the weights of the {len(weights)} source rows are worth {size:.3g} equally weighted ones (the "
        f"heaviest carries {100 * share:.3g}% of the weight); {100 * coverage:g}% coverage needs "
        f"{needed:.3g} or more to be known well, and weighted thresholds are finite only for "
        f"rows whose own weight is at most {limit:.3g}"
    )


def _verdict(alike: bool, outside: float, size: float, share: float, tail: float, coverage: float) -> str:
    if outside >= _MOSTLY_OUTSIDE:
        return NO_OVERLAP
    if alike:
        return NO_SHIFT
    # With more than α of the target outside, 1-α can be missed by rows on which nothing is known; with one
    # row carrying more than α of the weight, that row alone decides the threshold. Under a heavy tail the
    # effective size itself is not to be trusted.
    alpha = 1.0 - coverage
    if outside > alpha or share > alpha or size < effective_rows_needed(coverage) or tail > TAIL_TOO_HEAVY:
        return LITTLE_OVERLAP
    return WITHIN_REACH


def _chance(count: int, n: int, expected: float, reference: int) -> float:
    """Return the chance that so many of n source-like rows are outside, the radius being estimated."""
    a = expected * (reference + 1.0)
    return float(betabinom.sf(count - 1, n, a, reference + 1.0 - a))


def _least_chance(source: FloatArray, target: FloatArray) -> float:
    """Return the smallest p-value of the features' Kolmogorov-Smirnov tests, times their number.

    It sees what a linear classifier does not: a feature whose spread or shape differs.
    """
    n, m = len(source), len(target)
    distance = 0.0
    for own, other in zip(np.sort(source, axis=0).T, np.sort(target, axis=0).T, strict=True):
        steps = np.concatenate([own, other])
        gap = np.searchsorted(own, steps, "right") / n - np.searchsorted(other, steps, "right") / m
        distance = max(distance, float(np.abs(gap).max()))
    chance = float(kolmogorov(math.sqrt(n * m / (n + m)) * distance))
    return float(min(source.shape[1] * chance, 1.0))


def _ceiling(scores: FloatArray) -> float:
    """Return the largest score plus the gap that 99 % of the rows keep to their nearest neighbor."""
    ordered = np.sort(scores)
    return float(ordered[-1]) + _margin(ordered)


def _margin(ordered: FloatArray) -> float:
    """Return the gap that 99 % of the rows, sorted, keep to their nearest neighbor."""
    gaps = np.concatenate([[np.inf], np.diff(ordered), [np.inf]])
    nearest = np.minimum(gaps[:-1], gaps[1:])
    margin = np.sort(nearest)[min(math.ceil(LEVEL * len(ordered)), len(ordered)) - 1]
    return float(margin) if np.isfinite(margin) else 0.0


def _with_direction(support: Support, ratio: LikelihoodRatio, ceiling: float) -> Support:
    """Add the direction of a linear domain classifier, in the support's standardized features."""
    if ratio.classifier != "logistic":
        return support
    raw = ratio.coef_ / ratio.scale_
    offset = float(ratio.intercept_ + raw @ (support.center - ratio.center_))
    return replace(support, direction=raw * support.scale, ceiling=ceiling - offset)


def _negative_mass(source: FloatArray, target: FloatArray) -> float:
    """Return the negative share of the least-squares ratio r̂ = φ' (Σ + ridge)⁻¹ m, method.md section 2."""
    near, away = Moments.of(source), Moments.of(target)
    pooled = near.merge(away)
    scale = np.where(pooled.spread <= 1e-12 * np.abs(pooled.mean), 1.0, pooled.spread)
    near, away = near.affine(pooled.mean, scale), away.affine(pooled.mean, scale)
    coef = linalg.solve(near.augmented_second(_RIDGE), away.augmented_mean(), assume_a="pos")
    ratio = coef[0] + ((source - pooled.mean) / scale) @ coef[1:]
    total = float(np.abs(ratio).sum())
    return float(np.maximum(-ratio, 0.0).sum()) / total if total > 0.0 else 0.0


def _features(
    source: FloatArray, target: FloatArray, names: Sequence[str], ratio: LikelihoodRatio
) -> tuple[dict[str, Any], ...]:
    means = source.mean(axis=0), target.mean(axis=0)
    gap = means[1] - means[0]
    spread = np.sqrt((source.var(axis=0) + target.var(axis=0)) / 2.0)
    # Two constants that differ: half their distance, the spread of a half-and-half mixture, stands in.
    spread = np.where(spread <= 1e-12 * np.abs(means).max(axis=0), np.abs(gap) / 2.0, spread)
    difference = np.divide(gap, spread, out=np.zeros_like(gap), where=spread > 0.0)
    coefficients = ratio.coef_.tolist() if ratio.classifier == "logistic" else [None] * len(names)
    rows = [
        {
            "name": str(names[j]),
            "standardized_difference": float(difference[j]),
            "coefficient": coefficients[j],
            "mean_source": float(means[0][j]),
            "mean_target": float(means[1][j]),
        }
        for j in np.argsort(-np.abs(difference), kind="stable")
    ]
    return tuple(rows)


def _overlap(ratio: LikelihoodRatio) -> dict[str, list[float]]:
    """Return histograms of the out-of-fold domain log-odds; the outermost bins hold the tails."""
    both = np.concatenate([ratio.source_log_odds_, ratio.target_log_odds_])
    low, high = np.quantile(both, [0.005, 0.995])
    if high - low <= 1e-9 * max(abs(low), abs(high), 1.0):
        low, high = low - 0.5, high + 0.5
    edges = np.linspace(low, high, _BINS + 1)
    counts = [
        np.histogram(np.clip(scores, low, high), edges)[0].astype(float).tolist()
        for scores in (ratio.source_log_odds_, ratio.target_log_odds_)
    ]
    return {"edges": edges.tolist(), "source": counts[0], "target": counts[1]}


def _concentration(weights: FloatArray) -> dict[str, list[float]]:
    """Return which share of the weight the heaviest rows carry."""
    carried = np.concatenate([[0.0], np.cumsum(np.sort(weights)[::-1])])
    carried /= carried[-1]
    shares = np.linspace(0.0, 1.0, _POINTS)
    return {
        "rows": shares.tolist(),
        "weight": np.interp(shares, np.linspace(0.0, 1.0, len(carried)), carried).tolist(),
    }
