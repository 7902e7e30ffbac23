"""What the data say of the cause where an evaluation finds another coverage than was promised."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from lrqr.show.words import cell
from lrqr.show.words import fixed_percent as share
from lrqr.stats.diagnosis import LITTLE_OVERLAP, NO_OVERLAP, NO_SHIFT

if TYPE_CHECKING:
    from lrqr.results import Evaluation, Feature, Shift

_ERRORS = 4.0  # standard errors by which two shares or means differ for more than chance
_LEAST = 0.2  # standard deviations: a smaller difference of two means explains little
_HALF = 0.5
_INFINITE = 0.05
_EASIER = (
    "The outcome may vary less here, at the same features, than in the source. Nothing must be done; another "
    "method, or more target rows, may give smaller ones."
)
_REMEDY = "label some target rows and calibrate on them."


def causes(result: Evaluation) -> list[str]:
    """Return at most two sentences on why the coverage is not as promised, each with its evidence.

    Parameters
    ----------
    result : Evaluation
        With the shift at the fit, ``mean_here`` of its features, ``known_file`` and ``known_rows``.

    Returns
    -------
    list of str
        Empty if the coverage is as promised or unknown. Rows that calibrated the model are named whatever
        the coverage.
    """
    copied = _calibrated_on_these(result)
    if copied:
        return [copied]
    verdict = "" if result.coverage is None else result.coverage.verdict
    if verdict not in {"below", "above"} or result.shift is None:
        return []
    if result.shift.predictions:
        return [f"Said at the fit: {result.shift.predictions}"]
    unlike = _unlike(result, result.shift)
    further = (_below if verdict == "below" else _above)(result, result.shift, unlike=bool(unlike))
    return [sentence for sentence in (unlike, further) if sentence]


def _calibrated_on_these(result: Evaluation) -> str:
    evidence, which = "", "These"
    if result.known_file in {"source", "unlabeled_source"}:
        evidence = f"the file is the one that the fit read as {result.known_file.replace('_', ' ')} (sha256)"
    elif result.known_labels:
        which = "These" if result.known_labels == result.n else "Some of these"
        evidence = f"{result.known_labels} of {result.n} were the fit's labeled target rows"
    elif (result.known_rows or 0.0) > _HALF:
        evidence = f"{share(result.known_rows)} of them have exactly the score of a calibration row"
    if not evidence:
        return ""
    return (
        f"{which} rows calibrated the model: {evidence}. Coverage on them says nothing about the "
        "target; take labeled target rows that were not part of the fit."
    )


def _unlike(result: Evaluation, shift: Shift) -> str:
    """Name what differs between these rows and the target rows of the fit: by support, or else by a mean."""
    evidence = ""
    here, then = shift.outside_support_here or 0.0, shift.outside_support or 0.0
    pooled = (here * result.n + then * shift.n_target) / (result.n + shift.n_target)
    noise = math.sqrt(pooled * (1.0 - pooled) * (1.0 / result.n + 1.0 / shift.n_target))
    moved = max(shift.features, key=lambda feature: _moved(feature, result, shift), default=None)
    if here - then > max(0.02, _ERRORS * noise):
        evidence = (
            f"{share(here)} of them lie outside the source's support, against {share(then)} of the "
            "target rows then"
        )
    elif moved is not None and _moved(moved, result, shift) > 0.0:
        evidence = (
            f"{moved.name} averages {cell(moved.mean_here)} here, {cell(moved.mean_target)} in that target"
        )
    if not evidence:
        return ""
    weighted = next((row for row in result.methods if row.name == "weighted"), None)
    other = ""
    if weighted is not None and result.model is not None and result.model.method != "weighted":
        other = f" On them weighted covers {share(weighted.coverage)}."
    return (
        f"These rows are not like the target of the fit: {evidence}.{other} Fit again with rows like these."
    )


def _moved(feature: Feature, result: Evaluation, shift: Shift) -> float:
    """Return how many standard errors the mean of a feature lies from that of the fit's target; 0 if few."""
    known = (feature.mean_here, feature.mean_target, feature.mean_source, feature.standardized_difference)
    if any(value is None for value in known) or not feature.standardized_difference:
        return 0.0
    here, target, source, difference = (float(value or 0.0) for value in known)
    distance = abs((here - target) / (target - source) * difference)
    errors = distance / math.sqrt(1.0 / result.n + 1.0 / shift.n_target)
    return errors if errors > _ERRORS and distance > _LEAST else 0.0


def _below(result: Evaluation, shift: Shift, *, unlike: bool) -> str:
    """Return what else the shift at the fit says of a broken promise."""
    method = "" if result.model is None else result.model.method
    if shift.verdict == NO_SHIFT and not unlike:
        return (
            f"A shift is not the cause: the fit found none (domain AUC {shift.auc:.2f}, 95 % interval "
            f"{shift.auc_low:.2f} to {shift.auc_high:.2f}), and these rows look like its target. Either the "
            "model was trained on the calibration rows, where its errors are then too small, or the outcome "
            "depends on the features in another way here."
        )
    if method == "split" and shift.verdict != NO_SHIFT:
        return (
            f"The method split takes no account of the shift (domain AUC {shift.auc:.2f}): calibrate with "
            "--method lrqr."
        )
    if shift.verdict in {LITTLE_OVERLAP, NO_OVERLAP}:
        return (
            f"The shift is beyond what the source can answer ({shift.verdict} at the fit: effective size "
            f"{shift.effective_size:.0f} of {shift.n_source} rows, {share(shift.outside_support)} of the "
            f"target outside its support): {_REMEDY}"
        )
    if unlike:
        return ""
    return (
        f"These rows look like the target of the fit ({share(shift.outside_support_here)} outside the "
        f"source's support, {share(shift.outside_support)} then) and that shift was within reach. So the "
        "outcome depends on the features in another way here, which no weighting can repair, or the model "
        f"was trained on the calibration rows: {_REMEDY}"
    )


def _above(result: Evaluation, shift: Shift, *, unlike: bool) -> str:
    """Return why more than was promised is covered, and whether something is to be done."""
    infinite = result.size.infinite or 0.0
    if infinite > _INFINITE:
        return (
            f"{share(infinite)} of the thresholds are infinite and cover anything: {shift.verdict} at the "
            f"fit, effective size {shift.effective_size:.0f} of {shift.n_source} rows."
        )
    return "" if unlike else _EASIER
