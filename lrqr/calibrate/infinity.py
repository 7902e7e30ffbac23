"""What to do where no finite threshold keeps the promise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lrqr.errors import DataError, UsageError
from lrqr.plugins import INFINITE, Infinite, suggest

if TYPE_CHECKING:
    from lrqr.arrays import FloatArray

__all__ = ["Infinite", "cap_infinite"]


def cap_infinite(thresholds: FloatArray, infinite: Infinite, largest: float) -> FloatArray:
    """Apply the policy for thresholds of ``+inf`` (docs/methods.md): keep, clip to ``largest``, or refuse."""
    if infinite not in INFINITE:
        hint = suggest(infinite, INFINITE)
        raise UsageError(
            f"unknown policy for infinite thresholds {infinite!r}{hint}; choose one of: {', '.join(INFINITE)}"
        )
    unbounded = np.isposinf(thresholds)
    if infinite == "allow" or not unbounded.any():
        return thresholds
    if infinite == "clip":
        return np.where(unbounded, largest, thresholds)
    first = ", ".join(str(row) for row in np.flatnonzero(unbounded)[:5])
    raise DataError(
        f"{int(unbounded.sum())} of {len(thresholds)} rows have an infinite threshold (rows {first}, counted "
        "from 0): no finite set keeps the promise there; calibrate on more rows, lower the coverage, or "
        "allow or clip infinite thresholds"
    )
