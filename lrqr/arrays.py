"""Array types and the checks at the door: float64, right shape, finite."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from functools import lru_cache
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

from lrqr.errors import DataError, UsageError
from lrqr.plugins import suggest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]

_ROWS_SHOWN = 5
_MANY_THREADS = 1e11  # multiplications from which on a second thread brings more than it costs
LARGEST_SEED = 2**32 - 1  # that scikit-learn takes


@contextmanager
def few_threads(work: float = 0.0) -> Iterator[None]:
    """Let BLAS and OpenMP use one thread, whatever the shell says, unless there is ``work`` for more.

    Threads wait for each other by spinning: on small tasks, on a busy machine above all, they cost many times
    what they bring. Several processes (``--jobs``) are the way to use several cores.

    Parameters
    ----------
    work : float
        Multiplications, n d² for the Gram matrix of n rows.
    """
    if work >= _MANY_THREADS:
        yield
    else:
        with _libraries(len(sys.modules)).limit(limits=1):
            yield


@lru_cache(maxsize=1)
def _libraries(_imported: int) -> ThreadpoolController:
    """Return what is loaded of BLAS and OpenMP; looked for again after each import, as that takes 3 ms."""
    return ThreadpoolController()


class NotNumeric(DataError, TypeError):  # noqa: N818 - it is a kind of DataError
    """Values that are not numbers: also a TypeError, which is what scikit-learn promises for them."""


def as_matrix(values: Any, name: str, *, columns: int | None = None) -> FloatArray:
    """Return ``values`` as a finite float64 matrix of shape (n, d).

    Parameters
    ----------
    values : array-like or data frame of shape (n, d)
    name : str
        What to call it in messages.
    columns : int, optional
        The required d.

    Raises
    ------
    DataError
        If it is not numeric, not two-dimensional, has another d, or holds NaN or infinity
        (the message names the first rows).
    """
    array = _as_float(values, name)
    if array.ndim != 2:
        hint = ". Reshape your data: use .reshape(-1, 1) for one feature or .reshape(1, -1) for one row"
        raise DataError(f"{name} must have two dimensions (rows, features), got shape {array.shape}{hint}")
    if columns is not None and array.shape[1] != columns:
        raise DataError(f"{name} has {array.shape[1]} columns, expected {columns}")
    _require_finite(array, name)
    return array


def as_vector(
    values: Any, name: str, *, length: int | None = None, allow_infinite: bool = False
) -> FloatArray:
    """Return ``values`` as a float64 vector of shape (n,).

    Raises
    ------
    DataError
        If it is not numeric, not one-dimensional, has another length, or holds NaN (or infinity, unless
        ``allow_infinite``).
    """
    array = _as_float(values, name)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise DataError(f"{name} must have one dimension, got shape {array.shape}")
    if length is not None and array.shape[0] != length:
        raise DataError(f"{name} has {array.shape[0]} rows, expected {length}")
    _require_finite(array, name, allow_infinite=allow_infinite)
    return array


def check_seed(seed: Any) -> None:
    """Refuse what is no seed of random numbers: None, or an integer from 0 to 2³² - 1, is one.

    Raises
    ------
    UsageError
    """
    if seed is not None and not (isinstance(seed, Integral) and 0 <= int(seed) <= LARGEST_SEED):
        raise UsageError(
            f"the seed (random_state, --seed) must be an integer from 0 to {LARGEST_SEED}, got {seed!r}"
        )


def row_dot(X: FloatArray, coef: FloatArray) -> FloatArray:
    """Return ``X @ coef`` (n,) so that no row's value depends, even by one bit, on the rows beside it.

    BLAS may sum in another order for another number of rows; this loop over each row does not.
    """
    product: FloatArray = np.einsum("ij,j->i", X, coef, optimize=False)
    return product


def mean_of(parts: Sequence[FloatArray]) -> FloatArray:
    """Mean of vectors (n,) of the same rows, so that no row's value depends on the rows beside it.

    ``np.mean(parts, axis=0)`` sums in another order for one row than for many.
    """
    total = np.zeros_like(parts[0])
    for part in parts:
        total += part
    mean: FloatArray = total / len(parts)
    return mean


def _as_float(values: Any, name: str) -> FloatArray:
    if hasattr(values, "to_numpy") and not isinstance(values, np.ndarray):
        values = values.to_numpy()
    if hasattr(values, "toarray"):
        raise DataError(f"{name} is a sparse matrix; pass a dense one, for example X.toarray()")
    try:
        array = np.asarray(values)
        if np.iscomplexobj(array):
            raise DataError(f"{name} holds complex numbers. Complex data not supported")
        return np.ascontiguousarray(array, dtype=np.float64)
    except (TypeError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise NotNumeric(f"{name} is not numeric: {error}") from error


def _require_finite(array: FloatArray, name: str, *, allow_infinite: bool = False) -> None:
    bad = np.isnan(array) if allow_infinite else ~np.isfinite(array)
    if not bad.any():
        return
    rows = np.flatnonzero(bad.any(axis=1) if array.ndim == 2 else bad)
    shown = ", ".join(str(row) for row in rows[:_ROWS_SHOWN])
    more = ", ..." if len(rows) > _ROWS_SHOWN else ""
    kind = "NaN" if allow_infinite else "NaN or infinity"
    raise DataError(
        f"{name} holds {kind} in {len(rows)} of {array.shape[0]} rows (rows {shown}{more}, counted from 0); "
        "drop or impute them first"
    )


def distinct_columns(*parts: FloatArray) -> IntArray:
    """Return the columns (sorted indices) that vary over all rows and are no copy of an earlier column.

    A constant or a copy carries nothing; without it a fit is the same as if it had never been there. Where
    nothing varies the first column stays.
    """
    kept: dict[bytes, int] = {}
    for column in range(parts[0].shape[1]):
        values = np.concatenate([part[:, column] for part in parts])
        if len(values) and values.min() < values.max():
            kept.setdefault((values + 0.0).tobytes(), column)
    return np.array(list(kept.values()) or [0], dtype=np.int64)


def matched_columns(source: Any, target: Any) -> tuple[Any, Any, list[str] | None]:
    """Return two data frames (pandas or polars) with the columns of the source, and the names of these.

    Columns are found by name; further ones of the target play no part. What is no data frame is returned as
    it is; without any there are no names.

    Raises
    ------
    DataError
        If the target lacks columns, or a name occurs twice.
    """
    if not _is_frame(source) or not _is_frame(target):
        frame = next((rows for rows in (source, target) if _is_frame(rows)), None)
        return source, target, None if frame is None else [str(name) for name in frame.columns]
    for what, frame in (("X_source", source), ("X_target", target)):
        names = [str(name) for name in frame.columns]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise DataError(f"{what}: column names occur twice: {', '.join(map(repr, twice))}; rename them")
    own = {str(name): name for name in target.columns}
    wanted = [str(name) for name in source.columns]
    lacking = [f"{name!r}{suggest(name, own)}" for name in wanted if name not in own]
    if lacking:
        raise DataError(
            f"X_target lacks {len(lacking)} column(s) of X_source: {', '.join(lacking[:_ROWS_SHOWN])}"
            f"{', ...' if len(lacking) > _ROWS_SHOWN else ''}; give both the same features"
        )
    return source, target[[own[name] for name in wanted]], wanted


def _is_frame(rows: Any) -> bool:
    return hasattr(rows, "columns") and hasattr(rows, "to_numpy")
