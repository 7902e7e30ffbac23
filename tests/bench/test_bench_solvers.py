"""The solver against cvxpy + Clarabel, HiGHS and plain linear algebra: ratios of run times of one run.

CPU seconds in a shell without thread variables; rivals are held to one BLAS thread.
docs/performance.md holds what was measured.
"""

from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import cvxpy as cp
import numpy as np
import pytest
from sklearn.linear_model import QuantileRegressor
from threadpoolctl import threadpool_limits

from lrqr import solvers
from lrqr.methods.lrqr import LRQR
from lrqr.solvers.problem import Problem
from lrqr.stats.moments import Moments

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.bench


def sample(n: int, d: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Correlated source and target rows, a shifted mean, heteroscedastic scores with .9-quantile 1."""
    rng = np.random.default_rng(0)
    mixing = np.eye(d) + 0.3 * rng.normal(size=(d, d)) / np.sqrt(d)
    X, target = rng.normal(size=(n, d)) @ mixing, rng.normal(size=(n // 2, d)) @ mixing
    target += rng.normal(size=d) / np.sqrt(d)
    scores = np.abs(rng.normal(size=n) * (1 + 0.5 * np.tanh(X[:, 0])) + 0.1 * X[:, 1])
    pooled = np.vstack([X, target])
    X, target = ((part - pooled.mean(axis=0)) / pooled.std(axis=0) for part in (X, target))
    return X, scores / np.quantile(scores, 0.9, method="inverted_cdf"), target


def problem(n: int, d: int, *, ridge: float, regularization: float) -> Problem:
    X, scores, target = sample(n, d)
    second, mean = Moments.of(X).augmented_second(ridge), Moments.of(target).augmented_mean()
    return Problem(np.hstack([np.ones((n, 1)), X]), scores, second, mean, 0.9, regularization)


def strongest(n: int) -> float:
    return float(n ** (-1 / 3) * (1 / n + 2 / n) ** (-1 / 3))


def show(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def seconds(run: Callable[[], Any], repeats: int = 3) -> float:
    """Least CPU seconds of a few runs."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times)


def rival_seconds(run: Callable[[], Any], repeats: int = 3) -> float:
    """Least CPU seconds of a few runs on one thread: on several, waiting would count as work."""
    with threadpool_limits(1):
        return seconds(run, repeats)


def one_convex_solve(task: Problem) -> float:
    """CPU seconds of cvxpy + Clarabel, default accuracy, for the convex part at β = 1."""
    n, p = task.features.shape
    gamma = cp.Variable(p)
    residuals = task.scores - task.features @ gamma
    loss = cp.sum(cp.maximum(0.9 * residuals, -0.1 * residuals)) / n
    root = np.linalg.cholesky(task.second_moment)
    penalty = cp.sum_squares(root.T @ gamma) - 2 * task.target_mean @ gamma
    program = cp.Problem(cp.Minimize(loss + task.regularization * penalty))
    return rival_seconds(lambda: program.solve(solver="CLARABEL"), repeats=1)


@pytest.mark.parametrize("chosen", [{"selection": "paper", "ridge": 10.0}, {}], ids=["paper", "auto"])
def test_a_whole_selection_costs_a_tenth_of_one_convex_solve(
    chosen: dict[str, Any], record_property: Any
) -> None:
    n, d = 2000, 200
    X, scores, target = sample(n, d)
    whole = seconds(lambda: LRQR(**chosen).fit(X, scores, X_target=target))
    rival = one_convex_solve(problem(n, d, ridge=10.0, regularization=strongest(n)))
    record_property("selection and refit / one cvxpy solve", whole / rival)
    show(f"selection {whole:.3f} s, one cvxpy solve {rival:.2f} s, ratio {whole / rival:.3f}")
    assert whole <= 0.1 * rival


def test_one_fit_costs_a_tenth_of_one_convex_solve(record_property: Any) -> None:
    n, d = 500, 100
    X, scores, target = sample(n, d)
    for strength in (0.3, 0.01):
        model = LRQR(ridge=10.0, regularization=strength)
        fit = seconds(lambda model=model: model.fit(X, scores, X_target=target))
        rival = one_convex_solve(problem(n, d, ridge=10.0, regularization=strength))
        record_property(f"fit / one cvxpy solve at {strength}", fit / rival)
        show(
            f"\nλ {strength}: fit {1e3 * fit:.1f} ms, one cvxpy solve {1e3 * rival:.0f} ms, {fit / rival:.3f}"
        )
        assert fit <= 0.1 * rival


@pytest.mark.parametrize("ridge", [10.0, 1.0, 0.1, 0.01])
def test_a_path_costs_little_more_than_its_linear_algebra(ridge: float, record_property: Any) -> None:
    n, d = 2000, 200
    task = problem(n, d, ridge=ridge, regularization=1.0)
    grid = list(np.linspace(0.1, 1.0, 10) * strongest(n))
    path = seconds(lambda: solvers.path(task, grid), repeats=7)
    algebra = rival_seconds(lambda: np.linalg.eigh(task.features.T @ task.features), repeats=10)
    record_property(f"path / (Gram + eigendecomposition), ridge {ridge}", path / algebra)
    show(f"ridge {ridge}: path {1e3 * path:.1f} ms, {path / algebra:.1f} x Gram + eigendecomposition")
    assert all(solution.converged for solution in solvers.path(task, grid))
    assert path <= 8.0 * algebra


def test_quantile_regression_beats_highs(record_property: Any) -> None:
    task = problem(2000, 100, ridge=1.0, regularization=0.0)
    ours = seconds(lambda: solvers.solve(task))
    highs = QuantileRegressor(quantile=0.9, alpha=0.0, solver="highs")
    rival = rival_seconds(lambda: highs.fit(task.features[:, 1:], task.scores), repeats=1)
    best = task.loss(np.r_[highs.intercept_, highs.coef_])
    record_property("HiGHS / ours", rival / ours)
    show(f"quantile regression: ours {1e3 * ours:.1f} ms, HiGHS {rival:.2f} s, {rival / ours:.0f} times")
    assert abs(solvers.solve(task).objective - best) <= 1e-6 * best
    assert rival >= 20 * ours


def test_few_features_cost_milliseconds(record_property: Any) -> None:
    for d in (3, 10):
        task = problem(600, d, ridge=0.01, regularization=1.0)
        each = seconds(lambda task=task: solvers.path(task, list(np.logspace(-2.5, 0, 10)))) / 10
        record_property(f"ms per λ at d = {d}", 1e3 * each)
        show(f"n = 600, d = {d}: {1e3 * each:.2f} ms per λ")
        highs = QuantileRegressor(quantile=0.9, alpha=0.0, solver="highs")
        assert each <= 0.5 * rival_seconds(
            lambda task=task, highs=highs: highs.fit(task.features[:, 1:], task.scores)
        )


_LARGE = """
import sys, time, resource
sys.path.insert(0, sys.argv[1])
import numpy as np
from test_bench_solvers import problem, strongest
from lrqr import solvers
n, d = int(sys.argv[2]), int(sys.argv[3])
task = problem(n, d, ridge=10.0, regularization=1.0)
start = time.process_time()
found = solvers.path(task, list(np.linspace(0.1, 1.0, 10) * strongest(n)))
assert all(one.converged for one in found)
print(time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)
"""


def test_twenty_thousand_rows_and_512_features_fit_in_four_gibibytes(
    request: pytest.FixtureRequest, record_property: Any
) -> None:
    folder = str(request.path.parent)
    taken = {}
    for n, d in ((5000, 512), (20_000, 128), (20_000, 512)):
        command = [sys.executable, "-c", _LARGE, folder, str(n), str(d)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        took, gibibytes = (float(word) for word in done.stdout.split())
        taken[n, d] = took
        record_property(f"path of 10 λ at {n} x {d}", f"{took:.1f} s, {gibibytes:.2f} GiB")
        show(f"path of 10 λ at n = {n}, d = {d}: {took:.2f} s, peak {gibibytes:.2f} GiB")
        assert gibibytes < 4.0
    assert taken[20_000, 512] <= 8 * taken[5000, 512]
