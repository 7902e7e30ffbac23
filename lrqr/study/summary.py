"""Means over splits with standard errors, paired differences, and whether recorded claims hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lrqr.study.config import Expectation, Experiment, Published

_METRICS = ("coverage", "size", "size_allow", "infinite", "empty", "seconds", "regularization", "ridge")
_WIDTHS = 3.0


def summarize(runs: pd.DataFrame, reference: str = "lrqr") -> pd.DataFrame:
    """Average over splits.

    Parameters
    ----------
    runs : DataFrame
        One row per shift, split and method.
    reference : str
        The method to which paired differences are taken.

    Returns
    -------
    DataFrame
        One row per shift and method, in their order in ``runs``: ``splits``; the mean of each metric;
        ``coverage_sd``, ``size_sd`` (over splits) and ``coverage_se``, ``size_se`` (sd / sqrt(splits): the
        uncertainty from drawing splits of these rows, not from the rows themselves);
        ``coverage_difference``, ``size_difference`` to the reference in the same splits, with ``_se``.
        ``size`` has infinite thresholds clipped to the largest calibration score, ``size_allow`` has not.
    """
    rows = []
    for (shift, method), group in runs.groupby(["shift", "method"], sort=False):
        base = runs[(runs["shift"] == shift) & (runs["method"] == reference)].set_index("split")
        row: dict[str, Any] = {"shift": shift, "method": method, "splits": len(group)}
        row |= {metric: _mean(group[metric]) for metric in _METRICS}
        for metric in ("coverage", "size"):
            row[f"{metric}_sd"] = _sd(group[metric])
            row[f"{metric}_se"] = _se(group[metric])
        for metric in ("coverage", "size"):
            paired = _paired(group, base, metric)
            row[f"{metric}_difference"], row[f"{metric}_difference_se"] = _mean(paired), _se(paired)
        rows.append(row)
    return pd.DataFrame(rows)


def check(experiment: Experiment, runs: pd.DataFrame) -> pd.DataFrame:
    """Compare the runs with the experiment's recorded expectations.

    A claim holds unless the mean lies outside its interval by more than 3 standard errors over splits, so
    that few splits do not cry wolf.

    Returns
    -------
    DataFrame
        Columns claim, expected, found, standard_error, holds, reason: one row per claim and shift.
    """
    rows = []
    for claim in experiment.expect:
        for shift in [claim.shift] if claim.shift else list(dict.fromkeys(runs["shift"])):
            found, error = _measure(claim, runs[runs["shift"] == shift])
            slack = _WIDTHS * (error if np.isfinite(error) else 0.0)
            rows.append(
                {
                    "claim": f"{shift}: {_describe(claim)}",
                    "expected": _interval(claim),
                    "found": found,
                    "standard_error": error,
                    "holds": bool(claim.low - slack <= found <= claim.high + slack),
                    "reason": claim.reason,
                }
            )
    columns = ["claim", "expected", "found", "standard_error", "holds", "reason"]
    return pd.DataFrame(rows, columns=columns)


def to_results(experiment: Experiment, runs: pd.DataFrame) -> dict[str, Any]:
    """Return a run as the dictionary that reports and ``--format json`` take, one panel a shift."""
    table = summarize(runs, experiment.reference)
    checks = check(experiment, runs)
    panels = []
    for shift, group in table.groupby("shift", sort=False):
        published = [row for row in experiment.published if row.shift in (None, shift)]
        panels.append(
            {
                "name": shift,
                "nominal": experiment.coverage,
                "splits": int(group["splits"].max()),
                "methods": method_rows(group, published),
            }
        )
    return {
        "title": experiment.title,
        "paper": experiment.paper,
        "nominal": experiment.coverage,
        "splits": int(table["splits"].max()),
        "reference": experiment.reference,
        "panels": panels,
        "checks": [
            {
                "claim": row.claim,
                "expected": row.expected,
                "found": f"{row.found:.4g}",
                "verdict": "holds" if row.holds else "fails",
                "reason": row.reason,
            }
            for row in checks.itertuples()
        ],
    }


def method_rows(table: pd.DataFrame, published: Sequence[Published] = ()) -> list[dict[str, Any]]:
    """Return one dictionary per method of a summary, with the keys of ``compare --format json``."""
    rows = []
    for record in table.to_dict("records"):
        row = {str(key): value for key, value in record.items() if key not in ("shift", "method", "splits")}
        row = {
            key: None if isinstance(value, float) and np.isnan(value) else value for key, value in row.items()
        }
        paper = next((entry for entry in published if entry.method == record["method"]), None)
        if paper is not None:
            row |= {
                "published_coverage": paper.coverage,
                "published_coverage_sd": paper.coverage_sd,
                "published_size": paper.size,
            }
        rows.append({"name": record["method"]} | row)
    return rows


def _measure(claim: Expectation, runs: pd.DataFrame) -> tuple[float, float]:
    """Return the claimed quantity and its standard error over splits."""
    own = runs[runs["method"] == claim.method].set_index("split")[claim.metric]
    other = claim.minus or claim.over
    if other is None:
        return _mean(own), _se(own)
    rival = runs[runs["method"] == other].set_index("split")[claim.metric]
    if claim.minus:
        return _mean(own - rival), _se(own - rival)
    quotient = _mean(own) / _mean(rival)
    return quotient, _se((own - quotient * rival) / _mean(rival))  # the delta method


def _interval(claim: Expectation) -> str:
    if np.isinf(claim.high):
        return f"at least {claim.low:g}"
    return f"at most {claim.high:g}" if np.isinf(claim.low) else f"{claim.low:g} to {claim.high:g}"


def _describe(claim: Expectation) -> str:
    against = f" minus {claim.minus}" if claim.minus else f" over {claim.over}" if claim.over else ""
    return f"{claim.metric} of {claim.method}{against}"


def _paired(group: pd.DataFrame, base: pd.DataFrame, metric: str) -> pd.Series[float]:
    return group.set_index("split")[metric] - base[metric]


def _mean(values: pd.Series[float]) -> float:
    return float(np.mean(values.to_numpy(dtype=np.float64))) if len(values) else float("nan")


def _sd(values: pd.Series[float]) -> float:
    """Return the standard deviation over splits; NaN for fewer than two, or where a value is infinite."""
    numbers = values.to_numpy(dtype=np.float64)
    if len(numbers) < 2 or not np.isfinite(numbers).all():
        return float("nan")
    return float(numbers.std(ddof=1))


def _se(values: pd.Series[float]) -> float:
    return _sd(values) / float(np.sqrt(max(len(values), 1)))
