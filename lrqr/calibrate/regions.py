"""From thresholds to answers: the regions of a score, cut to what an outcome can be, and their sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lrqr import plugins
from lrqr.data.roles import ends_of
from lrqr.stats.metrics import region_size

if TYPE_CHECKING:
    from lrqr.arrays import FloatArray
    from lrqr.data.roles import Bounds


@dataclass(frozen=True)
class Regions:
    """What thresholds say of outcomes.

    Attributes
    ----------
    score : str
        A name of ``lrqr.scores``.
    bounds : (float or None, float or None), optional
        The lowest and the highest outcome that is possible. No coverage is lost by cutting there.
    """

    score: str
    bounds: Bounds = None

    @property
    def one_sided(self) -> bool:
        """Whether the score asks for one bound alone."""
        return hasattr(plugins.load("scores", self.score), "SIDE")

    def of(self, prediction: Any, threshold: FloatArray) -> Any:
        """Return the intervals (n, 2) or sets (n, K) of thresholds (n,)."""
        region = plugins.load("scores", self.score).region(prediction, threshold)
        if self.bounds is None:
            return region
        low, high = ends_of(self.bounds)
        region = np.column_stack([np.maximum(region[:, 0], low), np.minimum(region[:, 1], high)])
        region[region[:, 0] > region[:, 1]] = np.inf, -np.inf
        return region

    def sizes(self, prediction: Any, region: Any) -> FloatArray:
        """Return lengths or numbers of classes (n,); of one bound alone, how far it is from the prediction.

        That distance is negative for an upper bound below the prediction, and a lower one above it.
        """
        if not self.one_sided:
            return region_size(region=region)
        upper = plugins.load("scores", self.score).SIDE == "upper"
        distance = region[:, 1] - prediction[:, 0] if upper else prediction[:, 0] - region[:, 0]
        return np.where(region[:, 0] > region[:, 1], 0.0, distance)
