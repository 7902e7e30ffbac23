"""Conformal prediction under covariate shift by likelihood-ratio regularized quantile regression."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lrqr.calibrate.model import load
    from lrqr.commands.compare import compare
    from lrqr.commands.diagnose import diagnose
    from lrqr.commands.evaluate import evaluate
    from lrqr.commands.wrapper import ConformalClassifier, ConformalRegressor
    from lrqr.methods.lrqr import LRQR

__version__ = "0.1.0"
__all__ = [
    "LRQR",
    "ConformalClassifier",
    "ConformalRegressor",
    "__version__",
    "compare",
    "diagnose",
    "evaluate",
    "load",
]

_HOMES = {
    "LRQR": "lrqr.methods.lrqr",
    "ConformalClassifier": "lrqr.commands.wrapper",
    "ConformalRegressor": "lrqr.commands.wrapper",
    "compare": "lrqr.commands.compare",
    "diagnose": "lrqr.commands.diagnose",
    "evaluate": "lrqr.commands.evaluate",
    "load": "lrqr.calibrate.model",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for: ``import lrqr`` costs nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module 'lrqr' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
