"""Primal-dual interior point for the convex part: quantile regression (λ = 0) and the safe way at fixed β.

A Frisch-Newton method with Mehrotra's corrector (Portnoy & Koenker 1997): the dual values stay inside their
box, every step solves one system of the size of the features. Its cost hardly depends on the data, so it is
the fallback where Newton's active sets cycle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import linalg

from lrqr.problem import Problem, Solution, pinball

if TYPE_CHECKING:
    from lrqr.arrays import FloatArray

_MAX_STEPS = 60
_TO_BOUNDARY = 0.9995


def solve(problem: Problem, *, tol: float = 1e-6) -> Solution:
    """Solve for the problem's own λ; for λ > 0 by a search over β."""
    whitened = problem.whiten()
    v, u, steps = _convex(
        whitened.psi, whitened.scores, 0.0, np.zeros_like(whitened.pull), whitened.coverage, tol
    )
    coef = whitened.back @ v
    loss = pinball(whitened.scores - whitened.psi @ v, whitened.coverage)
    residual = np.linalg.norm(u @ whitened.psi) * np.linalg.norm(v) / len(u)
    gap = max(loss - float(u @ whitened.scores) / len(u), 0.0) + float(residual)
    beta = problem.best_beta(coef)
    return Solution(
        coef=coef,
        beta=beta,
        objective=problem.objective(coef, beta),
        gap=gap,
        iterations=steps,
        converged=gap <= tol * loss + 1e-300,
        branch="zero",
        regularization=problem.regularization,
        multipliers=u,
    )


def _convex(
    psi: FloatArray, scores: FloatArray, stiffness: float, linear: FloatArray, coverage: float, tol: float
) -> tuple[FloatArray, FloatArray, int]:
    """Minimize Σρ(S - ψ·v) + stiffness/2 ‖v‖² - linear·v; return v, the dual values and the steps taken."""
    n, k = psi.shape
    high, low = coverage, coverage - 1.0
    v = np.linalg.lstsq(psi.T @ psi + (1e-12 * n) * np.eye(k), psi.T @ scores, rcond=None)[0]
    residuals = scores - psi @ v
    spread = max(float(np.abs(residuals).mean()), 1e-10 * float(np.abs(scores).max(initial=0.0)), 1e-300)
    above, below = np.maximum(residuals, 0.0) + spread, np.maximum(-residuals, 0.0) + spread
    u = np.full(n, coverage - 0.5)
    steps = 0
    for steps in range(1, _MAX_STEPS + 1):  # noqa: B007
        room_up, room_down = high - u, u - low
        products = above * room_up + below * room_down
        mu = float(products.sum()) / (2 * n)
        slope = stiffness * v - linear - u @ psi
        primal = scores - psi @ v - above + below
        loss = float(np.maximum(high * residuals, low * residuals).sum())
        if (
            float(products.sum()) <= 0.1 * tol * loss
            and np.linalg.norm(slope) * np.linalg.norm(v) <= 0.1 * tol * loss
        ):
            break
        if loss <= 1e-14 * float(np.abs(scores).sum()):
            break
        weight = above / room_up + below / room_down
        normal = (psi / weight[:, None]).T @ psi
        normal.flat[:: k + 1] += stiffness + 1e-14 * np.trace(normal) / k
        factor = linalg.cho_factor(normal, check_finite=False)

        def newton(up: FloatArray, down: FloatArray) -> tuple[FloatArray, ...]:
            # up, down: wanted changes of the two complementarity products
            shift = primal - up / room_up + down / room_down  # noqa: B023 - called in this iteration only
            dv = linalg.cho_solve(factor, (shift / weight) @ psi - slope, check_finite=False)  # noqa: B023
            du = (shift - psi @ dv) / weight  # noqa: B023
            return dv, du, (up + above * du) / room_up, (down - below * du) / room_down  # noqa: B023

        dv, du, d_above, d_below = newton(-above * room_up, -below * room_down)
        primal_step, dual_step = _steps(above, below, d_above, d_below, room_up, room_down, du)
        after = (above + primal_step * d_above) @ (room_up - dual_step * du) + (
            below + primal_step * d_below
        ) @ (room_down + dual_step * du)
        center = mu * (float(after) / (2 * n * mu)) ** 3
        dv, du, d_above, d_below = newton(
            center - above * room_up + d_above * du, center - below * room_down - d_below * du
        )
        primal_step, dual_step = _steps(above, below, d_above, d_below, room_up, room_down, du)
        if stiffness > 0.0:
            primal_step = dual_step = min(primal_step, dual_step)
        v = v + primal_step * dv
        above, below = above + primal_step * d_above, below + primal_step * d_below
        u = u + dual_step * du
        residuals = scores - psi @ v
    return v, u, steps


def _steps(
    above: FloatArray,
    below: FloatArray,
    d_above: FloatArray,
    d_below: FloatArray,
    room_up: FloatArray,
    room_down: FloatArray,
    du: FloatArray,
) -> tuple[float, float]:
    """Longest primal and dual steps that stay inside, shortened a little."""
    primal = max(float((-d_above / above).max()), float((-d_below / below).max()), _TO_BOUNDARY)
    dual = max(float((du / room_up).max()), float((-du / room_down).max()), _TO_BOUNDARY)
    return _TO_BOUNDARY / primal, _TO_BOUNDARY / dual
