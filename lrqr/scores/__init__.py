"""Nonconformity scores, one file each: scores/x.py is --score x."""
