"""Weighted conformal at the size of a service: ratios of run times and peak memory, measured in one run."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING

import numpy as np
import pytest

from lrqr.stats.quantiles import weighted_quantile

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.bench

CALIBRATION, TESTS = 200_000, 1_000_000


def _one_row_at_a_time(
    scores: np.ndarray, weights: np.ndarray, tests: np.ndarray, level: float
) -> np.ndarray:
    """The textbook: for each row put its weight at infinity, sort, normalize, cumulate."""
    thresholds = np.empty(len(tests))
    for i, test in enumerate(tests):
        all_scores, all_weights = np.append(scores, np.inf), np.append(weights, test)
        order = np.argsort(all_scores)
        share = np.cumsum(all_weights[order]) / all_weights.sum()
        thresholds[i] = all_scores[order][np.searchsorted(share, level)]
    return thresholds


def test_a_million_rows_cost_far_less_than_a_loop(record_property: Callable[[str, object], None]) -> None:
    """At least 50 times faster per row than the loop, measured on 20 of the rows."""
    rng = np.random.default_rng(0)
    scores, weights, tests = (
        rng.exponential(size=CALIBRATION),
        rng.exponential(size=CALIBRATION),
        rng.exponential(size=TESTS),
    )
    start = time.perf_counter()
    fast = weighted_quantile(scores, weights, tests, 0.9)
    together = (time.perf_counter() - start) / TESTS
    start = time.perf_counter()
    slow = _one_row_at_a_time(scores, weights, tests[:20], 0.9)
    alone = (time.perf_counter() - start) / 20
    assert np.array_equal(fast[:20], slow)
    record_property("times faster per row than the loop", alone / together)
    assert alone >= 50 * together


def test_time_grows_no_faster_than_the_rows() -> None:
    """Ten times the test rows at ten times the calibration rows: n log n, not n²."""
    rng = np.random.default_rng(0)

    def seconds(n: int) -> float:
        arrays = [rng.exponential(size=size) for size in (n, n, 5 * n)]
        best = np.inf
        for _ in range(3):
            start = time.perf_counter()
            weighted_quantile(*arrays, 0.9)
            best = min(best, time.perf_counter() - start)
        return best

    assert seconds(200_000) < 30 * seconds(20_000)


def test_peak_memory_stays_under_a_gibibyte(record_property: Callable[[str, object], None]) -> None:
    """The whole way of the estimator, in a process of its own: 200k and 1M rows of 5 features."""
    code = f"""
import resource
import numpy as np
from lrqr.methods.weighted import WeightedConformal
rng = np.random.default_rng(0)
X, new = rng.normal(size=({CALIBRATION}, 5)), 0.3 + rng.normal(size=({TESTS}, 5))
y = rng.exponential(size={CALIBRATION})
model = WeightedConformal().fit(X, y, X_target=new[:20_000])
thresholds = model.predict(new)
assert thresholds.shape == ({TESTS},)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    unit = 1 if sys.platform == "darwin" else 1024
    peak = int(result.stdout) * unit
    record_property("peak memory in MiB", peak / 2**20)
    assert peak < 2**30
