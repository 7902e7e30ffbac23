"""One column at a time: numbers as float64, texts as labels, and what is neither."""

from __future__ import annotations

import decimal
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from lrqr.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lrqr.arrays import FloatArray, IntArray

Labels = np.ndarray[Any, np.dtype[np.object_]]

_TRUTH = {"true": 1.0, "false": 0.0}
_WHOLE = re.compile(r"[+-]?\d+\.0+")


@dataclass(frozen=True)
class Numbers:
    """A column read as numbers.

    Attributes
    ----------
    values : array of shape (n,)
        float64; NaN where missing or not a number.
    text : int array
        Positions of values that are texts, not numbers.
    present : int
        Number of values that are not missing.
    """

    values: FloatArray
    text: IntArray
    present: int

    @property
    def numeric(self) -> bool:
        """Whether nothing but numbers (or nothing at all) was found."""
        return self.text.size == 0

    @property
    def mostly_numeric(self) -> bool:
        """Whether more than half of what is present are numbers: the rest is then taken for mistakes."""
        return 2 * self.text.size < self.present


def frame_columns(frame: Any) -> tuple[str, ...]:
    """Names of the columns of a pandas, polars or Arrow table (or f0, f1, .. of a matrix), each once.

    Raises
    ------
    DataError
        If a name occurs twice or ``frame`` is no table.
    """
    if isinstance(frame, np.ndarray):
        if frame.ndim != 2:
            raise DataError(f"a matrix of features must have two dimensions, got shape {frame.shape}")
        return tuple(f"f{k}" for k in range(frame.shape[1]))
    raw = frame.column_names if isinstance(frame, pa.Table) else getattr(frame, "columns", None)
    if raw is None:
        raise DataError(f"expected a data frame (pandas or polars) or a matrix, got {type(frame).__name__}")
    names = tuple(str(name) for name in raw)
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise DataError(f"column names occur twice: {', '.join(map(repr, twice))}; rename them")
    return names


def frame_items(frame: Any, wanted: Sequence[str]) -> Iterator[tuple[str, pa.ChunkedArray]]:
    """Yield the wanted columns of a frame as Arrow columns."""
    position = {name: k for k, name in enumerate(frame_columns(frame))}
    for name in wanted:
        yield name, _arrow(frame, position[name], name)


def _arrow(frame: Any, k: int, name: str) -> pa.ChunkedArray:
    if isinstance(frame, pa.Table):
        return frame.column(k)
    if isinstance(frame, np.ndarray):
        values: Any = frame[:, k]
    elif isinstance(frame, pd.DataFrame):
        values = frame.iloc[:, k]
    else:  # polars
        values = frame[name].to_arrow()
    if isinstance(values, pa.Array):
        return pa.chunked_array([values])
    try:
        array = pa.array(values, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):  # kinds of values mixed in one column
        array = pa.array([None if _is_missing(value) else str(value) for value in values], type=pa.string())
    return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])


def _is_missing(value: Any) -> bool:
    return value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and value != value)  # noqa: PLR0124 - NaN


def is_text(column: pa.ChunkedArray) -> bool:
    """Whether the column holds strings (plain or dictionary-encoded)."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def numbers(column: pa.ChunkedArray, name: str) -> Numbers:
    """Read a column as numbers: integers, floats of any width, decimals, booleans (1, 0), or texts of these.

    Raises
    ------
    DataError
        If the type of the column is none of these (a date, a list).
    """
    column = _plain(column)
    present = len(column) - column.null_count
    if pa.types.is_null(column.type):
        return Numbers(np.full(len(column), np.nan), np.empty(0, dtype=np.int64), 0)
    if is_text(column):
        return _numbers_of_texts(column, present)
    kind = column.type
    known = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean)
    if not any(test(kind) for test in known):
        raise DataError(
            f"column {name!r} holds values of type {kind}, neither numbers nor texts; convert or exclude it"
        )
    if pa.types.is_boolean(kind):
        column = column.cast(pa.int8())
    values = column.cast(pa.float64(), safe=False).to_numpy()
    return Numbers(np.array(values, dtype=np.float64), np.empty(0, dtype=np.int64), present)


def _numbers_of_texts(column: pa.ChunkedArray, present: int) -> Numbers:
    trimmed = pc.utf8_trim_whitespace(column)
    try:
        values = np.array(trimmed.cast(pa.float64()).to_numpy(), dtype=np.float64)
        return Numbers(values, np.empty(0, dtype=np.int64), present)
    except pa.ArrowInvalid:
        pass
    # Slower, value by value of those that differ.
    encoded = trimmed.combine_chunks().dictionary_encode()
    parsed = [_number(text) for text in encoded.dictionary.to_pylist()]
    table = np.array([np.nan if value is None else value for value in parsed])
    is_bad = np.array([value is None for value in parsed], dtype=np.bool_)
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    values = np.where(codes >= 0, table[codes], np.nan)
    return Numbers(values, np.flatnonzero((codes >= 0) & is_bad[codes]), present)


def _number(text: str) -> float | None:
    try:
        return float(text) if "_" not in text else None
    except ValueError:
        return _TRUTH.get(text.lower())


def labels(column: pa.ChunkedArray) -> Labels:
    """Read a column as labels: strings, None where missing.

    Whole numbers lose their ``.0``, so that 1, 1.0 and "1" are the same label whatever file they came from.
    """
    column = _plain(column)
    encoded = column.combine_chunks().dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    names = np.array([_label(value) for value in encoded.dictionary.to_pylist()] + [None], dtype=object)
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
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        return value.split(".")[0]
    return str(value)


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_large_string(column.type) or pa.types.is_string_view(column.type):
        column = column.cast(pa.string())
    if pa.types.is_string(column.type):  # an empty text is a missing one, as in CSV
        column = pc.if_else(pc.equal(pc.utf8_trim_whitespace(column), ""), None, column)
    return column
