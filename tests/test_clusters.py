"""Intervals of a coverage on rows that come in clusters, and what `evaluate` says of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
from commands import lrqr
from scipy.stats import binom

from lrqr import ConformalRegressor
from lrqr.stats.certificate import certify
from lrqr.stats.diagnosis import diagnose
from lrqr.stats.metrics import _tails, by_group, clustered_interval, coverage_interval, size_stratified

if TYPE_CHECKING:
    from pathlib import Path


def test_rows_that_are_all_alike_in_a_cluster_count_as_one() -> None:
    hits = np.repeat([True, False], [90, 10])
    plain = coverage_interval(90, 100)
    alone = clustered_interval(hits, np.arange(100))
    assert alone == pytest.approx(plain, abs=0.003)
    tenfold = clustered_interval(np.repeat(hits, 10), np.repeat(np.arange(100), 10))
    assert tenfold == pytest.approx(plain, abs=0.006)
    assert tenfold[0] < coverage_interval(900, 1000)[0] - 0.03
    # never shorter than the interval of independent rows, up to the estimated variance
    spread = clustered_interval(hits, np.arange(100) % 10)
    assert spread[0] <= plain[0] + 1e-9
    assert spread[1] >= plain[1] - 1e-9


def test_the_ends() -> None:
    assert clustered_interval(np.ones(50, dtype=bool), np.zeros(50)) == (0.0, 1.0)
    low, high = clustered_interval(np.ones(50, dtype=bool), np.arange(50) // 5)
    assert high == 1.0
    assert low < coverage_interval(10, 10)[0] + 1e-9
    assert clustered_interval(np.zeros(0, dtype=bool), np.zeros(0)) == (0.0, 1.0)


@pytest.mark.coverage
@pytest.mark.parametrize(("clusters", "size", "within"), [(30, 10, 0.3), (60, 5, 0.6), (25, (1, 40), 0.2)])
def test_the_interval_holds_the_coverage_of_clustered_rows(
    clusters: int, size: int | tuple[int, int], within: float
) -> None:
    """Clusters cover with a chance drawn from a Beta of mean .9 and the given intraclass correlation."""
    rng = np.random.default_rng(0)
    repeats, held, naive = 1500, 0, 0
    scale = 1.0 / within - 1.0
    for _ in range(repeats):
        sizes = np.full(clusters, size) if isinstance(size, int) else rng.integers(*size, clusters)
        chance = rng.beta(0.9 * scale, 0.1 * scale, clusters)
        names = np.repeat(np.arange(clusters), sizes)
        hits = rng.random(len(names)) < chance[names]
        low, high = clustered_interval(hits, names)
        held += low <= 0.9 <= high
        low, high = coverage_interval(int(hits.sum()), len(hits))
        naive += low <= 0.9 <= high
    assert held >= binom.ppf(1e-4, repeats, 0.93)  # nominal .95; the design effect is an estimate
    assert naive < 0.9 * repeats


@pytest.mark.parametrize("when", ["fit", "evaluate"])
def test_evaluate_takes_account_of_clusters_and_says_so(when: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)

    def table(n: int, name: str) -> pd.DataFrame:
        site = rng.integers(0, 25, n)
        x, noise = rng.normal(size=n), 1.5 * rng.normal(size=25)[site] + 0.2 * rng.normal(size=n)
        return pd.DataFrame({"x": x, "yhat": x, "y": x + noise, "site": [f"{name}{k}" for k in site]})

    for name, n in (("s", 300), ("t", 100), ("u", 500)):
        table(n, name).to_csv(tmp_path / f"{name}.csv", index=False)
    given = ["--cluster", "site"]
    fit = ["fit", tmp_path / "s.csv", tmp_path / "t.csv", "--outcome", "y", "--prediction", "yhat"]
    fit += ["--method", "split", "-o", tmp_path / "m", *(given if when == "fit" else ["--exclude", "site"])]
    assert lrqr(*fit).code == 0
    judge = ["evaluate", tmp_path / "m", tmp_path / "u.csv", *(given if when == "evaluate" else [])]
    result = lrqr(*judge, "--format", "json").json
    assert result["clusters"] == 25
    found = result["coverage"]
    value = found["value"]
    low, high = coverage_interval(round(500 * value), 500)
    assert found["low"] < low
    assert found["high"] > high
    assert "with dependence in 25 clusters" in lrqr(*judge).out


@pytest.mark.parametrize("order", [1, -1])
def test_naming_clusters_of_independent_rows_moves_no_row_outside(order: int) -> None:
    """Whatever their values: one row is taken of each cluster, not the lowest nor the highest."""
    rng = np.random.default_rng(7)
    source, target = order * rng.normal(size=(600, 3)), order * rng.normal((0.8, 0.0, 0.0), size=(500, 3))
    plain = diagnose(source, target)
    named = diagnose(source, target, clusters=np.arange(600) // 3)
    assert plain.outside_support < 0.06
    assert named.outside_support < 0.06
    assert named.verdict == plain.verdict


def test_rows_k_times_are_worth_to_the_certificate_what_they_are_once() -> None:
    rng = np.random.default_rng(0)
    covered, ratio = rng.random(200) < 0.9, rng.exponential(size=200)
    features, target = rng.normal(size=(200, 1)), rng.normal(size=(100, 1))
    once = certify(covered, ratio, features, target, coverage=0.9)
    rows = np.repeat(np.arange(200), 4)
    copies = certify(covered[rows], ratio[rows], features[rows], target, coverage=0.9, groups=rows)
    assert copies.effective_size == pytest.approx(once.effective_size)
    apart = certify(covered, ratio, features, target, coverage=0.9, groups=np.arange(200))
    assert apart == once
    every = certify(
        np.ones(200, dtype=bool), ratio, features, target, coverage=0.9, groups=np.arange(200) // 4
    )
    assert every.effective_size < 50.0


@pytest.mark.coverage
def test_the_certificate_holds_on_clustered_rows() -> None:
    """100 draws of 60 clusters of 6 rows that share the size of their noise; exact band."""

    class Zero:
        def predict(self, X: np.ndarray) -> np.ndarray:
            return np.zeros(len(X))

    held = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)

        def rows(k: int, shift: float, rng: np.random.Generator = rng) -> tuple[np.ndarray, ...]:
            names = np.repeat(np.arange(k), 6)
            x = rng.normal(shift, 1.0, size=len(names))
            noise = np.exp(0.8 * rng.normal(size=k))[names] * rng.normal(size=len(names))
            return x[:, None], (0.5 + 0.5 * np.abs(x)) * noise, names

        X, y, names = rows(60, 0.0)
        model = ConformalRegressor(Zero(), prefit=True, feature_map="constant")
        model.fit(X, y, X_target=rows(60, 0.5)[0], groups=names)
        Z, outcome, _ = rows(2000, 0.5)
        lower, upper = model.predict_interval(Z).T
        held += ((lower <= outcome) & (outcome <= upper)).mean() >= model.certificate_.lower_bound
    assert held >= binom.ppf(0.001, 100, 0.95)


def test_groups_and_sizes_know_of_clusters_too() -> None:
    rng = np.random.default_rng(1)
    covered, group, sizes = rng.random(400) < 0.88, rng.integers(2, size=400), rng.exponential(size=400)
    rows = np.repeat(np.arange(400), 5)
    for once, often in (
        (
            by_group(covered=covered, group=group, nominal=0.9),
            by_group(covered=covered[rows], group=group[rows], nominal=0.9, clusters=rows),
        ),
        (
            size_stratified(covered=covered, sizes=sizes, nominal=0.9),
            size_stratified(covered=covered[rows], sizes=sizes[rows], nominal=0.9, clusters=rows),
        ),
    ):
        for one, many in zip(once, often, strict=True):
            assert many["n"] == 5 * one["n"]
            assert many["coverage"] == pytest.approx(one["coverage"])
            for end in ("low", "high"):
                assert many[end] == pytest.approx(one[end], abs=0.01)
            assert many["p_value"] == pytest.approx(one["p_value"], abs=0.03)


def test_tails_of_whole_numbers_are_those_of_the_binomial_law() -> None:
    for n in (1, 7, 40):
        for k in range(n + 1):
            low, high = _tails(k, n, 0.9)
            assert low == pytest.approx(binom.cdf(k, n, 0.9), rel=1e-9, abs=1e-300)
            assert high == pytest.approx(binom.sf(k - 1, n, 0.9), rel=1e-9)
