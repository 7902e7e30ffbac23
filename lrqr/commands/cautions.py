"""What a user of `fit` is warned of."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from lrqr.calibrate.model import PRECOMPUTED
from lrqr.calibrate.offset import TEST_MASS
from lrqr.calibrate.promise import few_rows_warning
from lrqr.data import tables
from lrqr.errors import LrqrWarning
from lrqr.stats.diagnosis import weight_warning

if TYPE_CHECKING:
    from lrqr.arrays import FloatArray
    from lrqr.calibrate.threshold import ThresholdModel
    from lrqr.data.tables import Sample


def about_outcome(sample: Sample, name: str | None, score: str) -> None:
    """Warn of classes without a row, and of an outcome that looks like two classes."""
    if sample.classes:
        tables.warn_absent_classes(sample)
        return
    if sample.outcome is None or score == PRECOMPUTED:
        return
    values = np.unique(sample.outcome)
    if len(values) == 2:
        warn(
            f"the outcome {name!r} has only two values ({values[0]:g} and {values[1]:g}): "
            "if they are classes, use --probability, or --base logistic"
        )


def about_order(prediction: FloatArray, score: str) -> None:
    """Warn where the lower of two predicted quantiles is mostly above the upper one."""
    if score != "cqr":
        return
    crossed = float(np.mean(prediction[:, 0] > prediction[:, 1]))
    if crossed > 0.5:
        warn(f"lower above upper in {100 * crossed:.0f} % of rows: are the two columns swapped?")


def about_rows(threshold: ThresholdModel, known: FloatArray | None, *, unlabeled: bool) -> None:
    """Warn of rows, or known ratios, too few for the promise, and of unlabeled source rows without use."""
    mass = 1.0 if threshold.offset_ is None else TEST_MASS
    weights = None if known is None else weight_warning(known, threshold.coverage_, mass)
    unused = (
        "--unlabeled-source is not used: the ratio is learned from labeled rows (--feature-map given uses it)"
        if unlabeled and threshold.feature_map_ != "given"
        else None
    )
    for message in (few_rows_warning(threshold), weights, unused):
        if message:
            warn(message)


def warn(message: str) -> None:
    """Warn the user of `fit`."""
    warnings.warn(message, LrqrWarning, stacklevel=3)
