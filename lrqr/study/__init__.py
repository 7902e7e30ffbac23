"""Experiments as files: data sets, splits, runs and their summaries."""
