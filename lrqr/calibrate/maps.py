"""Which features a threshold is a function of: as given, learned, or the constant alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lrqr import plugins
from lrqr.errors import UsageError
from lrqr.plugins import FEATURE_MAPS

if TYPE_CHECKING:
    from lrqr.plugins import FeatureMap

ENOUGH = (100, 50)
"""Source and target rows from which on ``"auto"`` learns."""


def resolve(feature_map: str, estimator: Any, *, classify: bool, n_source: int, n_target: int) -> str:
    """Return the map that is to be used, after ``"auto"``.

    A threshold on class probabilities already adapts its set to the row, and of all thresholds with the same
    coverage the constant gives the fewest classes on average (Sadinle, Lei & Wasserman 2019); so classes get
    the constant, intervals the learned features (docs/selection.md).

    Raises
    ------
    UsageError
        If there is no such map, or if the method weighs rows by a ratio of the given features.
    """
    if feature_map not in FEATURE_MAPS:
        hint = plugins.suggest(str(feature_map), FEATURE_MAPS)
        raise UsageError(
            f"unknown feature map {feature_map!r}{hint}; choose one of: {', '.join(FEATURE_MAPS)}"
        )
    if feature_map == "auto":
        enough = n_source >= ENOUGH[0] and n_target >= ENOUGH[1]
        return best(classify=classify) if enough and prefers_few(estimator) else "given"
    if feature_map != "given" and estimator.USES_RATIO:
        raise UsageError(
            f"{type(estimator).__name__} weighs rows by a likelihood ratio of the given features; "
            f"{feature_map} features are for the methods that use none (lrqr, split, conditional)"
        )
    return feature_map


def best(*, classify: bool) -> FeatureMap:
    """Return the map of few features that suits sets of classes, or intervals."""
    return "constant" if classify else "learned"


def prefers_few(estimator: Any) -> bool:
    """Return whether a method is LR-QR with nothing chosen by the user: it does best on few features."""
    chosen = [getattr(estimator, name, None) for name in ("regularization", "ridge", "selection")]
    return chosen == ["auto", "auto", "auto"]
