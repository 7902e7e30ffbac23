"""Names that options choose from, shared with the rooms below: light, so that ``--help`` is quick."""

from __future__ import annotations

from typing import Literal, get_args

Base = Literal["ridge", "hist-gradient-boosting", "logistic"]
FeatureMap = Literal["auto", "given", "learned", "constant"]
Infinite = Literal["allow", "clip", "error"]
OnMissing = Literal["error", "drop", "impute"]

BASES: tuple[str, ...] = get_args(Base)
FEATURE_MAPS: tuple[str, ...] = get_args(FeatureMap)
INFINITE: tuple[str, ...] = get_args(Infinite)
ON_MISSING: tuple[str, ...] = get_args(OnMissing)
