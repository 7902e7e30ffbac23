"""Intervals of a coverage on rows that come in clusters, and what `evaluate` says of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
from commands import lrqr
from scipy.stats import binom

from lrqr.stats.diagnosis import diagnose
from lrqr.stats.metrics import clustered_interval, coverage_interval

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
