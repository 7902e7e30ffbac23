"""Conformal prediction under covariate shift by likelihood-ratio regularized quantile regression."""

from __future__ import annotations

__version__ = "0.1.0"
