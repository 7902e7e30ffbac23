"""Every formula of the problem against an independent one: differences, programs, brute force."""

from __future__ import annotations

from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from strategies import make_problem, problems

from lrqr.errors import DataError, UsageError
from lrqr.solvers.problem import Problem, best_multiple, pinball


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=20), st.sampled_from([0.5, 0.8, 0.9]))
def test_pinball_is_its_definition(residuals: list[float], coverage: float) -> None:
    expected = np.mean([coverage * u if u >= 0 else (1 - coverage) * -u for u in residuals])
    assert pinball(np.array(residuals), coverage) == pytest.approx(expected, abs=1e-12)


@settings(max_examples=25)
@given(problems(), st.floats(0.2, 3.0), st.integers(0, 100))
def test_gradients_are_finite_differences(problem: Problem, beta: float, seed: int) -> None:
    gamma = np.random.default_rng(seed).normal(size=problem.features.shape[1])
    gradient, residuals = problem.gradient(gamma, beta), problem.scores - problem.features @ gamma
    # a step so small that no residual changes sign: F is a quadratic there, and central differences exact
    step = min(1e-3, 0.5 * np.abs(residuals).min() / np.abs(problem.features).max())
    assume(step > 1e-6)
    rounding = 1e-14 * (1.0 + abs(problem.objective(gamma, beta))) / step
    for j in range(len(gamma)):
        shift = step * np.eye(len(gamma))[j]
        up, down = problem.objective(gamma + shift, beta), problem.objective(gamma - shift, beta)
        assert gradient[j] == pytest.approx((up - down) / (2 * step), rel=1e-6, abs=10 * rounding)
    up, down = problem.objective(gamma, beta + 1e-4), problem.objective(gamma, beta - 1e-4)
    slope = problem.gradient_beta(gamma, beta)
    assert slope == pytest.approx((up - down) / 2e-4, rel=1e-5, abs=1e-6)


@settings(max_examples=25)
@given(problems(), st.integers(0, 100))
def test_best_beta_is_the_minimum_of_a_parabola(problem: Problem, seed: int) -> None:
    gamma = np.random.default_rng(seed).normal(size=problem.features.shape[1])
    beta = problem.best_beta(gamma)
    assert problem.gradient_beta(gamma, beta) == pytest.approx(0.0, abs=1e-9 * problem.regularization)
    for other in (beta - 0.1, beta + 0.1):
        assert problem.objective(gamma, other) > problem.objective(gamma, beta)


@pytest.mark.parametrize("seed", range(5))
def test_dual_value_is_the_minimum_of_the_lagrangian(seed: int) -> None:
    problem = make_problem(seed, 15, 3, regularization=0.3, ridge=0.1)
    rng = np.random.default_rng(seed)
    a, beta = rng.uniform(-0.1, 0.9, size=15), 1.3
    gamma = cp.Variable(4)
    smooth = beta**2 * cp.quad_form(gamma, cp.psd_wrap(problem.second_moment))
    smooth -= 2 * beta * problem.target_mean @ gamma
    lagrangian = a @ (problem.scores - problem.features @ gamma) / 15 + problem.regularization * smooth
    program = cp.Problem(cp.Minimize(lagrangian))
    assert problem.dual_value(a, beta) == pytest.approx(program.solve(solver="CLARABEL"), abs=1e-7)


@settings(max_examples=25)
@given(problems(), st.floats(0.2, 3.0), st.integers(0, 100))
def test_weak_duality(problem: Problem, beta: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    gamma = rng.normal(size=problem.features.shape[1])
    a = rng.uniform(problem.coverage - 1.0, problem.coverage, size=len(problem.scores))
    assert problem.gap(gamma, beta, a) >= -1e-9 * (1.0 + abs(problem.objective(gamma, beta)))


@settings(max_examples=25)
@given(problems(), st.floats(0.2, 3.0), st.integers(0, 100))
def test_whitened_coordinates_give_the_same_objective(problem: Problem, beta: float, seed: int) -> None:
    white = problem.whiten()
    v = np.random.default_rng(seed).normal(size=white.psi.shape[1])
    value = pinball(white.scores - white.psi @ v, problem.coverage)
    value += problem.regularization * (beta**2 * v @ v - 2 * beta * white.pull @ v)
    assert value == pytest.approx(problem.objective(white.back @ v, beta), rel=1e-8, abs=1e-8)


@settings(max_examples=50)
@given(st.integers(0, 10_000), st.integers(1, 12), st.sampled_from([0.5, 0.8, 0.9]))
def test_best_multiple_beats_every_breakpoint(seed: int, n: int, coverage: float) -> None:
    rng = np.random.default_rng(seed)
    scores, direction = np.round(np.abs(rng.normal(size=n)), 1), np.round(rng.normal(size=n), 1)
    best = pinball(scores - best_multiple(scores, direction, coverage) * direction, coverage)
    breaks = [score / q for score, q in zip(scores, direction, strict=True) if q != 0.0]
    assert all(best <= pinball(scores - t * direction, coverage) + 1e-12 for t in [0.0, *breaks])


def test_a_target_outside_the_range_of_the_source_is_unbounded_and_refused() -> None:
    problem = make_problem(0, 10, 20, regularization=1.0, ridge=0.0)
    with pytest.raises(UsageError, match="unbounded below"):
        problem.whiten()
    # and it is: along the null direction that sees the target mean, F falls without end
    values, vectors = np.linalg.eigh(problem.second_moment)
    null = vectors[:, values < 1e-9]
    away = null @ (null.T @ problem.target_mean)
    falls = [problem.objective(away, beta) for beta in (1.0, 1e3, 1e6)]
    assert falls[2] < falls[1] < falls[0]
    assert falls[2] < -1e5


def test_a_duplicated_column_without_ridge_is_solved_in_the_range() -> None:
    problem = make_problem(0, 50, 3, regularization=1.0, ridge=0.0)
    wide = np.eye(4)[:, [0, 1, 2, 3, 3]]
    copied = replace(
        problem,
        features=problem.features @ wide,
        second_moment=wide.T @ problem.second_moment @ wide,
        target_mean=problem.target_mean @ wide,
    )
    a, b = problem.whiten(), copied.whiten()
    assert a.psi.shape == b.psi.shape
    assert np.linalg.norm(b.pull) == pytest.approx(np.linalg.norm(a.pull))


def test_labeled_rows_outside_the_unlabeled_source_are_refused_without_ridge() -> None:
    problem = make_problem(0, 30, 2, regularization=1.0, ridge=0.0)
    flat = problem.second_moment.copy()
    flat[2, :] = flat[:, 2] = 0.0
    mean = problem.target_mean.copy()
    mean[2] = 0.0
    with pytest.raises(UsageError, match="labeled rows vary"):
        replace(problem, second_moment=flat, target_mean=mean).whiten()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"coverage": 1.0}, "coverage"),
        ({"regularization": -1.0}, "regularization"),
        ({"regularization": np.inf}, "regularization"),
        ({"scores": np.full(20, np.nan)}, "scores"),
        ({"scores": np.ones(3)}, "shapes"),
    ],
)
def test_nonsense_is_refused(change: dict[str, object], message: str) -> None:
    problem = make_problem(0, 20, 2, regularization=1.0, ridge=0.0)
    with pytest.raises((UsageError, DataError), match=message):
        replace(problem, **change)
