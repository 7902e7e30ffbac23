"""Newton's method: along a path of λ from large to small, and a search for a better β of a single fit.

For one λ, `Descent` takes Newton steps on the augmented Lagrangian of the box dual with β eliminated, section
4 of docs/method.md. In whitened coordinates, with β = max(c·v, 0)/‖v‖² put in, LR-QR is

    G(v) = mean ρ(S - ψ·v) - λ max(c·v, 0)²/‖v‖²,

pinball loss plus a function of the direction of v alone. The pinball part is smoothed around the dual
values a of the last round, u = clip(a + r/h), eq. (17); only rows near or inside the box enter the Hessian.
The duality gap of the smoothed point costs nothing extra, eq. (19), and decides when to stop. On large
problems rows far from interpolation are set aside between two looks at all rows.
"""

from collections.abc import Callable, Sequence
from copy import copy
from typing import NamedTuple

import numpy as np
from scipy.linalg import blas, lapack

from lrqr.arrays import FloatArray
from lrqr.solvers.problem import Problem, Solution, Whitened, best_multiple

# Widths h of the smoothing, times mean |score|: the largest at the start of a λ, and the smallest of all.
_WIDEST = 0.3
_NARROWEST = 1e-9
# A round ends when the stationarity part of the gap is below this share of the complementarity part. The
# width then shrinks: fast after a round of few Newton steps, slowly after a long one.
_INNER, _FEW, _FAST, _SLOW = 0.3, 2, 0.4, 0.7
# Rows enter the Hessian already when u would be inside the box at this multiple of the width: it keeps the
# rows that the last round held and the narrower width lets go for a moment.
_BELT, _LONG = 2.5, 8
_MAX_STEPS = 300
# From this size of the matrix on, rows are set aside whose residuals exceed this multiple of the last width,
# if that leaves at most this share. When residuals move by more than a multiple of that limit (without the
# other rows there may be no minimum), all rows are looked at again.
_LARGE, _FAR, _MOST, _ESCAPE = 100_000, 2.0, 0.5, 1.5
# The gap at the returned β is brought to this share of the tolerance: the rest is for β itself.
_SHARP = 0.2
# No gap below this share of the scores' size, or of |F|, is asked for.
_ROUNDING = 1e-12
# The line search stops at this share of the first slope.
_FLAT = 0.2
# The first width of a λ is this multiple of how far the residuals moved for the λ before, and at least this
# multiple of mean |score|. Rows further from interpolation than some such widths are set aside.
_MOVED, _NARROW, _ASIDE = 3.0, 1e-3, 3.0
# Stride of λ on the way to a small one, and the share of tol (or rather multiple) that will do there.
_STRIDE, _ROUGH = 0.1, 1e4
# Multiples of the solution's β at which nothing better may be found.
_RIVALS = (1.0 / 8.0, 0.4, 2.5, 8.0)
# Small problems have more local minima, and can afford more rivals.
_SMALL, _MORE = 20_000, tuple(8.0 ** (power / 20.0) for power in range(-20, 21) if power)


class Point(NamedTuple):
    """A point v, the dual values that certify it, and what is known about it.

    Attributes
    ----------
    v : ndarray of shape (k,)
    center : ndarray of shape (n,)
        Dual values a around which the loss is smoothed.
    residuals : ndarray of shape (n,)
        S - ψ·v.
    dual, mean : ndarray of shape (n,), (k,)
        Dual values u and Ψ'u/n. Where a descent only starts, those of any other point.
    beta, value, gap : float
        β, G, and the gap of (v, u) at this β.
    steps : int
        Linear systems solved.
    strength, width : float
        λ and h.
    done : bool
        Whether the gap met the tolerance and β is stationary.
    branch : str
        As in Solution.
    """

    v: FloatArray
    center: FloatArray
    residuals: FloatArray
    dual: FloatArray
    mean: FloatArray
    beta: float = 0.0
    value: float = np.inf
    gap: float = np.inf
    steps: int = 0
    strength: float = 0.0
    width: float = 0.0
    done: bool = False
    branch: str = "infinity"


class Aside(NamedTuple):
    """What is left of rows set aside, whose dual values u stay at their bounds.

    Attributes
    ----------
    loss, mean : float, ndarray of shape (k,)
        Σ u S / n and Σ u ψ / n over them.
    limit : float
        How far the other residuals may move before all rows must be looked at again.
    """

    loss: float
    mean: FloatArray
    limit: float


class Descent:
    """Minimize G for one λ at a time; all that does not depend on λ is computed once.

    Attributes
    ----------
    whitened : Whitened
    size : float
        Mean |score|.
    aside : Aside
        Nothing, except while rows are set aside.
    """

    def __init__(self, whitened: Whitened, tol: float) -> None:
        self.whitened = whitened
        self.size = float(np.abs(whitened.scores).mean())
        self._tol = tol
        self._high, self._low = whitened.coverage, whitened.coverage - 1.0
        self._reach = float(np.einsum("ij,ij->i", whitened.psi, whitened.psi).max())
        self._count, self.aside = len(whitened.scores), Aside(0.0, np.zeros_like(whitened.pull), np.inf)

    def start(self) -> Point:
        """Return the closed form at λ = ∞: v = t c, t a weighted quantile of S/r̂, eq. (13)."""
        w = self.whitened
        best = best_multiple(w.scores, w.psi @ w.pull, w.coverage)
        v = max(best, 1e-8 * self.size) * w.pull
        return self.at(v, np.where(w.scores > w.psi @ v, self._high, self._low))

    def at(self, v: FloatArray, dual: FloatArray) -> Point:
        """Return the point v with any dual values."""
        w = self.whitened
        return Point(v, dual, w.scores - w.psi @ v, dual, dual @ w.psi / len(dual))

    def run(  # noqa: C901, PLR0915 - one loop over ten numbers; steps of its own would pass all of them around
        self,
        strength: float,
        start: Point,
        width: float,
        *,
        beta: float | None = None,
        rival: float = -np.inf,
        sharp: float = _SHARP,
        reach: float = np.inf,
    ) -> Point:
        """Minimize over v, with β eliminated or held at ``beta``; stop early when ``rival`` is decided.

        With a rival value, stop once the dual bound shows that this β cannot beat it, or the point does.
        Rows whose residuals are beyond ``reach`` are set aside at once, if the problem is large.
        """
        psi, scores, pull = self.whitened.psi, self.whitened.scores, self.whitened.pull
        whole = len(scores) == self._count
        narrowest, splits = _NARROWEST * self.size, whole and psi.size >= _LARGE and beta is None
        v, center, residuals, u, mean_u = start.v, start.center, start.residuals, start.dual, start.mean
        inside, steps, exact, anew = 0, 0, False, False
        while True:
            if splits and reach < np.inf:
                point = Point(v, center, residuals, u, mean_u, strength=strength, width=width)
                found, reach = self._ahead(point, reach, sharp), np.inf
                if found is not None:
                    v, center, residuals, width = found.v, found.center, found.residuals, found.width
                    steps, exact, anew = steps + found.steps, True, True
            shifted = center + residuals / width
            u, mean_u = self._clip(shifted, None if anew else u, mean_u)
            length, overlap = float(v @ v), float(pull @ v)
            b = max(overlap, 0.0) / max(length, 1e-300) if beta is None else beta
            slope = 2.0 * strength * b * (b * v - pull) - mean_u
            loss, complementarity, stationarity = self._parts(v, residuals, u, slope, strength * b * b)
            gap = complementarity + stationarity
            value = loss + strength * b * (b * length - 2.0 * overlap)
            allowed = self._allowed(loss, loss - value, sharp)
            close, anew = gap <= allowed, False
            point = Point(v, center, residuals, u, mean_u, b, value, max(gap, 0.0), steps, strength, width)
            if rival > -np.inf and (value - gap >= rival - allowed or value < rival - allowed):
                return point
            if close and not exact:
                residuals, exact, anew = scores - psi @ v, True, True
                continue
            if not close and stationarity <= _INNER * complementarity and width > narrowest:
                center, reach = u, _FAR * width
                width = max(width * (_FAST if inside <= _FEW else _SLOW), narrowest)
                inside = 0
                continue
            escaped = not whole and float(np.abs(residuals - start.residuals).max()) > self.aside.limit
            if steps >= _MAX_STEPS or escaped or (close and not (whole and beta is None)):
                return point._replace(done=close)
            # The belt may hold rows that only slow a long round down: leave it off every other time.
            belt = _BELT if inside < _LONG or inside % 2 else 1.0
            direction = self._direction(point, center + residuals / (belt * width), slope, free=beta is None)
            descent = float(slope @ direction)
            if close:
                # The gap certifies v for this β. Would another β do better? Along the Newton direction its
                # decrement tells; along v, where smoothing sees little curvature, the exact minimum does.
                longer = best_multiple(scores, scores - residuals, self._high)
                scaled = scores - longer * (scores - residuals)
                if longer > 0.0 and loss - self._loss(scaled) > 0.1 * allowed:
                    v, residuals, center, inside = longer * v, scaled, u, 0
                    steps, width = steps + 1, max(width * _FAST, narrowest)
                    continue
                if -0.5 * descent <= 0.1 * allowed:
                    return point._replace(done=True)
            along = psi @ direction
            step = line_search(
                self._slope_along(point, shifted, along, direction, free=beta is None), descent
            )
            v, residuals = v + step * direction, residuals - step * along
            steps, inside, exact = steps + 1, inside + 1, False

    def _parts(
        self, v: FloatArray, residuals: FloatArray, u: FloatArray, slope: FloatArray, stiffness: float
    ) -> tuple[float, float, float]:
        """Return the loss, and the complementarity and the stationarity part of the gap, eq. (19)."""
        near = self._loss(residuals)
        complementarity = near - float(u @ residuals) / self._count
        stationarity = float(slope @ slope) / (4.0 * stiffness) if stiffness > 0.0 else np.inf
        return near + self.aside.loss - float(self.aside.mean @ v), complementarity, stationarity

    def _ahead(self, point: Point, reach: float, sharp: float) -> Point | None:
        """Minimize over the rows with residuals within ``reach``; None if there is none, or most, or β is 0.

        The point that comes back is lower than ``point``, or ``point`` itself; its residuals are exact.
        """
        w, n = self.whitened, self._count
        bounds = np.where(point.residuals > 0.0, self._high, self._low)
        rows = np.flatnonzero((np.abs(point.residuals) <= reach) | (point.dual != bounds))
        # where β is 0, the rows alone have no gradient that would lead back
        if not 0 < len(rows) <= _MOST * n or float(w.pull @ point.v) <= 0.0:
            return None
        part = copy(self)
        part.whitened = Whitened(w.psi[rows], w.scores[rows], w.pull, w.back, w.coverage)
        part.aside = Aside(
            loss=float(bounds @ w.scores - bounds[rows] @ part.whitened.scores) / n,
            mean=point.mean - point.dual[rows] @ part.whitened.psi / n,
            limit=_ESCAPE * reach,
        )
        start = point._replace(
            center=point.center[rows], residuals=point.residuals[rows], dual=point.dual[rows]
        )
        found = part.run(point.strength, start, point.width, sharp=sharp)
        residuals = w.scores - w.psi @ found.v
        before, after = (
            self._value(v, r, point.strength) for v, r in ((point.v, point.residuals), (found.v, residuals))
        )
        if not after < before:
            return point._replace(residuals=w.scores - w.psi @ point.v, steps=found.steps)
        bounds[rows] = found.center
        # Where a row that was set aside has changed sides, the width must let its dual value follow.
        crossed = np.where(bounds == self._high, -residuals, np.where(bounds == self._low, residuals, 0.0))
        width = max(found.width, float(crossed.max()))
        return found._replace(center=bounds, residuals=residuals, width=width)

    def _value(self, v: FloatArray, residuals: FloatArray, strength: float) -> float:
        """Return G(v), eq. (8)."""
        overlap = max(float(self.whitened.pull @ v), 0.0)
        return self._loss(residuals) - strength * overlap * overlap / max(float(v @ v), 1e-300)

    def _allowed(self, loss: float, pull: float, sharp: float) -> float:
        """Return the gap to reach, relative to the loss, or to |F| where the regularizer cancels the loss."""
        value = abs(loss - pull)
        relative = sharp * self._tol * min(loss, max(value, 1e-3 * loss))
        return max(relative, _ROUNDING * max(self.size, value))

    def _clip(
        self, shifted: FloatArray, old: FloatArray | None, mean_old: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return u = clip(shifted) and Ψ'u/n, the latter from the rows that changed where those are few."""
        psi, n = self.whitened.psi, self._count
        u = np.minimum(np.maximum(shifted, self._low), self._high)
        if old is not None:
            changed = (u != old).nonzero()[0]
            if 4 * len(changed) < len(u):
                return u, mean_old + (u[changed] - old[changed]) @ psi[changed] / n
        return u, u @ psi / n + self.aside.mean

    def _loss(self, residuals: FloatArray) -> float:
        """Mean pinball loss; max((1-α)r, -αr) = max(r, 0) - αr."""
        return float(np.maximum(residuals, 0.0).sum() + self._low * residuals.sum()) / self._count

    def _direction(self, point: Point, near: FloatArray, slope: FloatArray, *, free: bool) -> FloatArray:
        """Newton direction, eq. (18): (κI + Ψ_B'Ψ_B/(nh) - 2λ zz'/‖v‖²) d = -slope, kept a descent direction.

        The rank-one term, there if β is free, goes by Sherman and Morrison. Fewer rows in B than columns:
        the system of the rows (Woodbury), else that of the columns.
        """
        psi, pull, v, beta = self.whitened.psi, self.whitened.pull, point.v, point.beta
        smoothing = self._count * point.width
        rows = psi[((near > self._low) & (near < self._high)).nonzero()]
        damping = max(2.0 * point.strength * beta * beta, 1e-14 * self._reach / smoothing)
        bend = pull - 2.0 * beta * v
        right = np.array([-slope, bend] if free else [-slope]).T
        solved = regularized_solve(rows, smoothing, damping, right)
        direction = solved[:, 0]
        if free:
            weight = 2.0 * point.strength / max(float(v @ v), 1e-300)
            curvature = 1.0 - weight * float(bend @ solved[:, 1])
            if curvature > 1e-9:
                corrected = direction + solved[:, 1] * (weight * float(bend @ direction) / curvature)
                if float(slope @ corrected) < 0.0:
                    return np.asarray(corrected)
        # Rounding in an ill-conditioned system may turn the direction uphill.
        return direction if float(slope @ direction) < 0.0 else -slope * (smoothing / self._reach)

    def _slope_along(
        self, point: Point, shifted: FloatArray, along: FloatArray, direction: FloatArray, *, free: bool
    ) -> Callable[[float], float]:
        """Return the derivative of the smoothed G along a direction, as a function of the step."""
        n, low, high, v = self._count, self._low, self._high, point.v
        length, inner, square = float(v @ v), float(v @ direction), float(direction @ direction)
        overlap, change = float(self.whitened.pull @ v), float(self.whitened.pull @ direction)
        rate, far = along / point.width, float(self.aside.mean @ direction)

        def derivative(step: float) -> float:
            stretched = max(length + step * (2.0 * inner + step * square), 1e-300)
            b = max(overlap + step * change, 0.0) / stretched if free else point.beta
            u = np.minimum(np.maximum(shifted - step * rate, low), high)
            pulled = 2.0 * point.strength * b * (b * (inner + step * square) - change)
            return pulled - float(along @ u) / n - far

        return derivative


def regularized_solve(rows: FloatArray, smoothing: float, damping: float, right: FloatArray) -> FloatArray:
    """Solve (damping I + rows'rows / smoothing) x = right; raise the damping until the factor exists."""
    count, k = rows.shape
    if count == 0:
        return right / damping
    wide = count < k
    reduced = rows @ right if wide else right * smoothing
    for _ in range(8):
        # Lower triangles in LAPACK's own order: half the products, no copies, and the faster factorization.
        system = blas.dsyrk(1.0, rows.T, trans=int(wide), lower=1)
        system.T.flat[:: len(system) + 1] += smoothing * damping
        _, solved, failed = lapack.dposv(system, reduced, lower=1, overwrite_a=1)
        if not failed:
            break
        damping *= 100.0
    return np.asarray((right - rows.T @ solved) / damping if wide else solved, dtype=np.float64)


def line_search(derivative: Callable[[float], float], first: float) -> float:
    """Step at which the slope is well below its start: 1 if it will do, else by bracketed secants."""
    target = _FLAT * abs(first)
    right_slope = derivative(1.0)
    if abs(right_slope) <= target:
        return 1.0
    left, right, left_slope = 0.0, 1.0, first
    for _ in range(10):
        if right_slope >= 0.0:
            break
        left, right, left_slope = right, 2.0 * right, right_slope
        right_slope = derivative(right)
        if abs(right_slope) <= target:
            return right
    if right_slope < 0.0:
        return right
    for _ in range(60):
        share = -left_slope / (right_slope - left_slope)
        step = left + (right - left) * min(max(share, 0.05), 0.95)
        slope = derivative(step)
        if abs(slope) <= target:
            return step
        if slope > 0.0:
            right, right_slope = step, slope
        else:
            left, left_slope = step, slope
    return left


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
    descent = Descent(whitened, tol)
    if not whitened.scores.any():
        # The threshold 0 loses nothing, whatever β.
        nothing = descent.at(np.zeros_like(whitened.pull), np.zeros_like(whitened.scores))
        nothing = nothing._replace(gap=0.0, done=True)
        return _solutions(problem, whitened, [nothing._replace(strength=value) for value in regularizations])
    point = descent.start()
    before, solved = (point, np.inf), (point, np.inf)
    width, reach = _WIDEST * descent.size, np.inf
    points: dict[float, Point] = {}
    for strength in sorted(set(regularizations), reverse=True):
        guess = _extrapolate(before, solved, strength, whitened)
        before = solved
        guess = _approach(descent, solved[1], strength, guess)
        point = descent.run(strength, guess, width, reach=reach)
        point = _defend(descent, point) if check else point
        width = max(_MOVED * float(np.abs(point.residuals - guess.residuals).mean()), _NARROW * descent.size)
        reach = _ASIDE * width if width < _WIDEST * descent.size else np.inf
        width = min(width, _WIDEST * descent.size)
        solved = (point, strength)
        points[strength] = point
    return _solutions(problem, whitened, [points[strength] for strength in regularizations])


def _extrapolate(
    before: tuple[Point, float], solved: tuple[Point, float], strength: float, whitened: Whitened
) -> Point:
    """Guess the next point, linearly in 1/λ from the last two, no further than their distance."""
    (old, old_strength), (new, new_strength) = before, solved
    if not np.isfinite(new_strength):
        return new
    old_inverse = 1.0 / old_strength if np.isfinite(old_strength) else 0.0
    share = min((1.0 / strength - 1.0 / new_strength) / (1.0 / new_strength - old_inverse), 1.0)
    v = new.v + share * (new.v - old.v)
    center = np.clip(new.dual + share * (new.dual - old.dual), whitened.coverage - 1.0, whitened.coverage)
    residuals = new.residuals + share * (new.residuals - old.residuals)
    if float(whitened.pull @ v) > 0.0:
        return new._replace(v=v, center=center, residuals=residuals)
    return new._replace(center=new.dual)


def _approach(descent: Descent, reached: float, strength: float, guess: Point) -> Point:
    """Step down to a much smaller λ roughly, a power of ten at a time: jumping there loses the way."""
    rough = min(reached, descent.size) * _STRIDE
    while strength < rough:
        guess = descent.run(rough, guess, _WIDEST * descent.size, sharp=_ROUGH)
        guess = guess._replace(center=guess.dual)
        rough *= _STRIDE
    return guess


def _defend(descent: Descent, point: Point) -> Point:
    """Try other β: each is dismissed by a dual bound above the value in hand, or wins and is followed."""
    if point.beta <= 0.0 or not point.done:
        return point
    steps, wide, usual = point.steps, _WIDEST * descent.size, 1.0 / descent.size
    factors = _MORE if descent.whitened.psi.size <= _SMALL else _RIVALS
    rivals = [factor * point.beta for factor in factors]
    rivals += [] if rivals[0] <= usual <= rivals[-1] else [usual]
    for beta in rivals:
        scale = point.beta / beta
        moved = descent.whitened.scores * (1.0 - scale) + scale * point.residuals
        start = point._replace(v=scale * point.v, residuals=moved, center=point.dual)
        other = descent.run(point.strength, start, wide, beta=beta, rival=point.value)
        steps += other.steps
        if other.value < point.value:
            better = descent.run(point.strength, other._replace(center=other.dual), wide)
            steps += better.steps
            if better.done and better.value < point.value:
                point = better._replace(branch="grid")
    return point._replace(steps=steps)


def _solutions(problem: Problem, whitened: Whitened, points: Sequence[Point]) -> list[Solution]:
    coefs = np.array([whitened.back @ point.v for point in points])
    objectives = problem.objectives(
        coefs, [point.beta for point in points], [point.strength for point in points]
    )
    return [
        Solution(
            coef=coef,
            beta=point.beta,
            objective=float(objective),
            gap=point.gap,
            iterations=point.steps,
            converged=point.done,
            branch=point.branch,
            regularization=point.strength,
            multipliers=point.dual,
        )
        for coef, objective, point in zip(coefs, objectives, points, strict=True)
    ]
