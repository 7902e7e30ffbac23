"""Threshold methods, one scikit-learn estimator a file: methods/x.py is --method x."""

from __future__ import annotations

SHARED = ("divergences", "estimator", "selection")
"""Files here that are no methods."""
