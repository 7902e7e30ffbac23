"""Nonconformity scores, one file each: scores/x.py is --score x."""

from __future__ import annotations

SHARED = ("scoring",)
"""Files here that are no scores."""
