"""The two numerical parts of a Newton step: the regularized linear system and the line search."""

from collections.abc import Callable

import numpy as np
from scipy.linalg import blas, lapack

from lrqr.arrays import FloatArray

# The line search stops at this share of the first slope.
_FLAT = 0.2


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
