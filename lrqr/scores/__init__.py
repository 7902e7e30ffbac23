"""Nonconformity scores, one file each: scores/x.py is --score x."""

SHARED = ("scoring",)
"""Files here that are no scores."""
