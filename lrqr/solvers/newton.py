"""Newton steps on the augmented Lagrangian of the box dual, β eliminated: follows a path of λ.

The method is section 4 of docs/method.md. In whitened coordinates, with β = max(c·v, 0)/‖v‖² put in, LR-QR is

    G(v) = mean ρ(S - ψ·v) - λ max(c·v, 0)²/‖v‖²,

pinball loss plus a function of the direction of v alone. The pinball part is smoothed around the dual
values a of the last round, u = clip(a + r/h), eq. (17); only rows near or inside the box enter the Hessian.
The duality gap of the smoothed point costs nothing extra, eq. (19), and decides when to stop.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from lrqr.problem import Problem, Solution, Whitened, best_multiple
from lrqr.steps import line_search, regularized_solve

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lrqr.arrays import FloatArray

# Widths h of the smoothing, times mean |score|: the largest, the smallest at the start of a λ, and of all.
_WIDEST, _NARROW, _NARROWEST = 0.3, 1e-3, 1e-9
# The first width of a λ is this multiple of how far (the first so many) residuals moved for the λ before.
_MOVED, _SEEN = 3.0, 300
# A round ends when the stationarity part of the gap is below this share of the complementarity part. The
# width then shrinks: fast after a round of few Newton steps, slowly after a long one.
_INNER, _FEW, _FAST, _SLOW = 0.3, 2, 0.4, 0.7
# Rows enter the Hessian already when u would be inside the box at this multiple of the width: it keeps the
# rows that the last round held and the narrower width lets go for a moment.
_BELT, _LONG = 2.5, 8
_MAX_STEPS = 300
# The gap at the returned β is brought to this share of the tolerance: the rest is for β itself.
_SHARP = 0.2
# Stride of λ on the way to a small one, and the share of tol (or rather multiple) that will do there.
_STRIDE, _ROUGH = 0.1, 1e4
# No gap below this share of the scores' size, or of |F|, is asked for.
_ROUNDING = 1e-12
# Multiples of the solution's β at which nothing better may be found.
_RIVALS = (1.0 / 8.0, 0.4, 2.5, 8.0)
# Small problems have more local minima, and can afford more rivals.
_SMALL, _MORE = 20_000, tuple(8.0 ** (power / 20.0) for power in range(-20, 21) if power)


def solve(problem: Problem, *, tol: float = 1e-6) -> Solution:
    """Solve for the problem's own λ > 0, and make sure that no other β on a coarse grid does better."""
    return path(problem, [problem.regularization], tol=tol, check=True)[0]


def path(
    problem: Problem, regularizations: Sequence[float], *, tol: float = 1e-6, check: bool = False
) -> list[Solution]:
    """Solve for several λ > 0: one whitening, warm starts from large λ to small.

    Parameters
    ----------
    problem : Problem
        Its own λ does not matter.
    regularizations : sequence of float
        Any order; the solutions come back in the same order.
    tol : float
        Largest gap, relative to the pinball loss.
    check : bool
        Look for a better β at every λ.
    """
    whitened = problem.with_regularization(1.0).whiten()
    if not whitened.scores.any():
        # The threshold 0 loses nothing, whatever β.
        nothing = _Point(np.zeros_like(whitened.pull), np.zeros(len(whitened.scores)), gap=0.0, done=True)
        return [_solution(problem, value, whitened, nothing) for value in regularizations]
    descent = _Descent(whitened, tol)
    point = descent.start()
    before, solved = (point, np.inf), (point, np.inf)
    width = _WIDEST * descent.size
    solutions: dict[float, Solution] = {}
    for strength in sorted(set(regularizations), reverse=True):
        guess = _extrapolate(before, solved, strength, whitened)
        before = solved
        guess = descent.approach(solved[1], strength, guess)
        point = descent.run(strength, guess, width)
        point = _defend(descent, point) if check else point
        moved = float(np.abs(whitened.psi[:_SEEN] @ (point.v - guess.v)).mean())
        width = min(max(_MOVED * moved, _NARROW * descent.size), _WIDEST * descent.size)
        solved = (point, strength)
        solutions[strength] = _solution(problem, strength, whitened, point)
    return [solutions[strength] for strength in regularizations]


@dataclass(frozen=True)
class _Point:
    """A point v, the dual values that certify it, and what is known about it."""

    v: FloatArray
    dual: FloatArray
    beta: float = 0.0
    value: float = np.inf
    gap: float = np.inf
    steps: int = 0
    strength: float = 0.0
    free: bool = True
    done: bool = False
    branch: str = "infinity"


def _extrapolate(
    before: tuple[_Point, float], solved: tuple[_Point, float], strength: float, whitened: Whitened
) -> _Point:
    """Guess the next point, linearly in 1/λ from the last two, no further than their distance."""
    (old, old_strength), (new, new_strength) = before, solved
    if not np.isfinite(new_strength):
        return new
    old_inverse = 1.0 / old_strength if np.isfinite(old_strength) else 0.0
    share = min((1.0 / strength - 1.0 / new_strength) / (1.0 / new_strength - old_inverse), 1.0)
    v = new.v + share * (new.v - old.v)
    dual = np.clip(new.dual + share * (new.dual - old.dual), whitened.coverage - 1.0, whitened.coverage)
    return _Point(v, dual) if float(whitened.pull @ v) > 0.0 else new


def _defend(descent: _Descent, point: _Point) -> _Point:
    """Try other β: each is dismissed by a dual bound above the value in hand, or wins and is followed."""
    if point.beta <= 0.0 or not point.done:
        return point
    steps, wide, usual = point.steps, _WIDEST * descent.size, 1.0 / descent.size
    factors = _MORE if descent.whitened.psi.size <= _SMALL else _RIVALS
    rivals = [factor * point.beta for factor in factors]
    rivals += [] if rivals[0] <= usual <= rivals[-1] else [usual]
    for beta in rivals:
        start = _Point(point.v * (point.beta / beta), point.dual)
        other = descent.run(point.strength, start, wide, beta=beta, rival=point.value)
        steps += other.steps
        if other.value < point.value:
            better = descent.run(point.strength, other, wide)
            steps += better.steps
            if better.done and better.value < point.value:
                point = replace(better, branch="grid")
    return replace(point, steps=steps)


class _Descent:
    """Minimize G for one λ at a time; all that does not depend on λ is computed once."""

    def __init__(self, whitened: Whitened, tol: float) -> None:
        self.whitened = whitened
        self.size = float(np.abs(whitened.scores).mean())
        self._tol = tol
        self._high, self._low = whitened.coverage, whitened.coverage - 1.0
        self._reach = float(np.einsum("ij,ij->i", whitened.psi, whitened.psi).max())

    def start(self) -> _Point:
        """Return the closed form at λ = ∞: v = t c, t a weighted quantile of S/r̂, eq. (13)."""
        w = self.whitened
        best = best_multiple(w.scores, w.psi @ w.pull, w.coverage)
        v = max(best, 1e-8 * self.size) * w.pull
        return _Point(v, np.where(w.scores > w.psi @ v, self._high, self._low))

    def allowed(self, loss: float, pull: float, sharp: float) -> float:
        """Return the gap to reach, relative to the loss, or to |F| where the regularizer cancels the loss."""
        value = abs(loss - pull)
        relative = sharp * self._tol * min(loss, max(value, 1e-3 * loss))
        return max(relative, _ROUNDING * max(self.size, value))

    def approach(self, reached: float, strength: float, guess: _Point) -> _Point:
        """Step down to a much smaller λ roughly, a power of ten at a time: jumping there loses the way."""
        rough = min(reached, self.size) * _STRIDE
        while strength < rough:
            guess = self.run(rough, guess, _WIDEST * self.size, sharp=_ROUGH)
            rough *= _STRIDE
        return guess

    def run(
        self,
        strength: float,
        start: _Point,
        width: float,
        *,
        beta: float | None = None,
        rival: float = -np.inf,
        sharp: float = _SHARP,
    ) -> _Point:
        """Minimize over v, with β eliminated or held at ``beta``; stop early when ``rival`` is decided.

        With a rival value, stop once the dual bound shows that this β cannot beat it, or the point does.
        """
        psi, scores, pull = self.whitened.psi, self.whitened.scores, self.whitened.pull
        n, high = len(scores), self._high
        narrowest = _NARROWEST * self.size
        v, dual, inside, steps, exact = start.v, start.dual, 0, 0, True
        residuals = scores - psi @ v
        u, mean_u = None, np.zeros(0)
        while True:
            shifted = dual + residuals / width
            u, mean_u = self._clip(shifted, u, mean_u)
            length, overlap = float(v @ v), float(pull @ v)
            b = max(overlap, 0.0) / max(length, 1e-300) if beta is None else beta
            stiffness = 2.0 * strength * b * b
            slope = 2.0 * strength * b * (b * v - pull) - mean_u
            loss = self._loss(residuals)
            complementarity = loss - float(u @ residuals) / n
            stationarity = float(slope @ slope) / (2.0 * stiffness) if stiffness > 0.0 else np.inf
            gap = complementarity + stationarity
            value = loss + strength * b * (b * length - 2.0 * overlap)
            allowed = self.allowed(loss, loss - value, sharp)
            close = gap <= allowed
            point = _Point(v, u, b, value, max(gap, 0.0), steps, strength, beta is None)
            if rival > -np.inf and (value - gap >= rival - allowed or value < rival - allowed):
                return point
            if close and not exact:
                residuals, exact, u = scores - psi @ v, True, None
                continue
            if not close and stationarity <= _INNER * complementarity and width > narrowest:
                dual, width = u, max(width * (_FAST if inside <= _FEW else _SLOW), narrowest)
                inside = 0
                continue
            if steps >= _MAX_STEPS or (close and beta is not None):
                return replace(point, done=close)
            # The belt may hold rows that only slow a long round down: leave it off every other time.
            belt = _BELT if inside < _LONG or inside % 2 else 1.0
            near = dual + residuals / (belt * width)
            direction = self._direction(point, near, width, slope)
            descent = float(slope @ direction)
            if close:
                # The gap certifies v for this β. Would another β do better? Along the Newton direction its
                # decrement tells; along v, where smoothing sees little curvature, the exact minimum does.
                longer = best_multiple(scores, scores - residuals, high)
                scaled = scores - longer * (scores - residuals)
                if longer > 0.0 and loss - self._loss(scaled) > 0.1 * allowed:
                    v, residuals, dual, inside = longer * v, scaled, u, 0
                    width = max(width * _FAST, narrowest)
                    steps += 1
                    continue
                if -0.5 * descent <= 0.1 * allowed:
                    return replace(point, done=True)
            along = psi @ direction
            step = line_search(self._slope_along(point, shifted, width, along, direction), descent)
            v, residuals = v + step * direction, residuals - step * along
            steps, inside, exact = steps + 1, inside + 1, False

    def _clip(
        self, shifted: FloatArray, old: FloatArray | None, mean_old: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return u = clip(shifted) and Ψ'u/n, the latter from the rows that changed where those are few."""
        psi = self.whitened.psi
        n = len(shifted)
        u = np.minimum(np.maximum(shifted, self._low), self._high)
        if old is not None:
            changed = np.flatnonzero(u != old)
            if 4 * len(changed) < n:
                return u, mean_old + (u[changed] - old[changed]) @ psi[changed] / n
        return u, u @ psi / n

    def _loss(self, residuals: FloatArray) -> float:
        """Mean pinball loss; max((1-α)r, -αr) = max(r, 0) - αr."""
        return float(np.maximum(residuals, 0.0).sum() + self._low * residuals.sum()) / len(residuals)

    def _direction(self, point: _Point, near: FloatArray, width: float, slope: FloatArray) -> FloatArray:
        """Newton direction, eq. (18): (κI + Ψ_B'Ψ_B/(nh) - 2λ zz'/‖v‖²) d = -slope, kept a descent direction.

        The rank-one term, there if β is free, goes by Sherman and Morrison. Fewer rows in B than columns:
        the system of the rows (Woodbury), else that of the columns.
        """
        psi, pull, v, beta = self.whitened.psi, self.whitened.pull, point.v, point.beta
        smoothing = len(near) * width
        rows = psi[np.flatnonzero((near > self._low) & (near < self._high))]
        damping = max(2.0 * point.strength * beta * beta, 1e-14 * self._reach / smoothing)
        bend = pull - 2.0 * beta * v
        right = np.stack([-slope, bend], axis=1) if point.free else -slope[:, None]
        solved = regularized_solve(rows, smoothing, damping, right)
        direction = solved[:, 0]
        if point.free:
            weight = 2.0 * point.strength / max(float(v @ v), 1e-300)
            curvature = 1.0 - weight * float(bend @ solved[:, 1])
            if curvature > 1e-9:
                corrected = direction + solved[:, 1] * (weight * float(bend @ direction) / curvature)
                if float(slope @ corrected) < 0.0:
                    return corrected
        # Rounding in an ill-conditioned system may turn the direction uphill.
        return direction if float(slope @ direction) < 0.0 else -slope * (smoothing / self._reach)

    def _slope_along(
        self, point: _Point, shifted: FloatArray, width: float, along: FloatArray, direction: FloatArray
    ) -> Callable[[float], float]:
        """Return the derivative of the smoothed G along a direction, as a function of the step."""
        n, low, high, v = len(along), self._low, self._high, point.v
        length, inner, square = float(v @ v), float(v @ direction), float(direction @ direction)
        overlap, change = float(self.whitened.pull @ v), float(self.whitened.pull @ direction)
        rate = along / width

        def derivative(step: float) -> float:
            stretched = max(length + step * (2.0 * inner + step * square), 1e-300)
            b = max(overlap + step * change, 0.0) / stretched if point.free else point.beta
            u = np.minimum(np.maximum(shifted - step * rate, low), high)
            return 2.0 * point.strength * b * (b * (inner + step * square) - change) - float(along @ u) / n

        return derivative


def _solution(problem: Problem, strength: float, whitened: Whitened, point: _Point) -> Solution:
    coef = whitened.back @ point.v
    return Solution(
        coef=coef,
        beta=point.beta,
        objective=problem.with_regularization(strength).objective(coef, point.beta),
        gap=point.gap,
        iterations=point.steps,
        converged=point.done,
        branch=point.branch,
        regularization=strength,
        multipliers=point.dual,
    )
