"""Results as strict JSON and as a flat table, the same numbers as on the page."""

from __future__ import annotations

import csv
import io
import json
import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


CSV_HEAD = "quantity,value\n"


def to_csv(results: Mapping[str, Any]) -> str:
    """Return ``results`` as a table of two columns: ``groups.0.coverage,0.91``."""
    table = io.StringIO(CSV_HEAD)
    table.seek(0, io.SEEK_END)
    csv.writer(table, lineterminator="\n").writerows(to_rows(results))
    return table.getvalue()


def to_json(results: Mapping[str, Any]) -> str:
    """Return ``results`` as strict JSON: infinities become the strings "inf" and "-inf", NaN null."""
    return json.dumps(_plain(results), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value


def to_rows(results: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Flatten ``results`` to (path, value) pairs: ``("groups.0.coverage", "0.91")``."""
    rows: list[tuple[str, str]] = []

    def walk(path: str, value: Any) -> None:
        if isinstance(value, dict):
            for key, item in value.items():
                walk(f"{path}.{key}" if path else key, item)
        elif isinstance(value, list):
            for index, item in enumerate(value):
                walk(f"{path}.{index}", item)
        else:
            rows.append((path, "" if value is None else str(value)))

    walk("", _plain(results))
    return rows
