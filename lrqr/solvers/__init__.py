"""Solvers of the LR-QR problem, one file each, behind one function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
    module = _module(solver, tol)
    if problem.regularization == 0.0 and solver == "newton":
        return _interior(problem, tol)
    solution: Solution = module.solve(problem, tol=tol)
    return _rescue(problem, solution, solver, tol)


def path(
    problem: Problem, regularizations: Sequence[float], *, solver: str = "newton", tol: float = 1e-6
) -> list[Solution]:
    """Minimize F for several λ; with "newton" little dearer than one, and without its check of other β.

    Parameters
    ----------
    problem : Problem
        Its own λ does not matter.
    regularizations : sequence of float
        λ >= 0 in any order; the solutions come back in that order.
    solver, tol
        As for ``solve``.
    """
    module = _module(solver, tol)
    if not hasattr(module, "path"):
        return [module.solve(problem.with_regularization(value), tol=tol) for value in regularizations]
    positive = sorted({float(value) for value in regularizations if value != 0.0})
    solutions = dict(zip(positive, module.path(problem, positive, tol=tol), strict=True)) if positive else {}
    solutions = {
        value: _rescue(problem.with_regularization(value), solution, solver, tol)
        for value, solution in solutions.items()
    }
    if len(positive) < len(set(regularizations)):
        solutions[0.0] = _interior(problem.with_regularization(0.0), tol)
    return [solutions[float(value)] for value in regularizations]


def _module(solver: str, tol: float) -> Any:
    if not tol > 0.0:
        raise UsageError(f"tol must be positive, got {tol}")
    return registry.load("solvers", solver)


def _interior(problem: Problem, tol: float) -> Solution:
    solution: Solution = registry.load("solvers", "interior").solve(problem, tol=tol)
    return solution


def _rescue(problem: Problem, solution: Solution, solver: str, tol: float) -> Solution:
    """Where Newton did not settle, let the interior point try; keep what is certified, then what is lower."""
    if solution.converged or solver != "newton":
        return solution
    other = _interior(problem, tol)
    return min(solution, other, key=lambda one: (not one.converged, one.objective))
