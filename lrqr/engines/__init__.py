"""Map and reduce over rows, one file an engine."""
