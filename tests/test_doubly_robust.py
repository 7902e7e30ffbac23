"""Doubly robust prediction: the worked example, double robustness, scan and nuisance models."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from lrqr.errors import DataError, UsageError
from lrqr.methods.divergences import robust_level
from lrqr.methods.doubly_robust import (
    DoublyRobust,
    _FoldModel,
    doubly_robust_level,
    falling_candidates,
    falling_threshold,
)
from lrqr.stats.ratio import LikelihoodRatio

SCORES = np.array([1.0, 2.0, 3.0, 4.0])
RIGHT_RATIO = np.array([0.5, 0.5, 1.5, 1.5])
# groups A = {1, 2} and B = {3, 4}; the target is one quarter A
RIGHT_CDF = {1: (0.5, 0.0), 2: (1.0, 0.0), 3: (1.0, 0.5), 4: (1.0, 1.0)}


def _curve(ratio: np.ndarray, cdf: dict[int, tuple[float, float]]) -> np.ndarray:
    values = []
    for theta in SCORES:
        a, b = cdf[int(theta)]
        own = np.array([a, a, b, b])
        values.append(doubly_robust_level(ratio, (theta >= SCORES).astype(float), own, a / 4 + 3 * b / 4))
    return np.array(values)


def _threshold(curve: np.ndarray, level: float) -> float:
    return falling_threshold(SCORES[::-1], iter(curve[::-1].tolist()), level)


def test_right_if_either_part_is_right() -> None:
    """D3.1."""
    none = dict.fromkeys(RIGHT_CDF, (0.0, 0.0))
    for ratio, cdf in ((RIGHT_RATIO, RIGHT_CDF), (RIGHT_RATIO, none), (np.ones(4), RIGHT_CDF)):
        curve = _curve(ratio, cdf)
        assert curve == pytest.approx([0.125, 0.25, 0.625, 1.0])
        assert (_threshold(curve, 0.6), _threshold(curve, 0.75)) == (3.0, 4.0)
    neither = _curve(np.ones(4), none)
    assert neither == pytest.approx([0.25, 0.5, 0.75, 1.0])
    assert (_threshold(neither, 0.6), _threshold(neither, 0.75)) == (3.0, 3.0)


def test_curves_that_fall_or_stay_low() -> None:
    """D3.2, D3.4, D3.5."""
    jump = {1: (0.0, 0.0), 2: (0.2, 0.9), 3: (0.2, 0.9), 4: (0.2, 0.9)}
    curve = _curve(np.array([0.2, 0.2, 1.8, 1.8]), jump)
    assert curve == pytest.approx([0.05, -0.005, 0.445, 0.895])
    assert _threshold(curve, 0.6) == 4.0
    loud = _curve(3 * RIGHT_RATIO, dict.fromkeys(RIGHT_CDF, (0.0, 0.0)))
    assert loud == pytest.approx([0.375, 0.75, 1.875, 3.0])
    assert _threshold(loud, 0.6) == 2.0
    assert _threshold(np.array([0.1, 0.3, 0.6, 0.8]), 0.9) == math.inf


def test_robust_levels_of_the_worked_example() -> None:
    """R6.2."""
    curve = _curve(RIGHT_RATIO, RIGHT_CDF)
    for radius, level, threshold in ((0.0, 0.6, 3.0), (0.01, 0.66761815, 4.0), (0.05, 0.74472757, 4.0)):
        got = robust_level(0.6, radius, "kl")
        assert got == pytest.approx(level, abs=6e-9)
        assert _threshold(curve, got) == threshold


@given(st.lists(st.floats(-0.5, 1.5), min_size=1, max_size=12), st.floats(0.1, 0.95))
def test_scanning_down_equals_the_minimum_over_larger_candidates(curve: list[float], level: float) -> None:
    candidates = np.arange(len(curve), 0, -1.0)
    best = [q for i, q in enumerate(candidates) if min(curve[: i + 1]) >= level - 1e-9]
    assert falling_threshold(candidates, iter(curve), level) == min(best, default=math.inf)


def test_without_target_it_is_the_weighted_quantile() -> None:
    """Nothing to average m over: G is the weighted share of scores, on any scale of the weights (D3.3)."""
    y = np.random.default_rng(0).permutation(np.arange(1.0, 101.0))
    X = np.zeros((100, 1))
    assert DoublyRobust(0.9, grid=101).fit(X, y).threshold_ == 90.0
    for scale in (1.0, 3.0):
        model = DoublyRobust(0.9, grid=101).fit(X, y, ratio=scale * (1.0 + (y > 50)))
        # 50 rows of weight 1 and 50 of weight 2: the lightest tenth from above is 7.5 rows
        assert model.threshold_ == 93.0


def test_candidates_are_quantiles_from_above() -> None:
    scores = np.random.default_rng(0).permutation(np.arange(1.0, 1001.0))
    got = falling_candidates(scores, 0.9, 101)
    assert got[0] == 1000.0
    assert np.all(np.diff(got) == -5.0)
    assert got[-1] == 5.0
    assert falling_candidates(np.full(30, 2.0), 0.9, 100).tolist() == [2.0]


@pytest.mark.parametrize(("n", "d"), [(60, 4), (25, 40)])
def test_conditional_shares_equal_scikit_learn(n: int, d: int) -> None:
    """Warm starts and the kept factor change nothing; more columns than rows neither."""
    rng = np.random.default_rng(0)
    X, target, y = rng.normal(size=(n, d)), rng.normal(size=(20, d)), rng.normal(size=n)
    y += X[:, 0]
    fold = np.arange(n) % 3
    model = _FoldModel(X, target, fold, 1)
    together = np.vstack([X, target])
    Z, T = ((rows - together.mean(0)) / together.std(0) for rows in (X, target))
    for theta in np.sort(y)[[-3, -4, -8, n // 2, 3]]:
        below = (y <= theta).astype(float)
        own, among = model.probabilities(below)
        reference = LogisticRegression(C=1.0, tol=1e-10, max_iter=5000).fit(Z[fold != 1], below[fold != 1])
        assert own == pytest.approx(expit(reference.decision_function(Z[fold == 1])), abs=2e-3)
        assert among == pytest.approx(expit(reference.decision_function(T)), abs=2e-3)
    assert model.probabilities(np.ones(n))[1].tolist() == [1.0] * 20
    assert model.probabilities(np.zeros(n))[0].tolist() == [0.0] * len(own)


def _shifted(seed: int, n: int = 1500) -> tuple[np.ndarray, ...]:
    """Scores whose distribution given x is a logistic location family, so that m is right."""
    rng = np.random.default_rng(seed)
    x, target, new = rng.normal(size=(n, 1)), 1 + rng.normal(size=(n, 1)), 1 + rng.normal(size=(3000, 1))
    y, outcome = (v[:, 0] + rng.logistic(size=len(v)) for v in (x, new))
    return x, y, target, outcome


def test_a_wrong_ratio_is_repaired_by_the_regression_and_the_other_way_round() -> None:
    shares = []
    for seed in range(4):
        x, y, target, outcome = _shifted(seed)
        wrong_ratio = DoublyRobust().fit(x, y, X_target=target, ratio=np.ones(len(x)))
        # a regression on noise knows nothing
        noise = np.random.default_rng(100 + seed).normal(size=(2, *x.shape))
        wrong_cdf = DoublyRobust().fit(noise[0], y, X_target=noise[1], ratio=np.exp(x[:, 0] - 0.5))
        neither = DoublyRobust().fit(noise[0], y, X_target=noise[1], ratio=np.ones(len(x)))
        shares.append([np.mean(outcome <= m.threshold_) for m in (wrong_ratio, wrong_cdf, neither)])
    wrong_ratio_share, wrong_cdf_share, neither_share = np.mean(shares, axis=0)
    assert abs(wrong_ratio_share - 0.9) < 0.015
    assert abs(wrong_cdf_share - 0.9) < 0.025
    assert neither_share < 0.82


def test_in_sample_variant_has_one_model() -> None:
    """With ratio 1 the residuals of an in-sample fit vanish, and G is the target mean of m."""
    rng = np.random.default_rng(0)
    x, target = rng.normal(size=(100, 5)), 0.3 + rng.normal(size=(80, 5))
    y = x[:, 0] + rng.logistic(size=100)
    candidates = np.sort(y)[[-3, -10, -30]]
    curve = list(DoublyRobust(cross_fit=0)._curve(x, y, np.ones(100), target, candidates))
    together = np.vstack([x, target])
    Z, T = ((rows - together.mean(0)) / together.std(0) for rows in (x, target))
    for theta, value in zip(candidates, curve, strict=True):
        model = LogisticRegression(tol=1e-10, max_iter=5000).fit(Z, y <= theta)
        assert value == pytest.approx(model.predict_proba(T)[:, 1].mean(), abs=2e-3)
    other = list(DoublyRobust(cross_fit=5)._curve(x, y, np.ones(100), target, candidates))
    assert not np.isclose(other, curve, atol=1e-4).any()


def test_bad_input_is_named() -> None:
    X, y = np.zeros((20, 1)), np.arange(20.0)
    with pytest.raises(UsageError, match="grid must be at least 2, got 1"):
        DoublyRobust(grid=1).fit(X, y)
    with (
        pytest.raises(DataError, match="all likelihood ratios"),
        pytest.warns(UserWarning, match="effective"),
    ):
        DoublyRobust().fit(X, y, ratio=np.zeros(20))


@pytest.mark.parametrize("shared", [False, True])
def test_clip_bounds_the_propensities(shared: bool) -> None:
    """Propensities from the classifier's log-odds by Bayes' rule, clipped, and given as known ratios."""
    rng = np.random.default_rng(3)
    X, target = rng.normal(size=(300, 3)), rng.normal(size=(120, 3)) + 1.5
    y = np.abs(rng.normal(size=300)) * (1.0 + np.exp(X[:, 0]))
    ratio = LikelihoodRatio(cross_fit=5, C=0.1 if shared else "cv", random_state=0).fit(X, target)
    propensity = expit(ratio.source_log_odds_ - math.log(300 / 120)).clip(0.2, 0.7)
    known = propensity / (1.0 - propensity) * 300 / 120
    by_hand = DoublyRobust(0.8).fit(X, y, X_target=target, ratio=known).threshold_
    clipped = DoublyRobust(0.8, clip=(0.2, 0.7)).fit(X, y, X_target=target, ratio=ratio if shared else None)
    assert clipped.threshold_ == by_hand
    again = DoublyRobust(0.8, clip=(0.2, 0.7)).fit(X, y, X_target=target, ratio=known)
    assert again.threshold_ == by_hand
    assert DoublyRobust(0.8).fit(X, y, X_target=target).threshold_ != by_hand


@pytest.mark.parametrize("clip", [(0.1, 1.0), (0.9, 0.1), (-0.1, 0.5)])
def test_propensities_are_clipped_to_numbers_below_1(clip: tuple[float, float]) -> None:
    with pytest.raises(UsageError, match="0 <= low < high < 1"):
        DoublyRobust(0.8, clip=clip).fit(np.zeros((20, 1)), np.arange(20.0), ratio=np.ones(20))
