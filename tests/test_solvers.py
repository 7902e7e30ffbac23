"""Solvers against the cvxpy oracle, against each other, and against the theorems of docs/method.md."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
from commands import NUMBERS, lrqr, predicted, table, write
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.linear_model import QuantileRegressor
from strategies import corners, make_problem, permuted, problems

from lrqr import plugins, solvers
from lrqr.errors import UsageError
from lrqr.solvers.problem import Problem, best_multiple, pinball
from lrqr.stats.moments import Moments

if TYPE_CHECKING:
    from pathlib import Path

OURS = [name for name in plugins.names("solvers") if name != "reference"]


def random_problem(seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 41))
    n = int(rng.integers(max(20, d + 5), 401))
    ridge = float(rng.choice([0.0, rng.uniform(0.0, 1.0)]))
    return make_problem(seed, n, d, regularization=10.0 ** rng.uniform(-2.0, 1.0), ridge=ridge)


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=[pytest.mark.slow] if seed >= 6 else []) for seed in range(40)]
)
def test_newton_reaches_the_oracle(seed: int) -> None:
    problem = random_problem(seed)
    ours, oracle = solvers.solve(problem), solvers.solve(problem, solver="reference")
    assert ours.converged
    assert ours.objective <= oracle.objective + 1e-6 * abs(oracle.objective)
    # never lower than the oracle by more than the oracle's own search over β leaves
    assert ours.objective >= oracle.objective - 1e-5 * abs(oracle.objective)


@pytest.mark.parametrize("name", plugins.names("solvers"))
def test_every_solver_reports_what_it_found(name: str) -> None:
    problem = make_problem(3, 60, 4, regularization=0.2, ridge=0.1)
    solution, again = (solvers.solve(problem, solver=name) for _ in range(2))
    oracle = solvers.solve(problem, solver="reference")
    assert solution.converged
    assert solution.objective == pytest.approx(problem.objective(solution.coef, solution.beta), rel=1e-12)
    assert solution.objective == pytest.approx(oracle.objective, rel=1e-6)
    assert solution.multipliers.min() >= problem.coverage - 1.0 - 1e-12
    assert solution.multipliers.max() <= problem.coverage + 1e-12
    np.testing.assert_array_equal(solution.coef, again.coef)


@pytest.mark.parametrize("name", OURS)
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("tol", [1e-2, 1e-6])
def test_the_gap_bounds_the_true_suboptimality(name: str, seed: int, tol: float) -> None:
    problem = make_problem(seed, 80, 5, regularization=0.1, ridge=0.1)
    solution = solvers.solve(problem, solver=name, tol=tol)
    gamma = cp.Variable(6)
    residuals = problem.scores - problem.features @ gamma
    smooth = solution.beta**2 * cp.quad_form(gamma, cp.psd_wrap(problem.second_moment))
    smooth -= 2 * solution.beta * problem.target_mean @ gamma
    loss = cp.sum(cp.maximum(0.9 * residuals, -0.1 * residuals)) / 80
    program = cp.Problem(cp.Minimize(loss + problem.regularization * smooth))
    best = program.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    assert solution.objective - best <= solution.gap + 1e-9
    assert solution.gap <= tol * problem.loss(solution.coef)
    dual = problem.gap(solution.coef, solution.beta, solution.multipliers)
    assert solution.gap == pytest.approx(dual, rel=1e-3, abs=1e-10)


@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(corners())
def test_bad_corners_end_certified_or_say_so(problem: Problem) -> None:
    solution = solvers.solve(problem)
    assert np.isfinite(solution.coef).all()
    assert np.isfinite(solution.objective)
    if solution.converged:
        loss, size = problem.loss(solution.coef), np.abs(problem.scores).mean()
        floor = 1e-11 * max(size, abs(solution.objective))
        assert solution.gap <= 1e-6 * loss + floor


@settings(max_examples=20, deadline=None)
@given(problems())
def test_no_other_beta_nearby_does_better(problem: Problem) -> None:
    solution = solvers.solve(problem)
    convex = plugins.load("solvers", "reference").ConvexPart(problem)
    for factor in (0.5, 0.9, 1.1, 2.0):
        other = convex.value(factor * solution.beta)
        assert solution.objective <= other + 1e-7 * max(1.0, abs(other))


@pytest.mark.parametrize("seed", range(3))
def test_a_path_is_its_points(seed: int) -> None:
    problem = make_problem(seed, 120, 6, regularization=1.0, ridge=0.5)
    strengths = [0.3, 0.0, 3.0, 0.03]
    for strength, point in zip(strengths, solvers.path(problem, strengths), strict=True):
        assert point.regularization == strength
        alone = solvers.solve(problem.with_regularization(strength))
        assert point.converged
        assert point.objective == pytest.approx(alone.objective, rel=1e-6, abs=1e-8)


def test_the_profile_derivative_is_a_finite_difference() -> None:
    problem = make_problem(1, 60, 4, regularization=0.3, ridge=0.2)
    convex = plugins.load("solvers", "reference").ConvexPart(problem)
    for beta in (0.5, 1.0, 2.0):
        gamma, _ = convex(beta)
        difference = (convex.value(beta + 1e-4) - convex.value(beta - 1e-4)) / 2e-4
        assert problem.gradient_beta(gamma, beta) == pytest.approx(difference, rel=1e-4, abs=1e-6)


# Theorems: the limits of λ and the ridge


@pytest.mark.parametrize("seed", range(3))
def test_large_lambda_is_the_least_squares_ratio_times_a_weighted_quantile(seed: int) -> None:
    problem = make_problem(seed, 200, 5, regularization=1e6, ridge=0.1)
    solution = solvers.solve(problem)
    ratio = np.linalg.solve(problem.second_moment, problem.target_mean)
    t = best_multiple(problem.scores, problem.features @ ratio, problem.coverage)
    np.testing.assert_allclose(solution.coef, t * ratio, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("seed", range(4))
def test_lambda_zero_is_quantile_regression(seed: int) -> None:
    problem = make_problem(seed, 150, 8, regularization=0.0, ridge=0.0)
    solution = solvers.solve(problem)
    other = QuantileRegressor(quantile=0.9, alpha=0.0, solver="highs")
    other.fit(problem.features[:, 1:], problem.scores)
    best = problem.loss(np.r_[other.intercept_, other.coef_])
    assert solution.converged
    assert best * (1 - 1e-9) <= solution.objective <= best * (1 + 1e-6)
    tiny = solvers.solve(make_problem(seed, 150, 8, regularization=1e-7, ridge=0.0))
    assert problem.loss(tiny.coef) == pytest.approx(best, rel=1e-4)


def test_large_ridge_and_lambda_is_split_conformal_without_the_extra_row() -> None:
    problem = make_problem(0, 200, 3, regularization=1e4, ridge=1e8)
    solution = solvers.solve(problem)
    quantile = np.sort(problem.scores)[[178, 179, 180]]
    assert quantile[0] <= solution.coef[0] <= quantile[2]
    np.testing.assert_allclose(solution.coef[1:], 0.0, atol=1e-5)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("strength", [0.05, 0.5])
def test_in_sample_coverage_weighted_by_the_regularized_ratio_is_nominal(seed: int, strength: float) -> None:
    problem = make_problem(seed, 300, 5, regularization=strength, ridge=0.1)
    solution = solvers.solve(problem, tol=1e-9)
    h = problem.features @ solution.coef
    ratio, ties = solution.beta * h, np.abs(problem.scores - h) < 1e-4
    inside = ratio @ (problem.scores < h - 1e-4)
    assert inside - np.abs(ratio[ties]).sum() <= 0.9 * ratio.sum() <= inside + np.abs(ratio[ties]).sum()
    # exactly so with the dual values as the shares of the interpolated rows
    assert solution.multipliers @ ratio == pytest.approx(0.0, abs=1e-4 * np.abs(ratio).sum())
    assert ties.sum() <= 6


@pytest.mark.parametrize("strength", [0.05, 1.0])
def test_no_shift_and_half_normal_scores_give_the_normal_quantile(strength: float) -> None:
    rng = np.random.default_rng(0)
    X, scores = rng.normal(size=(2000, 3)), np.abs(rng.normal(size=2000))
    moments = Moments.of(X)
    problem = Problem(
        np.c_[np.ones(2000), X],
        scores,
        moments.augmented_second(0.1),
        moments.augmented_mean(),
        0.9,
        strength,
    )
    h = problem.features @ solvers.solve(problem).coef
    assert abs(h.mean() - stats.norm.ppf(0.95)) < 0.1


# Theorems: equivariances


@pytest.fixture(scope="module")
def base() -> tuple[Problem, solvers.Solution]:
    problem = make_problem(7, 150, 4, regularization=0.2, ridge=0.0)
    return problem, solvers.solve(problem, tol=1e-9)


def test_linear_maps_of_the_features(base: tuple[Problem, solvers.Solution]) -> None:
    problem, solution = base
    mixing = np.eye(5) + 0.3 * np.random.default_rng(0).normal(size=(5, 5))
    mapped = replace(
        problem,
        features=problem.features @ mixing,
        second_moment=mixing.T @ problem.second_moment @ mixing,
        target_mean=problem.target_mean @ mixing,
    )
    other = solvers.solve(mapped, tol=1e-9)
    assert other.objective == pytest.approx(solution.objective, rel=1e-8)
    np.testing.assert_allclose(mixing @ other.coef, solution.coef, rtol=1e-4, atol=1e-5)


def test_row_order_and_doubled_rows(base: tuple[Problem, solvers.Solution]) -> None:
    problem, solution = base
    doubled = replace(problem, features=np.tile(problem.features, (2, 1)), scores=np.tile(problem.scores, 2))
    for same in (permuted(problem), doubled):
        assert solvers.solve(same, tol=1e-9).objective == pytest.approx(solution.objective, rel=1e-8)


@pytest.mark.parametrize("k", [1e-6, 37.0, 1e6])
def test_score_units(base: tuple[Problem, solvers.Solution], k: float) -> None:
    problem, solution = base
    scaled = replace(problem, scores=k * problem.scores, regularization=k * problem.regularization)
    other = solvers.solve(scaled, tol=1e-9)
    assert other.objective == pytest.approx(k * solution.objective, rel=1e-8)
    np.testing.assert_allclose(other.coef, k * solution.coef, rtol=1e-4, atol=1e-5 * k)


def test_one_dimension_by_brute_force() -> None:
    # φ = 1 only: F(γ, β) = loss(γ) + λ(β²γ² - 2βγ); at the best β it is loss(γ) - λ
    scores = np.array([0.3, 1.0, 2.0, 5.0, 0.7])
    problem = Problem(np.ones((5, 1)), scores, np.eye(1), np.ones(1), 0.8, 0.4)
    best = min(pinball(scores - g, 0.8) for g in np.linspace(0.01, 6, 6000)) - 0.4
    assert solvers.solve(problem).objective == pytest.approx(best, abs=1e-3)


def test_scores_that_are_all_zero_need_no_threshold() -> None:
    problem = replace(make_problem(0, 30, 2, regularization=0.1, ridge=0.1), scores=np.zeros(30))
    solution = solvers.solve(problem)
    assert solution.converged
    np.testing.assert_array_equal(solution.coef, 0.0)


def test_a_huge_lambda_certifies_no_gap_that_matters_to_the_loss() -> None:
    problem = make_problem(0, 1000, 100, regularization=1e16, ridge=0.1)
    strengths = [1e6, 1e13, 1e16]
    for point in [solvers.solve(problem), *solvers.path(problem, strengths)]:
        assert not point.converged or point.gap <= 1e-6 * problem.loss(point.coef)
    # the solver's own test is relative to F
    own = plugins.load("solvers", "newton").solve(problem)
    assert own.converged
    assert own.gap > 1e-6 * problem.loss(own.coef)
    assert not solvers.solve(problem).converged


def test_a_loss_of_zero_is_certified_up_to_rounding() -> None:
    """More features than rows and hardly a regularizer: every score is met."""
    problem = make_problem(0, 17, 19, regularization=1e-7, ridge=1e-4)
    points = [solvers.solve(problem), *solvers.path(problem, [1e-9, 1e-5, 0.0])]
    assert all(point.converged for point in points)
    assert max(point.gap for point in points) <= 1e-12 * problem.scores.max()
    # the solver's own test is relative to the loss
    assert not plugins.load("solvers", "newton").solve(problem).converged


def test_unknown_solvers_and_tolerances_are_refused() -> None:
    problem = make_problem(0, 30, 2, regularization=0.1, ridge=0.1)
    with pytest.raises(UsageError, match="did you mean 'newton'"):
        solvers.solve(problem, solver="newtn")
    with pytest.raises(UsageError, match="tol"):
        solvers.solve(problem, tol=0.0)


@settings(max_examples=15, deadline=None)
@given(problems(most_rows=80, most_features=8), st.sampled_from([1e-2, 1e-4]))
def test_interior_and_newton_agree_at_the_same_beta(problem: Problem, tol: float) -> None:
    solution = solvers.solve(problem, tol=tol)
    interior = plugins.load("solvers", "interior")
    point = interior.Convex(problem.whiten(), problem.regularization, 1e-8)(solution.beta)
    value = problem.objective(problem.whiten().back @ point.v, solution.beta)
    assert -1e-9 <= solution.objective - value + 1e-8 * abs(value) <= solution.gap + 2e-8 * (1 + abs(value))


def test_a_large_path_comes_back_from_a_start_with_no_pull() -> None:
    """At λ = 1e-4 it starts where β is 0; the near rows alone know no way back, all rows do."""
    rng = np.random.default_rng(36)
    X, target = rng.normal(size=(1000, 100)), rng.normal(size=(1000, 100)) + 0.3 * rng.normal(size=100)
    scores = np.abs(rng.normal(size=1000))
    features = np.hstack([np.ones((1000, 1)), X])
    second = features.T @ features / 1000 + 0.01 * np.diag([0.0] + [1.0] * 100)
    mean = np.append(1.0, target.mean(axis=0))
    problem = Problem(features, scores / np.quantile(scores, 0.05), second, mean, 0.05, 1.0)
    found = plugins.load("solvers", "newton").path(problem, [1.0, 0.01, 1e-4, 1e-5])
    assert [solution.converged for solution in found] == [True] * 4
    assert all(solution.beta > 0.0 for solution in found)


def test_without_cvxpy_the_reference_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cvxpy", None)
    with pytest.raises(UsageError, match=r"needs cvxpy with Clarabel.*pip install 'lrqr\[reference\]'"):
        solvers.solve(random_problem(0), solver="reference")
    assert solvers.solve(random_problem(0)).converged


@pytest.mark.parametrize("solver", ["newton", "interior"])
def test_without_a_constant_nothing_above_the_quantile_regression_is_called_converged(solver: str) -> None:
    """β = 0 is allowed too: F(γ, 0) is the loss, and its minimum the quantile regression (λ = 0)."""
    at_zero = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n, d = int(rng.integers(20, 120)), int(rng.integers(1, 6))
        X, target = (rng.normal(size=(m, d)) + rng.normal(size=d) for m in (n, 80))
        problem = Problem(
            features=X,
            scores=np.abs(rng.normal(size=n)),
            second_moment=X.T @ X / n + 0.1 * np.eye(d),
            target_mean=target.mean(axis=0),
            coverage=float(rng.choice([0.5, 0.8, 0.9])),
            regularization=float(10.0 ** rng.uniform(-2.0, 1.0)),
        )
        solution = solvers.solve(problem, solver=solver)
        loss = solvers.solve(problem.with_regularization(0.0)).objective
        assert solution.objective <= loss * (1.0 + 1e-5)
        assert solution.objective == pytest.approx(problem.objective(solution.coef, solution.beta))
        assert solution.regularization == problem.regularization
        at_zero += solution.beta == 0.0
    assert 0 < at_zero < 60


@pytest.mark.parametrize("case", ["duplicate", "constant", "huge", "wide", "equal"])
def test_hard_inputs_end_in_certified_thresholds(tmp_path: Path, case: str) -> None:
    rng = np.random.default_rng(25)
    given = (*NUMBERS, "--feature-map", "given", "-o")
    source, target = table(80, 0.0, 1), table(80, 0.5, 2)
    if case == "wide":
        noise = [pd.DataFrame(rng.normal(size=(80, 100))).add_prefix("x") for _ in range(2)]
        source, target = (pd.concat(pair, axis=1) for pair in zip((source, target), noise, strict=True))
    for frame in (source, target):
        if case == "duplicate":
            frame["a2"] = frame["a"]
        if case == "constant":
            frame["one"] = 1.0
        if case == "huge":
            frame["a"] *= 1e8
        if case == "equal":
            frame["y"] = frame["yhat"] + 1.0
    write(tmp_path, source=source, target=target.drop(columns=["y", "yhat"]), test=target)
    ran = lrqr("fit", tmp_path / "source.csv", tmp_path / "target.csv", *given, tmp_path / "model")
    assert ran.code == 0, ran.err
    fit = lrqr("inspect", tmp_path / "model", "--format", "json").json["fit"]
    assert fit["converged"]
    assert fit["gap"] < 1e-5
    thresholds = predicted(tmp_path, rows="test")["threshold"]
    assert np.isfinite(thresholds).all()
    if case in {"duplicate", "constant", "huge"}:
        # a copy, a constant, or another unit changes nothing
        write(
            tmp_path, source=table(80, 0.0, 1), target=table(80, 0.5, 2)[["a", "b"]], plain=table(80, 0.5, 2)
        )
        assert (
            lrqr("fit", tmp_path / "source.csv", tmp_path / "target.csv", *given, tmp_path / "m2").code == 0
        )
        np.testing.assert_allclose(
            thresholds, predicted(tmp_path, rows="plain", model="m2")["threshold"], rtol=1e-5
        )
