"""What differs between the columns of two tables, and which of them are the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any


if TYPE_CHECKING:
    import pandas as pd

_SHOWN = 5


def schema_differences(source: pd.DataFrame, target: pd.DataFrame) -> dict[str, Any]:
    """Return the differences between two tables, as plain lists that go into JSON and the report.

    Returns
    -------
    dict
        ``only_source``, ``only_target``: names of columns; ``changed_types``: ``name``, ``source`` and
        ``target``, each one of number, boolean, time, text; ``unseen_categories``: ``name``, the first five
        ``categories`` that only the target has, and the number of ``rows`` that hold one.

    Notes
    -----
    Whole and broken numbers are one type: a column of integers turns into floats with its first gap.
    """
    shared = [name for name in source.columns if name in set(target.columns)]
    changed, unseen = [], []
    for name in shared:
        kinds = _kind(source[name]), _kind(target[name])
        if kinds[0] != kinds[1]:
            changed.append({"name": str(name), "source": kinds[0], "target": kinds[1]})
        elif kinds[0] == "text":
            values = target[name].dropna()
            strange = values[~values.isin(source[name].dropna().unique())]
            if len(strange):
                categories = sorted(map(str, strange.unique()))[:_SHOWN]
                unseen.append({"name": str(name), "categories": categories, "rows": len(strange)})
    return {
        "only_source": [str(name) for name in source.columns if name not in set(shared)],
        "only_target": [str(name) for name in target.columns if name not in set(shared)],
        "changed_types": changed,
        "unseen_categories": unseen,
    }


def _kind(column: pd.Series[Any]) -> str:
    from pandas.api import types

    if types.is_bool_dtype(column.dtype):
        return "boolean"
    if types.is_numeric_dtype(column.dtype):
        return "number"
    if types.is_datetime64_any_dtype(column.dtype) or types.is_timedelta64_dtype(column.dtype):
        return "time"
    return "text"
