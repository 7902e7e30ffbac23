"""Means over splits with standard errors, paired differences, and whether recorded claims hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lrqr.results import Check, Comparison, Method, Panel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lrqr.study.config import Expectation, Experiment, Published

_METRICS = (
    "coverage",
    "size",
    "size_allow",
    "size_clipped",
    "infinite",
    "empty",
    "size_matched",
    "contradicted",
    "seconds",
    "regularization",
    "ridge",
)
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
        Of the sizes there are those that ``runs`` has: ``size_allow`` with infinite thresholds as they are,
        ``size_clipped`` (with ``_se``) with those clipped to the largest calibration score, and ``size``.
    """
    rows = []
    for (shift, method), group in runs.groupby(["shift", "method"], sort=False):
        own = group.set_index("split")
        base = runs[(runs["shift"] == shift) & (runs["method"] == reference)].set_index("split")
        row: dict[str, Any] = {"shift": shift, "method": method, "splits": len(own)}
        row |= {metric: _moments(own[metric])[0] for metric in _METRICS if metric in own}
        for metric in ("coverage", "size"):
            _, row[f"{metric}_sd"], row[f"{metric}_se"] = _moments(own[metric])
        for metric in ("coverage", "size"):
            mean, _, error = _moments(own[metric] - base[metric])
            row |= {f"{metric}_difference": mean, f"{metric}_difference_se": error}
        if "size_clipped" in own:
            row["size_clipped_se"] = _moments(own["size_clipped"])[2]
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


def to_results(experiment: Experiment, table: pd.DataFrame, checks: pd.DataFrame) -> Comparison:
    """Return the summary and the checks of a run as its result, one panel a shift."""
    return Comparison(
        title=experiment.title,
        paper=experiment.paper,
        nominal=experiment.coverage,
        splits=int(table["splits"].max()),
        reference=experiment.reference,
        panels=[
            Panel(
                name=str(shift),
                nominal=experiment.coverage,
                splits=int(group["splits"].max()),
                methods=method_rows(
                    group, [row for row in experiment.published if row.shift in (None, shift)]
                ),
            )
            for shift, group in table.groupby("shift", sort=False)
        ],
        checks=[
            Check(
                claim=row["claim"],
                expected=row["expected"],
                found=f"{row['found']:.4g}",
                verdict="holds" if row["holds"] else "fails",
                reason=row["reason"],
            )
            for row in checks.to_dict("records")
        ],
    )


def method_rows(table: pd.DataFrame, published: Sequence[Published] = ()) -> list[Method]:
    """Return one row per method of a summary; NaN becomes None, what could not be computed."""
    papers = {row.method: row.model_dump(include={"coverage", "coverage_sd", "size"}) for row in published}
    rows = []
    for record in table.drop(columns=["shift", "splits"]).to_dict("records"):
        name = str(record.pop("method"))
        numbers = {str(key): None if np.isnan(value) else value for key, value in record.items()}
        paper = {f"published_{key}": value for key, value in papers.get(name, {}).items()}
        rows.append(Method(name=name, **numbers, **paper))
    return rows


def _measure(claim: Expectation, runs: pd.DataFrame) -> tuple[float, float]:
    """Return the claimed quantity and its standard error over splits."""
    values = {name: group.set_index("split")[claim.metric] for name, group in runs.groupby("method")}
    own = values[claim.method]
    if claim.minus:
        own = own - values[claim.minus]
    if not claim.over:
        mean, _, error = _moments(own)
        return mean, error
    rival = values[claim.over]
    scale = _moments(rival)[0]
    quotient = _moments(own)[0] / scale
    return quotient, _moments((own - quotient * rival) / scale)[2]  # the delta method


def _interval(claim: Expectation) -> str:
    if np.isinf(claim.high):
        return f"at least {claim.low:g}"
    return f"at most {claim.high:g}" if np.isinf(claim.low) else f"{claim.low:g} to {claim.high:g}"


def _describe(claim: Expectation) -> str:
    against = f" minus {claim.minus}" if claim.minus else f" over {claim.over}" if claim.over else ""
    return f"{claim.metric} of {claim.method}{against}"


def _moments(values: pd.Series[float]) -> tuple[float, float, float]:
    """Return mean, standard deviation over splits, and the standard error of the mean.

    The last two are NaN for fewer than two values, or where one is infinite.
    """
    numbers = values.to_numpy(dtype=np.float64)
    count = len(numbers)
    known = count > 1 and np.isfinite(numbers).all()
    spread = float(numbers.std(ddof=1)) if known else float("nan")
    return float(numbers.mean()) if count else float("nan"), spread, spread / float(np.sqrt(max(count, 1)))
