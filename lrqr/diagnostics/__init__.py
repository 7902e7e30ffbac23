"""How far source and target are apart, and what may be promised from that.

``diagnose(X_source, X_target, names=...)`` returns a :class:`Diagnosis`: its numbers, a verdict by stated
rules, and a :class:`Support` that flags new rows that lie where the source has none.
"""

from __future__ import annotations

from lrqr.diagnostics.area import area_interval
from lrqr.diagnostics.diagnosis import (
    LITTLE_OVERLAP,
    NO_OVERLAP,
    PROMISES,
    VERDICTS,
    Diagnosis,
    diagnose,
    rows_needed,
    weight_warning,
)
from lrqr.diagnostics.schema import schema_differences
from lrqr.diagnostics.support import Support

__all__ = [
    "LITTLE_OVERLAP",
    "NO_OVERLAP",
    "PROMISES",
    "VERDICTS",
    "Diagnosis",
    "Support",
    "area_interval",
    "diagnose",
    "rows_needed",
    "schema_differences",
    "weight_warning",
]
