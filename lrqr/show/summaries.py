"""What a command says when it is done: what came out, what is remarkable, what to do next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lrqr.show.terminal import cell, percent

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from lrqr.calibrate.model import CalibratedModel


def fit_summary(model: CalibratedModel, output: Path) -> str:
    """Say in a few lines what a fit came to and what to do next."""
    fit, shift = model.details["fit"], model.details["shift"]
    base = "" if model.base is None else f" (base learner {model.base.name}, fitted on the other half)"
    apart = (
        f"domain AUC {shift['auc']:.2f}, effective size {shift['effective_size']:.0f} of {shift['n_source']}"
    )
    outside = f"{percent(shift['outside_support'])} of the target outside the source's support"
    rows = f"{fit['n_source']} source rows{base} for {fit['n_target']} target rows"
    lines = [
        (
            f"{fit['method']}: calibrated on {rows}, {_features(fit)}, "
            f"{100 * fit['coverage']:g} % coverage, score {model.score}"
        ),
        f"shift: {shift['verdict']} ({apart}, {outside})",
        f"  {shift['promise']}",
    ]
    if "gap" in fit and fit["feature_map"] != "constant":  # there, nothing is pulled towards anything
        chosen = f"ridge {fit['ridge']:.4g}, regularization {fit['regularization']:.4g}"
        state = "converged" if fit["converged"] else "NOT CONVERGED"
        lines.append(f"chosen: {chosen}; duality gap {fit['gap']:.1e}, {state}")
    thresholds = fit["thresholds"]
    if thresholds is not None:
        lines.append(f"thresholds on the target: {_thresholds(thresholds)}")
    answers = "sets" if model.classes else "intervals"
    lines += [f"Wrote {output}", f"Next: lrqr predict {output} NEW_ROWS -o {answers}.csv"]
    lines.append(f"      lrqr evaluate {output} LABELED_TARGET_ROWS")
    return "\n".join(lines)


def _features(fit: Mapping[str, Any]) -> str:
    given = f"{fit['n_features']} feature{'s' if fit['n_features'] != 1 else ''}"
    if fit["feature_map"] == "learned":
        return f"2 features learned from {given}"
    if fit["feature_map"] == "constant":
        known = fit["thresholds"] is None
        return (
            f"a constant shape, lifted by {'the given ratios' if known else 'a ratio learned from ' + given}"
        )
    if fit["unanswered"] > 0.0:
        lost = f"would leave {percent(fit['unanswered'])} of the target without a finite threshold"
        return f"{given} as given (a learned ratio {lost})"
    return given


def _thresholds(found: Mapping[str, Any]) -> str:
    if found["infinite"] == 1.0:
        return "all infinite, since no finite answer keeps the promise there"
    low, high = cell(found["quantiles"]["0.05"]), cell(found["quantiles"]["0.95"])
    shares = f"90 % between {low} and {high}, {percent(found['infinite'])} infinite"
    return f"median {cell(found['median'])}, {shares}"


def predict_summary(count: Mapping[str, int], output: Path) -> str:
    """Say how many rows were written and what is remarkable about them."""
    notes = [
        f"{count['infinite']} with an infinite threshold" if count["infinite"] else "",
        f"{count['empty']} empty" if count["empty"] else "",
        f"{count['outside']} outside the source's support, where nothing can be promised"
        if count["outside"]
        else "",
    ]
    remarks = "; ".join(note for note in notes if note)
    return f"Wrote {count['rows']} rows to {output}" + (f" ({remarks})" if remarks else "")
