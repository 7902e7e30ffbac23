"""Threshold methods, one scikit-learn estimator a file: methods/x.py is --method x."""

SHARED = ("divergences", "estimator", "selection")
"""Files of this package that are not methods."""
