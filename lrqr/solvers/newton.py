"""Newton's method along a path of λ, from large to small, and the search for a better β of a single fit.

Each λ is one run of lrqr.solvers.descent; section 4 of docs/method.md.
"""

from collections.abc import Sequence

import numpy as np

from lrqr.solvers.descent import WIDEST, Descent, Point
from lrqr.solvers.problem import Problem, Solution, Whitened

# The first width of a λ is this multiple of how far the residuals moved for the λ before, and at least this
# multiple of mean |score|. Rows further from interpolation than some such widths are set aside.
_MOVED, _NARROW, _ASIDE = 3.0, 1e-3, 3.0
# Stride of λ on the way to a small one, and the share of tol (or rather multiple) that will do there.
_STRIDE, _ROUGH = 0.1, 1e4
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
    descent = Descent(whitened, tol)
    if not whitened.scores.any():
        # The threshold 0 loses nothing, whatever β.
        nothing = descent.at(np.zeros_like(whitened.pull), np.zeros_like(whitened.scores))
        nothing = nothing._replace(gap=0.0, done=True)
        return _solutions(problem, whitened, [nothing._replace(strength=value) for value in regularizations])
    point = descent.start()
    before, solved = (point, np.inf), (point, np.inf)
    width, reach = WIDEST * descent.size, np.inf
    points: dict[float, Point] = {}
    for strength in sorted(set(regularizations), reverse=True):
        guess = _extrapolate(before, solved, strength, whitened)
        before = solved
        guess = _approach(descent, solved[1], strength, guess)
        point = descent.run(strength, guess, width, reach=reach)
        point = _defend(descent, point) if check else point
        width = max(_MOVED * float(np.abs(point.residuals - guess.residuals).mean()), _NARROW * descent.size)
        reach = _ASIDE * width if width < WIDEST * descent.size else np.inf
        width = min(width, WIDEST * descent.size)
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
        guess = descent.run(rough, guess, WIDEST * descent.size, sharp=_ROUGH)
        guess = guess._replace(center=guess.dual)
        rough *= _STRIDE
    return guess


def _defend(descent: Descent, point: Point) -> Point:
    """Try other β: each is dismissed by a dual bound above the value in hand, or wins and is followed."""
    if point.beta <= 0.0 or not point.done:
        return point
    steps, wide, usual = point.steps, WIDEST * descent.size, 1.0 / descent.size
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
