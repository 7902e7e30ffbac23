"""``lrqr inspect``: what a model holds, or a file as it would be read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lrqr.calibrate import model as models
from lrqr.calibrate import store as artifact
from lrqr.data import tables

if TYPE_CHECKING:
    from pathlib import Path


def inspect(path: Path) -> dict[str, Any]:
    """Describe a model directory (``kind`` is ``"model"``) or a file of data (``"table"``).

    Returns
    -------
    dict
        The keys of ``inspect --format json`` (docs/cli.md).
    """
    return inspect_model(path) if (path / artifact.STATE_FILE).exists() else inspect_table(path)


def inspect_table(path: Path) -> dict[str, Any]:
    """List the columns of a file with kind, missing values and examples."""
    columns = tables.schema(path)
    return {
        "kind": "table",
        "rows": columns[0].rows if columns else 0,
        "columns": [
            {
                "name": column.name,
                "kind": column.kind,
                "missing": column.missing,
                "examples": [str(example) for example in column.examples],
            }
            for column in columns
        ],
    }


def inspect_model(path: Path) -> dict[str, Any]:
    """Say what a model was fitted on, what it chose, and what it certifies."""
    model = models.load(path)
    roles, details = model.roles, model.details
    named = {
        "outcome": roles.outcome,
        "prediction": list(roles.prediction),
        "score_column": roles.score_column,
        "id": roles.id,
        "weight": roles.weight,
        "categorical": list(roles.categorical),
        "classes": list(roles.classes),
    }
    pictures = ("overlap", "concentration", "features", "columns")
    return {
        "kind": "model",
        "score": model.score,
        "base": None if model.base is None else model.base.name,
        "roles": named,
        "features": list(model.encoder.names_),
        "coefficients": _coefficients(model),
        "fit": details["fit"],
        "weighted_coverage": details["weighted_coverage"],
        "shift": {key: value for key, value in details["shift"].items() if key not in pictures},
        "compared_with": list(model.companions),
        "provenance": details["provenance"],
    }


def _coefficients(model: models.CalibratedModel) -> dict[str, float] | None:
    """Coefficients of a threshold that is linear in the features, in score units per unit of the feature."""
    estimator = model.threshold.estimator_
    if model.threshold.feature_map_ != "given" or not hasattr(estimator, "coef_"):
        return None
    coefficients = dict(zip(model.encoder.names_, map(float, estimator.coef_), strict=True))
    return {"(constant)": float(estimator.intercept_)} | coefficients
