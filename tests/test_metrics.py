"""Metrics against independent implementations and closed forms."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, binomtest

from lrqr.errors import DataError, UsageError
from lrqr.stats import metrics


@settings(max_examples=200, deadline=None)
@given(n=st.integers(1, 3000), data=st.data(), confidence=st.sampled_from([0.8, 0.95, 0.99]))
def test_interval_is_clopper_pearson(n: int, data: st.DataObject, confidence: float) -> None:
    k = data.draw(st.integers(0, n))
    exact = binomtest(k, n).proportion_ci(confidence, method="exact")
    np.testing.assert_allclose(metrics.coverage_interval(k, n, confidence), exact, atol=1e-10)


@pytest.mark.parametrize(("n", "p"), [(20, 0.9), (50, 0.5), (200, 0.95)])
def test_interval_covers_at_least_as_promised(n: int, p: float) -> None:
    """Sum over all outcomes: P(low <= p <= high) >= .95, and not idly so."""
    intervals = np.array([metrics.coverage_interval(k, n) for k in range(n + 1)])
    holds = binom.pmf(np.arange(n + 1), n, p) @ ((intervals[:, 0] <= p) & (p <= intervals[:, 1]))
    assert 0.95 <= holds < 0.995


def test_interval_without_rows_and_with_swapped_arguments() -> None:
    assert metrics.coverage_interval(0, 0) == (0.0, 1.0)
    with pytest.raises(UsageError, match="swapped"):
        metrics.coverage_interval(100, 90)
    with pytest.raises(UsageError, match="confidence"):
        metrics.coverage_interval(1, 2, 95)


def test_verdict() -> None:
    assert metrics.verdict(0.8, 0.89, 0.9) == "below"
    assert metrics.verdict(0.8, 0.9, 0.9) == "compatible"
    assert metrics.verdict(0.91, 0.95, 0.9) == "above"


def test_outcomes_and_bounds_have_no_order_to_confuse() -> None:
    y, lower, upper = np.array([1.0]), np.array([2.0]), np.array([3.0])
    assert metrics.winkler_score(y=y, lower=lower, upper=upper, nominal=0.9)["mean"] == pytest.approx(21.0)
    with pytest.raises(TypeError):
        metrics.winkler_score(y, lower, upper, 0.9)


def test_coverage_summary() -> None:
    summary = metrics.coverage_summary(covered=np.arange(200) < 150, nominal=0.9)
    assert summary["value"] == 0.75
    assert summary["verdict"] == "below"
    assert (summary["low"], summary["high"]) == metrics.coverage_interval(150, 200)
    nothing = metrics.coverage_summary(covered=np.zeros(0, dtype=bool), nominal=0.9)
    assert nothing["value"] is None
    assert nothing["verdict"] == "compatible"


def test_size_of_intervals() -> None:
    region = np.array([[0.0, 1.0], [0.0, 3.0], [-np.inf, np.inf], [np.inf, -np.inf], [2.0, 2.0]])
    assert metrics.region_size(region=region).tolist() == [1.0, 3.0, np.inf, 0.0, 0.0]
    summary = metrics.size_summary(region=region)
    assert summary["mean"] == 1.0
    assert summary["median"] == 1.0
    assert summary["quantiles"]["0.95"] == np.inf
    shares = {name: summary[name] for name in ("infinite", "empty", "full", "singleton")}
    assert shares == {"infinite": 0.2, "empty": 0.2, "full": 0.2, "singleton": 0.2}
    half = metrics.size_summary(region=np.array([[-np.inf, 1.0]]))
    assert (half["infinite"], half["full"], half["mean"]) == (1.0, 0.0, np.inf)
    with pytest.raises(DataError, match="NaN"):
        metrics.region_size(region=np.array([[np.nan, 1.0]]))


def test_size_of_sets() -> None:
    region = np.array([[True, True], [True, False], [False, False], [False, True]])
    summary = metrics.size_summary(region=region)
    assert summary["mean"] == 1.0
    shares = {name: summary[name] for name in ("infinite", "empty", "full", "singleton")}
    assert shares == {"infinite": 0.0, "empty": 0.25, "full": 0.25, "singleton": 0.5}


def test_distribution_keeps_the_usual_median_and_survives_nothing() -> None:
    assert metrics.distribution(values=np.array([1.0, 2.0, 3.0, 6.0]))["median"] == 2.5
    infinite = metrics.distribution(values=np.array([-np.inf, np.inf]))
    assert (infinite["mean"], infinite["median"]) == (-np.inf, -np.inf)
    assert metrics.distribution(values=np.zeros(0))["mean"] is None
    assert metrics.size_summary(region=np.empty((0, 2)))["empty"] is None


def test_winkler_score_is_twice_the_pinball_losses() -> None:
    """Gneiting & Raftery (2007): (2 / α) (pinball at α/2 of lower + pinball at 1 - α/2 of upper)."""
    rng = np.random.default_rng(0)
    y, lower = rng.normal(size=300), rng.normal(size=300) - 1
    upper, alpha = lower + rng.exponential(size=300), 0.2

    def pinball(quantile: np.ndarray, level: float) -> np.ndarray:
        return np.maximum(level * (y - quantile), (level - 1) * (y - quantile))

    expected = 2 / alpha * (pinball(lower, alpha / 2) + pinball(upper, 1 - alpha / 2))
    score = metrics.winkler_score(y=y, lower=lower, upper=upper, nominal=1 - alpha)
    np.testing.assert_allclose(score["mean"], expected.mean())
    assert score["left_out"] == 0
    lower[0], upper[1] = np.inf, np.inf
    upper[0] = -np.inf
    score = metrics.winkler_score(y=y, lower=lower, upper=upper, nominal=1 - alpha)
    np.testing.assert_allclose(score["mean"], expected[2:].mean())
    assert score["left_out"] == 2


def test_winkler_score_prefers_the_true_quantiles() -> None:
    rng = np.random.default_rng(1)
    y = rng.normal(size=20_000)
    scores = [
        metrics.winkler_score(y=y, lower=np.full_like(y, -q), upper=np.full_like(y, q), nominal=0.9)["mean"]
        for q in (1.3, 1.645, 2.0)
    ]
    assert np.argmin(scores) == 1


@settings(max_examples=100, deadline=None)
@given(
    counts=st.lists(
        st.integers(1, 80).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), min_size=1, max_size=8
    ),
    nominal=st.sampled_from([0.5, 0.8, 0.9]),
)
def test_holm_against_its_definition(counts: list[tuple[int, int]], nominal: float) -> None:
    """Independent: scipy's one-sided tests doubled, the step-down written as a loop."""
    rows = metrics.holm(counts, nominal)
    p = []
    for k, n in counts:
        tails = [binomtest(k, n, nominal, alternative=side).pvalue for side in ("less", "greater")]
        p.append(min(1.0, 2 * min(tails)))
    np.testing.assert_allclose([row["p_value"] for row in rows], p, rtol=1e-9)
    rejected, left = set(), len(counts)
    for k in np.argsort(p, kind="stable"):
        if p[k] >= 0.05 / left:
            break
        rejected.add(int(k))
        left -= 1
    assert {k for k, row in enumerate(rows) if row["verdict"] != "compatible"} == rejected
    assert {k for k, row in enumerate(rows) if row["p_adjusted"] < 0.05} == rejected
    for (k, n), row in zip(counts, rows, strict=True):
        low, high = metrics.coverage_interval(k, n)
        assert row["low"] <= low
        assert row["high"] >= high


def test_holm_calls_true_promises_broken_at_most_one_time_in_twenty() -> None:
    rng = np.random.default_rng(2)
    alarms = 0
    for _ in range(400):
        rows = metrics.holm([(int(k), 100) for k in rng.binomial(100, 0.9, size=6)], 0.9)
        alarms += any(row["verdict"] != "compatible" for row in rows)
    assert binomtest(alarms, 400, 0.05, alternative="greater").pvalue > 0.001


def test_groups() -> None:
    group = np.array(["b"] * 100 + ["a"] * 10)
    covered = np.arange(110) >= 50
    table = metrics.by_group(covered=covered, group=group, nominal=0.9, sizes=np.arange(110.0))
    assert [row["group"] for row in table] == ["a", "b"]
    assert [row["n"] for row in table] == [10, 100]
    assert [row["coverage"] for row in table] == [1.0, 0.5]
    assert [row["verdict"] for row in table] == ["compatible", "below"]
    assert [row["small"] for row in table] == [True, False]
    assert [row["size"] for row in table] == [104.5, 49.5]
    numbers = metrics.by_group(covered=covered[:3], group=np.array([10, 2, 2]), nominal=0.9)
    assert [row["group"] for row in numbers] == [2, 10]
    mixed = metrics.by_group(covered=covered[:2], group=np.array([1, "x"], dtype=object), nominal=0.9)
    assert [row["group"] for row in mixed] == ["1", "x"]
    with pytest.raises(DataError, match="group has shape"):
        metrics.by_group(covered=covered, group=group[:3], nominal=0.9)


def test_size_stratified() -> None:
    rng = np.random.default_rng(3)
    sizes = rng.exponential(size=1000)
    covered = rng.uniform(size=1000) < np.where(sizes > np.quantile(sizes, 0.8), 0.6, 0.95)
    table = metrics.size_stratified(covered=covered, sizes=sizes, nominal=0.9)
    assert [row["n"] for row in table] == [200] * 5
    assert [row["verdict"] for row in table][-1] == "below"
    assert all(a["largest"] < b["smallest"] for a, b in pairwise(table))
    assert sum(row["coverage"] * row["n"] for row in table) == pytest.approx(covered.sum())
    ties = metrics.size_stratified(covered=covered, sizes=np.where(sizes < 1, 1.0, np.inf), nominal=0.9)
    assert [row["largest"] for row in ties] == [1.0, np.inf]
    assert metrics.size_stratified(covered=covered[:0], sizes=sizes[:0], nominal=0.9) == []


def test_worst_slab_finds_a_planted_one_and_does_not_invent_one() -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(6000, 3)) * [1.0, 1e6, 1.0] + [0.0, 5.0, 0.0]
    hole = (X[:, 0] > 0.5) & (X[:, 0] < 1.2)
    planted = rng.uniform(size=6000) < np.where(hole, 0.4, 0.95)
    found = metrics.worst_slab(X=X, covered=planted, nominal=0.9, directions=300)
    assert found["verdict"] == "below"
    assert found["value"] < 0.7
    assert found["n"] > 200
    again = metrics.worst_slab(X=X, covered=planted, nominal=0.9, directions=300)
    assert again == found
    even = metrics.worst_slab(X=X, covered=rng.uniform(size=6000) < 0.9, nominal=0.9, directions=300)
    assert even["verdict"] == "compatible"


def test_worst_slab_against_brute_force() -> None:
    """One direction, no ties: the lowest coverage over all pairs of edges."""
    rng = np.random.default_rng(5)
    position, hits = rng.normal(size=100), rng.uniform(size=100) < 0.8
    value, low, high = metrics._lowest_slab(position, hits, 0.1)
    ranked, in_order = np.sort(position), hits[np.argsort(position)]
    best = min(in_order[a:b].mean() for a in range(0, 100, 2) for b in range(a + 10, 101, 2))
    assert value == pytest.approx(best)
    inside = (position >= low) & (position <= high)
    assert hits[inside].mean() == pytest.approx(value)
    assert inside.sum() >= 10
    assert {low, high} <= set(ranked)


def test_worst_slab_of_too_few_rows_says_so() -> None:
    found = metrics.worst_slab(X=np.zeros((20, 1)), covered=np.ones(20, dtype=bool), nominal=0.9)
    assert (found["value"], found["n"]) == (None, 0)


def test_importance_weighted_coverage() -> None:
    covered = np.array([True, False, True])
    result = metrics.importance_weighted_coverage(covered=covered, weights=np.array([1.0, 2.0, 1.0]))
    assert result["value"] == 0.5
    assert result["standard_error"] == pytest.approx(np.sqrt(0.25 + 1.0 + 0.25) / 4)
    zero = metrics.importance_weighted_coverage(covered=covered, weights=np.zeros(3))
    assert zero == {"value": None, "standard_error": None}
    with pytest.raises(DataError, match="negative"):
        metrics.importance_weighted_coverage(covered=covered, weights=np.array([1.0, -2.0, 1.0]))


def test_importance_weighted_standard_error_is_the_spread_over_samples() -> None:
    """Source N(0,1), target N(.5,1), covered iff x < 1: mean and spread over 400 samples."""
    rng = np.random.default_rng(6)
    results = []
    for _ in range(400):
        x = rng.normal(size=1000)
        weights = np.exp(0.5 * x - 0.125)
        results.append(metrics.importance_weighted_coverage(covered=x < 1, weights=weights))
    values = np.array([result["value"] for result in results])
    errors = np.array([result["standard_error"] for result in results])
    from scipy.stats import norm

    assert abs(values.mean() - norm.cdf(0.5)) < 4 * values.std() / 20
    assert errors.mean() == pytest.approx(values.std(), rel=0.15)


def test_metrics_take_no_swapped_arguments() -> None:
    y, lower, upper = np.array([1.0]), np.array([2.0]), np.array([3.0])
    score = metrics.winkler_score(y=y, lower=lower, upper=upper, nominal=0.9)
    assert score["mean"] == pytest.approx(21.0)  # the length 1, and 2 / 0.1 times the distance 1
    with pytest.raises(TypeError):
        metrics.winkler_score(y, lower, upper, 0.9)  # type: ignore[misc]
