"""One type for each column of a table that is stored in parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from lrqr.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def common_schema(parts: list[Path], schemas: list[pa.Schema], wanted: Sequence[str]) -> pa.Schema:
    """Types that hold the wanted columns of all parts: a part may be narrower (float32) than another.

    Parameters
    ----------
    parts : list of Path
        The files, for messages.
    schemas : list of Schema
        One for each file.
    wanted : sequence of str
        Columns that all of them have.

    Raises
    ------
    DataError
        All columns at once that are, say, texts in one part and numbers in another.
    """
    common: list[tuple[str, pa.DataType]] = []
    problems = []
    for name in wanted:
        kind = first = schemas[0].field(name).type
        where = parts[0]
        for part, schema in zip(parts[1:], schemas[1:], strict=True):
            other = schema.field(name).type
            wider = _common_type(kind, other)
            if wider is None:
                problems.append(
                    f"{part.name}: {name!r} is {_type_name(other)}, {_type_name(first)} in {where.name}"
                )
                break
            if pa.types.is_null(kind):  # a part without any value says nothing of the type
                first, where = other, part
            kind = wider
        common.append((name, kind))
    if problems:
        more = f"; and {len(problems) - 5} more" if len(problems) > 5 else ""
        raise DataError(f"{'; '.join(problems[:5])}{more}; write all parts with the same types")
    return pa.schema(common)


def _common_type(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    if one == other:
        return one
    one, other = _plain_type(one), _plain_type(other)
    if pa.types.is_integer(one) and pa.types.is_integer(other) and pa.uint64() in {one, other}:
        return one if one == other else pa.float64()
    try:
        fields = [pa.schema([("column", kind)]) for kind in (one, other)]
        return pa.unify_schemas(fields, promote_options="permissive").field("column").type
    except pa.ArrowException:
        return None


def _plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of the values: how texts are stored makes no difference."""
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_large_string(value) or pa.types.is_string_view(value):
        return pa.string()
    return pa.int8() if pa.types.is_boolean(value) else value


def _type_name(kind: pa.DataType) -> str:
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    return str(value).removeprefix("large_").replace("string_view", "string")
