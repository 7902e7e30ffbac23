"""Solvers of the LR-QR problem, one file each, behind one function."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lrqr import registry
from lrqr.errors import UsageError
from lrqr.problem import Problem, Solution

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Solution", "path", "solve"]


def solve(problem: Problem, *, solver: str = "newton", tol: float = 1e-6) -> Solution:
    """Minimize F(γ, β), eq. (2) of docs/method.md, with a certificate.

    Parameters
    ----------
    problem : Problem
    solver : str
        A file of this package: "newton" (ours), "interior", "reference" (cvxpy, slow).
    tol : float
        Largest duality gap, relative to the pinball loss.
    """
    return path(problem, [problem.regularization], solver=solver, tol=tol)[0]


def path(
    problem: Problem, regularizations: Sequence[float], *, solver: str = "newton", tol: float = 1e-6
) -> list[Solution]:
    """Minimize F for several λ; little dearer than one. Solutions come back in the order asked for."""
    if not tol > 0.0:
        raise UsageError(f"tol must be positive, got {tol}")
    module = registry.load("solvers", solver)
    if not hasattr(module, "path"):
        return [module.solve(problem.with_regularization(value), tol=tol) for value in regularizations]
    zero = [
        registry.load("solvers", "interior").solve(problem.with_regularization(0.0), tol=tol)
        for _ in range(1)
        if 0.0 in regularizations
    ]
    positive = [value for value in regularizations if value > 0.0]
    solved = iter(module.path(problem, positive, tol=tol) if positive else [])
    return [next(solved) if value > 0.0 else zero[0] for value in regularizations]
