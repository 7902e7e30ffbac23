"""``lrqr diagnose``: how far two files are apart and what may be promised."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lrqr.commands import inputs
from lrqr.data import doubts, tables
from lrqr.data.columns import schema_differences
from lrqr.data.encoder import TableEncoder
from lrqr.data.formats import open_table
from lrqr.errors import LrqrWarning
from lrqr.results import Diagnosed, LabelsNeeded, Schema
from lrqr.stats.diagnosis import diagnose as compare_features
from lrqr.stats.power import rows_to_halve, rows_to_tell, spread
from lrqr.stats.predictions import worse_than_a_constant

if TYPE_CHECKING:
    from lrqr.data.formats import Data
    from lrqr.data.roles import Roles

_DROP = 0.05  # .85 in place of .90


def diagnose(
    source: Data,
    target: Data,
    roles: Roles | None = None,
    *,
    model: Any = None,
    coverage: float | None = None,
    on_missing: str | None = None,
    seed: int = 0,
    **columns: Any,
) -> Diagnosed:
    """Say how far source and target are apart, and what may be promised.

    Parameters
    ----------
    source, target : path, data frame (pandas, polars) or array of shape (n, d)
    roles : Roles, optional
        Which columns are features (by default all that both have); or give its fields as further keywords.
        With ``model`` those of the model are used instead.
    model : path, `CalibratedModel`, `ConformalRegressor` or `ConformalClassifier`, optional
        A fitted model: its features, its encoding and its coverage.
    coverage : float, optional
        The promise that the verdict is about; 0.9, or that of the model.
    on_missing : {"error", "drop", "impute"}, optional
        Default: ``"impute"`` if there is a model that was fitted so, else ``"error"``.

    Returns
    -------
    Diagnosed
        Verdict, promise, domain AUC, effective size and more as typed fields; ``to_dict()`` gives JSON.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> diagnose(rng.normal(size=(500, 2)), rng.normal(0.5, 1.0, size=(500, 2))).verdict
    'shift within reach'
    """
    fitted = None if model is None else inputs.opened(model)
    roles, _ = inputs.without_map(inputs.roles_of("diagnose", diagnose, roles, columns), source)
    found = tables.resolve(roles, source, target) if fitted is None else fitted.roles
    found = replace(found, separator=roles.separator, decimal=roles.decimal)
    policy = on_missing or ("error" if fitted is None else fitted.on_missing)
    samples = [
        tables.read(
            path,
            found,
            on_missing=policy,
            optional=("id", "prediction", *more),
            most=tables.UNLABELED_ROWS,
            seed=seed,
        )
        for path, more in ((source, ("outcome",)), (target, ()))
    ]
    frames = [sample.features for sample in samples]
    if fitted is None:
        encoder = TableEncoder().fit(*frames, categorical=found.categorical, on_missing=policy)
    else:
        encoder = fitted.encoder
    doubts.warn(encoder, *frames)
    level = coverage or (0.9 if fitted is None else fitted.coverage)
    said = [sample.prediction for sample in samples]
    result = compare_features(
        *(encoder.transform(frame) for frame in frames),
        names=encoder.names_,
        coverage=level,
        random_state=seed,
        predictions=None if 0 in said[0].shape or 0 in said[1].shape else (said[0], said[1]),
    )
    outcome = samples[0].outcome
    unfit = "" if outcome is None or 0 in said[0].shape else worse_than_a_constant(said[0], outcome)
    for note in (*result.notes, *filter(None, (result.predictions, unfit))):
        warnings.warn(note, LrqrWarning, stacklevel=2)
    differences = schema_differences(*frames)
    names = [_unassigned(path, found) for path in (source, target)]
    differences["only_source"] = [name for name in names[0] if name not in names[1]]
    differences["only_target"] = [name for name in names[1] if name not in names[0]]
    return Diagnosed(
        **result.to_dict(pictures=True),
        promise=result.promise,
        pareto_k=result.pareto_k,
        nominal=level,
        labels=_labels(level, result.effective_size),
        columns=Schema(**differences),
        certificate=None if fitted is None else fitted.details.get("certificate"),
    )


def _labels(level: float, size: float) -> LabelsNeeded:
    """Return how many labeled target rows would show a drop, and halve the spread of the coverage."""
    drop = max(level - _DROP, level / 2.0)
    return LabelsNeeded(
        drop=drop,
        to_tell=rows_to_tell(level, drop),
        spread=spread(size, level),
        to_halve=rows_to_halve(size),
    )


def _unassigned(path: Data, roles: Roles) -> list[str]:
    """Return the columns without a role: the outcome, say, is not expected in a target."""
    names = open_table(path, roles).columns
    return roles.free(names)
