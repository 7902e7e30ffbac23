"""``lrqr inspect``: what a model holds, or a file as it would be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lrqr.calibrate import model as models
from lrqr.calibrate import store as artifact
from lrqr.calibrate.directory import standing
from lrqr.data import tables
from lrqr.results import Column, Fit, Model, Shift, Table

if TYPE_CHECKING:
    from pathlib import Path

    from lrqr.calibrate.model import CalibratedModel
    from lrqr.data.roles import Roles

_ROLES = ("outcome", "prediction", "score_column", "cluster", "id", "weight", "categorical", "classes")
_LARGE = ("overlap", "concentration", "features", "columns")  # of the shift: for the report only


def inspect(path: Path, roles: Roles | None = None) -> Model | Table:
    """Describe a model directory, or list the columns of a file with kind, missing values and examples.

    ``roles`` say how a file is read.
    """
    if (standing(path) / artifact.STATE_FILE).exists():
        return describe(models.load(path))
    columns = tables.schema(path, roles=roles)
    return Table(
        kind="table",
        rows=columns[0].rows if columns else 0,
        columns=[
            Column(name=c.name, kind=c.kind, missing=c.missing, examples=list(map(str, c.examples)))
            for c in columns
        ],
    )


def describe(model: CalibratedModel) -> Model:
    """Say what a model was fitted on, what it chose, and what it certifies."""
    details = model.details
    roles = {name: getattr(model.roles, name) for name in _ROLES}
    return Model(
        kind="model",
        score=model.score,
        base=None if model.base is None else model.base.name,
        roles={name: list(value) if isinstance(value, tuple) else value for name, value in roles.items()},
        features=list(model.encoder.names_),
        coefficients=_coefficients(model),
        fit=Fit.read(details["fit"]),
        weighted_coverage=details["weighted_coverage"],
        certificate=details.get("certificate"),
        shift=Shift.read({key: value for key, value in details["shift"].items() if key not in _LARGE}),
        compared_with=list(model.companions),
        provenance=details["provenance"],
    )


def _coefficients(model: CalibratedModel) -> dict[str, float] | None:
    """Coefficients of a threshold that is linear in the features, in score units per unit of the feature."""
    estimator = model.threshold.estimator_
    if model.threshold.feature_map_ != "given" or not hasattr(estimator, "coef_"):
        return None
    coefficients = dict(zip(model.encoder.names_, map(float, estimator.coef_), strict=True))
    return {"(constant)": float(estimator.intercept_)} | coefficients
