"""Read single columns as numbers (float64), labels (strings) or row identifiers; compare two tables."""

from __future__ import annotations

import decimal
import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from lrqr.data.roles import clean
from lrqr.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from lrqr.arrays import BoolArray, FloatArray

Labels = np.ndarray[Any, np.dtype[np.object_]]

_BOOLEANS = {"true": 1.0, "false": 0.0}
_WHOLE = re.compile(r"[+-]?\d+\.0+")


_KINDS = {"b": "boolean", "i": "number", "u": "number", "f": "number", "M": "time", "m": "time"}
_SHOWN = 5


@dataclass(frozen=True)
class Numbers:
    """A column read as numbers.

    Attributes
    ----------
    values : array of shape (n,)
        float64; NaN where missing or not a number.
    text : bool array of shape (n,)
        Where the column holds a text that is no number.
    example : str
        The first of these texts.
    present : int
        Number of values that are not missing.
    """

    values: FloatArray
    text: BoolArray
    example: str
    present: int

    @property
    def texts(self) -> int:
        """The number of texts that are no numbers."""
        return int(self.text.sum())

    @property
    def numeric(self) -> bool:
        """Whether the column is one of numbers: there is no text, or fewer than half of the values are.

        Such texts are taken for mistakes.
        """
        return not self.texts or 2 * self.texts < self.present


def frame_columns(frame: Any) -> tuple[str, ...]:
    """Names of the columns of a data frame (or f0, f1, .. of a matrix), each once.

    Raises
    ------
    DataError
        If a name occurs twice or ``frame`` is no table.
    """
    found = _known(frame).columns if _is_pandas(frame) else _known(frame).column_names
    names = tuple(clean(str(name)) for name in found)
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise DataError(f"column names occur twice: {', '.join(map(repr, twice))}; rename them")
    return names


def table_of(frame: Any, wanted: Sequence[str]) -> pa.Table:
    """Return the wanted columns of a data frame as an Arrow table.

    Parameters
    ----------
    frame : matrix, pandas frame, or a frame of any library with Arrow's PyCapsule interface
        Polars, DuckDB and Arrow itself have it. The index of a pandas frame plays no part.
    wanted : sequence of str
        Among `frame_columns`.
    """
    position = {name: k for k, name in enumerate(frame_columns(frame))}
    if not _is_pandas(frame):
        return _known(frame).select([position[name] for name in wanted]).rename_columns(list(wanted))
    return pa.table({name: _array(_known(frame).iloc[:, position[name]]) for name in wanted})


def _is_pandas(frame: Any) -> bool:
    return isinstance(frame, np.ndarray | pd.DataFrame)


def _known(frame: Any) -> Any:
    """Return a frame as a pandas frame or an Arrow table."""
    if isinstance(frame, pd.DataFrame | pa.Table):
        return frame
    if isinstance(frame, np.ndarray):
        if frame.ndim != 2:
            raise DataError(f"a matrix of features must have two dimensions, got shape {frame.shape}")
        return pd.DataFrame(frame, columns=[f"f{k}" for k in range(frame.shape[1])])
    if not hasattr(frame, "__arrow_c_stream__"):
        raise DataError(f"expected a data frame (pandas or polars) or a matrix, got {type(frame).__name__}")
    return pa.table(frame)


def _array(values: pd.Series[Any]) -> pa.Array | pa.ChunkedArray:
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):  # kinds of values mixed in one column
        return pa.array([None if _is_missing(value) else str(value) for value in values], type=pa.string())


def _is_missing(value: Any) -> bool:
    return value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and value != value)  # noqa: PLR0124 - NaN


def is_text(column: pa.ChunkedArray) -> bool:
    """Whether the column holds strings (plain or dictionary-encoded)."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_category(column: pa.ChunkedArray) -> bool:
    """Whether the owner made the column one of categories, whatever their names look like."""
    return bool(pa.types.is_dictionary(column.type))


def words_of(column: pa.ChunkedArray, rows: BoolArray) -> list[str]:
    """Return the different texts in some rows (a mask) that are not empty: words that stand for missing."""
    if not (is_label(column) and rows.any()):
        return []
    texts = column.filter(pa.array(rows)).unique().to_pylist()
    return sorted({clean(str(text)) for text in texts if text is not None} - {""})


def category_columns(frame: Any) -> tuple[str, ...]:
    """Return the columns of a frame (not of a matrix) that its owner made ones of categories."""
    known = _known(frame)
    if isinstance(known, pd.DataFrame):
        kinds = [isinstance(kind, pd.CategoricalDtype) for kind in known.dtypes]
    else:
        kinds = [pa.types.is_dictionary(kind) for kind in known.schema.types]
    return tuple(name for name, category in zip(frame_columns(frame), kinds, strict=True) if category)


def is_label(column: pa.ChunkedArray) -> bool:
    """Whether the column holds strings, or categories of any kind."""
    return is_text(column) or is_category(column)


def absent(values: np.ndarray[Any, Any]) -> BoolArray:
    """Return which labels (None) or numbers (NaN, infinite) are missing."""
    return np.asarray(pd.isna(values) if values.dtype == object else ~np.isfinite(values), dtype=np.bool_)


def numbers(column: pa.ChunkedArray, name: str, words: Collection[str] = (), decimal: str = ".") -> Numbers:
    """Read a column as numbers: integers, floats of any width, decimals, booleans (1, 0), or texts of these.

    What is among ``words`` is missing. With ``decimal=","`` points between three digits each are left out.

    Raises
    ------
    DataError
        If the type of the column is none of these (a date, a list).
    """
    if is_text(column) and decimal == "." and (plain := _all_numbers(column)) is not None:
        return _without(plain, words)
    column = _plain(column, words)
    if is_text(column):
        return _without(_numbers_of_texts(_with_points(column) if decimal == "," else column), words)
    kind = column.type
    if pa.types.is_boolean(kind):
        column = column.cast(pa.int8())
    elif not any(test(kind) for test in _NUMERIC):
        raise _neither(name, kind)
    return _without(_numbers(column.cast(pa.float64(), safe=False), column), words)


def _without(found: Numbers, words: Collection[str]) -> Numbers:
    """Take numbers that are written as one of the words, such as -999, for missing."""
    coded = [value for word in words if (value := _number(word)) is not None and value == value]  # noqa: PLR0124 - NaN
    here = np.isin(found.values, coded) if coded else np.zeros(0, dtype=np.bool_)
    if not here.any():
        return found
    return replace(
        found, values=np.where(here, np.nan, found.values), present=found.present - int(here.sum())
    )


def _neither(name: str, kind: pa.DataType) -> DataError:
    return DataError(
        f"column {name!r} holds values of type {kind}, neither numbers nor texts; convert or exclude it"
    )


_NUMERIC = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_null)


def _numbers(values: pa.ChunkedArray, column: pa.ChunkedArray) -> Numbers:
    present = len(column) - column.null_count
    found = np.array(values.to_numpy(), dtype=np.float64)
    return Numbers(found, np.zeros(len(column), dtype=np.bool_), "", present)


def _all_numbers(column: pa.ChunkedArray) -> Numbers | None:
    """Read texts that are finite numbers, every one, which most columns are; None for all others."""
    try:
        found = _numbers(column.cast(pa.float64()), column)
    except pa.ArrowInvalid:
        return None
    return found if np.isfinite(found.values).all() else None


def _numbers_of_texts(column: pa.ChunkedArray) -> Numbers:
    trimmed = pc.utf8_trim_whitespace(column)
    try:
        return _numbers(trimmed.cast(pa.float64()), column)
    except pa.ArrowInvalid:  # slower, value by value of those that differ
        encoded = trimmed.combine_chunks().dictionary_encode()
    parsed = [_number(text) for text in encoded.dictionary.to_pylist()] + [np.nan]  # the last: missing
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    values = np.array([np.nan if value is None else value for value in parsed])[codes]
    text = np.array([value is None for value in parsed], dtype=np.bool_)[codes]
    example = str(column[int(text.argmax())].as_py()) if text.any() else ""
    return Numbers(values, text, example, len(column) - column.null_count)


def _with_points(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Write 1.234,5 as 1234.5."""
    trimmed = pc.utf8_trim_whitespace(column)
    grouped = pc.match_substring_regex(trimmed, r"^[+-]?\d{1,3}(\.\d{3})+(,\d+)?$")
    plain = pc.if_else(grouped, pc.replace_substring(trimmed, ".", ""), trimmed)
    number = pc.match_substring_regex(plain, r"^[+-]?\d*,\d+([eE][+-]?\d+)?$")
    return pc.if_else(number, pc.replace_substring(plain, ",", "."), plain)


def with_decimal_points(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Write texts that are numbers with a decimal comma with a point; leave all others as they are."""
    if not is_text(column):
        return column
    return pc.if_else(pc.match_substring(column, ","), _with_points(column), column)


def misread(column: pa.ChunkedArray) -> str:
    """Say how texts that can be read as numbers may be meant otherwise; empty if they hardly may."""
    if not is_text(column):
        return ""
    texts = pc.utf8_trim_whitespace(column)
    zeros = column.filter(pc.match_substring_regex(texts, r"^0\d+$").fill_null(False))  # noqa: FBT003 - Arrow's
    if len(zeros):
        return f"{zeros[0].as_py()!r} and {len(zeros) - 1} more have leading zeros, which a number loses"
    if pc.all(pc.match_substring_regex(texts, r"^[+-]?[1-9]\d{0,2}(\.\d{3})?$"), min_count=1).as_py():
        broken = column.filter(pc.match_substring(texts, ".").fill_null(False))  # noqa: FBT003
        if 0 < len(broken) < len(column) - column.null_count:
            return f"{broken[0].as_py()!r} stands beside whole numbers: are these points between thousands?"
    return ""


def _number(text: str) -> float | None:
    try:
        return float(text) if "_" not in text else None
    except ValueError:
        return _BOOLEANS.get(text.lower())


def labels(column: pa.ChunkedArray, name: str, words: Collection[str] = ()) -> Labels:
    """Read a column as labels: strings, None where missing or among ``words``.

    Whole numbers lose their ``.0``, so that 1, 1.0 and "1" are the same label whatever file they came from;
    so are texts that differ only in their Unicode form or in blanks around them.

    Raises
    ------
    DataError
        If the values are lists or the like.
    """
    column = _plain(column)
    if pa.types.is_nested(column.type):
        raise _neither(name, column.type)
    encoded = column.combine_chunks().dictionary_encode()
    found = [_label(value) for value in encoded.dictionary.to_pylist()]
    names = np.array([None if label in words else label for label in found] + [None], dtype=object)
    return np.asarray(names[encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)], dtype=object)


def identifiers(column: pa.ChunkedArray) -> np.ndarray[Any, Any]:
    """Read a column as row identifiers: integers as they are, all else as strings, unchanged."""
    column = _plain(column)
    if pa.types.is_integer(column.type) and not column.null_count:
        return np.asarray(column.to_numpy())
    return np.array([None if v is None else str(v) for v in column.to_pylist()] + [None], dtype=object)[:-1]


def _label(value: Any) -> str | None:
    if isinstance(value, float):
        if value != value:  # noqa: PLR0124 - NaN
            return None
        return str(int(value)) if value.is_integer() else repr(value)
    if isinstance(value, decimal.Decimal):
        value = str(value)
    text = clean(str(value))
    return text.split(".")[0] if isinstance(value, str) and _WHOLE.fullmatch(text) else text


def _plain(column: pa.ChunkedArray, words: Collection[str] = ()) -> pa.ChunkedArray:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_large_string(column.type) or pa.types.is_string_view(column.type):
        column = column.cast(pa.string())
    if pa.types.is_string(column.type):  # an empty text is a missing one, as in CSV
        # A column of nulls and not one None: with that, pyarrow to 23 damages the offsets of a slice.
        nulls = pa.nulls(len(column), pa.string())
        gone = pc.is_in(pc.utf8_trim_whitespace(column), value_set=pa.array(["", *words], pa.string()))
        column = pc.if_else(gone, nulls, column)
    return column


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
        kinds = [_KINDS.get(getattr(table[name].dtype, "kind", "O"), "text") for table in (source, target)]
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
