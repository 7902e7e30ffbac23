"""What a fit came to and where it came from, as JSON values that are the same for the same input."""

from __future__ import annotations

import hashlib
import platform
from typing import TYPE_CHECKING, Any

import numpy as np

from lrqr import __version__
from lrqr.stats import metrics

if TYPE_CHECKING:
    from pathlib import Path

    from lrqr.arrays import FloatArray
    from lrqr.calibrate.threshold import ThresholdModel

_CHUNK = 1 << 20
_LEARNED = (
    "regularization",
    "ridge",
    "beta",
    "objective",
    "gap",
    "n_iter",
    "converged",
    "branch",
    "score_scale",
    "score_offset",
)


def of_fit(threshold: ThresholdModel, X_target: FloatArray, prediction: FloatArray) -> dict[str, Any]:
    """Sizes, choices, certificate, the cross-validation table, and thresholds on the target rows."""
    estimator = threshold.estimator_
    names = ("gap", "converged") if threshold.feature_map_ == "constant" else _LEARNED
    found = {name: getattr(estimator, f"{name}_") for name in names if hasattr(estimator, f"{name}_")}
    # the known ratios of the target rows are not asked for at fit
    thresholds = None
    if not threshold.known_ratio_:
        thresholds = metrics.distribution(values=threshold.predict(X_target, prediction=prediction))
    parameters = {
        name: value
        for name, value in estimator.get_params(deep=False).items()
        if value is None or isinstance(value, str | int | float)
    }
    return {
        "method": threshold.method_,
        "coverage": threshold.coverage_,
        "n_source": threshold.n_source_,
        "n_target": len(X_target),
        "n_features": threshold.n_features_in_,
        "feature_map": threshold.feature_map_,
        "unanswered": threshold.unanswered_,
        "largest_score": threshold.largest_score_,
        **found,
        "parameters": parameters,
        "thresholds": thresholds,
        "selection": [dict(row) for row in getattr(estimator, "selection_table_", [])],
    }


def provenance(seed: int, on_missing: str) -> dict[str, Any]:
    """Versions and options; no time and no machine, so that the same input gives the same bytes."""
    import scipy
    import sklearn

    return {
        "lrqr": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "seed": seed,
        "on_missing": on_missing,
    }


def digest(path: Path) -> str:
    """Return the sha256 of a file, or of all files of a directory and their names."""
    total = hashlib.sha256()
    files = [path] if path.is_file() else sorted(item for item in path.rglob("*") if item.is_file())
    for file in files:
        if path.is_dir():
            total.update(file.relative_to(path).as_posix().encode() + b"\0")
        with file.open("rb") as stream:
            while chunk := stream.read(_CHUNK):
                total.update(chunk)
    return total.hexdigest()
