"""Primal-dual interior point: quantile regression (λ = 0), and the safe way at λ > 0.

A Frisch-Newton method with Mehrotra's corrector (Portnoy & Koenker 1997) for the convex part, section 5 of
docs/method.md: the dual values stay inside their box, and every step solves one system of the size of the
features. Its cost hardly depends on the data, so it takes over where Newton's active sets do not settle.
For λ > 0 an outer search finds the root of the profile's derivative in β.
"""

from typing import NamedTuple

import numpy as np
from scipy import linalg, optimize

from lrqr.arrays import FloatArray
from lrqr.solvers.problem import Problem, Solution, Whitened, best_multiple

_MAX_STEPS = 80
# How far from the start β may be, in powers of e.
_FARTHEST = 20.0
_TO_BOUNDARY = 0.9995
# Share of the allowed gap that one convex solve may leave.
_SHARP = 0.1


def solve(problem: Problem, *, tol: float = 1e-6) -> Solution:
    """Solve for the problem's own λ; for λ > 0 down from λ = ∞ to the nearest stationary β.

    Parameters
    ----------
    problem : Problem
    tol : float
        Largest gap, relative to the pinball loss.
    """
    whitened = problem.whiten()
    convex = Convex(whitened, problem.regularization, tol)
    if problem.regularization == 0.0:
        return _solution(problem, whitened, convex(0.0), 0.0, convex, "zero")
    beta, branch = _stationary_beta(convex)
    return _solution(problem, whitened, convex(beta), beta, convex, branch)


class Iterate(NamedTuple):
    """The best point met: v, the dual values, the gap, and the gap that was wanted."""

    v: FloatArray
    dual: FloatArray
    gap: float
    allowed: float


class Convex:
    """min over v of mean ρ(S - ψ·v) + λ (β²‖v‖² - 2β c·v), for any β."""

    def __init__(self, whitened: Whitened, strength: float, tol: float) -> None:
        self.whitened, self.strength = whitened, strength
        self.steps = 0
        self._tol = tol
        self.size = float(np.abs(whitened.scores).mean())
        self._first = np.asarray(
            np.linalg.lstsq(whitened.psi, whitened.scores, rcond=None)[0], dtype=np.float64
        )

    def __call__(self, beta: float) -> Iterate:  # noqa: PLR0915 - predictor and corrector share all their numbers
        """Minimize at this β."""
        w = self.whitened
        (n, k), high, low = w.psi.shape, w.coverage, w.coverage - 1.0
        stiffness, linear = 2.0 * n * self.strength * beta * beta, 2.0 * n * self.strength * beta * w.pull
        v, u = self._first, np.full(n, w.coverage - 0.5)

        if stiffness > 0.0:
            v = v / max(1.0, beta * float(np.linalg.norm(v)) / max(float(np.linalg.norm(w.pull)), 1e-300))
        residuals = w.scores - w.psi @ v
        floor = max(float(np.abs(residuals).mean()), 1e-3 * self.size, 1e-300)
        above, below = np.maximum(residuals, 0.0) + floor, np.maximum(-residuals, 0.0) + floor
        # Updated beside u: a difference that small would round to 0.
        room_up, room_down = high - u, u - low
        best = Iterate(v, u, np.inf, 0.0)
        for _ in range(_MAX_STEPS):
            slope = stiffness * v - linear - u @ w.psi
            gap, allowed = self._gap(v, u, residuals, slope, stiffness, beta)
            if gap <= best.gap:
                best = Iterate(v, u, gap, allowed)
            if gap <= _SHARP * allowed:
                break
            weight = above / room_up + below / room_down
            normal = (w.psi / weight[:, None]).T @ w.psi
            normal.flat[:: k + 1] += stiffness + 1e-15 * float(np.trace(normal)) / k
            try:
                factor = linalg.cho_factor(normal, check_finite=False)
            except linalg.LinAlgError:
                break
            primal = residuals - above + below
            mu = float(above @ room_up + below @ room_down) / (2 * n)

            # up, down: wanted changes of the two complementarity products
            shift = primal + above - below
            dv, du = _changes(factor, w.psi, shift, weight, slope)
            d_above, d_below = above * (du / room_up - 1.0), -below * (du / room_down + 1.0)
            tau = _step(above, below, d_above, d_below), _step(room_up, room_down, -du, du)
            tau = tau if stiffness == 0.0 else (min(tau), min(tau))
            after = float(
                (above + tau[0] * d_above) @ (room_up - tau[1] * du)
                + (below + tau[0] * d_below) @ (room_down + tau[1] * du)
            )
            center = mu * (after / (2 * n * mu)) ** 3
            up = center - above * room_up + d_above * du
            down = center - below * room_down - d_below * du
            shift = primal - up / room_up + down / room_down
            dv, du = _changes(factor, w.psi, shift, weight, slope)
            d_above, d_below = (up + above * du) / room_up, (down - below * du) / room_down
            tau = _step(above, below, d_above, d_below), _step(room_up, room_down, -du, du)
            tau = tau if stiffness == 0.0 else (min(tau), min(tau))
            if not np.isfinite(dv).all() or max(tau) < 1e-10:
                break
            v, u = v + tau[0] * dv, u + tau[1] * du
            room_up, room_down = room_up - tau[1] * du, room_down + tau[1] * du
            above, below = above + tau[0] * d_above, below + tau[0] * d_below
            residuals = w.scores - w.psi @ v
            self.steps += 1
        return best

    def _gap(
        self,
        v: FloatArray,
        u: FloatArray,
        residuals: FloatArray,
        slope: FloatArray,
        stiffness: float,
        beta: float,
    ) -> tuple[float, float]:
        """Duality gap and the gap to reach. At λ = 0 the gap holds for v within twice its length."""
        w = self.whitened
        n = len(u)
        loss = float(np.maximum(residuals, 0.0).sum() + (w.coverage - 1.0) * residuals.sum()) / n
        complementarity = loss - float(u @ residuals) / n
        square = float(slope @ slope) / n
        stationarity = (
            square / (2.0 * stiffness)
            if stiffness > 0.0
            else 3.0 * float(np.linalg.norm(slope) * np.linalg.norm(v)) / n
        )
        value = loss + self.strength * beta * (beta * float(v @ v) - 2.0 * float(w.pull @ v))
        least = min(loss, max(abs(value), 1e-3 * loss))
        return complementarity + stationarity, max(self._tol * least, 1e-12 * self.size)


def _stationary_beta(convex: Convex) -> tuple[float, str]:
    """Root of p'(β) = 2λ(β‖v‖² - c·v): bracketed from the closed form at λ = ∞, then Brent in log β."""
    w = convex.whitened
    best = best_multiple(w.scores, w.psi @ w.pull, w.coverage)
    start = -float(np.log(max(best, 1e-8 * max(convex.size, 1e-300))))

    def slope(log_beta: float) -> float:
        v = convex(float(np.exp(log_beta))).v
        length = float(np.linalg.norm(v)) or 1.0
        return float(np.exp(log_beta)) * length - float(w.pull @ v) / length

    left = right = start
    if slope(start) >= 0.0:
        while slope(left := left - 1.0) >= 0.0:
            if left < start - _FARTHEST:
                return 0.0, "zero"
        right = left + 1.0
    else:
        while slope(right := right + 1.0) < 0.0:
            if right > start + _FARTHEST:
                return float(np.exp(right)), "infinity"
        left = right - 1.0
    return float(np.exp(optimize.brentq(slope, left, right, xtol=1e-8))), "infinity"


def _changes(
    factor: tuple[FloatArray, bool],
    psi: FloatArray,
    shift: FloatArray,
    weight: FloatArray,
    slope: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Solve the Newton system for the changes of v (k,) and of the dual values (n,)."""
    dv = linalg.cho_solve(factor, (shift / weight) @ psi - slope, check_finite=False)
    return dv, (shift - psi @ dv) / weight


def _step(first: FloatArray, second: FloatArray, d_first: FloatArray, d_second: FloatArray) -> float:
    """Longest step that keeps both positive, shortened a little, at most 1."""
    most = max(float((-d_first / first).max()), float((-d_second / second).max()), _TO_BOUNDARY)
    return _TO_BOUNDARY / most


def _solution(
    problem: Problem, whitened: Whitened, last: Iterate, beta: float, convex: Convex, branch: str
) -> Solution:
    coef = whitened.back @ last.v
    chosen = beta if problem.regularization > 0.0 else max(problem.best_beta(coef), 0.0)
    return Solution(
        coef=coef,
        beta=chosen,
        objective=problem.objective(coef, chosen),
        gap=max(last.gap, 0.0),
        iterations=convex.steps,
        converged=last.gap <= last.allowed,
        branch=branch,
        regularization=problem.regularization,
        multipliers=last.dual,
    )
