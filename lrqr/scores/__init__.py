"""Nonconformity scores, one file each: scores/x.py is --score x."""

SHARED = ("scoring",)
"""Files of this package that are not scores."""
