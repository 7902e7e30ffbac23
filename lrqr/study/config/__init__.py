"""An experiment as a file: TOML to validated models, every mistake reported at once.

The format is documented in docs/experiments.md; ``configs/*.toml`` are the examples.
"""

from __future__ import annotations

from lrqr.study.config.models import (
    Data,
    Expectation,
    Experiment,
    Figure,
    Method,
    Published,
    Ratio,
    Shift,
    Table,
)
from lrqr.study.config.reading import load, parse

__all__ = [
    "Data",
    "Expectation",
    "Experiment",
    "Figure",
    "Method",
    "Published",
    "Ratio",
    "Shift",
    "Table",
    "load",
    "parse",
]
