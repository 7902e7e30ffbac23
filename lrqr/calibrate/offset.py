"""The last step with learned features: lift a fitted threshold by what weighted conformal prediction asks.

LR-QR gives the shape of the threshold at a lower level; the lift brings it to the promised one. See
docs/selection.md for the reasons and the measurements.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from lrqr.stats.quantiles import weighted_quantile

if TYPE_CHECKING:
    from lrqr.arrays import FloatArray

TEST_MASS = 0.5
"""Share of a test row's ratio that sits at infinity.

All of it (1) is what weighted conformal prediction needs for coverage >= 1-α. But its quantile is also
rounded up to the next calibration row, which adds half a row's weight on average, so half of it is what
makes the mean coverage 1-α. With equal weights: rank ⌈(n+½)(1-α)⌉ of n rows covers 1-α + α/(2(n+1)),
averaged over the rounding.
"""


def shape_level(coverage: float) -> float:
    """Return the level of the quantile that gives the shape: 1-2α, where the sets come out smallest.

    Examples
    --------
    >>> round(shape_level(0.9), 12), round(shape_level(0.5), 12)
    (0.8, 0.25)
    """
    return max(2.0 * coverage - 1.0, coverage / 2.0)


@dataclass(frozen=True)
class Offset:
    """Weighted conformal quantile of the residuals S - h(x) of a fitted threshold h.

    Attributes
    ----------
    residuals : (n,) array
        Score minus threshold of the calibration rows, score units.
    ratios : (n,) array
        Their likelihood ratios.
    level : float
        1-α.
    """

    residuals: FloatArray
    ratios: FloatArray
    level: float

    def lift(self, ratio: FloatArray) -> FloatArray:
        """Return what to add to the thresholds (m,) of rows with these ratios; may be ``+inf``."""
        return weighted_quantile(self.residuals, self.ratios, TEST_MASS * ratio, self.level)

    def to_state(self) -> dict[str, Any]:
        """Return plain values and arrays."""
        return {"residuals": self.residuals, "ratios": self.ratios, "level": self.level}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Rebuild the offset that `to_state` described."""
        return cls(**state)
