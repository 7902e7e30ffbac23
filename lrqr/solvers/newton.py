"""Safeguarded Newton steps on the box dual's augmented Lagrangian, β eliminated: follows a path of λ.

The method is section 4 of docs/method.md. In whitened coordinates, with β = c·v/‖v‖² put in, LR-QR is

    G(v) = mean ρ(S - ψ·v) - λ (c·v)²/‖v‖²,

pinball loss plus a function of the direction of v alone. The pinball part is smoothed around the dual
values a of the last round (eq. 14), u = clip(a + r/h); only rows with u inside the box enter the Hessian.
The duality gap of the smoothed point comes for free in every step (eq. 16) and decides when to stop.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import linalg

from lrqr.problem import Problem, Solution, Whitened, pinball

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lrqr.arrays import BoolArray, FloatArray

# Width of the first smoothing, of later ones on a path, and their smallest value, times mean |score|.
_FIRST_WIDTH = 0.3
_WARM_WIDTH = 0.1
_SMALLEST_WIDTH = 1e-9
_SHRINK = 0.2
# A round ends when the stationarity part of the gap is below this share of the complementarity part.
_INNER = 0.3
_MAX_STEPS = 300


def solve(problem: Problem, *, tol: float = 1e-6) -> Solution:
    """Solve for the problem's own λ > 0."""
    return path(problem, [problem.regularization], tol=tol)[0]


def path(problem: Problem, regularizations: Sequence[float], *, tol: float = 1e-6) -> list[Solution]:
    """Solve for several λ > 0, one whitening and warm starts from large λ to small.

    Parameters
    ----------
    problem : Problem
        Its own λ does not matter.
    regularizations : sequence of float
        Any order; the solutions come back in the same order.
    tol : float
        Largest gap, relative to the pinball loss.
    """
    whitened = problem.with_regularization(1.0).whiten()
    if not whitened.scores.any():
        return [_nothing(problem.with_regularization(value)) for value in regularizations]
    state = start(whitened)
    solutions: dict[float, Solution] = {}
    for strength in sorted(set(regularizations), reverse=True):
        state = _minimize(whitened, strength, state, tol)
        solutions[strength] = _finish(problem.with_regularization(strength), whitened, state, tol)
    return [solutions[strength] for strength in regularizations]


@dataclass(frozen=True)
class State:
    """Where the path stands: the point, the dual values, the smoothing width to go on with."""

    v: FloatArray
    dual: FloatArray
    width: float
    gap: float = np.inf
    iterations: int = 0


def _allowed(loss: float, pull: float, tol: float) -> float:
    """Gap to reach, relative to the loss, or to |F| where the regularizer nearly cancels the loss."""
    return tol * min(loss, max(abs(loss - pull), 1e-3 * loss))


def start(whitened: Whitened) -> State:
    """Return the closed form at λ = ∞: v = t c, t a weighted quantile of S/r̂, eq. (11)."""
    size = float(np.abs(whitened.scores).mean())
    best = best_multiple(whitened.scores, whitened.psi @ whitened.pull, whitened.coverage)
    v = max(best, 1e-8 * size) * whitened.pull
    residuals = whitened.scores - whitened.psi @ v
    dual = np.where(residuals > 0, whitened.coverage, whitened.coverage - 1.0)
    return State(v=v, dual=dual, width=_FIRST_WIDTH * size)


def best_multiple(scores: FloatArray, direction: FloatArray, coverage: float) -> float:
    """Return the t that minimizes Σρ(S - t q): a weighted quantile of S/q with weights |q|, eq. (11)."""
    used = np.abs(direction) > 1e-12 * np.abs(direction).max(initial=0.0)
    if not used.any():
        return 0.0
    breaks, weights = scores[used] / direction[used], np.abs(direction[used])
    order = np.argsort(breaks, kind="stable")
    slopes = np.cumsum(weights[order]) - np.where(direction[used] > 0, coverage, 1.0 - coverage) @ weights
    return float(breaks[order][min(int(np.searchsorted(slopes, 0.0)), len(order) - 1)])


def _minimize(whitened: Whitened, strength: float, state: State, tol: float) -> State:
    psi, scores, pull, high = whitened.psi, whitened.scores, whitened.pull, whitened.coverage
    low = high - 1.0
    n = len(scores)
    smallest = _SMALLEST_WIDTH * float(np.abs(scores).mean())
    v, dual, width = state.v, state.dual, state.width
    residuals = scores - psi @ v
    steps = 0
    while True:
        length, overlap = float(v @ v), float(pull @ v)
        beta = overlap / length
        stiffness = 2.0 * strength * beta * beta
        while True:
            shifted = dual + residuals / width
            u = np.clip(shifted, low, high)
            slope = 2.0 * strength * beta * (beta * v - pull) - u @ psi / n
            loss = np.maximum(high * residuals, low * residuals)
            complementarity = float((loss - u * residuals).mean())
            stationarity = float(slope @ slope) / (2.0 * stiffness) if stiffness > 0 else np.inf
            gap = complementarity + stationarity
            allowed = _allowed(float(loss.mean()), strength * beta * overlap, tol)
            accepted = gap <= allowed
            if accepted or steps >= _MAX_STEPS:
                break
            if stationarity > _INNER * complementarity or width <= smallest:
                break
            dual, width = u, max(width * _SHRINK, smallest)
        direction = _direction(
            psi, (shifted > low) & (shifted < high), n * width, stiffness, strength, v, pull, slope
        )
        if steps >= _MAX_STEPS:
            return State(v, u, max(state.width / 3, width), gap, steps)
        if accepted:
            # The gap certifies v for this β; would another β do better? Along the Newton direction its
            # decrement tells; along v, where smoothing sees little curvature, the exact minimum does.
            thresholds = scores - residuals
            longer = best_multiple(scores, thresholds, high)
            gain = float(loss.mean()) - pinball(scores - longer * thresholds, high)
            if gain > 0.1 * allowed and longer > 0.0:
                v, residuals = longer * v, scores - longer * thresholds
                dual, width = u, max(width * _SHRINK, smallest)
                steps += 1
                continue
            if -0.5 * float(slope @ direction) <= 0.1 * allowed:
                return State(v, u, max(state.width / 3, width), gap, steps)
        along = psi @ direction
        step = _line_search(
            whitened, strength, v, direction, dual, residuals, along, width, float(slope @ direction)
        )
        v = v + step * direction
        residuals = residuals - step * along
        steps += 1


def _direction(
    psi: FloatArray,
    active: BoolArray,
    smoothing: float,
    stiffness: float,
    strength: float,
    v: FloatArray,
    pull: FloatArray,
    slope: FloatArray,
) -> FloatArray:
    """Newton direction of eq. (15): (κI + Ψ_B'Ψ_B/(nh) - 2λ zz'/‖v‖²) d = -∇, made a descent direction."""
    length = float(v @ v)
    bend = pull - 2.0 * float(pull @ v) / length * v
    right = np.stack([-slope, bend], axis=1)
    rows = psi[active]
    size, k = rows.shape
    if size < k:
        kernel = rows @ rows.T
        kernel.flat[:: size + 1] += smoothing * stiffness
        inner = (
            linalg.solve(kernel, rows @ right, assume_a="pos", check_finite=False) if size else rows @ right
        )
        solved = (right - rows.T @ inner) / stiffness
    else:
        hessian = rows.T @ rows / smoothing
        hessian.flat[:: k + 1] += stiffness
        solved = linalg.solve(hessian, right, assume_a="pos", check_finite=False)
    direction, bent = solved[:, 0], solved[:, 1]
    curvature = 1.0 - 2.0 * strength / length * float(bend @ bent)
    if curvature > 1e-9:
        corrected = direction + bent * (2.0 * strength / length * float(bend @ direction) / curvature)
        if float(slope @ corrected) < 0.0:
            return corrected
    return direction


def _line_search(
    whitened: Whitened,
    strength: float,
    v: FloatArray,
    direction: FloatArray,
    dual: FloatArray,
    residuals: FloatArray,
    along: FloatArray,
    width: float,
    start_slope: float,
) -> float:
    """Step at which the derivative along the direction is well below its start, by bracketed secant."""
    high = whitened.coverage
    low, n = high - 1.0, len(dual)
    length, inner, square = float(v @ v), float(v @ direction), float(direction @ direction)
    overlap, change = float(whitened.pull @ v), float(whitened.pull @ direction)

    def derivative(step: float) -> float:
        beta = (overlap + step * change) / (length + 2.0 * step * inner + step * step * square)
        u = np.clip(dual + (residuals - step * along) / width, low, high)
        return 2.0 * strength * beta * (beta * (inner + step * square) - change) - float(along @ u) / n

    target = 0.5 * abs(start_slope)
    at_one = derivative(1.0)
    if abs(at_one) <= target:
        return 1.0
    step = 1.0
    if at_one < 0.0:
        for _ in range(10):
            slope = derivative(2.0 * step)
            if slope > target:
                break
            step *= 2.0
            if slope >= -target:
                break
        return step
    left, right, left_slope, right_slope = 0.0, 1.0, start_slope, at_one
    for _ in range(15):
        share = min(max(-left_slope / (right_slope - left_slope), 0.1), 0.9)
        step = left + (right - left) * share
        slope = derivative(step)
        if abs(slope) <= target:
            break
        if slope > 0.0:
            right, right_slope = step, slope
        else:
            left, left_slope = step, slope
    return step


def _nothing(problem: Problem) -> Solution:
    """Return the threshold 0 for scores that are all 0; β is then immaterial."""
    n, p = problem.features.shape
    return Solution(np.zeros(p), 0.0, 0.0, 0.0, 0, True, "infinity", problem.regularization, np.zeros(n))  # noqa: FBT003


def _finish(problem: Problem, whitened: Whitened, state: State, tol: float) -> Solution:
    coef = whitened.back @ state.v
    beta = float(whitened.pull @ state.v) / float(state.v @ state.v)
    loss = pinball(whitened.scores - whitened.psi @ state.v, whitened.coverage)
    return Solution(
        coef=coef,
        beta=beta,
        objective=problem.objective(coef, beta),
        gap=max(state.gap, 0.0),
        iterations=state.iterations,
        converged=state.gap <= max(tol * loss, 1e-300),
        branch="infinity",
        regularization=problem.regularization,
        multipliers=state.dual,
    )
